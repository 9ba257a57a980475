//! Too little parallelism.
//!
//! # What it does
//! It adds up the idle CPU time that more threads with work would have used:
//! * **one server**: others sleep until one thread, itself busy nearly all the time, has served
//!   them (AIX case 4), or until the longest worker reaches the barrier;
//! * **one thread**: one application thread runs nearly all the time while no other has work. Two
//!   that do so have their work divided; the machine has more CPUs than the work has threads;
//! * **one at a time**: just one application thread has work at any time, though not always the
//!   same one: a build without `-j`, two processes that wait for each other's answers, one consumer
//!   of goroutines or tasks that hops between threads. Judged for the program that is the work by
//!   itself, if one process is known to be that, so that a neighbour does not hide it;
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
use super::{COST, Fixtures, MATTERS, Rule, Told, cost, finding, in_cpus};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::{Check, Leaf, Server, Total, thresholds};
use holdup_passes::Slot;
use holdup_trace::Nanos;

pub(super) const RULE: Rule = Rule {
    id: "workload-imbalance",
    class: Class::WorkloadImbalance,
    check,
    file: include_str!("workload_imbalance.rs"),
    needs: &["switches"],
    thresholds: &[COST, THRESHOLDS],
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
    BOUND = "workload-imbalance.bound_pct", 30.0, "% of wanted CPU time",
        meaning: "idle CPUs beside ready threads, below which they say nothing about affinity",
        source: "above what wake-ups cost, each of which leaves a CPU idle beside a ready \
                 thread for a moment: up to 29 % in guests; programs bound to one of eight CPUs \
                 lose 80 %";
    DAEMONS = "workload-imbalance.daemons_pct", 15.0, "% of one CPU",
        meaning: "where one thread runs all the time, all work together is that thread's, and \
                  this on top",
        source: "what recorders and daemons add";
    LIFE = "workload-imbalance.life_times", 1.5, "times",
        meaning: "a thread is judged by its life, which counts as the wall time divided by this \
                  if it was shorter",
        source: "a thread that lived for less than two thirds of the recording held nothing up \
                 for the rest";
    SEVERAL = "workload-imbalance.several_pct", 25.0, "% of the time",
        meaning: "two CPUs or more busy for this long: there was work for more than one thread, \
                  and the idle rest is no imbalance",
        source: "recordings begin before the work does and end after it";
}

/// What helps where threads wait for the last of them.
const EVENLY: &str = "divide the work evenly: the thread that comes last has the most";

/// What the rule tells.
enum Story {
    /// Others wait for one busy thread.
    Server {
        server: Server,
    },
    /// Others wait at barriers for whoever comes last.
    Barrier,
    /// Of the one program that was recorded, one thread has work.
    LoneThread {
        slot: Slot,
    },
    /// One thread runs nearly all the time, and nothing else has work.
    OneThread {
        slot: Slot,
    },
    /// There is work for one thread at a time, whichever that is.
    Serial {
        part: f64,
    },
    /// Threads are ready beside idle CPUs.
    Bound,
    Spread,
}

