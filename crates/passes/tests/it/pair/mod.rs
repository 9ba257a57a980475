//! Two threads, and what one of them waits for until the other lets it go on: a mutex of their
//! process, or data.

use holdup_testkit::TraceBuilder;

pub(crate) const READ: u32 = 0;
pub(crate) const WRITE: u32 = 1;
pub(crate) const FUTEX: u32 = 202;
pub(crate) const WAIT: u64 = 0x80;
pub(crate) const WAKE: u64 = 0x81;

/// Both CPUs busy with 7 and 8, threads of one process, from the start; all waker events known.
pub(crate) fn two() -> TraceBuilder {
    TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("irq", "irq_handler_entry")
        .task(7, 7, None, "a")
        .task(8, 7, None, "b")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
}

/// 7 holds the mutex (the acquisition was not recorded); 8 waits from 20 to 50.
pub(crate) fn contended(base: TraceBuilder) -> TraceBuilder {
    contended_from(0, base, (WAIT, 2))
}

/// The same, shifted, with this kind of wait for this value of the word.
pub(crate) fn contended_from(
    at: u64,
    base: TraceBuilder,
    (wait, value): (u64, u64),
) -> TraceBuilder {
    base.sys_enter_with(at + 10, 1, 8, FUTEX, &[0x1000, wait, value])
        .switch(at + 20, 1, 8, 0, "S")
        .sys_enter_with(at + 45, 0, 7, FUTEX, &[0x1000, WAKE, 1])
        .waking(at + 50, 0, 7, 8)
        .sys_exit(at + 52, 0, 7, FUTEX, 1)
        .switch(at + 60, 1, 0, 8, "R")
        .sys_exit(at + 62, 1, 8, FUTEX, 0)
}

/// The same, and then 7 waits for this word from 70 on.
pub(crate) fn contended_again(word: u64) -> TraceBuilder {
    contended(two()).sys_enter_with(65, 0, 7, FUTEX, &[word, WAIT, 2]).switch(70, 0, 7, 0, "S")
}

/// The same, until 8 wakes it at 81.
pub(crate) fn contended_in_turn(word: u64) -> TraceBuilder {
    contended_again(word)
        .sys_enter_with(80, 1, 8, FUTEX, &[word, WAKE, 1])
        .waking(81, 1, 8, 7)
        .sys_exit(82, 1, 8, FUTEX, 1)
        .switch(90, 0, 0, 7, "R")
}

/// 8, of another process than 7, reads from a descriptor from 10 on until 7 writes at 30.
pub(crate) fn reads_until_written(base: TraceBuilder) -> TraceBuilder {
    base.task(7, 7, None, "writer")
        .task(8, 8, None, "reader")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .sys_enter_with(10, 1, 8, READ, &[3, 0, 1])
        .switch(20, 1, 8, 0, "S")
        .sys_enter_with(30, 0, 7, WRITE, &[4, 0, 1])
        .waking(31, 0, 7, 8)
        .sys_exit(32, 0, 7, WRITE, 1)
        .switch(33, 1, 0, 8, "R")
        .sys_exit(34, 1, 8, READ, 1)
}

/// A thread wakes the one that waits for the futex, which runs 10 ns later; each with its CPU.
pub(crate) fn woken(
    trace: TraceBuilder,
    at: u64,
    (cpu, waker): (u16, u32),
    (of_sleeper, sleeper): (u16, u32),
) -> TraceBuilder {
    trace
        .sys_enter_with(at, cpu, waker, FUTEX, &[0x1000, WAKE, 1])
        .waking(at + 1, cpu, waker, sleeper)
        .sys_exit(at + 2, cpu, waker, FUTEX, 1)
        .switch(at + 10, of_sleeper, 0, sleeper, "R")
        .sys_exit(at + 11, of_sleeper, sleeper, FUTEX, 0)
}
