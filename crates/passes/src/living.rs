//! What only a living thread needs: the call it is in, what it waits for, its place in queues.
//!
//! Most threads of a build or of a shell script end long before the trace does. Some time after the
//! end of a thread its [`Moment`] is freed, and its system calls are reduced to what
//! [`crate::packed`] writes. Such a thread then reads as being in no call and in no queue.

use crate::packed::{self, Packed};
use crate::slot::Slot;
use crate::syscalls::{Call, CallStats, CallTable};
use crate::unsettled::{Reason, Unsettled};
use crate::user_intervals::UserInterval;
use crate::waits::Object;
use holdup_syscalls::WaitKind;
use holdup_trace::{Cpu, Nanos, Pid};
#[cfg(not(debug_assertions))]
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};

/// Program number of a thread that is not counted.
pub(crate) const NO_PROGRAM: u32 = u32::MAX;

/// The state of a thread in addition to [`crate::state::State`]. The fields that each system call
/// touches come first and share two cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Moment {
    /// System call in progress.
    pub(crate) call: Option<Call>,
    /// Since when it executes application code; `None` before the first return from a call.
    pub(crate) user_interval: Option<UserInterval>,
    /// Finished system calls.
    pub(crate) calls: CallTable,

    /// The call that it sleeps in if no event told its beginning: number and time.
    pub(crate) untraced: Option<(u32, Nanos)>,
    /// What a task that its runtime has parked waits for.
    pub(crate) parked: Option<(WaitKind, Object)>,
    /// The semaphore that a task has asked for and is not yet parked on; 0 if none.
    pub(crate) asks: u64,
    /// For waiting threads counted in [`crate::blame::Blame`]: the integral at the start of the
    /// wait.
    pub(crate) blame_mark: Option<u128>,
    /// While ready: integral of the scheduler's part of idle time when the thread became ready.
    pub(crate) ready_mark: u128,
    /// While ready on a known queue: its place there.
    pub(crate) queue_at: u32,
    /// Its process's place in [`crate::programs::Programs`], with the process id of that place; and
    /// the place for which it is counted while it is active.
    pub(crate) program: u32,
    pub(crate) program_pid: Pid,
    pub(crate) counted_for: u32,
    /// Counted in a CPU's number of threads waiting for I/O.
    pub(crate) iowait_cpu: Option<Cpu>,
    /// The reason that the kernel gave for the sleep in progress, which is about to end.
    pub(crate) reason: Option<Reason>,
    /// The sleep that has ended, while its reason may still come.
    pub(crate) unsettled: Option<Box<Unsettled>>,
    /// The thread that woke it last; `None` after an interrupt.
    pub(crate) waker: Option<Slot>,
    /// The `ksoftirqd` that ran the softirq which woke it.
    pub(crate) softirqd: Option<Slot>,
    /// The kernel lock it is waiting for or last waited for.
    pub(crate) contended: u64,
    /// CPUs that it has run on, and those that it has come back to from another; bits by number,
    /// modulo 64.
    pub(crate) ran_on: u64,
    pub(crate) came_back: u64,
}

#[cfg(not(debug_assertions))]
const _: () = assert!(offset_of!(Moment, untraced) == 2 * 64);

impl Moment {
    const NOTHING: Moment = Moment {
        call: None,
        user_interval: None,
        calls: CallTable::EMPTY,
        untraced: None,
        parked: None,
        asks: 0,
        blame_mark: None,
        ready_mark: 0,
        queue_at: 0,
        program: NO_PROGRAM,
        program_pid: Pid::UNKNOWN,
        counted_for: NO_PROGRAM,
        iowait_cpu: None,
        reason: None,
        unsettled: None,
        waker: None,
        softirqd: None,
        contended: 0,
        ran_on: 0,
        came_back: 0,
    };

    /// The call that it sleeps in, recorded or not.
    pub(crate) fn sleeps_in(&self) -> Option<u32> {
        self.call.map(|call| call.nr).or(self.untraced.map(|(nr, _)| nr))
    }

    /// Clears the sums, keeps the state.
    fn restart(&mut self, now: Nanos) {
        self.calls = CallTable::default();
        self.user_interval = None;
        if let Some(call) = &mut self.call {
            call.restart(now);
        }
    }
}

/// The moment of a thread that has shown nothing yet, or has ended.
static NOTHING: Moment = Moment::NOTHING;

/// A [`Moment`], from its first change to some time after the thread's end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Living {
    now: Option<Box<Moment>>,
    /// The packed calls of a thread without a moment.
    calls: Box<[u8]>,
}

impl Deref for Living {
    type Target = Moment;

    #[inline(always)]
    fn deref(&self) -> &Moment {
        self.now.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Living {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Moment {
        match self.now {
            Some(ref mut moment) => moment,
            None => self.begin(),
        }
    }
}

impl Living {
    #[cold]
    #[inline(never)]
    fn begin(&mut self) -> &mut Moment {
        let moment = self.now.insert(Box::new(Moment::NOTHING));
        for (nr, calls) in packed::unpack(&std::mem::take(&mut self.calls)) {
            calls.all(|stats| *moment.calls.entry(nr) = stats);
        }
        moment
    }

    /// The thread has ended and is unlikely to change any more. Returns the moment in its initial
    /// state, to be reused for the next thread that begins.
    pub(crate) fn end(&mut self) -> Living {
        let now = self.now.take().map(|mut moment| {
            let mut calls = std::mem::take(&mut moment.calls);
            self.calls = packed::pack(calls.iter_mut());
            calls.clear();
            *moment = Moment { calls, ..Moment::NOTHING };
            moment
        });
        Living { now, calls: Box::default() }
    }

    /// The moment, if it has begun.
    #[inline(always)]
    pub(crate) fn begun(&mut self) -> Option<&mut Moment> {
        self.now.as_deref_mut()
    }

    /// Nothing is in progress.
    pub(crate) fn is_over(&self) -> bool {
        self.now.is_none()
    }

    /// Clears the sums, keeps the state.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.calls = Box::default();
        if let Some(moment) = &mut self.now {
            moment.restart(now);
        }
    }

    /// Finished system calls by number.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (u32, ThreadCalls<'_>)> {
        let counted = self.now.iter().flat_map(|moment| moment.calls.iter());
        let packed =
            packed::unpack(&self.calls).map(|(nr, calls)| (nr, ThreadCalls::Packed(calls)));
        counted.map(|(nr, stats)| (nr, ThreadCalls::Counted(stats))).chain(packed)
    }

    /// Whether it made a system call that has finished.
    pub(crate) fn made_calls(&self) -> bool {
        !self.calls.is_empty() || !self.now.as_ref().is_none_or(|m| m.calls.is_empty())
    }
}

/// The finished calls of one number by one thread.
#[derive(Clone, Copy)]
pub(crate) enum ThreadCalls<'a> {
    /// Of a living thread.
    Counted(&'a CallStats),
    /// Of one that has ended.
    Packed(Packed<'a>),
}

impl ThreadCalls<'_> {
    /// The sums, perhaps without the errors by number and the histogram.
    #[inline]
    pub(crate) fn sums<R>(self, of: impl FnOnce(&CallStats) -> R) -> R {
        match self {
            ThreadCalls::Counted(stats) => of(stats),
            ThreadCalls::Packed(calls) => calls.sums(of),
        }
    }

    /// Adds all of it to other calls.
    #[inline]
    pub(crate) fn add_to(self, to: &mut CallStats) {
        match self {
            ThreadCalls::Counted(stats) => to.merge(stats),
            ThreadCalls::Packed(calls) => calls.all(|stats| to.merge(&stats)),
        }
    }
}
