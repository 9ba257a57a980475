//! Sums over waits and holds.

use crate::hist::{Histogram, Octaves};
use crate::state::State;
use crate::threads::Thread;
use holdup_trace::Nanos;

/// A thread's total times off its CPU at some moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Away {
    runnable: Nanos,
    blocked: Nanos,
}

impl Away {
    pub(crate) fn at(t: &Thread, now: Nanos) -> Away {
        let span = now.saturating_sub(t.since);
        let (runnable, blocked) = match t.state {
            State::Woken(_) | State::Preempted(_) => (span, 0),
            State::Blocked | State::Waking => (0, span),
            _ => (0, 0),
        };
        Away { runnable: t.woken_ns + t.preempted_ns + runnable, blocked: t.blocked_ns + blocked }
    }

    /// A span of `ns` from `self` to `end`, split so that the parts add up to it.
    pub(crate) fn split(self, end: Away, ns: Nanos) -> Span {
        let blocked = end.blocked.saturating_sub(self.blocked).min(ns);
        let runnable = end.runnable.saturating_sub(self.runnable).min(ns - blocked);
        Span { ns, running: ns - blocked - runnable, runnable, blocked }
    }
}

/// A span and what the thread did in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) ns: Nanos,
    pub(crate) running: Nanos,
    pub(crate) runnable: Nanos,
    pub(crate) blocked: Nanos,
}

/// A histogram that costs nothing before the second value.
#[derive(Clone, Debug, Default)]
enum Spread {
    #[default]
    None,
    One(Nanos),
    Many(Histogram),
}

impl Spread {
    fn add(&mut self, ns: Nanos) {
        match self {
            Spread::None => *self = Spread::One(ns),
            Spread::One(first) => {
                let mut hist = Histogram::default();
                hist.add(*first);
                hist.add(ns);
                *self = Spread::Many(hist);
            }
            Spread::Many(hist) => hist.add(ns),
        }
    }

    fn merge(&mut self, other: &Spread) {
        match other {
            Spread::None => {}
            Spread::One(ns) => self.add(*ns),
            Spread::Many(theirs) => {
                let mut hist = match std::mem::take(self) {
                    Spread::Many(hist) => hist,
                    Spread::One(ns) => {
                        let mut hist = Histogram::default();
                        hist.add(ns);
                        hist
                    }
                    Spread::None => Histogram::default(),
                };
                hist.merge(theirs);
                *self = Spread::Many(hist);
            }
        }
    }

    fn octaves(&self) -> Octaves {
        match self {
            Spread::None => Octaves::default(),
            Spread::One(ns) => {
                let mut octaves = Octaves::default();
                octaves.add(*ns);
                octaves
            }
            Spread::Many(hist) => hist.octaves(),
        }
    }

    fn percentile(&self, per_cent: u64) -> Option<Nanos> {
        match self {
            Spread::None => None,
            Spread::One(ns) => Some(*ns),
            Spread::Many(hist) => hist.percentile(per_cent),
        }
    }
}

/// Sums over waits.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    /// Begun, the open ones included.
    pub(crate) begun: u64,
    /// Ended.
    pub(crate) ended: u64,
    pub(crate) total: Nanos,
    pub(crate) min: Nanos,
    pub(crate) max: Nanos,
    pub(crate) spin: Nanos,
    pub(crate) runnable: Nanos,
    pub(crate) block: Nanos,
    /// Part of `ended`: waits that included sleep.
    pub(crate) slept: u64,
    /// Total time of the waits that included sleep.
    pub(crate) slept_ns: Nanos,
    /// Waits that had not ended when the trace did.
    pub(crate) open: u64,
    /// Total time of the open waits so far; not part of `total`.
    pub(crate) open_ns: Nanos,
    /// When the first began.
    pub(crate) first: Nanos,
    /// When the last began.
    pub(crate) last: Nanos,
    spread: Spread,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            begun: 0,
            ended: 0,
            total: 0,
            min: Nanos::MAX,
            max: 0,
            spin: 0,
            runnable: 0,
            block: 0,
            slept: 0,
            slept_ns: 0,
            open: 0,
            open_ns: 0,
            first: Nanos::MAX,
            last: 0,
            spread: Spread::None,
        }
    }
}

impl Waits {
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.begun += 1;
        self.first = self.first.min(now);
        self.last = self.last.max(now);
    }

    pub(crate) fn end(&mut self, span: Span) {
        self.ended += 1;
        self.total += span.ns;
        self.min = self.min.min(span.ns);
        self.max = self.max.max(span.ns);
        self.spin += span.running;
        self.runnable += span.runnable;
        self.block += span.blocked;
        if span.blocked > 0 {
            self.slept += 1;
            self.slept_ns += span.ns;
        }
        self.spread.add(span.ns);
    }

    pub(crate) fn merge(&mut self, o: &Waits) {
        self.begun += o.begun;
        self.ended += o.ended;
        self.total += o.total;
        self.min = self.min.min(o.min);
        self.max = self.max.max(o.max);
        self.spin += o.spin;
        self.runnable += o.runnable;
        self.block += o.block;
        self.slept += o.slept;
        self.slept_ns += o.slept_ns;
        self.open += o.open;
        self.open_ns += o.open_ns;
        self.first = self.first.min(o.first);
        self.last = self.last.max(o.last);
        self.spread.merge(&o.spread);
    }

    /// Ended waits, by powers of two of their time.
    pub(crate) fn octaves(&self) -> Octaves {
        self.spread.octaves()
    }

    pub(crate) fn percentile(&self, per_cent: u64) -> Option<Nanos> {
        // Buckets are coarse; no percentile lies outside the observed range.
        self.spread.percentile(per_cent).map(|ns| ns.clamp(self.min, self.max))
    }
}

/// Sums over times a lock was held.
#[derive(Clone, Debug)]
pub(crate) struct Holds {
    pub(crate) count: u64,
    pub(crate) total: Nanos,
    pub(crate) min: Nanos,
    pub(crate) max: Nanos,
    /// Times that the holder lost its CPU meanwhile, and the total time.
    pub(crate) preempted: u64,
    pub(crate) preempted_ns: Nanos,
    /// Times that the holder slept meanwhile, and the total time.
    pub(crate) slept: u64,
    pub(crate) slept_ns: Nanos,
    pub(crate) octaves: Octaves,
}

impl Default for Holds {
    fn default() -> Holds {
        Holds {
            count: 0,
            total: 0,
            min: Nanos::MAX,
            max: 0,
            preempted: 0,
            preempted_ns: 0,
            slept: 0,
            slept_ns: 0,
            octaves: Octaves::default(),
        }
    }
}

impl Holds {
    pub(crate) fn end(&mut self, span: Span) {
        self.count += 1;
        self.total += span.ns;
        self.min = self.min.min(span.ns);
        self.max = self.max.max(span.ns);
        self.preempted += (span.runnable > 0) as u64;
        self.preempted_ns += span.runnable;
        self.slept += (span.blocked > 0) as u64;
        self.slept_ns += span.blocked;
        self.octaves.add(span.ns);
    }

    pub(crate) fn merge(&mut self, o: &Holds) {
        self.count += o.count;
        self.total += o.total;
        self.min = self.min.min(o.min);
        self.max = self.max.max(o.max);
        self.preempted += o.preempted;
        self.preempted_ns += o.preempted_ns;
        self.slept += o.slept;
        self.slept_ns += o.slept_ns;
        self.octaves.merge(&o.octaves);
    }
}