impl Story {
    fn told(&self, facts: &Facts<'_>, life: impl Fn(Slot) -> Nanos, lost: Nanos) -> Told {
        let (cpus, idle) = (facts.analysis.cpus, in_cpus(facts, lost));
        let runs =
            |slot: Slot| facts.thread(slot).running_ns as f64 * 100.0 / life(slot).max(1) as f64;
        let (story, summary, advice) = match *self {
            Story::Server { server } => (
                "server",
                format!(
                    "{} is busy {:.0} % of the time on one CPU; others wait for it, and {idle:.1} \
                        of {cpus} CPUs have nothing to do",
                    facts.name(server.slot),
                    server.busy_pct(),
                ),
                "split the server into independent processes or threads, so that more than one CPU \
                 can serve",
            ),
            Story::Barrier => (
                "barrier",
                format!(
                    "threads wait at barriers for whoever comes last: {idle:.1} of {cpus} CPUs \
                        have nothing to do"
                ),
                EVENLY,
            ),
            Story::LoneThread { slot } => (
                "lone-thread",
                format!(
                    "{} runs {:.0} % of its life and is the only thread of the program with work: \
                        it cannot use more than one of {cpus} CPUs",
                    facts.name(slot),
                    runs(slot),
                ),
                "divide the work among threads: only one of them has any",
            ),
            Story::OneThread { slot } => (
                "few-threads",
                format!(
                    "{} runs {:.0} % of the time and nothing else has work: {idle:.1} of {cpus} \
                        CPUs stay idle",
                    facts.name(slot),
                    runs(slot),
                ),
                "divide the work among threads: only one of them has any",
            ),
            Story::Serial { part } => (
                "serial",
                format!(
                    "one thread at a time has work for {part:.0} % of the time, not always the \
                        same one: {idle:.1} of {cpus} CPUs stay idle"
                ),
                "let the pieces of work run side by side (make -j, a pool, a pipeline that does \
                    not wait for each answer)",
            ),
            Story::Bound => (
                "bound",
                format!(
                    "threads are ready to run while {idle:.1} of {cpus} CPUs are idle: they are \
                        bound to other CPUs"
                ),
                "widen the CPU affinity of the waiting threads (taskset -p, cpusets)",
            ),
            Story::Spread => {
                return Told::plain("spread", "the work is spread over the CPUs");
            }
        };
        Told { story, summary, advice: vec![advice.to_owned()] }
    }
}

/// Threads that run for most of their life.
struct Dominant {
    first: Option<Slot>,
    /// There is one, and nothing else has work. Two that run all the time are no imbalance, however
    /// many CPUs have nothing to do: the work is divided among as many threads as it has.
    alone: bool,
}

fn dominant(facts: &Facts<'_>, running: impl Fn(&(Slot, Nanos)) -> Check) -> Dominant {
    let first = facts.workers.iter().find(|w| running(w).holds()).map(|w| w.0);
    let daemons = (facts.wall as f64 * facts.limit(&DAEMONS) / 100.0) as Nanos;
    // What the recorder and known neighbours take says nothing about the work, be it a whole CPU.
    let beside = facts.judged.neighbours.ns;
    let one_cpu = facts.total(Total::Busy).saturating_sub(beside) <= facts.wall + daemons;
    // Where several CPUs were busy for a good part of the time, there was work for several: the
    // rest is the beginning and the end of the recording.
    let several = facts.analysis.several_ns().saturating_sub(beside) as f64 * 100.0;
    let passing = several < facts.wall as f64 * facts.limit(&SEVERAL);
    Dominant { first, alone: facts.analysis.cpus > 1 && first.is_some() && one_cpu && passing }
}

