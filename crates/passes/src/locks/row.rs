//! A row of the tables of locks, and what it may be a row of.

use crate::tables::HolderTime;
use serde::Serialize;

/// What locks are grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockBy {
    /// One lock: an address.
    Lock,
    /// Locks of one class (lockdep) or variable, by name; those without a name one by one.
    Class,
    /// The code that asked for the lock.
    Caller,
    /// The kind of lock.
    Type,
    /// The thread that waited.
    Task,
}

/// A kernel lock, caller, kind of lock or thread.
///
/// `null` means that the trace does not contain the value. Waits are counted when they begin; times
/// include only waits that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LockRow {
    /// Name of the thread; only by task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Thread; `null` if the recorder did not record it; only by task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<Option<u32>>,
    /// Name of the control group of the thread: service, container, pod; `null` if the trace does
    /// not contain it; only by task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Address of the lock, or, with lockdep, of the `lockdep_map` in the lock. By class only if
    /// the class has one lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Option<u64>>,
    /// Class (lockdep), variable (symbols), or `other` for locks beyond the limit of separate rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
    /// The most likely identity of a lock without a name, inferred from the functions that request
    /// it; by lock only. `null` without call chains, or if the functions are in no list of known
    /// functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely: Option<Option<String>>,
    /// `mutex`, `rwsem:R` …; the family (`rwsem`) if taken in both ways.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub lock_type: Option<Option<String>>,
    /// Function and offset in the code that requested the lock, or only the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Option<String>>,
    /// Waits, including waits that had not ended at the end of the trace.
    pub contended: Option<u64>,
    /// Their time.
    pub wait_total_ns: Option<u64>,
    /// Shortest.
    pub wait_min_ns: Option<u64>,
    /// Mean, rounded down.
    pub wait_avg_ns: Option<u64>,
    /// Longest.
    pub wait_max_ns: Option<u64>,
    /// Median, within 1/16.
    pub wait_p50_ns: Option<u64>,
    /// 99th percentile, within 1/16.
    pub wait_p99_ns: Option<u64>,
    /// Of `wait_total_ns`: on a CPU.
    pub spin_ns: Option<u64>,
    /// Of `wait_total_ns`: ready to run, but without a CPU.
    pub runnable_ns: Option<u64>,
    /// Of `wait_total_ns`: asleep.
    pub block_ns: Option<u64>,
    /// Waits with sleep in them.
    pub slept: Option<u64>,
    /// Time of those waits.
    pub slept_wait_ns: Option<u64>,
    /// Waits that had not ended with the trace.
    pub open: Option<u64>,
    /// Time of these waits until the end of the trace; not part of `wait_total_ns`.
    pub open_ns: Option<u64>,
    /// When the first wait began.
    pub first_ns: Option<u64>,
    /// When the last wait began.
    pub last_ns: Option<u64>,
    /// Largest number of threads that waited at the same time.
    pub max_waiters: Option<u64>,
    /// Waits per second.
    pub contended_per_s: Option<f64>,
    /// Share of all waiting time in the table.
    pub pct_wait: Option<f64>,
    /// Times the lock was taken.
    pub acquired: Option<u64>,
    /// The same per second.
    pub acquired_per_s: Option<f64>,
    /// Waits per acquisition.
    pub miss_rate: Option<f64>,
    /// Time it was held, summed over holders.
    pub hold_total_ns: Option<u64>,
    /// Shortest.
    pub hold_min_ns: Option<u64>,
    /// Mean, rounded down.
    pub hold_avg_ns: Option<u64>,
    /// Longest.
    pub hold_max_ns: Option<u64>,
    /// Hold time divided by wall time; above 1 with several holders.
    pub utilization: Option<f64>,
    /// Waits as per cent of acquisitions (AIX `%Block`).
    pub block_pct: Option<f64>,
    /// Waits with sleep as per cent of acquisitions (AIX `%Sleep`).
    pub sleep_pct: Option<f64>,
    /// Acquisitions by trylock.
    pub trylocks: Option<u64>,
    /// Acquisitions for reading.
    pub reads: Option<u64>,
    /// Largest number of times that one thread held it at the same time.
    pub recursion: Option<u64>,
    /// Times the holder lost its CPU.
    pub preempted_holds: Option<u64>,
    /// How long the holder was without a CPU then.
    pub preempted_hold_ns: Option<u64>,
    /// Times the holder slept.
    pub slept_holds: Option<u64>,
    /// How long the holder slept.
    pub slept_hold_ns: Option<u64>,
    /// The thread that held the lock for most of the waiting time (`lock:contended_release`, Linux
    /// 7.2). 0 is an idle task, or an interrupt that interrupted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Option<u32>>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_comm: Option<Option<String>>,
    /// Time that it held the lock while other threads waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_ns: Option<Option<u64>>,
    /// Part of all waiting time for the lock that was caused by that thread, in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pct_holder: Option<Option<f64>>,
    /// Number of threads that released the lock while other threads waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<u64>,
    /// What the holders did while other threads waited, longest first: the times add up to the time
    /// that the lock was held while threads waited for it, as far as the trace shows the holders.
    /// By lock and class only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders_did: Option<Vec<HolderTime>>,
    /// Waits for a lock that was last held on another CPU (lock_stat).
    pub con_bounces: Option<u64>,
    /// Acquisitions of a lock that was last held on another CPU (lock_stat).
    pub acq_bounces: Option<u64>,
    /// The function of the program that requests the lock for the longest total time, with its
    /// source line or file. `null` without call chains.
    pub code: Option<String>,
}
