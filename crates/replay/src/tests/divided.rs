//! Threads whose work others wait for: the gain of dividing it.

use crate::change::Change;
use crate::estimate::{Depth, Estimate};
use crate::tests::{READ, US, WRITE, estimated};
use holdup_attribution::{Attribution, Resource};
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

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
    let (_, _, found) = estimated(b, Depth::Each);
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

/// Two threads compute all the time on four CPUs: at most, twice as many threads are twice as fast.
#[test]
fn threads_that_are_fewer_than_the_cpus_could_be_more() {
    let mut b = TraceBuilder::new(4);
    for (cpu, tid) in [(0, 10), (1, 11)] {
        b = b.task(tid, 10, None, "work").switch(1_000 * US, cpu, 0, tid, "R");
    }
    for cpu in [2, 3] {
        b = b.switch(1_000 * US, cpu, 0, 12, "R").switch(1_001 * US, cpu, 12, 0, "S");
    }
    for (cpu, tid) in [(0, 10), (1, 11)] {
        b = b.switch(101_000 * US, cpu, tid, 0, "S");
    }
    let (_, _, found) = estimated(b, Depth::Resources);
    let few = found.rows.iter().find(|e| e.resource == Resource::Parallelism).expect("too few");
    assert_eq!(few.change, [Change::Speed(0, 2.0), Change::Speed(1, 2.0)]);
    assert!(few.is_bound && (1.8..=2.0).contains(&few.worth), "{few:?}");
}

/// Two threads work in turn for a millisecond each. If they sleep for 1.8 in between, dividing
/// their work saves half a millisecond of 2.8; if each starts the next, half of all the time.
#[test]
fn one_at_a_time_gains_what_is_left_of_the_time_if_all_work_is_divided() {
    const NANOSLEEP: u32 = 35;
    let gain = |handed_on: bool| {
        let mut b = TraceBuilder::new(2)
            .records("sched", "sched_wakeup")
            .task(10, 10, None, "first")
            .task(11, 10, Some(10), "second")
            .switch(0, 0, 10, 0, "S")
            .switch(0, 1, 11, 0, "S");
        for i in 0..200 {
            let (at, cpu) = (1_000 * US * (i + 1), (i % 2) as u16);
            let at = if handed_on { at } else { at * 7 / 5 };
            let (tid, last) = (10 + u32::from(cpu), 11 - u32::from(cpu));
            let waker = if handed_on && i > 0 { last } else { 0 };
            let call = if handed_on { READ } else { NANOSLEEP };
            let waker_cpu = if waker == 0 { cpu } else { 1 - cpu };
            b = b.wakeup(at, waker_cpu, waker, tid).switch(at + US, cpu, 0, tid, "R");
            if i > 1 {
                b = b.sys_exit(at + US, cpu, tid, call, 0);
            }
            if waker != 0 {
                b = b.sys_exit(at + 2 * US, 1 - cpu, last, WRITE, 1);
                b = b.sys_enter_with(at + 3 * US, 1 - cpu, last, READ, &[3]);
                b = b.switch(at + 4 * US, 1 - cpu, last, 0, "S");
            }
            let end = at + 1_000 * US - 2 * US;
            b = match handed_on {
                true => b.sys_enter_with(end, cpu, tid, WRITE, &[3]),
                false => b.sys_enter(end, cpu, tid, NANOSLEEP).switch(end + US, cpu, tid, 0, "S"),
            };
        }
        let (analysis, _, found) = estimated(b, Depth::Resources);
        let judged = Attribution::from(&analysis);
        assert!(judged.alone.is_serial && judged.alone.few.is_empty(), "{handed_on}");
        let all = |e: &&Estimate| matches!(e.change[..], [Change::Scale { .. }]) && e.is_bound;
        found.rows.iter().find(all).map(|e| (e.worth * 100.0).round() / 100.0)
    };
    assert_eq!([true, false].map(gain), [Some(1.99), Some(1.22)]);
}

/// A build waits for one compiler for 600 ms, then for the next for 400 ms: dividing the work of
/// the first only gained 1.4 where a build with two at a time gained 1.9.
#[test]
fn one_process_after_the_other_is_divided_as_one() {
    let mut b = TraceBuilder::new(2).task(10, 10, None, "build");
    b = b.switch(0, 0, 0, 10, "R");
    for (from, to, tid) in [(1, 600, 20), (601, 1000, 30)] {
        let (from, to) = (from * 1000 * US, to * 1000 * US);
        b = b
            .lets_begin(from, 0, 10, tid)
            .sys_enter_with(from + US, 0, 10, READ, &[5])
            .switch(from + 2 * US, 0, 10, 0, "S")
            .switch(from + 3 * US, 1, 0, tid, "R")
            .sys_enter_with(to - 20 * US, 1, tid, WRITE, &[6])
            .wakeup_to(to - 10 * US, 1, tid, 10, 0)
            .switch(to - 9 * US, 0, 0, 10, "R")
            .sys_exit(to - 8 * US, 0, 10, READ, 1)
            .exit(to - 7 * US, 1, tid)
            .switch(to - 6 * US, 1, tid, 0, "Z");
    }
    let (_, _, found) = estimated(b.switch(1_000_500 * US, 0, 10, 0, "S"), Depth::Resources);
    let most = found.rows.iter().filter(|row| row.resource == Resource::Parallelism);
    let most = most.map(|row| row.worth).fold(1.0, f64::max);
    assert!((1.9..=2.0).contains(&most), "{:?}", found.rows);
}

