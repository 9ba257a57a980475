//! On which CPUs events happened.

use holdup_attribution::analyze;
use holdup_passes::{Analysis, Options};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{Cpu, QualityCode, StackRef, What};

const CYCLES: (&str, &str) = ("", "cycles");
const SAMPLE: What = What::Sample { period: 1, stack: StackRef::NONE };

fn run(trace: &MemTrace) -> Analysis {
    analyze(trace, &Options::default()).unwrap()
}

fn cpus(a: &Analysis) -> Vec<u16> {
    a.cpu_rows().iter().map(|row| row.cpu).collect()
}

#[test]
fn a_cpu_exists_whatever_its_events_are() {
    // Counters do not tell which thread was on the CPU before or after.
    let a = run(&TraceBuilder::new(0)
        .event(0, 3, 7, CYCLES, SAMPLE)
        .event(100, 5, 7, CYCLES, SAMPLE)
        .build());
    assert_eq!(cpus(&a), [3, 5]);
    assert_eq!(a.quality.count(QualityCode::SilentCpu), 0);
}

#[test]
fn only_cpus_without_any_event_are_silent() {
    let a = run(&TraceBuilder::new(4)
        .switch(0, 0, 0, 7, "R")
        .event(50, 1, 8, CYCLES, SAMPLE)
        .switch(100, 0, 7, 0, "S")
        .build());
    assert_eq!(cpus(&a), [0, 1, 2, 3]);
    assert_eq!(a.quality.count(QualityCode::SilentCpu), 2);
}

#[test]
fn events_without_a_cpu_make_nobody_ready_for_ever() {
    let nowhere = Cpu::UNKNOWN.0;
    let a = run(&TraceBuilder::new(4)
        .switch(0, nowhere, 0, 7, "R")
        .wakeup(10, nowhere, 7, 9)
        .waking(20, nowhere, 7, 10)
        .switch(1000, nowhere, 7, 0, "S")
        .build());
    assert_eq!(a.threads().map(|(_, t)| t.woken_ns + t.preempted_ns).sum::<u64>(), 0);
    assert_eq!(a.mean_queue_milli(), 0);
    assert_eq!(a.cpu_rows().iter().map(|r| r.unaccounted_ns).sum::<u64>(), 4 * 1000);
}

#[test]
fn without_a_cpu_in_any_event_no_cpu_is_silent_and_no_share_is_0() {
    let nowhere = u16::MAX;
    let a = run(&TraceBuilder::new(4)
        .switch(0, nowhere, 0, 7, "R")
        .waking(20, nowhere, 7, 10)
        .switch(100, nowhere, 7, 0, "S")
        .build());
    assert_eq!(a.quality.count(QualityCode::SilentCpu), 0);
    let sar = &a.sar(false)[0];
    assert_eq!((sar.pct_usr, sar.pct_wio, sar.pct_idle), (None, None, None));
    assert_eq!(sar.pct_unaccounted, 100.0);
}

/// A recording of system calls alone printed `%wio 0.00` and `%idle 0.00`.
#[test]
fn without_switches_nobody_knows_whether_a_cpu_idled() {
    const READ: u32 = 0;
    let calls = || {
        TraceBuilder::new(1)
            .only_these_events()
            .sys_enter(0, 0, 7, READ)
            .sys_exit(100, 0, 7, READ, 1)
            .sys_enter(900, 0, 8, READ)
            .sys_exit(1000, 0, 8, READ, 1)
    };
    let idle = |t: TraceBuilder| {
        let a = run(&t.build());
        (a.sar(false)[0].pct_idle, a.sar(false)[0].pct_wio, a.cpu_rows()[0].iowait_ns)
    };
    assert_eq!(idle(calls()), (None, None, None));
    let with = calls().switch(1100, 0, 8, 0, "S").switch(2000, 0, 0, 8, "R");
    assert_eq!(idle(with), (Some(45.0), Some(0.0), Some(0)));
}
