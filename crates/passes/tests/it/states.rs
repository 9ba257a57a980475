//! The state machines on traces built by hand, one case per test.

use holdup_attribution::{Attribution, Leaf, Total, analyze};
use holdup_passes::{Analysis, CpuRow, Group, Options, Selection, SyscallRow, Thread};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{Nanos, QualityCode, What};

fn run(trace: &MemTrace) -> Analysis {
    let a = analyze(trace, &Options::default()).unwrap();
    assert_closes(&a);
    a
}

/// Checks every sum that must add up.
fn assert_closes(a: &Analysis) {
    for r in a.cpu_rows() {
        let parts = r.user_ns.unwrap_or(0)
            + r.kernel_ns.unwrap_or(0)
            + r.kthread_ns
            + r.irq_ns.unwrap_or(0)
            + r.softirq_ns.unwrap_or(0)
            + r.idle_ns
            + r.unaccounted_ns;
        assert_eq!(parts, r.wall_ns, "cpu {}: {r:?}", r.cpu);
    }
    let ledger = Attribution::from(a).ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    for r in a.syscalls(Group::System) {
        let parts = r.cpu_ns.unwrap_or(0)
            + r.interrupted_ns.unwrap_or(0)
            + r.runnable_ns.unwrap_or(0)
            + r.blocked_ns.unwrap_or(0);
        if r.cpu_ns.is_some() {
            assert_eq!(parts, r.total_ns, "{r:?}");
        }
    }
    for (_, t) in a.threads() {
        assert_eq!(t.user_ns + t.kernel_ns + t.irq_ns, t.running_ns, "tid {}", t.tid);
    }
}

fn thread(a: &Analysis, tid: u32) -> &Thread {
    a.threads().map(|(_, t)| t).find(|t| t.tid.0 == tid).unwrap()
}

/// running, woken, preempted, blocked
fn times(a: &Analysis, tid: u32) -> [Nanos; 4] {
    let t = thread(a, tid);
    [t.running_ns, t.woken_ns, t.preempted_ns, t.blocked_ns]
}

fn cpu(a: &Analysis, cpu: u16) -> CpuRow {
    a.cpu_rows().into_iter().find(|r| r.cpu == cpu).unwrap()
}

fn call(a: &Analysis, name: &str) -> SyscallRow {
    a.syscalls(Group::System).into_iter().find(|r| r.name == name).unwrap()
}

#[test]
fn a_call_that_sleeps_is_split_by_what_the_thread_did() {
    let a = run(&TraceBuilder::new(1)
        .switch(100, 0, 0, 42, "R")
        .sys_enter(110, 0, 42, 0)
        .irq(112, 115, 0, 42, 9)
        .switch(120, 0, 42, 0, "S")
        .wakeup(150, 0, 0, 42)
        .switch(157, 0, 0, 42, "R")
        .sys_exit(160, 0, 42, 0, 512)
        .switch(170, 0, 42, 0, "S")
        .build());
    let read = call(&a, "read");
    assert_eq!((read.count, read.errors, read.total_ns, read.cpu_ns), (1, 0, 50, Some(10)));
    assert_eq!(
        (read.interrupted_ns, read.runnable_ns, read.blocked_ns),
        (Some(3), Some(7), Some(30))
    );
    assert_eq!(times(&a, 42), [33, 7, 0, 30]);
    let c = cpu(&a, 0);
    assert_eq!(
        (c.user_ns, c.kernel_ns, c.irq_ns, c.idle_ns, c.unaccounted_ns),
        (Some(20), Some(10), Some(3), 37, 0)
    );
    let sar = &a.sar(false)[0];
    assert_eq!(
        sar.rchar_per_s,
        Some(512.0 * 1e9 / 70.0).map(|x| (x * 1000.0_f64).round() / 1000.0)
    );
}

#[test]
fn threads_older_than_the_trace_did_before_their_first_event_what_it_proves() {
    let a = run(&TraceBuilder::new(2)
        .switch(100, 0, 0, 7, "R") // CPU 0 starts the clock
        .wakeup(140, 0, 7, 8) // 8 slept since the start
        .switch(150, 1, 9, 8, "S") // 9 ran on CPU 1 since the start
        .switch(160, 1, 8, 10, "S") // 10 was ready since the start: nobody woke it
        .switch(200, 0, 7, 0, "S")
        .build());
    assert_eq!(times(&a, 8), [10, 10, 0, 40 + 40]);
    assert_eq!(times(&a, 9), [50, 0, 0, 50]);
    assert_eq!(times(&a, 10), [40, 60, 0, 0]);
    assert_eq!(cpu(&a, 1).user_ns, Some(100));
}

