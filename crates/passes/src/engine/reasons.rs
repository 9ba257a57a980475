//! What the kernel says uninterruptible sleeps were for: `sched_blocked_reason`.
//!
//! ```text
//! sched_waking ──► sched_blocked_reason ──► sched_wakeup
//!  who ends it       what it was for          on the run queue
//! ```
//!
//! A sleep, and its time, ends at the first event that wakes the thread, whichever of the three
//! events were recorded. Its purpose is judged when it is known: if reasons are recorded, the
//! judgement of an uninterruptible sleep waits until the reason has come, or until the thread is on
//! a run queue or runs without one. A kernel that gives reasons does not give them for all sleeps,
//! sometimes for no real-time thread: the purpose of those sleeps remains unknown.

use super::Engine;
use crate::judge::{BlockedFor, Ended};
use crate::slot::Slot;
use crate::state::State;
use crate::unsettled::Reason;
use crate::waits::{Caller, Wait};
use holdup_trace::{NameId, Nanos, Tid};

impl Engine {
    pub(super) fn blocked_reason(
        &mut self,
        now: Nanos,
        tid: Tid,
        io_wait: bool,
        (address, name): (u64, NameId),
    ) {
        self.reasons_seen = true;
        let Some(slot) = self.threads.get(tid).filter(|&s| s != Slot::IDLE) else { return };
        let (caller, lock) = match name {
            NameId::NONE => (Caller::Address(address), self.locks.is_locking(address)),
            name => (Caller::Name(name), self.is_locking(name)),
        };
        let t = &mut self.threads[slot];
        if t.uninterruptible && (t.state == State::Blocked || t.living.unsettled.is_some()) {
            t.living.reason = Some(Reason { io_wait, caller, lock });
            self.settle_reason(now, slot);
        }
    }

    /// Whether the reason of a sleep that ends now may still come.
    pub(super) fn awaits_reason(&self, slot: Slot) -> bool {
        let t = &self.threads[slot];
        self.reasons && t.state == State::Blocked && t.uninterruptible && t.living.reason.is_none()
    }

    /// The reason of a sleep that is over has come, or will not come any more.
    #[inline]
    pub(super) fn settle_reason(&mut self, now: Nanos, slot: Slot) {
        if self.reasons && self.threads[slot].living.unsettled.is_some() {
            self.judge_unsettled(now, slot);
        }
    }

    #[cold]
    fn judge_unsettled(&mut self, now: Nanos, slot: Slot) {
        let Some(over) = self.threads[slot].living.unsettled.take() else { return };
        self.judge_sleep(now, slot, *over);
        if over.counted && self.threads[slot].state == State::Waking {
            self.wake_up_begins(now, slot);
        }
    }

    /// Whether the kernel gives reasons of other sleeps but not of this one.
    pub(super) fn is_silent(&self, slot: Slot, ended: Ended) -> bool {
        let t = &self.threads[slot];
        t.uninterruptible
            && t.living.reason.is_none()
            && (self.reasons_named || self.reasons_seen && ended == Ended::Trace)
    }

    /// What a sleep that ends was for, as far as the kernel says. A lock with events of its own
    /// needs no such hint.
    pub(super) fn blocked_for(&self, slot: Slot) -> Option<BlockedFor> {
        let t = &self.threads[slot];
        let reason = t.living.reason.filter(|_| t.contending == 0)?;
        Some(match reason {
            Reason { io_wait: true, .. } => BlockedFor::Io,
            Reason { lock: true, .. } => BlockedFor::Lock,
            _ => BlockedFor::Other,
        })
    }

    /// A wait that ends, with the kernel function it slept in if that says more than what is known.
    pub(super) fn blocked_in(&mut self, now: Nanos, slot: Slot, wait: Wait) -> Wait {
        let of = self.blocked_for(slot);
        match (of, self.threads[slot].living.reason) {
            (Some(of), Some(reason)) => self.waits.blocked_in(now, slot, wait, of, reason.caller),
            _ => wait,
        }
    }

    fn is_locking(&mut self, name: NameId) -> bool {
        let names = &self.names;
        *self.locking.entry(name).or_insert_with(|| {
            let name = names.get(name);
            crate::locks::is_locking(name.split('+').next().unwrap_or(&name))
        })
    }
}
