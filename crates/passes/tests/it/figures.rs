//! What the tables say of idle time is what the ledger says.

use holdup_attribution::{Attribution, Leaf, Total, WaitsBy, analyze};
use holdup_passes::{Detail, Options};
use holdup_testkit::{MemTrace, TraceBuilder};

/// Thread 7 reads from a pipe what thread 8 writes, which is busy all the time; threads 9 and 10
/// are busy too, and CPU 0 idles while 7 waits.
fn a_partner() -> MemTrace {
    let mut t = TraceBuilder::new(4)
        .task(7, 7, None, "reader")
        .task(8, 8, None, "writer")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .switch(0, 2, 0, 9, "R")
        .switch(0, 3, 0, 10, "R");
    for at in (1..40u64).map(|n| n * 1_000_000) {
        t = t
            .sys_enter_with(at, 0, 7, 0, &[3, 0, 64])
            .switch(at + 1_000, 0, 7, 0, "S")
            .sys_enter_with(at + 600_000, 1, 8, 1, &[4, 0, 64])
            .waking_to(at + 600_500, 1, 8, 7, 0)
            .wakeup_to(at + 600_600, 1, 8, 7, 0)
            .sys_exit(at + 601_000, 1, 8, 1, 64)
            .switch(at + 602_000, 0, 0, 7, "R")
            .sys_exit(at + 603_000, 0, 7, 0, 64);
    }
    t.switch(41_000_000, 2, 9, 0, "S").build()
}

#[test]
fn waits_lays_to_objects_what_the_ledger_does() {
    let options = Options { detail: Detail::Intervals, ..Options::default() };
    let a = analyze(&a_partner(), &options).unwrap();
    let judged = Attribution::from(&a);
    let spare = [Leaf::NoWork, Leaf::Serial, Leaf::Scheduler, Leaf::Throttled];
    let of_waits = |leaf: Leaf| leaf.is_in(Total::Idle) && !spare.contains(&leaf);
    let has: u64 = judged.ledger.leaves().filter(|(l, _)| of_waits(*l)).map(|(_, ns)| ns).sum();
    for by in [WaitsBy::Object, WaitsBy::Kind, WaitsBy::Thread] {
        let rows = judged.waits(by);
        let laid: u64 = rows.iter().map(|r| r.idle_blamed_ns).sum();
        assert!(laid.abs_diff(has) <= 1 + rows.len() as u64, "{by:?}: {laid}, {has}: {rows:?}");
    }
}
