//! The ordered stream one event at a time, on the caller's thread.

use super::decode::Decoding;
use crate::{Batch, Event, Nanos, Quality, Reader, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The events of a trace in order, as an iterator: what [`super::drive`] passes to its sink,
/// without threads. Easier to use, several times as slow.
///
/// Ends at the first error, which makes the rest of the file unreadable.
pub struct Events<'a> {
    reader: &'a dyn Reader,
    /// Runs not begun yet, the earliest last.
    waiting: Vec<usize>,
    /// For each begun run, time and run number of its next event, and its index in `open`.
    heads: BinaryHeap<Reverse<(Nanos, usize, usize)>>,
    open: Vec<Open<'a>>,
    /// Indexes in `open` whose run has ended.
    free: Vec<usize>,
    /// The event handed out last: it is removed when the next one is asked for, so that its data
    /// stay valid until then.
    current: Option<(usize, usize)>,
    quality: Quality,
}

/// A run that has begun.
struct Open<'a> {
    run: Decoding<'a>,
    batch: Batch,
    at: usize,
    /// Nothing comes after this batch.
    ended: bool,
}

/// The events of `reader`, in order; see [`Events`].
pub fn events(reader: &dyn Reader) -> Events<'_> {
    let runs = reader.runs();
    let mut waiting: Vec<usize> = (0..runs.len()).collect();
    waiting.sort_by_key(|&run| Reverse((runs[run].first_ts, run)));
    Events {
        reader,
        waiting,
        heads: BinaryHeap::new(),
        open: Vec::new(),
        free: Vec::new(),
        current: None,
        quality: reader.quality().clone(),
    }
}

impl Events<'_> {
    /// The batch with the arguments and call chains of the event handed out last; `None` before
    /// the first and after the last.
    pub fn batch(&self) -> Option<&Batch> {
        self.current.map(|(_, place)| &self.open[place].batch)
    }

    /// What went wrong so far, opening included.
    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    fn advance(&mut self) -> Result<Option<Event>> {
        if let Some((run, place)) = self.current.take() {
            self.open[place].at += 1;
            self.queue(run, place)?;
        }
        while let Some(&run) = self.waiting.last() {
            let first = self.reader.runs()[run].first_ts;
            if self.heads.peek().is_some_and(|Reverse((ts, _, _))| *ts < first) {
                break;
            }
            self.waiting.pop();
            let place = self.begin(run);
            self.queue(run, place)?;
        }
        let Some(Reverse((_, run, place))) = self.heads.pop() else { return Ok(None) };
        self.current = Some((run, place));
        let open = &self.open[place];
        Ok(open.batch.events.get(open.at).copied())
    }

    /// Opens a run, reusing the place of an ended run if there is one.
    fn begin(&mut self, run: usize) -> usize {
        let run = Decoding::new(self.reader.decoder(run));
        match self.free.pop() {
            Some(place) => {
                let open = &mut self.open[place];
                (open.run, open.at, open.ended) = (run, 0, false);
                open.batch.clear();
                place
            }
            None => {
                self.open.push(Open { run, batch: Batch::new(), at: 0, ended: false });
                self.open.len() - 1
            }
        }
    }

    /// Adds the next event of a run to the heads, or the run's place to the free ones.
    fn queue(&mut self, run: usize, place: usize) -> Result<()> {
        let open = &mut self.open[place];
        while open.at >= open.batch.events.len() {
            if open.ended {
                self.free.push(place);
                return Ok(());
            }
            open.at = 0;
            open.ended = !open.run.fill(&mut open.batch)?;
            self.quality.absorb(&open.batch.quality);
        }
        self.heads.push(Reverse((open.batch.events[open.at].ts, run, place)));
        Ok(())
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        let next = self.advance();
        if next.is_err() {
            self.waiting.clear();
            self.heads.clear();
            self.current = None;
        }
        next.transpose()
    }
}
