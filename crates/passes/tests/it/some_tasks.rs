//! Recordings of some tasks: `sched_switch` says when they leave a CPU, PERF_RECORD_SWITCH when
//! they get one, PERF_RECORD_EXIT when they end. No event shows when other threads leave.

use holdup_attribution::{Attribution, analyze};
use holdup_passes::{Analysis, Options, Thread};
use holdup_testkit::{MemTrace, TraceBuilder};

fn run(trace: &MemTrace) -> Analysis {
    let a = analyze(trace, &Options::default()).unwrap();
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    a
}

fn thread(a: &Analysis, tid: u32) -> &Thread {
    a.all_threads().map(|(_, t)| t).find(|t| t.tid.0 == tid).unwrap()
}

/// Threads 7 and 8 compete on CPU 0 with thread 99, which was not recorded.
fn built() -> TraceBuilder {
    TraceBuilder::new(2)
        .of_some_tasks()
        .task(7, 7, None, "a")
        .task(8, 7, None, "a")
        .switch_record(100, 0, 7, false)
        .switch(1_100, 0, 7, 99, "S")
        .switch_record(1_101, 0, 7, true)
        .switch_record(5_000, 0, 8, false)
        .switch(7_000, 0, 8, 7, "R")
        .switch_record(7_001, 0, 8, true)
        .switch_record(7_002, 0, 7, false)
        .task_end(9_000, 0, 7)
        .switch_record(9_500, 1, 8, false)
        .task_end(10_000, 1, 8)
}

#[test]
fn a_thread_runs_from_its_switch_record_on_to_its_sched_switch() {
    let a = run(&built().build());
    let of = |tid| {
        let t = thread(&a, tid);
        (t.running_ns, t.blocked_ns, t.preempted_ns)
    };
    // Between the two events of one switch nothing else is known.
    assert_eq!(of(7), (1_000 + 2_000, 7_000 - 1_100, 0));
    assert_eq!(of(8), (2_000 + 500, 0, 2_500));
    assert_eq!((thread(&a, 7).died, thread(&a, 8).died), (Some(9_000), Some(10_000)));
}

#[test]
fn who_was_not_recorded_has_no_cpu_time() {
    let a = run(&built().build());
    assert_eq!(thread(&a, 99).running_ns, 0);
    let alone = run(&TraceBuilder::new(1)
        .of_some_tasks()
        .task(7, 7, None, "a")
        .switch(1_000, 0, 7, 99, "S")
        .switch(5_000, 0, 7, 98, "S")
        .sys_enter(6_000, 0, 7, 0)
        .build());
    assert_eq!((thread(&alone, 99).running_ns, thread(&alone, 98).running_ns), (0, 0));
}

/// A recorded server wakes its clients, which are not recorded: they were ready from then on.
#[test]
fn who_was_not_recorded_is_not_ready_for_ever() {
    let server = |recorded: bool| {
        let b = TraceBuilder::new(1).task(7, 7, None, "server").task(99, 99, None, "client");
        let b = if recorded { b.of_some_tasks() } else { b };
        run(&b.switch(0, 0, 0, 7, "R").waking(1_000, 0, 7, 99).switch(9_000, 0, 7, 0, "S").build())
    };
    assert_eq!(thread(&server(true), 99).woken_ns, 0);
    assert!(thread(&server(false), 99).woken_ns > 0, "all tasks: it is ready");
}

#[test]
fn a_thread_that_has_ended_waits_for_nothing() {
    let a = run(&TraceBuilder::new(1)
        .of_some_tasks()
        .task(7, 7, None, "a")
        .switch_record(100, 0, 7, false)
        .switch(200, 0, 7, 0, "S")
        .task_end(700, 0, 7)
        .switch_record(5_000, 0, 8, false)
        .switch(9_000, 0, 8, 0, "S")
        .build());
    assert_eq!((thread(&a, 7).blocked_ns, thread(&a, 7).died), (500, Some(700)));
}

#[test]
fn of_all_tasks_switch_records_say_nothing_new() {
    let with = |records: bool| {
        let mut t = TraceBuilder::new(1).switch(100, 0, 0, 7, "R");
        if records {
            t = t.switch_record(101, 0, 7, false);
        }
        t = t.switch(1_000, 0, 7, 8, "S");
        if records {
            t = t.switch_record(1_001, 0, 7, true).switch_record(1_001, 0, 8, false);
        }
        let a = run(&t.switch(2_000, 0, 8, 0, "S").build());
        [7, 8].map(|tid| (thread(&a, tid).running_ns, thread(&a, tid).stays))
    };
    assert_eq!(with(true), with(false));
}
