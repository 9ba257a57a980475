//! What a trace cannot show is no proof of health.

use holdup_attribution::analyze;
use holdup_diagnose::{Class, Verdict, diagnose};
use holdup_passes::Options;
use holdup_testkit::{ChosenCalls, MemTrace, TraceBuilder};
use holdup_trace::{QualityCode, Reader};

const MPROTECT: u32 = 10;
const US: u64 = 1000;
const MS: u64 = 1000 * US;

fn verdict(trace: &dyn Reader) -> Verdict {
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
fn calls_that_never_lack_a_sibling_are_judged_by_their_ends() {
    let v = verdict(&two_that_change_memory([70, 70]));
    assert_eq!(v.class, Class::KernelLockConflict, "they never end together: {}", v.summary);
    assert!(v.summary.contains("mprotect"), "{}", v.summary);
    let v = verdict(&two_that_change_memory([70, 80]));
    assert_eq!(v.class, Class::Healthy, "strangers do not disturb: {}", v.summary);
}

/// Two workers of one process or of two, each of which runs 7 of 10 ms and sleeps for the rest.
/// Calls are not recorded, and wakers only if `wakers` is set.
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
    assert_eq!(v.class, Class::NotEnoughEvidence, "two programs: {}", v.summary);
    let v = verdict(&two_that_sleep([70, 80], true));
    assert_eq!(v.class, Class::Healthy, "two programs, and wake-ups: {}", v.summary);
    let v = verdict(&two_that_sleep([70, 70], true));
    assert_eq!(v.class, Class::Healthy, "an interrupt woke them: {}", v.summary);
}

/// Four threads that contend on two CPUs for `ms`.
fn busy(ms: u64) -> MemTrace {
    let mut b = TraceBuilder::new(2).sys_enter(0, 0, 71, 0).sys_exit(1, 0, 71, 0, 0);
    for (cpu, tids) in [(0, [71, 72]), (1, [81, 82])] {
        for i in 0..ms * 4 {
            let [from, to] = if i % 2 == 0 { tids } else { [tids[1], tids[0]] };
            b = b.switch(i * MS / 4, cpu, from, to, "R");
        }
    }
    b.build()
}

#[test]
fn three_milliseconds_show_a_moment() {
    let v = verdict(&busy(3));
    assert_eq!((v.class, v.confidence), (Class::NotEnoughEvidence, 0.0), "{}", v.summary);
    assert!(v.summary.contains("ms long"), "{}", v.summary);
    let v = verdict(&busy(300));
    assert_eq!(v.class, Class::CpuOverload, "{}", v.summary);
}

#[test]
fn one_event_in_a_thousand_is_no_evidence() {
    let lossy = |lost| {
        let mut trace = busy(300);
        trace.amend().1.add(QualityCode::LostEvents, lost);
        verdict(&trace)
    };
    let v = lossy(2_400_000);
    assert_eq!((v.class, v.confidence), (Class::NotEnoughEvidence, 0.0), "{}", v.summary);
    assert!(v.summary.contains("lost 99.9 %"), "{}", v.summary);
    assert_eq!(lossy(1000).class, Class::CpuOverload, "less than it kept");
}

#[test]
fn four_switches_in_ten_seconds_are_no_evidence() {
    let trace = TraceBuilder::new(2)
        .switch(0, 0, 0, 71, "R")
        .switch(0, 1, 0, 0, "R")
        .switch(10_000 * MS, 0, 71, 0, "S")
        .switch(10_001 * MS, 0, 0, 71, "R")
        .build();
    let v = verdict(&trace);
    assert_eq!(v.class, Class::NotEnoughEvidence, "{}", v.summary);
    assert!(v.summary.contains("switches in"), "{}", v.summary);
}

#[test]
fn a_cpu_of_two_without_an_event_leaves_no_verdict() {
    let only_one = |b: TraceBuilder| {
        let mut b =
            b.records("irq", "softirq_entry").sys_enter(0, 0, 71, 0).sys_exit(1, 0, 71, 0, 0);
        for i in 0..1200 {
            let [from, to] = if i % 2 == 0 { [71, 72] } else { [72, 71] };
            b = b.switch(i * MS / 4, 0, from, to, "R");
        }
        b.build()
    };
    assert_eq!(verdict(&only_one(TraceBuilder::new(1))).class, Class::CpuOverload);
    // Named in the trace, or only seen as a target.
    let said = only_one(TraceBuilder::new(2));
    let target = only_one(TraceBuilder::new(1).waking_to(MS, 0, 71, 73, 1));
    for trace in [said, target] {
        let v = verdict(&trace);
        assert_eq!(v.class, Class::NotEnoughEvidence, "{}", v.summary);
        assert!(v.summary.contains("1 of 2 CPUs"), "{}", v.summary);
    }
}

/// Eighty milliseconds with only switches were `healthy`, because nothing was found.
#[test]
fn a_few_switches_without_wake_ups_are_no_proof_of_health() {
    let mut b = TraceBuilder::new(2).task(71, 71, None, "a").task(72, 72, None, "b");
    for i in 0..22 {
        let now = i * 3600 * US;
        b = b.switch(now, 0, 0, 71, "R").switch(now + 2500 * US, 0, 71, 0, "S");
        b = b.switch(now + 10 * US, 1, 0, 72, "R").switch(now + 2600 * US, 1, 72, 0, "S");
    }
    let trace = b.build();
    let analysis = analyze(&trace, &Options::default()).unwrap();
    let d = diagnose(trace.info(), &analysis, None);
    assert_eq!(d.verdict.class, Class::NotEnoughEvidence, "{}", d.verdict.summary);
    assert!(d.verdict.summary.contains("wake-ups"), "{}", d.verdict.summary);
    assert!(d.next[0].starts_with("holdup record "), "what to record: {:?}", d.next);
}

