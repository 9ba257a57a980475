//! Which objects are one lock.

use crate::estimate::Depth;
use crate::resources::Member;
use crate::tests::{READ, US, WRITE, estimated};
use holdup_attribution::Resource;
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const FUTEX: u32 = 202;
const NANOSLEEP: u32 = 35;
const WAIT: u64 = 0x80;
const WAKE: u64 = 0x81;

/// Thread `tid` runs on the CPU of its number.
fn cpu(tid: u32) -> u16 {
    (tid - 10) as u16
}

fn word(tid: u32) -> u64 {
    0x1000 + u64::from(tid) * 8
}

/// The thread waits at its own word.
fn sleeps(b: TraceBuilder, at: Nanos, tid: u32) -> TraceBuilder {
    b.sys_enter_with(at, cpu(tid), tid, FUTEX, &[word(tid), WAIT, 0]).switch(
        at + 10,
        cpu(tid),
        tid,
        0,
        "S",
    )
}

/// `waker` wakes the thread at its word.
fn wakes(b: TraceBuilder, at: Nanos, waker: u32, tid: u32) -> TraceBuilder {
    b.sys_enter_with(at, cpu(waker), waker, FUTEX, &[word(tid), WAKE, 1])
        .waking(at + 100, cpu(waker), waker, tid)
        .wakeup(at + 200, cpu(waker), waker, tid)
        .sys_exit(at + 300, cpu(waker), waker, FUTEX, 1)
        .switch(at + 400, cpu(tid), 0, tid, "R")
        .sys_exit(at + 500, cpu(tid), tid, FUTEX, 0)
}

fn naps(b: TraceBuilder, (from, to): (Nanos, Nanos), tid: u32) -> TraceBuilder {
    b.sys_enter(from, cpu(tid), tid, NANOSLEEP)
        .switch(from + 10, cpu(tid), tid, 0, "S")
        .waking_in_irq(to, cpu(tid), 0, tid)
        .wakeup(to + 10, cpu(tid), 0, tid)
        .switch(to + 20, cpu(tid), 0, tid, "R")
        .sys_exit(to + 30, cpu(tid), tid, NANOSLEEP, 0)
}

/// Two threads have one connection in turn, and nap 3 ms with it. Whoever gives it back also wakes
/// a third thread, which adds connections and wakes a fourth.
fn pool_of_one(rounds: u64) -> TraceBuilder {
    let mut b = TraceBuilder::new(4).records("irq", "irq_handler_entry");
    for (tid, comm) in [(10, "worker-0"), (11, "worker-1"), (12, "adder"), (13, "compiler")] {
        b = b.task(tid, 10, None, comm).switch(0, cpu(tid), 0, tid, "R");
    }
    b = sleeps(sleeps(sleeps(b, 5 * US, 11), 6 * US, 12), 7 * US, 13);
    for round in 0..rounds {
        for (has, next) in [(10, 11), (11, 10)] {
            let at = (20 + round * 8_000 + if has == 10 { 0 } else { 4_000 }) * US;
            b = naps(b, (at, at + 3_000 * US), has);
            b = wakes(b, at + 3_100 * US, has, next);
            b = wakes(b, at + 3_200 * US, has, 12);
            b = wakes(b, at + 3_300 * US, 12, 13);
            b = sleeps(b, at + 3_400 * US, 12);
            b = sleeps(b, at + 3_500 * US, 13);
            b = sleeps(b, at + 3_600 * US, has);
        }
    }
    b.switch((20 + rounds * 8_000) * US, 0, 10, 0, "S")
}

/// The adder's and the compiler's words were the lock, as their wake-ups came between.
#[test]
fn a_pool_is_what_goes_round_among_its_threads() {
    let (analysis, program, found) = estimated(pool_of_one(50), Depth::Resources);
    let lock = found.rows.iter().find(|row| row.resource == Resource::ThreadLock).expect("a lock");
    let mut waiters: Vec<u32> = Vec::new();
    for member in &lock.members {
        let Member::Object(id) = member else { panic!("{member:?}") };
        for object in &program.objects[id.0 as usize].of {
            let by = analysis.waited_by();
            waiters.extend(by.of(*object).iter().map(|of| analysis.thread(of.0).tid.0));
        }
    }
    waiters.sort_unstable();
    assert_eq!(waiters, [10, 11]);
    assert!((1.7..=2.0).contains(&lock.worth), "{}", lock.worth);
}

/// A call on the pipe that returns at once.
fn calls(b: TraceBuilder, at: Nanos, tid: u32, nr: u32) -> TraceBuilder {
    let end = if nr == READ { 3 } else { 4 };
    b.sys_enter_with(at, cpu(tid), tid, nr, &[end, 0, 1]).sys_exit(at + US, cpu(tid), tid, nr, 1)
}

/// One thread takes the byte out of the pipe, works, and puts it back; that wakes another, which
/// does the same while nobody waits. The next to come need not have been woken.
#[test]
fn a_token_that_is_taken_by_whoever_comes_first_is_a_lock() {
    let mut b =
        TraceBuilder::new(3).records("sched", "sched_wakeup").records("irq", "irq_handler_entry");
    for tid in [10, 11, 12] {
        b = b.task(tid, 10, (tid > 10).then_some(10), "worker");
        b = b.switch(0, cpu(tid), 0, tid, "R");
    }
    for round in 0..300 {
        let at = (round * 2_000 + 10) * US;
        let (first, next) = [(10, 11), (12, 10), (11, 12)][(round % 3) as usize];
        let (of_first, of_next) = (cpu(first), cpu(next));
        b = calls(b, at, first, READ)
            .sys_enter_with(at + 10 * US, of_next, next, READ, &[3, 0, 1])
            .switch(at + 12 * US, of_next, next, 0, "S")
            .sys_enter_with(at + 900 * US, of_first, first, WRITE, &[4, 0, 1])
            .waking(at + 901 * US, of_first, first, next)
            .sys_exit(at + 902 * US, of_first, first, WRITE, 1)
            .switch(at + 910 * US, of_next, 0, next, "R")
            .sys_exit(at + 911 * US, of_next, next, READ, 1);
        b = calls(b, at + 1_800 * US, next, WRITE);
    }
    for tid in [10, 11, 12] {
        b = b.switch(600_500 * US, cpu(tid), tid, 0, "S");
    }
    let (_, _, found) = estimated(b, Depth::Resources);
    let token = found.rows.iter().find(|row| row.resource == Resource::Service).expect("a token");
    assert!(token.worth > 1.1, "{token:?}");
}
