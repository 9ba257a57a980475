//! Servers that sleep with a request in hand.

use crate::change::Change;
use crate::estimate::Depth;
use crate::tests::{READ, US, WRITE, estimated};
use holdup_attribution::Resource;
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;

const NAP: u32 = 230;
const FUTEX: u32 = 202;
const ACCEPT: u32 = 288;
const CONNECT: u32 = 42;
const CLOSE: u32 = 3;

/// What the server's worker, thread 11, is worth as a server.
fn worth_of_the_worker(b: TraceBuilder) -> f64 {
    worth_of(b, &[11])
}

/// What these threads of a server are worth together.
fn worth_of(b: TraceBuilder, tids: &[u32]) -> f64 {
    let (_, program, found) = estimated(b, Depth::Each);
    let is_one = |change: &Change| match change {
        &Change::Split(thread, _) => tids.contains(&program.threads[thread].tid),
        _ => false,
    };
    let mut servers = found.rows.iter().filter(|row| row.resource == Resource::Server);
    let of_all =
        servers.find(|row| row.change.len() == tids.len() && row.change.iter().all(is_one));
    of_all.map_or(1.0, |row| row.worth)
}

fn tasks() -> TraceBuilder {
    TraceBuilder::new(2)
        .task(10, 10, None, "server")
        .task(11, 10, Some(10), "server")
        .task(20, 20, None, "client")
        .task(21, 20, Some(20), "client")
}

/// The worker's sleep ends, and a tenth of a millisecond later it answers `client` on CPU 1.
fn answers(b: TraceBuilder, slept_to: Nanos, client: u32) -> TraceBuilder {
    let at = |us: u64| slept_to + us * US;
    b.wakeup(at(0), 0, 0, 11)
        .switch(at(1), 0, 0, 11, "R")
        .sys_exit(at(2), 0, 11, NAP, 0)
        .sys_enter_with(at(100), 0, 11, WRITE, &[7])
        .wakeup_to(at(101), 0, 11, client, 1)
        .sys_exit(at(102), 0, 11, WRITE, 1)
}

/// The worker sleeps for 5 ms in each request. Two clients have asked long before it gets to them;
/// the thread that accepts gives it the next request as soon as it is free. `accepts`: the server
/// does accept connections, and is no client that thinks for 5 ms.
fn queue(requests: u64, accepts: bool) -> TraceBuilder {
    let mut b = tasks();
    for (cpu, tid) in [(0, 11), (1, 10), (1, 20), (1, 21)] {
        b = b.wakeup_to(0, cpu, 0, tid, cpu);
    }
    for (cpu, tid, at) in [(0, 11, 10), (1, 10, 10), (1, 20, 20), (1, 21, 30)] {
        let call = if tid == 11 { NAP } else { READ };
        b = b
            .switch(at * US, cpu, 0, tid, "R")
            .sys_enter_with((at + 1) * US, cpu, tid, call, &[tid.into()])
            .switch((at + 2) * US, cpu, tid, 0, "S");
    }
    for request in 0..requests {
        let at = |us: u64| (request * 5_300 + 5_000 + us) * US;
        let client = 20 + (request % 2) as u32;
        b = answers(b, at(0), client)
            .sys_enter_with(at(105), 0, 11, WRITE, &[8])
            .wakeup_to(at(106), 0, 11, 10, 1)
            .switch(at(107), 1, 0, 10, "R")
            .sys_exit(at(107), 0, 11, WRITE, 1)
            .sys_exit(at(108), 1, 10, READ, 1)
            .sys_enter_with(at(109), 0, 11, READ, &[11])
            .switch(at(110), 0, 11, 0, "S");
        if accepts {
            b = b.sys_enter_with(at(111), 1, 10, ACCEPT, &[3]).sys_exit(at(112), 1, 10, ACCEPT, 5);
        }
        b = b
            .sys_enter_with(at(120), 1, 10, WRITE, &[11])
            .wakeup_to(at(121), 1, 10, 11, 0)
            .switch(at(122), 0, 0, 11, "R")
            .sys_exit(at(123), 0, 11, READ, 1)
            .sys_exit(at(123), 1, 10, WRITE, 1)
            .sys_enter_with(at(124), 1, 10, READ, &[10])
            .switch(at(125), 1, 10, client, "S")
            .sys_exit(at(126), 1, client, READ, 1)
            .sys_enter_with(at(130), 0, 11, NAP, &[0])
            .switch(at(131), 0, 11, 0, "S")
            .sys_enter_with(at(140), 1, client, READ, &[client.into()])
            .switch(at(141), 1, client, 0, "S");
    }
    b
}

