//! The ordering stage: which run's events come next.

use super::decode::{Jobs, Next};
use super::receive;
use super::whole::Pairs;
use crate::{Batch, Event, Nanos, Quality, ReadError, Reader, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

/// Events per chunk: enough to pay for the hand-over between threads, few enough that they are
/// still in a near cache when they are used.
const CHUNK: usize = Batch::TARGET / 2;

/// Maximal number of batches kept for reuse. Each grows to the largest size that was ever decoded
/// into it; if runs are short, a chunk has events of dozens of batches.
const SPARE: usize = 8;

/// Events of one batch that follow each other in the merged stream.
#[derive(Clone, Copy)]
struct Slice {
    /// Index into [`Chunk::batches`].
    batch: u32,
    from: u32,
    to: u32,
}

/// A part of the merged stream.
#[derive(Default)]
pub(super) struct Chunk {
    batches: Vec<Arc<Batch>>,
    slices: Vec<Slice>,
    /// Number of events in the slices.
    pub(super) events: usize,
    /// What went wrong just before the first slice.
    pub(super) quality: Quality,
}

impl Chunk {
    pub(super) fn slices(&self) -> Slices<'_> {
        Slices { batches: &self.batches, slices: self.slices.iter() }
    }
}

/// Events that follow each other in the stream, each time with the batch that holds their payloads.
#[derive(Clone)]
pub struct Slices<'a> {
    batches: &'a [Arc<Batch>],
    slices: std::slice::Iter<'a, Slice>,
}

impl<'a> Slices<'a> {
    #[inline(always)]
    fn get(&self, s: Slice) -> Option<(&'a [Event], &'a Batch)> {
        let batch = &**self.batches.get(s.batch as usize)?;
        Some((batch.events.get(s.from as usize..s.to as usize)?, batch))
    }

    /// Time of the last event.
    pub fn end(&self) -> Option<Nanos> {
        let (events, _) = self.get(*self.slices.as_slice().last()?)?;
        events.last().map(|e| e.ts)
    }
}

impl<'a> Iterator for Slices<'a> {
    type Item = (&'a [Event], &'a Batch);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let slice = *self.slices.next()?;
        self.get(slice)
    }
}

/// An open run.
struct Open<'a> {
    batch: Arc<Batch>,
    /// First event of `batch` not yet handed on.
    at: usize,
    /// Place of `batch` in the chunk of this number.
    place: (u64, u32),
    next: Next<'a>,
}

/// The earliest event of an open run: its time, the number of the run, and the run's slot, from the
/// highest bits to the lowest, so that heads compare in the order of the stream. It is one integer,
/// because heads move in memory right after they were written: a processor stalls when it loads
/// something that was just stored in parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head(u128);

impl Head {
    #[inline(always)]
    fn new(ts: Nanos, run: u32, slot: u32) -> Head {
        Head(u128::from(ts) << 64 | u128::from(run) << 32 | u128::from(slot))
    }

    #[inline(always)]
    fn ts(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }

    #[inline(always)]
    fn run(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// Why the stage ends before the trace does.
enum Halt {
    /// The receiver is gone.
    Stopped,
    Failed(ReadError),
}

pub(super) struct Order<'a> {
    reader: &'a dyn Reader,
    jobs: Jobs<'a>,
    /// This many runs are begun that are not open yet.
    ahead: usize,
    slots: Vec<Open<'a>>,
    free: Vec<u32>,
    spare: Vec<Batch>,
    /// All open runs except the current one, the earliest last. A run that was just current usually
    /// comes next or next but one again, so it is inserted near the end.
    heads: Vec<Head>,
    /// Calls that come whole, if any do.
    whole: Option<Pairs>,
    chunk: Chunk,
    /// Number of `chunk`, and the events in it.
    number: u64,
    events: usize,
    filled: Sender<Chunk>,
    empty: Receiver<Chunk>,
}

impl<'a> Order<'a> {
    pub(super) fn new(
        reader: &'a dyn Reader,
        (jobs, ahead): (Jobs<'a>, usize),
        whole: Option<Pairs>,
        filled: Sender<Chunk>,
        empty: Receiver<Chunk>,
    ) -> Order<'a> {
        Order {
            reader,
            jobs,
            ahead,
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            heads: Vec::new(),
            whole,
            chunk: Chunk::default(),
            number: 0,
            events: 0,
            filled,
            empty,
        }
    }

    /// Passes on everything in order.
    pub(super) fn run(mut self) -> Result<()> {
        let result = self.merge();
        // Events before an error are passed on too.
        let _ = self.filled.send(self.chunk);
        match result {
            Err(Halt::Failed(e)) => Err(e),
            Ok(()) | Err(Halt::Stopped) => Ok(()),
        }
    }

