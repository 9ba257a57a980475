//! Words of the threads library: mutexes, semaphores, condition variables, barriers, joins.

use super::{NANOSLEEP, first, run};
use crate::pair::{FUTEX, WAIT, WAKE, contended, contended_from, contended_in_turn, two};
use holdup_attribution::{Attribution, Leaf, WaitsBy};
use holdup_passes::{Analysis, Group};
use holdup_testkit::TraceBuilder;

const WAIT_BITSET: u64 = 0x189;

#[test]
fn a_mutex_its_waiter_and_its_inferred_holder() {
    let a = run(&contended(two()).switch(100, 0, 7, 0, "S").switch(400, 1, 8, 0, "S").build());
    let row = first(&a);
    assert_eq!((row.kind, row.usage, row.object.as_str()), ("futex", Some("mutex"), "0x1000"));
    assert_eq!(
        (row.waits, row.waiters, row.wait_total_ns, row.wait_max_ns, row.elapsed_ns),
        (1, 1, 30, Some(30), Some(52))
    );
    assert_eq!((row.pid, row.comm.as_str(), row.top_waker), (Some(7), "b", Some(7)));
    assert_eq!((row.harmful, row.rule), (true, "lock-contention"));
    let h = &row.holders[0];
    assert_eq!((h.tid, h.hold_ns, h.inferred), (7, 25, true));
    // Asleep 30 and, with its CPU idle, 10 more until it ran.
    assert_eq!((row.wake_delay_ns, row.idle_blamed_ns), (10, 40));
    assert_eq!(Attribution::from(&a).ledger.ns(Leaf::ThreadSync), 40);
}

#[test]
fn the_next_hold_of_a_woken_waiter_is_observed_and_ends_with_its_wake() {
    let a = run(&contended_in_turn(0x1000).sys_exit(91, 0, 7, FUTEX, 0).build());
    let row = first(&a);
    let holder = row.holders.iter().find(|h| h.tid == 8).unwrap();
    assert_eq!((holder.hold_ns, holder.inferred), (80 - 62, false));
    // Ratios: 8 held 18 ns of its 91 - 30 - ... execution time and waited 30.
    let procs = a.procs(Group::Thread);
    let b = procs.iter().find(|r| r.tid == Some(8)).unwrap();
    assert!(b.lock_ratio.unwrap() > 0.19 && b.waiting_ratio.unwrap() > 0.3, "{b:?}");
}

/// Two threads nap at a condition variable until their time is up, and now and then one wakes the
/// other: the naps were contention once the second was woken.
#[test]
fn naps_that_end_early_now_and_then_are_no_contention() {
    let lost = |woken: u64| {
        let mut b = two();
        for round in 0..40 {
            let at = 1_000 + round * 1_000;
            for (cpu, tid) in [(0, 7), (1, 8)] {
                b = b.sys_enter_with(at, cpu, tid, FUTEX, &[0x1000, WAIT_BITSET, 0]).switch(
                    at + 10,
                    cpu,
                    tid,
                    0,
                    "S",
                );
            }
            let (first, next) = [(7, 8), (8, 7)][(round % 2) as usize];
            let (cpu, of_next) = [(0, 1), (1, 0)][(round % 2) as usize];
            b = b
                .irq(at + 700, at + 706, cpu, 0, 9)
                .waking(at + 703, cpu, 0, first)
                .switch(at + 708, cpu, 0, first, "R")
                .sys_exit(at + 710, cpu, first, FUTEX, -110);
            b = match round < woken {
                true => b
                    .sys_enter_with(at + 720, cpu, first, FUTEX, &[0x1000, WAKE, 1])
                    .waking(at + 725, cpu, first, next)
                    .sys_exit(at + 730, cpu, first, FUTEX, 1),
                false => {
                    b.irq(at + 720, at + 726, of_next, 0, 9).waking(at + 725, of_next, 0, next)
                }
            };
            b = b.switch(at + 740, of_next, 0, next, "R").sys_exit(
                at + 745,
                of_next,
                next,
                FUTEX,
                0,
            );
        }
        Attribution::from(&run(&b.build())).ledger.ns(Leaf::ThreadSync)
    };
    // Nobody knows so soon what the first waits were for.
    assert!(lost(3) * 4 < lost(40), "{} and {}", lost(3), lost(40));
}

