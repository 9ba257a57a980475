//! Predicts how long the work would take.

use crate::bound;
use crate::change::{Change, ChangeError, View};
use crate::prediction::Prediction;
use crate::program::{Free, Program};
use crate::simulate::simulate;
use holdup_trace::Nanos;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How often a replay is repeated, each time with other tie-breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds(u32);

impl Seeds {
    /// Enough replays for a range; fewer for long traces, where chance evens out.
    pub fn of(program: &Program) -> Seeds {
        match program.steps() {
            0..200_000 => Seeds(3),
            _ => Seeds(1),
        }
    }

    /// One replay, without chance.
    pub const ONE: Seeds = Seeds(1);
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
    if changes.is_empty() {
        return Ok(match seeds == Seeds::of(program) {
            true => unchanged(program).clone(),
            false => replayed(&View::unchanged(program), seeds).0,
        });
    }
    let done = if changes.contains(&Change::Deal) { program.dealt() } else { program };
    let mut view = View::new(done, changes)?;
    let free = unchanged_but_free(program);
    view.free = free.off_pct().abs() <= program.free_pct;
    view.unwatched = free.unwatched;
    // With enough CPUs, threads outside the work take nothing from it.
    let more = |change: &Change| matches!(*change, Change::Cpus(n) if n > program.cpus);
    let adds_cpus = changes.iter().any(more);
    view.alone = view.free && program.has_background() && !adds_cpus;
    // A thread that takes its CPU from a holder hinders the work there, and gets its share of CPU
    // time elsewhere, however far the work has come.
    view.fair = view.alone && view.has_first();
    if view.fair {
        view.alone = false;
    }
    let (mut prediction, idle) = replayed(&view, seeds);
    if view.free {
        let by = match (view.fair, adds_cpus) {
            (true, _) => free.missed_fairly(program),
            (false, true) => free.missed_with_background(idle),
            (false, false) => free.missed(idle),
        };
        for ns in
            [&mut prediction.wall_ns, &mut prediction.wall_low_ns, &mut prediction.wall_high_ns]
        {
            *ns = (*ns as f64 * by).round() as Nanos;
        }
    }
    bound::keep(&mut prediction, &view, changes, unchanged(program));
    Ok(prediction)
}

/// The prediction of a view, and the share of CPU time that was idle.
fn replayed(view: &View<'_>, seeds: Seeds) -> (Prediction, f64) {
    let mut runs = concurrently(seeds.0 as usize, |seed| simulate(view, seed as u64));
    runs.sort_by_key(|run| run.wall_ns);
    let (low, high) = (runs[0].wall_ns, runs[runs.len() - 1].wall_ns);
    let median = runs.swap_remove(runs.len() / 2);
    let capacity = median.wall_ns as f64 * f64::from(view.cpus);
    let idle = (1.0 - median.busy_ns as f64 / capacity.max(1.0)).max(0.0);
    let prediction = Prediction {
        wall_ns: median.wall_ns,
        wall_low_ns: low,
        wall_high_ns: high,
        forced: median.forced,
        run_ns: median.run_ns,
        bounded: None,
    };
    (prediction, idle)
}

/// By how much giving up the order of the trace alone changes the time of the work, in per cent:
/// locks go to the first thread to arrive, and no thread queues while a CPU idles.
pub fn free_off_pct(program: &Program) -> f64 {
    unchanged_but_free(program).off_pct()
}

/// The work's times with and without the order of the trace. Several changes ask for them at once:
/// all but the first wait for the result.
fn unchanged_but_free(program: &Program) -> Free {
    *program.free.get_or_init(|| {
        let (free, idle) = replayed(&View::free(program), Seeds::ONE);
        let traced_ns = unchanged(program).wall_ns;
        let mut known = Free {
            traced_ns,
            free_ns: free.wall_ns,
            alone_ns: free.wall_ns,
            unwatched: false,
            idle,
            idle_with_background: idle,
        };
        if known.off_pct().abs() > program.free_pct {
            return known;
        }
        // Naps that the work waits for stay; only threads that poll for its end do without.
        if program.threads.iter().any(|t| t.watches) {
            let view = View { unwatched: true, ..View::free(program) };
            let (left, _) = replayed(&view, Seeds::ONE);
            let off = left.wall_ns.abs_diff(free.wall_ns) as f64 * 100.0;
            known.unwatched = off <= free.wall_ns as f64 * program.met_pct;
        }
        if program.has_background() {
            let view = View { alone: true, unwatched: known.unwatched, ..View::free(program) };
            let (alone, idle) = replayed(&view, Seeds::ONE);
            known = Free { alone_ns: alone.wall_ns, idle, ..known };
        }
        known
    })
}

/// The two replays that changes are compared with, run concurrently.
pub(crate) fn compared_with(program: &Program) -> &Prediction {
    thread::scope(|scope| {
        scope.spawn(|| unchanged_but_free(program));
        unchanged(program)
    })
}

/// The replay without a change: a row of its own, and the base that other rows are compared with.
fn unchanged(program: &Program) -> &Prediction {
    let replay = || replayed(&View::unchanged(program), Seeds::of(program)).0;
    program.unchanged.get_or_init(replay)
}

impl Free {
    /// How much the two times differ, in per cent.
    fn off_pct(self) -> f64 {
        (self.free_ns as f64 / self.traced_ns.max(1) as f64 - 1.0) * 100.0
    }

    /// The correction factor for a time that does not keep the order of the trace. Such a replay
    /// keeps the CPUs' busy time, so its error in the unchanged work arises while CPUs idle. The
    /// error is taken to be as large with a change if CPUs idle equally long, and smaller if less.
    /// What threads outside the work take from it they take under every change.
    fn missed(self, idle: f64) -> f64 {
        let as_idle = if self.idle > 0.0 { (idle / self.idle).min(1.0) } else { 1.0 };
        (1.0 + self.off_by() * as_idle) * self.free_ns as f64 / self.alone_ns.max(1) as f64
    }

    /// As [`Free::missed`], where threads outside the work share the CPUs fairly.
    fn missed_fairly(self, program: &Program) -> f64 {
        let before = View { fair: true, ..View::free(program) };
        self.traced_ns as f64 / replayed(&before, Seeds::ONE).0.wall_ns.max(1) as f64
    }

    /// As [`Free::missed`], if programs other than the work are replayed with it.
    fn missed_with_background(self, idle: f64) -> f64 {
        Free { alone_ns: self.free_ns, idle: self.idle_with_background, ..self }.missed(idle)
    }

    /// How much longer the traced order takes, as a fraction of the time without it.
    fn off_by(self) -> f64 {
        self.traced_ns as f64 / self.free_ns.max(1) as f64 - 1.0
    }
}

/// Replay `program` with each set of changes, on as many threads as this machine has CPUs. Returns
/// what [`predict`] says of each, in order.
pub fn predict_all(
    program: &Program,
    sets: &[Vec<Change>],
    seeds: Seeds,
) -> Vec<Result<Prediction, ChangeError>> {
    concurrently(sets.len(), |i| predict(program, &sets[i], seeds))
}

/// What `of` returns for each number below `count`, in order, from as many threads as this machine
/// has CPUs.
fn concurrently<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return done;
            }
            done.push((i, of(i)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(count);
    let mut results = thread::scope(|scope| {
        let helpers: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut results = work();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_by_key(|&(i, _)| i);
    results.into_iter().map(|(_, result)| result).collect()
}
