//! A trace many times in a row: a long one, without a large file.

use holdup_trace::{Batch, Nanos, Opened, Reader, Result, Run, RunDecoder};

/// The events of a trace again and again, each time later. The threads repeat what they did;
/// between repetitions their states do not fit, as if events were missing.
pub struct Repeated<'a> {
    reader: &'a dyn Reader,
    opened: Opened,
    first: Nanos,
    period: Nanos,
}

impl Repeated<'_> {
    /// A view with `times` repetitions. `None` if the trace is empty.
    pub fn new(reader: &dyn Reader, times: u64) -> Option<Repeated<'_>> {
        let (first, last) = reader.info().span?;
        let period = last - first + 1;
        let mut opened = reader.opened().clone();
        opened.info.span = Some((first, last + period * times.saturating_sub(1)));
        let run =
            |again: u64, run: &Run| Run { first_ts: run.first_ts.max(first) + again * period };
        let runs = (0..times).flat_map(|again| reader.runs().iter().map(move |r| run(again, r)));
        opened.runs = runs.collect();
        Some(Repeated { reader, opened, first, period })
    }
}

impl Reader for Repeated<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        let of = self.reader.runs().len();
        let (inner, later) = (self.reader.decoder(run % of), (run / of) as Nanos * self.period);
        Box::new(Later { inner, first: self.first, later })
    }
}

struct Later<'a> {
    inner: Box<dyn RunDecoder + 'a>,
    first: Nanos,
    later: Nanos,
}

impl RunDecoder for Later<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let more = self.inner.fill(batch)?;
        for event in &mut batch.events {
            // Records of the recorder may have no time, or one before the first event.
            event.ts = event.ts.max(self.first) + self.later;
        }
        Ok(more)
    }
}
