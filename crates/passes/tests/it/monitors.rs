//! Monitors of Java, shown by probes: each thread sleeps on one word of its own for all of them.

use holdup_attribution::{Attribution, WaitsBy, WaitsRow, analyze};
use holdup_passes::{Detail, Options};
use holdup_testkit::TraceBuilder;
use holdup_trace::{Nanos, Runtime};

const FUTEX: u32 = 202;
const NANOSLEEP: u32 = 35;
/// `FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME`, `FUTEX_WAKE_PRIVATE`.
const WAIT: u64 = 0x189;
const WAKE: u64 = 0x81;
/// Words on which thread 8 sleeps for monitors, and for `LockSupport.park`.
const OF_MONITORS: u64 = 0x8028;
const OF_PARKER: u64 = 0x9028;
/// Two monitors.
const FIRST: u64 = 0x1000;
const SECOND: u64 = 0x2000;

trait Tells: Sized {
    /// Thread 8 goes to sleep on CPU 1.
    fn sleeps(self, ts: Nanos, word: u64) -> Self;
    /// Thread 7 wakes it from CPU 0.
    fn wakes(self, ts: Nanos, word: u64) -> Self;
}

impl Tells for TraceBuilder {
    fn sleeps(self, ts: Nanos, word: u64) -> Self {
        self.sys_enter_with(ts, 1, 8, FUTEX, &[word, WAIT, 0]).switch(ts + 1, 1, 8, 0, "S")
    }

    fn wakes(self, ts: Nanos, word: u64) -> Self {
        self.sys_enter_with(ts, 0, 7, FUTEX, &[word, WAKE, 1])
            .waking(ts + 1, 0, 7, 8)
            .wakeup(ts + 1, 0, 7, 8)
            .sys_exit(ts + 2, 0, 7, FUTEX, 1)
            .switch(ts + 3, 1, 0, 8, "R")
            .sys_exit(ts + 4, 1, 8, FUTEX, 0)
    }
}

/// Thread 7 holds the first monitor while it sleeps and 8 waits for it; then 8 waits to be notified
/// on it, then for the second.
fn program() -> TraceBuilder {
    TraceBuilder::new(2)
        .task(7, 7, None, "java")
        .task(8, 7, None, "java")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .does(10, 1, 8, Runtime::AsksMonitor, FIRST)
        .sleeps(11, OF_MONITORS)
        .sys_enter(20, 0, 7, NANOSLEEP)
        .switch(21, 0, 7, 0, "S")
        .waking(100, 0, 0, 7)
        .wakeup(100, 0, 0, 7)
        .switch(101, 0, 0, 7, "R")
        .sys_exit(102, 0, 7, NANOSLEEP, 0)
        .does(110, 0, 7, Runtime::GivesMonitor, FIRST)
        .wakes(111, OF_MONITORS)
        .does(130, 1, 8, Runtime::AwaitsMonitor, FIRST)
        .sleeps(131, OF_MONITORS + 4)
        .does(150, 0, 7, Runtime::GivesMonitor, FIRST)
        .wakes(151, OF_MONITORS + 4)
        .does(170, 1, 8, Runtime::AsksMonitor, SECOND)
        .sleeps(171, OF_MONITORS)
        .does(200, 0, 7, Runtime::GivesMonitor, SECOND)
        .wakes(201, OF_MONITORS)
}

fn objects(trace: TraceBuilder) -> Vec<WaitsRow> {
    let options = Options { detail: Detail::Edges, ..Options::default() };
    let a = analyze(&trace.build(), &options).unwrap();
    Attribution::from(&a).waits(WaitsBy::Object)
}

fn object<'a>(rows: &'a [WaitsRow], name: &str, usage: &str) -> &'a WaitsRow {
    let row = rows.iter().find(|r| r.object == name && r.usage == Some(usage));
    row.unwrap_or_else(|| panic!("{:?}", rows.iter().map(|r| &r.object).collect::<Vec<_>>()))
}

#[test]
fn one_word_is_as_many_monitors_as_its_thread_sleeps_for() {
    let rows = objects(program());
    let first = object(&rows, "monitor 0x1000", "mutex");
    assert_eq!((first.waits, first.wait_total_ns, first.holders[0].tid), (1, 100, 7));
    let notified = object(&rows, "monitor 0x1000", "condvar");
    assert_eq!((notified.waits, notified.wait_total_ns), (1, 20));
    assert_eq!(object(&rows, "monitor 0x2000", "mutex").wait_total_ns, 30);
    let waited = |r: &&WaitsRow| r.waits > 0 && r.kind == "futex";
    assert_eq!(rows.iter().filter(waited).count(), 3, "no other word was slept at");
}

#[test]
fn who_got_a_monitor_without_sleeping_sleeps_for_something_else_at_another_word() {
    let rows = objects(
        program()
            .does(220, 1, 8, Runtime::AsksMonitor, FIRST)
            .sleeps(221, OF_PARKER)
            .wakes(240, OF_PARKER),
    );
    assert_eq!(object(&rows, "monitor 0x1000", "mutex").waits, 1);
    assert_eq!(object(&rows, "0x9028", "condvar").wait_total_ns, 19);
}

#[test]
fn a_monitor_that_somebody_else_took_first_is_slept_for_again() {
    let rows = objects(program().sleeps(220, OF_MONITORS).wakes(240, OF_MONITORS));
    let second = object(&rows, "monitor 0x2000", "mutex");
    assert_eq!((second.waits, second.wait_total_ns), (2, 30 + 20));
}
