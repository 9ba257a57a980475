//! The gain of each possible fix, ranked; with what the verdict estimates where no replay can make
//! the change.

use super::fix::{Fix, Known};
use super::{Answer, row, words};
use holdup_attribution::{Attribution, Leaf, Thresholds};
use holdup_diagnose::phases::Judged;
use holdup_diagnose::{Basis, Finding, Replays, diagnose_again};
use holdup_render::WhatifRow;
use holdup_replay::{
    self as replay, Depth, Estimate, Estimates, Prediction, Program, estimate, off_pct,
};
use holdup_trace::TraceInfo;
use std::cmp::Reverse;

/// The gain of each possible fix, the largest first.
pub(super) fn ranked(
    info: &TraceInfo,
    judged: &Judged,
    attribution: &Attribution<'_>,
    program: &Program,
) -> Answer {
    let found = estimate(program, attribution, Depth::Each);
    let holding = holding(info, judged, attribution, program, &found);
    let Estimates { unchanged, rows, .. } = found;
    let mut fixes: Vec<Fix> = Vec::new();
    for estimate in rows {
        let row = row_of(program, &estimate, &unchanged);
        // If an object has one part, fixing the part equals fixing the object.
        if !fixes.iter().any(|other| other.row.change == row.change) {
            fixes.push(Fix { known: Known::Estimated(estimate), row });
        }
    }
    let best = holding.first().map(|finding| (finding.worth.change.clone(), finding.class));
    let bounds = holding.into_iter().filter(|finding| finding.worth.change.is_none());
    fixes.extend(bounds.map(|finding| {
        let row = bound(&finding, &unchanged);
        Fix { known: Known::Ledger(finding), row }
    }));
    fixes.sort_by_key(|fix| (fix.row.wall_ns, fix.known.estimate().map(|e| e.resource)));
    let best = best.and_then(|(change, class)| {
        fixes.iter().position(|fix| match &fix.known {
            Known::Estimated(_) => change.is_some() && fix.row.change == change,
            Known::Ledger(finding) => change.is_none() && finding.class == class,
        })
    });
    let conclusions = words::conclusions(program, &fixes, best);
    let unchanged_row = row(program, &[], &unchanged, &unchanged);
    let rows = std::iter::once(unchanged_row).chain(fixes.into_iter().map(|fix| fix.row)).collect();
    let off_pct = off_pct(program, &unchanged);
    Answer { off_pct, rows, conclusions, notes: words::notes(false) }
}

/// The findings of `holdup diagnose` that hold, the verdict's first.
fn holding(
    info: &TraceInfo,
    judged: &Judged,
    attribution: &Attribution<'_>,
    program: &Program,
    found: &Estimates,
) -> Vec<Finding> {
    let replays = Replays::of_estimates(attribution, program, found);
    let limits = Thresholds::default();
    let diagnosis = diagnose_again(info, judged, None, limits, Some(replays));
    diagnosis.findings.into_iter().filter(|f| f.ruled_out.is_none()).collect()
}

fn row_of(program: &Program, of: &Estimate, unchanged: &Prediction) -> WhatifRow {
    WhatifRow {
        kind: of.resource.word(),
        fix: replay::words::fixes(program, &of.change),
        basis: Basis::of(of),
        ..row(program, &of.change, &of.prediction, unchanged)
    }
}

/// A finding whose gain the ledger bounds, because no replay can make the change.
fn bound(finding: &Finding, unchanged: &Prediction) -> WhatifRow {
    let times = finding.worth.times.max(1.0);
    let wall_ns = (unchanged.wall_ns as f64 / times) as u64;
    let leaf = |path| Leaf::ALL.iter().find(|leaf| leaf.path() == path);
    let largest = finding.leaves.iter().max_by_key(|part| (part.ns, Reverse(part.path)));
    let resource = largest.and_then(|part| leaf(part.path)?.lost_to());
    let gain = unchanged.wall_ns as f64 / wall_ns.max(1) as f64;
    WhatifRow {
        fix: format!("removing the CPU time that {} costs", finding.class.id()),
        kind: resource.map_or("several", |resource| resource.word()),
        wall_ns,
        wall_low_ns: wall_ns,
        wall_high_ns: unchanged.wall_ns,
        gain: Some(gain),
        basis: Basis::Bound,
        beyond_chance: true,
        throughput_pct: Some((gain - 1.0) * 100.0),
        throughput_low_pct: Some(0.0),
        throughput_high_pct: Some((gain - 1.0) * 100.0),
        ..WhatifRow::default()
    }
}
