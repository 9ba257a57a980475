//! What a demand says about a gain.

use holdup_attribution::{Leaf, analyze};
use holdup_diagnose::{Class, diagnose};
use holdup_passes::Options;
use holdup_testkit::TraceBuilder;
use holdup_trace::Reader;

const FUTEX: u32 = 202;
const NANOSLEEP: u32 = 35;
const US: u64 = 1000;
const MS: u64 = 1000 * US;

/// One thread naps, wakes another, has a mutex that the other waits for, and naps again. Most of
/// the little that both run is in the calls by which they sleep and wake, but without these calls
/// the naps would last as long.
#[test]
fn calls_of_threads_that_mostly_nap_delay_nothing() {
    let mut b = TraceBuilder::new(2).task(71, 70, None, "a").task(72, 70, None, "b");
    b = b.switch(0, 0, 0, 71, "R").switch(0, 1, 0, 72, "R");
    b = b.sys_enter_with(US, 1, 72, FUTEX, &[0x7000, 0, 4]).switch(2 * US, 1, 72, 0, "S");
    b = b.sys_enter(US, 0, 71, NANOSLEEP).switch(2 * US, 0, 71, 0, "S");
    for round in 1..=60 {
        let at = round * 10 * MS;
        b = b
            .waking_in_irq(at, 0, 0, 71)
            .switch(at + US, 0, 0, 71, "R")
            .sys_exit(at + 2 * US, 0, 71, NANOSLEEP, 0)
            .sys_enter_with(at + 5 * US, 0, 71, FUTEX, &[0x7000, 1, 1])
            .waking(at + 8 * US, 0, 71, 72)
            .switch(at + 10 * US, 1, 0, 72, "R")
            .sys_exit(at + 11 * US, 1, 72, FUTEX, 0)
            .sys_enter_with(at + 12 * US, 1, 72, FUTEX, &[0x8000, 0, 2])
            .switch(at + 30 * US, 1, 72, 0, "S")
            .sys_exit(at + 34 * US, 0, 71, FUTEX, 1)
            .sys_enter_with(at + 36 * US, 0, 71, FUTEX, &[0x8000, 1, 1])
            .waking(at + 40 * US, 0, 71, 72)
            .switch(at + 42 * US, 1, 0, 72, "R")
            .sys_exit(at + 50 * US, 0, 71, FUTEX, 1)
            .sys_enter(at + 52 * US, 0, 71, NANOSLEEP)
            .sys_exit(at + 53 * US, 1, 72, FUTEX, 0)
            .switch(at + 54 * US, 0, 71, 0, "S")
            .sys_enter_with(at + 60 * US, 1, 72, FUTEX, &[0x7000, 0, 4 + 2 * round])
            .switch(at + 100 * US, 1, 72, 0, "S");
    }
    let trace = b.build();
    let analysis = analyze(&trace, &Options::default()).unwrap();
    let found = diagnose(trace.info(), &analysis, None);
    let of_locks = found.findings.iter().find(|f| f.class == Class::ThreadSerialization).unwrap();
    let calls = of_locks.leaves.iter().find(|part| part.path == Leaf::ThreadSyncCalls.path());
    assert!(calls.unwrap().ns > 60 * 100 * US && of_locks.wanted_pct > 50.0, "{of_locks:?}");
    assert!(of_locks.worth.times < 1.02 && of_locks.ruled_out.is_some(), "{of_locks:?}");
}