#[test]
fn a_worker_that_sleeps_while_requests_wait_can_be_two() {
    let worth = worth_of_the_worker(queue(200, true));
    assert!((1.8..=2.0).contains(&worth), "{worth}");
}

#[test]
fn a_client_that_thinks_between_an_answer_and_a_request_is_no_server() {
    assert_eq!(worth_of_the_worker(queue(200, false)), 1.0);
}

/// One thread accepts, sleeps for 5 ms in each request, and answers. It never waits for a request,
/// because one client thread has several connections.
fn never_waits(accepts: bool) -> TraceBuilder {
    let mut b = tasks()
        .switch(0, 0, 0, 11, "R")
        .sys_enter_with(US, 0, 11, NAP, &[0])
        .switch(2 * US, 0, 11, 0, "S")
        .switch(5 * US, 1, 0, 20, "R")
        .sys_enter_with(6 * US, 1, 20, READ, &[4])
        .switch(7 * US, 1, 20, 0, "S");
    for request in 0..200 {
        let at = |us: u64| (request * 5_300 + 5_000 + us) * US;
        b = answers(b, at(0), 20)
            .switch(at(110), 1, 0, 20, "R")
            .sys_exit(at(111), 1, 20, READ, 1)
            .sys_enter_with(at(120), 1, 20, READ, &[4])
            .switch(at(121), 1, 20, 0, "S");
        if accepts {
            b = b.sys_enter_with(at(125), 0, 11, ACCEPT, &[3]).sys_exit(at(126), 0, 11, ACCEPT, 5);
        }
        b = b.sys_enter_with(at(130), 0, 11, NAP, &[0]).switch(at(131), 0, 11, 0, "S");
    }
    b
}

/// One thread accepts, sleeps for 5 ms in each request, answers, and waits until its client has
/// closed the connection and made another: it has so many at a time.
fn lingers(connections: u64) -> TraceBuilder {
    const EINPROGRESS: i64 = -115;
    let connects = |b: TraceBuilder, at: Nanos| {
        b.sys_enter_with(at, 1, 20, CONNECT, &[4]).sys_exit(at + US, 1, 20, CONNECT, EINPROGRESS)
    };
    let mut b = tasks().switch(0, 1, 0, 20, "R");
    b = (0..connections).fold(b, |b, i| connects(b, (10 * i + 1) * US));
    b = b
        .switch(90 * US, 0, 0, 11, "R")
        .sys_enter_with(91 * US, 0, 11, ACCEPT, &[3])
        .sys_exit(92 * US, 0, 11, ACCEPT, 5)
        .sys_enter_with(93 * US, 0, 11, NAP, &[0])
        .switch(94 * US, 0, 11, 0, "S")
        .sys_enter_with(100 * US, 1, 20, READ, &[4])
        .switch(101 * US, 1, 20, 0, "S");
    for request in 0..200 {
        let at = |us: u64| (request * 5_300 + 5_000 + us) * US;
        b = answers(b, at(0), 20)
            .sys_enter_with(at(105), 0, 11, READ, &[5])
            .switch(at(106), 0, 11, 0, "S")
            .switch(at(110), 1, 0, 20, "R")
            .sys_exit(at(111), 1, 20, READ, 1)
            .sys_enter_with(at(112), 1, 20, CLOSE, &[4])
            .wakeup_to(at(113), 1, 20, 11, 0)
            .sys_exit(at(114), 1, 20, CLOSE, 0);
        // The last connections of all are accepted too.
        if request + connections < 200 {
            b = connects(b, at(115));
        }
        b = b
            .sys_enter_with(at(120), 1, 20, READ, &[4])
            .switch(at(121), 1, 20, 0, "S")
            .switch(at(122), 0, 0, 11, "R")
            .sys_exit(at(123), 0, 11, READ, 0)
            .sys_enter_with(at(125), 0, 11, ACCEPT, &[3])
            .sys_exit(at(126), 0, 11, ACCEPT, 5)
            .sys_enter_with(at(130), 0, 11, NAP, &[0])
            .switch(at(131), 0, 11, 0, "S");
    }
    b
}