fn check(facts: &Facts<'_>) -> Finding {
    let shortest = (facts.wall as f64 / facts.limit(&LIFE).max(1.0)) as Nanos;
    let life = |slot| facts.analysis.life_ns(facts.thread(slot)).max(shortest);
    let running = |&(slot, ns): &(Slot, Nanos)| {
        facts.at_least(ns as f64 * 100.0 / life(slot).max(1) as f64, &DOMINANT)
    };
    let dominant = dominant(facts, running);
    let serial = facts.judged.serial;

    let served = facts.leaf(Leaf::OneServer);
    // Only application threads can be bound by their owner; a kernel worker's queue is a funnel.
    let queued = facts.leaf(Leaf::Scheduler).min(facts.queued);
    let affinity = facts.at_least(facts.wanted_pct(queued), &BOUND);
    let bound = if affinity.holds() && !confined_driver(facts) { queued } else { 0 };
    let several = facts.analysis.cpus > 1;
    // Threads that wait their turn at an object say why one at a time has work: that is
    // serialization.
    let turns = facts.leaf(Leaf::ThreadSync) + facts.leaf(Leaf::KernelServices);
    let in_turns = facts.at_least(facts.wanted_pct(turns), &MATTERS).holds();
    let one_by_one = several && serial.holds() && !in_turns;
    let one_at_a_time = if one_by_one || dominant.alone { facts.leaf(Leaf::Serial) } else { 0 };
    // Beside a neighbour that runs too, nobody sees from the CPUs that the work is serial.
    let beside = one_by_one && facts.judged.neighbours.programs.len() > 1;
    let no_work = if dominant.alone || beside { facts.leaf(Leaf::NoWork) } else { 0 };
    let alone = one_at_a_time + no_work;
    // What the clients burn in the calls they wait in is part of the price of the one server.
    let calls = |asleep, leaf| if served > facts.leaf(asleep) { facts.leaf(leaf) } else { 0 };
    let lone = facts.tasks_only() && facts.workers.len() == 1 && dominant.first.is_some();
    // Only this program was recorded: whatever the other CPUs did, it could not use them.
    let elsewhere = if lone { facts.leaf(Leaf::Unaccounted) } else { 0 };

    let story = match (facts.judged.server, dominant.first) {
        (Some(server), _) if served > 0 && served >= bound.max(alone) => Story::Server { server },
        (_, Some(slot)) if elsewhere > 0 => Story::LoneThread { slot },
        (_, Some(slot)) if dominant.alone && alone >= bound => Story::OneThread { slot },
        _ if one_at_a_time > 0 && alone >= bound.max(served) => {
            Story::Serial { part: serial.value }
        }
        _ if served > bound.max(alone) => Story::Barrier,
        _ if bound > 0 => Story::Bound,
        _ => Story::Spread,
    };
    let parts = [
        (Leaf::OneServer, served),
        (Leaf::Scheduler, bound),
        (Leaf::Serial, one_at_a_time),
        (Leaf::NoWork, no_work),
        (Leaf::ThreadTurns, calls(Leaf::ThreadSync, Leaf::ThreadTurns)),
        (Leaf::ServiceTurns, calls(Leaf::KernelServices, Leaf::ServiceTurns)),
        (Leaf::Unaccounted, elsewhere),
    ];
    let lost = parts.iter().map(|p| p.1).sum();
    let mut f = finding(facts, &RULE, &parts, story.told(facts, life, lost));
    f.evidence = vec![
        Evidence::of(
            "idle while others waited for one busy thread",
            facts.pct(served),
            "% of capacity",
            Leaf::OneServer.source(),
        ),
        Evidence::checked(
            "idle while application threads queued for other CPUs",
            &affinity,
            "% of wanted CPU time",
            Leaf::Scheduler.source(),
        ),
        Evidence::checked(
            "just one application thread, or one of the program, running or ready",
            &serial,
            "% of the time",
            "run queue",
        ),
        Evidence::of(
            "idle meanwhile",
            facts.leaf_pct(Leaf::Serial),
            "% of capacity",
            Leaf::Serial.source(),
        ),
        Evidence::of(
            "idle without any waiting thread",
            facts.leaf_pct(Leaf::NoWork),
            "% of capacity",
            Leaf::NoWork.source(),
        ),
    ];
    if let Some(longest) = facts.workers.first() {
        let metric = format!("longest running thread: {}", facts.name(longest.0));
        f.evidence.push(Evidence::checked(metric, &running(longest), "% of its life", "procs"));
    }
    if let Some(server) = facts.judged.server {
        let metric = format!("waiting time ended by {}", facts.name(server.slot));
        let ended = facts.at_least(server.ended_pct(), server.ends_limit());
        f.evidence.push(Evidence::checked(metric, &ended, "%", "wake-ups"));
    }
    if lone {
        let workers = facts.workers.len() as f64;
        f.evidence.push(Evidence::of("recorded threads with work", workers, "threads", "procs"));
    }
    f.evidence.extend(cost(facts, &f));
    f.culprits = match story {
        Story::Server { server } => culprits::server(facts, server),
        Story::Barrier => culprits::barriers(facts),
        Story::LoneThread { slot } | Story::OneThread { slot } => culprits::alone(facts, slot),
        Story::Serial { .. } => culprits::busiest(facts),
        Story::Bound => culprits::queued(facts),
        Story::Spread => dominant.first.map_or(Vec::new(), |slot| culprits::alone(facts, slot)),
    };
    // Who waits for it at a barrier is not served by it.
    if matches!(story, Story::Server { .. }) && f.culprits.iter().any(|c| c.kind == "barrier") {
        f.advice = vec![EVENLY.to_owned()];
    }
    f
}
