//! Threads take turns at a kernel service.
//!
//! # What it does
//! Adds the idle CPU time while threads slept in semaphore, message queue and file lock calls, or
//! in reads and writes that another thread ended (pipes, local sockets), to the CPU time spent
//! inside the semaphore, queue and lock calls.
//!
//! # Why it holds a system up
//! The service protects one shared resource; one thread at a time passes. The signature is a
//! large part of the kernel's time in few such calls and a high switch rate. Which thread holds
//! the object changes all the time: that tells it from one busy server (workload-imbalance).
//!
//! # What to do
//! Finer granularity: several semaphores or files instead of one, shorter critical sections.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Application Serialization and
//! case 3 (one semaphore: 63 % of processing time in semop).

use super::{Fixtures, MATTERS, Rule, finding};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::{Contended, Leaf};
use holdup_passes::Cause;
use holdup_syscalls::WaitKind;

pub(super) const RULE: Rule = Rule {
    id: "application-serialization",
    class: Class::ApplicationSerialization,
    check,
    file: include_str!("application_serialization.rs"),
    needs: &["switches", "syscalls"],
    thresholds: &[&[MATTERS]],
    fixtures: Fixtures {
        positive: "ser_semop_perf_c8/perf.data",
        negative: "imb_server_c4/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.leaf(Leaf::KernelServices);
    let (waited, by_call) = facts.waiting_for(Cause::KernelService);
    // Behind a server the calls are its clients' way of waiting, not the hold-up.
    let behind_a_server = facts.leaf(Leaf::OneServer) > idle;
    let others = |c: &&Contended| !c.kind.takes_turns() && c.for_others;
    let cpu = if behind_a_server {
        0
    } else {
        let own = if facts.judged.kernel_contends_in(WaitKind::is_service) {
            0
        } else {
            facts.judged.cpu_in_turns(WaitKind::is_service)
        };
        // Pipes and sockets are used for much else: beside few sleepers what they cost is no
        // waiting.
        own + facts
            .judged
            .contended
            .iter()
            .filter(others)
            .map(|c| c.lost_ns)
            .sum::<u64>()
            .min(idle * 2)
    };
    let lost = idle + cpu;
    let top = by_call
        .first()
        .map(|c| c.0.clone())
        .or_else(|| facts.judged.calls_of(WaitKind::is_service).next().map(|c| c.name.clone()));
    let summary = match &top {
        Some(call) => format!(
            "threads take turns in {call}: {:.1} of {} CPUs are lost to it, {:.1} of them idle",
            lost as f64 / facts.wall.max(1) as f64,
            facts.analysis.cpus,
            idle as f64 / facts.wall.max(1) as f64,
        ),
        None => "no thread waits in a kernel service".to_owned(),
    };
    let mut f = finding(facts, &RULE, lost, summary);
    let (wakers, most) = facts.wakers(Cause::KernelService);
    f.evidence = vec![
        Evidence::of(
            "idle while threads waited in kernel services",
            facts.pct(idle),
            "% of capacity",
            "ledger idle/kernel-services",
        )
        .against(&facts.judged.thresholds, &MATTERS),
        Evidence::of(
            "CPU time inside the calls they take turns in",
            facts.pct(cpu),
            "% of capacity",
            "syscalls",
        ),
        Evidence::of(
            "threads asleep in them, on average",
            waited as f64 / facts.wall.max(1) as f64,
            "threads",
            "waits",
        ),
        Evidence::of("threads that ended those waits", wakers as f64, "threads", "wake-ups"),
        Evidence::of("largest part ended by one of them", most, "%", "wake-ups"),
    ];
    f.culprits = culprits::turns(facts, Leaf::KernelServices, WaitKind::is_service, &by_call);
    f.advice = vec![
        "protect less with one object: several semaphores, files or queues instead of one"
            .to_owned(),
        "shorten the critical section".to_owned(),
    ];
    f
}
