//! Threads that fight for a mutex without sleeping, on a trace built by hand.
//!
//! A real case: two threads of SQLite, each with a database of its own, made 820,000 futex calls in
//! half a second, of which 111 slept. Without the mutex (`SQLITE_CONFIG_MEMSTATUS`) they did six
//! times the work.

use crate::pair::{FUTEX, WAIT, WAKE, contended, two};
use holdup_attribution::{Attribution, Leaf, analyze};
use holdup_passes::{Analysis, Detail, Options};
use holdup_syscalls::WaitKind;
use holdup_testkit::TraceBuilder;

const EAGAIN: i64 = -11;
const MUTEX: u64 = 0x1000;

/// 8 has slept once for the mutex that 7 held, so that it is known as a mutex: 12 ns of its call
/// were on a CPU, and 7 ns of the call that woke it.
fn known_mutex() -> TraceBuilder {
    contended(two())
}

fn ends(trace: TraceBuilder) -> Analysis {
    let trace = trace.switch(300, 0, 7, 0, "S").switch(400, 1, 8, 0, "S").build();
    let options = Options { detail: Detail::Steps, ..Options::default() };
    let a = analyze(&trace, &options).unwrap();
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    // No other threads exist: the thread that ends the waits counts as a server.
    let turns = ledger.ns(Leaf::ThreadSyncCalls) + ledger.ns(Leaf::ServerCalls);
    assert_eq!(turns, a.sleep_and_wake_ns(WaitKind::is_library));
    a
}

/// CPU time of the calls, and the part of each thread at the mutex.
fn turns(a: &Analysis) -> (u64, Vec<(u32, u64)>) {
    let at = |tid| {
        let slot = a.all_threads().find(|(_, t)| t.tid.0 == tid).map(|(slot, _)| slot).unwrap();
        (tid, a.fought_for(slot).map(|(_, turn)| turn.ns).sum())
    };
    (a.sleep_and_wake_ns(WaitKind::is_library), vec![at(7), at(8)])
}

#[test]
fn a_wait_just_too_late_and_the_wake_up_it_asked_for_are_taking_turns() {
    assert_eq!(turns(&ends(known_mutex())), (19, vec![(7, 7), (8, 12)]));
    let fight = known_mutex()
        .sys_enter_with(100, 1, 8, FUTEX, &[MUTEX, WAIT, 2])
        .sys_exit(110, 1, 8, FUTEX, EAGAIN)
        .sys_enter_with(120, 0, 7, FUTEX, &[MUTEX, WAKE, 1])
        .sys_exit(135, 0, 7, FUTEX, 0);
    assert_eq!(turns(&ends(fight)), (19 + 10 + 15, vec![(7, 7 + 15), (8, 12 + 10)]));
}

#[test]
fn a_wake_up_that_nobody_asked_for_is_none() {
    let idle = known_mutex()
        .sys_enter_with(120, 0, 7, FUTEX, &[MUTEX, WAKE, 1])
        .sys_exit(135, 0, 7, FUTEX, 0);
    assert_eq!(turns(&ends(idle)), (19, vec![(7, 7), (8, 12)]));
}

#[test]
fn a_wait_too_late_for_a_word_that_is_no_mutex_is_none() {
    let event = known_mutex()
        .sys_enter_with(100, 1, 8, FUTEX, &[0x2000, WAIT, 0])
        .sys_exit(110, 1, 8, FUTEX, EAGAIN)
        .sys_enter_with(120, 0, 7, FUTEX, &[0x2000, WAKE, 1])
        .sys_exit(135, 0, 7, FUTEX, 0);
    assert_eq!(turns(&ends(event)), (19, vec![(7, 7), (8, 12)]));
}
