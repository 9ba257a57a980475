//! How long the work would take.

use crate::change::{Change, ChangeError, View};
use crate::program::{FreeOrder, Program};
use crate::simulate::simulate;
use holdup_trace::Nanos;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// If the order in which threads get locks alone changes the time of the work by more, in per cent,
/// their holds are not what they are taken for: then locks keep the order of the trace.
const ORDER_PCT: f64 = 30.0;

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
#[derive(Clone, Debug, Default, PartialEq)]
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

impl Prediction {
    /// Whether its band and that of the other do not touch.
    pub fn is_beyond_chance(&self, other: &Prediction) -> bool {
        self.wall_high_ns < other.wall_low_ns || self.wall_low_ns > other.wall_high_ns
    }
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
    let mut view = View::new(program, changes)?;
    let order = if view.has_free_order() { Some(free_order(program)?) } else { None };
    let trusted = order.filter(|order| order.off_pct().abs() <= ORDER_PCT);
    view.free_order &= trusted.is_some();
    let mut prediction = replayed(&view, seeds);
    if let Some(order) = trusted {
        prediction.wall_ns = order.as_traced(prediction.wall_ns);
        prediction.wall_low_ns = order.as_traced(prediction.wall_low_ns);
        prediction.wall_high_ns = order.as_traced(prediction.wall_high_ns);
    }
    Ok(prediction)
}

fn replayed(view: &View<'_>, seeds: Seeds) -> Prediction {
    let mut runs: Vec<_> = (0..seeds.0).map(|seed| simulate(view, u64::from(seed))).collect();
    runs.sort_by_key(|run| run.wall_ns);
    let (low, high) = (runs[0].wall_ns, runs[runs.len() - 1].wall_ns);
    let median = runs.swap_remove(runs.len() / 2);
    Prediction {
        wall_ns: median.wall_ns,
        wall_low_ns: low,
        wall_high_ns: high,
        forced: median.forced,
        run_ns: median.run_ns,
    }
}

/// By how much locks for whoever comes first, in place of the order of the trace, alone change the
/// time of the work, in per cent. `None` where not all holds of any lock are known.
pub fn order_off_pct(program: &Program) -> Option<f64> {
    let view = View::in_free_order(program).ok()?;
    view.has_free_order().then(|| Some(free_order(program).ok()?.off_pct()))?
}

/// What the order of locks alone makes of the work.
fn free_order(program: &Program) -> Result<FreeOrder, ChangeError> {
    if let Some(&known) = program.free_order.get() {
        return Ok(known);
    }
    let seeds = Seeds::of(program);
    let traced_ns = replayed(&View::new(program, &[])?, seeds).wall_ns;
    let free_ns = replayed(&View::in_free_order(program)?, seeds).wall_ns;
    Ok(*program.free_order.get_or_init(|| FreeOrder { traced_ns, free_ns }))
}

impl FreeOrder {
    /// By how much the order of locks alone changes the time of the work, in per cent.
    fn off_pct(self) -> f64 {
        (self.free_ns as f64 / self.traced_ns.max(1) as f64 - 1.0) * 100.0
    }

    /// A time with locks for whoever comes first, as it is beside that of the unchanged replay,
    /// which has them in the order of the trace: a change gains what it gains under one order.
    fn as_traced(self, ns: Nanos) -> Nanos {
        let scaled = u128::from(ns) * u128::from(self.traced_ns) / u128::from(self.free_ns.max(1));
        u64::try_from(scaled).unwrap_or(ns)
    }
}

/// Replay `program` with each set of changes, on as many threads as there are CPUs here: what
/// [`predict`] says of each, in their order.
pub fn predict_all(
    program: &Program,
    sets: &[Vec<Change>],
    seeds: Seeds,
) -> Vec<Result<Prediction, ChangeError>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(changes) = sets.get(i) else { return done };
            done.push((i, predict(program, changes, seeds)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(sets.len());
    let mut results = thread::scope(|scope| {
        let helpers: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut results = work();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_by_key(|&(i, _)| i);
    results.into_iter().map(|(_, prediction)| prediction).collect()
}
