//! Judgements on the whole machine: driver work on one CPU, CPU affinity, phases.

use crate::scene::{MS, busy, ends, machine, measured, runs};
use holdup_attribution::{Attribution, Funnel, Leaf, Part, Resource, Thresholds, phases};
use holdup_testkit::{MemTrace, TraceBuilder};
use std::collections::BTreeSet;

/// CPU 0 does softirqs for `ns` of each 10 ms; the other CPU idles.
fn softirqs(ns: u64, on: impl Fn(u64) -> u16) -> MemTrace {
    let mut trace = runs(machine(2).task(7, 7, None, "w0"), 1, 7);
    for i in 0..10 {
        let at = i * 10 * MS + MS;
        trace = trace.softirq(at, at + ns, on(i), if on(i) == 1 { 7 } else { 0 }, 3);
    }
    trace.switch(100 * MS, 1, 7, 0, "S").switch(100 * MS, 0, 0, 0, "R").build()
}

#[test]
fn driver_work_on_one_cpu_is_a_funnel() {
    let analysis = measured(&softirqs(6 * MS, |_| 0));
    let driver = Attribution::from(&analysis).driver.unwrap();
    assert_eq!(driver.funnel, Some(Funnel::Cpu));
    assert_eq!((driver.busiest.cpu, driver.concentrated_pct), (0, 100.0));
    assert!((driver.saturated_pct - 60.0).abs() < 1.0, "{driver:?}");
}

#[test]
fn little_driver_work_and_work_on_all_cpus_are_none() {
    let little = measured(&softirqs(2 * MS, |_| 0));
    assert_eq!(Attribution::from(&little).driver.unwrap().funnel, None);
    let spread = measured(&softirqs(6 * MS, |i| (i % 2) as u16));
    assert_eq!(Attribution::from(&spread).driver.unwrap().funnel, None);
}

/// Threads 7 and 8 alternate on CPU 0 each millisecond; CPU 1 idles, or runs 9.
fn on_one_cpu(other_is_busy: bool) -> MemTrace {
    let mut trace = machine(2)
        .task(7, 7, None, "w0")
        .task(8, 7, None, "w1")
        .task(9, 9, None, "other")
        .wakeup_to(0, 0, 0, 8, 0)
        .switch(1, 0, 0, 7, "R");
    trace = trace.switch(2, 1, 0, if other_is_busy { 9 } else { 0 }, "R");
    for i in 1..100 {
        let (from, to) = if i % 2 == 1 { (7, 8) } else { (8, 7) };
        trace = trace.switch(i * MS, 0, from, to, "R");
    }
    trace.switch(100 * MS, 0, 8, 0, "S").switch(100 * MS, 1, 0, 0, "R").build()
}

#[test]
fn idle_time_beside_threads_that_queue_is_for_lack_of_a_cpu_they_may_use() {
    let analysis = measured(&on_one_cpu(false));
    let ledger = Attribution::from(&analysis).ledger;
    assert!(ledger.ns(Leaf::Bound) > 90 * MS, "{ledger:?}");
    assert_eq!(ledger.ns(Leaf::Scheduler), 0);
}

#[test]
fn where_no_cpu_idles_threads_lack_cpus() {
    let analysis = measured(&on_one_cpu(true));
    let ledger = Attribution::from(&analysis).ledger;
    assert_eq!(ledger.ns(Leaf::Bound), 0, "{ledger:?}");
}

/// One of four CPUs is busy in the first half, then `later` of them.
fn two_phases(later: u32) -> MemTrace {
    let mut trace = machine(4);
    for cpu in 0..4_u32 {
        trace = trace.task(7 + cpu, 7, None, "work");
    }
    trace = trace.switch(0, 0, 0, 7, "R");
    for cpu in 1..later {
        trace = trace.switch(500 * MS, cpu as u16, 0, 7 + cpu, "R");
    }
    (0..later)
        .fold(trace, |trace: TraceBuilder, cpu| {
            trace.switch(1000 * MS, cpu as u16, 7 + cpu, 0, "S")
        })
        .build()
}

#[test]
fn a_trace_is_cut_where_it_changes() {
    let analysis = measured(&two_phases(4));
    let found = phases(&analysis, &Thresholds::default());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].end.abs_diff(500 * MS) <= 8 * MS, "{found:?}");
    assert_eq!((found[0].busy_cpus, found[1].busy_cpus), (1.0, 4.0));
    assert_eq!(found.iter().map(|p| p.part).collect::<Vec<_>>(), [Part::Work; 2]);
}

#[test]
fn a_trace_that_does_not_change_is_one_phase() {
    let analysis = measured(&two_phases(1));
    assert_eq!(phases(&analysis, &Thresholds::default()).len(), 1);
}

/// Two threads of one program are busy for 100 ms; then one of them runs `each` of 30 times, on a
/// machine that is idle otherwise.
fn goes_on(each: u64) -> Vec<Part> {
    let mut trace = machine(2).task(7, 7, None, "work").task(8, 7, None, "work");
    trace = trace.switch(0, 0, 0, 7, "R").switch(0, 1, 0, 8, "R");
    trace = trace.switch(100 * MS, 0, 7, 0, "S").switch(100 * MS, 1, 8, 0, "S");
    for i in 0..30 {
        let at = (115 + 30 * i) * MS;
        trace = trace.waking_in_irq(at - 10, 0, 0, 7).switch(at, 0, 0, 7, "R");
        trace = trace.switch(at + each, 0, 7, 0, "S");
    }
    let analysis = measured(&trace.switch(1000 * MS, 1, 0, 8, "R").build());
    phases(&analysis, &Thresholds::default()).iter().map(|p| p.part).collect()
}

/// A server with little to do after its start was judged by its start alone.
#[test]
fn a_long_quiet_end_is_work_if_the_program_does_much_of_its_work_there() {
    assert_eq!(goes_on(2 * MS), [Part::Work; 2]);
    assert_eq!(goes_on(MS / 2), [Part::Work, Part::Tail]);
}

#[test]
fn every_leaf_of_idle_time_is_lost_to_one_resource_and_no_two_have_one_name() {
    let lost: BTreeSet<Resource> = Leaf::ALL.iter().filter_map(|leaf| leaf.lost_to()).collect();
    let words: BTreeSet<&str> = lost.iter().map(|r| r.word()).collect();
    assert_eq!(words.len(), lost.len(), "{lost:?}");
    assert_eq!(Leaf::UserWork.lost_to(), None, "work is not lost");
    let analysis = measured(&ends(busy(2), 2, 10 * MS));
    let ledger = Attribution::from(&analysis).ledger;
    let all: u64 = lost.iter().map(|&r| ledger.lost_to(r)).sum();
    assert_eq!(all, 0, "two threads that run all the time lose nothing: {ledger:?}");
}
