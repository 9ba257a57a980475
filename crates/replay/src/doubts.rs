//! Reasons not to trust a replay.

use crate::prediction::Prediction;
use crate::program::Program;
use holdup_passes::Analysis;
use holdup_passes::limits::MATTERS;
use holdup_trace::{QualityCode, Severity};

/// The relative error of the unchanged replay's time, in per cent.
pub fn off_pct(program: &Program, unchanged: &Prediction) -> f64 {
    (unchanged.wall_ns as f64 / program.traced_wall_ns.max(1) as f64 - 1.0) * 100.0
}

/// Reasons not to trust replays of a trace whose unchanged replay is off by this many per cent;
/// empty if there are none. The error is about the same under every change, so a larger gain
/// remains a gain.
pub fn doubts(analysis: &Analysis, off_pct: f64) -> Vec<String> {
    let mut doubts = Vec::new();
    if off_pct.abs() > analysis.limit(&MATTERS) {
        let (pct, way) = (off_pct.abs(), if off_pct < 0.0 { "less" } else { "more" });
        doubts.push(format!(
            "a replay without changes takes {pct:.1} % {way} time than the trace did: the figures \
             mean little, because replays with changes have the same error"
        ));
    }
    let able = &analysis.capabilities;
    if !able.wakeups && !able.wakers {
        doubts.push(
            "no wake-ups were recorded (sched:sched_waking): it is unknown which thread waited for \
             which, so every wait keeps its length, and the figures mean little"
                .to_owned(),
        );
    }
    let damage: Vec<&str> = analysis
        .quality
        .entries()
        .iter()
        .filter(|entry| entry.severity == Severity::Error)
        .map(|entry| entry.code)
        .collect();
    if !damage.is_empty() {
        doubts.push(format!(
            "part of the trace is missing ({}): the replay lacks the events of that part",
            damage.join(", ")
        ));
    }
    if analysis.quality.count(QualityCode::NotSystemWide) > 0 {
        doubts.push(
            "only some threads were recorded: the replay lacks all other threads and the CPU time \
             that they took"
                .to_owned(),
        );
    }
    doubts
}
