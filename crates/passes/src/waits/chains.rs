//! Root causes: what a wait was really for, and the trail it leaves for other threads' waits.

use super::{Finished, Object, Waits};
use crate::blame::{Blame, Over, WaitKey, WaitSum};
use crate::cause::Cause;
use crate::judge::HandOver;
use crate::slot::Slot;
use holdup_trace::Nanos;

/// Number of segments of a thread's past that are kept to explain other threads' waits.
const TRAIL: usize = 32;

/// Part of a thread's past asleep, with its root cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// The blame integral at both ends.
    pub(super) g_from: u128,
    pub(super) g_to: u128,
    pub(super) cause: Cause,
    pub(super) object: Object,
    pub(super) nr: Option<u32>,
    pub(super) waker: Option<Slot>,
    /// The thread that slept.
    slept: Slot,
    /// No thread had asked it for anything, as far back as its trail reaches.
    unasked: bool,
}

impl Segment {
    fn over(&self) -> Over {
        Over { from: self.from, g_from: self.g_from, to: self.to, g_to: self.g_to }
    }
}

impl Waits {
    /// Collects the sleeps of the waker that a wait was really for, the latest first. Returns the
    /// beginning of the wait to which the waker's trail does not reach back.
    fn roots(&mut self, f: &Finished, pieces: &mut Vec<Segment>) -> Over {
        let &Finished { wait, end, cause, .. } = f;
        let object = wait.object;
        pieces.clear();
        let mut before =
            Over { from: wait.start, g_from: wait.mark, to: wait.start, g_to: wait.mark };
        let follows =
            f.by_application() && (cause.is_ended_by_thread() || cause == Cause::KernelLock);
        if let (Some(w), true) = (end.waker, follows) {
            let latch = f.facts.waker.and_then(|w| w.hands_over) == Some(HandOver::Signal);
            let lock = latch || self.is_lock(object);
            // A waker that never waited has no trail.
            let trail = self.threads.get(w).map(|w| &w.trail);
            let mut is_cut = trail.is_some_and(|trail| trail.len() == TRAIL);
            let mut reached = None;
            for s in trail.into_iter().flatten().rev() {
                if s.to <= wait.start {
                    reached = None;
                    break;
                }
                if pieces.len() >= TRAIL / 2 {
                    is_cut = true;
                    break;
                }
                reached = Some((s.from, s.g_from));
                let root = match s.cause {
                    Cause::Io | Cause::KernelLock => true,
                    Cause::ThreadSync | Cause::KernelService => s.object != object,
                    // A thread that sleeps while holding a lock delays others; a thread that has
                    // nothing to hand over does not, nor does a holder that waits for what comes
                    // unasked: then the lock is a queue of idle threads.
                    Cause::External | Cause::Unknown => !lock || s.unasked && s.slept != w,
                };
                if root {
                    if s.cause.is_idle() {
                        self.things[object.0 as usize].followed_idle +=
                            s.to - s.from.max(wait.start);
                    }
                    pieces.push(Segment {
                        from: s.from.max(wait.start),
                        g_from: s.g_from.max(wait.mark),
                        ..*s
                    });
                }
            }
            if let Some((from, g_from)) = reached.filter(|of| is_cut && of.0 > wait.start) {
                (before.to, before.g_to) = (from, g_from.max(wait.mark));
            }
        }
        before
    }

    /// Divides the wait among its root causes, and leaves a trail for threads that wait for this
    /// one.
    pub(super) fn follow(&mut self, f: &Finished, blame: &mut Blame) {
        let Finished { slot, wait, now, end, cause, nr, g, counted, .. } = *f;
        let object = wait.object;
        let mut pieces = std::mem::take(&mut self.pieces);
        let before = self.roots(f, &mut pieces);
        pieces.reverse();
        // What the trail no longer has was like what it has.
        let known_ns = u128::from(now.saturating_sub(before.to)).max(1);
        // A product of all and a time may have more than 128 bits, that of two times has not.
        let earlier = |s: &Segment, all: u128| {
            let part = u128::from(s.to - s.from).min(known_ns);
            all / known_ns * part + all % known_ns * part / known_ns
        };
        let earlier_ns = u128::from(before.to - before.from);
        let idle = pieces.iter().filter(|s| s.cause.is_idle());
        let idle = idle.map(|s| earlier(s, earlier_ns)).sum::<u128>();
        self.things[object.0 as usize].followed_idle += idle as Nanos;
        let key =
            |s: &Segment| WaitKey { cause: s.cause, nr: s.nr, waker: s.waker, object: s.object };
        let asks = f.by_application() && !self.is_lock(object);
        let since_asked = &mut self.waiter(slot).since_asked;
        *since_asked = if asks { Some(0) } else { since_asked.map(|n| n.saturating_add(1)) };
        let unasked = since_asked.is_none_or(|n| n >= TRAIL as u32);
        let own = Segment {
            slept: slot,
            unasked,
            from: wait.start,
            to: now,
            g_from: wait.mark,
            g_to: g,
            cause,
            object,
            nr,
            waker: end.waker,
        };
        let (mut rest_ns, mut rest_share) =
            (now - wait.start, if counted { g - wait.mark } else { 0 });
        let trail = &mut self.waiter(slot).trail;
        let mut push = |s: Segment| {
            if s.to > s.from {
                if trail.len() >= TRAIL {
                    trail.pop_front();
                }
                trail.push_back(s);
            }
        };
        let (mut at, mut g_at) = (wait.start, wait.mark);
        for s in &pieces {
            push(Segment { from: at, g_from: g_at, to: s.from, g_to: s.g_from, ..own });
            push(*s);
            (at, g_at) = (s.to, s.g_to);
            if counted {
                let (ns, share) = (s.to - s.from, s.g_to.saturating_sub(s.g_from).min(rest_share));
                (rest_ns, rest_share) = (rest_ns.saturating_sub(ns), rest_share - share);
                let sum = WaitSum { waits: 0, wait_ns: ns, share };
                blame.attribute(key(s), sum, &s.over());
            }
            let ns = earlier(s, earlier_ns) as Nanos;
            if counted && ns > 0 {
                let share = earlier(s, before.g_to - before.g_from).min(rest_share);
                (rest_ns, rest_share) = (rest_ns.saturating_sub(ns), rest_share - share);
                blame.attribute(key(s), WaitSum { waits: 0, wait_ns: ns, share }, &before);
            }
        }
        push(Segment { from: at, g_from: g_at, ..own });
        if counted {
            let sum = WaitSum { waits: 1, wait_ns: rest_ns, share: rest_share };
            blame.attribute(key(&own), sum, &own.over());
        }
        self.waiter(slot).last = Some(key(&own));
        self.pieces = pieces;
    }
}
