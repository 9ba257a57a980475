//! The bounds of every change.

use super::*;
use crate::bound::Work;
use crate::prediction::Bound;

/// One server of several clients whose calls are not recorded: it never sleeps, and no client is
/// seen to ask.
fn busy_server(requests: u32) -> Program {
    let clients = 3_u32;
    let mut server = Vec::new();
    let mut asks: Vec<Vec<Op>> = vec![Vec::new(); clients as usize];
    for i in 0..requests {
        let client = i % clients;
        server.push(Op::Run(1_000_000));
        server.push(Op::Wake { thread: client + 1, number: i });
        asks[client as usize].push(Op::Run(10_000));
        asks[client as usize].push(Op::Wait { number: i, object: LOCK, delay: 0 });
    }
    let mut threads = vec![server];
    threads.extend(asks);
    let mut p = program(4, &threads);
    p.numbers = requests;
    // A program's last hundredth is not work.
    p
}

/// The thread's work no longer counted: 86,738 times as fast, and once 1,466,575,111.
#[test]
fn a_thread_that_is_split_takes_its_work_along() {
    let p = busy_server(30);
    let before = wall(&p, &[]);
    assert!(before >= 30_000_000);
    for parts in [2, 4] {
        let split = [Change::Split(0, parts)];
        let ran = freely(&p, &split);
        assert_eq!(ran.run_ns[0], 30_000_000);
        assert!(ran.wall_ns >= before / u64::from(parts), "{parts}: {}", ran.wall_ns);
        assert!(ran.wall_ns < before, "{parts}: {}", ran.wall_ns);
    }
    // The only one to work, and the last.
    let mut p = busy_server(30);
    p.threads[1..].iter_mut().for_each(|t| t.works = false);
    let found = predict(&p, &[Change::Split(0, 2)], Seeds::ONE).unwrap();
    assert_eq!((found.wall_ns >= 15_000_000, found.bounded), (true, None), "{found:?}");
}

/// A part that waits for its client to ask takes the client's CPU before the client sleeps. The
/// part was lost then, and with it what its client waited for.
#[test]
fn a_part_that_takes_the_cpu_of_who_asks_is_not_lost() {
    let (mut server, mut server_at) = (Vec::new(), Vec::new());
    let (mut asks, mut asks_at) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for number in 0..200 {
        let client = number as usize % 2;
        // The server has slept for three milliseconds when a client asks.
        let at = 5_100_000 * u64::from(number);
        let sleep = Op::Wait { number: 200 + number, object: LOCK, delay: 0 };
        let answer = Op::Wake { thread: number % 2 + 1, number };
        server.extend([Op::Run(100_000), sleep, Op::Run(2_000_000), answer]);
        server_at.extend([0, 100_000, 3_100_000, 5_100_000].map(|ns| at + ns));
        let wait = Op::Wait { number, object: LOCK, delay: 0 };
        let ask = Op::Wake { thread: 0, number: 200 + number };
        asks[client].extend([Op::Run(600_000), ask, wait]);
        asks_at[client].extend([2_500_000, 3_100_000, 3_100_000].map(|ns| at + ns));
    }
    let [first, second] = asks;
    let mut p = program(2, &[server, first, second]);
    p.numbers = 400;
    p.times = [server_at, asks_at.concat()].concat();
    let split = freely(&p, &[Change::Split(0, 2)]);
    assert_eq!(split.forced, 0);
    assert_eq!(split.run_ns, [420_000_000, 60_000_000, 60_000_000]);
    assert!((270_000_000..300_000_000).contains(&split.wall_ns), "{}", split.wall_ns);
}

/// Work that comes from outside is not known to come earlier.
#[test]
fn who_sleeps_for_others_outside_gains_nothing_by_being_two() {
    let cycle = [Op::Sleep(9_000_000, ObjectId::NONE), Op::Run(1_000_000)];
    let p = program(4, &[(0..20).flat_map(|_| cycle).collect()]);
    assert_eq!(wall(&p, &[Change::Split(0, 2)]), wall(&p, &[]));
}

/// A stage of a pipeline hands on without being asked to: it could be ahead.
#[test]
fn a_slow_stage_that_is_two_is_no_slower() {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for number in 0..20 {
        first.extend([Op::Run(2_000_000), Op::Wake { thread: 1, number }]);
        second.extend([Op::Wait { number, object: LOCK, delay: 0 }, Op::Run(1_000_000)]);
    }
    let mut p = program(4, &[first, second]);
    // The second thread is back a millisecond after it got something.
    let waits = p.threads[1].from as usize..;
    for (time, i) in p.times[waits].iter_mut().zip(0..) {
        *time = 2_000_000 * (i / 2 + i % 2) + 1_000_000 * ((i + 1) % 2);
    }
    assert_eq!(wall(&p, &[]), 41_000_000);
    let split = freely(&p, &[Change::Split(0, 2)]);
    assert!((21_000_000..=23_000_000).contains(&split.wall_ns), "{}", split.wall_ns);
}

