//! Threads of which no more than one, or than a few, sleep at the same time.
//!
//! Threads of one kind wait for each other, and sleep for a timer or for another program. If they
//! did that independently, their sleeps would overlap as chance has it. If hardly ever more than a
//! certain number overlap, a thread sleeps with something in hand that the others wait for, and
//! there are so many: a lock, or the connections of a pool. It need not look like a lock that is
//! handed on: the holder may wake a waiter and take it again at once, and of several connections
//! the one that is given back is not always the one that was taken last.
//!
//! What this cannot distinguish: so many requests that go round in a pool of threads, where whoever
//! has answered one wakes the next thread for it.

use crate::program::{ObjectId, Program, ReplayObject};
use crate::relief::{Wait, Waits};
use holdup_passes::ObjectKind;
use holdup_passes::limits::{ENOUGH, MATTERS, MISSING_ENDS, Thresholds};
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Whether hardly ever more than a certain number of these threads (`is_one`) sleep at once, by
/// themselves, although more would for a part of the time that matters if they were independent.
/// Devices are not asked: of two threads that wait for a disk, one may have to. Nor are event
/// loops, of which a runtime lets one thread wait.
///
/// Such threads also end most of the waiting at these `words` themselves. Workers that sleep only
/// while they have a request, of which there are so many, are woken by who hands requests out.
pub(crate) fn exclude_each_other(
    program: &Program,
    waits: &Waits,
    words: &[ObjectId],
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
    let asleep: Vec<_> = own.into_iter().filter(often).map(|w| (w.from, w.to, w.thread)).collect();
    let sleepers: BTreeSet<u32> = asleep.iter().map(|of| of.2).collect();
    let words: BTreeSet<ObjectId> = words.iter().copied().collect();
    let waited = waits.all().iter().filter(|w| is_one(w.thread) && words.contains(&w.object));
    let (mut all, mut own) = (0, 0);
    for (ns, waker) in waited.filter_map(|w| Some((w.to - w.from, w.waker?))) {
        all += ns;
        own += if sleepers.contains(&waker) { ns } else { 0 };
    }
    own * 2 >= all && is_capped(asleep, limits)
}

/// Whether these spans (from, to, thread) hardly ever overlap in more than a certain number of
/// threads, although they would if the threads were independent.
fn is_capped(spans: Vec<(Nanos, Nanos, u32)>, limits: &Thresholds) -> bool {
    let mut by_thread: BTreeMap<u32, Nanos> = BTreeMap::new();
    let mut changes: Vec<(Nanos, bool)> = Vec::with_capacity(2 * spans.len());
    for &(from, to, thread) in &spans {
        *by_thread.entry(thread).or_default() += to - from;
        changes.extend([(from, true), (to, false)]);
    }
    // One that ends comes before one that begins at the same time.
    changes.sort_unstable();
    let (Some(&(first, _)), Some(&(last, _))) = (changes.first(), changes.last()) else {
        return false;
    };
    let span = (last - first) as f64;
    // How long so many did it at once, and how long as many would by chance.
    let (mut seen, mut by_chance) = (vec![0.0; by_thread.len() + 1], vec![span]);
    let (mut at_once, mut since) = (0_usize, first);
    for (at, begins) in changes {
        seen[at_once.min(by_thread.len())] += (at - since) as f64;
        at_once = if begins { at_once + 1 } else { at_once.saturating_sub(1) };
        since = at;
    }
    for ns in by_thread.values() {
        let part = (*ns as f64 / span.max(1.0)).min(1.0);
        let more: Vec<f64> = by_chance.iter().map(|ns| ns * part).collect();
        by_chance.iter_mut().for_each(|ns| *ns *= 1.0 - part);
        by_chance.push(0.0);
        by_chance[1..].iter_mut().zip(more).for_each(|(ns, more)| *ns += more);
    }
    let beyond = |of: &[f64], cap: usize| {
        of.iter().zip(0_usize..).map(|(ns, n)| ns * n.saturating_sub(cap) as f64).sum::<f64>()
    };
    let matters = |cap: &usize| beyond(&by_chance, *cap) * 100.0 >= span * limits.get(&MATTERS);
    let mut caps = (1..by_thread.len()).take_while(matters);
    caps.any(|cap| beyond(&seen, cap) * limits.get(&MISSING_ENDS) < beyond(&by_chance, cap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Op;
    use crate::tests::{LOCK, program, waits};

    /// Three threads that sleep `times` times for 10 ns, each 30 ns after its last sleep began; the
    /// second and the third begin `apart` and twice as much later than the first.
    fn sleeping(times: u64, apart: u64, object: ObjectId) -> bool {
        let steps = vec![Op::Sleep(10, object); times as usize];
        let mut p = program(3, &[steps.clone(), steps.clone(), steps]);
        p.times = (0..3).flat_map(|i| (0..times).map(move |n| n * 30 + i * apart)).collect();
        exclude_each_other(&p, &waits(&p), &[], &[true; 3], &Thresholds::default())
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
        assert!(!exclude_each_other(&p, &waits(&p), &[], &[true; 2], &limits));
        assert!(!exclude_each_other(&p, &waits(&p), &[], &[false; 2], &limits));
    }

    /// Four threads that sleep for 30 ns each, as soon as one of `pool` connections is free.
    fn pool_of(pool: usize) -> bool {
        let mut free = vec![0; pool];
        let mut times = vec![Vec::new(); 4];
        for n in 0..400_usize {
            let next = free.iter_mut().min().unwrap();
            times[n * 7 % 4].push(*next);
            *next += 30;
        }
        let steps: Vec<_> =
            times.iter().map(|of| vec![Op::Sleep(30, ObjectId::NONE); of.len()]).collect();
        let mut p = program(1, &steps);
        p.times = times.concat();
        exclude_each_other(&p, &waits(&p), &[], &[true; 4], &Thresholds::default())
    }

    #[test]
    fn a_pool_of_a_few_is_a_cap_and_one_for_all_is_none() {
        assert_eq!([1, 2, 3, 4].map(pool_of), [true, true, true, false]);
    }

    /// Three threads sleep one after the other, each woken when the last is over: by that one, or
    /// by a fourth thread.
    #[test]
    fn workers_that_are_woken_by_who_hands_out_requests_have_nothing_in_hand() {
        let exclusive = |by_each_other: bool| {
            let mut steps = vec![Vec::new(); 4];
            let mut times = vec![Vec::new(); 4];
            for n in 0..150_u64 {
                let (next, last) = ((n % 3) as usize, ((n + 2) % 3) as usize);
                let waker = if by_each_other { last } else { 3 };
                steps[waker].push(Op::Wake { thread: next as u32, number: n as u32 });
                times[waker].push(n * 10);
                steps[next].extend([
                    Op::Wait { number: n as u32, object: LOCK, delay: 0 },
                    Op::Sleep(10, ObjectId::NONE),
                ]);
                times[next].extend([(n * 10).saturating_sub(5), n * 10]);
            }
            let mut p = program(3, &steps);
            p.times = times.concat();
            let is_one = [true; 4];
            exclude_each_other(&p, &waits(&p), &[LOCK], &is_one, &Thresholds::default())
        };
        assert_eq!([true, false].map(exclusive), [true, false]);
    }
}