    fn merge(&mut self) -> Result<(), Halt> {
        let runs = self.reader.runs();
        let mut order: Vec<u32> = (0..runs.len() as u32).collect();
        order.sort_by_key(|&r| (runs[r as usize].first_ts, r));
        let first_ts = |at: usize| order.get(at).map(|&r| runs[r as usize].first_ts);
        // Runs before `opened` are open or closed; `begun` has the slots of those after it that are
        // begun.
        let mut opened = 0;
        let mut begun: VecDeque<u32> = VecDeque::new();
        loop {
            // Open every run that may hold the next event. The first event of a newly opened run is
            // known only then, and may be after the start of further runs.
            while let Some(first) = first_ts(opened)
                && self.heads.last().is_none_or(|h| first <= h.ts())
            {
                let horizon = self.heads.last().map_or(first, |h| h.ts());
                let from = opened;
                while first_ts(opened).is_some_and(|first| first <= horizon) {
                    opened += 1;
                }
                // All decoders get their jobs before the first result is waited for.
                while begun.len() < opened - from + self.ahead
                    && let Some(&run) = order.get(from + begun.len())
                {
                    begun.push_back(self.begin(run));
                }
                for (&run, slot) in
                    order[from..opened].iter().zip(begun.drain(..opened - from).collect::<Vec<_>>())
                {
                    self.refill(run, slot)?;
                }
            }
            // The time at which the next run has to be opened.
            let barrier = first_ts(opened).unwrap_or(Nanos::MAX);
            let Some(mut head) = self.heads.pop() else { return Ok(()) };
            loop {
                // Pass on what precedes the runner-up and the next run to be opened.
                let rival = self
                    .heads
                    .last()
                    .map_or(Nanos::MAX, |h| h.ts().saturating_add((head.run() < h.run()) as Nanos));
                match self.take_until(head.slot(), rival.min(barrier))? {
                    Some(ts) => {
                        head = self.take_turns(Head::new(ts, head.run(), head.slot()));
                    }
                    None => {
                        self.refill(head.run(), head.slot())?;
                        match self.heads.pop() {
                            Some(next) => head = next,
                            None => break,
                        }
                    }
                }
                if head.ts() >= barrier {
                    self.heads.push(head);
                    break;
                }
            }
        }
    }

    /// Takes the events before `limit` from the batch of `slot`. The first is always taken: it is
    /// the earliest of all, and every run that starts no later is open. Returns the time of the
    /// next.
    #[inline(always)]
    fn take_until(&mut self, slot: u32, limit: Nanos) -> Result<Option<Nanos>, Halt> {
        let open = &mut self.slots[slot as usize];
        let events = &open.batch.events[..];
        let from = open.at;
        let mut to = from + 1;
        let mut next = loop {
            match events.get(to) {
                Some(e) if e.ts < limit => to += 1,
                next => break next,
            }
        };
        if let Some(exit) = next
            && let Some(whole) = &mut self.whole
            && whole.is_one(&events[to - 1], exit)
        {
            to += 1;
            next = events.get(to);
        }
        let next = next.map(|e| e.ts);
        open.at = to;
        if open.place.0 != self.number {
            open.place = (self.number, self.chunk.batches.len() as u32);
            self.chunk.batches.push(open.batch.clone());
        }
        self.chunk.slices.push(Slice { batch: open.place.1, from: from as u32, to: to as u32 });
        self.events += to - from;
        if self.events >= CHUNK {
            self.hand_on()?;
        }
        Ok(next)
    }

    /// If the runner-up precedes the head, it becomes the head, and the old head is put among the
    /// others.
    #[inline(always)]
    fn take_turns(&mut self, head: Head) -> Head {
        let Some(mut i) = self.heads.len().checked_sub(1) else { return head };
        let next = self.heads[i];
        if next > head {
            return head;
        }
        while i > 0 && self.heads[i - 1] < head {
            self.heads[i] = self.heads[i - 1];
            i -= 1;
        }
        self.heads[i] = head;
        next
    }

    fn insert(&mut self, head: Head) {
        let at = self.heads.partition_point(|&h| h > head);
        self.heads.insert(at, head);
    }

    /// Sends the chunk and begins another.
    #[inline(never)]
    fn hand_on(&mut self) -> Result<(), Halt> {
        let mut chunk = receive(&self.empty).map_err(|_| Halt::Stopped)?;
        for batch in chunk.batches.drain(..) {
            keep(&mut self.spare, batch);
        }
        chunk.slices.clear();
        chunk.quality.clear();
        self.number += 1;
        self.chunk.events = std::mem::take(&mut self.events);
        self.filled.send(std::mem::replace(&mut self.chunk, chunk)).map_err(|_| Halt::Stopped)
    }

    /// Start decoding run `r`; the first batch is fetched by [`Order::refill`].
    fn begin(&mut self, r: u32) -> u32 {
        let spare = &mut self.spare;
        let next = Next::open(self.reader, r, &self.jobs, || spare.pop().unwrap_or_default());
        let open = Open { batch: Arc::default(), at: 0, place: (u64::MAX, 0), next };
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

    /// Fetches the next batch of a run; closes the run at its end. Inserts the run's new head.
    fn refill(&mut self, run: u32, slot: u32) -> Result<(), Halt> {
        loop {
            let open = &mut self.slots[slot as usize];
            keep(&mut self.spare, std::mem::take(&mut open.batch));
            let spare = &mut self.spare;
            let Some((batch, result)) =
                open.next.fetch(&self.jobs, || spare.pop().unwrap_or_default())
            else {
                self.free.push(slot);
                return Ok(());
            };
            let first = batch.events.first().map(|e| e.ts);
            if !batch.quality.is_empty() {
                // Belongs to this place in the stream, in case the sink stops near it.
                if !self.chunk.slices.is_empty() {
                    self.hand_on()?;
                }
                self.chunk.quality.absorb(&batch.quality);
            }
            let open = &mut self.slots[slot as usize];
            (open.batch, open.at, open.place) = (Arc::new(batch), 0, (u64::MAX, 0));
            result.map_err(Halt::Failed)?;
            if let Some(ts) = first {
                self.insert(Head::new(ts, run, slot));
                return Ok(());
            }
        }
    }
}

/// Keeps a batch for reuse, unless it is still in use or enough are kept.
fn keep(spare: &mut Vec<Batch>, batch: Arc<Batch>) {
    if let Some(batch) = Arc::into_inner(batch).filter(|_| spare.len() < SPARE) {
        spare.push(batch);
    }
}
