//! How long the work would take.

use crate::change::{Change, ChangeError, View};
use crate::program::Program;
use crate::simulate::simulate;
use holdup_trace::Nanos;

/// How often a replay is repeated, each time with other ties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds(u32);

impl Seeds {
    /// As many as make a band: fewer of long traces, where chance evens out.
    pub fn of(program: &Program) -> Seeds {
        match program.steps() {
            0..100_000 => Seeds(9),
            100_000..1_000_000 => Seeds(5),
            _ => Seeds(3),
        }
    }

    /// One replay, without chance.
    pub const ONE: Seeds = Seeds(1);
}

/// What a change would make of the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Time of the work: the median of all seeds.
    pub wall_ns: Nanos,
    /// The shortest.
    pub wall_low_ns: Nanos,
    /// The longest.
    pub wall_high_ns: Nanos,
    /// In the replay of the median: times that threads waited for each other in a ring, which the
    /// trace did not have, and one was let go. Many of them, and the figure means little.
    pub forced: u64,
    /// CPU time of each thread, by its number in [`Program::threads`].
    pub run_ns: Vec<Nanos>,
}

/// Replay `program` with `changes`.
///
/// # Errors
/// One of the changes cannot be made.
pub fn predict(
    program: &Program,
    changes: &[Change],
    seeds: Seeds,
) -> Result<Prediction, ChangeError> {
    let view = View::new(program, changes)?;
    let mut runs: Vec<_> = (0..seeds.0).map(|seed| simulate(&view, u64::from(seed))).collect();
    runs.sort_by_key(|run| run.wall_ns);
    let (low, high) = (runs[0].wall_ns, runs[runs.len() - 1].wall_ns);
    let median = runs.swap_remove(runs.len() / 2);
    Ok(Prediction {
        wall_ns: median.wall_ns,
        wall_low_ns: low,
        wall_high_ns: high,
        forced: median.forced,
        run_ns: median.run_ns,
    })
}
