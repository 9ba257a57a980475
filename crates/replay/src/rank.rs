//! What each hold-up costs: the gain of removing it, one after the other.

use crate::build::is_part;
use crate::change::{Change, ChangeError, LockChange, PARTS};
use crate::predict::{Prediction, Seeds, predict_all};
use crate::program::{ObjectId, Program};
use holdup_trace::Nanos;

/// So many objects are tried, those waited for longest.
const OBJECTS: usize = 16;
/// And so many threads, those that run longest.
const THREADS: usize = 6;
/// If they ran for so much of the time, in per cent; and others wait for one if it ended so much of
/// their waiting.
const BUSY_PCT: u64 = 20;
/// Interrupts are tried if they took so much of the machine, in per cent.
const IRQ_PCT: u64 = 1;
/// So many of the best are tried once more beside the best.
const SECONDS: usize = 5;
/// Less than so many times as fast is no gain.
const GAINS: f64 = 1.005;

/// What kind of hold-up a change removes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Holdup {
    /// A lock that one thread at a time has.
    Lock,
    /// Something else that other threads have to do first: a barrier, a message, a turn.
    Wait,
    /// One thread that does too much.
    Thread,
    /// Too few CPUs.
    Cpus,
    /// Devices.
    Devices,
    /// Interrupts that are not taken by all CPUs.
    Interrupts,
}

impl Holdup {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Holdup::Lock => "lock",
            Holdup::Wait => "wait",
            Holdup::Thread => "thread",
            Holdup::Cpus => "cpus",
            Holdup::Devices => "devices",
            Holdup::Interrupts => "irqs",
        }
    }
}

/// A hold-up, and what its removal would make of the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// What it is.
    pub holdup: Holdup,
    /// Its removal.
    pub change: Change,
    /// What comes of it.
    pub prediction: Prediction,
}

/// What remains once the best change is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// The row of the hold-up that is then the largest.
    pub row: usize,
    /// How many times as fast removing that too would be, compared with the best change alone.
    pub gain: f64,
}

/// All hold-ups of a program, largest gain first.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The replay without a change.
    pub unchanged: Prediction,
    /// What removing each would make.
    pub rows: Vec<Ranked>,
    /// What comes after the first; `None` where nothing is left to gain.
    pub next: Option<Next>,
}

/// Remove one hold-up after the other.
pub fn rank(program: &Program, seeds: Seeds) -> Ranking {
    let mut tries: Vec<Vec<Change>> = vec![Vec::new()];
    let candidates = candidates(program);
    tries.extend(candidates.iter().map(|(_, change)| vec![change.clone()]));
    let mut predictions = predict_all(program, &tries, seeds).into_iter();
    // No change is one that can always be made.
    let unchanged = predictions.next().and_then(Result::ok).unwrap_or_default();
    let mut rows: Vec<Ranked> = candidates
        .into_iter()
        .zip(predictions)
        .filter_map(|((holdup, change), prediction)| {
            Some(Ranked { holdup, change, prediction: prediction.ok()? })
        })
        .collect();
    rows.sort_by_key(|row| (row.prediction.wall_ns, row.holdup));
    let next = rows.first().and_then(|best| {
        let pairs: Vec<Vec<Change>> = (rows.iter().skip(1).take(SECONDS))
            .map(|row| vec![best.change.clone(), row.change.clone()])
            .collect();
        let after = predict_all(program, &pairs, Seeds::ONE);
        let (wall_ns, at) = quickest(after.into_iter())?;
        let gain = best.prediction.wall_ns as f64 / wall_ns.max(1) as f64;
        (gain > GAINS).then_some(Next { row: at + 1, gain })
    });
    Ranking { unchanged, rows, next }
}

/// Time and place of the replay that takes least.
fn quickest(of: impl Iterator<Item = Result<Prediction, ChangeError>>) -> Option<(Nanos, usize)> {
    of.zip(0..).filter_map(|(p, at)| Some((p.ok()?.wall_ns, at))).min()
}

/// What relieves a thread that does too much. Who works for others one request at a time can be
/// several; who has the longest part of what all do together can only be relieved of some of it.
fn relief(program: &Program, thread: usize) -> Change {
    let t = &program.threads[thread];
    let serves = !t.at_barriers && is_part(t.ends_ns, program.wall_ns, BUSY_PCT);
    match serves {
        true => Change::Split(thread, program.cpus.clamp(*PARTS.start(), *PARTS.end())),
        false => Change::Speed(thread, 2.0),
    }
}

/// What may hold the work up.
fn candidates(program: &Program) -> Vec<(Holdup, Change)> {
    let mut found = Vec::new();
    let mut objects: Vec<(Nanos, ObjectId)> = (program.objects.iter().zip(0..))
        .filter(|(o, _)| o.is_turn() && o.wait_ns > 0)
        .map(|(o, i)| (o.wait_ns, ObjectId(i)))
        .collect();
    objects.sort_unstable_by(|a, b| b.cmp(a));
    for (_, object) in objects.into_iter().take(OBJECTS) {
        let is_lock = program.objects[object.0 as usize].is_lock;
        let holdup = if is_lock { Holdup::Lock } else { Holdup::Wait };
        found.push((holdup, Change::Lock(object, LockChange::None)));
    }
    let mut busy: Vec<usize> = (0..program.threads.len())
        .filter(|&i| program.threads[i].works)
        .filter(|&i| is_part(program.threads[i].run_ns, program.wall_ns, BUSY_PCT))
        .collect();
    busy.sort_by_key(|&i| std::cmp::Reverse(program.threads[i].run_ns));
    let busy = busy.into_iter().take(THREADS);
    found.extend(busy.map(|i| (Holdup::Thread, relief(program, i))));
    found.push((Holdup::Cpus, Change::Cpus((program.cpus * 2).min(crate::MAX_CPUS))));
    if program.objects.iter().any(|o| o.is_device && o.waits > 0) {
        found.push((Holdup::Devices, Change::NoDevices));
    }
    let capacity = program.wall_ns.saturating_mul(Nanos::from(program.cpus));
    if program.irq_ns > 0 && is_part(program.irq_ns, capacity, IRQ_PCT) {
        found.push((Holdup::Interrupts, Change::SpreadIrqs));
    }
    found
}
