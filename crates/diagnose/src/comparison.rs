//! Comparisons of similar work: application code and system calls that take longer.

use holdup_passes::Slot;
use holdup_trace::Nanos;
use std::collections::BTreeMap;

/// The source of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Counters,
    UserIntervals,
    BaselineCounters,
    BaselineUserIntervals,
    /// `perf stat`, of runs that kept as many CPUs busy as the trace, and of runs with fewer.
    Measured,
    /// `perf stat`, but no run kept as many CPUs busy as the trace.
    MeasuredElsewhere,
}

impl Source {
    /// What was measured, for evidence rows.
    pub(crate) fn metric(self) -> &'static str {
        match self {
            Source::Counters | Source::Measured | Source::MeasuredElsewhere => {
                "cycles per instruction with many CPUs busy, compared with few"
            }
            Source::UserIntervals => {
                "application code between system calls with many CPUs busy, compared with few"
            }
            Source::BaselineCounters => "cycles per instruction, compared with the baseline",
            Source::BaselineUserIntervals => {
                "application code between system calls, compared with the baseline"
            }
        }
    }

    /// Whether cycles and instructions were counted, and not only times measured.
    pub(crate) fn counts(self) -> bool {
        match self {
            Source::UserIntervals | Source::BaselineUserIntervals => false,
            Source::Counters
            | Source::BaselineCounters
            | Source::Measured
            | Source::MeasuredElsewhere => true,
        }
    }

    /// The place that shows it.
    pub(crate) fn place(self) -> &'static str {
        match self {
            Source::Counters | Source::BaselineCounters => "counters",
            Source::UserIntervals | Source::BaselineUserIntervals => {
                "user-mode intervals between calls"
            }
            Source::Measured | Source::MeasuredElsewhere => "perf stat",
        }
    }
}

/// By how much similar work is slower.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slowdown {
    pub(crate) source: Source,
    /// CPU time of all work compared, with the faster part.
    pub(crate) covered_ns: f64,
    /// CPU time of the work that may have been slowed down.
    pub(crate) taken_ns: f64,
    /// The part of it that it would not have taken elsewhere.
    pub(crate) lost_ns: f64,
    /// `lost_ns` by thread.
    pub(crate) by: BTreeMap<Slot, f64>,
}

impl Slowdown {
    pub(crate) fn of(source: Source) -> Slowdown {
        Slowdown { source, covered_ns: 0.0, taken_ns: 0.0, lost_ns: 0.0, by: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, slot: Slot, taken: f64, lost: f64) {
        self.covered_ns += taken;
        self.taken_ns += taken;
        self.lost_ns += lost;
        *self.by.entry(slot).or_default() += lost;
    }

    /// The CPU time lost, if proven. User-mode intervals of one trace alone may be longer for other
    /// reasons than the machine, and the loss in runs of another concurrency is not this trace's.
    pub(crate) fn proven_ns(&self) -> Option<Nanos> {
        let proven = !matches!(self.source, Source::UserIntervals | Source::MeasuredElsewhere);
        proven.then_some(self.lost_ns.max(0.0) as Nanos)
    }

    /// How many times as long similar work takes.
    pub(crate) fn times(&self) -> f64 {
        let expected = self.taken_ns - self.lost_ns;
        if expected > 0.0 { self.taken_ns / expected } else { 1.0 }
    }
}

/// The cost of system calls made alone, here and in the baseline.
pub(crate) struct Overhead {
    /// By call, the most expensive first: name, number, CPU time beyond the baseline (negative if
    /// less), cost relative to the baseline.
    pub(crate) calls: Vec<(String, u32, i128, f64)>,
    /// CPU time of the compared calls, and what it would have been at the baseline's cost per call.
    pub(crate) now: u128,
    pub(crate) then: u128,
}

impl Overhead {
    /// CPU time beyond the baseline's.
    pub(crate) fn lost_ns(&self) -> u64 {
        self.now.saturating_sub(self.then) as u64
    }

    /// CPU time beyond the baseline's, in per cent of it.
    pub(crate) fn pct(&self) -> f64 {
        if self.then == 0 { 0.0 } else { (self.now as f64 / self.then as f64 - 1.0) * 100.0 }
    }
}
