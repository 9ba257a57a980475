//! Threads that time out at a futex and take turns at a lock.

use crate::pair::{FUTEX, two};
use holdup_attribution::{Attribution, Leaf, WaitsBy, analyze};
use holdup_passes::Options;
use holdup_testkit::{MemTrace, TraceBuilder};

const WAIT_BITSET: u64 = 0x189;
const TIMEDOUT: i64 = -110;
/// Each thread sleeps as long as it is awake.
const HALF: u64 = 1000;

/// A timer ends a thread's sleep at the futex on its CPU; `HALF` later it sleeps there again.
fn awake(trace: TraceBuilder, at: u64, cpu: u16, tid: u32) -> TraceBuilder {
    trace
        .irq(at, at + 2, cpu, 0, 9)
        .waking(at + 1, cpu, 0, tid)
        .switch(at + 3, cpu, 0, tid, "R")
        .sys_exit(at + 4, cpu, tid, FUTEX, TIMEDOUT)
        .sys_enter_with(at + HALF - 5, cpu, tid, FUTEX, &[0x1000, WAIT_BITSET, at])
        .switch(at + HALF - 4, cpu, tid, 0, "S")
}

/// Two threads, of which the second is awake `later` than the first.
fn threads(later: u64) -> MemTrace {
    let mut trace = two()
        .sys_enter_with(0, 0, 7, FUTEX, &[0x1000, WAIT_BITSET, 0])
        .switch(1, 0, 7, 0, "S")
        .sys_enter_with(2, 1, 8, FUTEX, &[0x1000, WAIT_BITSET, 0])
        .switch(3, 1, 8, 0, "S");
    for i in 1..200 {
        let at = i * 2 * HALF;
        trace = awake(trace, at, 0, 7);
        trace = awake(trace, at + later, 1, 8);
    }
    trace.build()
}

fn judged(later: u64) -> (&'static str, bool) {
    let trace = threads(later);
    let a = analyze(&trace, &Options::default()).unwrap();
    let judged = Attribution::from(&a);
    let row = judged.waits(WaitsBy::Object).into_iter().next().unwrap();
    let lost = judged.ledger.ns(Leaf::ThreadSync);
    (row.rule, lost * 10 > judged.ledger.capacity_ns)
}

/// Python's threads: the one that times out asks for the lock and has it before it sleeps again.
#[test]
fn who_is_awake_in_turn_contends_for_a_lock() {
    assert_eq!(judged(HALF), ("lock-contention", true));
}

#[test]
fn who_is_awake_at_any_time_naps() {
    assert_eq!(judged(0), ("idle-no-work", false), "at the same time");
    assert_eq!(judged(HALF / 2), ("idle-no-work", false), "half of the time, as by chance");
}
