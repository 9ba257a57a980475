//! Threads contend for an object of the threads library.
//!
//! # What it does
//! It adds up leaves of the ledger. `idle/thread-sync` is idle CPU time while threads slept in
//! futex calls (mutex, condition variable, rwlock) and waited for threads of their own process.
//! Futexes that several processes share belong to application-serialization.
//! `busy/kernel/thread-sync` is the CPU time of two kinds of futex calls: calls that slept or ended
//! the sleep of another thread, and calls by which threads contend for a mutex without sleeping (a
//! wait that returns at once because the mutex became free, and a wake-up that finds no sleeping
//! thread). Other futex calls that neither sleep nor wake a thread do not count.
//!
//! `busy/spin` is the CPU time of threads that wait without sleeping: several threads of the
//! process, which work at other times, call `sched_yield` repeatedly with hardly any code of their
//! own (`yields.short_us`) and no other call in between.
//!
//! Threads also spin in their own code: spin locks, adaptive mutexes, the schedulers of language
//! runtimes. This spinning causes no event, but samples of the running code (`holdup record` takes
//! them) show it. A sample counts if it is at an instruction by which code tells the CPU that it
//! spins (`pause`, `yield`, `isb`), or in the loop around such an instruction. A thread's CPU time
//! in its own code is divided in proportion to its samples. The time counts only if several threads
//! of the program spin or work, and if for most of the time one of them works or is ready to work.
//! The gain comes from a replay in which each thread runs for less time, by the time for which it
//! spun.
//!
//! # What it cannot tell
//! Spinning without any system call looks like work if no samples were taken, if the loop has no
//! such instruction (`while (!done);`), or if the code of the loop is in no file (code that a
//! runtime compiled). For yields and loops, the trace does not show which lock the threads spin
//! for. Runtimes that schedule tasks on their own, such as Go's, do not show their locks to the
//! kernel: a trace shows only threads without work, and a busy thread that wakes them.
//!
//! # Why it holds a system up
//! One lock guards data that all threads use. A thread that waits for the lock spins for a while
//! and then sleeps, so few CPUs are busy, and there are many context switches. If threads only
//! spin, all CPUs are busy, and few of them do anything useful. With more threads than CPUs, even
//! the thread that holds the lock may be without a CPU.
//!
//! # What to do
//! Use more locks, each for less data. Do work before or after the critical section where possible.
//! Use fewer threads for work that is not parallel. If the lock lets only one thread run code at a
//! time, as the lock of an interpreter does, use processes. If the lock guards a pool of
//! connections, make the pool larger.
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
                "use several locks instead of this one, each for a part of the data",
                "move work out of the critical section",
            ],
        },
    )
}
