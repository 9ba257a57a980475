//! The invariants of run queues, on traces built by hand: one hole in the recording per test.

use holdup_attribution::{Attribution, Leaf, Ledger, Total, analyze};
use holdup_passes::{Analysis, Group, Invariant, Options, Thread};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{Nanos, QualityCode};

fn run(trace: &MemTrace) -> Analysis {
    let a = analyze(trace, &Options::default()).unwrap();
    let ledger = ledger(&a);
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    let delays: Nanos = a.procs(Group::Thread).iter().filter_map(|r| r.runnable_ns).sum();
    let scheduler = ledger.ns(Leaf::Scheduler);
    assert!(scheduler <= delays, "idle/scheduler {scheduler}, run-queue delays {delays}");
    a
}

fn ledger(a: &Analysis) -> Ledger {
    Attribution::from(a).ledger
}

fn thread(a: &Analysis, tid: u32) -> &Thread {
    a.threads().map(|(_, t)| t).find(|t| t.tid.0 == tid).unwrap()
}

fn ready(a: &Analysis, tid: u32) -> Nanos {
    let t = thread(a, tid);
    t.woken_ns + t.preempted_ns
}

/// How often `invariant` corrected the state of this thread.
fn applied(a: &Analysis, invariant: Invariant, tid: u32) -> u64 {
    let of = |&(l, slot, _): &(Invariant, _, _)| l == invariant && a.thread(slot).tid.0 == tid;
    let n = a.invariants().into_iter().filter(of).map(|r| r.2).sum();
    assert!(a.quality.count(invariant.code()) >= n);
    n
}

#[test]
fn a_thread_whose_switch_in_was_filtered_out_is_not_ready_for_the_rest_of_the_trace() {
    // 9 is the recorder: it is woken, and none of its own events are kept.
    let a = run(&TraceBuilder::new(2)
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 5, 0, "S")
        .wakeup_to(100, 0, 7, 9, 1)
        .switch(500, 1, 0, 5, "R")
        .switch(600, 1, 5, 0, "S") // idle: 9 is not on this queue
        .switch(1000, 0, 7, 0, "S")
        .build());
    assert_eq!(applied(&a, Invariant::IdleQueueEmpty, 9), 1);
    assert_eq!((ready(&a, 9), ledger(&a).ns(Leaf::Scheduler)), (0, 0));
}

#[test]
fn a_thread_that_runs_first_without_a_wake_up_was_not_ready_while_its_cpu_idled() {
    let a = run(&TraceBuilder::new(1)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .switch(100, 0, 7, 0, "S")
        .switch(600, 0, 0, 8, "R")
        .switch(700, 0, 8, 9, "S") // nobody was seen to wake 9
        .switch(1000, 0, 9, 0, "S")
        .build());
    assert_eq!(applied(&a, Invariant::IdleQueueEmpty, 9), 1);
    assert_eq!((ready(&a, 9), ready(&a, 8)), (100, 0));
}

#[test]
fn a_thread_queued_behind_a_busy_cpu_is_ready_while_another_cpu_idles() {
    let a = run(&TraceBuilder::new(2)
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 5, 0, "S")
        .wakeup_to(100, 0, 7, 9, 0)
        .switch(500, 0, 7, 9, "R")
        .switch(600, 0, 9, 7, "S")
        .switch(1000, 0, 7, 0, "S")
        .build());
    assert!(a.invariants().is_empty(), "{:?}", a.invariants());
    assert_eq!((ready(&a, 9), ready(&a, 7)), (400, 100));
    assert_eq!(ledger(&a).ns(Leaf::Scheduler) + ledger(&a).ns(Leaf::Bound), 500);
}

#[test]
fn a_thread_moved_to_another_queue_stays_ready_when_its_old_cpu_idles() {
    let a = run(&TraceBuilder::new(2)
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .wakeup_to(100, 0, 7, 9, 1)
        .migrate(200, 0, 7, 9, 0)
        .switch(300, 1, 8, 0, "S")
        .switch(500, 0, 7, 9, "S")
        .switch(1000, 0, 9, 0, "S")
        .build());
    assert!(a.invariants().is_empty(), "{:?}", a.invariants());
    assert_eq!((ready(&a, 9), ledger(&a).ns(Leaf::Scheduler)), (400, 200));
}