#[test]
fn a_wake_up_before_the_switch_out_is_not_a_sleep() {
    let a = run(&TraceBuilder::new(2)
        .switch(100, 0, 0, 7, "R")
        .switch(100, 1, 0, 8, "R")
        .wakeup(150, 1, 8, 7) // 7 still runs, on its way to sleep
        .switch(160, 0, 7, 9, "S")
        .switch(190, 0, 9, 7, "S")
        .switch(200, 0, 7, 0, "S")
        .build());
    assert_eq!(times(&a, 7), [70, 30, 0, 0]);
    assert_eq!(a.quality.count(QualityCode::MissingWakeup), 0);
}

#[test]
fn preemption_inside_a_call_is_runnable_time_and_involuntary() {
    let a = run(&TraceBuilder::new(1)
        .switch(100, 0, 0, 7, "R")
        .sys_enter(110, 0, 7, 1)
        .switch(120, 0, 7, 8, "R+")
        .switch(150, 0, 8, 7, "S")
        .sys_exit(155, 0, 7, 1, -32)
        .switch(160, 0, 7, 0, "S")
        .records("sched", "sched_wakeup")
        .build());
    let write = call(&a, "write");
    assert_eq!(
        (write.total_ns, write.cpu_ns, write.runnable_ns, write.blocked_ns),
        (45, Some(15), Some(30), Some(0))
    );
    assert_eq!(write.errnos.get("EPIPE"), Some(&1));
    let t = thread(&a, 7);
    assert_eq!((t.voluntary, t.involuntary), (1, 1));
    assert_eq!(times(&a, 7), [30, 0, 30, 0]);
}

/// A new thread returns from the call that created it: `clone` was counted twice, once with 0 ns.
#[test]
fn the_return_of_a_child_from_clone_is_no_call_of_its_own() {
    let a = run(&TraceBuilder::new(2)
        .switch(100, 0, 0, 7, "R")
        .sys_enter(105, 0, 7, 56)
        .fork(110, 0, 7, 8)
        .sys_exit(115, 0, 7, 56, 8)
        .switch(120, 1, 0, 8, "R")
        .sys_exit(125, 1, 8, 56, 0)
        .exit(140, 1, 8)
        .switch(150, 1, 8, 0, "Z")
        .switch(160, 0, 7, 0, "S")
        .build());
    let clone = call(&a, "clone");
    assert_eq!((clone.count, clone.total_ns, clone.returned_only, clone.min_ns), (1, 10, 0, 10));
    let child = thread(&a, 8);
    assert_eq!((child.born, child.died, child.kernel_ns, child.user_ns), (110, Some(150), 5, 25));
    assert_eq!(times(&a, 8), [30, 10, 0, 0]);
}

/// If `sched_wakeup_new` is not recorded, new threads that queued behind others while a CPU idled
/// counted nowhere: their waiting was no delay, and the idle time had no cause.
#[test]
fn a_new_thread_is_ready_from_its_fork_on_where_nothing_says_when() {
    let trace = |says: bool| {
        let trace = TraceBuilder::new(2)
            .switch(90, 1, 0, 7, "R")
            .wakeup(100, 1, 7, 5)
            .switch(101, 0, 0, 5, "R")
            .makes(110, 1, 7, 8);
        let trace = if says { trace.lets_begin(110, 1, 7, 8) } else { trace };
        let trace = trace.switch(120, 0, 5, 0, "S").switch(150, 1, 7, 8, "S");
        run(&trace.switch(170, 1, 8, 0, "S").build())
    };
    for says in [true, false] {
        let a = trace(says);
        assert_eq!(times(&a, 8), [20, 40, 0, 0], "{says}");
        let row = a.switches().into_iter().find(|r| r.tid == 8).unwrap();
        assert_eq!((row.delay_count, row.max_delay_ns), (Some(1), Some(40)), "{says}");
        assert_eq!(Attribution::from(&a).ledger.ns(Leaf::Scheduler), 30, "{says}");
    }
}

#[test]
fn a_return_from_a_signal_handler_has_no_result() {
    let a = run(&TraceBuilder::new(1)
        .sys_enter(10, 0, 42, 15)
        // EINTR is what the call that the signal interrupted returned, not this one.
        .sys_exit(12, 0, 42, u32::MAX, -4)
        .build());
    let call = call(&a, "rt_sigreturn");
    assert_eq!((call.count, call.errors, call.total_ns), (1, 0, 2));
}