/// A trace of 1.2 ms said "workload-imbalance" next to its verdict, and what to do about it.
#[test]
fn what_is_too_short_for_a_verdict_is_too_short_for_advice() {
    let of = |wall: u64| {
        let trace = TraceBuilder::new(2)
            .task(71, 71, None, "ls")
            .waking(0, 1, 0, 71)
            .switch(wall / 100, 0, 0, 71, "R")
            .switch(wall / 2, 1, 0, 72, "R")
            .switch(wall / 2 + 10 * US, 1, 72, 0, "S")
            .switch(wall, 0, 71, 0, "S")
            .build();
        let analysis = analyze(&trace, &Options::default()).unwrap();
        let d = diagnose(trace.info(), &analysis, None);
        d.findings.iter().filter(|f| f.ruled_out.is_none()).count()
    };
    assert_eq!(of(1200 * US), 0);
    assert!(of(800 * MS) > 0, "the same trace, long enough");
}

/// The advice for a sleep in D state of unknown cause must not lead back to the first advice.
#[test]
fn no_two_recordings_are_advised_in_turn() {
    const GETPPID: u32 = 110;
    let mut b = TraceBuilder::new(2).task(7, 7, Some(1), "w").switch(0, 1, 0, 0, "R");
    for i in 0..200 {
        let at = i * 1_000_000;
        b = b.switch(at, 0, 0, 7, "R").sys_enter(at + 10, 0, 7, GETPPID);
        b = b.switch(at + 20, 0, 7, 0, "D").waking(at + 990_000, 1, 0, 7);
        b = b.wakeup(at + 990_000, 1, 0, 7).sys_exit(at + 999_000, 0, 7, GETPPID, 1);
    }
    let all = b.build();
    let of = |reader: &dyn Reader| {
        let analysis = analyze(reader, &Options::default()).unwrap();
        let d = diagnose(reader.info(), &analysis, None);
        assert_eq!(d.verdict.class, Class::NotEnoughEvidence, "{}", d.verdict.summary);
        assert!(d.verdict.summary.contains("sleep uninterruptibly"), "{}", d.verdict.summary);
        d.next[0].clone()
    };
    assert_eq!(of(&all), "holdup record --duration 10s -o again.data");
    let chosen = ChosenCalls::of(&all, ["futex"]).expect("it has all calls");
    assert_eq!(of(&chosen), "holdup doctor");
}

/// Two programs that run their own code all the time, and call `mprotect` now and then.
fn two_that_compute() -> MemTrace {
    let mut b = TraceBuilder::new(2).task(71, 70, None, "a").task(72, 80, None, "b");
    for (cpu, tid) in [(0, 71), (1, 72)] {
        b = b.waking(0, cpu, 0, tid).switch(US, cpu, 0, tid, "R");
        for i in 1..100 {
            b = b.sys_enter(i * 10 * MS, cpu, tid, MPROTECT);
            b = b.sys_exit(i * 10 * MS + 5 * US, cpu, tid, MPROTECT, 0);
        }
        b = b.switch(1000 * MS, cpu, tid, 0, "S");
    }
    b.build()
}

/// Threads of Go that spun for a mutex were healthy with confidence 0.95.
#[test]
fn application_code_may_spin_instead_of_working() {
    let doubted = |v: &Verdict| v.reservations.iter().any(|why| why.contains("spins for a lock"));
    let all = two_that_compute();
    let v = verdict(&ChosenCalls::of(&all, ["futex"]).expect("it has all calls"));
    assert!(v.class == Class::Healthy && doubted(&v) && v.confidence < 0.9, "{v:?}");
    let v = verdict(&two_that_change_memory([70, 80]));
    assert!(v.class == Class::Healthy && !doubted(&v), "CPUs are busy in system calls: {v:?}");
}

/// The only thread of a server computes on CPU 0 of two, and no other task is recorded.
#[test]
fn of_some_tasks_a_cpu_without_events_is_no_gap() {
    let mut b = TraceBuilder::new(2).of_some_tasks().task(71, 71, None, "server");
    b = b.switch(0, 0, 0, 71, "R");
    for i in 0..400 {
        b = b.sys_enter(i * MS, 0, 71, 1).sys_exit(i * MS + US, 0, 71, 1, 1);
    }
    let v = verdict(&b.switch(400 * MS, 0, 71, 0, "S").build());
    assert!(!v.summary.contains("have no event"), "{}", v.summary);
}

/// A server that syncs a file for 8 of 10 ms was recorded alone, and other programs, which were
/// not, ran on the CPUs it left: most of capacity is unaccounted for. What it waited for is known.
#[test]
fn of_some_tasks_what_they_waited_for_holds_whatever_others_did() {
    const FDATASYNC: u32 = 75;
    let mut b = TraceBuilder::new(2).of_some_tasks().task(71, 71, None, "server");
    b = b.switch(0, 0, 0, 71, "R");
    for at in (0..100).map(|i| i * 10 * MS) {
        let next = if at % (20 * MS) == 0 { 0 } else { 99 };
        b = b
            .sys_enter(at + 2 * MS, 0, 71, FDATASYNC)
            .switch(at + 2 * MS + US, 0, 71, next, "D")
            .switch(at + 10 * MS - US, 0, next, 71, "R")
            .sys_exit(at + 10 * MS - 500, 0, 71, FDATASYNC, 0);
    }
    let v = verdict(&b.switch(1000 * MS, 0, 71, 0, "S").build());
    assert_eq!(v.class, Class::IoBound, "{v:?}");
    assert!(v.confidence < 0.7, "{v:?}");
}
