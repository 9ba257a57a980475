//! Threads sleep for a contended lock of the kernel itself.
//!
//! # What it does
//! Takes the idle CPU time while threads waited for kernel locks: between `contention_begin` and
//! `contention_end`, or asleep uninterruptibly until another application thread woke them.
//!
//! # What it cannot see
//! Spinning: time spent on a CPU waiting for a lock looks like any other kernel time here. Where
//! that is large, the verdict says so instead of guessing.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Kernel Locking Conflict and case 2.

use super::application_serialization::syscall;
use super::{Rule, finding};
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_passes::Cause;

pub(super) const RULE: Rule = Rule { id: "kernel-lock-conflict", class: Class::KernelLockConflict, check };

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.ledger.ns("idle/kernel-locks");
    let (waited, by_call) = facts.waiting_for(Cause::KernelLock);
    let summary = match by_call.first() {
        Some((call, _)) => format!(
            "threads sleep for a lock of the kernel in {call}: {:.1} of {} CPUs are idle for it",
            idle as f64 / facts.wall.max(1) as f64,
            facts.analysis.cpus
        ),
        None => "no thread sleeps for a lock of the kernel".to_owned(),
    };
    let mut f = finding(facts, &RULE, idle, summary);
    f.evidence = vec![
        Evidence::of("idle while threads slept for kernel locks", facts.pct(idle), "% of capacity", "ledger idle/kernel-locks")
            .against(super::MATTERS_PCT),
        Evidence::of("threads asleep for them, on average", waited as f64 / facts.wall.max(1) as f64, "threads", "waits"),
        Evidence::of("kernel time of applications", facts.node("busy/kernel"), "% of capacity", "ledger busy/kernel"),
    ];
    f.culprits = by_call.iter().take(3).map(|(name, ns)| syscall(facts, name, *ns)).collect();
    f.advice = vec!["spread the load over several of the objects that the lock guards (files, directories, address spaces)".to_owned()];
    f
}
