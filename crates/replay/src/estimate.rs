//! What each scarce resource is worth: how much faster the work is without it.

use crate::asleep::Asleep;
use crate::bound::{Work, in_hand, sleeping_workers};
use crate::change::{Change, LockChange, View};
use crate::predict::{Seeds, compared_with, predict_all};
use crate::prediction::Prediction;
use crate::program::{Program, ThreadProgram};
use crate::relief::{self, Waits};
use crate::resources::{Member, Scarce, is_handed_on, resources};
use holdup_attribution::{Attribution, Resource, Total};
use holdup_passes::limits::WELL_MET;
use holdup_passes::{Object, Slot};
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// This many members of one resource are tried alone, those with most waiting.
const SINGLES: usize = 6;
/// Members are tried alone until their replays have taken this many steps.
const STEPS: usize = 1_000_000;
/// This many of the members that gain anything, the best first, are replayed with other ties too.
const BANDS: usize = 2;

/// How many replays are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Each resource with all its members, and each thread that does too much: enough for a
    /// verdict.
    Resources,
    /// Also the largest members of each resource alone.
    Each,
}

/// What one resource, or a part of it, is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The resource.
    pub resource: Resource,
    /// All members at once; otherwise one of several.
    pub together: bool,
    /// A part of a resource that only [`Depth::Each`] tries.
    pub is_single: bool,
    /// The members.
    pub members: Vec<Member>,
    /// The change that removes it.
    pub change: Vec<Change>,
    /// The prediction without it.
    pub prediction: Prediction,
    /// How many times as fast the work is without it: the median replay.
    pub worth: f64,
    /// As `worth`, of the longest replay.
    pub low: f64,
    /// As `worth`, of the shortest replay.
    pub high: f64,
    /// The gain is a bound: this thread's work divided over the CPUs, which no replay does.
    pub is_bound: bool,
    /// From the chains of wake-ups, or from the sleeps of workers, because a replay keeps the
    /// traced order in which servers work.
    pub by_chains: bool,
}

/// What every resource of a program is worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimates {
    /// The prediction without a change.
    pub unchanged: Prediction,
    /// First each whole resource, then its members; the largest worth first.
    pub rows: Vec<Estimate>,
    /// What the end of the work waited for that no change removes.
    pub asleep: Option<Asleep>,
}

/// Replay `program` without each scarce resource, and without the largest members of each.
pub fn estimate(program: &Program, judged: &Attribution<'_>, depth: Depth) -> Estimates {
    let waits = Waits::of(program, |o| is_handed_on(judged, o));
    let all = resources(program, judged, &waits);
    let mut tries = tried(&all, depth);
    // Of a long trace only whole resources, or the largest members: a replay takes time.
    tries.sort_by_key(|(together, one)| (!together && !one.is_thread, Reverse(one.weight)));
    tries.truncate((STEPS / program.steps().max(1)).max(tries.iter().filter(|t| t.0).count()));
    let unchanged = compared_with(program);
    let sets: Vec<Vec<Change>> = tries.iter().map(|(_, of)| of.change.clone()).collect();
    let found = predict_all(program, &sets, Seeds::ONE);
    let floors = Floors::of(program, judged, unchanged);
    let mut rows: Vec<Estimate> = tries
        .into_iter()
        .zip(found)
        .filter_map(|((together, of), made)| {
            Some(Estimate::of(unchanged, floors, together, of, made.ok()?))
        })
        .collect();
    let gains = 1.0 + judged.thresholds.get(&WELL_MET) / 100.0;
    see_again(program, unchanged, floors, gains, &mut rows);
    in_any_order(program, unchanged, floors, gains, &mut rows);
    let calls = LazyCell::new(|| judged.analysis.sleep_and_wake_by_thread());
    for row in &mut rows {
        let of = all.iter().filter(|one| one.resource == row.resource);
        let of = of.filter(|one| row.together || row.members.starts_with(&one.members));
        let changes: Vec<Change> = of.flat_map(|one| one.chained.clone()).collect();
        let chained = Chained::of(program, judged, changes, || &calls);
        follow_chains(program, &waits, unchanged, floors, &chained, row);
        divide_sleeps(program, unchanged, floors, row);
    }
    rows.sort_by(|a, b| {
        Reverse(a.together).cmp(&Reverse(b.together)).then(b.worth.total_cmp(&a.worth))
    });
    Estimates { unchanged: unchanged.clone(), rows, asleep: Asleep::of(program, &waits) }
}

