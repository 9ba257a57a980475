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
    assert_eq!(why, "replayed with more CPUs the work is only 1.00 times as fast", "{of:?}");
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
