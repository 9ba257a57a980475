//! What the kernel says that uninterruptible sleeps were for: `sched_blocked_reason`.
//!
//! ```text
//! sched_waking ──► sched_blocked_reason ──► sched_wakeup
//!  who ends it       what it was for          on the run queue
//! ```
//!
//! A sleep is judged when it ends, which is at `sched_waking`. Where reasons are recorded, that of
//! an uninterruptible sleep is put off until the reason has come, or `sched_wakeup` without one:
//! the kernel is silent where it does not know, and some kernels are about real-time threads.

use super::Engine;
use crate::judge::BlockedFor;
use crate::threads::{Slot, State};
use crate::waits::{Caller, Wait};
use holdup_trace::{Cpu, NameId, Nanos, Tid};

/// What a `sched_blocked_reason` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reason {
    pub(crate) io_wait: bool,
    caller: Caller,
    /// The caller is a function that takes locks.
    lock: bool,
}

/// A `sched_waking` that is kept until the reason of the sleep is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyWake {
    pub(super) waker: Option<(Slot, bool)>,
    pub(super) target: Cpu,
}

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
        if t.state != State::Blocked || !t.uninterruptible {
            return;
        }
        t.reason = Some(Reason { io_wait, caller, lock });
        if let Some(early) = t.waking.take() {
            self.wake(now, slot, early.waker, early.target, true);
        }
    }

    /// Whether the reason of the sleep that `sched_waking` ends now is still to come.
    pub(super) fn awaits_reason(&self, slot: Slot) -> bool {
        let t = &self.threads[slot];
        self.reasons
            && self.caps.wakeups
            && t.state == State::Blocked
            && t.uninterruptible
            && t.reason.is_none()
            && t.waking.is_none()
    }

    /// What a sleep that ends was for, as far as the kernel says. A lock that is known by its own
    /// events needs no such hint.
    pub(super) fn blocked_for(&self, slot: Slot) -> Option<BlockedFor> {
        let t = &self.threads[slot];
        let reason = t.reason.filter(|_| t.contending == 0)?;
        Some(match reason {
            Reason { io_wait: true, .. } => BlockedFor::Io,
            Reason { lock: true, .. } => BlockedFor::Lock,
            _ => BlockedFor::Other,
        })
    }

    /// A wait that ends, for the function it was in where that says more than what is known.
    pub(super) fn blocked_in(&mut self, now: Nanos, slot: Slot, wait: Wait) -> Wait {
        let of = self.blocked_for(slot);
        match (of, self.threads[slot].reason) {
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
