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

/// A kernel lock, code that requests locks, a type of lock, or a thread that waited for locks.
///
/// `null` means that the trace does not contain the value. Waits are counted when they begin; times
/// include only waits that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LockRow {
    /// Name of the thread; present only with `--by task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Id of the thread; `null` if the recorder did not record it; present only with `--by task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<Option<u32>>,
    /// Name of the control group of the thread: service, container or pod; `null` if the trace does
    /// not contain it; present only with `--by task`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Address of the lock; in events of lockdep, address of the `lockdep_map` in the lock. If a
    /// row is a class of locks, the address is given only if the class has one lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Option<u64>>,
    /// Name of the lock: its class (from lockdep), the variable that is the lock (from kernel
    /// symbols), or `other` for locks beyond the limit of separate rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
    /// The most likely identity of a lock without a name, inferred from the functions that request
    /// it; present only with `--by lock`. `null` without call chains, or if the functions are not
    /// in the list of known functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely: Option<Option<String>>,
    /// Type of the lock: `mutex`, `rwsem:R` …; the family (`rwsem`) if threads took the lock both
    /// for reading and for writing.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub lock_type: Option<Option<String>>,
    /// Function and offset of the code that requested the lock, or only its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Option<String>>,
    /// Number of waits, including waits that had not ended at the end of the trace.
    pub contended: Option<u64>,
    /// Total time of the waits that ended.
    pub wait_total_ns: Option<u64>,
    /// Length of the shortest wait.
    pub wait_min_ns: Option<u64>,
    /// Mean length of a wait, rounded down.
    pub wait_avg_ns: Option<u64>,
    /// Length of the longest wait.
    pub wait_max_ns: Option<u64>,
    /// Median length of a wait, within 1/16.
    pub wait_p50_ns: Option<u64>,
    /// 99th percentile of the lengths of waits, within 1/16.
    pub wait_p99_ns: Option<u64>,
    /// Part of `wait_total_ns` in which the waiting thread was on a CPU.
    pub spin_ns: Option<u64>,
    /// Part of `wait_total_ns` in which the waiting thread was ready to run, but without a CPU.
    pub runnable_ns: Option<u64>,
    /// Part of `wait_total_ns` in which the waiting thread was asleep.
    pub block_ns: Option<u64>,
    /// Number of waits in which the thread slept.
    pub slept: Option<u64>,
    /// Total time of the waits in which the thread slept.
    pub slept_wait_ns: Option<u64>,
    /// Number of waits that had not ended at the end of the trace.
    pub open: Option<u64>,
    /// Time of the unended waits until the end of the trace; not part of `wait_total_ns`.
    pub open_ns: Option<u64>,
    /// Time at which the first wait began.
    pub first_ns: Option<u64>,
    /// Time at which the last wait began.
    pub last_ns: Option<u64>,
    /// Largest number of threads that waited at the same time.
    pub max_waiters: Option<u64>,
    /// Waits per second.
    pub contended_per_s: Option<f64>,
    /// Part of all waiting time in the table, in per cent.
    pub pct_wait: Option<f64>,
    /// Number of times the lock was acquired.
    pub acquired: Option<u64>,
    /// Acquisitions per second.
    pub acquired_per_s: Option<f64>,
    /// Waits per acquisition.
    pub miss_rate: Option<f64>,
    /// Time for which the lock was held, summed over its holders.
    pub hold_total_ns: Option<u64>,
    /// Shortest time for which the lock was held.
    pub hold_min_ns: Option<u64>,
    /// Mean time for which the lock was held, rounded down.
    pub hold_avg_ns: Option<u64>,
    /// Longest time for which the lock was held.
    pub hold_max_ns: Option<u64>,
    /// Hold time divided by wall time; above 1 if several threads held the lock at the same time.
    pub utilization: Option<f64>,
    /// Waits as per cent of acquisitions (AIX `%Block`).
    pub block_pct: Option<f64>,
    /// Waits in which the thread slept, as per cent of acquisitions (AIX `%Sleep`).
    pub sleep_pct: Option<f64>,
    /// Acquisitions by trylock.
    pub trylocks: Option<u64>,
    /// Acquisitions for reading.
    pub reads: Option<u64>,
    /// Largest number of times that one thread held the lock at the same time.
    pub recursion: Option<u64>,
    /// Number of times the holder lost its CPU while it held the lock.
    pub preempted_holds: Option<u64>,
    /// Time for which the holder was without a CPU while it held the lock.
    pub preempted_hold_ns: Option<u64>,
    /// Number of times the holder slept while it held the lock.
    pub slept_holds: Option<u64>,
    /// Time for which the holder slept while it held the lock.
    pub slept_hold_ns: Option<u64>,
    /// The thread that held the lock for most of the waiting time (`lock:contended_release`, Linux
    /// 7.2). 0 is an idle task, or an interrupt that interrupted an idle task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Option<u32>>,
    /// Name of the thread `holder`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_comm: Option<Option<String>>,
    /// Time for which the thread `holder` held the lock while other threads waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_ns: Option<Option<u64>>,
    /// Part of all waiting time for the lock in which the thread `holder` held it, in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pct_holder: Option<Option<f64>>,
    /// Number of threads that released the lock while other threads waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<u64>,
    /// What the holders did while other threads waited for the lock, longest first. The times add
    /// up to the time for which the lock was held while threads waited for it, as far as the trace
    /// shows the holders. Present only with `--by lock` or `--by class`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders_did: Option<Vec<HolderTime>>,
    /// Number of waits for a lock that was last held on another CPU (lock_stat).
    pub con_bounces: Option<u64>,
    /// Number of acquisitions of a lock that was last held on another CPU (lock_stat).
    pub acq_bounces: Option<u64>,
    /// The function of the program that requests the lock for the longest total time, with its
    /// source line or file. `null` without call chains.
    pub code: Option<String>,
}
