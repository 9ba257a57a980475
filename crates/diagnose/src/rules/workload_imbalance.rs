//! Too little parallelism.
//!
//! # What it does
//! Adds up the idle CPU time that more threads with work would have used:
//! * **one server**: others sleep until one thread, itself busy nearly all the time, has served
//!   them (AIX case 4), or until the longest worker reaches the barrier;
//! * **one thread**: a single application thread runs nearly all the time while no other has work;
//! * **bound threads**: threads are ready, CPUs are idle, and they do not come together: affinity.
//!
//! # Why it holds a system up
//! A thread runs on one CPU at a time. When the work goes through one of them, the other CPUs
//! can only watch. The signature is a CPU use near 1/N with one thread near 100 % of one CPU.
//!
//! # What to do
//! Split the server into several processes or threads; divide the work evenly; widen the affinity.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Workload Imbalance and case 4.

use super::funneled_driver::confined_driver;
use super::{Fixtures, MATTERS, Rule, finding};
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use crate::thresholds::Threshold;
use holdup_passes::Slot;
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;

pub(super) const RULE: Rule = Rule {
    id: "workload-imbalance",
    class: Class::WorkloadImbalance,
    check,
    file: include_str!("workload_imbalance.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS, DOMINANT, BOUND],
    fixtures: Fixtures {
        positive: "imb_server_c4/perf.data",
        negative: "ser_semop_perf_c8/perf.data",
    },
};

/// Also that of [`crate::metrics`].
pub(crate) const DOMINANT: Threshold = Threshold {
    key: "workload-imbalance.dominant_pct",
    default: 75.0,
    unit: "% of its life",
    meaning: "a thread that runs for at least this part of its life (or of two thirds of the wall time, if that is longer) is the one that everything hangs on",
    source: "the server of AIX case 4 used 23.8 % of four CPUs, 95 % of one; a lock's holder among N equal workers runs about 100/N %",
};
const BOUND: Threshold = Threshold {
    key: "workload-imbalance.bound_pct",
    default: 30.0,
    unit: "% of capacity",
    meaning: "idle CPUs beside ready threads, below which they say nothing about affinity",
    source: "above what wake-ups cost, each of which leaves a CPU idle beside a ready thread for a moment: up to 29 % in guests; programs bound to one of eight CPUs lose 80 %",
};

/// Where few threads run all the time, all work keeps half of the CPUs busy at most; and what
/// recorders and daemons add, in per cent of one CPU.
const DAEMONS_PCT: u64 = 15;

fn check(facts: &Facts<'_>) -> Finding {
    let served = facts.ledger.ns("idle/one-server");
    let waiting_for_cpu = facts.ledger.ns("idle/scheduler");
    // Only application threads can be bound by their owner; a kernel worker's queue is a funnel.
    let bound = waiting_for_cpu.min(facts.queued);
    let bound =
        if facts.pct(bound) >= facts.limit(&BOUND) && !confined_driver(facts) { bound } else { 0 };
    let longest = facts.workers.first().copied();
    let life = |slot| facts.analysis.life_ns(facts.thread(slot)).max(facts.wall / 3 * 2);
    let dominates =
        |w: &&(Slot, Nanos)| w.1 as f64 * 100.0 >= facts.limit(&DOMINANT) * life(w.0) as f64;
    let dominant = facts.workers.iter().find(dominates).copied();
    // Where as many threads run all the time as keep more than half of the CPUs busy, the work
    // is spread; a CPU or two to spare are no imbalance.
    let busy_threads = facts.workers.iter().filter(dominates).count();
    // And where every CPU was busy for a good part of the time, there was work for all of them: the
    // rest is the beginning and the end of the recording.
    let (full_ns, _) = facts.analysis.full();
    let half = facts.ledger.ns("busy") <= facts.capacity / 2 + facts.wall / 100 * DAEMONS_PCT;
    let few = (1..=facts.analysis.cpus as usize / 2).contains(&busy_threads)
        && half
        && full_ns < facts.wall / 4;
    let alone = if few { facts.ledger.ns("idle/no-work") } else { 0 };
    // What the clients burn in the calls they wait in is part of the price of the one server.
    let calls = if facts.pct(served) >= facts.limit(&MATTERS) {
        facts.cpu_in(WaitKind::takes_turns)
    } else {
        0
    };
    let elsewhere = if facts.tasks_only() && facts.workers.len() == 1 && dominant.is_some() {
        // Only this program was recorded: whatever the other CPUs did, it could not use them.
        facts.ledger.ns("unaccounted")
    } else {
        0
    };
    let lost = served + bound + alone + calls + elsewhere;

    let culprit = facts.server.map(|s| s.slot).or(dominant.map(|d| d.0));
    let cpus = facts.analysis.cpus;
    let summary = match (culprit, facts.server) {
        (Some(slot), Some(server)) if served >= bound.max(alone) => format!(
            "{} is busy {:.0} % of the time on one CPU; others wait for it, and {:.1} of {cpus} CPUs have nothing to do",
            facts.name(slot),
            server.busy_ns as f64 * 100.0 / server.life_ns.max(1) as f64,
            lost as f64 / facts.wall.max(1) as f64,
        ),
        (Some(slot), _) if elsewhere > 0 => format!(
            "{} runs {:.0} % of its life and is the only thread of the program with work: it cannot use more than one of {cpus} CPUs",
            facts.name(slot),
            facts.thread(slot).running_ns as f64 * 100.0 / life(slot).max(1) as f64,
        ),
        (Some(slot), _) if alone >= bound => format!(
            "{} runs {:.0} % of the time and nothing else has work: {:.1} of {cpus} CPUs stay idle",
            facts.name(slot),
            facts.thread(slot).running_ns as f64 * 100.0 / life(slot).max(1) as f64,
            alone as f64 / facts.wall.max(1) as f64,
        ),
        _ if served > bound.max(alone) => format!(
            "threads wait at barriers for whoever comes last: {:.1} of {cpus} CPUs have nothing to do",
            lost as f64 / facts.wall.max(1) as f64,
        ),
        _ if bound > 0 => format!(
            "threads are ready to run while {:.1} of {cpus} CPUs are idle: they are bound to other CPUs",
            bound as f64 / facts.wall.max(1) as f64
        ),
        _ => "the work is spread over the CPUs".to_owned(),
    };
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::of(
            "idle while others waited for one busy thread",
            facts.pct(served),
            "% of capacity",
            "ledger idle/one-server",
        )
        .against(facts.limit(&MATTERS)),
        Evidence::of(
            "idle while ready threads waited for other CPUs",
            facts.node("idle/scheduler"),
            "% of capacity",
            "ledger idle/scheduler",
        )
        .against(facts.limit(&BOUND)),
        Evidence::of(
            "threads queued behind others, on average",
            facts.queued as f64 / facts.wall.max(1) as f64,
            "threads",
            "procs runnable",
        ),
        Evidence::of(
            "idle without any waiting thread",
            facts.node("idle/no-work"),
            "% of capacity",
            "ledger idle/no-work",
        ),
    ];
    if let Some((slot, ns)) = longest {
        let metric = format!("longest running thread: {}", facts.name(slot));
        f.evidence.push(
            Evidence::of(
                metric,
                ns as f64 * 100.0 / life(slot).max(1) as f64,
                "% of its life",
                "procs",
            )
            .against(facts.limit(&DOMINANT)),
        );
    }
    if let Some(server) = facts.server {
        let part = server.ended_wait_ns as f64 * 100.0 / server.all_wait_ns.max(1) as f64;
        f.evidence.push(
            Evidence::of(
                format!("waiting time ended by {}", facts.name(server.slot)),
                part,
                "%",
                "wake-ups",
            )
            .against(60.0),
        );
    }
    f.culprits
        .extend(culprit.map(|slot| facts.culprit("thread", slot, facts.thread(slot).running_ns)));
    if elsewhere > 0 {
        f.evidence.push(Evidence::of(
            "recorded threads with work",
            facts.workers.len() as f64,
            "threads",
            "procs",
        ));
    }
    f.advice = if served >= bound.max(alone) {
        vec!["split the server into independent processes or threads, so that more than one CPU can serve".to_owned()]
    } else if alone >= bound {
        vec!["divide the work among threads: only one of them has any".to_owned()]
    } else {
        vec!["widen the CPU affinity of the waiting threads (taskset -p, cpusets)".to_owned()]
    };
    f
}
