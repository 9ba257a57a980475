//! Single facts, as the passes conclude them: a run ended, a call returned, a wait was over.
//!
//! The tables are sums. The meaning of a summand is often known only later: to which process a
//! thread belonged, that two descriptors are one pipe, what a futex is used for. Who only adds
//! facts up by thread and object observes them in the reading that analyses the trace
//! ([`crate::Observer`]), and asks the [`crate::Analysis`] afterwards. Who writes each of them out
//! reads the trace a second time ([`crate::each_fact`]). Both readings give the same numbers to
//! threads and objects, so facts add up to the tables exactly.
//!
//! Facts are collected for a batch of events at a time; memory does not grow with them. Without
//! facts a system call costs nothing more: the engine's hot path is compiled with and without them.

use crate::cause::Cause;
use crate::irqs::Handler;
use crate::judge::Ended;
use crate::locks::{LockKind, LockSource};
use crate::slot::Slot;
use crate::threads::Thread;
use crate::waits::Object;
use holdup_trace::{Cpu, Nanos, TaskState};

/// One fact. Times are those of the trace's clock.
#[derive(Clone, Copy, Debug)]
pub enum Fact {
    /// A CPU went from one thread to another.
    Switch(Switch),
    /// A thread was on a CPU.
    Run(Run),
    /// A system call returned.
    Call(Return),
    /// A thread slept.
    Wait(Slept),
    /// A thread waited for a lock of the kernel, spinning or asleep.
    LockWait(LockWait),
    /// A thread was woken.
    Wakeup(Wakeup),
    /// An interrupt, softirq or work item was over.
    Irq(Handled),
}

/// A context switch.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// When.
    pub at: Nanos,
    /// Where.
    pub cpu: Cpu,
    /// The previous thread, if the event says so.
    pub prev: Option<Slot>,
    /// The state of the previous thread.
    pub state: TaskState,
    /// The next thread, if the event says so.
    pub next: Option<Slot>,
    /// Time since the previous switch on this CPU; `None` for the first.
    pub stay: Option<Nanos>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// The thread went to sleep.
    Slept,
    /// Another thread took the CPU.
    Preempted,
    /// The thread ended.
    Exited,
    /// Not known: events are missing.
    Unseen,
    /// The trace ended first.
    Trace,
}

/// A stay of a thread on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// When it got the CPU.
    pub start: Nanos,
    /// When it lost it.
    pub end: Nanos,
    /// The CPU.
    pub cpu: Cpu,
    /// The thread.
    pub slot: Slot,
    /// Time in application code.
    pub user: Nanos,
    /// Time in the kernel on behalf of the thread.
    pub kernel: Nanos,
    /// Time in either: [`Thread::was_application`] of the first reading tells which.
    pub undecided: Nanos,
    /// Time of interrupts and softirqs on top of it.
    pub interrupted: Nanos,
    /// Time ready before the run; `None` if it was not seen to become ready.
    pub delay: Option<Nanos>,
    /// How it ended.
    pub how: RunEnd,
}

/// A system call that returned.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    /// When it was entered; for calls of which only the return was seen, when they returned.
    pub start: Nanos,
    /// When it returned.
    pub end: Nanos,
    /// The calling thread.
    pub slot: Slot,
    /// The CPU on which it returned.
    pub cpu: Cpu,
    /// The call's number.
    pub nr: u32,
    /// What it returned.
    pub ret: i64,
    /// What its time was spent on; `None` for calls of which only the return was seen.
    pub split: Option<Split>,
}

/// What a span of a thread's time was spent on: the parts add up to it.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// On a CPU.
    pub running: Nanos,
    /// On a CPU, but interrupted.
    pub interrupted: Nanos,
    /// Ready to run.
    pub runnable: Nanos,
    /// Asleep.
    pub blocked: Nanos,
}

/// A sleep for something.
#[derive(Clone, Copy, Debug)]
pub struct Slept {
    /// When it began.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// The sleeping thread.
    pub slot: Slot,
    /// What it slept for, by the number at that time: see [`crate::Analysis::final_object`].
    pub object: Object,
    /// What this sleep alone was for, without following the waker's past.
    pub cause: Cause,
    /// The system call slept in.
    pub nr: Option<u32>,
    /// The thread that ended it.
    pub waker: Option<Slot>,
    /// How it ended.
    pub ended: Ended,
}

