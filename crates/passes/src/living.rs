//! What only a thread that lives needs: the call it is in, what it waits for, its place in queues.
//!
//! Most threads of a build or of a shell script have ended long before the trace has. Some time
//! after a thread has, its [`Moment`] is given back, and of its system calls no more is kept than
//! [`crate::packed`] writes. Whoever looks at such a thread finds it in no call and no queue.

use crate::packed;
use crate::slot::Slot;
use crate::syscalls::{Call, CallStats, CallTable};
use crate::untold::{Reason, Untold};
use crate::waits::Object;
use holdup_syscalls::WaitKind;
use holdup_trace::{Cpu, Nanos, Pid};
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

/// Of a thread that is not counted.
pub(crate) const NO_PROGRAM: u32 = u32::MAX;

/// The state of a thread beside [`crate::state::State`]. What each system call touches is first.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Moment {
    /// System call in progress.
    pub(crate) call: Option<Call>,
    /// The call that it sleeps in, where no event told that it began: number and time.
    pub(crate) untraced: Option<(u32, Nanos)>,
    /// Of a task that its runtime has parked: what it waits for.
    pub(crate) parked: Option<(WaitKind, Object)>,
    /// Of a task: the semaphore that it asked for and has not yet been parked at; 0 if none.
    pub(crate) asks: u64,
    /// `user_ns` at the last return from a call, and the quarter of the CPUs that were busy then,
    /// with [`crate::user_intervals::FAULTED`] if a page fault came since.
    pub(crate) user_interval: Option<(Nanos, u8)>,
    /// Finished system calls.
    pub(crate) calls: CallTable,

    /// Waiting threads counted in [`crate::blame::Blame`]: integral at the start of the wait.
    pub(crate) blame_mark: Option<u128>,
    /// While ready: integral of the scheduler's part of idle time when it began to be.
    pub(crate) ready_mark: u128,
    /// While ready on a known queue: its place there.
    pub(crate) queue_at: u32,
    /// Its place among [`crate::programs::Programs`], of the process id beside it; and the one it
    /// is counted for while it is active.
    pub(crate) program: u32,
    pub(crate) program_pid: Pid,
    pub(crate) counted_for: u32,
    /// Counted in a CPU's number of threads waiting for I/O.
    pub(crate) iowait_cpu: Option<Cpu>,
    /// What the kernel said about the sleep in progress, which is about to end.
    pub(crate) reason: Option<Reason>,
    /// The sleep that has ended, while what it was for is still to be told.
    pub(crate) untold: Option<Box<Untold>>,
    /// Who woke it last: the thread, if one did, not an interrupt.
    pub(crate) waker: Option<Slot>,
    /// The `ksoftirqd` whose softirq did.
    pub(crate) softirqd: Option<Slot>,
    /// The kernel lock it is or was last waiting for.
    pub(crate) contended: u64,
}

impl Moment {
    const NOTHING: Moment = Moment {
        call: None,
        untraced: None,
        parked: None,
        asks: 0,
        user_interval: None,
        calls: CallTable::EMPTY,
        blame_mark: None,
        ready_mark: 0,
        queue_at: 0,
        program: NO_PROGRAM,
        program_pid: Pid::UNKNOWN,
        counted_for: NO_PROGRAM,
        iowait_cpu: None,
        reason: None,
        untold: None,
        waker: None,
        softirqd: None,
        contended: 0,
    };

    /// The call that it sleeps in, recorded or not.
    pub(crate) fn sleeps_in(&self) -> Option<u32> {
        self.call.map(|call| call.nr).or(self.untraced.map(|(nr, _)| nr))
    }

    /// Forget the sums, keep the state.
    fn restart(&mut self, now: Nanos) {
        self.calls = CallTable::default();
        self.user_interval = None;
        if let Some(call) = &mut self.call {
            call.restart(now);
        }
    }
}

/// Of a thread that has shown nothing yet, or ended.
static NOTHING: Moment = Moment::NOTHING;

/// A [`Moment`], from the first change of it to some time after the thread's end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Living {
    now: Option<Box<Moment>>,
    /// Without a moment: the calls it made while it had one.
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
        for (nr, stats) in packed::unpack(&std::mem::take(&mut self.calls)) {
            *moment.calls.entry(nr) = stats;
        }
        moment
    }

    /// Nothing is likely to change any more. What is no longer needed is given back, as it was at
    /// first, for the next thread that begins.
    pub(crate) fn end(&mut self) -> Living {
        let now = self.now.take().map(|mut moment| {
            let mut calls = std::mem::take(&mut moment.calls);
            self.calls = packed::pack(calls.iter().map(|(nr, stats)| (nr, Cow::Borrowed(stats))));
            calls.clear();
            *moment = Moment { calls, ..Moment::NOTHING };
            moment
        });
        Living { now, calls: Box::default() }
    }

    /// Nothing is in progress.
    pub(crate) fn is_over(&self) -> bool {
        self.now.is_none()
    }

    /// Forget the sums, keep the state.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.calls = Box::default();
        if let Some(moment) = &mut self.now {
            moment.restart(now);
        }
    }

    /// Finished system calls by number.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (u32, Cow<'_, CallStats>)> {
        let packed = packed::unpack(&self.calls).map(|(nr, stats)| (nr, Cow::Owned(stats)));
        let counted = self.now.iter().flat_map(|moment| moment.calls.iter());
        counted.map(|(nr, stats)| (nr, Cow::Borrowed(stats))).chain(packed)
    }

    /// It made a system call that has finished.
    pub(crate) fn made_calls(&self) -> bool {
        !self.calls.is_empty() || !self.now.as_ref().is_none_or(|m| m.calls.is_empty())
    }
}
