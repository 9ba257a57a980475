//! How much sooner the traced work would be done without what a class of trouble stands for.
//!
//! Three estimators give it, on one scale, "times as fast":
//! * **replayed**: the trace is replayed on a simulated machine on which that resource is not
//!   scarce ([`holdup_replay::estimate`]);
//! * **chains**: each thread saves its waiting for the resource, and that part of its waiting for
//!   others which these save, as far as there are CPUs. A replay may save less, as it keeps the
//!   order of the trace in which servers, clients and runtimes did one thing after the other;
//! * **bound**: the part of the wanted CPU time that the ledger books to the resource. Without it
//!   the rest remains.
//!
//! A loss of CPU time is not the price: a lock that is held over a sleep costs hardly any CPU time
//! and makes the work four times as long. So where the trace can be replayed, the replay counts.

use crate::chosen::Concerned;
use crate::phases::Judged;
use crate::report::Class;
use holdup_attribution::{Attribution, Thresholds};
use holdup_passes::limits::MATTERS;
use holdup_passes::{HolderDid, HolderPart, Object, percent};
use holdup_replay::{
    Change, Depth, Estimate, Estimates, LockChange, Member, ObjectId, Program, ReplayObject, Seeds,
    doubts, estimate, off_pct, predict, words,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::path::Path;

/// Recordings of up to so many bytes are replayed unasked. The steps of a larger one take more
/// memory than the rest of a diagnosis, and its replay more time (docs/models.md).
const SMALL: u64 = 64 << 20;

/// Files and folders of a recording that are looked at to know its size.
const ENTRIES: usize = 4096;

/// Bytes of a larger recording whose part is replayed in its place.
const WINDOW: u64 = 24 << 20;

/// Which part of a recording is replayed unasked: 1 is all of it, less a window in the middle of
/// what is judged. `None` where nobody knows how long it is: of standard input.
pub fn replayed_part(trace: &Path) -> Option<f64> {
    let size = size(trace, &mut { ENTRIES })?;
    Some(if size <= SMALL { 1.0 } else { WINDOW as f64 / size as f64 })
}

/// Bytes of a file, or of all files in a folder; `None` if that would take long to find out.
fn size(path: &Path, left: &mut usize) -> Option<u64> {
    *left = left.checked_sub(1)?;
    // A link to a folder can lead in circles, which `left` ends.
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_dir() {
        return meta.is_file().then_some(meta.len());
    }
    let mut sum = 0u64;
    for entry in std::fs::read_dir(path).ok()? {
        sum = sum.saturating_add(size(&entry.ok()?.path(), left)?);
    }
    Some(sum)
}

/// How a [`Worth`] is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The trace was replayed without the resource being scarce.
    Replayed,
    /// By the chains of wake-ups: what each thread saves without waiting for the resource.
    Chains,
    /// From the demand in the ledger alone.
    Bound,
}

/// How many times as fast the traced work is done without a resource being scarce.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Worth {
    /// How it is known.
    pub basis: Basis,
    /// How many times as fast: 1 is no gain.
    pub times: f64,
    /// The same of the longest replay; all are alike but for chance.
    pub low: f64,
    /// And of the shortest.
    pub high: f64,
    /// What is different, in the words of `holdup whatif`; `null` where nothing was replayed.
    pub change: Option<String>,
    /// The same in plain words.
    pub fix: Option<String>,
    /// Time of the work in the unchanged replay.
    pub unchanged_ns: Option<u64>,
    /// Time of the work with the change.
    pub wall_ns: Option<u64>,
}

impl Worth {
    /// From the demand alone: so much of the wanted CPU time is lost, in per cent.
    pub(crate) fn bound(lost_pct: f64) -> Worth {
        // What cannot be priced gains nothing that is known.
        let lost_pct = if lost_pct.is_finite() { lost_pct.clamp(0.0, 99.9) } else { 0.0 };
        let times = rounded(100.0 / (100.0 - lost_pct));
        Worth {
            basis: Basis::Bound,
            times,
            low: times,
            high: times,
            change: None,
            fix: None,
            unchanged_ns: None,
            wall_ns: None,
        }
    }

