//! The ordered merge: runs in, one stream of events out.
//!
//! A run is opened when the merge reaches its first time stamp and closed when it ends, so
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
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};

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

/// Decode `reader` and hand every event to `sink` in order. Returns what went wrong on the way
/// (opening included). Stops early, without error, when the sink breaks.
///
/// `workers` threads decode ahead; 0 means as many as the machine has spare cores (at least one).
///
/// # Errors
/// The first error of a decoder.
pub fn drive(reader: &dyn Reader, workers: usize, sink: &mut impl Sink) -> Result<Quality> {
    let workers = match workers {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get().saturating_sub(1)).clamp(1, 8),
        n => n,
    };
    // Declared before the scope so that workers may borrow it; `jobs` moves into the merge, which
    // drops it at its end: that is what ends the workers.
    let (jobs, queue) = channel::<Job<'_>>();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(&queue));
        }
        Merge::new(reader, jobs).run(sink)
    })
}

/// A decoder on its way to a worker.
struct Job<'a> {
    decoder: Box<dyn RunDecoder + 'a>,
    batch: Batch,
    /// Time of the last event decoded, to hold the decoder to its promise.
    last_ts: Nanos,
    reply: Sender<Done<'a>>,
}

/// A decoder on its way back, with a filled batch.
struct Done<'a> {
    decoder: Box<dyn RunDecoder + 'a>,
    batch: Batch,
    last_ts: Nanos,
    more: Result<bool>,
}

fn work(queue: &Mutex<Receiver<Job<'_>>>) {
    loop {
        let job = match queue.lock() {
            Ok(queue) => receive(&queue),
            Err(_) => return,
        };
        let Ok(Job { mut decoder, mut batch, mut last_ts, reply }) = job else { return };
        batch.clear();
        let more = decoder.fill(&mut batch);
        // Here, where the events still are in this core's cache.
        let late = hold_to_order(&mut batch.events, &mut last_ts);
        batch.quality.add(QualityCode::TimeBackwards, late);
        // The merge may have stopped listening; nothing to do about it.
        let _ = reply.send(Done { decoder, batch, last_ts, more });
    }
}

/// Receive, trying for some tens of microseconds before going to sleep: a batch takes about a
/// hundred to decode, and being woken costs both sides a fifth of that.
fn receive<T>(from: &Receiver<T>) -> Result<T, RecvError> {
    const TRIES: u32 = 2000;
    for _ in 0..TRIES {
        match from.try_recv() {
            Ok(it) => return Ok(it),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
        }
    }
    from.recv()
}

/// An open run.
struct Open<'a> {
    batch: Batch,
    /// First event of `batch` not yet handed on.
    at: usize,
    /// Where the next batch arrives; `None` when there is none to come.
    next: Option<(Sender<Done<'a>>, Receiver<Done<'a>>)>,
}

/// The earliest event of an open run.
#[derive(Clone, Copy)]
struct Head {
    ts: Nanos,
    run: u32,
    slot: u32,
}

impl Head {
    fn key(self) -> (Nanos, u32) {
        (self.ts, self.run)
    }
}

struct Merge<'a> {
    reader: &'a dyn Reader,
    jobs: Sender<Job<'a>>,
    quality: Quality,
    slots: Vec<Open<'a>>,
    free: Vec<u32>,
    spare: Vec<Batch>,
    /// All but the earliest, descending. A run that has just been served usually comes next or
    /// next but one again: its way from the end is short.
    heads: Vec<Head>,
}

