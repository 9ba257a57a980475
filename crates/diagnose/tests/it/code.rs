//! The code around what threads wait for, in hand-made traces. The code's files do not exist, so
//! places have names of files, not of functions.

use holdup_attribution::{Attribution, analyze_observed};
use holdup_diagnose::phases::{self, Wanted};
use holdup_diagnose::{Extras, Thresholds, diagnose_with_extras};
use holdup_passes::{Options, Selection};
use holdup_profile::{Around, CodeObserver, KnowsCode, Spot};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{Reader, Tid};

const FUTEX: u32 = 202;
const WORD: u64 = 0x7000;
const WAIT: [u64; 4] = [WORD, 128, 2, 0];
const WAKE: [u64; 4] = [WORD, 129, 1, 0];
const PROGRAM: u64 = 0x10_0000;
const LIBRARY: u64 = 0x20_0000;
/// When the second thread sleeps.
const SLEEP: (u64, u64) = (1_100_000, 5_100_000);

/// Two threads; the second waits 4 ms for a mutex that the first holds, whose code is sampled three
/// times, once before the wait.
fn trace() -> TraceBuilder {
    TraceBuilder::new(2)
        .task(11, 10, None, "prog")
        .task(12, 10, None, "prog")
        .mapped(1, 10, PROGRAM, 0x1000, "/opt/prog")
        .mapped(1, 10, LIBRARY, 0x1000, "/lib/libc.so.6")
        .switch(10, 0, 0, 11, "R")
        .switch(20, 1, 0, 12, "R")
        .sample(500_000, 0, 11, &[PROGRAM + 0x700])
        .sys_enter_with(1_000_000, 1, 12, FUTEX, &WAIT)
        .chain(SLEEP.0, 1, 12, &[LIBRARY + 0x10, PROGRAM + 0x100])
        .switch(SLEEP.0, 1, 12, 0, "S")
        .sample(2_000_000, 0, 11, &[PROGRAM + 0x200])
        .sample(3_000_000, 0, 11, &[LIBRARY + 0x80, PROGRAM + 0x300])
        .sys_enter_with(5_000_000, 0, 11, FUTEX, &WAKE)
        .chain(SLEEP.1, 0, 11, &[LIBRARY + 0x20, PROGRAM + 0x400])
        .waking(SLEEP.1, 0, 11, 12)
        // What runs on the CPU that the thread goes to is unrelated.
        .chain(SLEEP.1 + 50, 1, 0, &[LIBRARY + 0x30])
        .wakeup(SLEEP.1 + 50, 1, 0, 12)
        .sys_exit(SLEEP.1 + 80, 0, 11, FUTEX, 1)
        .switch(SLEEP.1 + 100, 1, 0, 12, "R")
        .sys_exit(SLEEP.1 + 200, 1, 12, FUTEX, 0)
        .switch(9_000_000, 1, 12, 0, "S")
        .switch(10_000_000, 0, 11, 0, "S")
}

/// The code around the mutex, and around the thread that holds it, between two times.
fn around(trace: &MemTrace, span: (u64, u64)) -> (Option<Around>, Option<Around>) {
    let (from, to) = (Some(span.0), Some(span.1));
    let options = Options::from(Selection { from, to, ..Selection::default() });
    let mut observer = CodeObserver::new(trace.info()).unwrap();
    let analysis = analyze_observed(trace, &options, &mut observer).unwrap();
    let words = Attribution::from(&analysis).object_words();
    let found = observer.finish(trace.info(), &analysis, &words, Default::default());
    let of_word = format!("{WORD:#x}");
    let mut mutexes = words.values().filter(|words| words.contains(&of_word));
    let object = mutexes.next().and_then(|words| found.object(std::slice::from_ref(words)));
    (object, found.thread(Tid(11)))
}

/// The trace, with calls that the first thread makes meanwhile.
fn with_calls(trace: TraceBuilder) -> TraceBuilder {
    const FSYNC: u32 = 74;
    trace
        // Half of it before the other began to wait.
        .sys_enter(1_000_000, 0, 11, FSYNC)
        .sys_exit(1_200_000, 0, 11, FSYNC, 0)
        .sys_enter(3_500_000, 0, 11, FSYNC)
        .sys_exit(4_400_000, 0, 11, FSYNC, 0)
        .sys_enter_with(4_500_000, 0, 11, FUTEX, &WAKE)
        .sys_exit(4_600_000, 0, 11, FUTEX, 0)
}

/// File, function called there, time slept, samples, share.
type Counted<'a> = (&'a str, &'a str, Option<u64>, Option<u64>, f64);

fn counts(spots: &[Spot]) -> Vec<Counted<'_>> {
    spots
        .iter()
        .map(|s| {
            let (dso, through) = (s.dso.as_deref(), s.through.as_deref());
            (dso.unwrap_or_default(), through.unwrap_or_default(), s.ns, s.samples, s.pct)
        })
        .collect()
}