    /// Of a replay that misses the trace by `off_pct` when nothing is changed: the low end is lower
    /// by that.
    fn replayed(program: &Program, (unchanged_ns, off_pct): (u64, f64), of: &Estimate) -> Worth {
        let missed = 1.0 + off_pct.abs() / 100.0;
        Worth {
            basis: match (of.is_bound, of.by_chains) {
                (true, _) => Basis::Bound,
                (_, true) => Basis::Chains,
                _ => Basis::Replayed,
            },
            times: rounded(of.worth),
            low: rounded((of.low / missed).max(of.low.min(1.0))),
            high: rounded(of.high),
            change: Some(words::shown(program, &of.change)),
            fix: Some(words::fixes(program, &of.change)),
            unchanged_ns: Some(unchanged_ns),
            wall_ns: Some(of.prediction.wall_ns),
        }
    }
}

/// How many times as fast the traced work is done if holders of a lock no longer lose some of the
/// time for which they have it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HolderWorth {
    /// What is different, in the words of `holdup whatif`.
    pub change: String,
    /// The same of the holders, in plain words.
    pub fix: &'static str,
    /// Of the time in which others waited, holders lost so much to it, in per cent.
    pub pct: f64,
    /// How many times as fast.
    pub times: f64,
}

impl HolderWorth {
    /// Of a lock whose holders did this while others waited for it.
    fn of(
        program: &Program,
        unchanged_ns: u64,
        lock: ObjectId,
        did: &[(HolderDid, u64)],
        matters_pct: f64,
    ) -> Vec<HolderWorth> {
        let all: u64 = did.iter().map(|(_, ns)| ns).sum();
        let pct = |lost: fn(HolderPart) -> bool| {
            let lost = did.iter().filter(|(did, _)| lost(did.part)).map(|(_, ns)| ns).sum::<u64>();
            percent(lost, all)
        };
        let tries = [
            (LockChange::Awake, "without their sleep", pct(HolderPart::is_asleep)),
            (LockChange::First, "never without a CPU", pct(HolderPart::is_without_cpu)),
        ];
        let matter = tries.into_iter().filter(|of| of.2 >= matters_pct);
        matter
            .filter_map(|(how, fix, pct)| {
                let change = [Change::Lock(lock, how)];
                let made = predict(program, &change, Seeds::ONE).ok()?;
                Some(HolderWorth {
                    change: words::shown(program, &change),
                    fix,
                    pct: rounded(pct),
                    times: rounded(unchanged_ns as f64 / made.wall_ns.max(1) as f64),
                })
            })
            .collect()
    }
}

fn rounded(times: f64) -> f64 {
    (times * 1000.0).round() / 1000.0
}

/// What the replay without all resources of one class says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replay {
    pub(crate) worth: Worth,
    /// The threads that are changed, if it is threads.
    pub(crate) tids: Vec<u32>,
    /// The objects that nobody waits for any more, if it is objects; what holds most work up first.
    pub(crate) objects: Vec<Object>,
    /// Of the lock that holds most work up: what the work gains if its holders lose no time.
    pub(crate) holders: Option<(Object, Vec<HolderWorth>)>,
    /// Where threads were chosen: it is about them, or about whom they wait for.
    pub(crate) concerns: bool,
    /// What is changed, in words: threads, or what they wait for.
    subjects: String,
}

impl Replay {
    /// What it found, in a sentence.
    pub(crate) fn summary(&self) -> String {
        let what = &self.subjects;
        match self.tids.is_empty() {
            true => format!("threads wait for {what}, and the work is done sooner without that"),
            false => format!("the work of {what} holds the rest up: divided, it is done sooner"),
        }
    }
}