/// The thread that was to create it did not get there.
#[test]
fn a_thread_that_nobody_makes_does_its_work_all_the_same() {
    let p = program(2, &[vec![Op::Run(1_000)], vec![Op::Run(5_000)]]);
    let mut lost = p.clone();
    lost.threads[1].spawned = true;
    assert_eq!(wall(&p, &[]), 5_000);
    assert_eq!(wall(&lost, &[]), 6_000);
    assert_eq!(freely(&lost, &[]).run_ns, [1_000, 5_000]);
}

#[test]
fn a_figure_that_breaks_a_law_says_which() {
    // Without the order of the trace it takes 20 ms; the correction removes no more time than there
    // is.
    let p = program(1, &[vec![Op::Run(10_000_000)], vec![Op::Run(10_000_000)]]);
    let missed = crate::program::Free {
        traced_ns: 9,
        free_ns: 10,
        alone_ns: 10,
        unwatched: false,
        idle: 0.0,
        idle_with_background: 0.0,
    };
    let _ = p.free.set(missed);
    let found = predict(&p, &[Change::Lock(LOCK, LockChange::None)], Seeds::ONE).unwrap();
    assert_eq!((found.wall_ns, found.bounded), (20_000_000, Some(Bound::Cpus)));
}

/// Two threads share a CPU, and one is the work: with a CPU for each it takes half the time.
#[test]
fn more_cpus_free_the_work_of_other_programs() {
    let mut p = program(1, &[vec![Op::Run(40_000_000)], vec![Op::Run(40_000_000)]]);
    (p.threads[1].works, p.threads[1].is_background) = (false, true);
    let both = wall(&p, &[]);
    assert!(both > 70_000_000, "{both}");
    let with_its_own = wall(&p, &[Change::Cpus(2)]);
    assert!((40_000_000..41_000_000).contains(&with_its_own), "{with_its_own}");
}

/// One thread did six times as much as the others, and one nothing.
#[test]
fn work_that_is_dealt_evenly_takes_each_as_long_and_none_of_it_is_lost() {
    let with = |ns: u64| {
        let mut steps: Vec<Op> = (ns > 0).then_some(Op::Run(ns)).into_iter().collect();
        steps.extend([Op::Arrive { round: 0, object: LOCK, delay: 0 }, Op::Run(1_000)]);
        steps
    };
    let threads = [with(600_000), with(0), with(300_000)];
    let p = program(3, &threads);
    assert_eq!(wall(&p, &[]), 601_000);
    let dealt = predict(&p, &[Change::Deal], Seeds::ONE).unwrap();
    assert_eq!((dealt.wall_ns, dealt.bounded), (301_000, None));
    assert_eq!(dealt.run_ns, [301_000; 3]);
    // With fewer CPUs than threads there is less to gain.
    assert!(wall(&program(2, &threads), &[Change::Deal]) >= 450_000);
}

#[test]
fn a_quota_that_is_lifted_keeps_nobody_off() {
    let off = Op::Sleep(70_000_000, ObjectId::QUOTA);
    let mut p = program(2, &[vec![Op::Run(30_000_000), off, Op::Run(30_000_000)]]);
    p.threads[0].held_off_ns = 70_000_000;
    assert_eq!(wall(&p, &[]), 130_000_000);
    assert_eq!(wall(&p, &[Change::NoQuota]), 60_000_000);
}

/// A driver's thread sleeps until the device is done, works, and wakes the program: its work stays,
/// and its sleep goes.
#[test]
fn without_its_device_the_work_of_a_driver_stays() {
    let (mut driver, mut work) = (Vec::new(), Vec::new());
    for number in 0..10 {
        driver.extend([Op::Sleep(8_000_000, ObjectId::NONE), Op::Run(1_000_000)]);
        driver.push(Op::Wake { thread: 1, number });
        work.extend([Op::Wait { number, object: LOCK, delay: 0 }, Op::Run(500_000)]);
    }
    let mut p = program(2, &[driver, work]);
    p.objects[0].is_device = true;
    (p.threads[0].is_kthread, p.threads[0].drives, p.threads[0].works) = (true, true, false);
    // From the first time that the program runs.
    assert_eq!(wall(&p, &[]), 81_500_000);
    assert_eq!(wall(&p, &[Change::NoDevices]), 9_500_000);
}

