//! Tasks that a runtime schedules on threads.

use holdup_attribution::{Attribution, WaitsBy, WaitsRow, analyze};
use holdup_passes::{Analysis, Options, Thread};
use holdup_testkit::TraceBuilder;
use holdup_trace::{Nanos, Parked, QualityCode, Runtime, What};

/// Semaphores of two mutexes.
const FIRST: u64 = 0x1004;
const SECOND: u64 = 0x2004;

trait Tells: Sized {
    /// On a channel or similar object with this address.
    fn parks_at(self, ts: Nanos, cpu: u16, tid: u32, task: u64, at: (u64, Parked)) -> Self;
    fn parks(self, ts: Nanos, cpu: u16, tid: u32, task: u64, why: Parked) -> Self {
        self.parks_at(ts, cpu, tid, task, (0, why))
    }
    /// On a lock with this semaphore.
    fn asks(self, ts: Nanos, cpu: u16, tid: u32, task: u64, lock: (u64, Parked)) -> Self;
}

impl Tells for TraceBuilder {
    fn parks_at(self, ts: Nanos, cpu: u16, tid: u32, task: u64, at: (u64, Parked)) -> Self {
        let (on, why) = at;
        self.event(ts, cpu, tid, ("go", "gopark"), What::TaskParks { task, on, why })
    }

    fn asks(self, ts: Nanos, cpu: u16, tid: u32, task: u64, lock: (u64, Parked)) -> Self {
        let (semaphore, why) = lock;
        self.does(ts, cpu, tid, Runtime::Asks, semaphore).parks(ts + 1, cpu, tid, task, why)
    }
}

/// Threads of a server, starting with 7, each on its own CPU from the beginning.
fn server(threads: u16) -> TraceBuilder {
    let thread = |cpu: u16| 7 + u32::from(cpu);
    let named = |b: TraceBuilder, cpu| b.task(thread(cpu), 7, None, "server");
    let made = (0..threads).fold(TraceBuilder::new(threads.into()), named);
    (0..threads).fold(made, |b, cpu| b.switch(0, cpu, 0, thread(cpu), "R"))
}

fn objects(a: &Analysis) -> Vec<WaitsRow> {
    Attribution::from(a).waits(WaitsBy::Object)
}

fn object<'a>(rows: &'a [WaitsRow], name: &str) -> &'a WaitsRow {
    let row = rows.iter().find(|r| r.object == name);
    row.unwrap_or_else(|| panic!("{:?}", rows.iter().map(|r| &r.object).collect::<Vec<_>>()))
}

fn task(a: &Analysis, address: u64) -> &Thread {
    a.all_threads().map(|(_, t)| t).find(|t| t.task == address).unwrap()
}

fn thread(a: &Analysis, tid: u32) -> &Thread {
    a.all_threads().map(|(_, t)| t).find(|t| t.tid.0 == tid).unwrap()
}

/// Task 0xa holds a mutex while it sleeps, and task 0xb waits for it, on the same thread 7.
fn over_a_sleep() -> TraceBuilder {
    TraceBuilder::new(2)
        .task(7, 7, None, "server")
        .switch(0, 0, 0, 7, "R")
        .does(10, 0, 7, Runtime::Runs, 0xa)
        .parks(20, 0, 7, 0xa, Parked::Sleep)
        .does(22, 0, 7, Runtime::Runs, 0xb)
        .asks(29, 0, 7, 0xb, (FIRST, Parked::Mutex))
        .does(32, 0, 7, Runtime::Idles, 0)
        .switch(35, 0, 7, 0, "S")
        .waking(130, 0, 0, 7)
        .wakeup(130, 0, 0, 7)
        .switch(132, 0, 0, 7, "R")
        .does(134, 0, 7, Runtime::Readies, 0xa)
        .does(135, 0, 7, Runtime::Runs, 0xa)
        .does(140, 0, 7, Runtime::GivesBack, FIRST)
        .does(141, 0, 7, Runtime::Readies, 0xb)
        .parks(150, 0, 7, 0xa, Parked::Sleep)
        .does(151, 0, 7, Runtime::Runs, 0xb)
}