/// What waits for a lock of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWaiter {
    /// A thread.
    Thread(Slot),
    /// The idle task, that is interrupts on top of it.
    Idle,
    /// The recorder could not tell, or there were too many to keep them apart.
    Unknown,
}

/// A wait for a lock of the kernel that ended.
#[derive(Clone, Copy, Debug)]
pub struct LockWait {
    /// When it began.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// What waited.
    pub waiter: LockWaiter,
    /// Address of the lock, or with lockdep of the `lockdep_map` in it.
    pub lock: u64,
    /// Its kind; `None` from lockdep.
    pub kind: Option<LockKind>,
    /// Return address in the code that asked for it; 0 if not recorded.
    pub caller: u64,
    /// What the time was spent on.
    pub split: Split,
    /// Which events show the wait.
    pub source: LockSource,
}

/// Which event shows a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeEvent {
    /// `sched_waking`: the sleep is over.
    Waking,
    /// `sched_wakeup`: the thread is on a run queue.
    Wakeup,
    /// `sched_wakeup_new`: a new thread is on a run queue.
    New,
}

/// An event that shows that a thread is woken.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    /// When.
    pub at: Nanos,
    /// Which event.
    pub event: WakeEvent,
    /// The CPU on which the event happened.
    pub cpu: Cpu,
    /// The woken thread.
    pub slot: Slot,
    /// The waking thread; `None` for an interrupt.
    pub waker: Option<Slot>,
    /// The CPU it goes to.
    pub target: Cpu,
}

/// An execution of a handler.
#[derive(Clone, Copy, Debug)]
pub struct Handled {
    /// When it began.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// The CPU.
    pub cpu: Cpu,
    /// Which handler: see [`crate::Analysis::handler`].
    pub handler: Handler,
}

/// A thread's sums when its current run began.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    on: bool,
    start: Nanos,
    cpu: Cpu,
    user: Nanos,
    kernel: Nanos,
    undecided: Nanos,
    irq: Nanos,
    delay: Option<Nanos>,
}

/// The facts collected since they were last taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) rows: Vec<Fact>,
    marks: Vec<Mark>,
}

fn undecided(t: &Thread) -> Nanos {
    t.undecided.iter().map(|u| u.span).sum()
}

impl Facts {
    fn mark(&mut self, slot: Slot) -> &mut Mark {
        let i = slot.0 as usize;
        if i >= self.marks.len() {
            self.marks.resize((i + 1).next_power_of_two(), Mark::default());
        }
        &mut self.marks[i]
    }

    /// A thread that was ready for `delay` has been on `cpu` since `start`.
    pub(crate) fn run_begins(
        &mut self,
        start: Nanos,
        slot: Slot,
        t: &Thread,
        cpu: Cpu,
        delay: Option<Nanos>,
    ) {
        let mark = self.mark(slot);
        if mark.on && mark.cpu == cpu {
            return;
        }
        *mark = Mark {
            on: true,
            start,
            cpu,
            user: t.user_ns,
            kernel: t.kernel_ns,
            undecided: undecided(t),
            irq: t.irq_ns,
            delay,
        };
    }

    /// The thread was on its CPU up to `end`.
    pub(crate) fn run_ends(&mut self, end: Nanos, slot: Slot, t: &Thread, how: RunEnd) {
        let mark = self.mark(slot);
        if !std::mem::take(&mut mark.on) {
            return;
        }
        let m = *mark;
        let run = Run {
            start: m.start,
            end: end.max(m.start),
            cpu: m.cpu,
            slot,
            user: t.user_ns.saturating_sub(m.user),
            kernel: t.kernel_ns.saturating_sub(m.kernel),
            undecided: undecided(t).saturating_sub(m.undecided),
            interrupted: t.irq_ns.saturating_sub(m.irq),
            delay: m.delay,
            how,
        };
        // A thread that was only presumed to be there was not.
        if run.end > run.start {
            self.rows.push(Fact::Run(run));
        }
    }

    /// All undecided time of `t` is decided as the application's or the kernel's; undecided time
    /// before the current run is not part of the run.
    pub(crate) fn decided(&mut self, slot: Slot, user: bool) {
        let mark = self.mark(slot);
        let before = std::mem::take(&mut mark.undecided);
        if user {
            mark.user += before;
        } else {
            mark.kernel += before;
        }
    }

    /// The part to be analysed begins at `now`, and with it all sums.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.rows.clear();
        for mark in &mut self.marks {
            *mark = Mark { on: mark.on, start: now, cpu: mark.cpu, ..Mark::default() };
        }
    }
}