#[test]
fn connections_that_nobody_has_accepted_are_requests() {
    let worth = worth_of_the_worker(lingers(3));
    assert!((2.8..=3.0).contains(&worth), "three workers would sleep at one time: {worth}");
    assert_eq!(worth_of_the_worker(lingers(1)), 1.0, "the next connection is accepted at once");
}

/// Of every three requests, the first comes when the server has none: it waits, and is woken.
#[test]
fn a_server_with_a_queue_most_of_the_time_is_busy_all_the_time() {
    let mut b = tasks()
        .switch(0, 0, 0, 11, "R")
        .sys_enter_with(US, 0, 11, ACCEPT, &[3])
        .sys_exit(2 * US, 0, 11, ACCEPT, 5)
        .sys_enter_with(3 * US, 0, 11, NAP, &[0])
        .switch(4 * US, 0, 11, 0, "S")
        .switch(5 * US, 1, 0, 20, "R")
        .sys_enter_with(6 * US, 1, 20, READ, &[4])
        .switch(7 * US, 1, 20, 0, "S");
    for request in 0..200 {
        let at = |us: u64| (request * 5_300 + 5_000 + us) * US;
        b = answers(b, at(0), 20);
        if request % 3 == 0 {
            b = b.sys_enter_with(at(105), 0, 11, READ, &[5]).switch(at(106), 0, 11, 0, "S");
        }
        b = b.switch(at(110), 1, 0, 20, "R").sys_exit(at(111), 1, 20, READ, 1);
        if request % 3 == 0 {
            b = b
                .sys_enter_with(at(112), 1, 20, WRITE, &[4])
                .wakeup_to(at(113), 1, 20, 11, 0)
                .switch(at(114), 0, 0, 11, "R")
                .sys_exit(at(115), 0, 11, READ, 1)
                .sys_exit(at(116), 1, 20, WRITE, 1);
        }
        b = b
            .sys_enter_with(at(120), 1, 20, READ, &[4])
            .switch(at(121), 1, 20, 0, "S")
            .sys_enter_with(at(130), 0, 11, NAP, &[0])
            .switch(at(131), 0, 11, 0, "S");
    }
    // Two thirds of the sleeps are divided.
    let worth = worth_of_the_worker(b);
    assert!((1.45..=1.55).contains(&worth), "{worth}");
}

#[test]
fn a_server_that_goes_on_without_waiting_has_a_queue() {
    let worth = worth_of_the_worker(never_waits(true));
    assert!((1.8..=2.0).contains(&worth), "{worth}");
    assert_eq!(worth_of_the_worker(never_waits(false)), 1.0, "who accepts nothing is no server");
}