#[test]
fn a_task_waits_for_a_lock_while_its_holder_sleeps() {
    let trace = over_a_sleep().switch(200, 0, 7, 0, "S").build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let rows = objects(&a);
    let lock = object(&rows, "sync.Mutex 0x1000");
    assert_eq!((lock.waits, lock.wait_total_ns, lock.usage), (1, 111, Some("mutex")));
    assert_eq!(lock.holders.len(), 1);
    assert_eq!(lock.holders[0].tid, task(&a, 0xa).tid.0);
    let did: Vec<_> = lock.holders_did.iter().map(|d| d.did).collect();
    assert_eq!(did, ["unknown"], "nobody followed it before it had something");
    let sleep = object(&rows, "time.Sleep");
    assert_eq!((sleep.waits, sleep.wait_total_ns), (2, 114 + 50), "the second lasts to the end");
}

#[test]
fn the_time_of_a_thread_is_that_of_the_tasks_it_runs() {
    let trace = over_a_sleep().switch(200, 0, 7, 0, "S").build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let ran = [task(&a, 0xa).running_ns, task(&a, 0xb).running_ns, thread(&a, 7).running_ns];
    assert_eq!(ran, [10 + 15, 8 + 49, 10 + 2 + 5 + 3 + 1]);
    assert_eq!(ran.iter().sum::<u64>(), 35 + 68, "all that the thread was on a CPU");
    assert_eq!(task(&a, 0xb).woken_ns, 10, "ready from 141 on");
    assert_eq!(
        (task(&a, 0xa).tid.words(), thread(&a, 7).tid.words()),
        ("goroutine #1".to_owned(), "tid 7".to_owned())
    );
    assert_eq!(a.comm(task(&a, 0xb)), "server");
}

#[test]
fn locks_of_one_process_are_told_apart_and_one_with_three_semaphores_is_one() {
    let trace = server(1)
        .does(10, 0, 7, Runtime::Runs, 0xa)
        .asks(11, 0, 7, 0xa, (FIRST, Parked::Mutex))
        .does(20, 0, 7, Runtime::Runs, 0xb)
        .asks(21, 0, 7, 0xb, (SECOND, Parked::Mutex))
        .does(30, 0, 7, Runtime::Runs, 0xc)
        .asks(31, 0, 7, 0xc, (0x3004, Parked::Mutex))
        .does(40, 0, 7, Runtime::Runs, 0xd)
        .asks(41, 0, 7, 0xd, (0x300c, Parked::ReadLock))
        .does(50, 0, 7, Runtime::Runs, 0xe)
        .asks(51, 0, 7, 0xe, (0x3008, Parked::WriteLock))
        .does(60, 0, 7, Runtime::Runs, 0xf)
        .does(61, 0, 7, Runtime::Readies, 0xa)
        .does(62, 0, 7, Runtime::Readies, 0xb)
        .does(63, 0, 7, Runtime::Readies, 0xc)
        .does(64, 0, 7, Runtime::Readies, 0xd)
        .does(65, 0, 7, Runtime::Readies, 0xe)
        .switch(100, 0, 7, 0, "S")
        .build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let rows = objects(&a);
    assert_eq!(object(&rows, "sync.Mutex 0x1000").waits, 1);
    assert_eq!(object(&rows, "sync.Mutex 0x2000").waits, 1);
    assert_eq!(object(&rows, "sync.RWMutex 0x3000").waits, 3);
}

