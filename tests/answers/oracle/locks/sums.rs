//! Waits added up: a plain computation over the printed events, and the rows of holdup.

use super::events::{Kind, Raw};
use super::printed::Row;
use holdup_passes::{Analysis, LockBy, LockRow, LockSource};
use std::collections::{BTreeMap, BTreeSet};

/// Number, total, least and most of waits; the number includes those without an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) total: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Sums {
    pub(crate) fn end(&mut self, ns: u64) {
        self.min = if self.ended == 0 { ns } else { self.min.min(ns) };
        self.ended += 1;
        self.total += ns;
        self.max = self.max.max(ns);
    }

    pub(crate) fn of(r: &LockRow) -> Sums {
        let (begun, open) = (r.contended.unwrap(), r.open.unwrap());
        Sums {
            begun,
            ended: begun - open,
            total: r.wait_total_ns.unwrap(),
            min: r.wait_min_ns.unwrap_or(0),
            max: r.wait_max_ns.unwrap_or(0),
        }
    }
}

/// The plain computation. perf takes all idle tasks for one thread; `apart` tells them apart.
pub(crate) fn plain<K: Ord>(
    events: &[Raw],
    apart: bool,
    key: impl Fn(&Raw) -> K,
) -> BTreeMap<K, Sums> {
    let mut open: BTreeMap<(i64, i64, u64), u64> = BTreeMap::new();
    let mut sums: BTreeMap<K, Sums> = BTreeMap::new();
    for e in events {
        let who = (e.tid, if apart && e.tid == 0 { e.cpu } else { 0 }, e.lock);
        match e.kind {
            Kind::Begin => {
                if let std::collections::btree_map::Entry::Vacant(v) = open.entry(who) {
                    v.insert(e.ts);
                    sums.entry(key(e)).or_default().begun += 1;
                }
            }
            Kind::End => {
                if let Some(since) = open.remove(&who) {
                    sums.entry(key(e)).or_default().end(e.ts - since);
                }
            }
            _ => {}
        }
    }
    sums
}

pub(crate) fn ours<K: Ord>(
    a: &Analysis,
    by: LockBy,
    source: LockSource,
    key: impl Fn(&LockRow) -> K,
) -> BTreeMap<K, Sums> {
    let mut out: BTreeMap<K, Sums> = BTreeMap::new();
    for r in a.locks_from(by, source) {
        let s = Sums::of(&r);
        let sum = out.entry(key(&r)).or_default();
        if s.ended > 0 {
            sum.min = if sum.ended == 0 { s.min } else { sum.min.min(s.min) };
        }
        sum.begun += s.begun;
        sum.ended += s.ended;
        sum.total += s.total;
        sum.max = sum.max.max(s.max);
    }
    out
}

/// perf writes -1 for who it does not know.
pub(crate) fn tid_of(r: &LockRow) -> i64 {
    r.tid.unwrap().map_or(-1, i64::from)
}

pub(crate) fn differences<K: Ord + std::fmt::Debug>(
    ours: &BTreeMap<K, Sums>,
    theirs: &BTreeMap<K, Sums>,
) -> Vec<String> {
    let keys: BTreeSet<&K> = ours.keys().chain(theirs.keys()).collect();
    keys.into_iter()
        .filter(|k| ours.get(k) != theirs.get(k))
        .map(|k| format!("{k:x?}: holdup {:?}, plain {:?}", ours.get(k), theirs.get(k)))
        .collect()
}

/// Rows of perf of one caller: contended, total, what rounding may hide of it, max, min.
pub(crate) type Merged = (u64, f64, f64, f64, f64);

/// Whether perf's row shows these sums.
pub(crate) fn shows(row: &Row, s: &Sums) -> bool {
    row.contended == s.begun
        && row.total.is(s.total)
        && row.max.is(s.max)
        && row.min.is(s.min)
        && row.avg.is(s.total.checked_div(s.ended).unwrap_or(0))
}
