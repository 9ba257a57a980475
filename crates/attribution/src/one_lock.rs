//! Several objects that are one lock: joins them in the list of what threads wait for.
//!
//! Two patterns show that:
//! * **a ring**: each of several objects has only one waiter (its own semaphore, condition variable
//!   or event descriptor), and the waiters wake each other. A lock that gives each waiter an object
//!   of its own looks like this: latches and lightweight locks of a database, row locks. Separate
//!   locks of separate threads are separate cycles;
//! * **tries**: threads of one program try for file locks of one kind, fail, and nap. Each process
//!   has a descriptor of its own, and no wake-up shows that they refer to one file. Their calls
//!   show which thread got the lock meanwhile.
//!
//! What this cannot distinguish: stages of a pipeline that hand work on and room back are a ring
//! too, and two files for which one program contends look like one.

use crate::blamed::{Blamed, Sleeper};
use crate::graph::components;
use crate::object::WaitRule;
use crate::table::{Holder, absorb};
use crate::{Attribution, ObjectThreads};
use holdup_passes::{Analysis, ByThread, HoldSum, ObjectKind, PairSum, Slot};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What the objects of one lock have in common: kind, use, rule, and the program that waits.
type Likeness = (ObjectKind, Option<&'static str>, WaitRule, Vec<u8>);

impl Attribution<'_> {
    /// The objects that threads waited for, in no order, with the objects of one lock joined.
    /// Threads that the filters leave out are among the sleepers, as they are in the sums.
    pub fn blamed(&self) -> Vec<Blamed> {
        join(self.analysis, self.blamed_one_by_one(), &self.by_object)
    }
}

/// Join the objects that are one lock.
fn join(analysis: &Analysis, mut objects: Vec<Blamed>, by_object: &ObjectThreads) -> Vec<Blamed> {
    // The object that is waited for longest stands for its lock.
    objects.sort_by_cached_key(|b| Reverse(b.sleepers.iter().map(|s| s.wait_ns).sum::<Nanos>()));
    let program = |s: Slot| analysis.role(analysis.thread(s));
    let like = |b: &Blamed| -> Option<Likeness> {
        let longest = b.sleepers.first()?;
        Some((b.kind, b.row.usage, b.rule, program(longest.slot)))
    };
    let mut lonely: BTreeMap<Likeness, Vec<usize>> = BTreeMap::new();
    let mut tried: BTreeMap<Likeness, Vec<usize>> = BTreeMap::new();
    for (i, b) in objects.iter().enumerate() {
        let Some(like) = like(b) else { continue };
        if is_tried(b) {
            tried.entry(like).or_default().push(i);
        } else if b.sleepers.len() == 1 && is_contended(b.rule) {
            lonely.entry(like).or_default().push(i);
        }
    }
    let mut sets: Vec<Vec<usize>> = lonely
        .into_values()
        .filter(|alike| alike.len() > 1)
        .flat_map(|alike| cycles(&alike, &objects, &by_object.ended_by))
        .collect();
    sets.extend(tried.into_values());
    let mut set_of = vec![None; objects.len()];
    for (n, set) in sets.iter().enumerate() {
        for &i in set {
            set_of[i] = Some(n);
        }
    }
    let mut joined: Vec<Option<Blamed>> = vec![None; sets.len()];
    let mut sleepers: Vec<Vec<Sleeper>> = vec![Vec::new(); sets.len()];
    let mut out = Vec::with_capacity(objects.len());
    for (b, set) in objects.into_iter().zip(set_of) {
        match set {
            None => out.push(b),
            Some(n) => {
                sleepers[n].extend(&b.sleepers);
                match &mut joined[n] {
                    None => joined[n] = Some(b),
                    Some(sum) => add(sum, b),
                }
            }
        }
    }
    let joined = joined.into_iter().zip(sleepers).filter_map(|(set, by)| Some((set?, by)));
    out.extend(joined.map(|(mut b, by)| {
        b.sleepers = Sleeper::added_up(by);
        if b.others > 0 {
            b.row.waiters = b.sleepers.len() as u64;
        }
        if is_tried(&b) {
            name_holders(&mut b, analysis, &by_object.held_by, &program);
        } else {
            let wakers = b.objects.iter().flat_map(|&o| by_object.ended_by.of(o));
            let wakers = wakers.map(|of| of.0).collect::<BTreeSet<Slot>>().len();
            b.holders_in_all = wakers.max(b.row.holders.len()) as u64;
        }
        b
    }));
    out
}

