//! What system calls cost because of other threads, and whether they pass one at a time.

use crate::scene::{GETPPID, MS, US, YIELD, busy, ends, measured, tid};
use holdup_attribution::{Attribution, Leaf};
use holdup_testkit::MemTrace;

/// 7 makes four calls each millisecond, the last concurrently with 8: both take so long then.
fn under_concurrency(concurrent_ns: u64) -> MemTrace {
    let mut trace = busy(2);
    for i in 0..50 {
        let at = (i + 1) * MS;
        for call in 0..3 {
            let at = at + call * 100 * US;
            trace = trace.sys_enter(at, 0, 7, GETPPID).sys_exit(at + 10 * US, 0, 7, GETPPID, 1);
        }
        let at = at + 400 * US;
        trace = trace
            .sys_enter(at, 0, 7, GETPPID)
            .sys_enter(at + US, 1, 8, GETPPID)
            .sys_exit(at + concurrent_ns, 0, 7, GETPPID, 1)
            .sys_exit(at + US + concurrent_ns, 1, 8, GETPPID, 1);
    }
    ends(trace, 2, 60 * MS)
}

#[test]
fn calls_that_cost_more_in_concurrent_lose_what_they_would_not_cost_alone() {
    let analysis = measured(&under_concurrency(100 * US));
    let judged = Attribution::from(&analysis);
    let call = &judged.contended[0];
    assert!(call.nr == GETPPID && call.own_ns.abs_diff(10 * US) < US, "{call:?}");
    assert!(call.concurrent_pct.unwrap() >= 200, "{call:?}");
    // 50 calls were begun concurrently, each 90 us longer than the typical one alone. Those begun
    // alone raise the mean that they are compared with.
    assert!((2 * MS..=9 * MS).contains(&call.lost_ns), "{call:?}");
    assert_eq!(judged.ledger.ns(Leaf::LockWait), call.lost_ns, "and the ledger has it");
}

#[test]
fn calls_that_cost_the_same_in_concurrent_lose_nothing() {
    let analysis = measured(&under_concurrency(10 * US));
    let judged = Attribution::from(&analysis);
    let call = &judged.contended[0];
    assert!(call.lost_ns == 0 && call.own_ns.abs_diff(10 * US) < US, "{call:?}");
}

#[test]
fn few_calls_say_nothing() {
    let trace = busy(2).sys_enter(MS, 0, 7, GETPPID).sys_exit(2 * MS, 0, 7, GETPPID, 1);
    let analysis = measured(&ends(trace, 2, 60 * MS));
    assert!(Attribution::from(&analysis).contended.is_empty());
}

/// 7 and 8 call alternately, each `think` after its previous call; `end` says when a call ends, in
/// ns after the previous one.
fn in_turn(think: u64, mut end: impl FnMut(u64) -> u64) -> MemTrace {
    let mut trace = busy(2);
    let mut at = [MS, MS];
    let mut last = MS;
    for i in 0..2400 {
        let thread = (i % 2) as usize;
        let (cpu, who) = (thread as u16, 7 + thread as u32);
        last += end(i);
        trace = trace
            .sys_enter(at[thread] + think, cpu, who, GETPPID)
            .sys_exit(last, cpu, who, GETPPID, 1);
        at[thread] = last;
    }
    ends(trace, 2, last + MS)
}

#[test]
fn calls_that_end_no_closer_than_a_floor_pass_one_at_a_time() {
    // Hardly any gap is shorter than 10 us, many are little longer.
    let analysis = measured(&in_turn(300, |i| 10 * US + (i * 7919) % (4 * US)));
    let judged = Attribution::from(&analysis);
    let (name, section) = judged.fullest_section().unwrap();
    assert_eq!((name, section.callers), ("getppid", 2));
    assert!((8 * US..=11 * US).contains(&section.ns), "{section:?}");
    assert!(section.in_use_pct > 60.0 && section.wanted_pct >= section.in_use_pct, "{section:?}");
}

