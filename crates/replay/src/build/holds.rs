//! When threads held locks, from and to.

use super::Builder;
use super::objects::Class;
use super::writer::Hold;
use crate::program::{ObjectId, Order};
use holdup_passes::{Held, Object, ObjectKind, Slot};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

impl Builder<'_> {
    /// A kernel lock's acquisition is not traced. The thread that wakes the next one held it: since
    /// its own wake-up for it, or the previous holder's release, or the beginning of the wait,
    /// whichever is latest.
    pub(super) fn infer_holds(&mut self) {
        let mut ends: Vec<(Object, Nanos, Nanos, Slot, Slot)> = Vec::new();
        for &(slot, _) in &self.slots {
            for step in self.analysis.steps(slot).steps {
                let Some(ended) = self.ended(slot, step) else { continue };
                let known = self.stats(ended.object);
                if known.is_some_and(|o| o.is_lock && o.kind == ObjectKind::KernelLock) {
                    ends.push((ended.object, ended.at + ended.ns, ended.at, slot, ended.sleeper));
                }
            }
        }
        ends.sort_unstable();
        let mut released: FxHashMap<Object, Nanos> = FxHashMap::default();
        let mut got: FxHashMap<(Object, Slot), Nanos> = FxHashMap::default();
        for (object, to, began, waker, sleeper) in ends {
            let last = released.insert(object, to).unwrap_or(0);
            let own = got.get(&(object, waker)).copied().unwrap_or(0);
            let from = last.max(own).max(if own == 0 { began } else { 0 }).min(to);
            self.inferred.entry(waker).or_default().push(Held { object, from, to, seen: false });
            got.insert((object, sleeper), to);
        }
    }

    /// The thread's holds of locks: from, to, lock.
    pub(super) fn holds(&self, slot: Slot) -> Vec<Hold> {
        let inferred = self.inferred.get(&slot).map_or(&[][..], Vec::as_slice);
        let held = self.analysis.steps(slot).held.iter().chain(inferred);
        let lock = |h: &Held| {
            (self.class(h.object) == Class::Lock).then(|| (h.from, h.to, self.id(h.object)))
        };
        // All holds are known of locks that go to the first thread to arrive.
        let traced =
            |h: &Hold| h.2 != ObjectId::NONE && self.objects[h.2.0 as usize].order == Order::Traced;
        let held = held.filter_map(lock).filter(traced);
        held.chain(self.taken(slot).iter().copied()).collect()
    }
}
