//! Programs that are not the work: what they took, and what to do about them.

use crate::facts::Facts;
use crate::report::{Background, BackgroundProgram};
use holdup_attribution::limits::NAMED;
use holdup_passes::percent;

/// What to do about other programs that take the CPUs.
pub(crate) const KEEP_OFF: &str = "keep the other programs off some CPUs (AllowedCPUs= of \
     systemd, cpusets), or give the work more weight (nice, CPUWeight=)";

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
