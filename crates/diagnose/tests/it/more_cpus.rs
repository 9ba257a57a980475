//! The gain of more CPUs, compared with what queues for them say.

use holdup_attribution::{Thresholds, analyze};
use holdup_diagnose::phases::Judged;
use holdup_diagnose::{Class, Diagnosis, Finding, diagnose_judged};
use holdup_passes::{Detail, Options};
use holdup_testkit::{TraceBuilder, corpus, needs};
use holdup_trace::Reader;

const MS: u64 = 1_000_000;

/// One thread has CPU 0 for a second. On CPU 1 three others contend for 5 ms of that.
fn queues() -> Diagnosis {
    let turns = 200;
    let mut b = TraceBuilder::new(2)
        .task(10, 10, None, "long")
        .waking(0, 1, 0, 10)
        .switch(0, 0, 0, 10, "R");
    for tid in [11, 12, 13] {
        b = b.task(tid, 10, Some(10), "short").wakeup_to(0, 1, 0, tid, 1);
    }
    b = b.switch(MS / 10, 1, 0, 11, "R");
    for turn in 1..turns {
        let of = |turn: u64| 11 + (turn % 3) as u32;
        let state = if turn + 3 < turns { "R" } else { "S" };
        b = b.switch(turn * 5 * MS, 1, of(turn - 1), of(turn), state);
    }
    b = b.switch(turns * 5 * MS, 1, 11 + ((turns - 1) % 3) as u32, 0, "S");
    let trace = b.switch(1_001 * MS, 0, 10, 0, "S").build();
    judge(&trace)
}

fn judge(reader: &dyn Reader) -> Diagnosis {
    let options = Options { detail: Detail::Steps, ..Options::default() };
    let judged = Judged::of_all(analyze(reader, &options).unwrap(), Vec::new());
    diagnose_judged(reader.info(), &judged, None, Thresholds::default())
}

fn overload(d: &Diagnosis) -> &Finding {
    d.findings.iter().find(|f| f.class == Class::CpuOverload).unwrap()
}

/// An overload was reported next to "8 CPUs in place of 2: 1.00 times as fast".
#[test]
fn a_queue_that_more_cpus_do_not_shorten_the_work_of_is_no_overload() {
    let d = queues();
    assert_ne!(d.verdict.class, Class::CpuOverload, "{}", d.verdict.summary);
    let of = overload(&d);
    let why = of.ruled_out.as_deref().unwrap_or_default();
    assert_eq!(why, "in a replay with more CPUs the work is only 1.00 times as fast", "{of:?}");
}

/// "No change that was tried gains more than 0 %" was reported where `whatif` said 1.39 times.
#[needs(corpus)]
#[test]
fn a_healthy_verdict_says_what_more_cpus_gain_where_threads_hardly_lack_one() {
    let path = corpus().join("vm/funnel/fun_rpsfw_spread_perf_c4.perf.data.zst");
    let d = judge(&*holdup_open::open(&path).unwrap());
    assert_eq!(d.verdict.class, Class::Healthy, "{}", d.verdict.summary);
    assert!(d.verdict.summary.contains("except more CPUs (1.2"), "{}", d.verdict.summary);
}

/// "No simulated change makes the work faster" was reported where `whatif` said 1.20 times.
#[needs(corpus)]
#[test]
fn a_healthy_verdict_says_what_a_replay_gains_though_it_is_too_little() {
    let path = corpus().join("vm/funnel/fun_napi_off_c8.trace.dat.zst");
    let d = judge(&*holdup_open::open(&path).unwrap());
    assert_eq!(d.verdict.class, Class::Healthy, "{}", d.verdict.summary);
    let driver = d.findings.iter().find(|f| f.class == Class::FunneledDriver).unwrap();
    assert!(driver.ruled_out.is_some() && driver.worth.times > 1.15, "{driver:?}");
    let most = format!("more than {:.0} % faster", (driver.worth.times - 1.0) * 100.0);
    assert!(d.verdict.summary.contains(&most), "{}", d.verdict.summary);
}

/// On each of two CPUs a thread of the work and one of another program alternate for a second.
fn shared(comm: &str) -> Diagnosis {
    let turns = 250;
    let mut b = TraceBuilder::new(2)
        .task(5, 5, None, "perf")
        .task(10, 10, Some(5), "work")
        .task(11, 10, Some(10), "work")
        .task(20, 20, None, comm)
        .task(21, 20, Some(20), comm);
    for cpu in [0, 1] {
        b = b.switch(0, cpu, 0, 10 + cpu as u32, "R").wakeup_to(1, cpu, 0, 20 + cpu as u32, cpu);
    }
    for turn in 1..turns {
        let of =
            |turn: u64, cpu: u16| u32::from(cpu) + if turn.is_multiple_of(2) { 10 } else { 20 };
        for cpu in [0, 1] {
            b = b.switch(turn * 4 * MS, cpu, of(turn - 1, cpu), of(turn, cpu), "R");
        }
    }
    for cpu in [0, 1] {
        b = b.switch(turns * 4 * MS, cpu, 20 + cpu as u32, 0, "S");
    }
    judge(&b.build())
}

/// "Record again without them" was all that was said of a program that took half of the CPUs.
#[test]
fn other_programs_that_take_the_cpus_from_the_work_are_an_overload() {
    let d = shared("other");
    let of = overload(&d);
    assert_eq!(d.verdict.class, Class::CpuOverload, "{}", d.verdict.summary);
    assert!((1.9..2.1).contains(&of.worth.times), "{:?}", of.worth);
    assert!(of.summary.contains("other 50 %"), "{}", of.summary);
    assert!(of.advice[0].starts_with("keep the other programs off"), "{:?}", of.advice);
}

#[test]
fn a_recorder_that_takes_the_cpus_from_the_work_is_no_overload() {
    let d = shared("perf");
    assert_eq!(d.verdict.class, Class::NotEnoughEvidence, "{}", d.verdict.summary);
}