#[test]
fn a_call_that_never_returns_is_pending() {
    let a = run(&TraceBuilder::new(1)
        .switch(100, 0, 0, 7, "R")
        .sys_enter(110, 0, 7, 231)
        .exit(120, 0, 7)
        .switch(130, 0, 7, 8, "X")
        .sys_enter(140, 0, 8, 202)
        .switch(150, 0, 8, 0, "S")
        .switch(200, 0, 0, 9, "R")
        .build());
    let exit = call(&a, "exit_group");
    assert_eq!((exit.count, exit.pending, exit.pending_ns), (0, 1, 20));
    let futex = call(&a, "futex");
    assert_eq!((futex.count, futex.pending, futex.pending_ns), (0, 1, 60));
}

#[test]
fn an_id_used_again_is_another_thread() {
    let a = run(&TraceBuilder::new(1)
        .switch(100, 0, 0, 7, "R")
        .exit(110, 0, 7)
        .switch(120, 0, 7, 5, "X")
        .fork(130, 0, 5, 7)
        .switch(140, 0, 5, 7, "S")
        .switch(150, 0, 7, 0, "S")
        .build());
    let lives: Vec<_> = a
        .threads()
        .filter(|(_, t)| t.tid.0 == 7)
        .map(|(_, t)| (t.born, t.died, t.running_ns))
        .collect();
    assert_eq!(lives, [(100, Some(120), 20), (130, None, 10)]);
}

#[test]
fn a_current_thread_that_changed_unseen_leaves_a_gap() {
    let a = run(&TraceBuilder::new(1)
        .switch(100, 0, 0, 7, "R")
        .sys_enter(120, 0, 7, 39)
        .sys_exit(121, 0, 7, 39, 1)
        .sys_enter(170, 0, 8, 39) // 7 left and 8 came: the switch is lost
        .sys_exit(180, 0, 8, 39, 1)
        .switch(200, 0, 8, 0, "S")
        .build());
    let c = cpu(&a, 0);
    assert_eq!((c.unaccounted_ns, c.user_ns, c.kernel_ns), (49, Some(40), Some(11)));
    assert_eq!(a.quality.count(QualityCode::SwitchGap), 1);
}

#[test]
fn a_stay_that_began_unseen_begins_with_the_wake_up() {
    let a = run(&TraceBuilder::new(2)
        .sys_enter(90, 0, 42, 0)
        .switch(100, 0, 42, 0, "S")
        .sys_enter(140, 1, 7, 1)
        .wakeup(150, 1, 7, 42)
        // The switch from the idle task to 42 is missing.
        .sys_exit(155, 0, 42, 0, 1)
        .switch(160, 0, 42, 0, "S")
        .build());
    let row = a.switches().into_iter().find(|r| r.tid == 42).unwrap();
    assert_eq!((row.switches, row.runtime_ns), (2, 10));
    assert_eq!(a.quality.count(QualityCode::InferredSwitch), 1);
}

#[test]
fn interrupts_nest_and_the_innermost_is_charged() {
    let a = run(&TraceBuilder::new(1)
        .switch(100, 0, 7, 0, "S")
        .softirq(110, 150, 0, 0, 3)
        .irq(120, 130, 0, 0, 9)
        .switch(200, 0, 0, 7, "R")
        .build());
    let c = cpu(&a, 0);
    assert_eq!((c.softirq_ns, c.irq_ns, c.idle_ns), (Some(30), Some(10), 60));
    let rows = a.irqs(false);
    assert_eq!(
        (rows[1].name.as_str(), rows[1].total_ns, rows[1].max_start_ns),
        ("NET_RX", 40, 110)
    );
    assert_eq!(rows[0].total_ns, 10);
}

#[test]
fn a_thread_without_an_id_is_interrupted_like_any_other() {
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 42, "R")
        .exit(10, 0, 42)
        .irq(20, 25, 0, u32::MAX, 9)
        .switch(30, 0, 42, 0, "X")
        .build());
    let c = cpu(&a, 0);
    assert_eq!((c.irq_ns, c.unaccounted_ns), (Some(5), 0));
    assert_eq!((thread(&a, 42).running_ns, thread(&a, 42).irq_ns), (30, 5));
}

