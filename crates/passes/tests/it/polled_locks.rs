//! Threads that try for a lock between naps, in ways that a trace does not show.

use holdup_attribution::{Attribution, Leaf, WaitsBy, analyze};
use holdup_passes::Options;
use holdup_testkit::Napping;

const NAP: u64 = Napping::NAP;

/// Each in turn is awake for nine naps of the other, which is awake for `each` ns after a nap.
fn contending(each: u64) -> (&'static str, bool) {
    let trace = Napping::in_turn(40, each);
    let a = analyze(&trace.build(), &Options::default()).unwrap();
    let judged = Attribution::from(&a);
    let row = judged.waits(WaitsBy::Object).into_iter().next().unwrap();
    let lost = judged.ledger.ns(Leaf::KernelServices);
    (row.rule, lost * 10 > judged.ledger.capacity_ns)
}

/// Processes that compute with a lock in redis slept "for a time": the verdict was healthy.
#[test]
fn who_naps_and_tries_while_another_is_awake_contends_for_a_lock() {
    assert_eq!(contending(Napping::TRY), ("lock-contention", true));
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
    let awake = NAP * 9 / 10;
    let napping = (1..200).fold(Napping::begin(), |napping, i| {
        let at = i * 2 * NAP;
        napping.awake(at, 0, awake).awake(at + NAP, 1, awake)
    });
    let a = analyze(&napping.trace().build(), &Options::default()).unwrap();
    let rows = Attribution::from(&a).waits(WaitsBy::Object);
    assert!(rows.iter().all(|row| row.rule == "idle-timer"), "{rows:?}");
}
