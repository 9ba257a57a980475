//! A trace from which events are missing without a word about it.

use holdup_trace::{Batch, Event, Quality, Reader, Result, Run, RunDecoder, TraceInfo};

/// Drops one event in ten, by a hash of its time and CPU: always the same ones.
pub(crate) struct Thinned(pub(crate) Box<dyn Reader>);

struct Sieve<'a>(Box<dyn RunDecoder + 'a>);

fn dropped(e: &Event) -> bool {
    let x = (e.ts ^ (e.cpu.0 as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32 < (u32::MAX / 10) as u64
}

impl Reader for Thinned {
    fn info(&self) -> &TraceInfo {
        self.0.info()
    }

    fn quality(&self) -> &Quality {
        self.0.quality()
    }

    fn amend(&mut self) -> (&mut TraceInfo, &mut Quality) {
        self.0.amend()
    }

    fn runs(&self) -> &[Run] {
        self.0.runs()
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        Box::new(Sieve(self.0.decoder(run)))
    }
}

impl RunDecoder for Sieve<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let more = self.0.fill(batch)?;
        batch.events.retain(|e| !dropped(e));
        Ok(more)
    }
}