/// Python's locks are semaphores. A thread may sleep while it holds one, which delays the waiters;
/// a thread that only posts a semaphore now and then holds nothing meanwhile.
#[test]
fn a_semaphore_that_its_waiters_hand_on_is_a_lock_and_one_that_is_posted_is_none() {
    let round = |trace: TraceBuilder, t: u64, giver: (u16, u32), taker: (u16, u32)| {
        trace
            .sys_enter_with(t + 10, taker.0, taker.1, FUTEX, &[0x1000, WAIT_BITSET, 0])
            .switch(t + 20, taker.0, taker.1, 0, "S")
            .sys_enter_with(t + 30, giver.0, giver.1, NANOSLEEP, &[0])
            .switch(t + 40, giver.0, giver.1, 0, "S")
            .irq(t + 890, t + 905, giver.0, 0, 9)
            .waking(t + 900, giver.0, 0, giver.1)
            .switch(t + 906, giver.0, 0, giver.1, "R")
            .sys_exit(t + 907, giver.0, giver.1, NANOSLEEP, 0)
            .sys_enter_with(t + 910, giver.0, giver.1, FUTEX, &[0x1000, WAKE, 1])
            .waking(t + 911, giver.0, giver.1, taker.1)
            .sys_exit(t + 912, giver.0, giver.1, FUTEX, 1)
            .switch(t + 915, taker.0, 0, taker.1, "R")
            .sys_exit(t + 916, taker.0, taker.1, FUTEX, 0)
    };
    let (a, b) = ((0, 7), (1, 8));
    let (mut lock, mut posted) = (two(), two());
    for n in 0..16u64 {
        let (giver, taker) = if n % 2 == 0 { (a, b) } else { (b, a) };
        lock = round(lock, n * 1000, giver, taker);
        posted = round(posted, n * 1000, a, b);
    }
    let (lock, posted) = (run(&lock.build()), run(&posted.build()));
    let (of_lock, of_posted) = (first(&lock), first(&posted));
    assert_eq!((of_lock.usage, of_lock.rule), (Some("semaphore"), "lock-contention"));
    assert_eq!((of_posted.usage, of_posted.rule), (Some("semaphore"), "idle-no-work"));
    // The first eight waits show what it is.
    let idle = |a: &Analysis| Attribution::from(a).ledger.ns(Leaf::ThreadSync);
    assert!(idle(&lock) > 8_000 && idle(&posted) < 1_000, "{} {}", idle(&lock), idle(&posted));
}

