//! What to say beside the rows.

use holdup_passes::Analysis;
use holdup_render::{WhatifHead, WhatifRow};
use holdup_replay::{Change, Holdup, Program, Ranked, Ranking};
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

/// What a ranking says: what is worth most, and what holds the work up once that is done. `rows`
/// are those of the ranking.
pub(super) fn conclusions(program: &Program, ranking: &Ranking, rows: &[WhatifRow]) -> Vec<String> {
    let gaining = || ranking.rows.iter().zip(rows).filter(|(_, row)| row.gains());
    let Some((best, row)) = gaining().next() else {
        return vec![
            "Nothing that was tried makes the work faster: what is left is to make it less work, \
             or to divide it anew among threads."
                .to_owned(),
        ];
    };
    let alone = |ranked: &Ranked| fix(program, ranked, &subject(program, ranked));
    let mut said = vec![format!("Worth most: {}, at most {}.", alone(best), row.gain_in_words())];
    let next = ranking.next.as_ref().and_then(|n| Some((ranking.rows.get(n.row)?, n.gain)));
    match next.filter(|_| ranking.rows.first() == Some(best)) {
        Some((then, gain)) => said.push(format!(
            "After that the next hold-up is {}; {} too gives another {gain:.2}x.",
            subject(program, then),
            fix(program, then, "it"),
        )),
        None => said.push("After that nothing that was tried gains more.".to_owned()),
    }
    if best.holdup == Holdup::Cpus
        && let Some((other, row)) = gaining().find(|(other, _)| other.holdup != Holdup::Cpus)
    {
        let gain = row.gain_in_words();
        said.push(format!("With the CPUs there are: {}, at most {gain}.", alone(other)));
    }
    // One paragraph.
    vec![said.join(" ")]
}

/// What is done about a hold-up that is called `name`.
fn fix(program: &Program, ranked: &Ranked, name: &str) -> String {
    match &ranked.change {
        Change::Split(_, parts) => format!("sharing the work of {name} among {parts} threads"),
        Change::Cpus(n) => format!("{n} CPUs in place of {}", program.cpus),
        Change::SpreadIrqs => "spreading interrupts over all CPUs".to_owned(),
        Change::NoDevices => "devices that answer at once".to_owned(),
        Change::Speed(_, times) => format!("making {name} {times} times as fast"),
        Change::Lock(..) | Change::Calls { .. } => format!("removing the waiting for {name}"),
    }
}

/// The hold-up itself.
fn subject(program: &Program, ranked: &Ranked) -> String {
    match &ranked.change {
        Change::Lock(id, _) => match program.objects.get(id.0 as usize) {
            Some(object) => object.name.clone(),
            None => "an object".to_owned(),
        },
        Change::Split(i, _) | Change::Speed(i, _) => match program.threads.get(*i) {
            Some(t) => format!("thread {} ({})", t.tid, t.comm),
            None => "a thread".to_owned(),
        },
        Change::Cpus(_) => "too few CPUs".to_owned(),
        Change::SpreadIrqs => "interrupts that few CPUs take".to_owned(),
        Change::NoDevices => "devices".to_owned(),
        Change::Calls { name, .. } => name.clone(),
    }
}