#[test]
fn calls_of_who_has_it_are_told() {
    let (object, thread) = around(&with_calls(trace()).build(), (0, u64::MAX));
    let calls = object.unwrap().calls;
    let shown: Vec<(&str, u64, f64)> =
        calls.iter().map(|c| (c.call.as_str(), c.ns, c.pct)).collect();
    assert_eq!(shown, [("fsync", 1_000_000, 25.0)], "calls to wake others are left out");
    assert!(thread.unwrap().calls.is_empty());
    let (object, _) = around(&trace().build(), (0, u64::MAX));
    assert!(object.unwrap().calls.is_empty());
}

#[test]
fn a_wait_has_the_code_of_both_sides() {
    let trace = trace().build();
    let (object, thread) = around(&trace, (0, u64::MAX));
    let object = object.unwrap();
    let ns = Some(SLEEP.1 - SLEEP.0);
    assert_eq!(counts(&object.waits), [("prog", "libc.so.6", ns, None, 100.0)]);
    assert_eq!(counts(&object.wakes), [("prog", "libc.so.6", ns, None, 100.0)]);
    let while_it_slept =
        [("prog", "", None, Some(1), 50.0), ("prog", "libc.so.6", None, Some(1), 50.0)];
    assert_eq!(counts(&object.runs), while_it_slept);
    let all = thread.unwrap();
    assert_eq!(all.runs.iter().filter_map(|s| s.samples).sum::<u64>(), 3);
    assert!(all.waits.is_empty() && all.wakes.is_empty());
}

#[test]
fn what_lies_outside_of_the_judged_part_does_not_count() {
    let trace = trace().build();
    let (object, thread) = around(&trace, (2_500_000, u64::MAX));
    // The sleep began before, where its code is known.
    let object = object.unwrap();
    let slept = |spots: &[Spot]| spots.iter().filter_map(|s| s.ns).sum::<u64>();
    assert_eq!((slept(&object.waits), slept(&object.wakes)), (2_600_000, 2_600_000));
    assert_eq!(thread.unwrap().runs.iter().filter_map(|s| s.samples).sum::<u64>(), 1);
}

#[test]
fn a_wake_up_by_an_interrupt_is_nobodys_code() {
    let handled = TraceBuilder::new(1)
        .task(12, 10, None, "prog")
        .mapped(1, 10, PROGRAM, 0x1000, "/opt/prog")
        .switch(10, 0, 0, 12, "R")
        .sys_enter_with(1_000_000, 0, 12, FUTEX, &WAIT)
        .chain(SLEEP.0, 0, 12, &[PROGRAM + 0x100])
        .switch(SLEEP.0, 0, 12, 0, "S")
        .chain(SLEEP.1, 0, 0, &[PROGRAM + 0x900])
        .waking(SLEEP.1, 0, 0, 12)
        .wakeup(SLEEP.1, 0, 0, 12)
        .switch(SLEEP.1 + 100, 0, 0, 12, "R")
        .sys_exit(SLEEP.1 + 200, 0, 12, FUTEX, 0)
        .switch(9_000_000, 0, 12, 0, "S")
        .build();
    let (object, _) = around(&handled, (0, u64::MAX));
    let object = object.unwrap();
    assert_eq!(counts(&object.waits), [("prog", "", Some(SLEEP.1 - SLEEP.0), None, 100.0)]);
    assert!(object.wakes.is_empty() && object.runs.is_empty());
}

#[test]
fn without_chains_there_is_nothing_and_the_report_says_how_to_get_them() {
    let thread = |builder: TraceBuilder, me: u32, other: u32, at: u64| {
        let cpu = (me - 11) as u16;
        builder
            .sys_enter_with(at, cpu, me, FUTEX, &WAIT)
            .switch(at + 100, cpu, me, 0, "S")
            .sys_enter_with(at + 800_000, 1 - cpu, other, FUTEX, &WAKE)
            .waking(at + 800_100, 1 - cpu, other, me)
            .wakeup(at + 800_200, cpu, 0, me)
            .sys_exit(at + 800_300, 1 - cpu, other, FUTEX, 1)
            .switch(at + 800_400, cpu, 0, me, "R")
            .sys_exit(at + 800_500, cpu, me, FUTEX, 0)
    };
    let mut builder = TraceBuilder::new(2)
        .task(11, 10, None, "prog")
        .task(12, 10, None, "prog")
        .switch(10, 0, 0, 11, "R")
        .switch(20, 1, 0, 12, "R");
    for turn in 0..200 {
        let (me, other) = if turn % 2 == 0 { (11, 12) } else { (12, 11) };
        builder = thread(builder, me, other, 1_000_000 * (turn + 1));
    }
    let trace = builder.build();
    let judged =
        phases::read(&trace, &Options::default(), &Thresholds::default(), Wanted::default())
            .unwrap();
    let judged =
        diagnose_with_extras(trace.info(), &judged, Extras::default(), Thresholds::default());
    let finding = judged.findings.iter().find(|f| f.rule == "thread-serialization").unwrap();
    assert_eq!(finding.ruled_out, None, "{finding:?}");
    assert!(finding.culprits.iter().all(|c| c.code.is_none()));
    let says = finding.advice.iter().filter(|a| a.contains("holdup record -g")).count();
    assert_eq!(says, 1, "{:?}", finding.advice);
    assert!(judged.code_remarks.is_empty());
}
