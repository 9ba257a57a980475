//! Errors that occurred where threads were ready and CPUs idled.

use super::*;

/// `other` are the steps of a thread outside the work.
fn with_other_work(cpus: u32, work: Vec<Op>, other: Vec<Op>) -> Program {
    let mut p = program(cpus, &[work, other]);
    p.threads[1].works = false;
    p
}

#[test]
fn a_thread_that_was_left_beside_an_idle_cpu_is_left_there_again() {
    let queues = [Op::Run(1), Op::Sleep(999_999, ObjectId::NONE), Op::Queues(2_000_000, 1, true)];
    let work = [&queues[..], &[Op::Run(4_000_000)]].concat();
    // Until another CPU has idled for 2 ms, or its own is free.
    let p = with_other_work(2, work.clone(), vec![Op::Run(50_000_000)]);
    assert_eq!(wall(&p, &[]), 7_000_000);
    let p = with_other_work(2, work, vec![Op::Run(1_500_000)]);
    assert_eq!(wall(&p, &[]), 5_500_000);
}

#[test]
fn an_idle_cpu_is_taken_where_none_was_left_idle_and_the_other_thread_is_there() {
    let queues = [Op::Run(1), Op::Sleep(999_999, ObjectId::NONE), Op::Queues(2_000_000, 1, false)];
    let work = [&queues[..], &[Op::Run(4_000_000)]].concat();
    let p = with_other_work(2, work.clone(), vec![Op::Run(50_000_000)]);
    assert_eq!(wall(&p, &[]), 5_000_000);
    // No thread is in its way now: the other comes by itself, at another time.
    let p = with_other_work(2, work, vec![Op::Run(10), Op::Sleep(90_000_000, ObjectId::NONE)]);
    assert_eq!(wall(&p, &[]), 7_000_000);
}

/// Each thread's 10 ms in the queue began anew with every slice, and no CPU ever took one.
#[test]
fn two_threads_do_not_share_a_cpu_for_ever_beside_an_idle_one() {
    let second = vec![
        Op::Sleep(1_000_000, ObjectId::NONE),
        Op::Queues(10_000_000, 0, true),
        Op::Run(40_000_000),
    ];
    let mut p = program(2, &[vec![Op::Run(40_000_000)], second]);
    p.looks_ns = 10_000_000;
    let took = wall(&p, &[]);
    assert!((45_000_000..=52_000_000).contains(&took), "{took}");
}

#[test]
fn who_took_the_cpu_when_it_was_woken_takes_it_again() {
    let with = |wakes: Option<Op>| {
        let mut work = vec![Op::Run(1), Op::Sleep(999_999, ObjectId::NONE)];
        work.extend(wakes);
        work.push(Op::Run(1_000_000));
        wall(&with_other_work(1, work, vec![Op::Run(10_000_000)]), &[])
    };
    assert_eq!(with(Some(Op::Preempts(1))), 2_000_000);
    assert_eq!(with(None), 4_000_001, "at the end of the slice");
}

/// The other thread had slept where it took the CPU in the trace: it takes it at another time, for
/// as long.
#[test]
fn who_lost_its_cpu_to_a_thread_that_is_not_there_loses_it_again() {
    let work = vec![Op::Run(1_000), Op::LosesCpu(300), Op::Run(1_000)];
    let p = with_other_work(2, work.clone(), vec![]);
    assert_eq!(wall(&p, &[]), 2_300);
    // No CPU idled: the thread that took it is replayed, and takes it by itself.
    let p = with_other_work(2, vec![Op::Run(1_000), Op::LosesCpu(0), Op::Run(1_000)], vec![]);
    assert_eq!(wall(&p, &[]), 2_000);
}

#[test]
fn slices_are_as_long_as_they_were() {
    let work = vec![Op::Run(8_000_000)];
    let mut p = with_other_work(1, work, vec![Op::Run(8_000_000)]);
    assert_eq!(wall(&p, &[]), 14_000_000);
    p.slice_ns = 5_000_000;
    assert_eq!(wall(&p, &[]), 13_000_000);
}

proptest! {
    /// However long they rest.
    #[test]
    fn who_rests_runs_as_long_as_its_program_says(
        threads in any_threads(),
        rests in prop::collection::vec((0..5_000_000_u64, 0..6_u32, any::<bool>()), 5),
        cpus in 1_u32..4,
        looks_ns in 0..4_000_000_u64,
    ) {
        let resting = threads.iter().zip(rests).map(|(steps, (ns, behind, idle))| {
            let mut all = vec![Op::Queues(ns, behind, idle)];
            for &op in steps {
                all.push(op);
                match op {
                    Op::Sleep(..) => all.push(Op::Queues(ns, behind, idle)),
                    Op::Wait { .. } => all.push(Op::Preempts(behind)),
                    Op::Run(_) => all.push(Op::LosesCpu(if idle { ns } else { 0 })),
                    _ => {}
                }
            }
            all
        });
        let mut p = program(cpus, &resting.collect::<Vec<_>>());
        p.looks_ns = looks_ns;
        let seeds = Seeds::of(&p);
        let ran = predict(&p, &[], seeds).unwrap();
        for (t, ns) in p.threads.iter().zip(&ran.run_ns) {
            prop_assert_eq!(t.run_ns, *ns);
        }
        prop_assert_eq!(predict(&p, &[], seeds).unwrap(), ran);
    }
}
