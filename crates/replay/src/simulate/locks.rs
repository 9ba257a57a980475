//! Locks that go to the first thread to arrive.

use super::{Machine, NOBODY, State};
use crate::change::Rule;
use crate::program::{ObjectId, Order};
use std::collections::VecDeque;

/// One lock and its waiters.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    holder: u32,
    queue: VecDeque<u32>,
}

impl Machine<'_> {
    /// The thread wants the lock. Returns false if it has to wait.
    pub(super) fn takes(&mut self, thread: u32, object: ObjectId) -> bool {
        let parts = match self.view.rules[object.0 as usize] {
            Rule::Gone => return true,
            Rule::Parts(count) => count,
            Rule::Same | Rule::Scaled(_) | Rule::Awake | Rule::First => 1,
        };
        let woken = self.threads[thread as usize].tries.take().filter(|t| t.0 == object);
        let part = woken.map_or_else(|| if parts > 1 { self.random(parts) } else { 0 }, |t| t.1);
        let locks = &mut self.locks[object.0 as usize];
        if locks.is_empty() {
            locks.resize(parts as usize, Lock { holder: NOBODY, queue: VecDeque::new() });
        }
        let lock = &mut locks[part as usize];
        let t = &mut self.threads[thread as usize];
        if lock.holder == NOBODY || lock.holder == thread {
            lock.holder = thread;
            t.took.push((object, part));
            return true;
        }
        lock.queue.push_back(thread);
        t.state = State::Locked(object, part);
        false
    }

    /// The thread releases the lock if it holds it.
    pub(super) fn releases(&mut self, thread: u32, object: ObjectId) {
        let t = &mut self.threads[thread as usize];
        let Some(at) = t.took.iter().position(|took| took.0 == object) else { return };
        let (_, part) = t.took.swap_remove(at);
        self.frees(object, part);
    }

    /// A thread that ends holds no lock any more.
    pub(super) fn releases_all(&mut self, thread: u32) {
        for (object, part) in std::mem::take(&mut self.threads[thread as usize].took) {
            self.frees(object, part);
        }
    }

    fn frees(&mut self, object: ObjectId, part: u32) {
        let lock = &mut self.locks[object.0 as usize][part as usize];
        lock.holder = NOBODY;
        let Some(next) = lock.queue.pop_front() else { return };
        let handed = self.view.order(object) == Order::Handed;
        if handed {
            lock.holder = next;
        }
        let t = &mut self.threads[next as usize];
        t.tries = Some((object, part));
        let delay = self.view.program.threads[t.of as usize].usual_delay;
        self.wake(next, delay);
    }

    /// The thread waits for no lock any more.
    pub(super) fn leave_queues(&mut self, thread: u32) {
        if let State::Locked(object, part) = self.threads[thread as usize].state {
            self.locks[object.0 as usize][part as usize].queue.retain(|&t| t != thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::change::{Change, LockChange};
    use crate::program::{ObjectId, Op, Order, Program};
    use crate::tests::{LOCK, any_threads, freely, program, wall};
    use proptest::prelude::*;

    /// Each thread runs for these times before, in and after a hold; each thread after the first
    /// waited for the one before.
    fn contending(order: Order, threads: &[[u64; 3]]) -> Program {
        let count = threads.len() as u32;
        let steps = threads.iter().zip(0..).map(|(&[before, within, after], i)| {
            let wait = (i > 0).then_some(Op::Wait { number: i, object: LOCK, delay: 0 });
            let wake = (i + 1 < count).then_some(Op::Wake { thread: i + 1, number: i + 1 });
            let held = [Op::Hold(LOCK), Op::Run(within), Op::Drop(LOCK)];
            let mut steps = vec![Op::Run(before)];
            steps.extend(wait.into_iter().chain(held).chain(wake));
            steps.push(Op::Run(after));
            steps
        });
        let mut p = program(count, &steps.collect::<Vec<_>>());
        p.objects[0].order = order;
        p
    }

    const SLOW_FIRST: Change = Change::Speed(0, 0.001);

    #[test]
    fn once_anything_is_changed_whoever_comes_first_has_the_lock() {
        let threads = [[1_000, 2_000, 0], [1_500, 2_000, 7_000_000]];
        let p = contending(Order::Taken, &threads);
        assert_eq!(wall(&p, &[]), 7_005_000, "one waits for the other");
        assert_eq!(freely(&p, &[SLOW_FIRST]).wall_ns, 7_003_500, "nobody waits");
        let p = contending(Order::Traced, &threads);
        assert_eq!(wall(&p, &[SLOW_FIRST]), 10_002_000, "it waits for the slow one");
    }

    #[test]
    fn a_shorter_hold_makes_others_wait_less() {
        let p = contending(Order::Taken, &[[0, 4_000, 9_000], [1_000, 4_000, 9_000]]);
        assert_eq!(wall(&p, &[]), 17_000);
        assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::Hold(0.5))]), 13_000);
        assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::None)]), 14_000);
    }

    /// A time of the work that only another order of locks changes is no gain.
    #[test]
    fn what_the_order_alone_makes_is_no_gain() {
        // In the trace the thread that came later had the lock first.
        let p = contending(Order::Taken, &[[3_000, 2_000, 0], [1_000, 2_000, 29_000]]);
        assert_eq!(wall(&p, &[]), 36_000);
        assert_eq!(wall(&p, &[Change::Cpus(64)]), 36_000, "32,000 if nobody waits in vain");
        assert_eq!(p.free.get().map(|o| o.free_ns), Some(32_000));
    }

    #[test]
    fn locks_whose_order_alone_changes_too_much_keep_it() {
        let p = contending(Order::Taken, &[[6_000, 2_000, 0], [1_000, 2_000, 9_000]]);
        // The second would be done at 12,000; so it waits, as in the trace, for the first, which is
        // late now.
        assert_eq!(wall(&p, &[SLOW_FIRST]), 8_000_000 + 11_000);
        assert_eq!(p.free.get().map(|o| (o.traced_ns, o.free_ns)), Some((19_000, 12_000)));
    }

    /// The first thread releases it and wants it again at once. It gets it before the second is
    /// awake, unless it was handed to the second.
    #[test]
    fn who_waits_longest_is_overtaken_unless_the_lock_is_handed_over() {
        for (order, first_ends) in [(Order::Taken, 20_000), (Order::Handed, 30_500)] {
            let hold = [Op::Hold(LOCK), Op::Run(10_000), Op::Drop(LOCK)];
            let mut second = vec![Op::Run(1_000)];
            second.extend(hold);
            let mut p = program(2, &[[hold, hold].concat(), second]);
            p.objects[0].order = order;
            p.threads[1].usual_delay = 500;
            p.threads[1].works = false;
            assert_eq!(freely(&p, &[]).wall_ns, first_ends, "{order:?}");
        }
    }

    /// A thread ended with the lock, and the next holder was put on its CPU: that thread was lost.
    #[test]
    fn who_ends_with_a_lock_leaves_its_cpu_to_whoever_gets_it() {
        let (hold, run) = (Op::Hold(LOCK), Op::Run);
        let asleep = Op::Sleep(1, ObjectId::NONE);
        let mut p = program(
            2,
            &[
                vec![run(1)],
                vec![asleep, hold],
                vec![run(1), hold, run(2_757_000)],
                vec![run(2_757_001)],
                vec![hold, run(1)],
            ],
        );
        p.objects[0].order = Order::Taken;
        assert_eq!(freely(&p, &[]).run_ns, [1, 0, 2_757_001, 2_757_001, 1]);
    }

    proptest! {
        /// Whatever threads do with a lock, all of them end, and no CPU time is lost.
        #[test]
        fn nobody_waits_for_ever(threads in any_threads(), cpus in 1_u32..6, handed: bool) {
            let mut p = program(cpus, &threads);
            p.objects[0].order = if handed { Order::Handed } else { Order::Taken };
            for changes in [vec![], vec![Change::Lock(LOCK, LockChange::Split(2))]] {
                let ran = freely(&p, &changes);
                let split = !changes.is_empty();
                for (t, ns) in p.threads.iter().zip(&ran.run_ns) {
                    prop_assert!(t.run_ns == *ns || split && *ns <= t.run_ns);
                }
            }
        }

        /// Holds of one lock follow each other: the work takes as long as all of them together.
        #[test]
        fn one_at_a_time_has_it(holds in prop::collection::vec(1..9_000_000_u64, 1..8)) {
            let threads: Vec<Vec<Op>> = holds
                .iter()
                .map(|&ns| vec![Op::Hold(LOCK), Op::Run(ns), Op::Drop(LOCK)])
                .collect();
            for order in [Order::Taken, Order::Handed] {
                let mut p = program(8, &threads);
                p.objects[0].order = order;
                let longest = *holds.iter().max().unwrap();
                prop_assert_eq!(wall(&p, &[]), longest, "as in the trace, where nobody waits");
                let all: u64 = holds.iter().sum();
                prop_assert_eq!(freely(&p, &[]).wall_ns, all);
            }
        }
    }
}
