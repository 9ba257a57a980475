//! What the kernel keeps for threads: pipes, locks of files, semaphores, latches between processes.

use super::{NANOSLEEP, first, run};
use crate::pair::{READ, WRITE, reads_until_written, two};
use holdup_attribution::{Attribution, Leaf, WaitsBy};
use holdup_passes::{Analysis, ObjectKind};
use holdup_testkit::TraceBuilder;

const RECVFROM: u32 = 45;
const KILL: u32 = 62;
const SEMOP: u32 = 65;
const FCNTL: u32 = 72;
const FLOCK: u32 = 73;
const EPOLL_WAIT: u32 = 232;

#[test]
fn two_descriptors_of_one_pipe_are_one_object() {
    let base =
        TraceBuilder::new(2).records("sched", "sched_wakeup").records("irq", "irq_handler_entry");
    let a = run(&reads_until_written(base)
        // The pipe is full: now the writer waits for the reader.
        .sys_enter_with(40, 0, 7, WRITE, &[4, 0, 1])
        .switch(41, 0, 7, 0, "S")
        .sys_enter_with(50, 1, 8, READ, &[3, 0, 1])
        .waking(52, 1, 8, 7)
        .sys_exit(53, 1, 8, READ, 1)
        .switch(60, 0, 0, 7, "R")
        .build());
    let rows = Attribution::from(&a).waits(WaitsBy::Object);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (rows[0].kind, rows[0].waits, rows[0].waiters, rows[0].wait_total_ns),
        ("pipe", 2, 2, 11 + 11)
    );
    assert_eq!(rows[0].object, "fd 3 of pid 8");
}

#[test]
fn a_file_locked_through_two_descriptors_is_one_lock_with_observed_holders() {
    let a = run(&TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .task(7, 7, None, "a")
        .task(8, 8, None, "b")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .sys_enter_with(5, 0, 7, FLOCK, &[3, 2])
        .sys_exit(6, 0, 7, FLOCK, 0)
        .sys_enter_with(10, 1, 8, FLOCK, &[5, 2])
        .switch(12, 1, 8, 0, "S")
        .sys_enter_with(40, 0, 7, FLOCK, &[3, 8])
        .waking(42, 0, 7, 8)
        .sys_exit(44, 0, 7, FLOCK, 0)
        .switch(45, 1, 0, 8, "R")
        .sys_exit(46, 1, 8, FLOCK, 0)
        .switch(60, 0, 7, 0, "S")
        .switch(400, 1, 8, 0, "S")
        .build());
    let row = first(&a);
    assert_eq!(
        (row.kind, row.waits, row.wait_total_ns, row.rule),
        ("flock", 1, 30, "lock-contention")
    );
    assert_eq!((row.holders[0].tid, row.holders[0].inferred), (7, false));
    assert_eq!(row.holders[0].hold_ns, 42 - 6);
}

#[test]
fn semaphores_taken_and_given_back_by_the_same_thread_are_locks() {
    let a = run(&two()
        .sys_enter_with(5, 0, 7, SEMOP, &[9])
        .sys_exit(6, 0, 7, SEMOP, 0)
        .sys_enter_with(10, 1, 8, SEMOP, &[9])
        .switch(12, 1, 8, 0, "S")
        .sys_enter_with(40, 0, 7, SEMOP, &[9])
        .waking(42, 0, 7, 8)
        .sys_exit(44, 0, 7, SEMOP, 0)
        .switch(45, 1, 0, 8, "R")
        .sys_exit(46, 1, 8, SEMOP, 0)
        .switch(60, 0, 7, 0, "S")
        .switch(400, 1, 8, 0, "S")
        .build());
    let row = first(&a);
    assert_eq!(
        (row.kind, row.object.as_str(), row.wait_total_ns, row.rule),
        ("semop", "semid 9", 30, "lock-contention")
    );
    assert_eq!((row.holders[0].tid, row.holders[0].hold_ns), (7, 36));
    assert_eq!(Attribution::from(&a).ledger.ns(Leaf::KernelServices), 33);
}

/// System V semaphores are handed on: who gives one back wakes the next waiter. If it wakes none,
/// the call was for another semaphore of the set, for example a request to a server that is busy.
#[test]
fn a_semaphore_given_back_without_waking_its_waiter_is_another_one_of_the_set() {
    let call = |trace: TraceBuilder, t: u64| {
        trace.sys_enter_with(t, 0, 7, SEMOP, &[9]).sys_exit(t + 1, 0, 7, SEMOP, 0)
    };
    let mut trace = two();
    for t in [0, 100, 200u64] {
        trace = call(trace, t + 5).sys_enter_with(t + 10, 1, 8, SEMOP, &[9]);
        trace = call(trace.switch(t + 12, 1, 8, 0, "S"), t + 20);
        trace = call(trace, t + 30)
            .sys_enter_with(t + 40, 0, 7, SEMOP, &[9])
            .waking(t + 42, 0, 7, 8)
            .sys_exit(t + 44, 0, 7, SEMOP, 0)
            .switch(t + 45, 1, 0, 8, "R")
            .sys_exit(t + 46, 1, 8, SEMOP, 0);
    }
    let a = run(&trace.switch(300, 0, 7, 0, "S").switch(400, 1, 8, 0, "S").build());
    let sets: Vec<_> = a.objects().filter(|o| o.kind == ObjectKind::Semop).collect();
    assert_eq!(sets.iter().map(|o| (o.waits, o.is_lock)).collect::<Vec<_>>(), [(3, false)]);
}

