//! Time slices.

use crate::build::SHORTEST_SLICE_NS;
use crate::tests::{built, wall};
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const MS: Nanos = 1_000_000;

/// In a damaged trace thousands of threads take a CPU from each other in no time at all. Replayed
/// with such slices, time stood still and memory grew.
#[test]
fn slices_without_length_do_not_stop_the_replay() {
    const THREADS: u32 = 3000;
    let mut b = TraceBuilder::new(1).task(10, 10, None, "a").switch(0, 0, 0, 10, "R");
    for tid in 100..100 + THREADS {
        b = b.task(tid, tid, None, "b").wakeup(MS, 0, 10, tid);
    }
    b = b.switch(100 * MS, 0, 10, 100, "R");
    for tid in 100..99 + THREADS {
        b = b.switch(100 * MS, 0, tid, tid + 1, "R");
    }
    let (analysis, program) = built(b.switch(200 * MS, 0, 99 + THREADS, 0, "S"));
    assert!(analysis.slice_ns().is_some_and(|ns| ns < SHORTEST_SLICE_NS));
    assert_eq!(program.slice_ns, SHORTEST_SLICE_NS);
    assert!(wall(&program, &[]) <= 300 * MS);
}

/// A damaged trace lasts for years, because of one time. A replay of it ends all the same.
#[test]
fn a_trace_of_years_has_long_slices() {
    let years: Nanos = 1 << 58;
    let b = TraceBuilder::new(1)
        .task(10, 10, None, "a")
        .task(20, 20, None, "b")
        .switch(0, 0, 0, 10, "R")
        .wakeup(MS, 0, 10, 20)
        .switch(3 * MS, 0, 10, 20, "R")
        .switch(years, 0, 20, 10, "R")
        .switch(years + MS, 0, 10, 0, "S");
    let (_, program) = built(b);
    assert!(program.slice_ns > 1000 * MS, "{}", program.slice_ns);
    assert!(wall(&program, &[]) <= years + 10 * MS);
}
