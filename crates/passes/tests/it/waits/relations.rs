//! Who waits for whom: chains, graphs, paths, processes; and threads that wait without sleeping.

use super::run;
use crate::pair::{FUTEX, READ, WAIT, WAKE, contended_in_turn, two};
use holdup_attribution::{Attribution, Leaf, WaitsBy};
use holdup_passes::Group;
use holdup_testkit::TraceBuilder;

const PREAD: u32 = 17;
const SCHED_YIELD: u32 = 24;
const CLONE: u32 = 56;
const WAIT4: u32 = 61;
const EXIT_GROUP: u32 = 231;
const WAIT_BITSET: u64 = 0x189;

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
    let a = run(&contended_in_turn(0x2000).build());
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