#[test]
fn a_wake_up_on_its_way_is_no_run_queue_delay_and_not_gone_when_its_cpu_idles() {
    let a = run(&TraceBuilder::new(2)
        .sys_enter(0, 1, 9, 202)
        .switch(10, 1, 9, 8, "S")
        .sys_enter(20, 0, 7, 202)
        .waking_to(100, 0, 7, 9, 1)
        .switch(200, 1, 8, 0, "S") // not a queue that 9 is on
        .wakeup_to(300, 1, 0, 9, 1)
        .switch(350, 1, 0, 9, "R")
        .sys_exit(400, 0, 7, 202, 1)
        .switch(1000, 0, 7, 0, "S")
        .switch(1000, 1, 9, 0, "S")
        .build());
    assert!(a.invariants().is_empty(), "{:?}", a.invariants());
    // From sched_wakeup on; before, the time is part of the sleep.
    assert_eq!((ready(&a, 9), thread(&a, 9).blocked_ns), (50, 290));
    let l = ledger(&a);
    assert_eq!((l.total(Total::Idle), l.ns(Leaf::Scheduler), l.ns(Leaf::NoWork)), (150, 0, 0));
}

#[test]
fn a_group_out_of_quota_leaves_in_state_r_and_stays_ready_on_an_idle_cpu() {
    let a = run(&TraceBuilder::new(1)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .switch(100, 0, 7, 0, "R")
        .wakeup_to(150, 0, 0, 8, 0)
        .switch(160, 0, 0, 8, "R")
        .switch(170, 0, 8, 0, "S")
        .switch(400, 0, 0, 7, "R")
        .switch(500, 0, 7, 0, "S")
        .build());
    assert_eq!(applied(&a, Invariant::IdleQueueEmpty, 7), 0);
    assert_eq!(thread(&a, 7).preempted_ns, 300);
}

#[test]
fn a_thread_woken_again_while_ready_ran_and_slept_unseen() {
    let a = run(&TraceBuilder::new(2)
        .switch(0, 1, 5, 0, "S")
        .switch(0, 0, 0, 7, "R")
        .waking_to(90, 0, 7, 9, 1)
        .wakeup_to(100, 0, 7, 9, 1)
        .waking_to(690, 0, 7, 9, 1)
        .wakeup_to(700, 0, 7, 9, 1)
        .switch(720, 1, 0, 9, "R")
        .switch(800, 1, 9, 0, "S")
        .switch(1000, 0, 7, 0, "S")
        .build());
    assert_eq!(applied(&a, Invariant::SleepBeforeWake, 9), 1);
    assert_eq!((ready(&a, 9), ledger(&a).ns(Leaf::Scheduler)), (20, 20));
}

#[test]
fn a_thread_preempted_on_its_way_to_sleep_may_be_woken_while_ready() {
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 7, "R")
        .switch(100, 0, 7, 8, "R+")
        .waking_to(150, 0, 8, 7, 0)
        .wakeup_to(151, 0, 8, 7, 0)
        .switch(200, 0, 8, 7, "S")
        .switch(300, 0, 7, 0, "S")
        .build());
    assert!(a.invariants().is_empty(), "{:?}", a.invariants());
    assert_eq!(ready(&a, 7), 100);
}

#[test]
fn a_cpu_that_never_shows_how_it_leaves_idle_runs_who_is_woken_there() {
    let a = run(&TraceBuilder::new(2)
        .records("raw_syscalls", "sys_enter")
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 9, 0, "S")
        .sys_enter(1, 0, 7, 39)
        .sys_exit(2, 0, 7, 39, 0)
        // The first time shows that the CPU is blind: 9 is back without a switch.
        .waking_to(100, 0, 7, 9, 1)
        .sys_exit(150, 1, 9, 202, 0)
        .switch(200, 1, 9, 0, "S")
        // From then on it runs as soon as it is woken; the CPU is not idle meanwhile.
        .waking_to(300, 0, 7, 9, 1)
        .sys_exit(700, 1, 9, 202, 0)
        .switch(800, 1, 9, 0, "S")
        .switch(1000, 0, 7, 0, "S")
        .build());
    assert_eq!(applied(&a, Invariant::IdleTakesWoken, 9), 1);
    assert_eq!(applied(&a, Invariant::BlindTakesWoken, 9), 1);
    assert_eq!(thread(&a, 9).running_ns, 100 + 500);
    let cpu = &a.cpu_rows()[1];
    assert_eq!((cpu.idle_ns, cpu.unaccounted_ns), (400, 0));
    // 7 is alone until 9 shows, and while 9 sleeps; only idle CPU time is serial.
    assert_eq!((a.serial_wall_ns(), a.serial_ns()), (150 + 100 + 200, 400));
}

