//! Locks of the kernel itself are hot.
//!
//! # What it does
//! Adds two costs:
//! * **sleeping**: idle CPU time while threads waited for kernel locks: between `contention_begin`
//!   and `contention_end`, or asleep uninterruptibly until another application thread woke them;
//! * **spinning**: CPU time of system calls beyond what the same call costs with few threads in
//!   the kernel, or the time between contention events on a CPU where that is more. Much spinning leaves no event (optimistic spinning of rwsems, test-and-set
//!   spinlocks in guests), but it cannot hide that a call costs more in company.
//!
//! Calls that applications use to wait for each other (semaphores, queues, file locks) are left to
//! application-serialization; futex calls count here only where few threads sleep in them.
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

use super::application_serialization::syscall;
use super::{Fixtures, MATTERS, Rule, finding};
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_passes::Cause;
use holdup_syscalls::WaitKind;

pub(super) const RULE: Rule = Rule {
    id: "kernel-lock-conflict",
    class: Class::KernelLockConflict,
    check,
    file: include_str!("kernel_lock_conflict.rs"),
    needs: &["switches", "syscalls"],
    thresholds: &[MATTERS],
    fixtures: Fixtures { positive: "ser_append_case2_c2/perf.data", negative: "ser_flock_c4/perf.data" },
};

/// Calls whose company is the applications' own doing.
fn is_service(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::Semaphore | WaitKind::MessageQueue | WaitKind::FileLock)
}

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.ledger.ns("idle/kernel-locks");
    let (waited, by_call) = facts.waiting_for(Cause::KernelLock);
    let futex = facts.futex_hash_contends();
    let counts = |kind: WaitKind| !is_service(kind) && (kind != WaitKind::ThreadSync || futex);
    // On one CPU nobody spins for another.
    let seen = facts.ledger.ns("busy/kernel/lock-spin");
    let spin = if facts.analysis.cpus > 1 { facts.excess(counts).max(seen) } else { 0 };
    let lost = idle + spin;
    let wall = facts.wall.max(1) as f64;
    let spinning = facts.crowded.iter().filter(|c| counts(holdup_syscalls::wait_kind(&c.name))).collect::<Vec<_>>();
    let summary = match (by_call.first(), spinning.first()) {
        (Some((call, _)), _) if idle >= spin => format!(
            "threads sleep for a lock of the kernel in {call}: {:.1} of {} CPUs are lost to it, {:.1} of them idle",
            lost as f64 / wall,
            facts.analysis.cpus,
            idle as f64 / wall
        ),
        (_, _) if spin > 0 && spin == seen => format!(
            "threads spin for locks of the kernel: {:.1} of {} CPUs are lost to it, {:.1} of them idle",
            lost as f64 / wall,
            facts.analysis.cpus,
            idle as f64 / wall
        ),
        (_, Some(c)) if spin > 0 => format!(
            "{} costs {} on the CPU where it costs {} in little company: {:.1} of {} CPUs go into waiting in the kernel",
            c.name,
            micros(c.mean_ns),
            micros(c.alone_ns),
            lost as f64 / wall,
            facts.analysis.cpus
        ),
        _ => "no thread waits for a lock of the kernel".to_owned(),
    };
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::of("idle while threads slept for kernel locks", facts.pct(idle), "% of capacity", "ledger idle/kernel-locks"),
        Evidence::of("CPU time of system calls beyond their cost in little company", facts.pct(spin), "% of capacity", "crowding"),
        Evidence::of("spinning that contention events show", facts.pct(seen), "% of capacity", "ledger busy/kernel/lock-spin"),
        Evidence::of("both together", facts.pct(lost), "% of capacity", "ledger").against(facts.limit(&MATTERS)),
        Evidence::of("threads asleep for kernel locks, on average", waited as f64 / wall, "threads", "waits"),
    ];
    for c in spinning.iter().take(3).filter(|c| facts.pct(c.excess_ns) >= 1.0) {
        let metric = format!("{}: mean cost against {} in little company", c.name, micros(c.alone_ns));
        f.evidence.push(Evidence::of(metric, c.mean_ns as f64 / c.alone_ns.max(1) as f64, "times", "crowding"));
    }
    f.culprits = by_call.iter().take(2).map(|(name, ns)| syscall(facts, name, *ns)).collect();
    f.culprits.extend(spinning.iter().take(2).filter(|c| c.excess_ns > 0).map(|c| syscall(facts, &c.name, c.excess_ns)));
    f.advice = vec![
        "spread the load over several of the objects that the lock guards: files, directories, address spaces, sockets".to_owned(),
        "to name the lock: perf record -a -g -e lock:contention_begin,lock:contention_end".to_owned(),
    ];
    f
}

fn micros(ns: u64) -> String {
    if ns >= 10_000_000 { format!("{} ms", ns / 1_000_000) } else { format!("{:.1} us", ns as f64 / 1000.0) }
}
