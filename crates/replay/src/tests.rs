//! Properties of every replay.

mod bounds;
mod circles;
mod divided;
mod holders;
mod joins;
mod kernel;
mod polled;
mod queues;
mod requests;
mod slices;
mod works;

use crate::change::{Change, LockChange, View};
use crate::estimate::{Depth, Estimates, estimate};
use crate::predict::{Seeds, predict};
use crate::program::{ObjectId, Op, Order, Program, ReplayObject, ThreadProgram};
use crate::relief::Waits;
use crate::simulate::{Ran, simulate};
use holdup_attribution::{Attribution, analyze};
use holdup_passes::{Analysis, Detail, FutexUse, ObjectKind, Options, Slot};
use holdup_testkit::TraceBuilder;
use holdup_trace::Nanos;
use proptest::prelude::*;
use std::sync::OnceLock;

const US: Nanos = 1_000;
const READ: u32 = 0;
const WRITE: u32 = 1;

/// A hand-made trace, analysed for a replay, and its program.
fn built(b: TraceBuilder) -> (Analysis, Program) {
    let options = Options { detail: Detail::Steps, ..Options::default() };
    let analysis = analyze(&b.build(), &options).expect("a built trace");
    let program = Program::new(&Attribution::from(&analysis)).expect("switches");
    (analysis, program)
}

/// As [`built`], with what the removal of each bottleneck is worth.
fn estimated(b: TraceBuilder, depth: Depth) -> (Analysis, Program, Estimates) {
    let (analysis, program) = built(b);
    let found = estimate(&program, &Attribution::from(&analysis), depth);
    (analysis, program, found)
}

/// The waits of a program in which no object for any of several events is a lock.
pub(crate) fn waits(program: &Program) -> Waits {
    Waits::of(program, |_| false)
}

/// A machine and its threads' programs. A step's traced time is what its thread has run and slept
/// until then.
pub(crate) fn program(cpus: u32, threads: &[Vec<Op>]) -> Program {
    let (mut ops, mut times, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for (steps, i) in threads.iter().zip(0..) {
        let from = ops.len() as u32;
        let (mut at, mut run_ns) = (0, 0);
        for &op in steps {
            times.push(at);
            ops.push(op);
            match op {
                Op::Run(ns) | Op::Spin(ns, _) => (at, run_ns) = (at + ns, run_ns + ns),
                Op::Sleep(ns, _) => at += ns,
                _ => {}
            }
        }
        made.push(ThreadProgram {
            slot: Slot(i + 1),
            tid: i,
            comm: format!("t{i}"),
            works: true,
            serves_work: false,
            run_ns,
            irq_ns: 0,
            is_softirq: false,
            from,
            to: ops.len() as u32,
            work_to: ops.len() as u32,
            ends_ns: 0,
            ends: Vec::new(),
            napped_ns: 0,
            occupied_ns: 0,
            keeps_waiting: false,
            served_ns: 0,
            clients: 0,
            watches: false,
            at_barriers: false,
            team: None,
            spawned: false,
            delay: 0,
            usual_delay: 0,
            allowed: u64::MAX,
            held_off_ns: 0,
            is_background: false,
            is_kthread: false,
            drives: false,
            turns: Vec::new(),
        });
    }
    let object = ReplayObject {
        of: Vec::new(),
        kind: ObjectKind::Futex,
        usage: Some(FutexUse::Mutex),
        is_private: true,
        name: "mutex 0x1".into(),
        is_lock: true,
        in_turn: false,
        order: Order::Traced,
        is_contended: false,
        waits: 1,
        wait_ns: 1,
        work_delayed: 1,
        hold_ns: 1,
        is_device: false,
        is_kernel_lock: false,
    };
    Program {
        threads: made,
        objects: vec![object],
        cpus,
        traced_wall_ns: 1,
        irq_ns: 0,
        wall_ns: 1,
        ops,
        times,
        slice_ns: 3_000_000,
        looks_ns: 0,
        numbers: 64,
        rounds: vec![threads.len() as u32],
        unchanged: OnceLock::new(),
        free_pct: holdup_passes::limits::MATTERS.default,
        met_pct: holdup_passes::limits::WELL_MET.default,
        free: OnceLock::new(),
        enough: holdup_passes::limits::ENOUGH.default as usize,
        joins: OnceLock::new(),
        dealt: OnceLock::new(),
    }
}

pub(crate) const LOCK: ObjectId = ObjectId(0);

pub(crate) fn wall(program: &Program, changes: &[Change]) -> Nanos {
    predict(program, changes, Seeds::ONE).unwrap().wall_ns
}

/// The result of changes without the order of the trace, before any bound limits it.
pub(crate) fn freely(program: &Program, changes: &[Change]) -> Ran {
    simulate(&View::new(program, changes).unwrap(), 0)
}

#[test]
fn independent_threads_share_the_cpus() {
    let p = program(1, &[vec![Op::Run(40_000_000)], vec![Op::Run(40_000_000)]]);
    assert_eq!(wall(&p, &[]), 80_000_000);
    assert_eq!(wall(&p, &[Change::Cpus(2)]), 40_000_000);
    assert_eq!(wall(&p, &[Change::Cpus(64)]), 40_000_000);
}

#[test]
fn a_slower_thread_that_others_wait_for_delays_them() {
    let first = vec![Op::Run(10_000), Op::Wake { thread: 1, number: 7 }];
    let second = vec![Op::Wait { number: 7, object: LOCK, delay: 500 }, Op::Run(3_000)];
    let p = program(2, &[first, second]);
    assert_eq!(wall(&p, &[]), 13_500);
    assert_eq!(wall(&p, &[Change::Speed(0, 2.0)]), 8_500);
    assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::None)]), 10_000);
}

