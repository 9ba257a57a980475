//! Threads that try for a lock between naps, in ways that a trace does not show.

use holdup_attribution::{Attribution, Leaf, WaitsBy, analyze};
use holdup_passes::Options;
use holdup_testkit::TraceBuilder;

const NANOSLEEP: u32 = 230;
const NAP: u64 = 1_000;
/// How long a try takes.
const TRY: u64 = 20;

/// A thread's nap ends on its CPU, it is awake for `ns`, and naps again.
fn awake(trace: TraceBuilder, at: u64, (cpu, tid): (u16, u32), ns: u64) -> TraceBuilder {
    trace
        .irq(at, at + 2, cpu, 0, 9)
        .waking(at + 1, cpu, 0, tid)
        .switch(at + 3, cpu, 0, tid, "R")
        .sys_exit(at + 4, cpu, tid, NANOSLEEP, 0)
        .sys_enter(at + 4 + ns, cpu, tid, NANOSLEEP)
        .switch(at + 5 + ns, cpu, tid, 0, "S")
}

/// Two processes of one program.
fn napping() -> TraceBuilder {
    TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("irq", "irq_handler_entry")
        .task(7, 7, None, "worker")
        .task(8, 8, None, "worker")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .sys_enter(1, 0, 7, NANOSLEEP)
        .switch(2, 0, 7, 0, "S")
        .sys_enter(1, 1, 8, NANOSLEEP)
        .switch(2, 1, 8, 0, "S")
}

/// Each in turn is awake for nine naps of the other, which is awake for `each` ns after a nap.
fn contending(each: u64) -> (&'static str, bool) {
    let mut trace = napping();
    for turn in 0..40 {
        let from = 1_000 + turn * 10 * (NAP + each);
        let mut threads = [(0, 7), (1, 8)];
        threads.rotate_left((turn % 2) as usize);
        let [holds, naps] = threads;
        trace = awake(trace, from, holds, 9 * (NAP + each));
        for i in 0..9 {
            trace = awake(trace, from + 100 + i * (NAP + each), naps, each);
        }
    }
    let a = analyze(&trace.build(), &Options::default()).unwrap();
    let judged = Attribution::from(&a);
    let row = judged.waits(WaitsBy::Object).into_iter().next().unwrap();
    let lost = judged.ledger.ns(Leaf::KernelServices);
    (row.rule, lost * 10 > judged.ledger.capacity_ns)
}

/// Processes that compute with a lock in redis slept "for a time": the verdict was healthy.
#[test]
fn who_naps_and_tries_while_another_is_awake_contends_for_a_lock() {
    assert_eq!(contending(TRY), ("lock-contention", true));
}

/// Both do half of what the other does while it is awake.
#[test]
fn who_works_between_naps_while_another_works_does_not() {
    assert_eq!(contending(NAP), ("idle-timer", false));
}

/// Two threads are awake in turn, because their timers were set at different times: each does its
/// work once per nap, and tries for nothing.
#[test]
fn periodic_threads_that_never_meet_try_for_nothing() {
    let mut trace = napping();
    for i in 1..200 {
        let at = i * 2 * NAP;
        trace = awake(trace, at, (0, 7), NAP - 100);
        trace = awake(trace, at + NAP, (1, 8), NAP - 100);
    }
    let a = analyze(&trace.build(), &Options::default()).unwrap();
    let rows = Attribution::from(&a).waits(WaitsBy::Object);
    assert!(rows.iter().all(|row| row.rule == "idle-timer"), "{rows:?}");
}
