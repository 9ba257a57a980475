//! The decoding stage: one batch of a run at a time, ahead of the order stage or on demand.

use super::receive;
use crate::{Batch, Event, Nanos, QualityCode, Reader, Result, RunDecoder};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A run that is being decoded.
pub(super) struct Decoding<'a> {
    decoder: Box<dyn RunDecoder + 'a>,
    /// Time of the last decoded event, to check the decoder's promise.
    last_ts: Nanos,
}

impl<'a> Decoding<'a> {
    pub(super) fn new(decoder: Box<dyn RunDecoder + 'a>) -> Decoding<'a> {
        Decoding { decoder, last_ts: 0 }
    }

    /// Fill `batch` with the next events; false at the end of the run.
    pub(super) fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let more = self.decoder.fill(batch);
        // Done here because the events are still in this core's cache.
        let late = hold_to_order(&mut batch.events, &mut self.last_ts);
        batch.quality.add(QualityCode::TimeBackwards, late);
        more
    }
}

/// A run on its way to a decoder thread, with a batch to fill.
pub(super) struct Job<'a> {
    run: Decoding<'a>,
    batch: Batch,
    reply: Sender<Done<'a>>,
}

/// The answer to a job.
pub(super) struct Done<'a> {
    run: Decoding<'a>,
    batch: Batch,
    more: Result<bool>,
}

/// The loop of a decoder thread.
pub(super) fn work(queue: &Mutex<Receiver<Job<'_>>>) {
    loop {
        let job = match queue.lock() {
            Ok(queue) => receive(&queue),
            Err(_) => return,
        };
        let Ok(Job { mut run, mut batch, reply }) = job else { return };
        let more = run.fill(&mut batch);
        // The order stage may have stopped listening; that is no error.
        let _ = reply.send(Done { run, batch, more });
    }
}

/// Where the next batch of an open run comes from.
pub(super) enum Next<'a> {
    /// The run has ended.
    Nowhere,
    /// It is decoded on demand.
    Here(Decoding<'a>),
    /// A decoder thread fills it.
    Ahead(Sender<Done<'a>>, Receiver<Done<'a>>),
}

/// Where to send jobs for decoder threads, if there are any.
pub(super) type Jobs<'a> = Option<Sender<Job<'a>>>;

impl<'a> Next<'a> {
    /// Starts run number `run` of `reader`. `spare` gives empty batches.
    pub(super) fn open(
        reader: &'a dyn Reader,
        run: u32,
        jobs: &Jobs<'a>,
        spare: impl FnOnce() -> Batch,
    ) -> Next<'a> {
        let run = Decoding::new(reader.decoder(run as usize));
        let Some(jobs) = jobs else { return Next::Here(run) };
        let (reply, replies) = channel();
        let _ = jobs.send(Job { run, batch: spare(), reply: reply.clone() });
        Next::Ahead(reply, replies)
    }

    /// The next batch, and the decoder's result when it had filled it; `None` at the end of the
    /// run.
    pub(super) fn fetch(
        &mut self,
        jobs: &Jobs<'a>,
        spare: impl FnOnce() -> Batch,
    ) -> Option<(Batch, Result<()>)> {
        match std::mem::replace(self, Next::Nowhere) {
            Next::Nowhere => None,
            Next::Here(mut run) => {
                let mut batch = spare();
                let more = run.fill(&mut batch);
                if matches!(more, Ok(true)) {
                    *self = Next::Here(run);
                }
                Some((batch, more.map(|_| ())))
            }
            Next::Ahead(reply, replies) => {
                // Its own `reply` keeps the channel open, so this waits for the decoder and only
                // for it.
                let Done { run, batch, more } = receive(&replies).ok()?;
                if let (Ok(true), Some(jobs)) = (&more, jobs) {
                    let _ = jobs.send(Job { run, batch: spare(), reply: reply.clone() });
                    *self = Next::Ahead(reply, replies);
                }
                Some((batch, more.map(|_| ())))
            }
        }
    }
}

/// Decoders promise ascending times. A broken promise must not reach the passes, whose arithmetic
/// relies on it: a late event gets its predecessor's time, and is counted.
fn hold_to_order(events: &mut [Event], last: &mut Nanos) -> u64 {
    let mut late = 0;
    for e in events {
        if e.ts < *last {
            e.ts = *last;
            late += 1;
        }
        *last = e.ts;
    }
    late
}
