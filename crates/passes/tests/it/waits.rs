//! Waits on traces built by hand: objects, holders, chains, graphs, paths.

use crate::pair::{FUTEX, WAIT, WAKE, contended, contended_from, two};
use holdup_attribution::{Attribution, Leaf, WaitsBy, WaitsRow, analyze};
use holdup_passes::{Analysis, Detail, Group, ObjectKind, Options};
use holdup_testkit::{MemTrace, TraceBuilder};

const READ: u32 = 0;
const PREAD: u32 = 17;
const WRITE: u32 = 1;
const SEMOP: u32 = 65;
const FLOCK: u32 = 73;
const CLONE: u32 = 56;
const NANOSLEEP: u32 = 35;
const WAIT4: u32 = 61;
const EXIT_GROUP: u32 = 231;

const WAIT_BITSET: u64 = 0x189;

fn run(trace: &MemTrace) -> Analysis {
    let a = analyze(trace, &Options { detail: Detail::Intervals, ..Options::default() }).unwrap();
    let (parts, whole) = a.blame_check();
    assert_eq!(parts, whole, "blame adds up");
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    if let Ok(path) = Attribution::from(&a).path(None) {
        assert_eq!(
            path.rows.iter().map(|r| r.total_ns).sum::<u64>(),
            path.total_ns,
            "the path closes"
        );
    }
    a
}

fn first(a: &Analysis) -> WaitsRow {
    Attribution::from(a).waits(WaitsBy::Object).into_iter().next().unwrap()
}

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
    let a = run(&contended(two())
        .sys_enter_with(65, 0, 7, FUTEX, &[0x1000, WAIT, 2])
        .switch(70, 0, 7, 0, "S")
        .sys_enter_with(80, 1, 8, FUTEX, &[0x1000, WAKE, 1])
        .waking(81, 1, 8, 7)
        .sys_exit(82, 1, 8, FUTEX, 1)
        .switch(90, 0, 0, 7, "R")
        .sys_exit(91, 0, 7, FUTEX, 0)
        .build());
    let row = first(&a);
    let holder = row.holders.iter().find(|h| h.tid == 8).unwrap();
    assert_eq!((holder.hold_ns, holder.inferred), (80 - 62, false));
    // Ratios: 8 held 18 ns of its 91 - 30 - ... execution time and waited 30.
    let procs = a.procs(Group::Thread);
    let b = procs.iter().find(|r| r.tid == Some(8)).unwrap();
    assert!(b.lock_ratio.unwrap() > 0.19 && b.waiting_ratio.unwrap() > 0.3, "{b:?}");
}

#[test]
fn a_lock_whose_holder_waits_for_the_disk_is_the_disk() {
    let a = run(&two()
        .sys_enter_with(10, 1, 8, FUTEX, &[0x1000, WAIT, 2])
        .switch(20, 1, 8, 0, "S")
        .sys_enter_with(25, 0, 7, PREAD, &[3])
        .switch(30, 0, 7, 0, "D")
        .irq(79, 82, 0, 0, 9)
        .waking(80, 0, 0, 7)
        .switch(82, 0, 0, 7, "R")
        .sys_exit(85, 0, 7, PREAD, 512)
        .sys_enter_with(90, 0, 7, FUTEX, &[0x1000, WAKE, 1])
        .waking(95, 0, 7, 8)
        .sys_exit(96, 0, 7, FUTEX, 1)
        .switch(96, 1, 0, 8, "R")
        .build());
    let rows = Attribution::from(&a).waits(WaitsBy::Object);
    let disk = rows.iter().find(|r| r.kind == "disk").unwrap();
    let mutex = rows.iter().find(|r| r.kind == "futex").unwrap();
    // 8's wait is 75 long; for 50 of it 7 slept for the disk.
    assert_eq!((disk.wait_total_ns, mutex.wait_total_ns), (50, 75));
    let ledger = Attribution::from(&a).ledger;
    // Both CPUs idle from 30 to 79: the disk's; 20-30 and 80-95 the mutex's.
    assert!(ledger.ns(Leaf::Io) >= 96, "{ledger:?}");
    assert!(ledger.ns(Leaf::ThreadSync) <= 28, "{ledger:?}");
    let graph = Attribution::from(&a).graph();
    assert_eq!((graph.roots[0].cause, graph.roots[0].kind), ("io", "disk"));
    let edge = graph.edges.iter().find(|e| e.waiter == 8).unwrap();
    assert_eq!((edge.waker, edge.wait_ns), (Some(7), 75));
    let path = Attribution::from(&a).path(Some(8)).unwrap();
    let wait = path.rows.iter().find(|r| r.state == "wait").unwrap();
    assert_eq!((wait.tid, wait.kind, wait.total_ns), (7, "disk", 50));
    assert_eq!(path.rows.iter().map(|r| r.total_ns).sum::<u64>(), path.total_ns);
}