#[test]
fn barriers_are_imbalance_and_workers_without_work_are_idle() {
    let mut barrier = two();
    for round in 0..4u64 {
        let t = round * 100;
        barrier = barrier
            .sys_enter_with(t + 10, 1, 8, FUTEX, &[0x1000, WAIT, round])
            .switch(t + 20, 1, 8, 0, "S")
            .sys_enter_with(t + 80, 0, 7, FUTEX, &[0x1000, WAKE, i32::MAX as u64])
            .waking(t + 81, 0, 7, 8)
            .sys_exit(t + 82, 0, 7, FUTEX, 1)
            .switch(t + 83, 1, 0, 8, "R")
            .sys_exit(t + 84, 1, 8, FUTEX, 0);
    }
    let a = run(&barrier.build());
    let row = first(&a);
    assert_eq!(
        (row.usage, row.rule, row.holders[0].tid),
        (Some("barrier"), "barrier-imbalance", 7)
    );
    assert_eq!(Attribution::from(&a).ledger.ns(Leaf::ThreadSync), 0);
    assert!(Attribution::from(&a).ledger.ns(Leaf::OneServer) >= 4 * 61);

    // A worker waits for work that a sleeping producer hands over now and then.
    let mut pool = two();
    for round in 0..4u64 {
        let t = round * 1000;
        pool = pool
            .sys_enter_with(t + 1, 0, 7, NANOSLEEP, &[0])
            .switch(t + 5, 0, 7, 0, "S")
            .sys_enter_with(t + 10, 1, 8, FUTEX, &[0x1000, WAIT_BITSET, 0])
            .switch(t + 20, 1, 8, 0, "S")
            .irq(t + 899, t + 902, 0, 0, 9)
            .waking(t + 900, 0, 0, 7)
            .switch(t + 903, 0, 0, 7, "R")
            .sys_exit(t + 904, 0, 7, NANOSLEEP, 0)
            .sys_enter_with(t + 905, 0, 7, FUTEX, &[0x1000, WAKE, 1])
            .waking(t + 906, 0, 7, 8)
            .sys_exit(t + 907, 0, 7, FUTEX, 1)
            .switch(t + 908, 1, 0, 8, "R")
            .sys_exit(t + 909, 1, 8, FUTEX, 0);
    }
    let a = run(&pool.build());
    let row = Attribution::from(&a)
        .waits(WaitsBy::Object)
        .into_iter()
        .find(|r| r.kind == "futex")
        .unwrap();
    assert_eq!((row.usage, row.harmful, row.rule), (Some("condvar"), false, "idle-no-work"));
    assert!(
        Attribution::from(&a).ledger.ns(Leaf::ThreadSync) < 100,
        "{:?}",
        Attribution::from(&a).ledger
    );
}

#[test]
fn a_futex_between_processes_is_no_object_of_the_threads_library() {
    let between = |flag: u64| {
        let t = TraceBuilder::new(2)
            .records("sched", "sched_wakeup")
            .records("irq", "irq_handler_entry")
            .task(7, 7, None, "a")
            .task(8, 8, Some(7), "b")
            .switch(0, 0, 0, 7, "R")
            .fork(1, 0, 7, 8)
            .switch(2, 1, 0, 8, "R")
            .sys_enter_with(10, 1, 8, FUTEX, &[0x1000, flag, 2])
            .switch(20, 1, 8, 0, "S")
            .sys_enter_with(45, 0, 7, FUTEX, &[0x1000, flag | 1, 1])
            .waking(50, 0, 7, 8)
            .sys_exit(52, 0, 7, FUTEX, 1)
            .switch(60, 1, 0, 8, "R")
            .sys_exit(62, 1, 8, FUTEX, 0);
        let a = run(&t.switch(100, 0, 7, 0, "S").switch(400, 1, 8, 0, "S").build());
        let ledger = Attribution::from(&a).ledger;
        (ledger.ns(Leaf::ThreadSync), ledger.ns(Leaf::KernelServices))
    };
    assert_eq!(between(0), (0, 40));
    assert_eq!(between(WAIT), (40, 0), "a private word cannot be between processes");
}

#[test]
fn a_word_that_happens_to_be_a_thread_id_elsewhere_is_no_join() {
    // 3 is a value of an rwlock's words, and the id of a kernel thread.
    let waits = |sibling: bool| {
        let pid = if sibling { 7 } else { 3 };
        let t = two()
            .task(3, pid, None, "other")
            .sys_enter_with(10, 1, 8, FUTEX, &[0x1000, 0x109, 3])
            .switch(20, 1, 8, 0, "S")
            .sys_enter_with(45, 0, 7, FUTEX, &[0x1000, 1, 1])
            .waking(50, 0, 7, 8)
            .sys_exit(52, 0, 7, FUTEX, 1)
            .switch(60, 1, 0, 8, "R")
            .sys_exit(62, 1, 8, FUTEX, 0);
        let a = run(&t.switch(100, 0, 7, 0, "S").switch(400, 1, 8, 0, "S").build());
        let rows = Attribution::from(&a).waits(WaitsBy::Object);
        rows.into_iter().find(|r| r.kind == "futex").and_then(|r| r.usage)
    };
    assert_eq!((waits(false), waits(true)), (Some("rwlock"), Some("join")));
}

