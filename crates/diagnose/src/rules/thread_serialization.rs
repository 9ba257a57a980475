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
//! Threads also spin in their own code: spin locks, adaptive mutexes, the schedulers of runtimes.
//! That causes no event, but samples of the running code (`holdup record` takes them) show it: a
//! sample counts if it is at an instruction by which code tells the CPU that it spins (`pause`,
//! `yield`, `isb`), or in the loop around it. A thread's CPU time in its own code is divided in
//! proportion to its samples. Several threads of the program must spin or work, and for most of the
//! time one of them works or is ready to work. The gain is that of a replay in which each thread
//! runs for less time, by the part that it spun.
//!
//! # What it cannot tell
//! Spinning without any call looks like work if no samples were taken, if the loop has no such
//! instruction (`while (!done);`), or if its code is in no file (code that a runtime compiled). For
//! yields and loops, the trace does not show which lock they are for. Runtimes that schedule tasks
//! on their own, such as Go's, do not show their locks to the kernel: a trace shows threads without
//! work, and a busy thread that wakes them.
//!
//! # Why it holds a system up
//! One lock guards data that all threads use. A thread that waits for it spins for a while and then
//! sleeps, so CPU use is low and the switch rate is high. If it only spins, all CPUs are busy and
//! few do anything useful; with more threads than CPUs, the thread that has the lock may not even
//! have a CPU.
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
