//! Locks that threads try for between naps, in ways that a trace does not show.

use crate::estimate::Depth;
use crate::tests::{US, estimated};
use holdup_attribution::Resource;
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const NANOSLEEP: u32 = 230;
const NAP: Nanos = 1_000 * US;
const TRY: Nanos = 20 * US;

/// A thread's nap ends on its CPU, it is awake for `ns`, and naps again.
fn awake(b: TraceBuilder, at: Nanos, (cpu, tid): (u16, u32), ns: Nanos) -> TraceBuilder {
    b.irq(at, at + 2 * US, cpu, 0, 9)
        .waking(at + US, cpu, 0, tid)
        .switch(at + 3 * US, cpu, 0, tid, "R")
        .sys_exit(at + 4 * US, cpu, tid, NANOSLEEP, 0)
        .sys_enter(at + 4 * US + ns, cpu, tid, NANOSLEEP)
        .switch(at + 5 * US + ns, cpu, tid, 0, "S")
}

/// Two processes of one program compute in turn, each for nine naps of the other. That they take
/// turns is known only after some turns; without the lock all of them are saved.
#[test]
fn the_naps_before_the_lock_is_known_are_waits_for_it_too() {
    let mut b = TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("irq", "irq_handler_entry")
        .task(7, 7, None, "worker")
        .task(8, 8, None, "worker");
    for (cpu, tid) in [(0, 7), (1, 8)] {
        b = b.switch(0, cpu, 0, tid, "R").sys_enter(US, cpu, tid, NANOSLEEP).switch(
            2 * US,
            cpu,
            tid,
            0,
            "S",
        );
    }
    for turn in 0..12 {
        let from = 1_000 * US + turn * 10 * (NAP + TRY);
        let mut threads = [(0, 7), (1, 8)];
        threads.rotate_left((turn % 2) as usize);
        let [holds, naps] = threads;
        b = awake(b, from, holds, 9 * (NAP + TRY));
        for i in 0..9 {
            b = awake(b, from + 100 * US + i * (NAP + TRY), naps, TRY);
        }
    }
    let (_, program, found) = estimated(b, Depth::Resources);
    let service = found.rows.iter().find(|row| row.resource == Resource::Service).unwrap();
    // Each computes for 55 of 122 ms.
    assert!((2.1..2.2).contains(&service.worth), "{service:?}");
    assert!(program.objects.iter().any(|o| o.waits > 90), "{:?}", program.objects);
}