#[test]
fn a_hold_that_is_halved_takes_half_the_time_and_no_other_does() {
    let steps = vec![Op::Run(1_000), Op::Hold(LOCK), Op::Run(4_000), Op::Drop(LOCK), Op::Run(50)];
    let p = program(1, &[steps]);
    assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::Hold(0.5))]), 3_050);
    assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::Hold(2.0))]), 9_050);
}

#[test]
fn spinning_goes_with_the_lock() {
    let p = program(1, &[vec![Op::Run(1_000), Op::Spin(9_000, LOCK), Op::Run(1_000)]]);
    assert_eq!(wall(&p, &[]), 11_000);
    assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::None)]), 2_000);
    assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::Split(3))]), 5_000);
}

#[test]
fn calls_that_others_make_necessary_go_with_the_mutex() {
    let mut p = program(2, &[vec![Op::Run(10_000)], vec![Op::Run(6_000)]]);
    p.threads[0].turns.push((LOCK, 4_000));
    assert_eq!(wall(&p, &[]), 10_000);
    assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::None)]), 6_000);
    assert_eq!(wall(&p, &[Change::Lock(LOCK, LockChange::Split(2))]), 10_000, "not known");
}

#[test]
fn at_a_barrier_whoever_is_last_decides() {
    let with = |ns| vec![Op::Run(ns), Op::Arrive { round: 0, object: LOCK, delay: 0 }, Op::Run(10)];
    let p = program(3, &[with(900), with(100), with(600)]);
    assert_eq!(wall(&p, &[]), 910);
    // The other thread is the last then.
    assert_eq!(wall(&p, &[Change::Speed(0, 9.0)]), 610);
}

#[test]
fn a_server_that_is_two_serves_two_at_once() {
    // Two clients ask, and wait; one server works 1 ms for each.
    let client = |n: u32| {
        vec![
            Op::Run(10_000),
            Op::Wake { thread: 0, number: n },
            Op::Wait { number: 10 + n, object: LOCK, delay: 0 },
            Op::Run(1),
        ]
    };
    let serve = |n: u32| {
        [
            Op::Wait { number: n, object: LOCK, delay: 0 },
            Op::Run(1_000_000),
            Op::Wake { thread: n, number: 10 + n },
        ]
    };
    let p = program(4, &[[serve(1), serve(2)].concat(), client(1), client(2)]);
    assert_eq!(wall(&p, &[]), 2_010_001);
    assert_eq!(wall(&p, &[Change::Split(0, 2)]), 1_010_001);
}

/// Both are bound to the first of two CPUs.
#[test]
fn threads_that_are_let_loose_use_all_cpus() {
    let mut p = program(2, &[vec![Op::Run(40_000)], vec![Op::Run(40_000)]]);
    p.threads.iter_mut().for_each(|t| t.allowed = 1);
    assert_eq!(wall(&p, &[]), 80_000);
    assert_eq!(wall(&p, &[Change::AnyCpu]), 40_000);
}