#[test]
fn a_silent_cpu_is_idle_only_if_interrupts_were_recorded() {
    let trace = |b: TraceBuilder| b.switch(100, 0, 0, 7, "R").switch(200, 0, 7, 0, "S").build();
    assert_eq!(cpu(&run(&trace(TraceBuilder::new(2))), 1).unaccounted_ns, 100);
    assert_eq!(
        cpu(&run(&trace(TraceBuilder::new(2).records("irq", "softirq_entry"))), 1).idle_ns,
        100
    );
}

/// Threads were woken on or moved to it, so it ran them: it was not recorded.
#[test]
fn a_cpu_that_shows_only_as_a_target_exists_and_is_not_idle() {
    let trace = |b: TraceBuilder| b.switch(100, 0, 0, 7, "R").switch(200, 0, 7, 0, "S").build();
    let none = || TraceBuilder::new(1).records("irq", "softirq_entry");
    assert_eq!(run(&trace(none())).cpus, 1);
    for sent in [
        none().wakeup_to(110, 0, 7, 8, 3),
        none().waking_to(110, 0, 7, 8, 3),
        none().migrate(110, 0, 7, 8, 3),
    ] {
        let a = run(&trace(sent));
        assert_eq!((a.cpus, a.capacity_ns()), (2, 200));
        assert_eq!((cpu(&a, 3).unaccounted_ns, cpu(&a, 3).idle_ns), (100, 0));
        assert_eq!(a.quality.count(QualityCode::SilentCpu), 1);
    }
}

/// Time between one `sys_enter` and the next is not all kernel time, and time after an interrupt is
/// not all interrupt time.
#[test]
fn half_a_pair_is_counted_and_not_believed() {
    let ends = || TraceBuilder::new(1).only_these_events().switch(0, 0, 0, 7, "R");
    let a =
        run(&ends().sys_enter(10, 0, 7, 0).sys_enter(20, 0, 7, 0).switch(90, 0, 7, 0, "S").build());
    assert!(!a.capabilities.syscalls.are_any() && a.syscalls(Group::System).is_empty());
    assert_eq!(a.sar(false)[0].scall_per_s, None);
    assert_eq!((cpu(&a, 0).user_ns, cpu(&a, 0).kernel_ns), (Some(90), None));
    assert_eq!(a.quality.count(QualityCode::HalfRecorded), 2);
    let entry = What::SoftirqEntry { vec: 1 };
    let a = run(&ends()
        .event(10, 0, 7, ("irq", "softirq_entry"), entry)
        .switch(90, 0, 7, 0, "S")
        .build());
    assert_eq!((cpu(&a, 0).user_ns, cpu(&a, 0).softirq_ns), (Some(90), None));
    assert_eq!(a.quality.count(QualityCode::HalfRecorded), 1);
}

#[test]
fn forks_are_not_counted_where_only_exits_were_recorded() {
    let a = run(&TraceBuilder::new(1).switch(0, 0, 0, 7, "R").exit(10, 0, 7).build());
    assert!(a.capabilities.lifecycle);
    assert_eq!((a.sar(false)[0].fork_per_s, a.sar(false)[0].exec_per_s), (None, None));
}

#[test]
fn kernel_threads_are_told_by_parent_name_state_or_habit() {
    let a = run(&TraceBuilder::new(1)
        .task(20, 20, Some(2), "whatever")
        .task(21, 21, None, "kworker/0:1")
        .switch(100, 0, 0, 20, "R")
        .switch(110, 0, 20, 21, "S")
        .switch(120, 0, 21, 22, "S")
        .switch(130, 0, 22, 23, "I")
        .switch(140, 0, 23, 24, "S") // slept without ever making a system call
        .sys_enter(145, 0, 24, 39)
        .sys_exit(146, 0, 24, 39, 0)
        .switch(150, 0, 24, 0, "S")
        .build());
    assert_eq!(
        (cpu(&a, 0).kthread_ns, cpu(&a, 0).user_ns, cpu(&a, 0).kernel_ns),
        (40, Some(9), Some(1))
    );
}

#[test]
fn without_system_calls_user_and_kernel_are_not_told_apart() {
    let a = run(&TraceBuilder::new(1).switch(100, 0, 0, 7, "R").switch(150, 0, 7, 0, "S").build());
    assert_eq!((cpu(&a, 0).user_ns, cpu(&a, 0).kernel_ns), (Some(50), None));
    assert_eq!(a.sar(false)[0].scall_per_s, None);
}

