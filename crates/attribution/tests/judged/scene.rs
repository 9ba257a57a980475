//! What the traces have in common: threads of a program, and sleeps that one of them ends.

use holdup_attribution::{Attribution, analyze};
use holdup_passes::{Analysis, Detail, Options, Slot};
use holdup_testkit::{MemTrace, TraceBuilder};

pub(crate) const READ: u32 = 0;
pub(crate) const WRITE: u32 = 1;
pub(crate) const YIELD: u32 = 24;
pub(crate) const NANOSLEEP: u32 = 35;
const GETPID: u32 = 39;
pub(crate) const GETPPID: u32 = 110;
pub(crate) const FUTEX: u32 = 202;
pub(crate) const WAIT: u64 = 0x80;
pub(crate) const WAKE: u64 = 0x81;
pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

/// A machine with this many CPUs on which everything that wakes threads is recorded.
pub(crate) fn machine(cpus: u32) -> TraceBuilder {
    TraceBuilder::new(cpus)
        .records("sched", "sched_wakeup")
        .records("irq", "irq_handler_entry")
        .records("raw_syscalls", "sys_enter")
}

/// A thread that makes a call at once: a thread without calls is taken for a kernel thread.
pub(crate) fn runs(trace: TraceBuilder, cpu: u16, tid: u32) -> TraceBuilder {
    trace
        .switch(0, cpu, 0, tid, "R")
        .sys_enter(1, cpu, tid, GETPID)
        .sys_exit(2, cpu, tid, GETPID, 7)
}

/// A machine with one thread of process 7 on each CPU: 7 on CPU 0, 8 on CPU 1 and so on.
pub(crate) fn busy(cpus: u32) -> TraceBuilder {
    (0..cpus).fold(machine(cpus), |trace, cpu| {
        let tid = 7 + cpu;
        runs(trace.task(tid, 7, None, &format!("w{cpu}")), cpu as u16, tid)
    })
}

/// All of them leave their CPUs: the end of the trace.
pub(crate) fn ends(trace: TraceBuilder, cpus: u32, at: u64) -> MemTrace {
    (0..cpus).fold(trace, |trace, cpu| trace.switch(at, cpu as u16, 7 + cpu, 0, "R")).build()
}

/// Thread `tid` of [`busy`] waits from `at` for `object`, until `waker` wakes it some time later.
pub(crate) fn waits(
    trace: TraceBuilder,
    (at, ns): (u64, u64),
    tid: u32,
    waker: u32,
    object: u64,
) -> TraceBuilder {
    let (cpu, by) = ((tid - 7) as u16, (waker - 7) as u16);
    trace
        .sys_enter_with(at, cpu, tid, FUTEX, &[object, WAIT, 2])
        .switch(at + 10, cpu, tid, 0, "S")
        .sys_enter_with(at + ns - 20, by, waker, FUTEX, &[object, WAKE, 1])
        .waking(at + ns - 10, by, waker, tid)
        .sys_exit(at + ns - 5, by, waker, FUTEX, 1)
        .switch(at + ns, cpu, 0, tid, "R")
        .sys_exit(at + ns + 10, cpu, tid, FUTEX, 0)
}

/// The analysis of it.
pub(crate) fn measured(trace: &MemTrace) -> Analysis {
    let options = Options { detail: Detail::Intervals, ..Options::default() };
    let analysis = analyze(trace, &options).unwrap();
    let ledger = Attribution::from(&analysis).ledger;
    let sum: u64 = ledger.leaves().map(|l| l.1).sum();
    assert_eq!(sum, ledger.capacity_ns, "the ledger closes");
    analysis
}

/// The number of the thread in a slot.
pub(crate) fn tid(analysis: &Analysis, slot: Slot) -> u32 {
    analysis.thread(slot).tid.0
}
