//! Rounds of fork and join.

use crate::change::Change;
use crate::estimate::Depth;
use crate::resources::Member;
use crate::tests::{US, estimated};
use holdup_attribution::Resource;
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const MASTER: u32 = 10;
const WORKERS: [u32; 2] = [11, 12];

/// How a master and two workers go on, on four CPUs.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The master wakes both and sleeps until both are done.
    Rounds,
    /// As soon as the first is done, the master gives it more.
    Fed,
    /// The second begins when the first is done.
    InTurn,
    /// The master computes too for most of the time.
    Joined,
}

/// Rounds in which the workers compute for `parts`, one after the other `rounds` times.
fn rounds(rounds: u64, way: Way, parts: [Nanos; 2]) -> TraceBuilder {
    let mut b = TraceBuilder::new(4)
        .records("sched", "sched_wakeup")
        .task(MASTER, MASTER, None, "master")
        .task(WORKERS[0], MASTER, Some(MASTER), "part-0")
        .task(WORKERS[1], MASTER, Some(MASTER), "part-1");
    for (cpu, tid) in [(0, MASTER), (1, WORKERS[0]), (2, WORKERS[1])] {
        b = b.switch(0, cpu, 0, tid, "R");
        b = b.switch(US, cpu, tid, 0, "S");
    }
    b = b.switch(0, 3, 0, 14, "R").wakeup(2 * US, 3, 14, MASTER).switch(3 * US, 3, 14, 0, "S");
    let longest = match way {
        Way::InTurn => parts[0] + parts[1],
        Way::Rounds | Way::Fed | Way::Joined => parts[0].max(parts[1]),
    };
    let longest = longest + 50 * US;
    for i in 0..rounds {
        let at = 10 * US + i * longest;
        let done = |worker: usize, at: Nanos| match (way, worker) {
            (Way::InTurn, 1) => at + parts[0] + 20 * US + parts[1],
            _ => at + 10 * US + parts[worker],
        };
        b = b.switch(at, 0, 0, MASTER, "R").wakeup(at + US, 0, MASTER, WORKERS[0]);
        b = b.switch(at + 2 * US, 1, 0, WORKERS[0], "R");
        if way != Way::InTurn {
            b = b.wakeup(at + 3 * US, 0, MASTER, WORKERS[1]);
            b = b.switch(at + 4 * US, 2, 0, WORKERS[1], "R");
        }
        let sleeps = if way == Way::Joined { parts[1] - 500 * US } else { 5 * US };
        let sleep = |b: TraceBuilder| b.switch(at + sleeps, 0, MASTER, 0, "S");
        if way != Way::Joined {
            b = sleep(b);
        }
        let first = done(0, at);
        match way {
            Way::Rounds => b = b.switch(first, 1, WORKERS[0], 0, "S"),
            Way::Joined => b = sleep(b.switch(first, 1, WORKERS[0], 0, "S")),
            Way::InTurn => {
                b = b.wakeup(first - US, 1, WORKERS[0], WORKERS[1]);
                b = b.switch(first, 1, WORKERS[0], 0, "S");
                b = b.switch(first + US, 2, 0, WORKERS[1], "R");
            }
            Way::Fed => {
                b = b.wakeup(first - US, 1, WORKERS[0], MASTER);
                b = b.switch(first, 1, WORKERS[0], 0, "S");
                b = b.switch(first + US, 0, 0, MASTER, "R");
                b = b.wakeup(first + 2 * US, 0, MASTER, WORKERS[0]);
                b = b.switch(first + 3 * US, 0, MASTER, 0, "S");
                b = b.switch(first + 4 * US, 1, 0, WORKERS[0], "R");
                b = b.switch(first + 9 * US, 1, WORKERS[0], 0, "S");
            }
        }
        let last = done(1, at);
        b = b.wakeup(last - US, 2, WORKERS[1], MASTER).switch(last, 2, WORKERS[1], 0, "S");
    }
    b
}

/// What dealing each round evenly is worth, in hundredths, and who does more than their part.
fn dealt(b: TraceBuilder) -> Option<(u64, Vec<u32>)> {
    let (_, program, found) = estimated(b, Depth::Resources);
    let row = found.rows.iter().find(|row| row.change == [Change::Deal])?;
    assert_eq!(row.resource, Resource::Parallelism);
    let tid = |member: &Member| match member {
        Member::Thread(i) => program.threads[*i].tid,
        Member::Object(_) => panic!("an object"),
    };
    Some(((row.worth * 100.0).round() as u64, row.members.iter().map(tid).collect()))
}

#[test]
fn the_uneven_parts_of_a_round_are_dealt_evenly() {
    let uneven = [2_000 * US, 8_000 * US];
    // 8 ms in each round; 5 ms if both do the same.
    let (worth, stragglers) = dealt(rounds(30, Way::Rounds, uneven)).expect("rounds");
    assert_eq!(stragglers, [WORKERS[1]]);
    assert!((157..=160).contains(&worth), "{worth}");
    let even = dealt(rounds(30, Way::Rounds, [5_000 * US; 2])).map(|of| of.0);
    assert!(even.is_none_or(|worth| worth <= 101), "{even:?}");
}

#[test]
fn a_few_rounds_may_be_chance() {
    assert_eq!(dealt(rounds(5, Way::Rounds, [2_000 * US, 8_000 * US])), None);
}

#[test]
fn a_team_that_is_given_more_as_soon_as_one_is_done_has_no_rounds() {
    assert_eq!(dealt(rounds(30, Way::Fed, [2_000 * US, 8_000 * US])), None);
}

#[test]
fn workers_that_run_one_after_the_other_have_no_rounds() {
    assert_eq!(dealt(rounds(30, Way::InTurn, [2_000 * US, 8_000 * US])), None);
}

#[test]
fn a_master_that_works_too_waits_for_no_rounds() {
    assert_eq!(dealt(rounds(30, Way::Joined, [2_000 * US, 8_000 * US])), None);
}
