//! `sched_blocked_reason`: what uninterruptible sleeps were for, on traces built by hand.

use holdup_attribution::{Attribution, Leaf, WaitsBy, WaitsRow, analyze};
use holdup_passes::{Analysis, Options};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::Nanos;

fn run(trace: &MemTrace) -> Analysis {
    let a = analyze(trace, &Options::default()).unwrap();
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    a
}

/// Idle time for disks, for locks of the kernel, and for nothing.
fn idle(a: &Analysis) -> [Nanos; 3] {
    let ledger = Attribution::from(a).ledger;
    [Leaf::Io, Leaf::KernelLocks, Leaf::NoWork].map(|leaf| ledger.ns(leaf))
}

fn iowait(a: &Analysis) -> Nanos {
    a.cpu_rows().iter().map(|r| r.iowait_ns.unwrap_or(0)).sum()
}

fn waits(a: &Analysis) -> Vec<WaitsRow> {
    Attribution::from(a).waits(WaitsBy::Object)
}

/// Thread 7 sleeps in D from 100 to 600; then the reason comes, if the kernel gives it.
fn sleeper(reason: Option<(bool, &str)>, waker: u32) -> TraceBuilder {
    let mut t = TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("sched", "sched_waking")
        .records("sched", "sched_blocked_reason")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, waker, "R")
        .switch(100, 0, 7, 0, "D")
        .waking(600, 1, waker, 7);
    if let Some((io_wait, caller)) = reason {
        t = t.blocked_reason(600, (1, waker), 7, io_wait, caller);
    }
    t.wakeup_to(600, 1, waker, 7, 0).switch(600, 0, 0, 7, "R").switch(1000, 0, 7, 0, "S")
}

#[test]
fn a_sleep_that_the_kernel_does_not_call_io_is_none() {
    let io = run(&sleeper(Some((true, "sleep_on_page+0x8")), 0).build());
    assert_eq!((idle(&io)[0], iowait(&io)), (500, 500));
    let other = run(&sleeper(Some((false, "msm_rpm_wait_for_ack+0x78")), 0).build());
    assert_eq!((idle(&other)[0], idle(&other)[1], iowait(&other)), (0, 0, 0));
    let silent = run(&sleeper(None, 0).build());
    assert_eq!((idle(&silent)[0], iowait(&silent)), (0, 0), "the letter D alone");
}

#[test]
fn the_table_of_waits_names_the_function_slept_in() {
    let row = |io: bool, caller: &str, waker: u32| {
        let a = run(&sleeper(Some((io, caller)), waker).build());
        let rows = waits(&a);
        assert_eq!(rows.iter().filter(|r| r.wait_total_ns > 0).count(), 1, "{rows:?}");
        (rows[0].kind, rows[0].object.clone(), rows[0].rule, rows[0].wait_total_ns)
    };
    let name = |caller: &str| format!("in {caller} of pid 7");
    assert_eq!(
        row(false, "msm_rpm_wait_for_ack+0x78", 0),
        ("uninterruptible", name("msm_rpm_wait_for_ack+0x78"), "idle-kernel", 500)
    );
    assert_eq!(
        row(false, "rwsem_down_read_slowpath+0x1f", 0),
        ("kernel-lock", name("rwsem_down_read_slowpath+0x1f"), "kernel-lock", 500)
    );
    assert_eq!(
        row(false, "vm_mmap_pgoff+0x9c", 8),
        ("uninterruptible", name("vm_mmap_pgoff+0x9c"), "kernel-lock", 500)
    );
    assert_eq!(
        row(true, "sleep_on_page+0x8", 8),
        ("disk", name("sleep_on_page+0x8"), "io-device", 500)
    );
}

#[test]
fn no_page_fault_is_told_of_where_neither_faults_nor_calls_were_recorded() {
    let a = run(&sleeper(None, 0).build());
    let rows = waits(&a);
    assert_eq!(
        (rows[0].kind, rows[0].object.as_str()),
        ("uninterruptible", "not recorded of pid 7")
    );
}

#[test]
fn a_reason_without_sched_waking_belongs_to_the_wait_that_sched_wakeup_ends() {
    let trace = |io: bool| {
        TraceBuilder::new(1)
            .records("sched", "sched_wakeup")
            .switch(0, 0, 0, 7, "R")
            .switch(100, 0, 7, 0, "D")
            .blocked_reason(590, (0, 0), 7, io, "foo+0x1")
            .wakeup_to(600, 0, 0, 7, 0)
            .switch(600, 0, 0, 7, "R")
            .switch(1000, 0, 7, 0, "S")
            .build()
    };
    assert_eq!(iowait(&run(&trace(true))), 500);
    assert_eq!(iowait(&run(&trace(false))), 0);
}

#[test]
fn io_of_another_thread_counts_for_the_time_it_takes() {
    // Both last ran on CPU 0. The first sleep is not I/O, the second is; then the reverse.
    let trace = |first: bool| {
        TraceBuilder::new(1)
            .records("sched", "sched_wakeup")
            .switch(0, 0, 0, 7, "R")
            .switch(100, 0, 7, 8, "D")
            .switch(200, 0, 8, 0, "D")
            .blocked_reason(500, (0, 0), 8, !first, "foo+0x1")
            .wakeup_to(500, 0, 0, 8, 0)
            .switch(500, 0, 0, 8, "R")
            .switch(600, 0, 8, 0, "S")
            .blocked_reason(900, (0, 0), 7, first, "bar+0x1")
            .wakeup_to(900, 0, 0, 7, 0)
            .switch(900, 0, 0, 7, "R")
            .switch(1000, 0, 7, 0, "S")
            .build()
    };
    assert_eq!(iowait(&run(&trace(false))), 300, "200 to 500");
    assert_eq!(iowait(&run(&trace(true))), 600, "200 to 500, 600 to 900");
}

