//! Threads contend for locks of the kernel itself.
//!
//! # What it does
//! It adds up three leaves of the ledger, of two kinds:
//! * **sleeping**: `idle/kernel-locks` is idle CPU time while threads waited for kernel locks. They
//!   slept between `contention_begin` and `contention_end`, or uninterruptibly until another
//!   application thread woke them;
//! * **spinning**: `busy/kernel/lock-spin` is CPU time between `contention_begin` and
//!   `contention_end`. `busy/kernel/lock-wait` is inferred: the CPU time of system calls beyond the
//!   time that they take without contention, less the part that `lock-spin` already contains. It is
//!   inferred because much spinning leaves no event (optimistic spinning of rwsems, test-and-set
//!   spinlocks in guests). The rule looks for two effects: calls that begin while another thread is
//!   in the kernel cost more than calls that begin alone, and two calls under one lock never end
//!   close together.
//!
//! Calls that change an address space (`mmap`, `munmap`, `mprotect`, `madvise`, `brk`) are compared
//! with similar calls that were made while no other thread of the same process was on a CPU. Other
//! threads of the process make such a call wait for two things: for the lock of the address space
//! (`mmap_lock`), and for the CPUs of these threads, which must flush the changed part from their
//! TLBs (a TLB shootdown). Threads of other processes cause neither wait. So the comparison also
//! excludes a machine that is merely slower when more CPUs are busy: on such a machine, threads of
//! other processes slow the calls down too. If `irq_vectors:call_function*` was recorded, the
//! requests to other CPUs are counted as evidence.
//!
//! Short calls may run one at a time when the program is not recorded, although the recording shows
//! no waiting thread: while one thread writes the recorder's events, another thread has the lock
//! for itself. Then the gaps between the ends of the threads' calls have a minimum, which is the
//! time for which one call excludes the other calls. Without the recorder, the program makes its
//! calls more often, because no events are written in between. The rule fires if all calls together
//! would then need the lock for more than 100 % of the time, even if the recording shows hardly any
//! lost CPU time.
//!
//! If the application's own code also takes many times its typical time, a hypervisor or something
//! that was not recorded takes the CPU away. Then system calls count only as far as they are slowed
//! down more than the code. Calls whose cost varies, but does not depend on concurrency, are not
//! contended.
//!
//! Calls by which threads wait for each other (semaphores, queues, file locks, futexes) count here
//! only if threads use more CPU time in these calls than they spend asleep in them. Otherwise the
//! calls belong to application-serialization and thread-serialization.
//!
//! # What it cannot tell
//! A call may also cost more under concurrency because of memory bandwidth, shared cache lines, or
//! a hypervisor that runs more virtual CPUs than the host has CPUs. Only call chains of CPU samples
//! distinguish the lock of an address space from a TLB shootdown. For threads that never run
//! without another thread of their process on a CPU, the comparison is not possible: if their calls
//! take much time, the verdict is `not-enough-evidence`. If the cause is a lock, contention events
//! with call chains name it: `holdup record --preset locks -g`, then `holdup locks --by caller`.
//!
//! # What to do
//! Spread the load over several of the objects that the lock guards: files, directories, sockets,
//! or address spaces (use processes instead of threads).
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Kernel Locking Conflict and case 2.

use super::{Explanation, Fixtures, Rule, cost, finding, in_cpus};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::limits::{DEARER, MATTERS, MISSING_ENDS, NAMED, UNDISTURBED};
use holdup_attribution::{Contended, Leaf, Section};
use holdup_passes::{Cause, LockBy, LockRow};
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    id: "kernel-lock-conflict",
    class: Class::KernelLockConflict,
    check,
    file: include_str!("kernel_lock_conflict.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS, NAMED, DEARER, MISSING_ENDS, UNDISTURBED],
    fixtures: Fixtures {
        positive: "ser_append_case2_c2/perf.data",
        negative: "ser_flock_c4/perf.data",
    },
};

/// What the rule reports.
enum Story<'a> {
    /// Most of the cost is sleep.
    Asleep {
        call: String,
    },
    /// Most of it is spinning that lock events show.
    Spinning {
        lock: Option<String>,
    },
    /// Most of it is inferred from what calls cost.
    Costly {
        call: &'a Contended,
    },
    /// No thread is seen to wait, but the recorder's own overhead hides it.
    Full {
        call: &'a str,
        section: Section,
    },
    Nobody,
}

