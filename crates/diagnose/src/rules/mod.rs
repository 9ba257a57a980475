//! The rules: one file each, whose description is its manual page.
//!
//! A rule states its claim as CPU time lost. It holds where that loss reaches [`MATTERS_PCT`] of
//! capacity and nothing in its own file rules it out.

mod application_serialization;
mod cpu_overload;
mod funneled_driver;
mod io_bound;
mod kernel_lock_conflict;
mod mp_up_overhead;
mod thread_serialization;
mod workload_imbalance;

use crate::facts::Facts;
use crate::report::{Class, Finding};
use holdup_passes::percent;

/// A rule.
pub struct Rule {
    /// Stable id.
    pub id: &'static str,
    /// What it is about.
    pub class: Class,
    /// Look at the facts.
    pub check: fn(&Facts<'_>) -> Finding,
}

/// Every rule.
pub const ALL: &[Rule] = &[
    workload_imbalance::RULE,
    application_serialization::RULE,
    thread_serialization::RULE,
    kernel_lock_conflict::RULE,
    funneled_driver::RULE,
    mp_up_overhead::RULE,
    io_bound::RULE,
    cpu_overload::RULE,
];

/// A loss below this part of capacity, in per cent, is not worth a verdict: the healthy recordings
/// of the labelled corpus lose up to 10 % to start-up, wake-up delays and the recorder itself.
pub const MATTERS_PCT: f64 = 15.0;

/// A finding that costs `lost` and holds if that matters.
fn finding(facts: &Facts<'_>, rule: &Rule, lost: u64, summary: String) -> Finding {
    let pct = facts.pct(lost);
    Finding {
        class: rule.class,
        rule: rule.id,
        share: percent(lost, facts.capacity),
        lost_cpu_ns: lost,
        summary,
        culprits: Vec::new(),
        evidence: Vec::new(),
        ruled_out: (pct < MATTERS_PCT).then(|| format!("costs {pct:.1} % of capacity; below {MATTERS_PCT} % nothing is worth changing")),
        advice: Vec::new(),
    }
}
