//! The ordered merge: runs in, one stream of events out.
//!
//! Runs are opened when the merge reaches their first time stamp and closed when they end, so
//! however many a file has, only those that overlap in time hold memory. Each open run has one
//! batch being consumed here and one being filled by a worker thread:
//!
//! ```text
//!             run 0  [ batch ]◄── worker: fill        take events from the run whose head is
//!   sink ◄──  run 1  [ batch ]◄── worker: fill        earliest, until it passes the runner-up
//!             run 7  [ batch ]◄── worker: fill        (then that one's turn)
//! ```
//!
//! Order: by time; equal times by position of the run in the file. This is the order of a stable
//! sort of the whole file by time.

use crate::{Batch, Event, Nanos, Quality, QualityCode, Reader, Result, RunDecoder};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// Takes the ordered stream.
pub trait Sink {
    /// The next events, ascending in time, with the batch that holds their payloads.
    fn events(&mut self, events: &[Event], batch: &Batch) -> ControlFlow<()>;
}

impl<F: FnMut(&[Event], &Batch) -> ControlFlow<()>> Sink for F {
    fn events(&mut self, events: &[Event], batch: &Batch) -> ControlFlow<()> {
        self(events, batch)
    }
}

/// A decoder on its way to a worker, or back with a filled batch.
struct Job<'a> {
    decoder: Box<dyn RunDecoder + 'a>,
    batch: Batch,
    reply: Sender<Done<'a>>,
}

struct Done<'a> {
    decoder: Box<dyn RunDecoder + 'a>,
    batch: Batch,
    more: Result<bool>,
}

/// An open run.
struct Open<'a> {
    batch: Batch,
    /// First event of `batch` not yet handed on.
    at: usize,
    /// The run has no further batch.
    ended: bool,
    replies: Receiver<Done<'a>>,
    reply: Sender<Done<'a>>,
    /// Time of the last event handed on, to prove the decoder's promise.
    last_ts: Nanos,
}

/// Decode `reader` and hand every event to `sink` in order. Returns what went wrong on the way
/// (opening included). Stops early, without error, when the sink breaks.
///
/// `workers` threads decode ahead; 0 means as many as the machine has spare cores (at least one).
///
/// # Errors
/// The first error of a decoder.
pub fn drive(reader: &dyn Reader, workers: usize, sink: &mut dyn Sink) -> Result<Quality> {
    let workers = match workers {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get().saturating_sub(1)).clamp(1, 8),
        n => n,
    };
    std::thread::scope(|scope| {
        let (jobs, queue) = channel::<Job<'_>>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..workers {
            let queue = queue.clone();
            scope.spawn(move || work(&queue));
        }
        // `jobs` is dropped when `merge` returns; the workers then end.
        merge(reader, jobs, sink)
    })
}

fn work(queue: &Mutex<Receiver<Job<'_>>>) {
    loop {
        let job = match queue.lock() {
            Ok(queue) => queue.recv(),
            Err(_) => return,
        };
        let Ok(mut job) = job else { return };
        job.batch.clear();
        let more = job.decoder.fill(&mut job.batch);
        // The merge may have stopped listening; nothing to do about it.
        let _ = job.reply.send(Done { decoder: job.decoder, batch: job.batch, more });
    }
}

struct Merge<'a> {
    jobs: Sender<Job<'a>>,
    spare: Vec<Batch>,
    quality: Quality,
}

impl<'a> Merge<'a> {
    fn open(&mut self, decoder: Box<dyn RunDecoder + 'a>) -> Open<'a> {
        let (reply, replies) = channel();
        let batch = self.spare.pop().unwrap_or_default();
        let _ = self.jobs.send(Job { decoder, batch, reply: reply.clone() });
        Open { batch: self.spare.pop().unwrap_or_default(), at: 0, ended: false, replies, reply, last_ts: 0 }
    }

    /// Make sure `run` has an event at `at`; false if it has ended.
    fn refill(&mut self, run: &mut Open<'a>) -> Result<bool> {
        while run.at >= run.batch.events.len() {
            if run.ended {
                return Ok(false);
            }
            // A worker that panicked took the sender with it; treat the run as over rather than
            // wait for ever. Decoders must not panic, so this is a bug worth a loud mark.
            let Ok(done) = run.replies.recv() else {
                self.quality.add(QualityCode::SkippedBytes, 1);
                run.ended = true;
                return Ok(false);
            };
            self.quality.absorb(&done.batch.quality);
            let mut old = std::mem::replace(&mut run.batch, done.batch);
            run.at = 0;
            if done.more? {
                old.clear();
                let _ = self.jobs.send(Job { decoder: done.decoder, batch: old, reply: run.reply.clone() });
            } else {
                run.ended = true;
                self.spare.push(old);
            }
            self.check_order(run);
        }
        Ok(true)
    }

    /// Decoders promise ascending times. A broken promise must not reach the passes, whose
    /// arithmetic rests on it: a late event is moved up to its predecessor's time and counted.
    fn check_order(&mut self, run: &mut Open<'a>) {
        let mut last = run.last_ts;
        for e in &mut run.batch.events {
            if e.ts < last {
                e.ts = last;
                self.quality.add(QualityCode::TimeBackwards, 1);
            }
            last = e.ts;
        }
        run.last_ts = last;
    }
}

fn merge<'a>(reader: &'a dyn Reader, jobs: Sender<Job<'a>>, sink: &mut dyn Sink) -> Result<Quality> {
    let mut m = Merge { jobs, spare: Vec::new(), quality: reader.quality().clone() };
    let runs = reader.runs();
    // Runs not yet opened, in the order the merge will reach them.
    let mut waiting: Vec<u32> = (0..runs.len() as u32).collect();
    waiting.sort_by_key(|&r| (runs[r as usize].first_ts, r));
    let mut waiting = waiting.into_iter().peekable();
    let mut open: Vec<Option<Open<'a>>> = Vec::new();
    open.resize_with(runs.len().min(1 << 16), || None);
    let mut open_far: rustc_hash::FxHashMap<u32, Open<'a>> = rustc_hash::FxHashMap::default();
    let mut heads: BinaryHeap<Reverse<(Nanos, u32)>> = BinaryHeap::new();

