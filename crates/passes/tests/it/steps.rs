//! What threads did, on traces built by hand: per test, one thing that a replay once got wrong.

use holdup_attribution::analyze;
use holdup_passes::{Analysis, Detail, Did, Options, Slot, Step};
use holdup_testkit::TraceBuilder;

fn run(trace: TraceBuilder) -> Analysis {
    let options = Options { detail: Detail::Steps, ..Options::default() };
    analyze(&trace.build(), &options).unwrap()
}

fn slot(a: &Analysis, tid: u32) -> Slot {
    a.all_threads().find(|(_, t)| t.tid.0 == tid).unwrap().0
}

fn steps(a: &Analysis, tid: u32) -> &[Step] {
    a.steps(slot(a, tid)).steps
}

fn did(a: &Analysis, tid: u32) -> Vec<Did> {
    steps(a, tid).iter().map(|s| s.what).collect()
}

/// Two CPUs, 7 and 8 on them; all wake-ups and switches of both.
fn two() -> TraceBuilder {
    TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("sched", "sched_waking")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
}

/// 7 lost its CPU between the two, for 8 ms in a replay that woke the child at once.
#[test]
fn a_new_thread_begins_when_it_is_let_not_when_it_is_made() {
    let a = run(two()
        .makes(100, 0, 7, 9)
        .lets_begin(300, 0, 7, 9)
        .switch(350, 0, 7, 9, "S")
        .switch(400, 0, 9, 0, "S")
        .switch(500, 1, 8, 0, "S"));
    let spawn = Step { at: 300, what: Did::Spawn(slot(&a, 9)) };
    let spawns: Vec<_> =
        steps(&a, 7).iter().filter(|s| matches!(s.what, Did::Spawn(_))).copied().collect();
    assert_eq!(spawns, [spawn]);
    assert_eq!(did(&a, 9), [Did::Run(50)]);
}

/// The wait kept its length, as if an interrupt that was not recorded had ended it.
#[test]
fn who_gives_a_lock_of_the_kernel_back_in_a_page_fault_ends_the_wait_for_it() {
    const LOCK: u64 = 0xffff_8881_0000_0000;
    const READ: u32 = 2;
    let mmap = 9;
    let a = run(two()
        .records("irq", "irq_handler_entry")
        .sys_enter(10, 0, 7, mmap)
        .sys_exit(20, 0, 7, mmap, 0)
        .contention_begin(100, 1, 8, LOCK, READ)
        .switch(110, 1, 8, 0, "D")
        .waking_to(300, 0, 7, 8, 1) // application code, as far as system calls tell
        .wakeup_to(310, 1, 0, 8, 1)
        .switch(320, 1, 0, 8, "R")
        .contention_end(330, 1, 8, LOCK)
        .switch(400, 1, 8, 0, "S")
        .switch(500, 0, 7, 0, "S"));
    let wakes = Did::Wake { thread: slot(&a, 8), step: 1 };
    assert!(did(&a, 7).contains(&wakes), "{:?}", did(&a, 7));
}

/// The softirq of a device on top of `ksoftirqd` ends the wait, which lasts until that gets its
/// CPU.
#[test]
fn what_ksoftirqd_ends_waits_for_ksoftirqd() {
    const NET_TX: u32 = 2;
    let woken_by = |name: &str| {
        let a = run(two()
            .task(9, 9, Some(2), name)
            .switch(100, 1, 8, 0, "D")
            .switch(200, 0, 7, 9, "R")
            .softirq(210, 310, 0, 9, NET_TX)
            .waking_to(300, 0, 9, 8, 1)
            .switch(400, 0, 9, 7, "S")
            .wakeup_to(500, 1, 0, 8, 1)
            .switch(510, 1, 0, 8, "R")
            .switch(600, 1, 8, 0, "S")
            .switch(900, 0, 7, 0, "S"));
        did(&a, 9).contains(&Did::Wake { thread: slot(&a, 8), step: 1 })
    };
    assert!(woken_by("ksoftirqd/0"));
    assert!(!woken_by("kworker/0:1"), "an interrupt on top of it");
}

/// Only some tasks were recorded: the thread that had the CPU from 300 to 700 has no events.
#[test]
fn a_thread_whose_cpu_somebody_unrecorded_had_keeps_that_time() {
    let a = run(two()
        .sys_enter(10, 1, 8, 9)
        .switch(300, 1, 8, 9, "R")
        .sys_exit(700, 1, 8, 9, 0)
        .switch(900, 1, 8, 0, "S")
        .switch(1000, 0, 7, 0, "S"));
    assert_eq!(did(&a, 8), [Did::Run(300), Did::Unknown(400), Did::Run(200)]);
}