/// The worker and two clients meet at a barrier five times; the worker arrives last.
fn meet(b: TraceBuilder) -> TraceBuilder {
    let end = (200 * 5_300 + 5_000) * US;
    let mut b = answers(b, end, 20)
        .wakeup_to(end + 105 * US, 1, 0, 21, 1)
        .switch(end + 110 * US, 1, 0, 20, "R")
        .sys_exit(end + 111 * US, 1, 20, READ, 1);
    for round in 0..5 {
        let at = |us: u64| end + (200 + round * 3_000 + us) * US;
        b = b.sys_enter_with(at(0), 1, 20, FUTEX, &[0x5000, 0, round]).switch(
            at(1),
            1,
            20,
            21,
            "S",
        );
        if round > 0 {
            b = b.sys_exit(at(2), 1, 21, FUTEX, 0);
        }
        b = b
            .sys_enter_with(at(3), 1, 21, FUTEX, &[0x5000, 0, round])
            .switch(at(4), 1, 21, 0, "S")
            .sys_enter_with(at(50), 0, 11, FUTEX, &[0x5000, 1, 0x7fff_ffff])
            .wakeup_to(at(51), 0, 11, 20, 1)
            .wakeup_to(at(52), 0, 11, 21, 1)
            .sys_exit(at(53), 0, 11, FUTEX, 2)
            .switch(at(54), 1, 0, 20, "R")
            .sys_exit(at(55), 1, 20, FUTEX, 0);
    }
    b
}

/// All threads of a JVM stop together now and then: no server in Java could be divided.
#[test]
fn a_server_that_seldom_meets_others_at_a_barrier_is_a_server() {
    let worth = worth_of_the_worker(meet(never_waits(true)));
    assert!((1.8..=2.0).contains(&worth), "{worth}");
}

/// A single client asks when it has its answer: a second worker would have nothing to do.
#[test]
fn a_worker_that_sleeps_for_one_client_gains_nothing_by_being_two() {
    let mut b = tasks()
        .switch(0, 0, 0, 11, "R")
        .sys_enter_with(US, 0, 11, ACCEPT, &[3])
        .sys_exit(2 * US, 0, 11, ACCEPT, 5)
        .sys_enter_with(3 * US, 0, 11, READ, &[5])
        .switch(4 * US, 0, 11, 0, "S")
        .switch(5 * US, 1, 0, 20, "R");
    for request in 0..200 {
        let at = |us: u64| (request * 5_300 + us) * US;
        b = b
            .sys_enter_with(at(10), 1, 20, WRITE, &[4])
            .wakeup_to(at(11), 1, 20, 11, 0)
            .switch(at(12), 0, 0, 11, "R")
            .sys_exit(at(12), 1, 20, WRITE, 1)
            .sys_exit(at(13), 0, 11, READ, 1)
            .sys_enter_with(at(14), 1, 20, READ, &[4])
            .switch(at(15), 1, 20, 0, "S")
            .sys_enter_with(at(50), 0, 11, NAP, &[0])
            .switch(at(51), 0, 11, 0, "S");
        b = answers(b, at(5_051), 20)
            .switch(at(5_154), 1, 0, 20, "R")
            .sys_exit(at(5_155), 1, 20, READ, 1)
            .sys_enter_with(at(5_156), 0, 11, READ, &[5])
            .switch(at(5_157), 0, 11, 0, "S");
    }
    assert_eq!(worth_of_the_worker(b), 1.0);
}

