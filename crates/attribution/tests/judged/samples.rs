//! What samples of the running code say of time outside recorded calls.

use crate::scene::{GETPPID, MS, US, busy, ends, measured};
use holdup_attribution::{Attribution, Leaf};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::Nanos;

const USER: u64 = 0x40_1000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// Two threads compute for 100 ms, and are sampled once in each of them.
fn sampled(first: TraceBuilder, in_kernel: impl Fn(u64) -> bool) -> MemTrace {
    let address = |i| if in_kernel(i) { KERNEL } else { USER };
    let trace = (1..100).fold(first, |trace, i| {
        let at = i * MS + 500 * US;
        trace.sample(at, 0, 7, &[address(i)]).sample(at, 1, 8, &[USER])
    });
    ends(trace, 2, 100 * MS)
}

fn unrecorded(trace: &MemTrace) -> Option<Nanos> {
    Attribution::from(&measured(trace)).ledger.get(Leaf::KernelUnrecorded)
}

#[test]
fn samples_in_the_kernel_outside_calls_are_page_faults_or_unrecorded_calls() {
    let third = unrecorded(&sampled(busy(2), |i| i % 3 == 0)).unwrap();
    assert!(third.abs_diff(100 * MS / 3) < MS, "of thread 7 only: {third}");
}

#[test]
fn few_samples_in_the_kernel_say_nothing() {
    assert_eq!(unrecorded(&sampled(busy(2), |i| i % 20 == 0)), None);
}

#[test]
fn interrupts_and_recorded_calls_are_none_of_them() {
    let calls = (1..100).fold(busy(2), |trace, i| {
        let at = i * MS + 400 * US;
        match i % 2 {
            0 => trace.sys_enter(at, 0, 7, GETPPID).sys_exit(at + 200 * US, 0, 7, GETPPID, 1),
            _ => trace.softirq(at, at + 200 * US, 0, 7, 1),
        }
    });
    assert_eq!(unrecorded(&sampled(calls, |_| true)), None);
}
