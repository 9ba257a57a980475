//! Calls that cost more because of threads on other CPUs.

use crate::change::Change;
use crate::estimate::{Depth, Estimate};
use crate::tests::{US, estimated};
use holdup_attribution::Resource;
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const GETPPID: u32 = 110;

/// Each millisecond the first of two threads makes three calls of 10 us, and then both make one of
/// `concurrent` us at once. A third thread waits for a CPU all the time. What four CPUs are worth.
fn more_cpus(concurrent: Nanos) -> Estimate {
    let mut b = TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .task(7, 7, None, "a")
        .task(8, 7, Some(7), "b")
        .task(9, 7, Some(7), "c")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .wakeup(US, 0, 7, 9);
    for i in 1..=100 {
        let at = i * 1_000 * US;
        for call in 0..3 {
            let at = at + call * 100 * US;
            b = b.sys_enter(at, 0, 7, GETPPID).sys_exit(at + 10 * US, 0, 7, GETPPID, 1);
        }
        let at = at + 400 * US;
        b = b
            .sys_enter(at, 0, 7, GETPPID)
            .sys_enter(at + US, 1, 8, GETPPID)
            .sys_exit(at + concurrent * US, 0, 7, GETPPID, 1)
            .sys_exit(at + (concurrent + 1) * US, 1, 8, GETPPID, 1);
    }
    let end = 102_000 * US;
    b = b.switch(end, 0, 7, 9, "S").switch(end, 1, 8, 0, "S").switch(end * 3 / 2, 0, 9, 0, "S");
    let (_, _, found) = estimated(b, Depth::Resources);
    found.rows.iter().find(|row| row.resource == Resource::Cpus).expect("a queue").clone()
}

/// The third thread can begin at once, but then three threads contend for the lock, not two.
#[test]
fn more_cpus_bring_more_contention_for_kernel_locks() {
    let alone = more_cpus(10);
    assert!(matches!(alone.change[..], [Change::Cpus(_)]), "{:?}", alone.change);
    let contended = more_cpus(400);
    assert!(matches!(contended.change[..], [Change::Cpus(_), Change::Scale { .. }]));
    assert!(contended.worth < alone.worth * 0.9, "{} {}", contended.worth, alone.worth);
    assert!(contended.worth >= 1.0, "CPUs that only add contention are not used");
}
