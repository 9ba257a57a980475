//! Remarks in addition to the rows.

use holdup_attribution::Resource;
use holdup_passes::Analysis;
use holdup_render::{WhatifHead, WhatifRow};
use holdup_replay::words::{fixes, shown, subjects};
use holdup_replay::{self as replay, Change, Estimate, LockChange, ObjectId, Program, next};

/// Reasons not to trust the figures.
pub(super) fn doubts(
    head: &WhatifHead,
    rows: &[WhatifRow],
    analysis: &Analysis,
    program: &Program,
) -> Vec<String> {
    let mut doubts = replay::doubts(analysis, head.replay_off_pct);
    let forced = rows.iter().filter(|row| row.forced > 0).count();
    if forced > 0 {
        doubts.push(format!(
            "in {forced} of {} rows, threads waited for each other in a cycle, and one of them had \
             to be released (column forced): the more often that happened, the less reliable the \
             row is",
            rows.len()
        ));
    }
    let fought = program.objects.iter().zip(0..).filter(|&(object, id)| {
        let gone = shown(program, &[Change::Lock(ObjectId(id), LockChange::None)]);
        object.is_contended && rows.iter().any(|row| row.gains() && row.change.contains(&gone))
    });
    for (object, _) in fought {
        doubts.push(format!(
            "threads contend for {} without sleeping: this also slows them down while they do not \
             hold it, which a replay cannot see, so removing it may gain more than is shown",
            object.name
        ));
    }
    doubts
}

/// Remarks below the table.
pub(super) fn notes(alternatives: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if alternatives {
        notes.push(
            "no row combines all changes, because two of them change the same thing".to_owned(),
        );
    }
    notes.push(
        "the figures are for the traced work, replayed on a simulated machine by each thread in \
         its traced order: a replay does not know what threads would do differently \
         (docs/models.md)"
            .to_owned(),
    );
    notes
}

/// The conclusions of a ranking: which fix gains most, and what the bottleneck is after that fix.
/// `rows` are the rows of the ranking.
pub(super) fn conclusions(
    program: &Program,
    ranking: &[Estimate],
    rows: &[WhatifRow],
) -> Vec<String> {
    let gaining = || ranking.iter().zip(rows).filter(|(_, row)| row.gains());
    let Some((best, row)) = gaining().next() else {
        return vec![
            "No change that was tried makes the work faster: what remains is to reduce the work, \
             or to divide it differently among threads."
                .to_owned(),
        ];
    };
    let alone = |of: &Estimate| fixes(program, &of.change);
    let mut said = vec![format!("Worth most: {}, at most {}.", alone(best), row.gain_in_words())];
    let next = next(program, ranking).and_then(|n| Some((ranking.get(n.row)?, n.gain)));
    match next.filter(|_| ranking.first() == Some(best)) {
        Some((then, gain)) => said.push(format!(
            "After that, the next bottleneck is {}; {} as well gives another {gain:.2}x.",
            subjects(program, &then.change),
            alone(then),
        )),
        None => said.push("After that, no change that was tried gains more.".to_owned()),
    }
    if best.resource == Resource::Cpus
        && let Some((other, row)) = gaining().find(|(other, _)| other.resource != Resource::Cpus)
    {
        let gain = row.gain_in_words();
        said.push(format!("With the present number of CPUs: {}, at most {gain}.", alone(other)));
    }
    // One paragraph.
    vec![said.join(" ")]
}