impl<'a> Merge<'a> {
    fn new(reader: &'a dyn Reader, jobs: Sender<Job<'a>>) -> Merge<'a> {
        Merge { reader, jobs, quality: reader.quality().clone(), slots: Vec::new(), free: Vec::new(), spare: Vec::new(), heads: Vec::new() }
    }

    fn run(mut self, sink: &mut impl Sink) -> Result<Quality> {
        let runs = self.reader.runs();
        let mut order: Vec<u32> = (0..runs.len() as u32).collect();
        order.sort_by_key(|&r| (runs[r as usize].first_ts, r));
        let first_ts = |at: usize| order.get(at).map(|&r| runs[r as usize].first_ts);
        let mut opened = 0;
        loop {
            // Open every run that may hold the next event. Where the runs opened now begin is known
            // only then, and may be past further runs' starts.
            while let Some(first) = first_ts(opened)
                && self.heads.last().is_none_or(|h| first <= h.ts)
            {
                let horizon = self.heads.last().map_or(first, |h| h.ts);
                let from = opened;
                while first_ts(opened).is_some_and(|first| first <= horizon) {
                    opened += 1;
                }
                // All decoders get their orders before the first result is waited for.
                let slots: Vec<u32> = order[from..opened].iter().map(|&run| self.open(run)).collect();
                for (&run, slot) in order[from..opened].iter().zip(slots) {
                    self.refill(run, slot)?;
                }
            }
            // Until the next one has to be opened.
            let barrier = first_ts(opened).unwrap_or(Nanos::MAX);
            let Some(mut head) = self.heads.pop() else { return Ok(self.quality) };
            loop {
                // Hand on what precedes the runner-up and the next run to be opened.
                let rival = self.heads.last().map_or(Nanos::MAX, |h| h.ts.saturating_add((head.run < h.run) as Nanos));
                let limit = rival.min(barrier);
                let open = &mut self.slots[head.slot as usize];
                let ahead = &open.batch.events[open.at..];
                // The head itself always goes: it is the earliest, and every run that starts no later is open.
                let mut n = 1;
                let next = loop {
                    match ahead.get(n) {
                        Some(e) if e.ts < limit => n += 1,
                        next => break next.map(|e| e.ts),
                    }
                };
                if sink.events(&ahead[..n], &open.batch).is_break() {
                    return Ok(self.quality);
                }
                open.at += n;
                match next {
                    Some(ts) => {
                        head.ts = ts;
                        self.take_turns(&mut head);
                    }
                    None => {
                        self.refill(head.run, head.slot)?;
                        match self.heads.pop() {
                            Some(next) => head = next,
                            None => break,
                        }
                    }
                }
                if head.ts >= barrier {
                    self.heads.push(head);
                    break;
                }
            }
        }
    }

    /// The runner-up becomes the head if it precedes it, which finds its place among the others.
    #[inline(always)]
    fn take_turns(&mut self, head: &mut Head) {
        let Some(mut i) = self.heads.len().checked_sub(1) else { return };
        if self.heads[i].key() > head.key() {
            return;
        }
        std::mem::swap(&mut self.heads[i], head);
        while i > 0 && self.heads[i - 1].key() < self.heads[i].key() {
            self.heads.swap(i - 1, i);
            i -= 1;
        }
    }

    fn insert(&mut self, head: Head) {
        let at = self.heads.partition_point(|h| h.key() > head.key());
        self.heads.insert(at, head);
    }

    /// Start decoding run `r`; the first batch is fetched by [`Merge::refill`].
    fn open(&mut self, r: u32) -> u32 {
        let (reply, replies) = channel();
        let batch = self.spare.pop().unwrap_or_default();
        let _ = self.jobs.send(Job { decoder: self.reader.decoder(r as usize), batch, last_ts: 0, reply: reply.clone() });
        let open = Open { batch: self.spare.pop().unwrap_or_default(), at: 0, next: Some((reply, replies)) };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = open;
                slot
            }
            None => {
                self.slots.push(open);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Fetch the next batch of a run and order its decoder to fill another; close the run at its
    /// end. Puts the run's new head in its place.
    fn refill(&mut self, run: u32, slot: u32) -> Result<()> {
        loop {
            let open = &mut self.slots[slot as usize];
            let Some((reply, replies)) = open.next.take() else {
                self.spare.push(std::mem::take(&mut open.batch));
                self.free.push(slot);
                return Ok(());
            };
            // Its own `reply` keeps the channel open, so this waits for the worker and only for it.
            let Ok(done) = receive(&replies) else { continue };
            let mut used = std::mem::replace(&mut open.batch, done.batch);
            open.at = 0;
            self.quality.absorb(&open.batch.quality);
            if done.more? {
                used.clear();
                let _ = self.jobs.send(Job { decoder: done.decoder, batch: used, last_ts: done.last_ts, reply: reply.clone() });
                open.next = Some((reply, replies));
            } else {
                self.spare.push(used);
            }
            if let Some(e) = open.batch.events.first() {
                let ts = e.ts;
                self.insert(Head { ts, run, slot });
                return Ok(());
            }
        }
    }
}