#[test]
fn a_task_goes_from_thread_to_thread_and_sleeps_in_the_kernel_on_one() {
    let trace = server(2)
        .does(10, 0, 7, Runtime::Runs, 0xa)
        // In a long system call; meanwhile its processor (P) is given to another thread.
        .switch(20, 0, 7, 0, "S")
        .waking(50, 1, 8, 7)
        .wakeup(50, 1, 8, 7)
        .switch(51, 0, 0, 7, "R")
        // No processor is left for it.
        .does(60, 0, 7, Runtime::Idles, 0)
        .switch(65, 0, 7, 0, "S")
        .does(70, 1, 8, Runtime::Runs, 0xa)
        .parks(80, 1, 8, 0xa, Parked::Receive)
        .switch(100, 1, 8, 0, "S")
        .build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let t = task(&a, 0xa);
    assert_eq!((t.running_ns, t.blocked_ns - 20, t.preempted_ns), (10 + 9 + 10, 30, 10));
    assert_eq!((thread(&a, 7).running_ns, thread(&a, 8).running_ns), (10 + 5, 70 + 20));
}

#[test]
fn one_that_ends_leaves_its_place_to_another_and_all_end_with_the_process() {
    let trace = server(1)
        .does(10, 0, 7, Runtime::Runs, 0xa)
        .does(12, 0, 7, Runtime::Readies, 0xb)
        .does(20, 0, 7, Runtime::Ends, 0xa)
        .does(21, 0, 7, Runtime::Runs, 0xb)
        .does(30, 0, 7, Runtime::Readies, 0xa)
        .parks(40, 0, 7, 0xb, Parked::Receive)
        .does(41, 0, 7, Runtime::Runs, 0xa)
        .exit(60, 0, 7)
        .switch(70, 0, 7, 0, "X")
        .switch(1_000, 0, 0, 9, "R")
        .switch(1_010, 0, 9, 0, "S")
        .build();
    let a = analyze(&trace, &Options::default()).unwrap();
    assert_eq!(a.all_threads().filter(|(_, t)| t.task != 0).count(), 2);
    assert_eq!(task(&a, 0xa).running_ns, 10 + 19);
    assert_eq!((task(&a, 0xa).died, task(&a, 0xb).died), (Some(60), Some(60)));
    assert_eq!(task(&a, 0xb).blocked_ns, 20, "not until the trace ends");
    assert_eq!(thread(&a, 7).died, Some(70));
    assert_eq!(object(&objects(&a), "go statement").wait_total_ns, 10);
}

#[test]
fn one_that_waits_for_the_network_passes_no_queue_and_nothing_is_missing() {
    let trace = server(1)
        .does(10, 0, 7, Runtime::Runs, 0xa)
        .parks(20, 0, 7, 0xa, Parked::Io)
        .switch(30, 0, 7, 0, "S")
        .waking(60, 0, 0, 7)
        .wakeup(60, 0, 0, 7)
        .switch(62, 0, 0, 7, "R")
        .does(70, 0, 7, Runtime::Runs, 0xa)
        .switch(100, 0, 7, 0, "S")
        .build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let rows = objects(&a);
    let network = object(&rows, "network poller");
    assert_eq!((network.waits, network.wait_total_ns), (1, 50));
    assert_eq!(a.quality.count(QualityCode::MissingWakeup), 0);
}

#[test]
fn one_that_loses_its_thread_before_it_is_parked_waits_for_what_it_asked_for() {
    let trace = server(2)
        .does(10, 0, 7, Runtime::Runs, 0xa)
        .does(20, 0, 7, Runtime::Asks, FIRST)
        .does(21, 0, 7, Runtime::Runs, 0xb)
        .parks_at(30, 0, 7, 0xb, (0x5000, Parked::Receive))
        .does(40, 1, 8, Runtime::Runs, 0xa)
        .parks(50, 1, 8, 0xa, Parked::Mutex)
        .does(60, 0, 7, Runtime::Runs, 0xc)
        .does(70, 0, 7, Runtime::Readies, 0xa)
        .does(71, 0, 7, Runtime::Readies, 0xb)
        .switch(100, 0, 7, 0, "S")
        .build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let rows = objects(&a);
    assert_eq!(object(&rows, "sync.Mutex 0x1000").wait_total_ns, 20);
    assert_eq!(object(&rows, "chan 0x5000").wait_total_ns, 41);
}
