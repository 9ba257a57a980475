//! Locks that a changed replay gives to whoever comes first, in place of the order of the trace.
//!
//! For that every hold must be known. Of locks that are system calls it is. Of a mutex only those
//! holds are seen that somebody waited for: the others are as many as [`HeldInAll`] says, and are
//! put where they leave no trace: while a thread runs and no other has the mutex.

use super::Builder;
use super::objects::Class;
use super::runs::Runs;
use super::writer::Hold;
use crate::program::{ObjectId, Order};
use holdup_attribution::HeldInAll;
use holdup_passes::{FutexUse, Held, Object, ObjectKind, ObjectStats, Slot};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Holds of a lock that lie within those of others for more than this part of their time, in per
/// cent, are not those of one lock.
const OVERLAP_PCT: u64 = 10;

/// One hold, by its thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Of {
    from: Nanos,
    to: Nanos,
    slot: Slot,
    seen: bool,
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
        let (held_by, waited_by) = (self.analysis.held_by(), self.analysis.waited_by());
        let mut runs: FxHashMap<Slot, Runs> = FxHashMap::default();
        for (object, mut holds) in holds {
            let Some(&stats) = self.stats.get(&object) else { continue };
            let Some(order) = order(&stats) else { continue };
            for of in &holds {
                let steps = self.analysis.steps(of.slot).steps;
                runs.entry(of.slot).or_insert_with(|| Runs::of(steps));
            }
            if stats.kind == ObjectKind::Futex {
                let waited = waited_by.get(&object).into_iter().flatten();
                let waited = waited.map(|(&slot, pair)| (slot, pair.wait_ns));
                let all = held_by
                    .get(&object)
                    .and_then(|held| HeldInAll::of(self.analysis, &stats, held, waited));
                let Some(all) = all else { continue };
                with_unseen(&mut holds, &runs, all.holds);
            }
            let id = self.id(object);
            if id == ObjectId::NONE || overlap(&mut holds) {
                continue;
            }
            self.objects[id.0 as usize].order = order;
            for of in holds {
                self.taken.entry(of.slot).or_default().push((of.from, of.to, id));
            }
        }
    }

    /// What the thread held of those locks.
    pub(super) fn taken(&self, slot: Slot) -> &[Hold] {
        self.taken.get(&slot).map_or(&[], Vec::as_slice)
    }
}

/// Who gets such a lock when it is given back; `None` of those whose holds are not all known.
fn order(o: &ObjectStats) -> Option<Order> {
    match o.kind {
        // The kernel gives the semaphore, or the message, to the one who waits longest.
        ObjectKind::Semop | ObjectKind::MessageQueue | ObjectKind::Mqueue => Some(Order::Handed),
        // It wakes the one who waits longest, and whoever is there first has it.
        ObjectKind::Futex if o.usage == Some(FutexUse::Mutex) => Some(Order::Taken),
        // Who tries and naps is woken by nobody.
        ObjectKind::Flock | ObjectKind::PosixLock if o.retries == 0 => Some(Order::Taken),
        _ => None,
    }
}

/// Whether holds lie within each other. Puts them in the order of time.
fn overlap(holds: &mut [Of]) -> bool {
    holds.sort_unstable();
    let (mut end, mut both, mut all) = (0, 0, 0);
    for of in holds.iter() {
        all += of.to - of.from;
        both += of.to.min(end).saturating_sub(of.from);
        end = end.max(of.to);
    }
    crate::build::is_part(both, all, OVERLAP_PCT) && both > 0
}

/// Make `holds` those `count` that there were. Whose beginning is not seen lasts as long as the
/// others do, but begins after the one before ended.
fn with_unseen(holds: &mut Vec<Of>, runs: &FxHashMap<Slot, Runs>, count: u64) {
    let ran = |of: &Of| runs[&of.slot].within(of.from, of.to);
    let whole = holds.iter().filter(|of| of.seen);
    let (times, sum) = whole.fold((0, 0), |(n, sum), of| (n + 1, sum + ran(of)));
    let usual: Nanos = (sum / Nanos::max(times, 1)).max(1);
    holds.sort_unstable_by_key(|of| (of.to, of.slot));
    let mut end = 0;
    for of in holds.iter_mut() {
        if !of.seen {
            of.from = runs[&of.slot].before(of.to, usual).max(end).min(of.to);
        }
        end = end.max(of.to);
    }
    let unseen = count.saturating_sub(holds.len() as u64);
    if unseen == 0 {
        return;
    }
    holds.sort_unstable();
    let busy: Vec<(Nanos, Nanos)> = holds.iter().map(|of| (of.from, of.to)).collect();
    let mut free: Vec<(Slot, Nanos, Nanos)> = Vec::new();
    for (&slot, runs) in runs {
        if holds.iter().any(|of| of.slot == slot) {
            free.extend(runs.without(&busy).into_iter().map(|(from, to)| (slot, from, to)));
        }
    }
    free.sort_unstable_by_key(|&(slot, from, to)| (from, to, slot));
    let all: Nanos = free.iter().map(|f| f.2 - f.1).sum();
    // By thread, in holds: what is due.
    let mut due: FxHashMap<Slot, f64> = FxHashMap::default();
    // From, to.
    let mut put: BTreeMap<Nanos, Nanos> = BTreeMap::new();
    for (slot, from, to) in free {
        let due = due.entry(slot).or_insert(0.5);
        *due += unseen as f64 * (to - from) as f64 / all.max(1) as f64;
        let n = ((to - from) / usual).min(*due as u64);
        let gap = ((to - from) - n * usual) / (n + 1);
        let mut at = from;
        for _ in 0..n {
            at += gap;
            // Behind those of other threads.
            while let Some((_, &end)) = put.range(..at + usual).next_back()
                && end > at
            {
                at = end;
            }
            if at + usual > to {
                break;
            }
            put.insert(at, at + usual);
            holds.push(Of { from: at, to: at + usual, slot, seen: false });
            *due -= 1.0;
            at += usual;
        }
    }
}