/// Threads outside the work give way to a thread that is earlier than it was.
#[test]
fn who_is_no_part_of_the_work_is_not_in_the_way_of_what_it_gains() {
    let waits = [Op::Run(100_000), Op::Sleep(9_900_000, LOCK)];
    let work: Vec<Op> = (0..10).flat_map(|_| waits).chain([Op::Run(100_000)]).collect();
    let mut p = program(1, &[work, vec![Op::Run(200_000_000)]]);
    (p.threads[1].works, p.threads[1].is_background) = (false, true);
    p.objects[0].kind = ObjectKind::KernelLock;
    let before = wall(&p, &[]);
    let without = wall(&p, &[Change::Lock(LOCK, LockChange::None)]);
    assert!(without * 5 < before, "{before} {without}");
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (1..9_u32).prop_map(Change::Cpus),
        Just(Change::Lock(LOCK, LockChange::None)),
        Just(Change::Lock(LOCK, LockChange::Awake)),
        Just(Change::Lock(LOCK, LockChange::First)),
        (0.1..3.0_f64).prop_map(|by| Change::Lock(LOCK, LockChange::Hold(by))),
        (2..5_u32).prop_map(|n| Change::Lock(LOCK, LockChange::Split(n))),
        (0..5_usize, 2..5_u32).prop_map(|(thread, n)| Change::Split(thread, n)),
        (0..5_usize, 0.3..4.0_f64).prop_map(|(thread, by)| Change::Speed(thread, by)),
        Just(Change::SpreadIrqs),
        Just(Change::NoDevices),
        Just(Change::AnyCpu),
        Just(Change::NoQuota),
    ]
}

proptest! {
    /// Whatever is changed, the work that is left is done on the CPUs that there are.
    #[test]
    fn no_work_is_lost(
        threads in any_threads(),
        changes in prop::collection::vec(any_change(), 1..4),
        cpus in 1_u32..6,
        order in prop::sample::select(vec![Order::Traced, Order::Taken, Order::Handed]),
        device: bool,
    ) {
        let mut p = program(cpus, &threads);
        (p.objects[0].order, p.objects[0].is_device) = (order, device);
        let view = View::new(&p, &changes).unwrap();
        let work = Work::of(&view);
        for seed in 0..2 {
            let ran = simulate(&view, seed);
            prop_assert_eq!(ran.run_ns.iter().sum::<u64>(), work.all_ns);
            prop_assert!(ran.wall_ns >= work.all_ns / u64::from(view.cpus));
            prop_assert!(ran.wall_ns >= work.longest_ns);
        }
    }

    #[test]
    fn no_figure_is_beyond_the_laws(
        threads in any_threads(), change in any_change(), cpus in 1_u32..6,
    ) {
        let p = program(cpus, &threads);
        let before = predict(&p, &[], Seeds::of(&p)).unwrap().wall_ns;
        let found = predict(&p, std::slice::from_ref(&change), Seeds::ONE).unwrap();
        let gain = before as f64 / found.wall_ns.max(1) as f64;
        prop_assert!(found.wall_low_ns <= found.wall_ns && found.wall_ns <= found.wall_high_ns);
        let most = match change {
            Change::Split(_, n) | Change::Lock(_, LockChange::Split(n)) => f64::from(n),
            Change::Speed(_, by) => by.max(1.0),
            Change::Cpus(n) if n <= cpus => 1.0,
            _ => f64::INFINITY,
        };
        prop_assert!(gain <= most, "{gain} by {change:?}");
        let harms = matches!(change, Change::Cpus(n) if n < cpus)
            || matches!(change, Change::Speed(_, by) if by < 1.0)
            || matches!(change, Change::Lock(_, LockChange::Hold(by)) if by > 1.0);
        prop_assert!(harms || gain >= 1.0, "{gain} by {change:?}");
    }

    /// The traced number of CPUs and factors of one: nothing is changed.
    #[test]
    fn what_changes_nothing_changes_nothing(threads in any_threads(), cpus in 1_u32..6) {
        let p = program(cpus, &threads);
        let before = predict(&p, &[], Seeds::of(&p)).unwrap().wall_ns;
        for nothing in [
            Change::Cpus(cpus),
            Change::Speed(0, 1.0),
            Change::Lock(LOCK, LockChange::Hold(1.0)),
            Change::AnyCpu,
            Change::NoDevices,
        ] {
            let found = predict(&p, std::slice::from_ref(&nothing), Seeds::ONE).unwrap();
            prop_assert_eq!(found.wall_ns, before, "{:?}", nothing);
        }
    }
}