/// What is replayed: each resource with all its members (`true`), and some of them alone.
fn tried(all: &[Scarce], depth: Depth) -> Vec<(bool, Scarce)> {
    let mut tries: Vec<(bool, Scarce)> = Vec::new();
    for of_one in all.chunk_by(|a, b| a.resource == b.resource) {
        // Each thread with too much work is a fix of its own.
        let (threads, rest): (Vec<Scarce>, Vec<Scarce>) =
            of_one.iter().cloned().partition(|one| one.is_thread);
        tries.extend(threads.into_iter().take(SINGLES).map(|one| (false, one)));
        if !rest.is_empty() {
            tries.push((true, together(&rest)));
        }
        // To divide a worker of the kernel and to spread interrupts are two fixes: one of them may
        // be enough, and gain more than both.
        let apart = of_one[0].resource == Resource::Driver;
        if rest.len() > 1 && (apart || depth == Depth::Each) {
            let single = rest.into_iter().take(SINGLES);
            tries.extend(single.map(|one| (false, Scarce { is_thread: apart, ..one })));
        }
    }
    tries
}

/// Threads that share another's work keep the traced order in which it served, and clients wait for
/// their turn. Making that one thread as many times as fast shows the gain if the parts serve in
/// any order. As with chains, the low end lies half-way.
///
/// A thread whose next step needs its last one gains nothing from a second thread: its work has to
/// be divided itself, and no replay knows how. Then the gain is a bound.
fn in_any_order(
    program: &Program,
    unchanged: &Prediction,
    floors: Floors,
    gains: f64,
    rows: &mut [Estimate],
) {
    let faster = |row: &Estimate| match (row.change.as_slice(), row.members.as_slice()) {
        (&[Change::Split(thread, parts)], [Member::Thread(_)]) => {
            let is_of_program = !program.threads[thread].is_kthread;
            is_of_program.then(|| vec![Change::Speed(thread, f64::from(parts))])
        }
        _ => None,
    };
    let (rows, sets): (Vec<&mut Estimate>, Vec<Vec<Change>>) =
        rows.iter_mut().filter_map(|row| faster(row).map(|set| (row, set))).unzip();
    let found = predict_all(program, &sets, Seeds::ONE);
    for ((row, change), made) in rows.into_iter().zip(sets).zip(found) {
        let Ok(made) = made else { continue };
        let kept = row.worth;
        let mut free = row.clone();
        free.is_bound = kept <= gains;
        free.set(unchanged, floors, made);
        if free.is_bound {
            free.change = change;
        } else if free.worth > kept {
            free.low = (free.worth * kept).sqrt();
            free.high = free.worth;
        } else {
            continue;
        }
        *row = free;
    }
}

/// Replay the rows that gain anything again, for their ranges. What is tried at any depth has the
/// same range at any depth, so that a ranking and a verdict say the same.
fn see_again(
    program: &Program,
    unchanged: &Prediction,
    floors: Floors,
    gains: f64,
    rows: &mut [Estimate],
) {
    let mut gain: Vec<&mut Estimate> = rows.iter_mut().filter(|row| row.worth > gains).collect();
    gain.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    let (single, whole): (Vec<_>, Vec<_>) = gain.into_iter().partition(|row| row.is_single);
    let gain: Vec<_> =
        [whole, single].into_iter().flat_map(|of| of.into_iter().take(BANDS)).collect();
    let sets: Vec<Vec<Change>> = gain.iter().map(|row| row.change.clone()).collect();
    let again = predict_all(program, &sets, Seeds::of(program));
    for (seen, made) in gain.into_iter().zip(again) {
        if let Ok(made) = made {
            seen.set(unchanged, floors, made);
        }
    }
}