impl Story<'_> {
    fn explain(&self, cpus: u32, lost: f64, idle: f64) -> Explanation {
        let of = format!("{lost:.1} of {cpus} CPUs are lost, {idle:.1} of them idle");
        let (story, summary) = match self {
            Story::Asleep { call } => {
                ("asleep", format!("threads sleep for a lock of the kernel in {call}: {of}"))
            }
            Story::Spinning { lock } => {
                let most = lock.as_ref().map_or(String::new(), |l| format!(", mostly for {l}"));
                ("spinning", format!("threads spin for locks of the kernel{most}: {of}"))
            }
            Story::Costly { call: c } if c.costs_more_with_siblings => (
                "shared-address-space",
                format!(
                    "each {} call takes {} of CPU time while another thread of the same process is \
                     on a CPU, and {} otherwise: {lost:.1} of {cpus} CPUs are lost to waiting for \
                     the lock of the address space and for TLB shootdowns on other CPUs",
                    c.name,
                    micros(c.mean_ns),
                    micros(c.own_ns),
                ),
            ),
            Story::Full { call, section: s } => (
                "one-at-a-time",
                format!(
                    "calls of {} run one at a time, each for {}, and {} threads make them all the \
                     time: without the time that the recorder takes between the calls, the threads \
                     would need the kernel lock for {:.0} % of the time",
                    call,
                    micros(s.ns),
                    s.callers,
                    s.wanted_pct,
                ),
            ),
            Story::Costly { call: c } => (
                "costly-calls",
                format!(
                    "each {} call takes {} of CPU time, but {} without contention: {lost:.1} of \
                     {cpus} CPUs are lost to waiting in the kernel",
                    c.name,
                    micros(c.mean_ns),
                    micros(c.own_ns),
                ),
            ),
            Story::Nobody => {
                return Explanation::plain(
                    "nobody-waits",
                    "no thread waits for a lock of the kernel",
                );
            }
        };
        let mut advice = vec![
            "spread the load over several of the objects that the lock guards: files, \
             directories, address spaces, sockets"
                .to_owned(),
            "to name the lock: holdup record --preset locks -g --duration 10s, then holdup locks \
             --by caller"
                .to_owned(),
        ];
        if matches!(self, Story::Costly { call } if call.costs_more_with_siblings) {
            advice[0] = "change the address space less often (keep and reuse memory, or use an \
                         allocator that does so), or use processes instead of threads"
                .to_owned();
            advice[1] = "to find out whether it is the lock or the TLB shootdowns: holdup record \
                         -g --duration 10s -e 'irq_vectors:call_function*'"
                .to_owned();
        }
        if matches!(self, Story::Full { .. }) {
            advice[1] =
                "to see the contention without the time that recording of system calls takes: \
                 holdup record --preset sched -g -F 999 --duration 10s"
                    .to_owned();
        }
        Explanation { story, summary, advice }
    }
}

