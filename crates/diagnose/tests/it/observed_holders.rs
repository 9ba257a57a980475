//! A kernel lock whose holders `lock:contended_release` shows (Linux 7.2): the verdict names them.
//! The trace is hand-made, because there is no recording of such a kernel.

use holdup_attribution::analyze;
use holdup_diagnose::{Class, diagnose};
use holdup_passes::Options;
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::Reader;

const LOCK: u64 = 0xffff_8880_0000_1000;
/// `flags=` of a kernel mutex.
const MUTEX: u32 = 0x20;
const WRITE: u32 = 1;
/// How long each thread holds the lock, and how often it changes hands.
const TURN: u64 = 1_000_000;
const TURNS: u64 = 100;

/// Two threads, one CPU each, that contend in a call: one runs with the lock, one sleeps.
fn trace(released: bool) -> MemTrace {
    let wait = |trace: TraceBuilder, at, cpu, tid| {
        trace
            .sys_enter(at, cpu, tid, WRITE)
            .contention_begin(at + 10, cpu, tid, LOCK, MUTEX)
            .switch(at + 20, cpu, tid, 0, "D")
    };
    let mut trace = TraceBuilder::new(2)
        .task(11, 10, None, "writer-1")
        .task(12, 10, None, "writer-2")
        .switch(10, 0, 0, 11, "R")
        .sys_enter(20, 0, 11, WRITE)
        .switch(30, 1, 0, 12, "R");
    trace = wait(trace, 100, 1, 12);
    for turn in 1..=TURNS {
        let at = turn * TURN;
        // The holder and its CPU, then the waiter.
        let (has, waits) = if turn % 2 == 1 { ((0, 11), (1, 12)) } else { ((1, 12), (0, 11)) };
        if released {
            trace = trace.contended_release(at, has.0, has.1, LOCK);
        }
        trace = trace
            .waking(at + 10, has.0, has.1, waits.1)
            .wakeup(at + 20, has.0, has.1, waits.1)
            .switch(at + 30, waits.0, 0, waits.1, "R")
            .contention_end(at + 40, waits.0, waits.1, LOCK)
            .sys_exit(at + 50, has.0, has.1, WRITE, 1);
        trace = wait(trace, at + 100, has.0, has.1);
    }
    trace.build()
}

#[test]
fn the_verdict_names_who_held_the_lock() {
    let trace = trace(true);
    let analysis = analyze(&trace, &Options::default()).unwrap();
    let diagnosis = diagnose(trace.info(), &analysis, None);
    assert_eq!(diagnosis.verdict.class, Class::KernelLockConflict, "{:#?}", diagnosis.verdict);
    let culprit = &diagnosis.findings[0].culprits[0];
    assert_eq!(culprit.id, format!("{LOCK:#x}"));
    assert_eq!(culprit.holders_in_all, Some(2));
    let mut held: Vec<(u32, bool)> = culprit.holders.iter().map(|h| (h.tid, h.inferred)).collect();
    held.sort_unstable();
    assert_eq!(held, [(11, false), (12, false)]);
    for holder in &culprit.holders {
        // Each thread has half of the time, except for the hand-overs.
        let turns = TURNS / 2 * TURN;
        assert!(holder.ns.abs_diff(turns) < turns / 50, "{holder:?}");
        assert!(holder.pct.is_some_and(|pct| (pct - 50.0).abs() < 2.0), "{holder:?}");
    }
}

#[test]
fn without_the_event_no_holder_is_certain() {
    let trace = trace(false);
    let analysis = analyze(&trace, &Options::default()).unwrap();
    let diagnosis = diagnose(trace.info(), &analysis, None);
    assert_eq!(diagnosis.verdict.class, Class::KernelLockConflict);
    let culprit = &diagnosis.findings[0].culprits[0];
    assert!(culprit.holders.iter().all(|h| h.inferred), "{:?}", culprit.holders);
}
