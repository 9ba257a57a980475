//! A trace from which events are missing without a word about it.

use holdup_trace::{Cpu, Event, EventId, Opened, Reader, RunDecoder, Sieve, Tid, What};

/// What is missing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(dead_code)] // each test uses its own
pub(crate) enum Missing {
    /// So many events in a hundred, by a hash of their time and CPU: always the same ones.
    Percent(u32),
    /// Every event of a CPU's idle task.
    IdleTask(Cpu),
    /// Every event of a task, as `--exclude-perf` leaves them out.
    Task(Tid),
    /// Every wake-up.
    WakeUps,
}

impl Missing {
    fn takes(self, e: &Event) -> bool {
        match self {
            Missing::Percent(n) => {
                let x = (e.ts ^ (e.cpu.0 as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let hash = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
                hash < (u32::MAX / 100 * n) as u64
            }
            _ if e.id == EventId::SIDEBAND => false,
            Missing::IdleTask(cpu) => e.tid == Tid::IDLE && e.cpu == cpu,
            Missing::Task(tid) => e.tid == tid,
            Missing::WakeUps => {
                matches!(e.what, What::Waking { .. } | What::Wakeup { .. } | What::WakeupNew { .. })
            }
        }
    }
}

/// The trace without these events.
pub(crate) struct Thinned<'a> {
    reader: &'a dyn Reader,
    opened: Opened,
    missing: Missing,
}

impl<'a> Thinned<'a> {
    pub(crate) fn of(reader: &'a dyn Reader, missing: Missing) -> Thinned<'a> {
        Thinned { reader, opened: reader.opened().clone(), missing }
    }
}

impl Reader for Thinned<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        Box::new(Sieve(self.reader.decoder(run), |e: &mut Event| !self.missing.takes(e)))
    }
}
