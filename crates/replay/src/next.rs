//! The bottleneck that remains once the best change is made.

use crate::change::Change;
use crate::estimate::Estimate;
use crate::predict::{Seeds, predict_all};
use crate::program::Program;

/// The number of next-best changes that are tried together with the best one.
const SECONDS: usize = 5;
/// A smaller speed-up is no gain.
const GAINS: f64 = 1.005;

/// The largest bottleneck that remains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Next {
    /// Its index among the rows.
    pub row: usize,
    /// How many times as fast removing it too would be, compared with the best change alone.
    pub gain: f64,
}

/// The best of `rows` to remove once the first is removed; `None` if no gain is left.
pub fn next(program: &Program, rows: &[Estimate]) -> Option<Next> {
    let best = rows.first()?;
    let others = || rows.iter().enumerate().skip(1).take(SECONDS);
    let with = |more: &[Change]| {
        let mut both = best.change.clone();
        both.extend(more.iter().filter(|c| !best.change.contains(c)).cloned());
        both
    };
    let pairs: Vec<Vec<Change>> = others().map(|(_, row)| with(&row.change)).collect();
    let after = predict_all(program, &pairs, Seeds::ONE);
    let times = others().zip(after).filter_map(|((at, _), p)| Some((p.ok()?.wall_ns, at)));
    let (wall_ns, row) = times.min()?;
    let gain = best.prediction.wall_ns as f64 / wall_ns.max(1) as f64;
    (gain > GAINS).then_some(Next { row, gain })
}