#[test]
fn who_was_taken_second_by_a_cpu_that_was_late_is_late_too() {
    let a = run(two()
        .switch(100, 1, 8, 0, "S")
        .waking_to(200, 0, 7, 8, 1)
        .wakeup_to(210, 0, 7, 8, 1)
        .switch(900, 1, 0, 9, "R") // a thread that nobody knew of, before 8
        .switch(950, 1, 9, 8, "S")
        .switch(1000, 1, 8, 0, "S")
        .switch(1100, 0, 7, 0, "S"));
    assert_eq!(did(&a, 8)[2..], [Did::Delay(700), Did::Run(50)]);
}

#[test]
fn who_queues_for_a_busy_cpu_is_passed_over_or_taken_over_by_one_that_idles() {
    let queued = || {
        // CPU 1 idles
        two().switch(1_000, 1, 8, 0, "S").waking_to(2_000, 0, 7, 8, 0).wakeup_to(2_000, 0, 7, 8, 0)
    };
    let waited = run(queued()
        .switch(9_000, 0, 7, 8, "S")
        .switch(9_500, 0, 8, 0, "S")
        .switch(9_600, 1, 0, 8, "R"));
    let behind = slot(&waited, 7);
    let waited_while_idle = Did::WaitedWhileIdle { ns: 7_000, behind, idle: true };
    assert_eq!(did(&waited, 8)[2], waited_while_idle);
    let moved = run(queued()
        .migrate(5_000, 1, 0, 8, 1)
        .switch(5_000, 1, 0, 8, "R")
        .switch(9_000, 0, 7, 0, "S"));
    let behind = slot(&moved, 7);
    assert_eq!(did(&moved, 8)[2], Did::TakenOver { ns: 3_000, behind, idle: true });
}

#[test]
fn who_takes_the_cpu_of_another_as_soon_as_it_is_woken_preempts_it() {
    let a = run(two()
        .switch(100, 1, 8, 0, "S")
        .waking_to(200, 0, 7, 8, 0)
        .wakeup_to(200, 0, 7, 8, 0)
        .switch(250, 0, 7, 8, "R")
        .switch(300, 0, 8, 7, "S")
        .switch(900, 0, 7, 0, "S"));
    assert_eq!(did(&a, 8)[2], Did::Preempts(slot(&a, 7)));
}

#[test]
fn slices_are_measured_where_somebody_queued() {
    const MS: u64 = 1_000_000;
    let a = run(two()
        .switch(MS, 1, 8, 0, "S")
        .waking_to(2 * MS, 0, 7, 8, 0)
        .wakeup_to(2 * MS, 0, 7, 8, 0)
        .switch(9 * MS, 0, 7, 8, "R") // nobody knows since when 7 has had it
        .switch(12 * MS, 0, 8, 7, "R")
        .switch(14 * MS, 0, 7, 0, "S")
        .switch(15 * MS, 0, 0, 8, "R")
        .waking_to(20 * MS, 0, 8, 7, 0)
        .wakeup_to(20 * MS, 0, 8, 7, 0)
        .switch(25 * MS, 0, 8, 7, "R") // 8 had it for 10 ms, and 7 wanted it for 5
        .switch(26 * MS, 0, 7, 0, "S"));
    assert_eq!(a.slice_ns(), Some(4 * MS));
}

/// A client sends while the server is about to sleep for it. The kernel completes that wake-up in
/// an interrupt of the server's CPU, on top of an unrelated thread: a replay made the server wait
/// for that thread.
#[test]
fn who_wakes_a_thread_before_it_has_left_its_cpu_ends_its_wait() {
    let (read, write) = (0, 1);
    let a = run(two()
        .sys_enter(100, 1, 8, read)
        .sys_enter(110, 0, 7, write)
        .waking_to(120, 0, 7, 8, 1)
        .switch(130, 1, 8, 9, "S")
        .wakeup_to(140, 1, 9, 8, 1)
        .sys_exit(150, 0, 7, write, 1)
        .switch(160, 1, 9, 8, "S")
        .sys_exit(170, 1, 8, read, 1)
        .switch(400, 1, 8, 0, "S")
        .switch(500, 0, 7, 0, "S"));
    let wakes = |tid| {
        did(&a, tid).iter().any(|d| matches!(d, Did::Wake { thread, .. } if *thread == slot(&a, 8)))
    };
    assert!(wakes(7), "{:?}", did(&a, 7));
    assert!(!wakes(9), "{:?}", did(&a, 9));
}

/// perf misses all events of the idle task of some CPUs: the thread is back when it shows.
#[test]
fn who_is_out_of_quota_is_held_off_even_where_its_return_is_not_recorded() {
    const MS: u64 = 1_000_000;
    let a = run(TraceBuilder::new(1)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .sys_enter(MS, 0, 7, 39)
        .sys_exit(2 * MS, 0, 7, 39, 7)
        .switch(40 * MS, 0, 7, 0, "R")
        .sys_enter(100 * MS, 0, 7, 39)
        .sys_exit(101 * MS, 0, 7, 39, 7)
        .switch(120 * MS, 0, 7, 0, "S"));
    assert_eq!(did(&a, 7), [Did::Run(40 * MS), Did::HeldOff(60 * MS), Did::Run(20 * MS)]);
}
