//! Remarks in addition to the rows.

use super::fix::{Fix, Known};
use holdup_attribution::Resource;
use holdup_diagnose::Basis;
use holdup_passes::Analysis;
use holdup_render::{WhatifHead, WhatifRow};
use holdup_replay::words::{shown, subjects};
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
            "in {forced} of {} rows, threads waited for each other in a cycle, and the replay had \
             to release one of them (column forced): the more often this happened, the less \
             reliable the row is",
            rows.len()
        ));
    }
    let fought = program.objects.iter().zip(0..).filter(|&(object, id)| {
        let gone = shown(program, &[Change::Lock(ObjectId(id), LockChange::None)]);
        let is_gone = |row: &WhatifRow| row.change.as_ref().is_some_and(|of| of.contains(&gone));
        object.is_contended && rows.iter().any(|row| row.gains() && is_gone(row))
    });
    for (object, _) in fought {
        doubts.push(format!(
            "threads contend for {} without sleeping: this slows them down even while they do not \
             hold the lock, which a replay does not show, so a change of the lock may gain more \
             than is shown",
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
            "no row combines all changes, because two of the changes are about the same \
             object"
                .to_owned(),
        );
    }
    notes.push(
        "the figures are from a replay of the traced work on a simulated machine, in which each \
         thread does what it did in the trace, in the same order: in reality, threads may act \
         differently after a change (docs/models.md)"
            .to_owned(),
    );
    notes
}

/// The conclusions of a ranking: which fix gains most, and what the bottleneck is after that fix.
/// `verdict` is the fix that `holdup diagnose` names, by its index.
pub(super) fn conclusions(program: &Program, fixes: &[Fix], verdict: Option<usize>) -> Vec<String> {
    let gaining = || fixes.iter().filter(|fix| fix.row.gains());
    let Some(best) = verdict.map(|at| &fixes[at]).or_else(|| gaining().next()) else {
        return vec![
            "No change that was tried makes the work faster: reduce the work, or divide it \
             differently among threads."
                .to_owned(),
        ];
    };
    let most = match verdict {
        Some(at) if at > 0 => "The surest gain",
        _ => "The largest gain",
    };
    let said = format!("{most}: {}, {}", best.row.fix, at_most(&best.row));
    let estimate = match &best.known {
        Known::Estimated(estimate) => estimate,
        // A bound from the ledger, because no replay can make the change.
        Known::Ledger(finding) => return vec![format!("{said}: {}.", finding.summary)],
    };
    let mut said = vec![format!("{said}.")];
    let others = || fixes.iter().filter(|fix| !std::ptr::eq(*fix, best));
    let order: Vec<&Fix> = std::iter::once(best).chain(others()).collect();
    let estimates: Vec<Estimate> =
        order.iter().filter_map(|fix| fix.known.estimate().cloned()).collect();
    match next(program, &estimates).and_then(|n| Some((estimates.get(n.row)?, n.gain))) {
        Some((then, gain)) => said.push(format!(
            "After that, the next bottleneck is {}. A second change ({}) makes the work {gain:.2} \
             times as fast as the first change alone.",
            subjects(program, &then.change),
            replay::words::fixes(program, &then.change),
        )),
        None => said
            .push("After that, no second change that was tried makes the work faster.".to_owned()),
    }
    let of_cpus = |fix: &Fix| fix.row.kind == Resource::Cpus.word();
    if estimate.resource == Resource::Cpus
        && let Some(other) = gaining().find(|fix| !of_cpus(fix))
    {
        let gain = at_most(&other.row);
        said.push(format!("With the present number of CPUs: {}, {gain}.", other.row.fix));
    }
    // One paragraph.
    vec![said.join(" ")]
}

/// A gain, which is no promise.
fn at_most(row: &WhatifRow) -> String {
    let gain = row.gain_in_words();
    match row.basis {
        Basis::Bound => gain,
        Basis::Replayed | Basis::Chains => format!("at most {gain}"),
    }
}
