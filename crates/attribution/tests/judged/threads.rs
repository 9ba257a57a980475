//! Which thread the others wait for, and whether one at a time has work.

use crate::scene::{MS, READ, US, WRITE, busy, ends, machine, measured, runs, tid, waits};
use holdup_attribution::{Attribution, Leaf};
use holdup_passes::Analysis;
use holdup_testkit::TraceBuilder;

/// 8 and 9 wait alternately for one mutex, which `wakers` release; 7 runs all the time.
fn clients(wakers: [u32; 2]) -> Analysis {
    let trace = (0..9).fold(busy(3), |trace, i| {
        let at = i * 10 * MS + MS;
        let trace = waits(trace, (at, 4 * MS), 8, wakers[0], 0x1000);
        waits(trace, (at + 5 * MS, 4 * MS), 9, wakers[1], 0x1000)
    });
    measured(&ends(trace, 3, 100 * MS))
}

#[test]
fn a_busy_thread_that_ends_most_waits_is_the_server() {
    let analysis = clients([7, 7]);
    let judged = Attribution::from(&analysis);
    let server = judged.server.unwrap();
    assert_eq!((tid(&analysis, server.slot), server.at_barriers), (7, false));
    assert_eq!((server.busy_pct(), server.ended_pct()), (100.0, 100.0));
    assert!(judged.ledger.ns(Leaf::OneServer) > 70 * MS, "{:?}", judged.ledger);
}

#[test]
fn two_who_end_half_of_the_waits_each_are_none() {
    let analysis = clients([9, 8]);
    let judged = Attribution::from(&analysis);
    assert_eq!(judged.server, None);
    assert_eq!(judged.ledger.ns(Leaf::OneServer), 0);
    assert!(judged.ledger.ns(Leaf::ThreadSync) > 70 * MS, "{:?}", judged.ledger);
}

/// This many threads run from beginning to end on this many CPUs.
fn running(threads: u32, cpus: u32) -> Analysis {
    let mut trace = machine(cpus);
    for cpu in 0..threads {
        trace = runs(trace.task(7 + cpu, 7, None, "work"), cpu as u16, 7 + cpu);
    }
    for cpu in 0..threads {
        trace = trace.switch(100 * MS, cpu as u16, 7 + cpu, 0, "S");
    }
    measured(&trace.build())
}

#[test]
fn one_thread_with_all_the_work_is_alone() {
    let analysis = running(1, 2);
    let judged = Attribution::from(&analysis);
    assert!(judged.alone.few.len() == 1 && judged.alone.is_serial, "{:?}", judged.alone);
    let (slot, running) = judged.alone.longest.unwrap();
    assert_eq!((tid(&analysis, slot), running.value), (7, 100.0));
    assert_eq!(judged.ledger.ns(Leaf::Serial), 100 * MS);
    assert_eq!(judged.ledger.wanted_ns(), 100 * MS, "nobody wants a second CPU");
}

/// Thread 7 of process 7 runs all the time, and this many of 100 samples of it are at a pause.
/// Thread 8 runs for a tenth of the time.
fn polling(spinning: u64) -> Analysis {
    let mut trace = machine(2)
        .task(7, 7, None, "poller")
        .task(8, 8, None, "other")
        .spins("/bin/poller", 0x20)
        .mapped(0, 7, 0x40_0000, 0x1000, "/bin/poller");
    trace = runs(runs(trace, 0, 7), 1, 8).switch(10 * MS, 1, 8, 0, "S");
    for i in 0..100 {
        let address = 0x40_0000 + if i < spinning { 0x20 } else { 0x80 };
        trace = trace.sample(i * MS + 500 * US, 0, 7, &[address]);
    }
    measured(&trace.switch(100 * MS, 0, 7, 0, "S").build())
}

#[test]
fn a_thread_that_only_polls_has_no_work_to_share() {
    let analysis = polling(95);
    let judged = Attribution::from(&analysis);
    let polls: Vec<u32> = judged.alone.polls.iter().map(|&slot| tid(&analysis, slot)).collect();
    assert_eq!(polls, [7]);
    assert!(!judged.alone.is_too_few(), "{:?}", judged.alone);
    assert_eq!((judged.ledger.ns(Leaf::Serial), judged.ledger.ns(Leaf::NoWork)), (0, 90 * MS));
}

#[test]
fn a_thread_that_works_and_polls_now_and_then_has() {
    let analysis = polling(24);
    let judged = Attribution::from(&analysis);
    assert!(judged.alone.polls.is_empty() && judged.alone.is_too_few(), "{:?}", judged.alone);
}