/// What nothing is known of is no idle CPU.
fn four_idle_cpus() -> TraceBuilder {
    let mut b = TraceBuilder::new(4);
    for (cpu, at) in [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1_000 * US)] {
        b = b.switch(at, cpu, 14, 0, "S").switch(at + 1, cpu, 0, 14, "R");
        b = b.switch(at + 2, cpu, 14, 0, "S");
    }
    b
}

/// What is gained if the work of a team is dealt evenly, if there is one.
fn worth_of_a_team(b: TraceBuilder) -> Option<f64> {
    let (_, _, found) = estimated(b, Depth::Resources);
    let team = |e: &&Estimate| matches!(e.change[..], [Change::Scale { .. }]) && !e.is_bound;
    found.rows.iter().find(team).map(|e| (e.worth * 100.0).round() / 100.0)
}

/// Three threads of one kind begin to compute at once; the third has six times as much to do as the
/// others and goes on alone.
#[test]
fn uneven_work_of_a_team_is_dealt_evenly() {
    let dealt = |name: &str, others: Nanos, third: Nanos| {
        let mut b = four_idle_cpus();
        for (i, ns) in [others, others, third].into_iter().enumerate() {
            let (cpu, tid) = (i as u16, 11 + i as u32);
            let comm = if tid == 13 { name } else { "tile-0" };
            b = b.task(tid, 10, Some(10), comm).switch(1_000 * US, cpu, 0, tid, "R");
            b = b.switch(1_000 * US + ns, cpu, tid, 0, "S");
        }
        worth_of_a_team(b)
    };
    let (one, six) = (10_000 * US, 60_000 * US);
    assert_eq!(dealt("tile-2", one, six), Some(2.25), "80 ms of work by three, instead of 60");
    assert_eq!(dealt("gather", one, six), None, "another kind of work");
    assert_eq!(dealt("tile-2", six, six), None, "even as it is");
}

/// `make` starts a driver for each file, and each driver one compiler. The last has six times as
/// much to do as the others; it was no member of a team.
#[test]
fn uneven_work_of_processes_that_helpers_start_is_dealt_evenly() {
    let dealt = |by_helpers: bool| {
        let mut b = four_idle_cpus().task(10, 10, None, "make");
        for i in 0..3 {
            let (driver, compiler) = (20 + i, 30 + i);
            let ns = if i == 2 { 60_000 * US } else { 10_000 * US };
            // A driver of another program is no helper of this team.
            let above = if by_helpers { 10 } else { 40 + i };
            b = b
                .task(driver, driver, Some(above), "gcc")
                .task(compiler, compiler, Some(driver), "cc1")
                .switch(1_000 * US, i as u16, 0, compiler, "R")
                .switch(1_000 * US + ns, i as u16, compiler, 0, "S");
        }
        worth_of_a_team(b)
    };
    assert_eq!((dealt(true), dealt(false)), (Some(2.25), None));
}

/// Clients of one busy server wait at the set of semaphores through which it answers.
#[test]
fn what_clients_of_a_busy_server_wait_for_is_no_lock() {
    const SEMOP: u32 = 65;
    let mut b = TraceBuilder::new(2).task(10, 10, None, "server").switch(0, 0, 0, 10, "R");
    for client in [11, 12] {
        b = b.task(client, client, None, "client");
    }
    let mut asleep = [None, None];
    for round in 0..200 {
        let (at, client) = (round * 1_000 * US + 1_000 * US, 11 + (round % 2) as u32);
        let sleeps = asleep[(round % 2) as usize].replace(());
        b = b.sys_enter_with(at, 0, 10, SEMOP, &[9]);
        if sleeps.is_some() {
            b = b.waking(at + 2 * US, 0, 10, client);
        }
        b = b.sys_exit(at + 4 * US, 0, 10, SEMOP, 0).switch(at + 5 * US, 1, 0, client, "R");
        if sleeps.is_some() {
            b = b.sys_exit(at + 6 * US, 1, client, SEMOP, 0);
        }
        // It works, posts the next request while the server is busy, and waits for the answer.
        b = b
            .sys_enter_with(at + 200 * US, 1, client, SEMOP, &[9])
            .sys_exit(at + 202 * US, 1, client, SEMOP, 0)
            .sys_enter_with(at + 204 * US, 1, client, SEMOP, &[9])
            .switch(at + 206 * US, 1, client, 0, "S");
    }
    let (analysis, _, found) = estimated(b.switch(202_000 * US, 0, 10, 0, "S"), Depth::Each);
    assert!(Attribution::from(&analysis).server.is_some());
    let resources: Vec<Resource> = found.rows.iter().map(|row| row.resource).collect();
    assert!(resources.contains(&Resource::Server), "{resources:?}");
    assert!(!resources.contains(&Resource::Service), "{resources:?}");
}