/// Objects that no thread waits for any more, by the chains of wake-ups.
struct Chained {
    changes: Vec<Change>,
    /// Whether threads contend for most of them. Words that threads wake each other through may
    /// also hand on work.
    is_contended: bool,
    /// If they contend: the CPU time of going to sleep and of waking, by thread. Each kind of call
    /// counts in proportion to these objects' share of the waits in it. A thread that finds a lock
    /// free needs a fraction of that time.
    calls_ns: Vec<Nanos>,
}

impl Chained {
    /// `calls` has the CPU time of going to sleep and of waking, by thread and kind of call.
    fn of<'a>(
        program: &Program,
        judged: &Attribution<'_>,
        changes: Vec<Change>,
        calls: impl FnOnce() -> &'a [(Slot, WaitKind, Nanos)],
    ) -> Chained {
        let objects = changes.iter().filter_map(|change| match change {
            Change::Lock(id, LockChange::None) => program.objects.get(id.0 as usize),
            _ => None,
        });
        let (mut all_ns, mut turns_ns) = (0, 0);
        let mut freed: BTreeSet<Object> = BTreeSet::new();
        for o in objects {
            all_ns += o.wait_ns;
            if judged.contenders.are_at_any(&o.of) {
                turns_ns += o.wait_ns;
                freed.extend(&o.of);
            }
        }
        let is_contended = turns_ns * 2 > all_ns;
        if !is_contended {
            return Chained { changes, is_contended, calls_ns: Vec::new() };
        }
        let mut by: BTreeMap<WaitKind, (u64, u64)> = BTreeMap::new();
        for row in judged.waits.iter().map(|w| &w.row).filter(|row| row.cause.is_ended_by_thread())
        {
            let Some(kind) = row.kind else { continue };
            let (ours, all) = by.entry(kind).or_default();
            *all += row.sum.waits;
            *ours += if freed.contains(&row.object) { row.sum.waits } else { 0 };
        }
        let mut by_slot: BTreeMap<Slot, Nanos> = BTreeMap::new();
        for &(slot, kind, ns) in calls() {
            let (ours, all) = by.get(&kind).copied().unwrap_or_default();
            let part = u128::from(ns) * u128::from(ours) / u128::from(all.max(1));
            *by_slot.entry(slot).or_default() += part as Nanos;
        }
        let of_thread = |t: &ThreadProgram| by_slot.get(&t.slot).copied().unwrap_or(0);
        let calls_ns = program.threads.iter().map(of_thread).collect();
        Chained { changes, is_contended, calls_ns }
    }
}

/// Where no thread waits for a resource any more, the chains of wake-ups tell what each thread
/// saves. A replay saves less, because it keeps the traced order in which servers, clients and
/// runtimes did one thing after the other while only one thread at a time could ask.
fn follow_chains(
    program: &Program,
    waits: &Waits,
    unchanged: &Prediction,
    floors: Floors,
    of: &Chained,
    row: &mut Estimate,
) {
    if of.changes.is_empty() {
        return;
    }
    let Some(left) =
        relief::left(program, waits, &of.changes, of.is_contended.then_some(&of.calls_ns[..]))
    else {
        return;
    };
    let Ok(view) = View::new(program, &of.changes) else { return };
    let floor = floors.with(Work::of(&view), of.calls_ns.iter().sum());
    let wall_ns = ((unchanged.wall_ns as f64 * left) as Nanos).max(floor).min(unchanged.wall_ns);
    row.without_order(unchanged, wall_ns);
}

/// Workers that sleep with requests in hand, while others wait, set the pace: what is gained of
/// their sleeps is gained of the time. A replay saves less, because each client waits for its turn
/// as in the trace, and for the traced worker.
fn divide_sleeps(program: &Program, unchanged: &Prediction, floors: Floors, row: &mut Estimate) {
    let Some(workers) = sleeping_workers(program, &row.change) else { return };
    let parts = row.change.iter().map(|change| match change {
        &Change::Split(_, parts) => parts,
        _ => 1,
    });
    let times = in_hand(&workers).min(f64::from(parts.min().unwrap_or(1)));
    let all_ns: Nanos = workers.iter().map(|t| t.occupied_ns).sum();
    let occupied_ns = all_ns / workers.len() as Nanos;
    let saved_ns = (occupied_ns as f64 * (1.0 - 1.0 / times)) as Nanos;
    let least_ns = floors.below(row);
    row.without_order(unchanged, unchanged.wall_ns.saturating_sub(saved_ns).max(least_ns));
}