/// A relay, thread 30, hands the requests of two clients one at a time to the worker, which sleeps
/// for 5 ms in each. The worker's process accepts the relay's connection, the relay those of its
/// clients; or the relay accepts none, and is the only client.
fn relayed(relay_accepts: bool, clients: u32) -> TraceBuilder {
    let mut b = tasks().task(30, 30, None, "relay");
    for (cpu, tid) in [(0, 11), (1, 30), (1, 20), (1, 21)] {
        b = b.wakeup_to(0, cpu, 0, tid, cpu);
    }
    b = b.switch(5 * US, 0, 0, 11, "R").sys_enter_with(6 * US, 0, 11, ACCEPT, &[3]);
    b = b.sys_exit(7 * US, 0, 11, ACCEPT, 5).switch(5 * US, 1, 0, 30, "R");
    if relay_accepts {
        b = b.sys_enter_with(6 * US, 1, 30, ACCEPT, &[3]).sys_exit(7 * US, 1, 30, ACCEPT, 5);
    }
    b = b
        .sys_enter_with(8 * US, 0, 11, NAP, &[0])
        .switch(9 * US, 0, 11, 0, "S")
        .sys_enter_with(8 * US, 1, 30, READ, &[4])
        .switch(9 * US, 1, 30, 0, "S");
    for (tid, at) in [(20, 20), (21, 30)] {
        b = b
            .switch(at * US, 1, 0, tid, "R")
            .sys_enter_with((at + 1) * US, 1, tid, READ, &[tid.into()])
            .switch((at + 2) * US, 1, tid, 0, "S");
    }
    for request in 0..200 {
        let at = |us: u64| (request * 5_300 + 5_000 + us) * US;
        let client = 20 + (request % u64::from(clients)) as u32;
        b = answers(b, at(0), 30)
            .sys_enter_with(at(103), 0, 11, READ, &[5])
            .switch(at(104), 0, 11, 0, "S")
            .switch(at(105), 1, 0, 30, "R")
            .sys_exit(at(106), 1, 30, READ, 1)
            .sys_enter_with(at(110), 1, 30, WRITE, &[6])
            .wakeup_to(at(111), 1, 30, client, 1)
            .sys_exit(at(112), 1, 30, WRITE, 1)
            .sys_enter_with(at(113), 1, 30, WRITE, &[4])
            .wakeup_to(at(114), 1, 30, 11, 0)
            .switch(at(115), 0, 0, 11, "R")
            .sys_exit(at(116), 0, 11, READ, 1)
            .sys_exit(at(116), 1, 30, WRITE, 1)
            .sys_enter_with(at(117), 1, 30, READ, &[4])
            .switch(at(118), 1, 30, client, "S")
            .sys_exit(at(119), 1, client, READ, 1)
            .sys_enter_with(at(130), 0, 11, NAP, &[0])
            .switch(at(131), 0, 11, 0, "S")
            .sys_enter_with(at(140), 1, client, READ, &[client.into()])
            .switch(at(141), 1, client, 0, "S");
    }
    b
}

#[test]
fn a_worker_behind_a_relay_for_which_clients_wait_can_be_two() {
    let worth = worth_of_the_worker(relayed(true, 2));
    assert!((1.8..=2.0).contains(&worth), "{worth}");
}

#[test]
fn a_worker_behind_a_relay_with_one_client_gains_nothing_by_being_two() {
    assert_eq!(worth_of_the_worker(relayed(true, 1)), 1.0);
}

#[test]
fn a_worker_of_a_client_that_asks_once_at_a_time_gains_nothing_by_being_two() {
    assert_eq!(worth_of_the_worker(relayed(false, 2)), 1.0);
}