/// perf writes -1 for the thread of an event if the kernel has released its number: a thread that
/// was killed wakes its parent after that. ftrace still writes the number.
#[test]
fn who_ends_wakes_its_parent_without_a_number() {
    for number in [8, u32::MAX] {
        let a = run(&TraceBuilder::new(2)
            .records("sched", "sched_wakeup")
            .records("irq", "irq_handler_entry")
            .task(7, 7, None, "shell")
            .task(8, 8, Some(7), "child")
            .switch(0, 0, 0, 7, "R")
            .switch(0, 1, 0, 8, "R")
            .sys_enter(10, 0, 7, WAIT4)
            .switch(20, 0, 7, 0, "S")
            .sys_enter(80, 1, 8, EXIT_GROUP)
            .exit(85, 1, 8)
            .task_end(86, 1, 8)
            .waking(90, 1, number, 7)
            .switch(95, 1, 8, 0, "X")
            .switch(100, 0, 0, 7, "R")
            .sys_exit(105, 0, 7, WAIT4, 8)
            .build());
        let path = Attribution::from(&a).path(Some(7)).unwrap();
        let child = path.rows.iter().find(|r| r.tid == 8).map(|r| (r.state, r.total_ns));
        assert_eq!(child, Some(("run", 70)), "{number}");
    }
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

#[test]
fn two_descriptors_of_one_pipe_are_one_object() {
    let a = run(&TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("irq", "irq_handler_entry")
        .task(7, 7, None, "writer")
        .task(8, 8, None, "reader")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .sys_enter_with(10, 1, 8, READ, &[3, 0, 1])
        .switch(20, 1, 8, 0, "S")
        .sys_enter_with(30, 0, 7, WRITE, &[4, 0, 1])
        .waking(31, 0, 7, 8)
        .sys_exit(32, 0, 7, WRITE, 1)
        .switch(33, 1, 0, 8, "R")
        .sys_exit(34, 1, 8, READ, 1)
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
fn threads_of_a_trace_without_process_ids_find_their_process_by_the_flags_of_clone() {
    let a = run(&TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .sys_enter_with(10, 0, 7, CLONE, &[0x3d0f00])
        .fork(12, 0, 7, 8)
        .sys_exit(14, 0, 7, CLONE, 8)
        .sys_enter_with(20, 0, 7, CLONE, &[0x1200011])
        .fork(22, 0, 7, 9)
        .sys_exit(24, 0, 7, CLONE, 9)
        .switch(30, 1, 0, 8, "R")
        .switch(40, 1, 8, 9, "R")
        .switch(50, 1, 9, 0, "S")
        .build());
    let rows = a.procs(Group::Thread);
    let pid =
        |tid| rows.iter().find(|r| r.tid == Some(tid)).map(|r| (r.pid, r.pid_inferred)).unwrap();
    assert_eq!(pid(8), (Some(Some(7)), Some(true)));
    assert_eq!(pid(9), (Some(Some(9)), Some(true)));
    assert_eq!(a.procs(Group::Process).len(), 2);
}

#[test]
fn two_that_wait_for_each_other_are_a_cycle() {
    let a = run(&contended(two())
        .sys_enter_with(65, 0, 7, FUTEX, &[0x2000, WAIT, 2])
        .switch(70, 0, 7, 0, "S")
        .sys_enter_with(80, 1, 8, FUTEX, &[0x2000, WAKE, 1])
        .waking(81, 1, 8, 7)
        .sys_exit(82, 1, 8, FUTEX, 1)
        .switch(90, 0, 0, 7, "R")
        .build());
    let graph = Attribution::from(&a).graph();
    assert_eq!(graph.cycles, [[7, 8]]);
    assert!(graph.nodes.iter().all(|n| n.cycle == Some(1)));
    let by_thread = Attribution::from(&a).waits(WaitsBy::Thread);
    assert_eq!(
        by_thread.iter().map(|r| (r.tid, r.wait_total_ns)).collect::<Vec<_>>(),
        [(Some(8), 30), (Some(7), 11)]
    );
    let by_kind = Attribution::from(&a).waits(WaitsBy::Kind);
    assert_eq!((by_kind.len(), by_kind[0].objects, by_kind[0].wait_total_ns), (1, Some(2), 41));
}

const EPOLL_WAIT: u32 = 232;
const KILL: u32 = 62;
const RECVFROM: u32 = 45;
const FCNTL: u32 = 72;
const SCHED_YIELD: u32 = 24;

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

/// Two threads that yield `times` in a row, with this much of their own code in between, and then
/// work for the same time.
fn yields(times: u64, code: u64) -> u64 {
    let (mut t, mut at) = (two(), 10);
    for _ in 0..times {
        for (cpu, tid) in [(0, 7), (1, 8)] {
            t = t.sys_enter(at, cpu, tid, SCHED_YIELD).sys_exit(at + 500, cpu, tid, SCHED_YIELD, 0);
        }
        at += 500 + code;
    }
    at += times * (500 + code) / 2;
    let a = run(&t.switch(at, 0, 7, 0, "S").switch(at, 1, 8, 0, "S").build());
    Attribution::from(&a).ledger.ns(Leaf::Spin)
}

#[test]
fn yields_with_hardly_any_code_in_between_are_waiting() {
    assert_eq!(yields(10, 1_000), 2 * 9 * 1_500);
    assert_eq!(yields(10, 100_000), 0, "pieces of work");
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
        let held = &a.held_by()[&lock.object];
        let by = |tid| held.iter().find(|(slot, _)| a.thread(**slot).tid.0 == tid).unwrap().1;
        assert_eq!((by(8).holds, by(8).inferred, by(8).hold_ns), (1, 0, 140 - 122), "{way:?}");
        assert_eq!((by(7).holds, by(7).inferred), (2, 2), "{way:?}");
    }
}

/// A daemon polls with a timeout, and its timer fires while another program is in the kernel: the
/// wake-up has that unrelated program as its current thread.
#[test]
fn a_timer_on_top_of_a_call_relates_no_programs() {
    const TIMEDOUT: i64 = -110;
    let mut trace = TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .task(1, 1, None, "perf")
        .task(7, 7, Some(1), "work")
        .task(8, 8, None, "stranger")
        .task(9, 9, None, "daemon")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 9, "R");
    for i in 0..20 {
        let t = 10 + i * 1000;
        // One of the two is in a call of its own when the daemon's time-out ends.
        let on_top_of = if i % 2 == 0 { 7 } else { 8 };
        let other = if i % 2 == 0 { 8 } else { 7 };
        trace = trace
            .sys_enter_with(t, 1, 9, FUTEX, &[0x5000, WAIT_BITSET, 0])
            .switch(t + 5, 1, 9, 0, "S")
            .switch(t + 10, 0, if i == 0 { 7 } else { other }, on_top_of, "R")
            .sys_enter(t + 20, 0, on_top_of, READ)
            .waking(t + 500, 0, on_top_of, 9)
            .sys_exit(t + 600, 0, on_top_of, READ, 0)
            .switch(t + 700, 1, 0, 9, "R")
            .sys_exit(t + 710, 1, 9, FUTEX, TIMEDOUT);
    }
    let a = run(&trace.build());
    let background = Attribution::from(&a).background;
    assert!(background.work_known);
    let names: Vec<&str> = background.programs.iter().map(|p| p.comm.as_str()).collect();
    assert_eq!(names, ["stranger", "daemon"]);
    assert_eq!(background.work.into_iter().collect::<Vec<_>>(), [7]);
}
