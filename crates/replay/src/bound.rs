//! Bounds that every prediction keeps, whatever a replay says.
//!
//! A CPU does at most one second of work in a second, and no thread runs on two CPUs at once. Work
//! made `k` times as fast, or divided in `k`, gains a factor of `k` at most. Workers that serve one
//! request at a time never serve more than there are clients. Removing a bottleneck makes nothing
//! slower: if a replay is slower, its threads ran in another order by chance, and a real fix need
//! not change that order.

use crate::change::{Change, LockChange, Rule, View, ends_piece};
use crate::prediction::{Bound, Prediction};
use crate::program::{Op, Program, ThreadProgram};
use holdup_trace::Nanos;

/// CPU work that remains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// Of all threads that do the work.
    pub(crate) all_ns: Nanos,
    /// Of the thread with most work, or of one of its parts if it is split.
    pub(crate) longest_ns: Nanos,
}

impl Work {
    /// With these changes, counted from the threads' programs, so that none of it can get lost.
    pub(crate) fn of(view: &View<'_>) -> Work {
        let mut work = Work { all_ns: 0, longest_ns: 0 };
        for (t, i) in view.program.threads.iter().zip(0..) {
            if !t.works {
                continue;
            }
            let (mut ns, mut holding) = (0, 1.0);
            let mut held = Vec::new();
            for &op in &view.program.ops[t.from as usize..t.work_to as usize] {
                match op {
                    Op::Run(run) => ns += view.scaled(i, holding, run),
                    Op::Spin(spin, lock) => {
                        let rule = view.rules[lock.0 as usize];
                        ns += rule.spun(view.scaled(i, holding * rule.factor(), spin));
                    }
                    Op::Hold(lock) | Op::Drop(lock) => {
                        if let Rule::Scaled(f) = view.rules[lock.0 as usize] {
                            if matches!(op, Op::Hold(_)) {
                                held.push((lock, f));
                            } else if let Some(at) = held.iter().position(|h| h.0 == lock) {
                                held.swap_remove(at);
                            }
                            holding = held.iter().map(|h| h.1).product();
                        }
                    }
                    // Another part has the next piece, and holds none of the locks.
                    op if view.parts[i] > 1 && ends_piece(view.program, op) => {
                        held.clear();
                        holding = 1.0;
                    }
                    _ => {}
                }
            }
            work.all_ns += ns;
            work.longest_ns = work.longest_ns.max(ns / Nanos::from(view.parts[i]));
        }
        work
    }
}

/// The factor that these changes can gain at most, as far as their own parameters say; and whether
/// they can only make the work faster.
fn limit(view: &View<'_>, changes: &[Change]) -> (f64, bool) {
    // Work may be divided and sped up one after the other: the factors multiply.
    let (mut parts, mut locks, mut speed, mut rest) = (1.0_f64, 1.0_f64, 1.0_f64, 1.0_f64);
    let mut relieves = true;
    for change in changes {
        match change {
            &Change::Cpus(cpus) => {
                relieves &= cpus >= view.program.cpus;
                rest = if cpus > view.program.cpus { f64::INFINITY } else { rest };
            }
            &Change::Lock(_, LockChange::Hold(by)) => {
                relieves &= by <= 1.0;
                locks = locks.max(1.0 / by);
            }
            &Change::Lock(_, LockChange::Split(count)) => locks = locks.max(f64::from(count)),
            &Change::Split(_, count) => parts = parts.max(f64::from(count)),
            &Change::Speed(_, times) => {
                relieves &= times >= 1.0;
                speed = speed.max(times);
            }
            Change::Scale { factors, .. } => {
                relieves &= factors.iter().all(|&by| by <= 1.0);
                speed = factors.iter().fold(speed, |speed, by| speed.max(1.0 / by));
            }
            Change::AnyCpu if view.program.threads.iter().all(|t| t.allowed == u64::MAX) => {}
            Change::NoDevices if !view.program.objects.iter().any(|o| o.is_device) => {}
            Change::NoQuota if view.program.threads.iter().all(|t| t.held_off_ns == 0) => {}
            Change::NoQuota
            | Change::Deal
            | Change::Lock(_, LockChange::None | LockChange::Awake | LockChange::First)
            | Change::SpreadIrqs
            | Change::NoDevices
            | Change::AnyCpu => rest = f64::INFINITY,
        }
    }
    let workers = sleeping_workers(view.program, changes);
    let parts = workers.map_or(parts, |of| parts.min(in_hand(&of)));
    (parts * locks * speed * rest, relieves)
}

/// How many times as many requests could be in hand if these workers were divided: there is one of
/// each client or connection. If those are no more than the workers, each of them has several.
pub(crate) fn in_hand(workers: &[&ThreadProgram]) -> f64 {
    let clients = workers.iter().map(|t| t.clients).max().unwrap_or(0);
    match clients > workers.len() {
        true => clients as f64 / workers.len() as f64,
        false => f64::INFINITY,
    }
}

/// The threads that these changes divide, if all of them sleep with requests in hand.
pub(crate) fn sleeping_workers<'p>(
    program: &'p Program,
    changes: &[Change],
) -> Option<Vec<&'p ThreadProgram>> {
    let divided = |change: &Change| match change {
        &Change::Split(thread, _) => Some(&program.threads[thread]).filter(|t| t.keeps_waiting),
        _ => None,
    };
    changes.iter().map(divided).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

/// Keep a prediction within the bounds, and record the bound that the replay broke.
pub(crate) fn keep(
    prediction: &mut Prediction,
    view: &View<'_>,
    changes: &[Change],
    unchanged: &Prediction,
) {
    let work = Work::of(view);
    let (times, relieves) = limit(view, changes);
    let least = [
        (work.all_ns.div_ceil(Nanos::from(view.cpus.max(1))), Bound::Cpus),
        (work.longest_ns, Bound::Thread),
        ((unchanged.wall_ns as f64 / times).ceil() as Nanos, Bound::Factor),
    ];
    let (floor, bound) = least.into_iter().max().unwrap_or((0, Bound::Cpus));
    // The unchanged work takes its time on any number of CPUs.
    let floor = floor.min(if relieves { unchanged.wall_ns } else { Nanos::MAX });
    if prediction.wall_ns < floor {
        prediction.bounded = Some(bound);
    } else if relieves && prediction.wall_ns > unchanged.wall_ns {
        prediction.bounded = (prediction.wall_ns > unchanged.wall_high_ns).then_some(Bound::Relief);
        prediction.wall_ns = unchanged.wall_ns;
    }
    let ceiling = if relieves { unchanged.wall_high_ns } else { Nanos::MAX };
    let within = |ns: Nanos| ns.min(ceiling).max(floor);
    prediction.wall_ns = within(prediction.wall_ns);
    prediction.wall_low_ns = within(prediction.wall_low_ns).min(prediction.wall_ns);
    prediction.wall_high_ns = within(prediction.wall_high_ns).max(prediction.wall_ns);
}