#[test]
fn two_threads_that_run_side_by_side_are_not() {
    let analysis = running(2, 2);
    let judged = Attribution::from(&analysis);
    assert!(!judged.alone.is_too_few(), "{:?}", judged.alone);
    assert_eq!(judged.ledger.ns(Leaf::Serial), 0);
}

#[test]
fn threads_with_all_the_work_are_few_if_there_are_more_cpus() {
    let analysis = running(2, 4);
    let judged = Attribution::from(&analysis);
    let few: Vec<u32> = judged.alone.few.iter().map(|&slot| tid(&analysis, slot)).collect();
    assert_eq!((few, judged.alone.is_serial), (vec![7, 8], false));
    assert_eq!(judged.ledger.ns(Leaf::Serial), 200 * MS);
}

/// 7 runs nearly all the time. It wakes 8 30 times, and itself waits for the mutex, or whatever the
/// call is about, in every `seldom`th round.
fn unfair(
    call: impl Fn(TraceBuilder, (u64, u64), u32, u32) -> TraceBuilder,
    seldom: u64,
) -> Analysis {
    let trace = (0..30).fold(busy(2), |trace, i| {
        let at = i * 3 * MS + MS;
        let trace = call(trace, (at, 2 * MS), 8, 7);
        if i % seldom == 0 { call(trace, (at + 2 * MS + 100 * US, 100 * US), 7, 8) } else { trace }
    });
    measured(&ends(trace, 2, 100 * MS))
}

fn at_a_mutex(trace: TraceBuilder, when: (u64, u64), tid: u32, waker: u32) -> TraceBuilder {
    waits(trace, when, tid, waker, 0x1000)
}

/// At a pipe with one byte in it as a token.
fn at_a_pipe(trace: TraceBuilder, when: (u64, u64), tid: u32, waker: u32) -> TraceBuilder {
    handed(trace, when, tid, waker, (READ, WRITE))
}

/// A thread sleeps in a call on a pipe until another makes a call on it.
fn handed(
    trace: TraceBuilder,
    (at, ns): (u64, u64),
    tid: u32,
    waker: u32,
    (sleeps, wakes): (u32, u32),
) -> TraceBuilder {
    let (cpu, by) = ((tid - 7) as u16, (waker - 7) as u16);
    trace
        .sys_enter_with(at, cpu, tid, sleeps, &[3])
        .switch(at + 10, cpu, tid, 0, "S")
        .sys_enter_with(at + ns - 20, by, waker, wakes, &[3])
        .waking(at + ns - 10, by, waker, tid)
        .sys_exit(at + ns - 5, by, waker, wakes, 1)
        .switch(at + ns, cpu, 0, tid, "R")
        .sys_exit(at + ns + 10, cpu, tid, sleeps, 1)
}

#[test]
fn who_has_a_lock_nearly_always_and_waits_for_it_too_is_no_server() {
    let analysis = unfair(at_a_mutex, 10);
    let judged = Attribution::from(&analysis);
    assert_eq!(judged.server, None);
    assert!(judged.ledger.ns(Leaf::ThreadSync) > 50 * MS, "{:?}", judged.ledger);
    assert!(judged.alone.is_contended && judged.alone.few.is_empty(), "{:?}", judged.alone);
}

#[test]
fn who_reads_the_pipe_it_writes_to_is_for_contention_at_a_token() {
    let analysis = unfair(at_a_pipe, 3);
    let judged = Attribution::from(&analysis);
    assert_eq!(judged.server, None);
    assert!(judged.ledger.ns(Leaf::KernelServices) > 50 * MS, "{:?}", judged.ledger);
}

#[test]
fn who_only_writes_to_a_pipe_is_the_server() {
    let analysis = unfair(at_a_pipe, u64::MAX);
    let judged = Attribution::from(&analysis);
    assert_eq!(judged.server.map(|s| tid(&analysis, s.slot)), Some(7));
    assert!(judged.ledger.ns(Leaf::OneServer) > 50 * MS, "{:?}", judged.ledger);
}

/// At a pipe that is nearly always full: 8 waits until 7 has read, and 7 occasionally until 8 has
/// written.
#[test]
fn who_writes_to_a_full_pipe_waits_for_a_server_and_takes_no_turns() {
    let analysis = unfair(
        |trace, when, tid, waker| match tid {
            8 => handed(trace, when, tid, waker, (WRITE, READ)),
            _ => handed(trace, when, tid, waker, (READ, WRITE)),
        },
        15,
    );
    let judged = Attribution::from(&analysis);
    assert_eq!(judged.server.map(|s| tid(&analysis, s.slot)), Some(7));
    let pipe = analysis.objects().max_by_key(|o| o.wait_ns).unwrap();
    assert!(!judged.contenders.are_at(pipe.object));
}
