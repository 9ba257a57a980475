//! What to say beside the rows.

use holdup_passes::Analysis;
use holdup_render::{WhatifHead, WhatifRow};
use holdup_trace::{QualityCode, Severity};

/// A replay that misses the trace by more, in per cent, misses its changes by more too.
const WELL_MET_PCT: f64 = 2.0;

/// Reasons not to trust the figures.
pub(super) fn doubts(head: &WhatifHead, rows: &[WhatifRow], analysis: &Analysis) -> Vec<String> {
    let mut doubts = Vec::new();
    if head.replay_off_pct.abs() > WELL_MET_PCT {
        let (pct, way) =
            (head.replay_off_pct.abs(), if head.replay_off_pct < 0.0 { "less" } else { "more" });
        doubts.push(format!(
            "the unchanged replay takes {pct:.1} % {way} than was traced: the figures mean little, \
             as what it misses it misses under every change"
        ));
    }
    let able = &analysis.capabilities;
    if !able.wakeups && !able.wakers {
        doubts.push(
            "no wake-ups were recorded (sched:sched_waking): nobody knows who waited for whom, so \
             every wait keeps its length, and little can be said"
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
            "part of the trace is missing ({}): the replay does not have what happened there",
            damage.join(", ")
        ));
    }
    if analysis.quality.count(QualityCode::NotSystemWide) > 0 {
        doubts.push(
            "only some tasks were recorded: the replay lacks the others, and what they took"
                .to_owned(),
        );
    }
    let forced = rows.iter().filter(|row| row.forced > 0).count();
    if forced > 0 {
        doubts.push(format!(
            "in {forced} of {} rows threads waited for each other in a ring, and one had to be let \
             go (column forced): the more often, the less such a row means",
            rows.len()
        ));
    }
    doubts
}

/// Remarks below the table.
pub(super) fn notes(alternatives: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if alternatives {
        notes.push("no row has all changes together, as two of them change the same".to_owned());
    }
    notes.push(
        "a figure is that of the traced work done again in its traced order on a simulated \
         machine: it does not know what threads would do otherwise (docs/models.md)"
            .to_owned(),
    );
    notes
}