/// Decoders promise ascending times. A broken promise must not reach the passes, whose arithmetic
/// rests on it: a late event is moved up to its predecessor's time, and counted.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, EventId, NameId, Pid, Run, Tid, TraceInfo, What};

    /// Runs given as lists of times; the tid tells the run, the cpu the position in it.
    struct Fake {
        info: TraceInfo,
        quality: Quality,
        runs: Vec<Run>,
        times: Vec<Vec<Nanos>>,
        /// Events per batch.
        step: usize,
    }

    impl Fake {
        fn new(times: Vec<Vec<Nanos>>, step: usize) -> Fake {
            let runs = times.iter().map(|t| Run { first_ts: t.iter().copied().min().unwrap_or(5) }).collect();
            Fake { info: TraceInfo::new("fake".into(), "fake"), quality: Quality::default(), runs, times, step }
        }
    }

    impl Reader for Fake {
        fn info(&self) -> &TraceInfo {
            &self.info
        }
        fn quality(&self) -> &Quality {
            &self.quality
        }
        fn amend(&mut self) -> (&mut TraceInfo, &mut Quality) {
            (&mut self.info, &mut self.quality)
        }
        fn runs(&self) -> &[Run] {
            &self.runs
        }
        fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
            Box::new(FakeDecoder { run, at: 0, fake: self })
        }
    }

    struct FakeDecoder<'a> {
        run: usize,
        at: usize,
        fake: &'a Fake,
    }

    impl RunDecoder for FakeDecoder<'_> {
        fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
            let times = &self.fake.times[self.run];
            for _ in 0..self.fake.step {
                let Some(&ts) = times.get(self.at) else { return Ok(false) };
                let (tid, pid, comm) = (Tid(self.run as u32), Pid(0), NameId::NONE);
                batch.events.push(Event { ts, tid, pid, comm, cpu: Cpu(self.at as u16), id: EventId(0), what: What::Other });
                self.at += 1;
            }
            Ok(true)
        }
    }

    fn merged(fake: &Fake, workers: usize) -> (Vec<(Nanos, u32, u16)>, Quality) {
        let mut out = Vec::new();
        let quality = drive(fake, workers, &mut |events: &[Event], _: &Batch| {
            out.extend(events.iter().map(|e| (e.ts, e.tid.0, e.cpu.0)));
            ControlFlow::Continue(())
        })
        .unwrap();
        (out, quality)
    }

    #[test]
    fn equals_a_stable_sort_of_the_whole_file() {
        // A linear congruence is random enough to cover ties, overlaps, gaps and empty runs.
        let mut x = 12345u64;
        let mut rnd = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        for round in 0..200 {
            let runs: Vec<Vec<Nanos>> = (0..rnd(9))
                .map(|_| {
                    let mut t = rnd(60);
                    (0..rnd(40))
                        .map(|_| {
                            t += rnd(4);
                            t
                        })
                        .collect()
                })
                .collect();
            let mut expected: Vec<(Nanos, u32, u16)> =
                runs.iter().enumerate().flat_map(|(r, ts)| ts.iter().enumerate().map(move |(i, &t)| (t, r as u32, i as u16))).collect();
            expected.sort_by_key(|e| e.0);
            let fake = Fake::new(runs, 1 + round % 7);
            let (got, quality) = merged(&fake, 1 + round % 3);
            assert_eq!(got, expected, "round {round}");
            assert!(quality.is_empty());
        }
    }

    #[test]
    fn a_decoder_that_goes_back_in_time_is_counted_and_held() {
        let (got, quality) = merged(&Fake::new(vec![vec![10, 7, 20], vec![8, 9]], 2), 1);
        assert_eq!(got.iter().map(|e| e.0).collect::<Vec<_>>(), [8, 9, 10, 10, 20]);
        assert_eq!(quality.count(QualityCode::TimeBackwards), 1);
    }

    #[test]
    fn a_sink_that_has_enough_stops_the_read() {
        let fake = Fake::new(vec![(0..100_000).collect(), (0..100_000).collect()], 64);
        let mut n = 0;
        drive(&fake, 2, &mut |events: &[Event], _: &Batch| {
            n += events.len();
            if n > 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert!(n < 1000);
    }
}
