//! The thread that empties rings must run when a ring fills, not when it is its turn.
//!
//! On a machine with many more ready threads than CPUs an ordinary thread waits until the ring is
//! full, and events are lost, just when they matter. Its work is a few percent of a CPU, which it
//! needs anyway: running it first costs the other threads next to nothing.
#![allow(unsafe_code, reason = "sched_setscheduler")]

/// While it lives, this thread has priority over ordinary ones, if the user is allowed that.
#[derive(Debug)]
pub(crate) struct Urgent {
    before: i32,
}

impl Urgent {
    /// Raises the priority; `None` if not allowed (`CAP_SYS_NICE`), or already raised.
    pub(crate) fn begin() -> Option<Urgent> {
        // SAFETY: it only returns a number.
        let before = unsafe { libc::sched_getscheduler(0) };
        // Another policy was set on purpose, so it is kept.
        if before != libc::SCHED_OTHER {
            return None;
        }
        // Child processes are scheduled normally.
        set(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1).then_some(Urgent { before })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        set(self.before, 0);
    }
}

/// Sets the policy of this thread. Returns whether that is allowed.
fn set(policy: i32, priority: i32) -> bool {
    // SAFETY: zeros are a valid structure; the kernel only reads it.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &parameters) == 0
    }
}
