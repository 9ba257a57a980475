//! Threads that time out at a futex and contend for a lock.

use crate::pair::{FUTEX, WAKE, two, woken};
use holdup_attribution::{Attribution, Leaf, WaitsBy, analyze};
use holdup_passes::Options;
use holdup_testkit::{MemTrace, TraceBuilder};

const WAIT_BITSET: u64 = 0x189;
const READ: u32 = 0;
const TIMEDOUT: i64 = -110;
/// Each thread sleeps as long as it is awake.
const HALF: u64 = 1000;

/// A timer ends a thread's sleep at the futex on its CPU; `HALF` later it sleeps there again.
fn awake(trace: TraceBuilder, at: u64, cpu: u16, tid: u32, word: u64) -> TraceBuilder {
    trace
        .irq(at, at + 2, cpu, 0, 9)
        .waking(at + 1, cpu, 0, tid)
        .switch(at + 3, cpu, 0, tid, "R")
        .sys_exit(at + 4, cpu, tid, FUTEX, TIMEDOUT)
        .sys_enter_with(at + HALF - 5, cpu, tid, FUTEX, &[word, WAIT_BITSET, at])
        .switch(at + HALF - 4, cpu, tid, 0, "S")
}

/// Two threads that sleep at these words; the second is awake `later` than the first, and both
/// sleep for `nap` more than they are awake.
fn threads(later: u64, nap: u64, words: [u64; 2]) -> MemTrace {
    let mut trace = two()
        .sys_enter_with(0, 0, 7, FUTEX, &[words[0], WAIT_BITSET, 0])
        .switch(1, 0, 7, 0, "S")
        .sys_enter_with(2, 1, 8, FUTEX, &[words[1], WAIT_BITSET, 0])
        .switch(3, 1, 8, 0, "S");
    for i in 1..200 {
        let at = i * (2 * HALF + nap);
        trace = awake(trace, at, 0, 7, words[0]);
        trace = awake(trace, at + later, 1, 8, words[1]);
    }
    trace.build()
}

/// The rule of the longest waits, and whether they matter.
fn judged(later: u64, nap: u64, words: [u64; 2]) -> (&'static str, bool) {
    let trace = threads(later, nap, words);
    let a = analyze(&trace, &Options::default()).unwrap();
    let judged = Attribution::from(&a);
    let row = judged.waits(WaitsBy::Object).into_iter().next().unwrap();
    let lost = judged.ledger.ns(Leaf::ThreadSync);
    (row.rule, lost * 10 > judged.ledger.capacity_ns)
}

const ONE: [u64; 2] = [0x1000; 2];
const OWN: [u64; 2] = [0x1000, 0x2000];

/// Python's threads: the one that times out asks for the lock and has it before it sleeps again.
#[test]
fn who_is_awake_in_turn_contends_for_a_lock() {
    assert_eq!(judged(HALF, 0, ONE), ("lock-contention", true));
    assert_eq!(judged(HALF, HALF / 2, ONE), ("lock-contention", true), "not always in use");
}

#[test]
fn who_is_awake_at_any_time_naps() {
    assert_eq!(judged(0, 0, ONE), ("idle-no-work", false), "at the same time");
    assert_eq!(judged(HALF / 2, 0, ONE), ("idle-no-work", false), "half of the time, as by chance");
}

/// Ruby's threads each have a futex of their own.
#[test]
fn at_words_of_their_own_one_of_them_has_to_be_awake_at_all_times() {
    assert_eq!(judged(HALF, 0, OWN), ("lock-contention", true));
    assert_eq!(judged(HALF, HALF / 2, OWN), ("idle-no-work", false), "nobody has it");
    assert_eq!(judged(HALF / 2, 0, OWN), ("idle-no-work", false), "as by chance");
}

/// A thread wakes others by a call. The timer of one fires while another is in its own code.
#[test]
fn a_timer_on_top_of_a_program_is_not_that_program() {
    let waker = |in_call: bool| {
        let trace = two()
            .sys_enter_with(10, 1, 8, FUTEX, &[0x1000, WAIT_BITSET, 0])
            .switch(20, 1, 8, 0, "S");
        let trace = match in_call {
            true => trace.sys_enter_with(90, 0, 7, FUTEX, &[0x1000, WAKE, 1]),
            false => trace.sys_enter(90, 0, 7, READ).sys_exit(95, 0, 7, READ, 0),
        };
        let trace = trace
            .waking(100, 0, 7, 8)
            .switch(110, 1, 0, 8, "R")
            .sys_exit(120, 1, 8, FUTEX, TIMEDOUT)
            .switch(200, 1, 8, 0, "S")
            .build();
        let a = analyze(&trace, &Options::default()).unwrap();
        Attribution::from(&a).waits(WaitsBy::Object)[0].top_waker
    };
    assert_eq!((waker(true), waker(false)), (Some(7), None));
}

/// The past of a thread is kept for its latest sleeps only. A thread that idles all the time has
/// nothing to hand over, however long the other waits for it.
#[test]
fn a_long_wait_for_a_thread_that_naps_is_no_contention() {
    const NANOSLEEP: u32 = 35;
    let waits_for = |naps: u64| {
        let mut trace = two()
            .sys_enter_with(10, 1, 8, FUTEX, &[0x1000, WAIT_BITSET, 0])
            .switch(20, 1, 8, 0, "S");
        for i in 0..naps {
            let at = 100 + i * 1000;
            trace = trace
                .sys_enter(at, 0, 7, NANOSLEEP)
                .switch(at + 5, 0, 7, 0, "S")
                .irq(at + 899, at + 902, 0, 0, 9)
                .waking(at + 900, 0, 0, 7)
                .switch(at + 903, 0, 0, 7, "R")
                .sys_exit(at + 905, 0, 7, NANOSLEEP, 0);
        }
        let end = 100 + naps * 1000;
        let trace = woken(trace, end, (0, 7), (1, 8)).switch(end + 100, 1, 8, 0, "S").build();
        let a = analyze(&trace, &Options::default()).unwrap();
        let object = a.objects().find(|o| o.usage.is_some()).unwrap();
        object.followed_idle_ns * 100 / object.wait_ns
    };
    assert_eq!([8, 12, 100].map(waits_for), [88, 88, 89], "per cent of the wait");
}