#[test]
fn a_window_keeps_what_came_before_it_as_state() {
    let trace = TraceBuilder::new(1)
        .switch(100, 0, 0, 7, "R")
        .sys_enter(110, 0, 7, 0)
        .switch(120, 0, 7, 0, "S")
        .wakeup(180, 0, 0, 7)
        .switch(185, 0, 0, 7, "R")
        .sys_exit(190, 0, 7, 0, 1)
        .switch(300, 0, 7, 0, "S")
        .build();
    let a = analyze(
        &trace,
        &Options::from(Selection { from: Some(150), to: Some(250), ..Selection::default() }),
    )
    .unwrap();
    assert_closes(&a);
    assert_eq!((a.start, a.end, cpu(&a, 0).idle_ns, cpu(&a, 0).kernel_ns), (150, 250, 35, Some(5)));
    let read = call(&a, "read");
    assert_eq!(
        (read.total_ns, read.blocked_ns, read.runnable_ns, read.cpu_ns),
        (40, Some(30), Some(5), Some(5))
    );
}

#[test]
fn two_threads_taking_turns_at_a_futex_are_blamed_on_thread_sync() {
    let mut b = TraceBuilder::new(2).records("raw_syscalls", "sys_enter");
    // Each runs 100 while the other sleeps in futex and is woken by it at the end.
    for i in 0..10u64 {
        let t = 1000 + i * 100;
        let (me, other) = if i % 2 == 0 { (7, 8) } else { (8, 7) };
        let (my_cpu, other_cpu) = ((me - 7) as u16, (other - 7) as u16);
        b = b.sys_enter(t, other_cpu, other, 202).switch(t + 1, other_cpu, other, 0, "S");
        b = b.sys_enter(t + 90, my_cpu, me, 202).waking(t + 91, my_cpu, me, other).wakeup(
            t + 92,
            my_cpu,
            me,
            other,
        );
        b = b
            .sys_exit(t + 94, my_cpu, me, 202, 1)
            .switch(t + 95, other_cpu, 0, other, "R")
            .sys_exit(t + 96, other_cpu, other, 202, 0);
    }
    let a = run(&b.build());
    let l = Attribution::from(&a).ledger;
    assert_eq!(l.total(Total::Idle), 10 * 94);
    // The CPU's wake-up latency belongs to the wait.
    assert_eq!(l.ns(Leaf::ThreadSync), 10 * 94);
    assert_eq!(l.ns(Leaf::Scheduler), 0);
    assert_eq!(l.ns(Leaf::NoWork), 0);
}

const MS: Nanos = 1_000_000;

/// A thread leaves its CPU in state R and the CPU goes idle, until the thread is back without a
/// wake-up, three times.
fn throttled() -> MemTrace {
    let mut t = TraceBuilder::new(1).switch(0, 0, 0, 42, "R");
    for period in 0..3 {
        let start = period * 100 * MS;
        t = t.switch(start + 40 * MS, 0, 42, 0, "R").switch(start + 100 * MS, 0, 0, 42, "R");
    }
    t.switch(310 * MS, 0, 42, 0, "S").build()
}

#[test]
fn a_thread_out_of_quota_leaves_its_cpu_idle() {
    let a = run(&throttled());
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(ledger.get(Leaf::Throttled), Some(180 * MS));
    assert_eq!(ledger.get(Leaf::Scheduler), Some(0));
    let throttle = thread(&a, 42).throttle().unwrap();
    assert_eq!((throttle.spells, throttle.ns), (3, 180 * MS));
    let quota = a.quota();
    assert_eq!((quota.period_ns, quota.cpus()), (Some(100 * MS), Some(0.4)));
    // Ready all the time, as perf counts it.
    assert_eq!(times(&a, 42), [130 * MS, 0, 180 * MS, 0]);
}