/// 7 and 8 are processes of one program that wait in `epoll_wait`. They end each other's waits in
/// this call, by the thread itself or by an interrupt that came while it ran.
fn latch(call: u32, direct: bool) -> Analysis {
    handed_over(call, direct, false)
}

/// As [`latch`]. `asks`: before that call, each of them waits for an answer of its client.
fn handed_over(call: u32, direct: bool, asks: bool) -> Analysis {
    let mut t = TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("irq", "irq_handler_entry")
        .task(7, 7, None, "db-7")
        .task(8, 8, None, "db-8")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R");
    for round in 0..12 {
        let at = round * 100;
        let (a, b, cpu_a, cpu_b) = if round % 2 == 0 { (7, 8, 0, 1) } else { (8, 7, 1, 0) };
        t = t.sys_enter_with(at + 10, cpu_b, b, EPOLL_WAIT, &[5]).switch(at + 15, cpu_b, b, 0, "S");
        if asks {
            t = t
                .sys_enter_with(at + 20, cpu_a, a, RECVFROM, &[4])
                .switch(at + 20, cpu_a, a, 0, "S")
                .softirq(at + 38, at + 42, cpu_a, 0, 3)
                .waking(at + 40, cpu_a, 0, a)
                .switch(at + 45, cpu_a, 0, a, "R")
                .sys_exit(at + 46, cpu_a, a, RECVFROM, 1);
        }
        t = t.sys_enter_with(at + 50, cpu_a, a, call, &[6]);
        t = if direct {
            t.waking(at + 55, cpu_a, a, b)
        } else {
            t.softirq(at + 53, at + 57, cpu_a, a, 3).waking(at + 55, cpu_a, a, b)
        };
        t = t.sys_exit(at + 60, cpu_a, a, call, 8).switch(at + 65, cpu_b, 0, b, "R").sys_exit(
            at + 70,
            cpu_b,
            b,
            EPOLL_WAIT,
            1,
        );
    }
    run(&t.switch(1300, 0, 7, 0, "S").build())
}

#[test]
fn siblings_that_write_to_each_others_event_descriptors_take_turns() {
    let idle = |a: &Analysis| Attribution::from(a).ledger.ns(Leaf::KernelServices);
    // The first wait may be for anything; a thread that has woken none waits for work.
    assert_eq!(idle(&latch(WRITE, true)), 9 * 50, "asleep, and until it runs");
    assert_eq!(idle(&latch(WRITE, false)), 0, "it came over the network");
    assert_eq!(idle(&latch(READ, true)), 0, "a read lets nobody go on");
}

/// PostgreSQL holds the lock of a row until its client commits. Bytes may be work for which the
/// waker has waited itself; a signal carries none.
#[test]
fn who_signals_a_sibling_after_its_client_answered_has_held_a_lock() {
    let of = |call| {
        let a = handed_over(call, true, true);
        let idle = a.objects().map(|o| o.followed_idle_ns).sum::<u64>();
        (idle, Attribution::from(&a).ledger.ns(Leaf::KernelServices))
    };
    assert_eq!(of(KILL).0, 0);
    assert_eq!(of(WRITE).0, 11 * 20, "what it wrote had just come, but for the first");
    assert!(of(KILL).1 > of(WRITE).1);
}

/// 8 tries for a file lock, `tries` times, and naps whenever that fails; 7 runs all the time.
fn retries(result: i64, tries: u64) -> Analysis {
    let mut t = two();
    for n in 0..tries {
        let at = n * 100;
        t = t
            .sys_enter_with(at + 10, 1, 8, FCNTL, &[4, 6, 0x7f00])
            .sys_exit(at + 12, 1, 8, FCNTL, result)
            .sys_enter(at + 14, 1, 8, NANOSLEEP)
            .switch(at + 20, 1, 8, 0, "S")
            .irq(at + 79, at + 82, 1, 0, 9)
            .waking(at + 80, 1, 0, 8)
            .switch(at + 82, 1, 0, 8, "R")
            .sys_exit(at + 85, 1, 8, NANOSLEEP, 0);
    }
    let at = tries * 100;
    run(&t
        .sys_enter_with(at + 10, 1, 8, FCNTL, &[4, 6, 0x7f00])
        .sys_exit(at + 12, 1, 8, FCNTL, 0)
        .switch(at + 50, 1, 8, 0, "S")
        .build())
}

#[test]
fn naps_after_tries_that_failed_are_waiting_from_the_second_on() {
    let a = retries(-11, 4);
    let row = first(&a);
    assert_eq!((row.kind, row.rule, row.harmful), ("posix-lock", "lock-contention", true));
    assert_eq!((row.waits, row.retries), (4, 3));
    // The first nap may be a pause. During the others the CPU idles until the timer's interrupt.
    assert_eq!(Attribution::from(&a).ledger.ns(Leaf::KernelServices), 3 * 59);
    for pause in [retries(0, 4), retries(-9, 4)] {
        assert_eq!(first(&pause).kind, "timer");
        assert_eq!(Attribution::from(&pause).ledger.ns(Leaf::KernelServices), 0);
    }
    assert_eq!(Attribution::from(&retries(-11, 1)).ledger.ns(Leaf::KernelServices), 0);
}
