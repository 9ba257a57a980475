//! The results of replays for each class.

use crate::class::Class;
use crate::concerned::Concerned;
use crate::judged::Judged;
use crate::worth::{Basis, HolderWorth, Worth, rounded};
use holdup_attribution::{Attribution, Thresholds};
use holdup_passes::limits::MATTERS;
use holdup_passes::{HolderDid, HolderPart, Object, percent};
use holdup_replay::{
    Change, Depth, Estimate, Estimates, LockChange, Member, ObjectId, Part, Program, ReplayObject,
    Seeds, doubts, estimate, off_pct, predict, words,
};
use std::cmp::Reverse;

impl Worth {
    /// If the unchanged replay misses the trace by `off_pct`, the low end is lower by as much.
    fn replayed(program: &Program, (unchanged_ns, off_pct): (u64, f64), of: &Estimate) -> Worth {
        let missed = 1.0 + off_pct.abs() / 100.0;
        Worth {
            basis: Basis::of(of),
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

impl HolderWorth {
    /// The gain for a lock whose holders did this while others waited for it.
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
            (LockChange::First, "if they always had a CPU", pct(HolderPart::is_without_cpu)),
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

/// The replay without all resources of one class.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Replay {
    pub(crate) worth: Worth,
    /// The changed threads, if it changes threads.
    pub(crate) tids: Vec<u32>,
    /// The objects that no thread waits for any more, if any; the one that delays most first.
    pub(crate) objects: Vec<Object>,
    /// For the lock that delays most: the gain if its holders lose no time.
    pub(crate) holders: Option<(Object, Vec<HolderWorth>)>,
    /// If threads were chosen: it changes them, or threads they wait for.
    pub(crate) concerns: bool,
    /// It deals the work of rounds evenly.
    pub(crate) is_dealt: bool,
    /// It deals the work of threads or processes of one kind evenly.
    pub(crate) is_of_team: bool,
    /// What is changed, in words: threads, or what they wait for.
    subjects: String,
}

impl Replay {
    /// The result, in a sentence.
    pub(crate) fn summary(&self) -> String {
        let what = &self.subjects;
        match self.tids.is_empty() {
            true => format!(
                "threads wait for {what}; without these waits the work would be done sooner"
            ),
            false => format!(
                "the other threads wait for the work of {what}; if it were divided among threads, \
                 all work would be done sooner"
            ),
        }
    }
}

/// The results of a trace's replays for each class.
#[derive(Clone, Debug, PartialEq)]
pub struct Replays {
    by_class: Vec<(Class, Replay)>,
    /// The thread whose sleeps the end of the work waits for most of the time, in words.
    asleep: Option<String>,
}

impl Replays {
    /// Replay all that was read, or the window that was read for it, if its steps were kept; `None`
    /// if not.
    pub fn of_judged(judged: &Judged, thresholds: &Thresholds) -> Option<Result<Replays, String>> {
        let read = judged.replayed();
        read.keeps_steps().then(|| Replays::of(&Attribution::new(read, thresholds)))
    }

    /// Replay what was analysed with [`holdup_passes::Detail::Steps`].
    ///
    /// # Errors
    /// Why the replays of this trace mean nothing, in a sentence.
    pub fn of(judged: &Attribution<'_>) -> Result<Replays, String> {
        let program = Program::new(judged).map_err(|e| e.to_string())?;
        Replays::of_estimates(judged, &program, &estimate(&program, judged, Depth::Resources))
    }

    /// From estimates that were made at any depth.
    ///
    /// # Errors
    /// Those of [`Replays::of`].
    pub fn of_estimates(
        judged: &Attribution<'_>,
        program: &Program,
        estimates: &Estimates,
    ) -> Result<Replays, String> {
        let analysis = judged.analysis;
        let Estimates { unchanged, rows, asleep } = estimates;
        let off_pct = off_pct(program, unchanged);
        if let Some(doubt) = doubts(analysis, off_pct).into_iter().next() {
            return Err(doubt);
        }
        let concerned = Concerned::of(judged);
        let matters_pct = judged.thresholds.get(&MATTERS);
        let matters = judged.thresholds.worthwhile();
        let of_holders = |o: &ReplayObject| {
            let &object = o.of.first()?;
            let place = program.objects.iter().position(|other| std::ptr::eq(other, o))?;
            let did = analysis.holders_did().remove(&object)?;
            let did: Vec<_> = did.into_values().flatten().collect();
            let lock = ObjectId(place as u32);
            let unchanged_ns = unchanged.wall_ns;
            let worth = HolderWorth::of(program, unchanged_ns, lock, &did, matters_pct);
            (!worth.is_empty()).then_some((object, worth))
        };
        let is_of_team =
            |change: &Change| matches!(change, Change::Scale { part: Part::Team { .. }, .. });
        let mut by_class: Vec<(Class, Replay)> = Vec::new();
        for row in rows.iter().filter(|row| !row.is_single) {
            let Some(class) = Class::of(row.resource) else { continue };
            let worth = Worth::replayed(program, (unchanged.wall_ns, off_pct), row);
            let tids = row.members.iter().filter_map(|m| match m {
                Member::Thread(i) => Some(program.threads.get(*i)?.tid),
                Member::Object(_) => None,
            });
            let objects = row.members.iter().filter_map(|m| match m {
                Member::Object(id) => program.objects.get(id.0 as usize),
                Member::Thread(_) => None,
            });
            let mut objects: Vec<&ReplayObject> = objects.collect();
            objects.sort_by_key(|o| Reverse(o.work_delayed));
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
                is_dealt: row.change.contains(&Change::Deal),
                is_of_team: row.change.iter().any(is_of_team),
                subjects: words::subjects(program, &row.change),
            };
            match by_class.iter_mut().find(|(c, _)| *c == class) {
                Some((_, best)) if best.worth.firm() >= replay.worth.firm() => {}
                Some((_, best)) => *best = replay,
                None => by_class.push((class, replay)),
            }
        }
        let asleep = asleep.as_ref().filter(|of| of.ns.saturating_mul(2) >= of.of_ns);
        Ok(Replays { by_class, asleep: asleep.map(|of| words::asleep(program, of)) })
    }

    /// The thread whose sleeps the end of the work waits for most of the time, in words.
    pub(crate) fn asleep(&self) -> Option<&str> {
        self.asleep.as_deref()
    }

    /// The gains of locks whose holders lose no time.
    pub(crate) fn of_holders(&self) -> impl Iterator<Item = &(Object, Vec<HolderWorth>)> {
        self.by_class.iter().filter_map(|(_, replay)| replay.holders.as_ref())
    }

    /// The replay without a class; `None` if there was nothing of it to remove.
    pub(crate) fn of_class(&self, class: Class) -> Option<&Replay> {
        self.by_class.iter().find(|(c, _)| *c == class).map(|(_, replay)| replay)
    }
}
