//! The objects that idle CPU time is attributed to, each with its holders and waiters.
//!
//! The table of waits ([`crate::table`]) has the same objects under the same names. Here they have
//! what a verdict needs in addition: their idle time by leaf of the ledger, and the threads that
//! slept for them. Objects that are one lock are one here (`crate::rings`).

use crate::held::HeldInAll;
use crate::leaf::Leaf;
use crate::object::WaitRule;
use crate::per_object::PerObject;
use crate::table::{WaitsRow, in_words};
use crate::{Attribution, ObjectThreads};
use holdup_passes::{HoldSum, Object, ObjectKind, Slot, WaitSum};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A thread that slept for an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleeper {
    /// The thread.
    pub slot: Slot,
    /// For how long, in total.
    pub wait_ns: Nanos,
}

impl Sleeper {
    /// The sum for each thread, longest first.
    pub fn added_up(sleepers: impl IntoIterator<Item = Sleeper>) -> Vec<Sleeper> {
        let mut of: BTreeMap<Slot, Nanos> = BTreeMap::new();
        for s in sleepers {
            *of.entry(s.slot).or_default() += s.wait_ns;
        }
        let sleeper = |(slot, wait_ns)| Sleeper { slot, wait_ns };
        let mut sleepers: Vec<Sleeper> = of.into_iter().map(sleeper).collect();
        sleepers.sort_by_key(|s| (Reverse(s.wait_ns), s.slot));
        sleepers
    }
}

/// An object that threads waited for.
#[derive(Clone, Debug)]
pub struct Blamed {
    /// Its parts: the words of a condition variable, or the objects of one lock.
    pub objects: Vec<Object>,
    /// Its row in the table of waits.
    pub row: WaitsRow,
    /// Its kind.
    pub kind: ObjectKind,
    /// Why waiting for it counts as harmful or idle.
    pub rule: WaitRule,
    /// The number of its holders, of which the row names the most important.
    pub holders_in_all: u64,
    /// Idle CPU time and waiting time attributed to it, by leaf of the ledger.
    pub leaves: BTreeMap<Leaf, WaitSum>,
    /// The system calls that threads slept in for it, longest first.
    pub calls: Vec<(String, Nanos)>,
    /// Every thread that slept for it, longest first.
    pub sleepers: Vec<Sleeper>,
    /// How long each thread held it.
    pub held: BTreeMap<Slot, HoldSum>,
    /// For a mutex: how long all threads held it, with holds that no event shows.
    pub in_all: Option<HeldInAll>,
    /// The number of further objects that are the same lock as the row's object.
    pub others: usize,
    /// The names of all of them, that of the row first ([`in_words`]).
    pub names: Vec<String>,
}

impl Blamed {
    /// Idle CPU time at a leaf that is attributed to it.
    pub fn idle_ns(&self, leaf: Leaf) -> Nanos {
        self.leaves.get(&leaf).map_or(0, WaitSum::share_ns)
    }

    /// Every thread that slept for it or held it.
    pub fn users(&self) -> impl Iterator<Item = Slot> {
        let sleepers = self.sleepers.iter().map(|s| s.slot);
        sleepers.chain(self.held.keys().copied())
    }
}

impl Attribution<'_> {
    /// The objects that threads waited for, not yet grouped by lock, in no order.
    pub(crate) fn blamed_one_by_one(&self) -> Vec<Blamed> {
        let a = self.analysis;
        let mut leaves = PerObject::<BTreeMap<Leaf, WaitSum>>::new(a);
        let mut in_calls = PerObject::<BTreeMap<u32, Nanos>>::new(a);
        for w in &self.waits {
            leaves[w.row.object].entry(w.leaf).or_default().add(&w.row.sum);
            if let Some(nr) = w.row.nr {
                *in_calls[w.row.object].entry(nr).or_default() += w.row.sum.wait_ns;
            }
        }
        let ObjectThreads { waited_by, held_by, .. } = &self.by_object;
        self.object_rows()
            .into_iter()
            .filter_map(|o| {
                let judged = self.objects.get(o.objects.first()?)?;
                let mut sums: BTreeMap<Leaf, WaitSum> = BTreeMap::new();
                let mut slept: Vec<Sleeper> = Vec::new();
                let mut calls: BTreeMap<String, Nanos> = BTreeMap::new();
                let mut held: BTreeMap<Slot, HoldSum> = BTreeMap::new();
                for &object in &o.objects {
                    for (&leaf, sum) in &leaves[object] {
                        sums.entry(leaf).or_default().add(sum);
                    }
                    for (&nr, &ns) in &in_calls[object] {
                        *calls.entry(a.call_name(nr)).or_default() += ns;
                    }
                    let by = waited_by.of(object).iter();
                    slept.extend(by.map(|&(slot, p)| Sleeper { slot, wait_ns: p.wait_ns }));
                    for &(slot, sum) in held_by.of(object) {
                        held.entry(slot).or_default().add(sum);
                    }
                }
                // A condition variable has several words, a mutex has one.
                let in_all = match o.objects[..] {
                    [object] => {
                        let waited = slept.iter().map(|s| (s.slot, s.wait_ns));
                        HeldInAll::of(a, &judged.stats, held_by.of(object), waited)
                    }
                    _ => None,
                };
                let mut calls: Vec<(String, Nanos)> = calls.into_iter().collect();
                calls.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
                let holders_in_all = o.holders_in_all.max(o.row.holders.len() as u64);
                let names = vec![in_words(o.row.kind, o.row.usage, &o.row.object)];
                Some(Blamed {
                    objects: o.objects,
                    row: o.row,
                    kind: judged.kind,
                    rule: judged.rule,
                    holders_in_all,
                    leaves: sums,
                    calls,
                    sleepers: Sleeper::added_up(slept),
                    held,
                    in_all,
                    others: 0,
                    names,
                })
            })
            .collect()
    }
}
