//! What has to be judged during the pass, and the facts for the judgement.
//!
//! Two questions come up for each sleep: whether idle CPUs could have shortened what the thread
//! waits for (then the wait takes its share of the idle time), and, when the sleep ends, what it
//! was for. The passes only measure; the caller of [`crate::analyze`] answers.

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
    /// Not I/O; nothing else is known.
    Other,
    /// The kernel gives reasons of other sleeps, but not of this one.
    Unsaid,
}

/// Where a thread sleeps that is in no recorded system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// In no call at all, because all are recorded: it took a page fault, or is new.
    NoCall,
    /// In an untraced call ([`Calls`]) or in none. Not in a call by which threads contend: these
    /// are recorded.
    UntracedCall,
    /// Not known: it may be in any call.
    Unknown,
}

/// Whether an uninterruptible sleep looks like one for a device: the one definition for the CPUs'
/// iowait time, for the ledger, and for every format.
///
/// That a sleep is uninterruptible does not prove a disk: a thread also sleeps this way for an RCU
/// grace period, for a driver's reply, or in msleep(). The kernel's reason decides. Without one the
/// call decides, if it is one that reaches disks; a thread in no call took a page fault. If calls
/// are not recorded, the purpose is unknown.
pub fn is_for_device(
    kind: Option<WaitKind>,
    outside: Outside,
    blocked_for: Option<BlockedFor>,
) -> bool {
    match blocked_for {
        Some(BlockedFor::Io) => true,
        Some(BlockedFor::Lock | BlockedFor::Other) => false,
        // The kernel gives other reasons. A call that waits only for disks says enough.
        Some(BlockedFor::Unsaid) => kind == Some(WaitKind::DiskSync),
        None => kind.map_or(outside == Outside::NoCall, WaitKind::reaches_disk),
    }
}

impl Sleep {
    /// Whether only a device explains the sleep: [`is_for_device`].
    pub fn is_for_device(&self) -> bool {
        self.uninterruptible
            && !self.contending
            && is_for_device(self.kind, self.outside, self.blocked_for)
    }
}

impl Outside {
    /// The meaning for these recorded calls. The call in which threads of a program contend stands
    /// for all similar calls: the presets record them together.
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
    /// What the system call it sleeps in stands for; `None` outside recorded calls.
    pub kind: Option<WaitKind>,
    /// In D state (uninterruptible).
    pub uninterruptible: bool,
    /// Between `contention_begin` and `contention_end` of a kernel lock.
    pub contending: bool,
    /// Threads wait on this futex for the end of a thread (`pthread_join`).
    pub join: bool,
    /// What it means if the thread sleeps in no recorded call.
    pub outside: Outside,
    /// The thread's last sleep was for the same object and was judged idle.
    pub idle_before: bool,
    /// The last sleep for the same object was ended on purpose by another thread.
    pub peer_before: bool,
    /// The kernel's reason; `None` if it gives none, and until the sleep ends.
    pub blocked_for: Option<BlockedFor>,
    /// A nap between two tries at a lock: the thread's last try failed, and after its last nap of
    /// this kind it tried again.
    pub retries: bool,
}

/// How a sleep ended, as far as known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// By a wake-up.
    Woken,
    /// The thread ran again, but no wake-up was recorded.
    Unseen,
    /// It did not end before the trace.
    Trace,
}

/// The thread that ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// A thread of the kernel itself.
    pub kthread: bool,
    /// Of the sleeper's process; or, if processes are not known, of its name without numbers.
    /// Determined only if sleeps are [`Outside::Unknown`], else `false`.
    pub same_program: bool,
    /// Of the sleeper's process or of its name without numbers, and in a call that sends a signal
    /// or writes to a pipe, eventfd or local socket; and the sleeper has ended such a sleep of a
    /// sibling in the same way. Determined only for sleeps of [`WaitKind::is_event`], else `None`.
    pub hands_over: Option<HandOver>,
}

/// By what a thread hands something over to a sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// It carries no work, so siblings that wake each other by signals pass on a lock, as the
    /// database PostgreSQL does with the locks of rows and tables.
    Signal,
    /// They may be work for which the thread has waited itself.
    Bytes,
}

/// For how much of its lifetime a thread has work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Hardly ever ([`crate::limits::NAMED`]).
    pub is_rare: bool,
}

impl Activity {
    /// Within a few scheduler ticks it is chance whether a thread has run.
    const SHORTEST: Nanos = 10_000_000;

    /// `active_ns` is the time running or ready since birth or since the recording began; `age_ns`
    /// is all time since then, including the sleep that ends.
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
    /// The waker; `None` if an interrupt, a time-out or a signal ended the sleep, or if unknown.
    pub waker: Option<Waker>,
    /// Wake-ups name their wakers and no event was lost so far: no waker means that none existed.
    pub wakers_complete: bool,
    /// For some CPUs no event of the idle task is recorded, including wake-ups by interrupts while
    /// it runs, and nothing else is missing: a wake-up that was not recorded was one of these.
    /// Determined only for [`Ended::Unseen`], else `false`.
    pub idle_tasks_unseen: bool,
    /// A wait for the same object ended before.
    pub ended_before: bool,
    /// Threads contend for the object: threads that wait for it also end others' waits for it.
    pub is_contended: bool,
    /// One thread at a time holds the object, and releases it itself.
    pub lock: bool,
    /// For how much of its lifetime the sleeper has work; `None` while that is chance.
    pub activity: Option<Activity>,
    /// The object is a futex in shared memory, and threads of several processes use it.
    pub between_processes: bool,
    /// The trace has contention events of kernel locks.
    pub contention_recorded: bool,
}

/// The judgement as functions. Called once or twice per sleep, never per event.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    /// Whether a program of this name writes the recording: its sleeps do not count as waits.
    pub is_recorder: fn(&str) -> bool,
    /// Whether the sleep counts as waiting, and so gets a share of the idle time.
    pub counts: fn(&Sleep) -> bool,
    /// What the sleep was for.
    pub cause: fn(&WaitEnd) -> Cause,
}
