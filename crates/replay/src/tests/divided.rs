//! Threads whose work others wait for: the gain of dividing it.

use crate::change::Change;
use crate::estimate::{Depth, Estimate, estimate};
use crate::tests::built;
use holdup_attribution::{Attribution, Resource};
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const US: Nanos = 1_000;
const READ: u32 = 0;
const WRITE: u32 = 1;

/// Rounds of two threads: both compute for two milliseconds and meet, then the first prepares the
/// next round alone for three, and wakes the second.
fn rounds(number: u64) -> TraceBuilder {
    let mut b = TraceBuilder::new(2)
        .task(10, 10, None, "first")
        .task(11, 10, Some(10), "second")
        .switch(1_000 * US, 0, 0, 10, "R")
        .switch(1_000 * US, 1, 0, 11, "R");
    for round in 0..number {
        let at = 1_000 * US + round * 5_100 * US;
        b = b
            .sys_enter_with(at + 2_000 * US, 0, 10, READ, &[3])
            .switch(at + 2_000 * US, 0, 10, 0, "S")
            .sys_enter_with(at + 2_095 * US, 1, 11, WRITE, &[3])
            .wakeup(at + 2_100 * US, 1, 11, 10)
            .switch(at + 2_100 * US, 0, 0, 10, "R")
            .sys_exit(at + 2_100 * US, 0, 10, READ, 1)
            .sys_exit(at + 2_105 * US, 1, 11, WRITE, 1)
            .sys_enter_with(at + 2_110 * US, 1, 11, READ, &[4])
            .switch(at + 2_110 * US, 1, 11, 0, "S")
            .sys_enter_with(at + 5_095 * US, 0, 10, WRITE, &[4])
            .wakeup(at + 5_100 * US, 0, 10, 11)
            .switch(at + 5_100 * US, 1, 0, 11, "R")
            .sys_exit(at + 5_100 * US, 1, 11, READ, 1)
            .sys_exit(at + 5_105 * US, 0, 10, WRITE, 1);
    }
    b
}

/// What the first thread is worth, whichever resource it counts as.
fn worth_of_the_first(b: TraceBuilder) -> Estimate {
    let (analysis, program) = built(b);
    let found = estimate(&program, &Attribution::from(&analysis), Depth::Each);
    let is_thread = |e: &&Estimate| {
        let about = matches!(e.change[..], [Change::Split(0, _) | Change::Speed(0, _)]);
        about && matches!(e.resource, Resource::Server | Resource::Parallelism)
    };
    found.rows.iter().find(is_thread).expect("the first thread holds the second up").clone()
}

/// A second thread gains nothing, because no round begins before the previous one has ended.
#[test]
fn a_thread_that_needs_what_it_did_before_is_made_faster_not_two() {
    let first = worth_of_the_first(rounds(100));
    assert!(matches!(first.change[..], [Change::Speed(0, _)]), "{first:?}");
    assert!(first.is_bound);
    assert!((1.3..=2.0).contains(&first.worth), "{}", first.worth);
}
