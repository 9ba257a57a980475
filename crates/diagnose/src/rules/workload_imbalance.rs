//! Too little parallelism.
//!
//! # What it does
//! It adds up the idle CPU time that additional threads with work would have used:
//! * **one server**: other threads sleep until one thread, which is busy nearly all the time, has
//!   served them (AIX case 4, docs/cases/aix-4-server.md), or until the slowest worker reaches the
//!   barrier;
//! * **few threads**: one application thread, or a few but fewer than there are CPUs, run nearly
//!   all the time, while no other thread has work;
//! * **one at a time**: only one application thread has work at any time, but it is not always the
//!   same thread. Examples are a build without `-j`, two processes that wait for each other's
//!   answers, and a single goroutine or async task that the runtime moves from thread to thread. If
//!   one process is known to be the traced program, only this process is judged, so that background
//!   load does not hide the problem;
//! * **bound threads**: threads are ready and CPUs are idle, but affinity keeps the threads off the
//!   idle CPUs.
//!
//! If threads or processes of one kind have different amounts of work, the CPUs of those that end
//! early are idle. A replay divides the work evenly among them, and the gain of this replay
//! decides. The same is done for each round in which one thread gives other threads parts of the
//! work and waits until all parts are done (fork and join).
//!
//! Threads may spin in user mode until the last thread arrives, which samples of the running code
//! show (see thread-serialization). If one thread has most of the work of its program, while the
//! other threads spin most of their time (`busy/barrier-spin`), a replay divides the work of this
//! thread among all of them. If it is a different thread each time, samples do not distinguish this
//! spinning from spinning for a lock.
//!
//! The workers of a server may sleep before a request is done, for example while they wait for an
//! answer of another machine, although more requests wait than there are workers. These workers
//! hardly use a CPU, and no CPU is idle because of them. A replay gives the server a second worker
//! for each of them, and the gain of this replay decides. Clients may reach the workers through a
//! proxy or a pool of connections.
//!
//! # Why it holds a system up
//! When all work goes through one thread, the other CPUs have nothing to do. The sign is that only
//! one CPU is busy, and that one thread uses nearly 100 % of it.
//!
//! # What to do
//! Split the server into several processes or threads. Divide the work evenly. Widen the CPU
//! affinity. Use more workers if the workers only sleep.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Workload Imbalance and case 4.

use super::{DIVIDE, EVENLY, Explanation, Fixtures, Rule, cost, costing, in_cpus, lost};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding, Part};
use holdup_attribution::limits::{ALONE, MATTERS, SERVER_ENDS};
use holdup_attribution::{JudgedObject, Leaf, Server};
use holdup_passes::{Slot, percent};
use holdup_trace::Nanos;

