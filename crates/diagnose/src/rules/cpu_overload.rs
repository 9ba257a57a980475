//! More threads are ready to run than there are CPUs.
//!
//! # What it does
//! It measures for how long threads were ready while no CPU was idle. This waiting wastes no
//! capacity, so the cost in the ledger is 0. What counts is the CPU time that the waiting threads
//! lacked. If the trace can be replayed, the rule fires only if a replay on more CPUs is faster. In
//! this replay, programs other than the traced ones take no CPU time from the work. So the rule
//! also fires if such programs take the CPUs; the report then names them. CPU time of the recorder
//! is not counted. System calls that cost more because of threads on other CPUs cost still more in
//! a replay on more CPUs.
//!
//! # What to do
//! Add CPUs, or run fewer threads at a time. If other programs take the CPUs, keep them off some
//! CPUs (`AllowedCPUs=`, cpusets), or give the work more weight (`nice`, `CPUWeight=`).
//!
//! Source: PARbench on the p690, loads above 100 %.

use super::{Explanation, Fixtures, Rule, finding};
use crate::culprits;
use crate::facts::Facts;
use crate::others::{KEEP_OFF, background};
use crate::report::{Class, Evidence, Finding};
use crate::worth::Worth;
use holdup_attribution::limits::{MATTERS, QUEUE};
use holdup_attribution::{Leaf, Total};

pub(super) const RULE: Rule = Rule {
    id: "cpu-overload",
    class: Class::CpuOverload,
    check,
    file: include_str!("cpu_overload.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS, QUEUE],
    fixtures: Fixtures {
        positive: "over_cpu_x3_c2/perf.data",
        negative: "healthy_cpu_threads_c4/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    let cpus = facts.analysis.cpus.max(1) as f64;
    let (full_ns, queue_milli) = facts.analysis.full();
    let of_time = full_ns as f64 * 100.0 / facts.wall.max(1) as f64;
    let queue = facts.at_least(queue_milli as f64 / 1000.0 / cpus, &QUEUE);
    // A thread that is ready while a CPU idles lacks another CPU, or waits for that one to wake up.
    // And a thread that is woken by one that goes to sleep gets its CPU.
    let elsewhere = facts.leaf(Leaf::Scheduler) + facts.handed;
    let lacked_ns = facts.ready.saturating_sub(elsewhere).min(facts.capacity);
    let occupied = facts.analysis.occupied_ns().max(1) as f64;
    let demand = facts.at_least(facts.demand as f64 / occupied / cpus, &QUEUE);
    let lacked = facts.at_least(facts.pct(lacked_ns), &MATTERS);
    let mut explanation = Explanation {
        story: "more-threads-than-cpus",
        summary: format!(
            "for {of_time:.0} % of the time no CPU is idle, while {:.1} threads compete for \
             {cpus} CPU{}",
            queue.value * cpus,
            if cpus > 1.0 { "s" } else { "" }
        ),
        advice: vec![
            "run fewer threads at a time, or add CPUs: the CPUs are busy with useful work"
                .to_owned(),
        ],
    };
    let others = &facts.judged.background;
    let others_pct = facts.pct(others.ns - others.recorder_ns());
    if facts.at_least(others_pct, &MATTERS).holds() {
        let listed = background(facts).listed();
        explanation.summary += &format!(
            "; programs other than the traced ones take {others_pct:.0} % of capacity ({listed})"
        );
        explanation.advice.insert(0, KEEP_OFF.to_owned());
    }
    let lacked_pct =
        lacked_ns as f64 * 100.0 / (facts.total(Total::Busy) + lacked_ns).max(1) as f64;
    let worth = Worth::bound(lacked_pct);
    let mut f = Finding {
        lacked_ns,
        demand: worth.times,
        worth,
        is_too_little: false,
        ..finding(facts, &RULE, explanation)
    };
    f.evidence = vec![
        Evidence::checked(
            "CPU time that ready threads lacked while no CPU was idle",
            &lacked,
            "% of capacity",
            "procs runnable",
        ),
        Evidence::checked(
            "threads running or ready while no CPU was idle, per CPU",
            &queue,
            "threads",
            "run queue",
        ),
        Evidence::checked(
            "application threads running or ready while at least one is, per CPU",
            &demand,
            "threads",
            "procs",
        ),
        Evidence::of(
            "threads running or ready over the whole trace, per CPU",
            facts.queue / cpus,
            "threads",
            "run queue",
        ),
        Evidence::of("CPUs busy", facts.busy(), "% of accounted time", "ledger busy"),
        Evidence::of("time with no idle CPU", of_time, "% of the time", "run queue"),
    ];
    f.ruled_out = if !lacked.holds() {
        Some(format!(
            "the CPU time that ready threads lacked is {:.1} % of capacity; it is an overload from \
             {} % on",
            lacked.value, lacked.limit
        ))
    } else if !demand.holds() {
        Some(format!(
            "only {:.2} application threads per CPU run or are ready, without the recorder",
            demand.value
        ))
    } else if !queue.holds() {
        Some(format!("only {:.2} threads per CPU ran or were ready", queue.value))
    } else {
        None
    };
    f.culprits = culprits::programs(facts);
    f
}