/// Divided work must still be done: the shortest times that this allows.
#[derive(Clone, Copy)]
struct Floors {
    /// One thread's work, over all CPUs.
    bound_ns: Nanos,
    /// All that the machine did, by the ledger: CPUs cannot be more than busy.
    divided_ns: Nanos,
    /// CPU time of the work, and how many CPUs there are.
    all_ns: Nanos,
    cpus: Nanos,
}

impl Floors {
    fn of(program: &Program, judged: &Attribution<'_>, unchanged: &Prediction) -> Floors {
        let ledger = &judged.ledger;
        let capacity = ledger.capacity_ns.max(1);
        let busy = capacity.saturating_sub(ledger.total(Total::Idle));
        let divided = u128::from(unchanged.wall_ns) * u128::from(busy) / u128::from(capacity);
        let all_ns = Work::of(&View::unchanged(program)).all_ns;
        let cpus = Nanos::from(program.cpus.max(1));
        Floors { bound_ns: all_ns / cpus, divided_ns: divided as Nanos, all_ns, cpus }
    }

    /// The shortest time with this work left and `calls_ns` less CPU time in calls. All other CPU
    /// time stays.
    fn with(self, work: Work, calls_ns: Nanos) -> Nanos {
        let less = (self.all_ns.saturating_sub(work.all_ns) + calls_ns) / self.cpus;
        self.divided_ns.saturating_sub(less)
    }

    fn below(self, of: &Estimate) -> Nanos {
        use Resource::{Parallelism, Placement, Server};
        let divided = matches!(of.resource, Parallelism | Placement | Server);
        let bound_ns = match of.is_bound || of.resource == Parallelism {
            true => self.bound_ns,
            false => 0,
        };
        bound_ns.max(if divided { self.divided_ns } else { 0 })
    }
}

impl Estimate {
    fn of(
        unchanged: &Prediction,
        floors: Floors,
        together: bool,
        of: Scarce,
        made: Prediction,
    ) -> Estimate {
        let mut row = Estimate {
            resource: of.resource,
            together,
            is_single: !together && !of.is_thread,
            members: of.members,
            change: of.change,
            prediction: made.clone(),
            worth: 1.0,
            low: 1.0,
            high: 1.0,
            is_bound: of.is_bound,
            by_chains: false,
        };
        row.set(unchanged, floors, made);
        row
    }

    /// The work takes this long if no thread keeps the traced order. The replay keeps all of it:
    /// the low end lies half-way.
    fn without_order(&mut self, unchanged: &Prediction, wall_ns: Nanos) {
        if wall_ns >= self.prediction.wall_ns {
            return;
        }
        let replayed = self.worth;
        self.worth = unchanged.wall_ns as f64 / wall_ns.max(1) as f64;
        (self.low, self.high) = ((self.worth * replayed).sqrt(), self.worth);
        (self.by_chains, self.is_bound) = (true, false);
        let made = &mut self.prediction;
        let longest_ns = (unchanged.wall_ns as f64 / self.low.max(1.0)) as Nanos;
        (made.wall_ns, made.wall_low_ns, made.wall_high_ns) = (wall_ns, wall_ns, longest_ns);
        made.bounded = None;
    }

    /// Set the replayed prediction.
    fn set(&mut self, unchanged: &Prediction, floors: Floors, mut made: Prediction) {
        let floor = floors.below(self);
        for ns in [&mut made.wall_ns, &mut made.wall_low_ns, &mut made.wall_high_ns] {
            *ns = (*ns).max(floor);
            if self.is_bound {
                *ns = (*ns).min(unchanged.wall_high_ns);
            }
            // CPUs that would only add contention are not used.
            if self.resource == Resource::Cpus {
                *ns = (*ns).min(unchanged.wall_ns);
            }
        }
        let worth = |ns: Nanos| unchanged.wall_ns as f64 / ns.max(1) as f64;
        self.worth = worth(made.wall_ns);
        (self.low, self.high) = (worth(made.wall_high_ns), worth(made.wall_low_ns));
        self.prediction = made;
    }
}

