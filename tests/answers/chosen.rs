//! Verdicts about chosen threads, on traces built by hand.

use holdup_attribution::{Thresholds, analyze};
use holdup_diagnose::phases::Judged;
use holdup_diagnose::{Class, Diagnosis, diagnose_judged};
use holdup_passes::{Detail, Filter, Options};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::Reader;

const MS: u64 = 1_000_000;

/// A service that always has work shares CPU 0 with a batch, 5 ms each in turn, and CPU 1 is the
/// batch's for all of a second.
fn with_a_batch() -> MemTrace {
    let mut b = TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("sched", "sched_waking")
        .records("raw_syscalls", "sys_enter")
        .records("raw_syscalls", "sys_exit")
        .task(10, 10, Some(1), "served")
        .task(20, 20, Some(1), "batch")
        .task(21, 20, Some(1), "batch")
        .task(22, 20, Some(1), "batch")
        .switch(0, 0, 0, 10, "R")
        .switch(0, 1, 0, 21, "R");
    for turn in 1..200 {
        let (now, odd) = (turn * 5 * MS, turn % 2 == 1);
        let (from, to) = if odd { (10, 20) } else { (20, 10) };
        let (other, next) = if odd { (21, 22) } else { (22, 21) };
        b = b.switch(now, 0, from, to, "R").switch(now, 1, other, next, "R");
    }
    b.build()
}

fn judge(trace: &MemTrace, comm: &str) -> Diagnosis {
    let work = Filter { comms: vec![comm.to_owned()], ..Filter::default() };
    let options = Options { work, detail: Detail::Steps, ..Options::default() };
    let judged = Judged::of_all(analyze(trace, &options).unwrap(), Vec::new());
    diagnose_judged(trace.info(), &judged, None, Thresholds::default())
}

#[test]
fn who_is_kept_off_the_cpus_by_others_is_not_healthy() {
    let d = judge(&with_a_batch(), "served");
    assert_eq!(d.verdict.class, Class::CpuOverload, "{}", d.verdict.summary);
    let said = &d.verdict.summary;
    assert!(
        said.contains(
            "served (10): these threads are ready but without a CPU for 50 % of the time"
        ),
        "{said}"
    );
    assert!(said.contains("capacity taken by other programs: batch 74.9"), "{said}");
    let held = d.findings.iter().find(|f| f.class == Class::CpuOverload).unwrap();
    // With CPUs for all it runs all the time: it is done in half.
    assert!((1.8..2.05).contains(&held.worth.low), "{:?}", held.worth);
    assert!(held.advice[0].contains("cpusets"), "{:?}", held.advice);
}
