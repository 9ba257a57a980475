//! Threads that try for a lock between naps, in ways that a trace does not show.

use crate::TraceBuilder;
use holdup_trace::Nanos;

const US: Nanos = 1_000;
const NANOSLEEP: u32 = 230;
/// The CPU and the thread of each process.
const PROCESSES: [(u16, u32); 2] = [(0, 7), (1, 8)];

/// Two processes of one program, each on a CPU of its own, that nap whenever nothing else is said.
pub struct Napping(TraceBuilder);

impl Napping {
    /// How long a nap takes.
    pub const NAP: Nanos = 1_000 * US;
    /// How long a try for a lock takes.
    pub const TRY: Nanos = 20 * US;

    /// Both nap from the beginning.
    pub fn begin() -> Napping {
        let trace = TraceBuilder::new(2)
            .records("sched", "sched_wakeup")
            .records("irq", "irq_handler_entry");
        Napping(PROCESSES.into_iter().fold(trace, |trace, (cpu, tid)| {
            trace
                .task(tid, tid, None, "worker")
                .switch(0, cpu, 0, tid, "R")
                .sys_enter(US, cpu, tid, NANOSLEEP)
                .switch(2 * US, cpu, tid, 0, "S")
        }))
    }

    /// The first or second process is awake for `ns` between two naps.
    pub fn awake(self, at: Nanos, process: usize, ns: Nanos) -> Napping {
        let (cpu, tid) = PROCESSES[process];
        Napping(
            self.0
                .irq(at, at + 2 * US, cpu, 0, 9)
                .waking(at + US, cpu, 0, tid)
                .switch(at + 3 * US, cpu, 0, tid, "R")
                .sys_exit(at + 4 * US, cpu, tid, NANOSLEEP, 0)
                .sys_enter(at + 4 * US + ns, cpu, tid, NANOSLEEP)
                .switch(at + 5 * US + ns, cpu, tid, 0, "S"),
        )
    }

    /// Each in turn is awake for nine naps of the other, which is awake for `each` after a nap.
    pub fn in_turn(turns: u64, each: Nanos) -> TraceBuilder {
        let step = Napping::NAP + each;
        let all = (0..turns).fold(Napping::begin(), |all, turn| {
            let from = 1_000 * US + turn * 10 * step;
            let holds = (turn % 2) as usize;
            let tries = (0..9).map(|i| from + 100 * US + i * step);
            let all = all.awake(from, holds, 9 * step);
            tries.fold(all, |all, at| all.awake(at, 1 - holds, each))
        });
        all.trace()
    }

    /// The trace.
    pub fn trace(self) -> TraceBuilder {
        self.0
    }
}