/// All members of one resource as one.
fn together(parts: &[Scarce]) -> Scarce {
    let mut all = Scarce {
        resource: parts[0].resource,
        members: Vec::new(),
        change: Vec::new(),
        weight: parts.iter().map(|r| r.weight).sum(),
        is_thread: false,
        is_bound: false,
        chained: Vec::new(),
    };
    for one in parts {
        all.members.extend(&one.members);
        for change in &one.change {
            if !all.change.contains(change) {
                all.change.push(change.clone());
            }
        }
    }
    all.members.sort_unstable();
    all.members.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{ObjectId, Op};
    use crate::tests::program;

    const MS: Nanos = 1_000_000;

    /// Two workers sleep for 0.9 of 1 s with requests of so many clients in hand, and the replay
    /// gains nothing of that.
    fn divided(clients: usize, keeps_waiting: bool, busy_ns: Nanos) -> Estimate {
        let steps = vec![Op::Sleep(900 * MS, ObjectId::REQUEST), Op::Run(MS)];
        let mut program = program(2, &[steps.clone(), steps]);
        for t in &mut program.threads {
            (t.keeps_waiting, t.occupied_ns, t.clients) = (keeps_waiting, 900 * MS, clients);
        }
        let unchanged = Prediction { wall_ns: 1_000 * MS, ..Prediction::default() };
        let mut row = Estimate {
            resource: Resource::Server,
            together: false,
            is_single: false,
            members: Vec::new(),
            change: vec![Change::Split(0, 2), Change::Split(1, 2)],
            prediction: unchanged.clone(),
            worth: 1.0,
            low: 1.0,
            high: 1.0,
            is_bound: false,
            by_chains: false,
        };
        let floors = Floors { bound_ns: 0, divided_ns: busy_ns, all_ns: 0, cpus: 2 };
        divide_sleeps(&program, &unchanged, floors, &mut row);
        row
    }

    /// How many replays two fixes of this resource take for a verdict.
    fn replays(resource: Resource, fixes: [Change; 2]) -> usize {
        let of = |change| Scarce {
            resource,
            members: Vec::new(),
            change: vec![change],
            weight: 1,
            is_thread: false,
            is_bound: false,
            chained: Vec::new(),
        };
        tried(&fixes.map(of), Depth::Resources).len()
    }

    /// dd reads a loop device by its kernel worker: dividing that gained 1.52 (done 1.51), and 1.21
    /// with interrupts spread as well, so the verdict was the disk.
    #[test]
    fn a_kernel_worker_is_divided_without_spreading_interrupts_too() {
        let fixes = [Change::Split(0, 2), Change::SpreadIrqs];
        assert_eq!(replays(Resource::Driver, fixes), 3, "both, and each of them");
        let locks = [Change::NoDevices, Change::Deal];
        assert_eq!(replays(Resource::ThreadLock, locks), 1, "all at once is enough");
    }

    #[test]
    fn what_is_gained_of_the_sleeps_of_workers_is_gained_of_the_time() {
        let row = divided(8, true, 0);
        assert!((row.worth - 1.0 / 0.55).abs() < 0.001, "{row:?}");
        assert!((row.low - row.worth.sqrt()).abs() < 0.001 && row.high == row.worth, "{row:?}");
        assert_eq!(row.prediction.wall_ns, 550 * MS);
        assert_eq!(divided(8, false, 0).worth, 1.0, "no request waits");
    }

    #[test]
    fn three_clients_gain_half_of_two_workers_more() {
        assert_eq!(divided(3, true, 0).prediction.wall_ns, 700 * MS);
    }

    #[test]
    fn cpus_stay_as_busy_as_they_were() {
        assert_eq!(divided(8, true, 800 * MS).prediction.wall_ns, 800 * MS);
    }
}
