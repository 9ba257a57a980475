//! The ordered merge: runs in, one stream of events out.
//!
//! A run is opened when the merge reaches its first time stamp and closed when it ends. So, however
//! many runs a file has, only those that overlap in time use memory. There are three stages, each
//! on its own threads; each passes its results on and gets used buffers back:
//!
//! ```text
//!  decoders            order                              the caller's thread
//!                 run 0 [ batch ]    take slices from the    slices
//!  fill batches ► run 1 [ batch ] ►  run whose head is    ►  0 0 1 0 7 1 …  ► sink
//!  ahead          run 7 [ batch ]    earliest                (a chunk)
//! ```
//!
//! The passes in the sink are usually the slowest stage, so nothing else is done on their thread:
//! it walks slices whose order is already decided.
//!
//! In a file whose runs follow each other in time only one run is open at once, and only one
//! decoder would have work. So the next runs are begun ahead, one per decoder: their first batches
//! are decoded while the run before them is consumed.
//!
//! Order: by time; events with equal times by position of the run in the file. This is the order of
//! a stable sort of the whole file by time. A sink may let calls come whole ([`WholeCalls`]).

mod decode;
mod events;
mod order;
mod whole;

pub use events::{Events, events};
pub use order::Slices;
pub use whole::{WholeCalls, call};

use crate::{Batch, Event, Quality, Reader, Result, progress};
use order::Order;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvError, TryRecvError, channel};
use whole::Pairs;

/// Takes the ordered stream.
pub trait Sink {
    /// Which calls may come whole, their exit directly behind their enter; `None` for a strict
    /// order.
    fn whole_calls(&self) -> Option<WholeCalls> {
        None
    }

    /// The next events, ascending in time, with the batch that holds their payloads.
    fn events(&mut self, events: &[Event], batch: &Batch) -> ControlFlow<()>;

    /// Many of them at once: with many CPUs, events that follow each other in one batch are few.
    fn slices(&mut self, mut slices: Slices<'_>) -> ControlFlow<()> {
        slices.try_for_each(|(events, batch)| self.events(events, batch))
    }
}

impl<F: FnMut(&[Event], &Batch) -> ControlFlow<()>> Sink for F {
    #[inline(always)]
    fn events(&mut self, events: &[Event], batch: &Batch) -> ControlFlow<()> {
        self(events, batch)
    }
}

/// Chunks circulating between the stages: one being filled, one being used, and some to compensate
/// for different speeds: with fewer, a stage often sleeps because it has none.
const CHUNKS: usize = 16;

/// Decodes `reader` and passes every event to `sink` in order. Returns what went wrong (opening
/// included). Stops early, without error, when the sink breaks.
///
/// `workers` threads decode and merge ahead; 0 means as many as the machine has spare cores (at
/// least one), or, if decoding is most of the work, one per core to decode and one to merge.
///
/// # Errors
/// The first error of a decoder.
pub fn drive(reader: &dyn Reader, workers: usize, sink: &mut impl Sink) -> Result<Quality> {
    let workers = match workers {
        0 => {
            let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
            if reader.is_slow_to_decode() && cores > 1 {
                (cores + 1).min(9)
            } else {
                cores.saturating_sub(1).clamp(1, 8)
            }
        }
        n => n,
    };
    let mut quality = reader.quality().clone();
    progress::events();
    let whole = sink.whole_calls().filter(|_| reader.keeps_cpus_together()).map(Pairs::of);
    // Declared before the scope so that decoders may borrow it; `jobs` moves into the order stage,
    // which drops it at its end: that ends the decoders.
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(|| decode::work(&queue));
        }
        let (filled, chunks) = channel();
        let (used, empty) = channel();
        for _ in 0..CHUNKS {
            let _ = used.send(order::Chunk::default());
        }
        // A single worker decodes what the order stage needs next.
        let jobs = (workers > 1).then_some(jobs);
        let order = scope
            .spawn(move || Order::new(reader, (jobs, workers - 1), whole, filled, empty).run());
        while let Ok(chunk) = receive(&chunks) {
            quality.absorb(&chunk.quality);
            progress::handed_out(chunk.events as u64);
            if sink.slices(chunk.slices()).is_break() {
                // What was decoded beyond this point must not show: its amount depends on the
                // machine's speed.
                return Ok(quality);
            }
            let _ = used.send(chunk);
        }
        order.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(quality)
    })
}

/// Receives; first polls for about as long as sleeping and being woken costs both sides, some
/// twenty microseconds. Polling longer would cost more CPU time than sleeping.
fn receive<T>(from: &Receiver<T>) -> Result<T, RecvError> {
    const TRIES: u32 = 400;
    for _ in 0..TRIES {
        match from.try_recv() {
            Ok(it) => return Ok(it),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
        }
    }
    from.recv()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Cpu, EventId, NameId, Nanos, Opened, Pid, QualityCode, Run, RunDecoder, Tid, TraceInfo,
        What,
    };

    /// Runs given as lists of times; the tid is the run, the cpu the position in it.
    struct Fake {
        opened: Opened,
        times: Vec<Vec<Nanos>>,
        /// Events per batch.
        step: usize,
    }

    impl Fake {
        fn new(times: Vec<Vec<Nanos>>, step: usize) -> Fake {
            let runs = times
                .iter()
                .map(|t| Run { first_ts: t.iter().copied().min().unwrap_or(5) })
                .collect();
            let info = TraceInfo::new("fake".into(), "fake");
            Fake { opened: Opened { info, quality: Quality::default(), runs }, times, step }
        }
    }

    impl Reader for Fake {
        fn opened(&self) -> &Opened {
            &self.opened
        }
        fn opened_mut(&mut self) -> &mut Opened {
            &mut self.opened
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
                batch.events.push(Event {
                    ts,
                    tid,
                    pid,
                    comm,
                    cpu: Cpu(self.at as u16),
                    id: EventId(0),
                    what: What::Other,
                });
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

    fn one_by_one(fake: &Fake) -> Vec<(Nanos, u32, u16)> {
        events(fake).map(|e| e.unwrap()).map(|e| (e.ts, e.tid.0, e.cpu.0)).collect()
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
            let mut expected: Vec<(Nanos, u32, u16)> = runs
                .iter()
                .enumerate()
                .flat_map(|(r, ts)| {
                    ts.iter().enumerate().map(move |(i, &t)| (t, r as u32, i as u16))
                })
                .collect();
            expected.sort_by_key(|e| e.0);
            let fake = Fake::new(runs, 1 + round % 7);
            let (got, quality) = merged(&fake, 1 + round % 3);
            assert_eq!(got, expected, "round {round}");
            assert!(quality.is_empty());
            assert_eq!(one_by_one(&fake), expected, "round {round}, as an iterator");
        }
    }

    #[test]
    fn a_decoder_that_goes_back_in_time_is_counted_and_held() {
        let fake = Fake::new(vec![vec![10, 7, 20], vec![8, 9]], 2);
        let (got, quality) = merged(&fake, 1);
        assert_eq!(one_by_one(&fake), got);
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