/// The lock is never free, so half of each call is spinning. Now and then a thread sleeps for it.
#[test]
fn what_a_call_holds_is_as_long_as_others_end_after_it() {
    const LOCK: u64 = 0xffff_8880_0000_1000;
    let mut trace = busy(2).records("lock", "contention_begin");
    let (mut at, mut last) = ([10 * US; 2], 10 * US);
    for i in 0..2400 {
        let thread = (i % 2) as usize;
        let (cpu, who) = (thread as u16, 7 + thread as u32);
        let from = at[thread] + 300;
        last += 10 * US + (i * 7919) % US;
        trace = trace.sys_enter(from, cpu, who, GETPPID);
        if i % 40 > 37 {
            trace = trace
                .contention_begin(from + US, cpu, who, LOCK, 4)
                .switch(from + 2 * US, cpu, who, 0, "D")
                .waking(last - 3 * US, 1 - cpu, 15 - who, who)
                .switch(last - 2 * US, cpu, 0, who, "R")
                .contention_end(last - US, cpu, who, LOCK);
        }
        trace = trace.sys_exit(last, cpu, who, GETPPID, 1);
        at[thread] = last;
    }
    let analysis = measured(&ends(trace, 2, last + MS));
    let judged = Attribution::from(&analysis);
    let call = &judged.contended[0];
    assert!(call.section.is_none() && call.exclusion.is_some(), "{call:?}");
    assert!(call.own_ns.abs_diff(10 * US) < 2 * US, "{call:?}");
    assert!(call.lost_ns * 3 > call.mean_ns * 2400, "half of them: {call:?}");
}

/// The recorder writes an event in a call too, so it takes no longer for that than the call takes.
#[test]
fn what_threads_compute_between_calls_is_not_the_recorders_time() {
    let analysis = measured(&in_turn(20 * US, |i| 10 * US + (i * 7919) % (4 * US)));
    let section = Attribution::from(&analysis).fullest_section().unwrap().1;
    assert!(section.wanted_pct < section.in_use_pct * 2.0, "{section:?}");
}

#[test]
fn calls_that_end_at_any_distance_do_not() {
    let analysis = measured(&in_turn(300, |i| 500 + (i * 7919) % (40 * US)));
    assert_eq!(Attribution::from(&analysis).fullest_section(), None);
}

/// This many threads yield again and again, with `work` of their own code in each millisecond.
fn yielding(threads: u32, looks: u64) -> MemTrace {
    let mut trace = busy(threads);
    for i in 0..20 {
        for thread in 0..threads {
            let (cpu, who) = (thread as u16, 7 + thread);
            for look in 0..looks {
                let at = (i + 1) * MS + look * 10 * US;
                trace = trace.sys_enter(at, cpu, who, YIELD).sys_exit(at + US, cpu, who, YIELD, 0);
            }
        }
    }
    ends(trace, threads, 22 * MS)
}

#[test]
fn threads_of_one_program_that_yield_again_and_again_wait_for_each_other() {
    let analysis = measured(&yielding(2, 50));
    let judged = Attribution::from(&analysis);
    let spinning = &judged.spinning[0];
    let who: Vec<u32> = spinning.threads.iter().map(|t| tid(&analysis, t.0)).collect();
    assert_eq!((who, spinning.between_processes), (vec![7, 8], false));
    // Per thread, 49 looks of 10 us in each of 20 ms: the first is not a repeated look.
    assert!((18 * MS..=20 * MS).contains(&spinning.sum.cpu_ns), "{spinning:?}");
    assert_eq!(judged.ledger.ns(Leaf::Spin), spinning.sum.cpu_ns);
}

#[test]
fn one_that_yields_alone_waits_for_nobody() {
    assert_eq!(Attribution::from(&measured(&yielding(1, 50))).spinning, []);
}

#[test]
fn a_loop_of_nothing_but_yields_waits_for_nothing() {
    assert_eq!(Attribution::from(&measured(&yielding(2, 100))).spinning, []);
}