#[test]
fn who_never_shows_after_it_was_taken_by_a_blind_cpu_is_not_accounted_for() {
    let a = run(&TraceBuilder::new(2)
        .records("raw_syscalls", "sys_enter")
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 8, 0, "S")
        .waking_to(100, 0, 7, 8, 1)
        .switch(200, 1, 8, 0, "S")
        .waking_to(300, 0, 7, 9, 1) // 9 is the recorder
        .switch(600, 1, 8, 0, "S")
        .waking_to(800, 0, 7, 9, 0)
        .switch(1000, 0, 7, 0, "S")
        .build());
    let cpu = &a.cpu_rows()[1];
    assert_eq!((cpu.idle_ns, cpu.unaccounted_ns), (100 + 100 + 400, 300));
    assert_eq!((thread(&a, 9).running_ns, ready(&a, 9)), (0, 0));
    assert_eq!(ledger(&a).ns(Leaf::Scheduler), 0);
}

#[test]
fn a_thread_seen_on_a_second_cpu_left_the_first_after_the_last_event_there() {
    let a = run(&TraceBuilder::new(2)
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .sys_enter(100, 0, 7, 39)
        .sys_exit(110, 0, 7, 39, 0)
        .switch(500, 1, 8, 7, "S")
        .switch(600, 1, 7, 0, "S")
        .switch(1000, 0, 5, 0, "S")
        .build());
    assert_eq!(applied(&a, Invariant::OneCpu, 7), 1);
    assert_eq!(thread(&a, 7).running_ns, 110 + 100);
    assert_eq!(a.cpu_rows()[0].unaccounted_ns, 890);
}

#[test]
fn who_waits_on_an_idle_cpu_when_the_trace_ends_ran_unseen() {
    let ms = 1_000_000;
    let a = run(&TraceBuilder::new(2)
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 5, 0, "S")
        .wakeup_to(100, 0, 7, 9, 1)
        .wakeup_to(99 * ms, 0, 7, 8, 1)
        .switch(100 * ms, 0, 7, 0, "S")
        .build());
    assert_eq!((ready(&a, 9), ready(&a, 8)), (0, ms));
    // Half of the last millisecond was charged to 9.
    assert_eq!(ledger(&a).ns(Leaf::Scheduler), ms / 2);
}

#[test]
fn idle_time_beside_the_only_application_thread_is_serial() {
    let trace = |kthread: bool| {
        let mut b = TraceBuilder::new(3).records("raw_syscalls", "sys_enter").task(
            7,
            7,
            Some(1),
            "application",
        );
        b = b.task(8, 8, Some(if kthread { 2 } else { 1 }), "other");
        b.switch(0, 0, 0, 7, "R")
            .switch(0, 1, 5, 0, "S")
            .switch(0, 2, 6, 0, "S")
            .sys_enter(1, 0, 7, 39)
            .sys_exit(2, 0, 7, 39, 0)
            .switch(100, 1, 0, 8, "R")
            .sys_enter(101, 1, 8, 39) // only now it is known that 8 is not a kernel thread
            .switch(300, 1, 8, 0, "S")
            .switch(1000, 0, 7, 0, "S")
            .build()
    };
    let a = run(&trace(false));
    // Two CPUs idle while 7 runs alone; while 8 runs too, nothing is serial.
    assert_eq!((a.serial_wall_ns(), a.serial_ns()), (100 + 700, 200 + 1400));
    let l = ledger(&a);
    assert!(a.serial_ns() <= l.total(Total::Idle));
}

#[test]
fn a_kernel_thread_beside_the_application_leaves_the_work_serial() {
    let a = run(&TraceBuilder::new(2)
        .records("raw_syscalls", "sys_enter")
        .task(8, 8, Some(2), "kworker/1:1")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 5, 0, "S")
        .sys_enter(1, 0, 7, 39)
        .sys_exit(2, 0, 7, 39, 0)
        .switch(100, 1, 0, 8, "R")
        .switch(300, 1, 8, 0, "I")
        .switch(1000, 0, 7, 0, "S")
        .build());
    assert_eq!((a.serial_wall_ns(), a.serial_ns()), (1000, 800));
    assert_eq!(a.quality.count(QualityCode::SwitchGap), 0);
}
