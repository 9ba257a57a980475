//! Which threads' work is replayed.

use crate::change::Change;
use crate::estimate::Depth;
use crate::program::{ObjectId, Op};
use crate::tests::{LOCK, READ, US, WRITE, built, estimated, program, wall};
use holdup_attribution::Resource;
use holdup_testkit::TraceBuilder;

/// For a fifth of a second a program creates one thread after the other. An unrelated player runs
/// now and then for a second: a hundredth of the CPU time, but longer than any of those threads.
/// Its second was the time of the work, and no change gained anything.
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
    let (_, program) = built(b);
    let works = |comm: &str| program.threads.iter().filter(|t| t.comm == comm && t.works).count();
    assert_eq!((works("main"), works("player")), (1, 0));
    assert!(works("short") > 950, "{}", works("short"));
    assert!(program.traced_wall_ns < 210_000 * US, "{}", program.traced_wall_ns);
}

/// The first thread naps until the second has done its work, and lets it end then: if the second is
/// faster, the first naps for less time.
#[test]
fn who_looks_on_naps_only_while_there_is_work() {
    let mut looks_on = vec![Op::Sleep(10_000_000, ObjectId::NONE); 10];
    looks_on.push(Op::Wake { thread: 1, number: 7 });
    let works = vec![Op::Run(100_000_000), Op::Wait { number: 7, object: LOCK, delay: 0 }];
    let mut p = program(2, &[looks_on, works]);
    p.threads[0].works = false;
    assert_eq!(
        wall(&p, &[Change::Speed(1, 2.0)]),
        100_000_000,
        "it sets the pace, for all we know"
    );
    p.threads[0].watches = true;
    p.free.take();
    assert_eq!(wall(&p, &[Change::Speed(1, 2.0)]), 50_000_000);
}

/// The first says every 10 ms that there is something to do: that is not polling for the end.
#[test]
fn who_sets_the_pace_goes_on_to() {
    let pace = |i| [Op::Sleep(10_000_000, ObjectId::NONE), Op::Wake { thread: 1, number: i }];
    let works = |i| {
        [Op::Wait { number: i, object: LOCK, delay: 0 }, Op::Run(if i < 9 { 5_000_000 } else { 1 })]
    };
    let threads = [(0..10).flat_map(pace).collect(), (0..10).flat_map(works).collect::<Vec<_>>()];
    let mut p = program(2, &threads);
    (p.threads[0].works, p.threads[0].watches) = (false, true);
    assert_eq!(wall(&p, &[]), 90_000_001);
    assert!(wall(&p, &[Change::Speed(1, 5.0)]) >= 90_000_000);
}

/// Load generators run one after the other: each naps until its time is over. A server computes all
/// the time. Each nap was less than half of the trace, and was part of the work.
#[test]
fn load_generators_nap_only_while_there_is_work() {
    let mut b = TraceBuilder::new(2)
        .task(10, 10, None, "server")
        .task(20, 20, None, "load")
        .task(30, 30, None, "load")
        .switch(0, 0, 0, 10, "R");
    for (from, to, tid) in [(0, 99, 20), (100, 199, 30)] {
        b = b
            .lets_begin(from * 1000 * US, 0, 10, tid)
            .switch((from * 1000 + 1) * US, 1, 0, tid, "R")
            .switch((from * 1000 + 100) * US, 1, tid, 0, "S")
            .waking_in_irq(to * 1000 * US, 1, 0, tid)
            .switch((to * 1000 + 1) * US, 1, 0, tid, "R")
            .exit((to * 1000 + 100) * US, 1, tid)
            .switch((to * 1000 + 101) * US, 1, tid, 0, "Z");
    }
    let (_, program) = built(b.switch(200_000 * US, 0, 10, 0, "S"));
    let watches = |tid| program.threads.iter().any(|t| t.tid == tid && t.watches && !t.works);
    assert_eq!([10, 20, 30].map(watches), [false, true, true]);
}

/// `perf record` starts two clients. A server that ran before, with another parent, answers one of
/// them every millisecond, and computes all the time.
fn asked_by_the_recorded(server_is_recorded: bool) -> TraceBuilder {
    let mut b = TraceBuilder::new(2)
        .task(5, 5, None, "perf")
        .task(10, 10, server_is_recorded.then_some(5), "server")
        .task(20, 20, Some(5), "client")
        .task(21, 21, Some(5), "client")
        .switch(0, 0, 0, 10, "R");
    for (at, tid) in [(10, 20), (20, 21)] {
        b = b
            .wakeup_to(at * US, 0, 10, tid, 1)
            .switch((at + 1) * US, 1, 0, tid, "R")
            .sys_enter_with((at + 2) * US, 1, tid, READ, &[3])
            .switch((at + 3) * US, 1, tid, 0, "S");
    }
    for i in 1..200 {
        let (at, tid) = (i * 1000, 20 + i as u32 % 2);
        b = b
            .sys_enter_with(at * US, 0, 10, WRITE, &[7])
            .wakeup_to((at + 1) * US, 0, 10, tid, 1)
            .sys_exit((at + 2) * US, 0, 10, WRITE, 1)
            .switch((at + 3) * US, 1, 0, tid, "R")
            .sys_exit((at + 4) * US, 1, tid, READ, 1)
            .sys_enter_with((at + 50) * US, 1, tid, WRITE, &[3])
            .sys_exit((at + 51) * US, 1, tid, WRITE, 1)
            .sys_enter_with((at + 52) * US, 1, tid, READ, &[3])
            .switch((at + 53) * US, 1, tid, 0, "S");
    }
    b.switch(200_000 * US, 0, 10, 0, "S")
}

/// `redis-server` was there before the benchmark that was recorded: only the benchmark's threads
/// could be divided, and the verdict was healthy.
#[test]
fn a_server_that_was_there_before_the_recorded_command_can_be_divided() {
    for server_is_recorded in [true, false] {
        let (_, program, found) = estimated(asked_by_the_recorded(server_is_recorded), Depth::Each);
        let works = |comm: &str| program.threads.iter().any(|t| t.comm == comm && t.works);
        assert_eq!((works("client"), works("server")), (true, server_is_recorded));
        let server = found.rows.iter().find(|row| row.resource == Resource::Server);
        let worth = server.map_or(1.0, |row| row.worth);
        assert!(worth > 1.7 && worth <= 2.0, "{worth}");
    }
}
