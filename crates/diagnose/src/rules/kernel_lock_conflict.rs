//! Locks of the kernel itself are hot.
//!
//! # What it does
//! Adds two costs:
//! * **sleeping**: idle CPU time while threads waited for kernel locks: between `contention_begin`
//!   and `contention_end`, or asleep uninterruptibly until another application thread woke them;
//! * **spinning**: CPU time of system calls beyond their own work, or the time between contention
//!   events on a CPU where that is more. Much spinning leaves no event (optimistic spinning of
//!   rwsems, test-and-set spinlocks in guests), but it cannot hide that calls begun in company cost
//!   more than those begun alone, and that calls under one lock never end close together.
//!
//! Where the application's own code takes many times its typical time too, a hypervisor or
//! something unrecorded takes the CPU away, and only what exceeds that is the calls' own. Calls
//! that differ in size, but not by company, are not contended.
//!
//! Calls that applications use to wait for each other (semaphores, queues, file locks, futexes)
//! count here only where threads burn more time in them than they sleep for each other; else they
//! are left to application-serialization and thread-serialization.
//!
//! # What it cannot tell
//! A call may also cost more in company because of memory bandwidth, shared cache lines, or a
//! hypervisor that runs more virtual CPUs than it has. The contention events, with call chains,
//! name the lock if it is one: `perf record -g -e lock:contention_begin,lock:contention_end`.
//!
//! # What to do
//! Spread the load over several of the objects that the lock guards: files, directories, address
//! spaces (processes instead of threads), sockets.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Kernel Locking Conflict and case 2.

use super::{Fixtures, MATTERS, NAMED, Rule, finding};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::{CALL_THRESHOLDS, Contended, Leaf};
use holdup_passes::{Cause, LockBy, LockRow};
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    id: "kernel-lock-conflict",
    class: Class::KernelLockConflict,
    check,
    file: include_str!("kernel_lock_conflict.rs"),
    needs: &["switches", "syscalls"],
    thresholds: &[&[MATTERS, NAMED], CALL_THRESHOLDS],
    fixtures: Fixtures {
        positive: "ser_append_case2_c2/perf.data",
        negative: "ser_flock_c4/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.leaf(Leaf::KernelLocks);
    let (waited, by_call) = facts.waiting_for(Cause::KernelLock);
    let spinning: Vec<&Contended> =
        facts.judged.contended.iter().filter(|c| !c.for_others).collect();
    let excess: u64 = spinning.iter().map(|c| c.lost_ns).sum();
    // Lockdep's events show more waits than the contention events that the ledger counts.
    let locks = facts.analysis.locks(LockBy::Lock);
    let named = |r: &LockRow| r.spin_ns.unwrap_or(0) + r.block_ns.unwrap_or(0);
    let hottest = locks
        .iter()
        .max_by_key(|r| (named(r), std::cmp::Reverse(&r.address)))
        .filter(|r| facts.pct(named(r)) >= facts.limit(&NAMED));
    let seen = facts.leaf(Leaf::LockSpin).max(locks.iter().filter_map(|r| r.spin_ns).sum());
    // On one CPU nobody spins for another.
    let spin = if facts.analysis.cpus > 1 { excess.max(seen) } else { 0 };
    let lost = idle + spin;
    let wall = facts.wall.max(1) as f64;
    let summary = match (by_call.first(), spinning.first()) {
        (Some((call, _)), _) if idle >= spin => format!(
            "threads sleep for a lock of the kernel in {call}: {:.1} of {} CPUs are lost to it, {:.1} of them idle",
            lost as f64 / wall,
            facts.analysis.cpus,
            idle as f64 / wall
        ),
        (_, _) if spin > 0 && spin == seen => format!(
            "threads spin for locks of the kernel{}: {:.1} of {} CPUs are lost to it, {:.1} of them idle",
            hottest.map_or(String::new(), |r| format!(", most of all {}", lock_name(r))),
            lost as f64 / wall,
            facts.analysis.cpus,
            idle as f64 / wall
        ),
        (_, Some(c)) if spin > 0 => format!(
            "{} takes {} on the CPU where its own work is {}: {:.1} of {} CPUs go into waiting in the kernel",
            c.name,
            micros(c.mean_ns),
            micros(c.own_ns),
            lost as f64 / wall,
            facts.analysis.cpus
        ),
        _ => "no thread waits for a lock of the kernel".to_owned(),
    };
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::of(
            "idle while threads slept for kernel locks",
            facts.pct(idle),
            "% of capacity",
            "ledger idle/kernel-locks",
        ),
        Evidence::of(
            "CPU time of system calls beyond their own work",
            facts.pct(excess),
            "% of capacity",
            "costs of like calls",
        ),
        Evidence::of(
            "spinning that events of locks show",
            facts.pct(seen),
            "% of capacity",
            "ledger busy/kernel/lock-spin, locks",
        ),
        Evidence::of(
            "sleeping and the larger of the two together",
            facts.pct(lost),
            "% of capacity",
            "ledger",
        )
        .against(&facts.judged.thresholds, &MATTERS),
        Evidence::of(
            "threads asleep for kernel locks, on average",
            waited as f64 / wall,
            "threads",
            "waits",
        ),
    ];
    for c in spinning.iter().take(3).filter(|c| facts.pct(c.lost_ns) >= facts.limit(&NAMED)) {
        f.evidence.push(Evidence::of(
            format!("{}: mean cost against its own {}", c.name, micros(c.own_ns)),
            c.mean_ns as f64 / c.own_ns.max(1) as f64,
            "times",
            "costs of like calls",
        ));
        if let Some(pct) = c.company_pct {
            let metric = format!("{}: begun with others in the kernel, against alone", c.name);
            f.evidence.push(Evidence::of(
                metric,
                pct as f64 / 100.0,
                "times",
                "costs of like calls",
            ));
        }
        if let Some(e) = c.exclusion {
            let metric = format!(
                "{}: ends of two threads within half a call, {:.0} expected by chance",
                c.name, e.expected
            );
            f.evidence.push(Evidence::of(
                metric,
                e.observed.round(),
                "ends",
                "gaps between ends of calls",
            ));
        }
    }
    if spin > 0 {
        f.evidence.push(Evidence::of(
            "application code: mean stretch against typical",
            facts.judged.stretch,
            "times",
            "stretches between calls",
        ));
    }
    // One line a call: what it burns or what its threads sleep, whichever is more.
    let burnt = spinning.iter().filter(|c| c.lost_ns > 0).map(|c| (c.name.clone(), c.lost_ns));
    let mut calls: Vec<(String, u64)> = by_call.iter().cloned().chain(burnt).collect();
    calls.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut named_calls = BTreeSet::new();
    calls.retain(|c| named_calls.insert(c.0.clone()));
    f.culprits = culprits::kernel_locks(facts, &calls, lost);
    f.advice = vec![
        "spread the load over several of the objects that the lock guards: files, directories, address spaces, sockets".to_owned(),
        "to name the lock: perf record -a -g -e lock:contention_begin,lock:contention_end".to_owned(),
    ];
    f
}

fn lock_name(row: &LockRow) -> String {
    row.name
        .clone()
        .flatten()
        .or_else(|| lock_address(row))
        .unwrap_or_else(|| "one without a name".to_owned())
}

fn lock_address(row: &LockRow) -> Option<String> {
    row.address.flatten().map(|a| format!("{a:#x}"))
}

fn micros(ns: u64) -> String {
    if ns >= 10_000_000 {
        format!("{} ms", ns / 1_000_000)
    } else {
        format!("{:.1} us", ns as f64 / 1000.0)
    }
}
