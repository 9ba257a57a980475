//! Threads that never sleep at the same time.
//!
//! Threads of one kind wait for each other, and sleep for a timer or for another program. If they
//! did that independently, their sleeps would overlap as chance has it. If they hardly ever do, a
//! thread sleeps with something in hand that the others wait for: a connection, a lock. It need not
//! look like a lock that is handed on: the holder may wake a waiter and take it again at once.

use crate::program::{ObjectId, Program, ReplayObject};
use crate::relief::{Wait, Waits};
use holdup_passes::limits::{ENOUGH, Thresholds};
use holdup_passes::{ObjectKind, Overlap, Slot};
use std::collections::BTreeMap;

/// Whether the sleeps of these threads (`is_one`) that none of them ends exclude each other, and
/// would overlap for a part of the time that matters if they were independent. Devices are not
/// asked: of two threads that wait for a disk, one may have to. Nor are event loops, of which a
/// runtime lets one thread wait.
pub(crate) fn exclude_each_other(
    program: &Program,
    waits: &Waits,
    is_one: &[bool],
    limits: &Thresholds,
) -> bool {
    let is_one = |thread: u32| is_one[thread as usize];
    let is_own = |w: &&Wait| {
        let is_empty_handed = |o: &ReplayObject| o.is_device || o.kind == ObjectKind::Epoll;
        let empty_handed = program.objects.get(w.object.0 as usize).is_some_and(is_empty_handed);
        let by_others = w.waker.is_none_or(|waker| !is_one(waker));
        is_one(w.thread) && by_others && !empty_handed && w.object != ObjectId::QUOTA
    };
    let own: Vec<&Wait> = waits.all().iter().filter(is_own).collect();
    // Each of them waits for work or for an end once, which says nothing.
    let mut cases: BTreeMap<(u32, ObjectId), f64> = BTreeMap::new();
    for w in &own {
        *cases.entry((w.thread, w.object)).or_default() += 1.0;
    }
    let often = |w: &&Wait| cases[&(w.thread, w.object)] >= limits.get(&ENOUGH);
    let mut asleep: Vec<&Wait> = own.into_iter().filter(often).collect();
    asleep.sort_unstable_by_key(|w| w.from);
    let mut overlap = Overlap::default();
    asleep.into_iter().for_each(|w| overlap.add(Slot(w.thread), w.from, w.to));
    overlap.is_missing(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Op;
    use crate::tests::program;

    /// Three threads that sleep `times` times for 10 ns, each 30 ns after its last sleep began; the
    /// second and the third begin `apart` and twice as much later than the first.
    fn sleeping(times: u64, apart: u64, object: ObjectId) -> bool {
        let steps = vec![Op::Sleep(10, object); times as usize];
        let mut p = program(3, &[steps.clone(), steps.clone(), steps]);
        p.times = (0..3).flat_map(|i| (0..times).map(move |n| n * 30 + i * apart)).collect();
        exclude_each_other(&p, &Waits::of(&p), &[true; 3], &Thresholds::default())
    }

    #[test]
    fn who_sleeps_in_turn_has_something_in_hand() {
        assert!(sleeping(50, 10, ObjectId::NONE));
        assert!(!sleeping(50, 0, ObjectId::NONE), "all at once");
        assert!(!sleeping(50, 5, ObjectId::NONE), "half of each sleep, less than by chance");
        assert!(!sleeping(19, 10, ObjectId::NONE), "too few to say");
        assert!(!sleeping(50, 10, ObjectId::QUOTA), "nobody asked to sleep");
        assert!(!sleeping(0, 10, ObjectId::NONE));
    }

    #[test]
    fn one_that_sleeps_alone_excludes_nobody() {
        let p = program(2, &[vec![Op::Sleep(10, ObjectId::NONE); 50], vec![Op::Run(500)]]);
        let limits = Thresholds::default();
        assert!(!exclude_each_other(&p, &Waits::of(&p), &[true; 2], &limits));
        assert!(!exclude_each_other(&p, &Waits::of(&p), &[false; 2], &limits));
    }
}