#[test]
fn what_cannot_be_changed_is_an_error() {
    let p = program(1, &[vec![Op::Run(1)]]);
    for bad in [
        Change::Cpus(0),
        Change::Cpus(5_000),
        Change::Speed(0, 0.0),
        Change::Speed(0, f64::INFINITY),
        Change::Split(0, 1),
        Change::Lock(LOCK, LockChange::Hold(-1.0)),
        Change::Lock(LOCK, LockChange::Split(0)),
    ] {
        assert!(predict(&p, std::slice::from_ref(&bad), Seeds::ONE).is_err(), "{bad:?}");
    }
}

/// Threads that run, sleep, and wait for each other in any order: some of these programs never end
/// by themselves.
pub(crate) fn any_threads() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let op = prop_oneof![
        4 => (1..5_000_000_u64).prop_map(Op::Run),
        1 => (1..100_000_u64).prop_map(|ns| Op::Spin(ns, LOCK)),
        2 => (1..3_000_000_u64).prop_map(|ns| Op::Sleep(ns, ObjectId::NONE)),
        2 => (0..64_u32).prop_map(|number| Op::Wait { number, object: LOCK, delay: 1_000 }),
        2 => (0..5_u32, 0..64_u32).prop_map(|(thread, number)| Op::Wake { thread, number }),
        1 => Just(Op::Hold(LOCK)),
        1 => Just(Op::Drop(LOCK)),
    ];
    prop::collection::vec(prop::collection::vec(op, 1..20), 5..6)
}

proptest! {
    /// The replay ends, and every thread has run as long as its program says.
    #[test]
    fn run_time_is_conserved(threads in any_threads(), cpus in 1_u32..6, seeds in 0..3_u32) {
        let p = program(cpus, &threads);
        let seeds = if seeds == 0 { Seeds::ONE } else { Seeds::of(&p) };
        let ran = predict(&p, &[], seeds).unwrap();
        for (t, ns) in p.threads.iter().zip(&ran.run_ns) {
            prop_assert_eq!(t.run_ns, *ns);
        }
        prop_assert!(ran.wall_low_ns <= ran.wall_ns && ran.wall_ns <= ran.wall_high_ns);
        prop_assert_eq!(predict(&p, &[], seeds).unwrap(), ran);
    }

    /// Between the two bounds of Graham ("Bounds on Multiprocessing Timing Anomalies", SIAM Journal
    /// on Applied Mathematics 17, 1969) for threads that do not wait.
    #[test]
    fn no_cpu_idles_while_a_thread_is_ready(
        runs in prop::collection::vec(1..50_000_000_u64, 1..12), cpus in 1_u32..8,
    ) {
        let threads: Vec<Vec<Op>> = runs.iter().map(|&ns| vec![Op::Run(ns)]).collect();
        let took = wall(&program(cpus, &threads), &[]);
        let (sum, longest) = (runs.iter().sum::<u64>(), *runs.iter().max().unwrap());
        prop_assert!(took >= longest.max(sum.div_ceil(cpus.into())));
        prop_assert!(took <= sum / u64::from(cpus) + longest);
    }

    /// A single thread gains its own speed-up.
    #[test]
    fn speed_is_speed(ns in 1_000..1_000_000_000_u64, times in 1.0..8.0_f64) {
        let p = program(2, &[vec![Op::Run(ns)]]);
        let took = wall(&p, &[Change::Speed(0, times)]) as f64;
        prop_assert!((took - ns as f64 / times).abs() <= 1.0);
    }
}

/// A thread that was never seen to run has no pieces to share.
#[test]
fn a_thread_without_steps_can_be_split() {
    let mut p = program(2, &[vec![Op::Run(1_000)], vec![], vec![Op::Run(1)]]);
    p.threads[1].is_softirq = true;
    assert_eq!(wall(&p, &[Change::SpreadIrqs]), 1_000);
    assert_eq!(wall(&p, &[Change::Split(1, 4)]), 1_000);
}

/// One after the other ends on the same CPU without recursion.
#[test]
fn many_threads_can_end_at_once() {
    let threads: Vec<Vec<Op>> = (0..100_000).map(|_| vec![Op::Drop(LOCK)]).collect();
    let p = program(1, &threads);
    assert_eq!(wall(&p, &[]), 0);
}
