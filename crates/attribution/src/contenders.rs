//! Threads that contend for an object with the threads they wake: waking is no service.

use crate::ObjectThreads;
use crate::limits::{MATTERS, Thresholds};
use crate::object::JudgedObject;
use crate::per_object::PerObject;
use holdup_passes::{Analysis, Object, ObjectKind, ObjectStats, PairSum, Slot, WaitRow, percent};
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Whether such an object is always one thing. A set of semaphores, a queue with message types and
/// a socket need not be: a request may wait in one part and the answer in another, and the trace
/// does not distinguish the parts.
fn is_one_thing(kind: ObjectKind) -> bool {
    use ObjectKind::{Eventfd, Flock, Futex, Mqueue, Pipe, PosixLock};
    matches!(kind, Futex | Flock | PosixLock | Eventfd | Mqueue | Pipe)
}

/// The waits for each object by call, as far as a thread ended them.
fn by_call(analysis: &Analysis, rows: &[WaitRow]) -> PerObject<BTreeMap<u32, u64>> {
    let mut by = PerObject::<BTreeMap<u32, u64>>::new(analysis);
    for row in rows.iter().filter(|row| row.cause.is_ended_by_thread()) {
        if let Some(nr) = row.nr {
            *by[row.object].entry(nr).or_default() += row.sum.waits;
        }
    }
    by
}

/// Whether an object is waited for in one kind of call, apart from chance. The reader of a pipe
/// waits until there is something in it, the writer until there is room: they do not contend.
fn is_in_one_call(calls: &BTreeMap<u32, u64>, thresholds: &Thresholds) -> bool {
    let (all, most) = (calls.values().sum(), calls.values().max().copied().unwrap_or(0));
    !calls.is_empty() && !thresholds.at_least(percent(all - most, all), &MATTERS).holds()
}

/// For each thread, the waiting time of others that it ended at objects both contend for.
///
/// Of two contending threads one may nearly always have the object: it is so fast that the other,
/// just woken, finds it taken again. That looks like a busy server but is none: what it does for
/// itself keeps the other waiting.
#[derive(Clone, Debug, Default)]
pub struct Contenders {
    at: BTreeSet<(Object, Slot)>,
    ended_ns: BTreeMap<Slot, Nanos>,
}

impl Contenders {
    pub(crate) fn of(
        analysis: &Analysis,
        rows: &[WaitRow],
        (objects, by_object): (&BTreeMap<Object, JudgedObject>, &ObjectThreads),
        thresholds: &Thresholds,
    ) -> Contenders {
        let by_call = by_call(analysis, rows);
        let mut contenders = Contenders::default();
        // A thread that wakes all waiters tells them something; it hands the object to none.
        let taken = |o: &&ObjectStats| {
            let is_handed = || is_in_one_call(&by_call[o.object], thresholds);
            o.is_lock || is_one_thing(o.kind) && !o.wakes_all && is_handed()
        };
        for o in objects.values().map(|o| &o.stats).filter(taken) {
            let ended = by_object.ended_by.of(o.object);
            let takes = |(slot, pair): &&(Slot, PairSum)| {
                let own = by_object.waited_by.at(o.object, *slot).map_or(0, |pair| pair.waits);
                // A thread that holds a lock and waited for it before contends for it, however
                // rarely it waits.
                let often = || thresholds.at_least(percent(own, pair.waits), &MATTERS).holds();
                own > 0 && (o.is_lock || often())
            };
            // The writer of a full pipe ends some waits, and itself waits most of the time.
            let all: Nanos = ended.iter().map(|of| of.1.wait_ns).sum();
            let by_takers: Nanos = ended.iter().filter(takes).map(|of| of.1.wait_ns).sum();
            if by_takers * 2 < all {
                continue;
            }
            for (slot, pair) in ended.iter().filter(takes) {
                contenders.at.insert((o.object, *slot));
                *contenders.ended_ns.entry(*slot).or_default() += pair.wait_ns;
            }
        }
        contenders
    }

    /// Whether a thread contends for an object with the threads that wait for it.
    pub fn takes(&self, object: Object, slot: Slot) -> bool {
        self.at.contains(&(object, slot))
    }

    /// Whether threads contend for an object.
    pub fn are_at(&self, object: Object) -> bool {
        self.at.range((object, Slot(0))..).next().is_some_and(|&(of, _)| of == object)
    }

    /// Whether threads contend for any of these objects.
    pub fn are_at_any(&self, of: &[Object]) -> bool {
        of.iter().any(|&object| self.are_at(object))
    }

    /// The waiting time of others that a thread ended by contention.
    pub fn ended_ns(&self, slot: Slot) -> Nanos {
        self.ended_ns.get(&slot).copied().unwrap_or(0)
    }
}