/// Two workers sleep for 5 ms in each request, and answer `clients` one after the other. Each of
/// them also wakes one thread that is no client: the recorder, and another server.
fn two_workers(clients: u32) -> TraceBuilder {
    let mut b = TraceBuilder::new(3);
    for (tid, pid, name) in [(10, 10, "server"), (11, 10, "worker"), (12, 10, "worker")] {
        b = b.task(tid, pid, Some(10), name);
    }
    let tids = 20..20 + clients;
    for tid in tids.clone() {
        b = b.task(tid, 20, Some(20), "client");
    }
    for (tid, name, call, at) in [(30, "perf", WRITE, 0), (31, "server", ACCEPT, US)] {
        b = b
            .task(tid, tid, None, name)
            .switch(at, 2, 0, tid, "R")
            .sys_enter_with(at + 10, 2, tid, call, &[3])
            .sys_exit(at + 20, 2, tid, call, 5)
            .sys_enter_with(at + 30, 2, tid, READ, &[5])
            .switch(at + 40, 2, tid, 0, "S");
    }
    for (cpu, tid) in [(0, 11), (1, 12)] {
        b = b
            .switch(0, cpu, 0, tid, "R")
            .sys_enter_with(US, cpu, tid, ACCEPT, &[3])
            .sys_exit(2 * US, cpu, tid, ACCEPT, 5)
            .sys_enter_with(3 * US, cpu, tid, NAP, &[0])
            .switch(4 * US, cpu, tid, 0, "S");
    }
    for (tid, at) in tids.zip((5..).step_by(5)) {
        b = b
            .switch(at * US, 2, 0, tid, "R")
            .sys_enter_with((at + 1) * US, 2, tid, READ, &[tid.into()])
            .switch((at + 2) * US, 2, tid, 0, "S");
    }
    for answer in 0..400 {
        let (cpu, worker) = ((answer % 2) as u16, 11 + answer % 2);
        let client = 20 + answer % clients;
        let at = |us: u64| (u64::from(answer / 2) * 5_300 + u64::from(cpu) * 150 + 5_000 + us) * US;
        b = b.wakeup(at(0), cpu, 0, worker).switch(at(1), cpu, 0, worker, "R").sys_exit(
            at(2),
            cpu,
            worker,
            NAP,
            0,
        );
        if answer < 2 {
            b = b
                .sys_enter_with(at(9), cpu, worker, WRITE, &[9])
                .wakeup_to(at(10), cpu, worker, 30 + answer, 2)
                .sys_exit(at(11), cpu, worker, WRITE, 1)
                .switch(at(11), 2, 0, 30 + answer, "R")
                .switch(at(12), 2, 30 + answer, 0, "S");
        }
        b = b
            .sys_enter_with(at(100), cpu, worker, WRITE, &[7])
            .wakeup_to(at(101), cpu, worker, client, 2)
            .sys_exit(at(102), cpu, worker, WRITE, 1)
            .switch(at(103), 2, 0, client, "R")
            .sys_exit(at(104), 2, client, READ, 1)
            .sys_enter_with(at(110), 2, client, READ, &[client.into()])
            .switch(at(111), 2, client, 0, "S")
            .sys_enter_with(at(130), cpu, worker, NAP, &[0])
            .switch(at(131), cpu, worker, 0, "S");
    }
    b
}

#[test]
fn workers_that_all_sleep_while_requests_wait_can_be_twice_as_many() {
    let worth = worth_of(two_workers(8), &[11, 12]);
    assert!((1.8..=2.0).contains(&worth), "{worth}");
}

/// Three workers would have all requests of three clients in hand.
#[test]
fn more_workers_than_clients_gain_nothing() {
    let worth = worth_of(two_workers(3), &[11, 12]);
    assert!((1.4..=1.5).contains(&worth), "{worth}");
}

/// One client with many connections.
#[test]
fn clients_that_are_fewer_than_the_workers_have_many_requests() {
    let worth = worth_of(two_workers(1), &[11, 12]);
    assert!((1.8..=2.0).contains(&worth), "{worth}");
}

/// The main thread of the workers, which has their name, sleeps all the time too; a worker has
/// started it once.
#[test]
fn a_thread_that_sleeps_beside_the_workers_and_answers_nobody_is_none_of_them() {
    let mut b = two_workers(8)
        .task(10, 10, None, "worker")
        .switch(300 * US, 2, 0, 10, "R")
        .sys_enter_with(310 * US, 2, 10, FUTEX, &[0x5000, 0x189, 0])
        .switch(311 * US, 2, 10, 0, "S")
        .sys_enter_with(5_110 * US, 0, 11, FUTEX, &[0x5000, 0x81, 1])
        .wakeup_to(5_111 * US, 0, 11, 10, 2)
        .sys_exit(5_112 * US, 0, 11, FUTEX, 1)
        .switch(5_400 * US, 2, 0, 10, "R")
        .sys_exit(5_401 * US, 2, 10, FUTEX, 0);
    for nap in 1..200 {
        let at = |us: u64| (nap * 5_300 + us) * US;
        b = b
            .sys_enter_with(at(300), 2, 10, NAP, &[0])
            .switch(at(301), 2, 10, 0, "S")
            .wakeup(at(5_400), 2, 0, 10)
            .switch(at(5_401), 2, 0, 10, "R")
            .sys_exit(at(5_402), 2, 10, NAP, 0);
    }
    let worth = worth_of(b, &[11, 12]);
    assert!((1.8..=2.0).contains(&worth), "{worth}");
}
