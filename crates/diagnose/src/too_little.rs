//! Traces that are too small to judge a machine by, whatever the figures say.
//!
//! Shares of capacity can be computed from three milliseconds, from four switches, or from the one
//! event in a thousand that the recorder kept, but they do not show how the machine behaves. So
//! such a trace gets no verdict.

use crate::facts::Facts;
use holdup_trace::QualityCode;

/// A dozen time slices of a fair scheduler, 3 to 4 ms each: a shorter trace shows a moment.
const LEAST_MS: f64 = 50.0;
/// A CPU that runs one thread, or none, still runs the kernel's housekeeping: the worker that folds
/// its counters once a second (`vm.stat_interval`). Below half of that, most are missing.
const LEAST_SWITCHES_PER_S: f64 = 0.5;

/// Why no verdict is possible, if the trace is too small or lost too many events.
pub(crate) fn too_little(facts: &Facts<'_>) -> Option<String> {
    let a = facts.analysis;
    let wall_ms = facts.wall as f64 / 1e6;
    if wall_ms < LEAST_MS {
        return Some(format!(
            "the trace is only {wall_ms:.1} ms long, which is too short to show how the system \
                behaves"
        ));
    }
    // More events lost than kept: the rest is a sample of moments.
    if a.lost_events > a.events {
        let lost = a.lost_events as f64 * 100.0 / (a.lost_events + a.events) as f64;
        return Some(format!("the recorder lost {lost:.1} % of the events"));
    }
    let switches: u64 = a.cpu_rows().iter().map(|c| c.switches).sum();
    let rate = switches as f64 * 1e9 / facts.capacity.max(1) as f64;
    if rate < LEAST_SWITCHES_PER_S {
        return Some(format!(
            "{switches} context switches in {:.1} s on {} CPUs are too few: most of them must be \
             missing",
            facts.wall as f64 / 1e9,
            a.cpus
        ));
    }
    // A window may leave out what a CPU did show; chosen tasks may never run on some CPUs.
    let whole = facts.info.span == Some((a.start, a.end));
    let silent = a.quality.count(QualityCode::SilentCpu);
    let pct = silent as f64 * 100.0 / f64::from(a.cpus.max(1));
    if whole && !facts.tasks_only() && silent > 0 && pct >= facts.too_much() {
        return Some(format!(
            "{silent} of {} CPUs have no event that shows what they did: perhaps they were not \
             recorded",
            a.cpus
        ));
    }
    None
}