fn check(facts: &Facts<'_>) -> Finding {
    let (idle, shown, inferred) =
        (facts.leaf(Leaf::KernelLocks), facts.leaf(Leaf::LockSpin), facts.leaf(Leaf::LockWait));
    let (waited, by_call) = facts.waiting_for(Cause::KernelLock);
    let costly: Vec<&Contended> = facts.judged.contended.iter().filter(|c| !c.for_others).collect();
    let locks = facts.analysis.locks(LockBy::Lock);
    let named = |r: &LockRow| r.spin_ns.unwrap_or(0) + r.block_ns.unwrap_or(0);
    let hottest = locks
        .iter()
        .max_by_key(|r| (named(r), std::cmp::Reverse(&r.address)))
        .filter(|r| facts.pct(named(r)) >= facts.limit(&NAMED));
    let burnt = shown + inferred;
    // A lock without visible waits, because the recorder's overhead separates the callers.
    let full = facts.judged.fullest_section();
    // The utilisation of a lock cannot exceed 100 %.
    let full = full.filter(|(_, s)| {
        s.wanted_pct >= 100.0
            && facts.wanted_pct(idle + burnt) < facts.limit(&MATTERS)
            && facts.wanted_pct(s.callers_ns) >= facts.limit(&MATTERS)
    });
    let story = match (full, by_call.first(), costly.first()) {
        (Some((call, section)), ..) => Story::Full { call, section },
        (_, Some((call, _)), _) if idle >= burnt => Story::Asleep { call: call.clone() },
        (_, _, Some(call)) if inferred > shown => Story::Costly { call },
        _ if shown > 0 => Story::Spinning { lock: hottest.map(lock_name) },
        (_, _, Some(call)) if inferred > 0 => Story::Costly { call },
        _ => Story::Nobody,
    };
    let explanation =
        story.explain(facts.analysis.cpus, in_cpus(facts, idle + burnt), in_cpus(facts, idle));
    let mut f = finding(facts, &RULE, explanation);
    if let Some((_, s)) = full {
        f.ruled_out = None;
        f.lacked_ns = (s.callers_ns as f64 * (1.0 - 100.0 / s.wanted_pct)) as u64;
    }
    let of_wanted = cost(facts, &f);
    f.evidence = vec![
        facts.share("idle while threads slept for kernel locks", Leaf::KernelLocks),
        facts.share("spinning for kernel locks, by lock events", Leaf::LockSpin),
        facts.share(
            "CPU time of system calls beyond what they take without contention",
            Leaf::LockWait,
        ),
        of_wanted,
        Evidence::of(
            "threads asleep for kernel locks, on average",
            waited as f64 / facts.wall.max(1) as f64,
            "threads",
            "waits",
        ),
    ];
    for c in costly.iter().take(3).filter(|c| facts.pct(c.lost_ns) >= facts.limit(&NAMED)) {
        f.evidence.extend(signs(c));
    }
    if let Some((_, s)) = facts.judged.fullest_section() {
        f.evidence.push(Evidence::of(
            "time for which threads would need one kernel lock if the recorder took no time",
            s.wanted_pct,
            "% of the wall time",
            "gaps between ends of calls",
        ));
    }
    if costly.iter().any(|c| c.costs_more_with_siblings) {
        f.evidence.extend(requests(facts));
    }
    if inferred > 0 {
        f.evidence.push(Evidence::of(
            "mean user-mode interval of application code, compared with the typical interval",
            facts.judged.slowdown,
            "times",
            "user-mode intervals between calls",
        ));
    }
    // One line per call: its CPU time or its threads' sleep, whichever is more.
    let burnt = costly.iter().filter(|c| c.lost_ns > 0).map(|c| (c.name.clone(), c.lost_ns));
    let mut calls: Vec<(String, u64)> = by_call.iter().cloned().chain(burnt).collect();
    calls.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut named_calls = BTreeSet::new();
    calls.retain(|c| named_calls.insert(c.0.clone()));
    f.culprits = culprits::kernel_locks(facts, &calls, f.lost_cpu_ns);
    f
}

/// Requests to other CPUs, if recorded: mostly TLB shootdowns.
fn requests(facts: &Facts<'_>) -> Vec<Evidence> {
    let rows = facts.analysis.irqs(false);
    let calls = rows.iter().filter(|r| r.name.starts_with("call_function"));
    let (count, ns) = calls.fold((0, 0), |(n, ns), r| (n + r.count, ns + r.total_ns));
    if count == 0 {
        return Vec::new();
    }
    let per_s = count as f64 * 1e9 / facts.wall.max(1) as f64;
    vec![
        Evidence::of("requests to other CPUs", per_s, "1/s", "irqs"),
        Evidence::of(
            "CPU time of handling requests from other CPUs",
            facts.pct(ns),
            "% of capacity",
            "irqs",
        ),
    ]
}

/// The evidence that a call waits for other threads.
fn signs(c: &Contended) -> Vec<Evidence> {
    let of = |metric: String, value, unit, source| Evidence::of(metric, value, unit, source);
    let mut rows = vec![of(
        format!(
            "{}: mean CPU time of a call, compared with {} without contention",
            c.name,
            micros(c.own_ns)
        ),
        c.mean_ns as f64 / c.own_ns.max(1) as f64,
        "times",
        "costs of similar calls",
    )];
    rows.extend(c.concurrent_pct.map(|pct| {
        of(
            format!(
                "{}: cost of calls begun while other threads were in the kernel, compared with \
                 calls begun alone",
                c.name
            ),
            pct as f64 / 100.0,
            "times",
            "costs of similar calls",
        )
    }));
    rows.extend(c.siblings_pct.map(|pct| {
        of(
            format!(
                "{}: typical cost while another thread of the process is on a CPU, compared with \
                 calls while none is",
                c.name
            ),
            pct as f64 / 100.0,
            "times",
            "costs of similar calls",
        )
    }));
    rows.extend(c.exclusion.map(|e| {
        of(
            format!(
                "{}: calls of two threads that ended less than half a call apart; {:.0} are \
                 expected by chance",
                c.name, e.expected
            ),
            e.observed.round(),
            "ends",
            "gaps between ends of calls",
        )
    }));
    rows
}

fn lock_name(row: &LockRow) -> String {
    row.name
        .clone()
        .flatten()
        .or_else(|| lock_address(row))
        .unwrap_or_else(|| "a lock without a name".to_owned())
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
