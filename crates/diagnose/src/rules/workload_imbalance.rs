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
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::{Leaf, Total, thresholds};
use holdup_passes::Slot;
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;

pub(super) const RULE: Rule = Rule {
    id: "workload-imbalance",
    class: Class::WorkloadImbalance,
    check,
    file: include_str!("workload_imbalance.rs"),
    needs: &["switches"],
    thresholds: &[&[MATTERS], THRESHOLDS],
    fixtures: Fixtures {
        positive: "imb_server_c4/perf.data",
        negative: "ser_semop_perf_c8/perf.data",
    },
};

thresholds! {
    /// Also that of [`crate::metrics`].
    pub(crate) DOMINANT = "workload-imbalance.dominant_pct", 75.0, "% of its life",
        meaning: "a thread that runs for at least this part of its life (or of two thirds of \
                  the wall time, if that is longer) is the one that everything hangs on",
        source: "the server of AIX case 4 used 23.8 % of four CPUs, 95 % of one; a lock's \
                 holder among N equal workers runs about 100/N %";
    BOUND = "workload-imbalance.bound_pct", 30.0, "% of capacity",
        meaning: "idle CPUs beside ready threads, below which they say nothing about affinity",
        source: "above what wake-ups cost, each of which leaves a CPU idle beside a ready \
                 thread for a moment: up to 29 % in guests; programs bound to one of eight CPUs \
                 lose 80 %";
    DAEMONS = "workload-imbalance.daemons_pct", 15.0, "% of one CPU",
        meaning: "where few threads run all the time, all work together keeps half of the CPUs \
                  busy at most, and this on top",
        source: "what recorders and daemons add";
    LIFE = "workload-imbalance.life_times", 1.5, "times",
        meaning: "a thread is judged by its life, which counts as the wall time divided by this \
                  if it was shorter",
        source: "a thread that lived for less than two thirds of the recording held nothing up \
                 for the rest";
    FULL = "workload-imbalance.full_pct", 25.0, "% of the time",
        meaning: "every CPU busy for this long: there was work for all of them, and the idle \
                  rest is no imbalance",
        source: "recordings begin before the work does and end after it";
}

fn check(facts: &Facts<'_>) -> Finding {
    let served = facts.leaf(Leaf::OneServer);
    let waiting_for_cpu = facts.leaf(Leaf::Scheduler);
    // Only application threads can be bound by their owner; a kernel worker's queue is a funnel.
    let bound = waiting_for_cpu.min(facts.queued);
    let affinity = facts.at_least(facts.pct(bound), &BOUND);
    let bound = if affinity.holds() && !confined_driver(facts) { bound } else { 0 };
    let longest = facts.workers.first().copied();
    let shortest = (facts.wall as f64 / facts.limit(&LIFE).max(1.0)) as Nanos;
    let life = |slot| facts.analysis.life_ns(facts.thread(slot)).max(shortest);
    let running = |&(slot, ns): &(Slot, Nanos)| {
        facts.at_least(ns as f64 * 100.0 / life(slot).max(1) as f64, &DOMINANT)
    };
    let dominates = |w: &&(Slot, Nanos)| running(w).holds();
    let dominant = facts.workers.iter().find(dominates).copied();
    // Where as many threads run all the time as keep more than half of the CPUs busy, the work
    // is spread; a CPU or two to spare are no imbalance.
    let busy_threads = facts.workers.iter().filter(dominates).count();
    // And where every CPU was busy for a good part of the time, there was work for all of them: the
    // rest is the beginning and the end of the recording.
    let (full_ns, _) = facts.analysis.full();
    let daemons = (facts.wall as f64 * facts.limit(&DAEMONS) / 100.0) as Nanos;
    let half = facts.total(Total::Busy) <= facts.capacity / 2 + daemons;
    let few = (1..=facts.analysis.cpus as usize / 2).contains(&busy_threads)
        && half
        && (full_ns as f64 * 100.0) < facts.wall as f64 * facts.limit(&FULL);
    let alone = if few { facts.leaf(Leaf::NoWork) } else { 0 };
    // What the clients burn in the calls they wait in is part of the price of the one server.
    let matters = facts.at_least(facts.pct(served), &MATTERS);
    let calls = if matters.holds() { facts.judged.cpu_in(WaitKind::takes_turns) } else { 0 };
    let elsewhere = if facts.tasks_only() && facts.workers.len() == 1 && dominant.is_some() {
        // Only this program was recorded: whatever the other CPUs did, it could not use them.
        facts.leaf(Leaf::Unaccounted)
    } else {
        0
    };
    let lost = served + bound + alone + calls + elsewhere;

    let culprit = facts.judged.server.map(|s| s.slot).or(dominant.map(|d| d.0));
    let cpus = facts.analysis.cpus;
    let summary = match (culprit, facts.judged.server) {
        (Some(slot), Some(server)) if served >= bound.max(alone) => format!(
            "{} is busy {:.0} % of the time on one CPU; others wait for it, and {:.1} of {cpus} CPUs have nothing to do",
            facts.name(slot),
            server.busy_pct(),
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
        Evidence::checked(
            "idle while others waited for one busy thread",
            &matters,
            "% of capacity",
            "ledger idle/one-server",
        ),
        Evidence::of(
            "idle while ready threads waited for other CPUs",
            facts.leaf_pct(Leaf::Scheduler),
            "% of capacity",
            "ledger idle/scheduler",
        )
        .against(&facts.judged.thresholds, &BOUND),
        Evidence::of(
            "threads queued behind others, on average",
            facts.queued as f64 / facts.wall.max(1) as f64,
            "threads",
            "procs runnable",
        ),
        Evidence::of(
            "idle without any waiting thread",
            facts.leaf_pct(Leaf::NoWork),
            "% of capacity",
            "ledger idle/no-work",
        ),
    ];
    if let Some(longest) = longest {
        let metric = format!("longest running thread: {}", facts.name(longest.0));
        f.evidence.push(Evidence::checked(metric, &running(&longest), "% of its life", "procs"));
    }
    if let Some(server) = facts.judged.server {
        let metric = format!("waiting time ended by {}", facts.name(server.slot));
        let ended = facts.at_least(server.ended_pct(), server.ends_limit());
        f.evidence.push(Evidence::checked(metric, &ended, "%", "wake-ups"));
    }
    f.culprits = culprits::imbalance(facts, culprit, bound);
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
