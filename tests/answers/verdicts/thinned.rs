//! A trace from which events are missing without a word about it.

use holdup_trace::{
    Batch, Cpu, Event, EventId, Quality, Reader, Result, Run, RunDecoder, Tid, TraceInfo, What,
};

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
pub(crate) struct Thinned<'a>(pub(crate) &'a dyn Reader, pub(crate) Missing);

struct Sieve<'a>(Box<dyn RunDecoder + 'a>, Missing);

impl Reader for Thinned<'_> {
    fn info(&self) -> &TraceInfo {
        self.0.info()
    }

    fn quality(&self) -> &Quality {
        self.0.quality()
    }

    fn amend(&mut self) -> (&mut TraceInfo, &mut Quality) {
        unreachable!("only who opens a file amends what it says")
    }

    fn runs(&self) -> &[Run] {
        self.0.runs()
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        Box::new(Sieve(self.0.decoder(run), self.1))
    }
}

impl RunDecoder for Sieve<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let more = self.0.fill(batch)?;
        batch.events.retain(|e| !self.1.takes(e));
        Ok(more)
    }
}