    let mut current: Option<(u32, Open<'a>)> = None;
    loop {
        // Open every run that could hold the next event.
        let mut opened = Vec::new();
        loop {
            let horizon = match (&current, heads.peek()) {
                (Some((_, run)), Some(Reverse(h))) => Some(head(run).min(h.0)),
                (Some((_, run)), None) => Some(head(run)),
                (None, Some(Reverse(h))) => Some(h.0),
                (None, None) => None,
            };
            match waiting.peek() {
                Some(&r) if horizon.is_none_or(|h| runs[r as usize].first_ts <= h) || !opened.is_empty() && runs[r as usize].first_ts == 0 => {
                    waiting.next();
                    opened.push((r, m.open(reader.decoder(r as usize))));
                    if horizon.is_none() {
                        // Without any head there is no horizon yet: take this run's own start.
                        let ts = runs[r as usize].first_ts;
                        while let Some(&r) = waiting.peek()
                            && runs[r as usize].first_ts <= ts
                        {
                            waiting.next();
                            opened.push((r, m.open(reader.decoder(r as usize))));
                        }
                        break;
                    }
                }
                _ => break,
            }
        }
        let opened_any = !opened.is_empty();
        for (r, mut run) in opened {
            if m.refill(&mut run)? {
                heads.push(Reverse((head(&run), r)));
                store(&mut open, &mut open_far, r, run);
            }
        }
        if opened_any {
            // The new heads may lie before the current run or reveal an earlier horizon.
            if let Some((r, run)) = current.take() {
                heads.push(Reverse((head(&run), r)));
                store(&mut open, &mut open_far, r, run);
            }
            continue;
        }

        let (r, mut run) = match current.take() {
            Some(c) => c,
            None => match heads.pop() {
                Some(Reverse((_, r))) => match take(&mut open, &mut open_far, r) {
                    Some(run) => (r, run),
                    None => continue,
                },
                None => return Ok(m.quality),
            },
        };
        // Hand on everything before the runner-up and before the next run to be opened.
        let limit = heads.peek().map(|h| h.0);
        let next_open = waiting.peek().map_or(Nanos::MAX, |&w| runs[w as usize].first_ts);
        let events = &run.batch.events[run.at..];
        let n = match limit {
            None if next_open == Nanos::MAX => events.len(),
            None => events.iter().take_while(|e| e.ts < next_open).count(),
            Some((ts, other)) => {
                let wins_ties = r < other;
                events.iter().take_while(|e| (e.ts < ts || e.ts == ts && wins_ties) && e.ts < next_open).count()
            }
        };
        if n > 0 {
            let slice = &run.batch.events[run.at..run.at + n];
            if sink.events(slice, &run.batch).is_break() {
                return Ok(m.quality);
            }
            run.at += n;
            if !m.refill(&mut run)? {
                m.spare.push(std::mem::take(&mut run.batch));
                continue;
            }
        }
        let key = (head(&run), r);
        match heads.peek() {
            Some(Reverse(h)) if *h < key => {
                heads.push(Reverse(key));
                store(&mut open, &mut open_far, r, run);
            }
            _ => current = Some((r, run)),
        }
    }
}

fn head(run: &Open<'_>) -> Nanos {
    run.batch.events.get(run.at).map_or(Nanos::MAX, |e| e.ts)
}

fn store<'a>(near: &mut [Option<Open<'a>>], far: &mut rustc_hash::FxHashMap<u32, Open<'a>>, r: u32, run: Open<'a>) {
    match near.get_mut(r as usize) {
        Some(slot) => *slot = Some(run),
        None => {
            far.insert(r, run);
        }
    }
}

fn take<'a>(near: &mut [Option<Open<'a>>], far: &mut rustc_hash::FxHashMap<u32, Open<'a>>, r: u32) -> Option<Open<'a>> {
    match near.get_mut(r as usize) {
        Some(slot) => slot.take(),
        None => far.remove(&r),
    }
}
