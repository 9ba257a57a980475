//! Threads contend for an object of the threads library.
//!
//! # What it does
//! It adds up leaves of the ledger. `idle/thread-sync` is idle CPU time while threads slept in
//! futex calls (mutex, condition variable, rwlock) and waited for threads of their own process.
//! Futexes shared by several processes belong to application-serialization.
//! `busy/kernel/thread-sync` is the CPU time of futex calls that slept or ended another thread's
//! sleep, and of futex calls by which threads contend for a mutex without sleeping: a wait that
//! returns at once because the mutex became free, and a wake-up that finds nobody asleep. Other
//! futex calls that wake nobody and never sleep do not count.
//!
//! `busy/spin` is the CPU time of threads that wait without sleeping: several threads of the
//! process, which work at other times, call `sched_yield` repeatedly with hardly any code of their
//! own (`yields.short_us`) and no other call in between.
//!
//! # What it cannot tell
//! Spinning without any call looks like work. For yields, the trace does not show which lock they
//! are for. Runtimes that schedule tasks on their own, such as Go's, do not show their locks to the
//! kernel: a trace shows threads without work, and a busy thread that wakes them.
//!
//! # Why it holds a system up
//! One lock guards data that all threads use. A thread that waits for it spins for a while and then
//! sleeps, so CPU use is low and the switch rate is high. Spinning in user mode leaves no event, so
//! less is visible than for application-serialization.
//!
//! # What to do
//! Use more locks, each for less data; do not hold a lock during work that can be done before or
//! after; use fewer threads where the work is not parallel. Where the lock lets one thread run code
//! at a time, as that of an interpreter does, use processes. Make a pool of connections larger.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Thread Serialization and case 1.

use super::application_serialization::{ContentionLeaves, contention};
use super::{Fixtures, Rule};
use crate::facts::Facts;
use crate::report::{Class, Finding};
use holdup_attribution::Leaf;
use holdup_attribution::limits::MATTERS;
use holdup_passes::Cause;

pub(super) const RULE: Rule = Rule {
    id: "thread-serialization",
    class: Class::ThreadSerialization,
    check,
    file: include_str!("thread_serialization.rs"),
    needs: &["switches", "syscalls or wakers"],
    thresholds: &[MATTERS],
    fixtures: Fixtures {
        positive: "thr_mutex_perfz_c8/perf.data",
        negative: "ser_semop_perf_c8/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    contention(
        facts,
        &RULE,
        &ContentionLeaves {
            cause: Cause::ThreadSync,
            asleep: Leaf::ThreadSync,
            awake: Leaf::ThreadSyncCalls,
            spins: Leaf::Spin,
            at: "the threads library (futex)",
            nobody: "no thread waits in the threads library",
            advice: [
                "use finer locks: several threads at once want the data behind this lock",
                "move work out of the critical section",
            ],
        },
    )
}
