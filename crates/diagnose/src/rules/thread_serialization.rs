//! Threads take turns at an object of the threads library.
//!
//! # What it does
//! Adds the idle CPU time while threads slept in futex calls (mutex, condition variable, barrier,
//! rwlock) to the CPU time spent inside these calls.
//!
//! # Why it holds a system up
//! One lock guards data that all threads use; as the library spins a while and then sleeps, CPU
//! use is lower than expected and the switch rate high. Most of it happens in user mode, so the
//! signs are subtler than those of application serialization.
//!
//! # What to do
//! More locks with less behind each; no locks around work that can be done before or after;
//! fewer threads where the loop is not parallel.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Thread Serialization and case 1.

use super::{Fixtures, MATTERS, Rule, finding};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::Leaf;
use holdup_passes::Cause;
use holdup_syscalls::WaitKind;

pub(super) const RULE: Rule = Rule {
    id: "thread-serialization",
    class: Class::ThreadSerialization,
    check,
    file: include_str!("thread_serialization.rs"),
    needs: &["switches", "syscalls"],
    thresholds: &[&[MATTERS]],
    fixtures: Fixtures {
        positive: "thr_mutex_perfz_c8/perf.data",
        negative: "ser_semop_perf_c8/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.leaf(Leaf::ThreadSync);
    let (waited, by_call) = facts.waiting_for(Cause::ThreadSync);
    let behind_a_server = facts.leaf(Leaf::OneServer) > idle;
    let cpu = if behind_a_server || facts.judged.kernel_contends_in(WaitKind::is_library) {
        0
    } else {
        facts.judged.cpu_in(WaitKind::is_library)
    };
    let lost = idle + cpu;
    let summary = if waited + cpu == 0 {
        "no thread waits in the threads library".to_owned()
    } else {
        format!(
            "threads take turns at a lock of the threads library (futex): {:.1} of {} CPUs are lost to it, {:.1} of them idle",
            lost as f64 / facts.wall.max(1) as f64,
            facts.analysis.cpus,
            idle as f64 / facts.wall.max(1) as f64,
        )
    };
    let mut f = finding(facts, &RULE, lost, summary);
    let (wakers, most) = facts.wakers(Cause::ThreadSync);
    f.evidence = vec![
        Evidence::of(
            "idle while threads waited in futex calls",
            facts.pct(idle),
            "% of capacity",
            "ledger idle/thread-sync",
        )
        .against(&facts.judged.thresholds, &MATTERS),
        Evidence::of("CPU time inside futex calls", facts.pct(cpu), "% of capacity", "syscalls"),
        Evidence::of(
            "threads asleep in them, on average",
            waited as f64 / facts.wall.max(1) as f64,
            "threads",
            "waits",
        ),
        Evidence::of("threads that ended those waits", wakers as f64, "threads", "wake-ups"),
        Evidence::of("largest part ended by one of them", most, "%", "wake-ups"),
    ];
    f.culprits = culprits::turns(facts, Leaf::ThreadSync, WaitKind::is_library, &by_call);
    f.advice = vec![
        "use finer locks: the data behind this one is wanted by several threads at once".to_owned(),
        "move work out of the critical section".to_owned(),
    ];
    f
}