/// What the replays of a trace say of each class.
#[derive(Clone, Debug, PartialEq)]
pub struct Replays {
    by_class: Vec<(Class, Replay)>,
}

impl Replays {
    /// Replay all that was read, or the window that was read for it, where its steps were kept.
    /// `None` where they were not.
    pub fn of_judged(judged: &Judged, thresholds: &Thresholds) -> Option<Result<Replays, String>> {
        let read = judged.replayed();
        read.keeps_steps().then(|| Replays::of(&Attribution::new(read, thresholds)))
    }

    /// Replay what was analysed with [`holdup_passes::Detail::Steps`].
    ///
    /// # Errors
    /// Why the replays of this trace mean nothing, in a sentence.
    pub fn of(judged: &Attribution<'_>) -> Result<Replays, String> {
        let analysis = judged.analysis;
        let program = Program::new(analysis).map_err(|e| e.to_string())?;
        let Estimates { unchanged, rows } = estimate(&program, judged, Depth::Resources);
        let off_pct = off_pct(&program, &unchanged);
        if let Some(doubt) = doubts(analysis, off_pct).into_iter().next() {
            return Err(doubt);
        }
        let concerned = Concerned::of(analysis);
        let matters_pct = judged.thresholds.get(&MATTERS);
        let matters = 100.0 / (100.0 - matters_pct);
        let of_holders = |o: &ReplayObject| {
            let &object = o.of.first()?;
            let place = program.objects.iter().position(|other| std::ptr::eq(other, o))?;
            let did = analysis.holders_did().remove(&object)?;
            let did: Vec<_> = did.into_values().flatten().collect();
            let lock = ObjectId(place as u32);
            let unchanged_ns = unchanged.wall_ns;
            let worth = HolderWorth::of(&program, unchanged_ns, lock, &did, matters_pct);
            (!worth.is_empty()).then_some((object, worth))
        };
        let mut by_class: Vec<(Class, Replay)> = Vec::new();
        for row in &rows {
            let Some(class) = Class::of(row.resource) else { continue };
            let worth = Worth::replayed(&program, (unchanged.wall_ns, off_pct), row);
            let tids = row.members.iter().filter_map(|m| match m {
                Member::Thread(i) => Some(program.threads.get(*i)?.tid),
                Member::Object(_) => None,
            });
            let objects = row.members.iter().filter_map(|m| match m {
                Member::Object(id) => program.objects.get(id.0 as usize),
                Member::Thread(_) => None,
            });
            let mut objects: Vec<&ReplayObject> = objects.collect();
            objects.sort_by_key(|o| Reverse(o.work_held_up));
            let holders = match objects.first() {
                Some(o) if o.is_lock && worth.low >= matters => of_holders(o),
                _ => None,
            };
            let tids: Vec<u32> = tids.collect();
            let objects: Vec<Object> = objects.into_iter().flat_map(|o| o.of.clone()).collect();
            let replay = Replay {
                worth,
                holders,
                concerns: concerned.as_ref().is_none_or(|of| of.are_met(&tids, &objects)),
                tids,
                objects,
                subjects: words::subjects(&program, &row.change),
            };
            match by_class.iter_mut().find(|(c, _)| *c == class) {
                Some((_, best)) if best.worth.low >= replay.worth.low => {}
                Some((_, best)) => *best = replay,
                None => by_class.push((class, replay)),
            }
        }
        Ok(Replays { by_class })
    }

    /// What locks gain whose holders lose no time.
    pub(crate) fn of_holders(&self) -> impl Iterator<Item = &(Object, Vec<HolderWorth>)> {
        self.by_class.iter().filter_map(|(_, replay)| replay.holders.as_ref())
    }

    /// Of removing all of a class; `None` where nothing of it was found to remove.
    pub(crate) fn of_class(&self, class: Class) -> Option<&Replay> {
        self.by_class.iter().find(|(c, _)| *c == class).map(|(_, replay)| replay)
    }
}