pub(super) const RULE: Rule = Rule {
    id: "workload-imbalance",
    class: Class::WorkloadImbalance,
    check,
    file: include_str!("workload_imbalance.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS, ALONE, SERVER_ENDS],
    fixtures: Fixtures {
        positive: "imb_server_c4/perf.data",
        negative: "ser_semop_perf_c8/perf.data",
    },
};

/// What the rule reports.
enum Story {
    /// Others wait for one busy thread.
    Server {
        server: Server,
    },
    /// Others wait at barriers for the last to arrive.
    Barrier,
    /// Others spin until this one is done.
    SpinBarrier {
        slot: Slot,
    },
    /// One thread of the only recorded program has work.
    LoneThread {
        slot: Slot,
    },
    /// One thread runs nearly all the time, and for most of it nothing else has work.
    OneThread {
        slot: Slot,
    },
    /// As many threads run nearly all the time, and nothing else has work.
    FewThreads {
        threads: usize,
    },
    /// There is work for one thread at a time, whichever thread that is.
    Serial {
        part: f64,
    },
    /// Threads are ready while CPUs are idle.
    Bound,
    Spread,
}

impl Story {
    fn explain(&self, facts: &Facts<'_>, lost: Nanos) -> Explanation {
        let (cpus, idle) = (facts.analysis.cpus, in_cpus(facts, lost));
        let runs = facts.judged.alone.longest.map_or(0.0, |(_, running)| running.value);
        let (story, summary, advice) = match *self {
            Story::Server { server } => (
                "server",
                format!(
                    "{} is busy {:.0} % of the time on one CPU; other threads wait for it, and \
                        {idle:.1} of {cpus} CPUs have nothing to do",
                    facts.name(server.slot),
                    server.busy_pct(),
                ),
                "split the server into independent processes or threads, so that more than one CPU \
                 can serve",
            ),
            Story::Barrier => (
                "barrier",
                format!(
                    "threads wait at barriers for the thread that arrives last: {idle:.1} of \
                        {cpus} CPUs have nothing to do"
                ),
                EVENLY,
            ),
            Story::SpinBarrier { slot } => (
                "spin-barrier",
                format!(
                    "{} has most of the work, and the other threads spin until it is done: \
                     {idle:.1} of {cpus} CPUs are lost to this spinning",
                    facts.name(slot),
                ),
                EVENLY,
            ),
            Story::LoneThread { slot } => (
                "lone-thread",
                format!(
                    "{} runs for {:.0} % of its life and is the only thread of the program with \
                     work: it cannot use more than one of {cpus} CPUs",
                    facts.name(slot),
                    runs,
                ),
                DIVIDE,
            ),
            Story::OneThread { slot } => (
                "few-threads",
                format!(
                    "{} runs {runs:.0} % of the time, and {}: {idle:.1} of {cpus} CPUs stay idle",
                    facts.name(slot),
                    match facts.judged.alone.few.is_empty() {
                        false => "no other thread has work".to_owned(),
                        true => format!(
                            "for {:.0} % of the time no other thread has work",
                            facts.judged.alone.serial.value
                        ),
                    },
                ),
                DIVIDE,
            ),
            Story::FewThreads { threads } => (
                "few-threads",
                format!(
                    "{threads} threads run nearly all the time, and no other thread has work: \
                        {idle:.1} of {cpus} CPUs stay idle"
                ),
                "divide the work among more threads or processes",
            ),
            Story::Serial { part } => (
                "serial",
                format!(
                    "for {part:.0} % of the time only one thread has work, but no thread runs all \
                     the time: {idle:.1} of {cpus} CPUs stay idle"
                ),
                "let pieces of the work run in parallel (make -j, a pool of workers, a pipeline \
                 that does not wait for each answer)",
            ),
            Story::Bound => (
                "bound",
                format!(
                    "threads are ready to run while {idle:.1} of {cpus} CPUs are idle: the threads \
                        are bound to other CPUs"
                ),
                "widen the CPU affinity of the waiting threads (taskset -p, cpusets)",
            ),
            Story::Spread => {
                return Explanation::plain("spread", "the work is spread over the CPUs");
            }
        };
        Explanation { story, summary, advice: vec![advice.to_owned()] }
    }
}

fn check(facts: &Facts<'_>) -> Finding {
    let alone = &facts.judged.alone;
    let first = alone.longest.filter(|(_, running)| running.holds()).map(|(slot, _)| slot);
    // Only this program was recorded: it could not use the other CPUs, whatever those did.
    let lone = facts.tasks_only() && facts.workers.len() == 1 && first.is_some();
    let mut leaves = lost(facts, Class::WorkloadImbalance);
    if lone {
        let (path, ns) = (Leaf::Unaccounted.path(), facts.leaf(Leaf::Unaccounted));
        leaves.push(Part { path, ns, pct: percent(ns, facts.capacity) });
    }
    let at = |leaf: Leaf| leaves.iter().find(|p| p.path == leaf.path()).map_or(0, |p| p.ns);
    let (served, bound, serial) = (at(Leaf::OneServer), at(Leaf::Bound), at(Leaf::Serial));
    let spun = at(Leaf::BarrierSpin);
    let straggler = facts.judged.user_spinning.iter().find_map(|s| s.straggler);
    let straggler = straggler.filter(|_| spun > served.max(bound).max(serial));
    let story = match (straggler, facts.judged.server, first) {
        (Some(slot), ..) => Story::SpinBarrier { slot },
        (_, Some(server), _) if served > 0 && served >= bound.max(serial) => {
            Story::Server { server }
        }
        (.., Some(slot)) if lone => Story::LoneThread { slot },
        (.., Some(slot)) if !alone.few.is_empty() && serial >= bound => match alone.few.len() {
            1 => Story::OneThread { slot },
            threads => Story::FewThreads { threads },
        },
        (.., first) if serial > 0 && serial >= bound.max(served) => match first {
            Some(slot) => Story::OneThread { slot },
            None => Story::Serial { part: alone.serial.value },
        },
        _ if served > bound.max(serial) => Story::Barrier,
        _ if bound > 0 => Story::Bound,
        _ => Story::Spread,
    };
    let explanation = story.explain(facts, leaves.iter().map(|p| p.ns).sum());
    let mut f = costing(facts, &RULE, leaves, explanation);
    // If no thread is bound the leaf does not exist, and nothing is lost to it.
    let share = |metric: &str, leaf: Leaf| {
        Evidence::of(metric, facts.leaf_pct(leaf), "% of capacity", leaf.source())
    };
    f.evidence = vec![
        share("idle CPU time while threads waited for one busy thread", Leaf::OneServer),
        share("idle CPU time while application threads waited for other CPUs", Leaf::Bound),
        Evidence::checked(
            "time with just one application thread (or one thread of the program) running or ready",
            &alone.serial,
            "% of the time",
            "run queue",
        ),
        share("idle CPU time while just one thread had work", Leaf::Serial),
        share("idle CPU time while no thread had work", Leaf::NoWork),
    ];
    if let Some((slot, running)) = &alone.longest {
        let metric = format!("longest running thread: {}", facts.name(*slot));
        f.evidence.push(Evidence::checked(metric, running, "% of its life", "procs"));
    }
    if let Some(server) = facts.judged.server {
        let metric = format!("part of the waiting time that {} ended", facts.name(server.slot));
        let ended = facts.at_least(server.ended_pct(), &SERVER_ENDS);
        f.evidence.push(Evidence::checked(metric, &ended, "%", "wake-ups"));
    }
    if lone {
        let workers = facts.workers.len() as f64;
        f.evidence.push(Evidence::of("recorded threads with work", workers, "threads", "procs"));
    }
    f.evidence.push(cost(facts, &f));
    f.culprits = match story {
        Story::Server { server } => culprits::server(facts, server),
        Story::Barrier => culprits::barriers(facts),
        Story::SpinBarrier { slot } => {
            let spin = facts.judged.user_spinning.iter().filter(|s| s.straggler.is_some());
            let spin = spin.map(|s| culprits::spinning(facts, s));
            std::iter::once(culprits::runs(facts, slot)).chain(spin).take(3).collect()
        }
        Story::LoneThread { slot } | Story::OneThread { slot } => culprits::alone(facts, slot),
        Story::FewThreads { .. } | Story::Serial { .. } => culprits::busiest(facts),
        Story::Bound => culprits::queued(facts),
        Story::Spread => first.map_or(Vec::new(), |slot| culprits::alone(facts, slot)),
    };
    // A thread that waits for it at a barrier is not served by it. For two threads a barrier looks
    // like handing work back and forth, but waking all waiters hands nothing to one of them.
    let meets = |server: Server| {
        let ended = |o: &&JudgedObject| o.top_waker.is_some_and(|(slot, _)| slot == server.slot);
        let all = facts.judged.objects.values().filter(ended).filter(|o| o.stats.wakes_all);
        all.map(|o| o.stats.wait_ns).sum::<Nanos>() * 2 > server.ended_wait_ns
    };
    let at_barrier = f.culprits.iter().any(|c| c.kind == "barrier");
    if matches!(story, Story::Server { server } if at_barrier || meets(server)) {
        f.advice = vec![EVENLY.to_owned()];
    }
    f
}