/// Threads 42 and 43 of one process are out of quota on both CPUs; the quota's group is not known,
/// so the group is the root. CPU 1 has no events of its idle task. Thread 9 of another program runs
/// on CPU 0 meanwhile: it was taken for one that was back, and so was 43.
#[test]
fn another_program_does_not_bring_threads_back_that_are_out_of_quota() {
    let mut b = TraceBuilder::new(2).task(42, 42, None, "a").task(43, 42, None, "a");
    b = b.task(9, 9, None, "other");
    for tid in [42, 43, 9] {
        b = b.in_group(0, 0, tid, "/");
    }
    b = b.switch(0, 0, 0, 42, "R").switch(0, 1, 0, 43, "R");
    for start in (0..3).map(|period| period * 100 * MS) {
        b = b
            .switch(start + 40 * MS, 0, 42, 0, "R")
            .switch(start + 41 * MS, 1, 43, 0, "R")
            .wakeup_to(start + 60 * MS, 0, 0, 9, 0)
            .switch(start + 60 * MS + 20_000, 0, 0, 9, "R")
            .switch(start + 61 * MS, 0, 9, 0, "S")
            .switch(start + 100 * MS, 0, 0, 42, "R")
            .sys_enter(start + 100 * MS + 1000, 1, 43, 1)
            .sys_exit(start + 100 * MS + 2000, 1, 43, 1, 1);
    }
    let a = run(&b.switch(310 * MS, 0, 42, 0, "S").switch(310 * MS, 1, 43, 0, "S").build());
    assert_eq!(thread(&a, 43).throttle().map(|of| (of.spells, of.ns)), Some((3, 177 * MS)));
    assert_eq!(thread(&a, 9).throttle().map_or(0, |of| of.ns), 0);
}

#[test]
fn a_state_that_no_table_knows_is_counted_and_not_guessed_at() {
    let a = run(&TraceBuilder::new(1)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .switch(100, 0, 7, 0, "Q") // asleep, ready or dead
        .wakeup(600, 0, 0, 7)
        .switch(650, 0, 0, 7, "R")
        .switch(1000, 0, 7, 0, "S")
        .build());
    assert_eq!(a.quality.count(QualityCode::UnknownState), 1);
    assert_eq!(times(&a, 7), [450, 50, 0, 0]);
}

#[test]
fn a_thread_preempted_on_its_way_to_sleep_stays_ready() {
    let a = run(&TraceBuilder::new(1)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 7, "R")
        .switch(100, 0, 7, 8, "S+")
        .switch(600, 0, 8, 7, "S")
        .switch(1000, 0, 7, 0, "S")
        .build());
    assert_eq!(times(&a, 7), [500, 0, 500, 0]);
}

#[test]
fn the_idling_of_a_kernel_thread_before_4_14_is_no_wait_for_a_disk() {
    let a = run(&TraceBuilder::new(1)
        .records("raw_syscalls", "sys_enter")
        .records("raw_syscalls", "sys_exit")
        .switch(0, 0, 0, 7, "R")
        .switch(100, 0, 7, 0, "D|N")
        .switch(600, 0, 0, 7, "R")
        .switch(1000, 0, 7, 0, "D|K")
        .switch(1100, 0, 0, 8, "R")
        .sys_exit(1110, 0, 8, 1, 1)
        .switch(1200, 0, 8, 0, "D|K")
        .switch(1500, 0, 0, 8, "R")
        .switch(1600, 0, 8, 0, "S")
        .build());
    assert!(thread(&a, 7).is_kthread() && !thread(&a, 8).is_kthread());
    assert_eq!(cpu(&a, 0).iowait_ns, Some(300), "D|K is uninterruptible, D|N is idle");
}

/// The next thread did not run before, and the time before the switch is unaccounted.
#[test]
fn a_switch_that_does_not_say_who_leaves_begins_the_time_of_who_comes() {
    let unknown = u32::MAX;
    let trace = TraceBuilder::new(1)
        .wakeup(0, 0, unknown, 8)
        .switch(40, 0, unknown, 7, "S")
        .switch(100, 0, 7, 0, "S")
        .build();
    let a = run(&trace);
    // No thread woke it since the trace began: it was ready all the time.
    assert_eq!(times(&a, 7), [60, 40, 0, 0]);
    let cpu = &a.cpu_rows()[0];
    assert_eq!((cpu.unaccounted_ns, cpu.idle_ns, cpu.wall_ns), (40, 0, 100));
    assert_eq!(cpu.switches, 2);
}

#[test]
fn what_was_lost_before_the_part_is_no_loss_of_the_part() {
    let trace = TraceBuilder::new(1)
        .switch(100, 0, 0, 7, "R")
        .lost(120, 0, 5)
        .switch(140, 0, 7, 0, "S")
        .switch(170, 0, 0, 7, "R")
        .lost(180, 0, 3)
        .switch(200, 0, 7, 0, "S")
        .build();
    let of = |from| {
        let part = Options::from(Selection { from, ..Selection::default() });
        analyze(&trace, &part).unwrap().lost_events
    };
    assert_eq!((of(None), of(Some(150))), (8, 3));
}