fn is_contended(rule: WaitRule) -> bool {
    matches!(rule, WaitRule::LockContention | WaitRule::HandoverContention)
}

/// A file lock that threads try for and nap.
fn is_tried(b: &Blamed) -> bool {
    matches!(b.kind, ObjectKind::PosixLock | ObjectKind::Flock)
        && b.row.retries > 0
        && is_contended(b.rule)
}

/// Among objects with one waiter each: those whose waiters wake each other.
fn cycles(alike: &[usize], objects: &[Blamed], ended_by: &ByThread<PairSum>) -> Vec<Vec<usize>> {
    let waiter = |i: usize| objects[i].sleepers[0].slot;
    let mut of: BTreeMap<Slot, Vec<usize>> = BTreeMap::new();
    for (place, &i) in alike.iter().enumerate() {
        of.entry(waiter(i)).or_default().push(place);
    }
    let next: Vec<Vec<usize>> = alike
        .iter()
        .map(|&i| {
            let wakers = objects[i].objects.iter().flat_map(|&o| ended_by.of(o));
            let others = wakers.map(|of| of.0).filter(|&w| w != waiter(i));
            others.filter_map(|w| of.get(&w)).flatten().copied().collect()
        })
        .collect();
    let cycles = components(&next).into_iter().filter(|ring| ring.len() > 1);
    cycles.map(|ring| ring.into_iter().map(|place| alike[place]).collect()).collect()
}

/// Add one more object to a lock, except its sleepers.
fn add(sum: &mut Blamed, b: Blamed) {
    for (leaf, wait) in &b.leaves {
        sum.leaves.entry(*leaf).or_default().add(wait);
    }
    let mut calls: BTreeMap<String, Nanos> = std::mem::take(&mut sum.calls).into_iter().collect();
    for (call, ns) in b.calls {
        *calls.entry(call).or_default() += ns;
    }
    sum.calls = calls.into_iter().collect();
    sum.calls.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    for (slot, held) in b.held {
        sum.held.entry(slot).or_default().add(held);
    }
    // The parts are held concurrently, so their sum is not how long the lock was held.
    sum.in_all = None;
    sum.objects.extend(b.objects);
    sum.others += b.others + 1;
    sum.names.extend(b.names);
    let pid = sum.row.pid.filter(|_| sum.row.pid == b.row.pid);
    absorb(&mut sum.row, b.row);
    sum.row.pid = pid;
}

/// Name the holders of locks that others tried for: that program's threads with such locks.
fn name_holders(
    b: &mut Blamed,
    analysis: &Analysis,
    held_by: &ByThread<HoldSum>,
    program: &dyn Fn(Slot) -> Vec<u8>,
) {
    let Some(whose) = b.sleepers.first().map(|s| program(s.slot)) else { return };
    b.held.clear();
    for stats in analysis.objects().filter(|o| o.kind == b.kind) {
        for &(slot, hold) in held_by.of(stats.object) {
            if program(slot) == whose {
                b.held.entry(slot).or_default().add(hold);
            }
        }
    }
    let held = b.held.iter().map(|(&slot, sum)| (slot, sum.hold_ns)).filter(|h| h.1 > 0);
    let mut held: Vec<(Slot, Nanos)> = held.collect();
    held.sort_by_key(|&(slot, ns)| (Reverse(ns), slot));
    b.holders_in_all = held.len() as u64;
    b.row.pct_explained = None;
    b.row.holders = held
        .into_iter()
        .take(crate::table::HOLDERS)
        .map(|(slot, hold_ns)| {
            let t = analysis.thread(slot);
            let (tid, comm) = (t.tid.0, analysis.comm(t));
            Holder { tid, comm, hold_ns, pct_explained: 0.0, inferred: false }
        })
        .collect();
}
