//! More work than processors.
//!
//! # What it does
//! Asks whether the CPUs are busy while threads queue for them. It costs no capacity, so its loss
//! is not comparable with the others': it is the CPU time that queueing threads lacked, at most
//! the capacity itself, and it counts only where CPUs have no idle time left to give.
//!
//! # What to do
//! Nothing is wrong with the multiprocessor: more CPUs, or less work at a time.
//!
//! Source: PARbench on the p690, loads above 100 %.

use super::{Fixtures, MATTERS, Rule, finding};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::{Total, thresholds};

pub(super) const RULE: Rule = Rule {
    id: "cpu-overload",
    class: Class::CpuOverload,
    check,
    file: include_str!("cpu_overload.rs"),
    needs: &["switches"],
    thresholds: &[&[MATTERS], THRESHOLDS],
    fixtures: Fixtures {
        positive: "over_cpu_x3_c2/perf.data",
        negative: "healthy_cpu_threads_c4/perf.data",
    },
};

thresholds! {
    /// Also that of [`crate::metrics`].
    pub(crate) BUSY = "cpu-overload.busy_pct", 85.0, "% of capacity",
        meaning: "CPUs less busy than this are not overloaded, where only figures are given \
                  (--metrics)",
        source: "PARbench on the p690: overload is load beyond 100 %; figures over an interval \
                 include its quiet moments";
    /// Also that of [`crate::metrics`].
    pub(crate) QUEUE = "cpu-overload.queue_per_cpu", 1.25, "threads",
        meaning: "threads per CPU that run or want to, below which there is no queue",
        source: "PARbench on the p690: 1 is a full load; recorders and daemons add some \
                 hundredths per CPU";
    FULL = "cpu-overload.full_pct", 50.0, "% of CPU time",
        meaning: "part of all CPU time that is used while no CPU is idle; with less the load is \
                  a passing one",
        source: "more often than not; of CPU time rather than of the wall time, as recordings \
                 begin before the work does";
}

fn check(facts: &Facts<'_>) -> Finding {
    let cpus = facts.analysis.cpus.max(1) as f64;
    let (full_ns, queue_milli) = facts.analysis.full();
    let of_time = full_ns as f64 * 100.0 / facts.wall.max(1) as f64;
    let full = (full_ns as f64 * cpus * 100.0 / facts.total(Total::Busy).max(1) as f64).min(100.0);
    let queue = queue_milli as f64 / 1000.0 / cpus;
    let often = facts.at_least(full, &FULL);
    let then = facts.at_least(queue, &QUEUE);
    let all_along = facts.at_least(facts.queue / cpus, &QUEUE);
    let lost = facts.ready.min(facts.capacity);
    let summary = format!(
        "no CPU is idle for {of_time:.0} % of the time, when {:.1} threads want {cpus} CPUs",
        queue * cpus
    );
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::of("CPUs busy", facts.busy(), "% of accounted time", "ledger busy"),
        Evidence::of("no CPU idle", of_time, "% of the time", "run queue"),
        Evidence::checked("CPU time used then", &often, "% of all", "run queue"),
        Evidence::checked("threads running or ready then, per CPU", &then, "threads", "run queue"),
        Evidence::checked("the same, all along", &all_along, "threads", "run queue"),
        Evidence::of(
            "CPU time that ready threads lacked",
            facts.pct(facts.ready),
            "% of capacity",
            "procs runnable",
        ),
    ];
    f.ruled_out = if all_along.holds() {
        None
    } else if !often.holds() {
        Some(format!(
            "CPUs are only {:.0} % busy, all of them {of_time:.0} % of the time",
            facts.busy()
        ))
    } else if !then.holds() {
        Some(format!("only {queue:.2} threads per CPU run or want to"))
    } else {
        None
    };
    f.culprits = culprits::busiest(facts);
    f.advice = vec![
        "run fewer threads at a time, or add CPUs: the CPUs do useful work all the time".to_owned(),
    ];
    f
}
