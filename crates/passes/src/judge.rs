//! What has to be judged while the pass runs, and the facts to judge it by.
//!
//! Two questions come up once per sleep: whether the thread waits for something that idle CPUs
//! could have done sooner (it then takes its share of the idle time), and, when the sleep ends,
//! what it was for. The passes only measure; the caller of [`crate::analyze`] brings the answers.

use crate::cause::Cause;
use holdup_syscalls::WaitKind;
use holdup_trace::{Calls, Nanos};

/// What the kernel says that an uninterruptible sleep was for (`sched_blocked_reason`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockedFor {
    /// I/O: the thread had marked itself as waiting for it (`in_iowait`).
    Io,
    /// Not I/O, and the function it slept in takes locks.
    Lock,
    /// Not I/O, and nothing more.
    Other,
    /// It says so of other sleeps, and nothing of this one.
    Unsaid,
}

/// Where a thread sleeps that is in no recorded system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// In no call at all, as all are recorded: it took a page fault, or is new.
    NoCall,
    /// In an untraced call ([`Calls`]) or in none. In none of those by which threads contend:
    /// these are recorded.
    UntracedCall,
    /// Nobody knows: it may be in any call.
    Unknown,
}

/// Whether an uninterruptible sleep looks like one for a device: one definition for the CPUs' time
/// waiting for I/O, for the ledger, and for every format.
///
/// That no signal ends a sleep says nothing of disks: so sleeps who waits for a grace period of
/// RCU, for a driver's reply, or for msleep() to return. What the kernel says of it decides; where
/// it says nothing, the call does, if it is one that reaches disks; and who is in no call at all
/// took a page fault. Where calls are not recorded, nobody knows.
pub fn is_for_device(
    kind: Option<WaitKind>,
    outside: Outside,
    blocked_for: Option<BlockedFor>,
) -> bool {
    match blocked_for {
        Some(BlockedFor::Io) => true,
        Some(BlockedFor::Lock | BlockedFor::Other) => false,
        // It tells of others. A call that waits for disks alone says enough.
        Some(BlockedFor::Unsaid) => kind == Some(WaitKind::DiskSync),
        None => kind.map_or(outside == Outside::NoCall, WaitKind::reaches_disk),
    }
}

impl Sleep {
    /// Nothing but a device explains it: [`is_for_device`].
    pub fn is_for_device(&self) -> bool {
        self.uninterruptible
            && !self.contending
            && is_for_device(self.kind, self.outside, self.blocked_for)
    }
}

impl Outside {
    /// What these calls tell of it. The one in which threads of a program contend stands for
    /// all others like it: the presets record them together.
    pub(crate) fn of(calls: &Calls) -> Outside {
        match calls {
            Calls::All => Outside::NoCall,
            Calls::Chosen(_) if calls.have("futex") => Outside::UntracedCall,
            Calls::Chosen(_) | Calls::None => Outside::Unknown,
        }
    }
}

/// A thread goes to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// What the system call it sleeps in stands for; `None` outside of those that are recorded.
    pub kind: Option<WaitKind>,
    /// In D state: no signal ends it.
    pub uninterruptible: bool,
    /// Between `contention_begin` and `contention_end` of a kernel lock.
    pub contending: bool,
    /// Threads wait for the end of a thread at this futex (`pthread_join`).
    pub join: bool,
    /// What it means that it sleeps in no recorded call, if it does.
    pub outside: Outside,
    /// The thread's last sleep was for the same object, and idle.
    pub idle_before: bool,
    /// The last sleep for the same object was ended by another thread, on purpose.
    pub peer_before: bool,
    /// What the kernel says it was for; `None` where it does not, and until the sleep ends.
    pub blocked_for: Option<BlockedFor>,
    /// A nap between two tries at a lock: the thread's last try did not get it, and after the last
    /// nap of the kind it tried again.
    pub retries: bool,
}

/// How a sleep is known to have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// By a wake-up.
    Woken,
    /// The thread ran again; its wake-up was not seen.
    Unseen,
    /// Not at all: the trace did.
    Trace,
}

/// The thread that ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// A thread of the kernel itself.
    pub kthread: bool,
    /// Of the sleeper's process; or of its name without numbers, where processes are not known.
    /// Looked up only where sleeps are [`Outside::Unknown`], else `false`.
    pub same_program: bool,
    /// Of the sleeper's process or of its name without numbers, and in a call that sends a signal
    /// or writes to a pipe, eventfd or local socket; and the sleeper has ended such a sleep of a
    /// sibling in the same way. Looked up only for sleeps of [`WaitKind::is_event`], else `false`.
    pub sibling_hands_over: bool,
}

/// How much of its time a thread has work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// For hardly any of it ([`crate::limits::NAMED`]).
    pub is_rare: bool,
}

impl Activity {
    /// Over less time than some ticks of the scheduler it is chance whether a thread has run.
    const SHORTEST: Nanos = 10_000_000;

    /// Of the time it has run or been ready since it was born, or the recording began, and all time
    /// since then, the sleep that ends included.
    pub(crate) fn of(active_ns: Nanos, age_ns: Nanos, rare_pct: f64) -> Option<Activity> {
        let is_rare = (active_ns as f64) * 100.0 < age_ns as f64 * rare_pct;
        (age_ns >= Activity::SHORTEST).then_some(Activity { is_rare })
    }
}

/// A sleep has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitEnd {
    /// The sleep.
    pub sleep: Sleep,
    /// How it ended.
    pub ended: Ended,
    /// By whom; `None` if an interrupt, a time-out or a signal did, or it is not known.
    pub waker: Option<Waker>,
    /// Wake-ups name their wakers and no event was lost so far: no waker means that there was none.
    pub wakers_complete: bool,
    /// Of some CPUs no event of the idle task is recorded, so neither are the wake-ups by
    /// interrupts that come while it runs, and nothing else is missing: a wake-up that was not seen
    /// was one of those.
    /// Looked up only for [`Ended::Unseen`], else `false`.
    pub idle_tasks_unseen: bool,
    /// A wait for the same object ended before.
    pub ended_before: bool,
    /// Threads contend for the object: those who wait for it also end others' waits for it.
    pub in_turns: bool,
    /// One thread at a time has the object, and releases it itself.
    pub lock: bool,
    /// How much of its time the sleeper has work; `None` as long as that is chance.
    pub activity: Option<Activity>,
    /// The object is a futex in shared memory, and threads of several processes use it.
    pub between_processes: bool,
    /// The trace has the contention of kernel locks.
    pub contention_recorded: bool,
}

/// Who judges. Called once or twice per sleep, never per event.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    /// Whether a program of this name writes the recording: what it sleeps for is no wait.
    pub is_recorder: fn(&str) -> bool,
    /// Whether the sleep counts as waiting: it takes part in sharing out the idle time.
    pub counts: fn(&Sleep) -> bool,
    /// What it was for.
    pub cause: fn(&WaitEnd) -> Cause,
}
