//! What a trace cannot show is no proof of health.

use holdup_attribution::analyze;
use holdup_diagnose::{Class, Verdict, diagnose};
use holdup_passes::Options;
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::Reader;

const MPROTECT: u32 = 10;
const US: u64 = 1000;
const MS: u64 = 1000 * US;

fn verdict(trace: &MemTrace) -> Verdict {
    let analysis = analyze(trace, &Options::default()).unwrap();
    diagnose(trace.info(), &analysis, None).verdict
}

/// Two threads that both change their memory all the time, of one process or of two.
fn two_that_change_memory(pids: [u32; 2]) -> MemTrace {
    let mut b = TraceBuilder::new(2)
        .task(71, pids[0], None, "a")
        .task(72, pids[1], None, "b")
        .waking(0, 0, 0, 71);
    for (cpu, tid) in [(0, 71), (1, 72)] {
        b = b.switch(US, cpu, 0, tid, "R");
        let mut now = (5 + cpu as u64 * 13) * US;
        for i in 0..6000u64 {
            let length = (40 + (i * 7 + cpu as u64 * 3) % 11) * US;
            b = b.sys_enter(now, cpu, tid, MPROTECT);
            b = b.sys_exit(now + length, cpu, tid, MPROTECT, 0);
            now += length + (2 + (i * 5 + cpu as u64) % 4) * US;
        }
        b = b.switch(now, cpu, tid, 0, "S");
    }
    b.build()
}

#[test]
fn calls_that_never_lack_a_sibling_cannot_be_judged() {
    let v = verdict(&two_that_change_memory([70, 70]));
    assert_eq!(v.class, Class::NotEnoughEvidence, "{}", v.summary);
    assert!(v.summary.contains("mprotect"), "{}", v.summary);
    let v = verdict(&two_that_change_memory([70, 80]));
    assert_eq!(v.class, Class::Healthy, "strangers do not disturb: {}", v.summary);
}

/// Two workers of one process or of two, each of which runs 7 of 10 ms and sleeps for the rest;
/// calls are not recorded, and wakers only if an interrupt is to be seen to wake them.
fn two_that_sleep(pids: [u32; 2], wakers: bool) -> MemTrace {
    let mut b = TraceBuilder::new(2).task(71, pids[0], None, "a").task(72, pids[1], None, "b");
    for (cpu, tid) in [(0, 71), (1, 72)] {
        for i in 0..60 {
            let start = i * 10 * MS + cpu as u64 * 3 * MS;
            if wakers {
                b = b.waking(start, cpu, 0, tid);
            }
            b = b.switch(start, cpu, 0, tid, "R").switch(start + 7 * MS, cpu, tid, 0, "S");
        }
    }
    b.build()
}

#[test]
fn workers_of_one_program_need_an_alibi_for_their_sleep() {
    let v = verdict(&two_that_sleep([70, 70], false));
    assert_eq!(v.class, Class::NotEnoughEvidence, "{}", v.summary);
    let v = verdict(&two_that_sleep([70, 80], false));
    assert_eq!(v.class, Class::Healthy, "two programs: {}", v.summary);
    let v = verdict(&two_that_sleep([70, 70], true));
    assert_eq!(v.class, Class::Healthy, "an interrupt woke them: {}", v.summary);
}
