//! Run-queue delays, as `perf sched latency` counts them.
//!
//! perf keeps one record ("atom") per stay off the CPU and looks at the newest only:
//!
//! ```text
//!   switch out, R     ready at once          a delay if it runs next
//!   switch out, else  asleep until sched_wakeup; then ready
//!   switch in         ready: the delay is over, counted
//! ```
//!
//! Quirks kept, because the figures are meant to be equal:
//! * a thread first seen when it is switched in counts one delay of 0;
//! * a thread that was preempted (`R+`) does not count as waiting in perf: perf 6.1 looks the state
//!   up in a string by its raw value, 0x100 lies beyond it, and the wait is missed. holdup reports
//!   those waits separately, as `preempted_ns`.
//!
//! Source: perf's observable behaviour (6.1), checked against its output on every recording.

use holdup_trace::{Nanos, TaskState};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Atom {
    /// perf has not heard of the thread.
    #[default]
    None,
    Asleep,
    Waiting,
    Over,
}

/// Delays of one thread.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    atom: Atom,
    out: Nanos,
    wake: Nanos,
    /// Delays counted.
    pub count: u64,
    /// Their sum.
    pub total_ns: Nanos,
    /// The longest.
    pub max_ns: Nanos,
    /// When it began.
    pub max_start: Nanos,
    /// When it ended.
    pub max_end: Nanos,
    /// Run time the scheduler charged (`sched_stat_runtime`).
    pub stat_runtime_ns: Nanos,
}

impl Latency {
    /// The thread leaves its CPU.
    #[inline]
    pub(crate) fn switch_out(&mut self, now: Nanos, state: TaskState) {
        self.out = now;
        self.atom = Atom::Asleep;
        if state == TaskState::RUNNING {
            self.atom = Atom::Waiting;
            self.wake = now;
        }
    }

    /// `sched_wakeup` or `sched_wakeup_new`.
    #[inline]
    pub(crate) fn wakeup(&mut self, now: Nanos) {
        if self.atom == Atom::None {
            self.out = now;
            self.atom = Atom::Asleep;
        }
        if self.atom == Atom::Asleep && self.out <= now {
            self.atom = Atom::Waiting;
            self.wake = now;
        }
    }

    /// The thread gets a CPU: the delay that this ends, if it ends one.
    #[inline]
    pub(crate) fn switch_in(&mut self, now: Nanos) -> Option<Nanos> {
        if self.atom == Atom::None {
            self.atom = Atom::Waiting;
            self.wake = now;
        }
        if self.atom != Atom::Waiting {
            return None;
        }
        self.atom = Atom::Over;
        let delay = now.saturating_sub(self.wake);
        self.total_ns += delay;
        self.count += 1;
        if delay > self.max_ns {
            (self.max_ns, self.max_start, self.max_end) = (delay, self.wake, now);
        }
        Some(delay)
    }

    /// `sched_stat_runtime`.
    #[inline]
    pub(crate) fn charged(&mut self, now: Nanos, runtime: Nanos) {
        if self.atom == Atom::None {
            self.atom = Atom::Waiting;
            self.wake = now;
        }
        self.stat_runtime_ns = self.stat_runtime_ns.saturating_add(runtime);
    }

    /// Clears the sums, keeps the state.
    pub(crate) fn restart(&mut self) {
        *self = Latency { atom: self.atom, out: self.out, wake: self.wake, ..Latency::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakeup_to_switch_in_is_a_delay_and_preemption_is_not() {
        let mut l = Latency::default();
        l.switch_in(5); // unheard of: a delay of 0
        l.switch_out(10, TaskState::INTERRUPTIBLE);
        l.wakeup(20);
        l.wakeup(25); // already ready
        l.switch_in(32);
        l.switch_out(40, TaskState::PREEMPTED);
        l.switch_in(90);
        assert_eq!((l.count, l.total_ns, l.max_ns, l.max_start, l.max_end), (2, 12, 12, 20, 32));
        l.switch_out(95, TaskState::RUNNING); // yielded
        l.switch_in(115);
        assert_eq!((l.count, l.total_ns, l.max_start), (3, 32, 95));
    }
}
