//! Programs that are not the work: what they took, and what to do about them.

use crate::facts::Facts;
use crate::report::{Background, BackgroundProgram};
use holdup_attribution::limits::NAMED;
use holdup_passes::percent;

/// What to do about other programs that take the CPUs.
pub(crate) const KEEP_OFF: &str = "keep the other programs off some CPUs (AllowedCPUs= of \
     systemd, cpusets), or give the work more weight (nice, CPUWeight=)";

/// The share of capacity, in per cent, that makes a verdict less sure because programs other than
/// the work took it. If they take the CPUs from the work, they are the answer: then only the
/// recorder's share counts.
pub(crate) fn unwanted_pct(facts: &Facts<'_>, are_the_answer: bool) -> f64 {
    let others = &facts.judged.background;
    facts.pct(if are_the_answer { others.recorder_ns() } else { others.ns })
}

/// What other programs took, this share of capacity, and which they are.
pub(crate) fn took(facts: &Facts<'_>, pct: f64) -> String {
    let who = background(facts).listed();
    format!("programs other than the traced ones took {pct:.0} % of capacity ({who})")
}

/// The background programs, as in the report.
pub(crate) fn background(facts: &Facts<'_>) -> Background {
    let found = &facts.judged.background;
    let of_capacity = |ns: u64| percent(ns, facts.capacity);
    let named = found.programs.iter().filter(|p| facts.pct(p.ns) >= facts.limit(&NAMED));
    Background {
        ns: found.ns,
        pct: of_capacity(found.ns),
        work_known: found.work_known,
        programs: named
            .map(|p| BackgroundProgram {
                comm: p.comm.clone(),
                cgroup: p.cgroup.clone(),
                ns: p.ns,
                pct: of_capacity(p.ns),
            })
            .collect(),
    }
}
