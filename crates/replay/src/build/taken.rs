//! Locks that a changed replay gives to the first thread to arrive, and not in the traced order.
//!
//! This needs every hold. For locks that are system calls every hold is known. For a mutex only the
//! holds that another thread waited for are seen; [`HeldInAll`] gives the number of the others
//! (`unseen`).

use super::Builder;
use super::objects::{Class, is_contended};
use super::runs::Runs;
use super::unseen::{self, Of, Own};
use super::writer::Hold;
use crate::program::{ObjectId, Order};
use holdup_attribution::HeldInAll;
use holdup_passes::limits::WELL_MET;
use holdup_passes::{Held, Object, ObjectKind, ObjectStats, Slot};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Only this many locks, those with the longest waits, are searched for all their holds: each
/// search goes through all steps of the lock's threads.
const LOCKS: usize = 64;
/// With more unseen holds a lock keeps the traced order: each is a step of its thread, and in a
/// damaged trace they may be as many as microseconds in a century.
const MOST_UNSEEN: u64 = 1 << 20;

/// A lock with all its holds in order of time, and the number of holds that were not seen.
struct Taken {
    id: ObjectId,
    order: Order,
    holds: Vec<Of>,
    /// The mean CPU time of a hold.
    usual: Nanos,
    unseen: u64,
}

impl Builder<'_> {
    /// Find those locks, and all of their holds.
    pub(super) fn find_taken(&mut self) {
        let mut holds: BTreeMap<Object, Vec<Of>> = BTreeMap::new();
        for &(slot, _) in &self.slots {
            for &Held { object, from, to, seen } in self.analysis.steps(slot).held {
                let object = self.analysis.final_object(object);
                if self.class(object) == Class::Lock {
                    holds.entry(object).or_default().push(Of { from, to, slot, seen });
                }
            }
        }
        let mut holds: Vec<(ObjectStats, Vec<Of>)> = holds
            .into_iter()
            .filter_map(|(object, holds)| Some((*self.stats(object)?, holds)))
            .collect();
        holds.sort_by_key(|(stats, _)| (Reverse(stats.wait_ns), stats.object));
        holds.truncate(LOCKS);
        let mut runs: FxHashMap<Slot, Runs> = FxHashMap::default();
        let mut found: Vec<Taken> = Vec::new();
        for (stats, holds) in holds {
            for of in &holds {
                let steps = self.analysis.steps(of.slot).steps;
                runs.entry(of.slot).or_insert_with(|| Runs::of(steps));
            }
            found.extend(self.whole(&stats, holds, &runs));
        }
        let mut own = Own::default();
        for taken in &found {
            taken.holds.iter().for_each(|&of| own.add(of));
        }
        for mut taken in found {
            if taken.unseen > 0 {
                let put = unseen::put(&taken.holds, taken.unseen, taken.usual, &runs, &own);
                put.iter().for_each(|&of| own.add(of));
                taken.holds.extend(put);
            }
            self.objects[taken.id.0 as usize].order = taken.order;
            for of in taken.holds {
                self.taken.entry(of.slot).or_default().push((of.from, of.to, taken.id));
            }
        }
    }

    /// The lock with all its holds, if they are all known.
    fn whole(
        &self,
        stats: &ObjectStats,
        mut holds: Vec<Of>,
        runs: &FxHashMap<Slot, Runs>,
    ) -> Option<Taken> {
        let (id, order) = (self.id(stats.object), order(stats)?);
        let (mut usual, mut unseen) = (0, 0);
        if stats.kind == ObjectKind::Futex {
            let waited = self.around.waited_by.of(stats.object).iter();
            let waited = waited.map(|&(slot, pair)| (slot, pair.wait_ns));
            let held = self.around.held_by.of(stats.object);
            let all = HeldInAll::of(self.analysis, stats, held, waited)?;
            usual = unseen::begin(&mut holds, runs);
            unseen = all.holds.saturating_sub(holds.len() as u64);
            if unseen > MOST_UNSEEN {
                return None;
            }
        }
        holds.sort_unstable();
        (id != ObjectId::NONE && !overlap(&holds, self.analysis.limit(&WELL_MET)))
            .then_some(Taken { id, order, holds, usual, unseen })
    }

    /// The thread's holds of those locks.
    pub(super) fn taken(&self, slot: Slot) -> &[Hold] {
        self.taken.get(&slot).map_or(&[], Vec::as_slice)
    }
}

/// Which thread gets such a lock when it is released; `None` for locks whose holds are not all
/// known.
fn order(o: &ObjectStats) -> Option<Order> {
    match o.kind {
        // The kernel gives the semaphore, or the message, to the longest waiter.
        ObjectKind::Semop | ObjectKind::MessageQueue | ObjectKind::Mqueue => Some(Order::Handed),
        // The kernel wakes the longest waiter, and the first thread to arrive gets the lock.
        // Threads that contend for a mutex that seldom makes them sleep do not wait to be woken.
        ObjectKind::Futex if !is_contended(o) => Some(Order::Taken),
        // A thread that tries and naps is not woken.
        ObjectKind::Flock | ObjectKind::PosixLock if o.retries == 0 => Some(Order::Taken),
        _ => None,
    }
}

/// Whether holds, which are in order of time, overlap.
fn overlap(holds: &[Of], pct: f64) -> bool {
    let (mut end, mut both, mut all) = (0, 0, 0);
    for of in holds {
        all += of.to - of.from;
        both += of.to.min(end).saturating_sub(of.from);
        end = end.max(of.to);
    }
    super::is_part(both, all, pct) && both > 0
}
