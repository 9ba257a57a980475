//! What each scarce resource is worth: how much sooner the work is done without it.

use crate::bound::Work;
use crate::change::{Change, View};
use crate::predict::{Prediction, Seeds, predict, predict_all};
use crate::program::Program;
use crate::resources::{Kind, Member, Resource, resources};
use holdup_attribution::Attribution;
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many of one kind are tried alone, those that hold up most.
const SINGLES: usize = 6;
/// And of all so many that these steps are taken in their replays.
const STEPS: usize = 1_000_000;
/// Those that are worth more, up to so many, the best first, are replayed with other ties too.
const GAINS: f64 = 1.02;
const BANDS: usize = 4;

/// Where a figure comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Basis {
    /// A replay without the resource being scarce.
    Replayed,
    /// What its work could gain at most, divided over the CPUs.
    Bound,
}

/// What one resource, or all of one kind, is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// What is scarce.
    pub kind: Kind,
    /// All of this kind at once; else one of several.
    pub together: bool,
    /// What it is made of.
    pub members: Vec<Member>,
    /// Its removal.
    pub change: Vec<Change>,
    /// The work without it.
    pub prediction: Prediction,
    /// How many times as fast the work is without it.
    pub worth: f64,
    /// The same of the longest replay.
    pub low: f64,
    /// And of the shortest.
    pub high: f64,
    /// Where that comes from.
    pub basis: Basis,
}

/// What every resource of a program is worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimates {
    /// The work as it is.
    pub unchanged: Prediction,
    /// First all of each kind, then one by one; the most worth first.
    pub rows: Vec<Estimate>,
}

impl Estimates {
    /// The rows of whole kinds, the most worth first.
    pub fn kinds(&self) -> impl Iterator<Item = &Estimate> {
        self.rows.iter().filter(|row| row.together)
    }

    /// The resources of one kind, the most worth first.
    pub fn singles(&self, kind: Kind) -> impl Iterator<Item = &Estimate> {
        self.rows.iter().filter(move |row| !row.together && row.kind == kind)
    }
}

/// Replay `program` without each kind of resource, and without the largest of each.
pub fn estimate(program: &Program, judged: &Attribution<'_>) -> Estimates {
    let all = resources(program, judged);
    let mut tries: Vec<(bool, Resource)> = Vec::new();
    for of_kind in all.chunk_by(|a, b| a.kind == b.kind) {
        // To relieve one thread of its work is one remedy, to relieve the next another.
        let (threads, rest): (Vec<Resource>, Vec<Resource>) =
            of_kind.iter().cloned().partition(|one| one.is_thread);
        tries.extend(threads.into_iter().take(SINGLES).map(|one| (false, one)));
        if !rest.is_empty() {
            tries.push((true, together(&rest)));
        }
        if rest.len() > 1 {
            tries.extend(rest.into_iter().take(SINGLES).map(|one| (false, one)));
        }
    }
    // Of a long trace the kinds alone, or the largest of them: a replay takes time.
    tries.sort_by_key(|(together, one)| (!together && !one.is_thread, Reverse(one.weight)));
    tries.truncate((STEPS / program.steps().max(1)).max(tries.iter().filter(|t| t.0).count()));
    let mut sets = vec![Vec::new()];
    sets.extend(tries.iter().map(|(_, resource)| resource.change.clone()));
    let mut found = predict_all(program, &sets, Seeds::ONE).into_iter();
    let Some(Ok(_)) = found.next() else { return Estimates::default() };
    // No change is one that can always be made.
    let unchanged = predict(program, &[], Seeds::of(program)).unwrap_or_default();
    let mut rows: Vec<Estimate> = tries
        .into_iter()
        .zip(found)
        .filter_map(|((together, of), made)| {
            Some(row(program, &unchanged, together, of, made.ok()?))
        })
        .collect();
    see_again(program, &unchanged, &mut rows);
    best_stand_for_kinds(&mut rows);
    rows.sort_by(|a, b| {
        Reverse(a.together).cmp(&Reverse(b.together)).then(b.worth.total_cmp(&a.worth))
    });
    Estimates { unchanged, rows }
}

/// What gains anything is replayed once more for its band.
fn see_again(program: &Program, unchanged: &Prediction, rows: &mut [Estimate]) {
    let mut gain: Vec<&mut Estimate> = rows.iter_mut().filter(|row| row.worth > GAINS).collect();
    gain.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    gain.truncate(BANDS);
    let sets: Vec<Vec<Change>> = gain.iter().map(|row| row.change.clone()).collect();
    let again = predict_all(program, &sets, Seeds::of(program));
    for (seen, made) in gain.into_iter().zip(again) {
        let Ok(made) = made else { continue };
        let of = Resource {
            kind: seen.kind,
            members: std::mem::take(&mut seen.members),
            change: std::mem::take(&mut seen.change),
            weight: 0,
            is_thread: false,
            is_bound: seen.basis == Basis::Bound,
        };
        *seen = row(program, unchanged, seen.together, of, made);
    }
}

/// Where the resources of a kind are not tried together, or are worth less than one thread alone,
/// the best stands for all.
fn best_stand_for_kinds(rows: &mut Vec<Estimate>) {
    let mut best: BTreeMap<Kind, usize> = BTreeMap::new();
    for (i, row) in rows.iter().enumerate() {
        let at = best.entry(row.kind).or_insert(i);
        if row.worth > rows[*at].worth || row.together && row.worth >= rows[*at].worth {
            *at = i;
        }
    }
    let more: Vec<Estimate> = best
        .into_values()
        .filter(|&i| !rows[i].together)
        .map(|i| Estimate { together: true, ..rows[i].clone() })
        .collect();
    for whole in &more {
        rows.retain(|row| !(row.together && row.kind == whole.kind));
    }
    rows.extend(more);
}

fn row(
    program: &Program,
    unchanged: &Prediction,
    together: bool,
    of: Resource,
    mut made: Prediction,
) -> Estimate {
    if of.is_bound {
        // It is divided, not done in less CPU time.
        let floor = Work::of(&View::unchanged(program)).all_ns / Nanos::from(program.cpus.max(1));
        for ns in [&mut made.wall_ns, &mut made.wall_low_ns, &mut made.wall_high_ns] {
            *ns = (*ns).max(floor).min(unchanged.wall_high_ns);
        }
    }
    let worth = |ns: Nanos| unchanged.wall_ns as f64 / ns.max(1) as f64;
    Estimate {
        kind: of.kind,
        together,
        members: of.members,
        change: of.change,
        worth: worth(made.wall_ns),
        low: worth(made.wall_high_ns),
        high: worth(made.wall_low_ns),
        basis: if of.is_bound { Basis::Bound } else { Basis::Replayed },
        prediction: made,
    }
}

/// All resources of one kind as one.
fn together(of_kind: &[Resource]) -> Resource {
    let mut all = Resource {
        kind: of_kind[0].kind,
        members: Vec::new(),
        change: Vec::new(),
        weight: of_kind.iter().map(|r| r.weight).sum(),
        is_thread: false,
        is_bound: false,
    };
    for one in of_kind {
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