#[test]
fn a_wait_keeps_its_waker_although_its_reason_comes_later() {
    let a = run(&sleeper(Some((false, "down_write+0x40")), 8).build());
    assert_eq!(waits(&a)[0].top_waker, Some(8));
    assert_eq!(idle(&a)[1], 500);
}

#[test]
fn a_reason_of_a_thread_that_does_not_sleep_changes_nothing() {
    let t = TraceBuilder::new(1)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .blocked_reason(50, (0, 7), 7, true, "foo+0x1")
        .blocked_reason(50, (0, 7), 99, true, "foo+0x1")
        .switch(100, 0, 7, 0, "S")
        .blocked_reason(300, (0, 0), 7, true, "foo+0x1")
        .wakeup_to(600, 0, 0, 7, 0)
        .switch(600, 0, 0, 7, "R")
        .switch(1000, 0, 7, 0, "D")
        .switch(1100, 0, 0, 7, "R");
    let a = run(&t.build());
    assert_eq!(idle(&a)[0], 0, "of the last sleep nothing is said, and nothing is known");
}

/// Thread 7 sleeps in D repeatedly, as in `sleeper`; the parameters choose the events that wake it.
fn sleeps(waking: bool, wakeup: bool, reason: Option<bool>) -> MemTrace {
    let mut t = TraceBuilder::new(2).switch(0, 1, 0, 8, "R").switch(0, 0, 0, 7, "R");
    for at in [1_000, 2_000, 3_000] {
        t = t.switch(at, 0, 7, 0, "D");
        if waking {
            t = t.waking_to(at + 600, 1, 0, 7, 0);
        }
        if let Some(io) = reason {
            t = t.blocked_reason(at + 601, (1, 0), 7, io, "msleep+0x28");
        }
        if wakeup {
            t = t.wakeup_to(at + 602, 1, 0, 7, 0);
        }
        t = t.switch(at + 700, 0, 0, 7, "R");
    }
    t.switch(4_000, 0, 7, 0, "S").build()
}

#[test]
fn a_reason_after_sched_waking_alone_is_no_less_a_reason() {
    for (waking, wakeup) in [(true, false), (true, true), (false, true)] {
        let a = run(&sleeps(waking, wakeup, Some(false)));
        assert_eq!((idle(&a)[0], iowait(&a)), (0, 0), "waking {waking}, wakeup {wakeup}");
        assert_eq!(waits(&a)[0].object, "in msleep+0x28 of pid 7");
        let io = run(&sleeps(waking, wakeup, Some(true)));
        assert!((1800..=1806).contains(&idle(&io)[0]), "{:?}", idle(&io));
    }
}

#[test]
fn a_sleep_ends_when_its_thread_is_woken_though_its_reason_comes_later() {
    let blocked = |waking, wakeup, reason| {
        let a = run(&sleeps(waking, wakeup, reason));
        let t = a.threads().map(|(_, t)| t).find(|t| t.tid.0 == 7).unwrap();
        (t.blocked_ns, t.woken_ns)
    };
    for reason in [None, Some(false), Some(true)] {
        assert_eq!(blocked(true, false, reason), (1800, 300), "{reason:?}");
        assert_eq!(blocked(true, true, reason), (1806, 294), "{reason:?}");
    }
}

#[test]
fn a_kernel_that_tells_of_some_sleeps_does_not_call_the_others_io() {
    // For thread 9, a real-time thread, it never gives a reason.
    let both = |tells: bool| {
        let mut t = TraceBuilder::new(2)
            .records("sched", "sched_blocked_reason")
            .switch(0, 0, 0, 7, "R")
            .switch(0, 1, 0, 9, "R")
            .switch(100, 0, 7, 0, "D")
            .waking_to(200, 0, 0, 7, 0);
        if tells {
            t = t.blocked_reason(201, (0, 0), 7, true, "io_schedule+0x10");
        }
        t.switch(210, 0, 0, 7, "R")
            .switch(300, 1, 9, 0, "D")
            .waking_to(900, 0, 7, 9, 1)
            .switch(910, 1, 0, 9, "R")
            .switch(1000, 0, 7, 0, "S")
            .build()
    };
    assert_eq!(iowait(&run(&both(true))), 101, "of thread 7 alone");
    assert_eq!(iowait(&run(&both(false))), 0, "the letter D alone");
}

/// A recorder that waits for its disk does not delay the workload, even if its file is slow.
#[test]
fn the_recorder_s_waits_for_disks_are_not_the_work_s() {
    const PREAD64: u32 = 17;
    let io = |comm: &str| {
        let a = run(&TraceBuilder::new(2)
            .task(7, 7, None, comm)
            .task(9, 9, None, "work")
            .switch(0, 0, 0, 7, "R")
            .switch(0, 1, 0, 9, "R")
            .sys_exit(10, 1, 9, PREAD64, 0)
            .sys_enter(50, 0, 7, PREAD64)
            .switch(100, 0, 7, 0, "D")
            .waking(600, 0, 0, 7)
            .switch(600, 0, 0, 7, "R")
            .sys_exit(700, 0, 7, PREAD64, 4096)
            .switch(1000, 0, 7, 0, "S")
            .switch(1000, 1, 9, 0, "S")
            .build());
        Attribution::from(&a).ledger.ns(Leaf::Io)
    };
    assert_eq!((io("dd"), io("perf"), io("lttng-consumerd")), (500, 0, 0));
}
