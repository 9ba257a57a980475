//! Whose work is replayed.

use crate::program::Program;
use holdup_attribution::analyze;
use holdup_passes::{Detail, Options};
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const US: Nanos = 1_000;

/// For a fifth of a second a program makes one thread after the other. A player beside it runs now
/// and then for a second: for a hundredth of the CPU time, but for longer than any of those
/// threads. Its second was the time of the work, and no change gained anything.
#[test]
fn a_player_beside_many_short_threads_is_no_part_of_the_work() {
    let mut b = TraceBuilder::new(2)
        .task(10, 10, None, "main")
        .task(20, 20, None, "player")
        .switch(0, 0, 0, 10, "R");
    for i in 0..1000 {
        let (at, tid) = (i * 200 * US, 100 + i as u32);
        b = b
            .task(tid, 10, Some(10), "short")
            .lets_begin(at + US, 0, 10, tid)
            .switch(at + 2 * US, 1, 0, tid, "R")
            .exit(at + 195 * US, 1, tid)
            .switch(at + 196 * US, 1, tid, 0, "Z");
    }
    b = b.switch(200_000 * US, 0, 10, 0, "S");
    for at in (3..10).map(|i| i * 100_000 * US) {
        b = b.wakeup(at, 0, 0, 20).switch(at + US, 0, 0, 20, "R").switch(
            at + 400 * US,
            0,
            20,
            0,
            "S",
        );
    }
    let options = Options { detail: Detail::Steps, ..Options::default() };
    let program = Program::new(&analyze(&b.build(), &options).unwrap()).unwrap();
    let works = |comm: &str| program.threads.iter().filter(|t| t.comm == comm && t.works).count();
    assert_eq!((works("main"), works("player")), (1, 0));
    assert!(works("short") > 950, "{}", works("short"));
    assert!(program.traced_wall_ns < 210_000 * US, "{}", program.traced_wall_ns);
}