/// Rust's `Barrier` and many others are condition variables: the last of four threads wakes all
/// others. If a fifth thread wakes them, it is a pool of workers.
#[test]
fn a_barrier_that_is_made_of_a_condition_variable_is_one() {
    let usage =
        |stranger: bool| {
            let mut t = TraceBuilder::new(5).records("sched", "sched_wakeup");
            for cpu in 0..5u16 {
                t = t.task(10 + u32::from(cpu), 10, None, "w").switch(
                    0,
                    cpu,
                    0,
                    10 + u32::from(cpu),
                    "R",
                );
            }
            for round in 0..10u64 {
                let at = 1000 * (round + 1);
                // Each round another thread comes last.
                let last = if stranger { 4 } else { (round % 4) as u16 };
                let others: Vec<u16> = (0..4).filter(|&cpu| cpu != last).collect();
                for &cpu in &others {
                    let tid = 10 + u32::from(cpu);
                    let from = at + u64::from(cpu) * 10;
                    t = t
                        .sys_enter_with(from, cpu, tid, FUTEX, &[0x1000, WAIT_BITSET, round])
                        .switch(from + 5, cpu, tid, 0, "S");
                }
                let tid = 10 + u32::from(last);
                let all = [0x1000, WAKE, i32::MAX as u64];
                t = t.sys_enter_with(at + 500, last, tid, FUTEX, &all);
                for &cpu in &others {
                    t = t.waking(at + 501 + u64::from(cpu), last, tid, 10 + u32::from(cpu));
                }
                t = t.sys_exit(at + 510, last, tid, FUTEX, others.len() as i64);
                for &cpu in &others {
                    let tid = 10 + u32::from(cpu);
                    t = t.switch(at + 520 + u64::from(cpu), cpu, 0, tid, "R");
                    t = t.sys_exit(at + 530 + u64::from(cpu), cpu, tid, FUTEX, 0);
                }
            }
            let a = run(&t.build());
            let row = first(&a);
            (row.usage, row.rule)
        };
    assert_eq!(usage(false), (Some("barrier"), "barrier-imbalance"));
    assert_eq!(usage(true).0, Some("condvar"));
}

/// A woken waiter holds a mutex or a readers-writer lock until it wakes the next. A waiter that
/// finds it taken again still counts as having come once.
#[test]
fn a_waiter_that_is_woken_has_the_lock_and_has_come_once_however_often_it_slept() {
    for way in [(WAIT, 2), (WAIT_BITSET, 3)] {
        // The second time the waiter finds it taken again.
        let a = run(&contended_from(60, contended_from(0, two(), way), way)
            .sys_enter_with(140, 1, 8, FUTEX, &[0x1000, WAKE, 1])
            .sys_exit(141, 1, 8, FUTEX, 0)
            .switch(200, 0, 7, 0, "S")
            .switch(400, 1, 8, 0, "S")
            .build());
        let lock = a.objects().find(|o| o.usage.is_some()).unwrap();
        assert_eq!((lock.waits, lock.came, lock.is_shared), (2, 1, false), "{way:?}");
        let held_by = a.held_by();
        let held = held_by.of(lock.object);
        let by = |tid| held.iter().find(|(slot, _)| a.thread(*slot).tid.0 == tid).unwrap().1;
        assert_eq!((by(8).holds, by(8).inferred, by(8).hold_ns), (1, 0, 140 - 122), "{way:?}");
        assert_eq!((by(7).holds, by(7).inferred), (2, 2), "{way:?}");
    }
}
