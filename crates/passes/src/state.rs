//! What a thread is doing.

use holdup_trace::Cpu;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Seen by name only; nothing proves yet what it does.
    Unseen,
    /// Forked, not yet woken for the first time.
    New,
    /// On this CPU.
    Running(Cpu),
    /// `sched_waking` was seen, `sched_wakeup` not yet: the kernel chooses a CPU and puts the
    /// thread on its queue. That is wake-up latency, part of the wait.
    Waking,
    /// Ready since a wake-up, on this CPU's queue if it is known.
    Woken(Cpu),
    /// Ready since it lost its CPU, on this CPU's queue if it is known.
    Preempted(Cpu),
    /// Asleep.
    Blocked,
    /// Out of sight: an event proves that the thread is not in the state it was believed to be in,
    /// but not which state it is in ([`crate::Invariant`]).
    Lost,
    /// Ended.
    Dead,
}

impl State {
    /// On a run queue and not running. This is the one definition of run-queue delay: from
    /// `sched_wakeup` (from `sched_waking` only where the recording has no `sched_wakeup` at all)
    /// or the loss of a CPU, to the switch-in.
    pub(crate) fn is_ready(self) -> bool {
        matches!(self, State::Woken(_) | State::Preempted(_))
    }

    /// Running or ready.
    pub(crate) fn is_active(self) -> bool {
        self.is_ready() || matches!(self, State::Running(_))
    }
}

/// What a running thread executes, as far as the trace tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// An application thread before its first system call event.
    Unknown,
    /// Application code.
    User,
    /// A system call.
    Kernel,
    /// Kernel thread.
    Kthread,
}
