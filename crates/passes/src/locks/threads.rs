//! Each kernel lock with the threads that waited for it and the code that asked for it.
//!
//! The tables of locks ([`super::rows`]) group by one thing at a time. Which threads waited for one
//! lock, and from where, needs the sums before they are grouped.

use super::kind::LockKind;
use super::known;
use super::stats::Waits;
use super::{OTHER, Waiter};
use crate::analysis::Analysis;
use crate::slot::Slot;
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A kernel lock that threads waited for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockThreads {
    /// Its address, as in the table of locks; with lockdep the address of the `lockdep_map` in it.
    pub address: u64,
    /// Its address in the contention events, if different.
    pub contended_at: Option<u64>,
    /// Class (lockdep) or variable (symbols).
    pub name: Option<String>,
    /// What it most likely is, by the functions that ask for it.
    pub likely: Option<&'static str>,
    /// The family of lock: `rwsem`, `mutex` …; `None` if the events do not agree.
    pub kind: Option<&'static str>,
    /// Time waited on a CPU.
    pub spin_ns: Nanos,
    /// Time waited asleep.
    pub block_ns: Nanos,
    /// Functions that asked for it, with the time waited, longest first; empty if the recording has
    /// no call chains or no symbols.
    pub callers: Vec<(String, Nanos)>,
    /// Threads that held it while others waited, with the hold time and the time others waited,
    /// most waiting first; empty if the trace does not tell.
    pub holders: Vec<(Slot, Nanos, Nanos)>,
    /// Threads that waited, longest first, without idle tasks (interrupts on top of them).
    pub waiters: Vec<(Slot, Nanos)>,
}

#[derive(Default)]
struct Sum {
    contended_at: Option<u64>,
    family: Option<&'static str>,
    families: bool,
    spin: Nanos,
    block: Nanos,
    callers: BTreeMap<u64, Nanos>,
    waiters: BTreeMap<Slot, Nanos>,
}

impl Sum {
    fn kind(&mut self, kind: LockKind) {
        self.families |= self.family.is_some_and(|f| f != kind.family());
        self.family = Some(kind.family());
    }

    /// The family of the lock, if all events agree.
    fn family(&self) -> Option<&'static str> {
        self.family.filter(|_| !self.families)
    }

    fn waits(&mut self, waiter: Waiter, waits: &Waits) {
        self.spin += waits.spin;
        self.block += waits.block;
        if let Some(slot) = waiter.slot().filter(|_| waits.total > 0) {
            *self.waiters.entry(slot).or_default() += waits.total;
        }
    }
}

fn longest<T: Ord + Copy>(sums: &BTreeMap<T, Nanos>) -> Vec<(T, Nanos)> {
    let mut list: Vec<(T, Nanos)> = sums.iter().map(|(&k, &ns)| (k, ns)).collect();
    list.sort_by_key(|&(k, ns)| (Reverse(ns), k));
    list
}

impl Analysis {
    /// What a lock most likely is, by the waiting time of the code that asks for it.
    fn likely(&self, family: Option<&str>, callers: &BTreeMap<u64, Nanos>) -> Option<&'static str> {
        let names = &self.engine.locks.names;
        let named = callers.iter().filter_map(|(at, &ns)| Some((names.get(at)?.as_str(), ns)));
        known::likely(family?, named)
    }

    /// What each lock in the contention events most likely is, by address, if known.
    pub(super) fn likely_locks(&self) -> BTreeMap<u64, &'static str> {
        let mut sums: BTreeMap<u64, Sum> = BTreeMap::new();
        for (key, waits) in &self.engine.locks.contention.sums {
            let sum = sums.entry(key.lock).or_default();
            sum.kind(key.kind);
            *sum.callers.entry(key.caller).or_default() += waits.total;
        }
        let of = |s: &Sum| self.likely(s.family(), &s.callers);
        sums.iter().filter_map(|(&lock, sum)| Some((lock, of(sum)?))).collect()
    }

    /// Every lock of the kernel that threads waited for, by address. Times are lockdep's if it was
    /// recorded, as in the table of locks; callers always come from the contention events.
    pub fn lock_threads(&self) -> Vec<LockThreads> {
        let locks = &self.engine.locks;
        let lockdep = !locks.lockdep.sums.is_empty();
        let mut sums: BTreeMap<u64, Sum> = BTreeMap::new();
        for (key, waits) in &locks.contention.sums {
            let map = locks.lockdep.map_of(key.lock);
            // A lock unknown to lockdep has no times from lockdep: these are the only ones.
            let known = lockdep && map.is_some();
            if key.lock == OTHER || !self.lock_wanted(key.lock, &[key.kind], key.waiter) {
                continue;
            }
            let sum = sums.entry(map.unwrap_or(key.lock)).or_default();
            sum.contended_at = map.map(|_| key.lock);
            sum.kind(key.kind);
            if key.caller != 0 {
                *sum.callers.entry(key.caller).or_default() += waits.total;
            }
            if !known {
                sum.waits(key.waiter, waits);
            }
        }
        for (key, dep) in &locks.lockdep.sums {
            let kinds = locks.lockdep.kinds_of(key.lock);
            if key.lock == OTHER || !self.lock_wanted(key.lock, &kinds, key.waiter) {
                continue;
            }
            let sum = sums.entry(key.lock).or_default();
            kinds.iter().for_each(|&kind| sum.kind(kind));
            sum.waits(key.waiter, &dep.waits);
        }
        let mut holders = self.lock_holders();
        let function = |(caller, ns)| Some((locks.names.get(&caller).cloned()?, ns));
        sums.into_iter()
            .filter(|(_, s)| s.spin + s.block > 0)
            .map(|(address, s)| LockThreads {
                address,
                likely: self.likely(s.family(), &s.callers),
                contended_at: s.contended_at,
                name: self.class(address).or_else(|| self.lock_name(address)),
                kind: s.family(),
                spin_ns: s.spin,
                block_ns: s.block,
                callers: longest(&s.callers).into_iter().filter_map(function).collect(),
                holders: holders.remove(&s.contended_at.unwrap_or(address)).unwrap_or_default(),
                waiters: longest(&s.waiters),
            })
            .collect()
    }

    /// The threads that held each lock while others waited, by lock address.
    fn lock_holders(&self) -> BTreeMap<u64, Vec<(Slot, Nanos, Nanos)>> {
        let turns = self.engine.locks.contention.turns.iter().flat_map(|turns| &turns.held);
        let mut holders: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (&(lock, who), held) in turns {
            if let Some(slot) = who.slot() {
                holders.entry(lock).or_default().push((slot, held.hold_ns, held.waited_ns));
            }
        }
        for list in holders.values_mut() {
            list.sort_by_key(|&(slot, _, waited)| (Reverse(waited), slot));
        }
        holders
    }
}
