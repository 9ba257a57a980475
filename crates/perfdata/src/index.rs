//! The index: from the record stream to runs in time order.
//!
//! The data are cut into segments that are walked in parallel. Where a segment's first record
//! begins is a guess, because records carry no marker: the walk starts at the first plausible chain
//! of headers. The guess is proven when the walk of the segment before ends exactly there; a
//! segment whose guess was wrong is walked again from the right place. In the same way each segment
//! counts its late events as if it were the first, and is walked again if that was wrong
//! ([`crate::rounds`]). So wrong guesses cost time but never change the result.

use crate::marks::Marks;
use crate::record;
use crate::rounds::Rounds;
use crate::schema::Schema;
use crate::source::Source;
use crate::walk::{GroupFact, Piece, TaskFact, Walked, resync, walk};
use crate::window::Window;
use holdup_trace::{Quality, QualityCode, Run, union};
use holdup_tracepoint::Endian;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The position of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The decoder must sort it; such a run is at most a few hundred KiB.
    pub(crate) unsorted: bool,
}

/// The result of indexing.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) runs: Vec<Run>,
    /// One for each of `runs`.
    pub(crate) spans: Vec<Span>,
    /// Places of switches. Only for data that are contiguous in memory.
    pub(crate) marks: Marks,
    pub(crate) census: [u64; 128],
    pub(crate) span: Option<(u64, u64)>,
    pub(crate) meta: Vec<u64>,
    pub(crate) tasks: Vec<TaskFact>,
    pub(crate) groups: Vec<GroupFact>,
    pub(crate) rounds: usize,
    pub(crate) quality: Quality,
}

/// Bytes per segment: enough to make the guess cheap, few enough to keep all cores busy to the end.
const SEGMENT: u64 = 4 << 20;

impl Index {
    /// Add the runs of another part of the same trace.
    pub(crate) fn append(&mut self, other: Index) {
        self.runs.extend(other.runs);
        self.spans.extend(other.spans);
        // Several files are never contiguous in memory.
        self.marks = Marks::default();
        self.census.iter_mut().zip(other.census).for_each(|(sum, n)| *sum += n);
        self.span = union(self.span, other.span);
        self.meta.extend(other.meta);
        self.tasks.extend(other.tasks);
        self.groups.extend(other.groups);
        self.rounds += other.rounds;
        self.quality.absorb(&other.quality);
    }
}

/// Index the records in `start..limit`.
pub(crate) fn index<E: Endian>(
    source: &Source,
    schema: &Schema,
    start: u64,
    limit: u64,
) -> io::Result<Index> {
    let count =
        usize::try_from(limit.saturating_sub(start).div_ceil(SEGMENT)).unwrap_or(usize::MAX);
    let bounds =
        |i: usize| (start + i as u64 * SEGMENT, (start + (i as u64 + 1) * SEGMENT).min(limit));
    let mut join = Join::new(start);
    let unknown = Rounds::default();
    if count <= 2 {
        let mut window = Window::default();
        if start < limit {
            join.add(walk::<E>(source, schema, start, limit, limit, &mut window, unknown)?);
        }
        return Ok(join.finish());
    }

    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(8);
    let next = AtomicUsize::new(0);
    let walked: Mutex<Vec<Option<Walked>>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let worker = || -> io::Result<()> {
            let mut window = Window::default();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= count {
                    return Ok(());
                }
                let (from, to) = bounds(i);
                let guess =
                    if i == 0 { Some(start) } else { resync::<E>(source, schema, from, limit)? };
                let Some(guess) = guess.filter(|&g| g < to) else { continue };
                let w = walk::<E>(source, schema, guess, to, limit, &mut window, unknown)?;
                source.release(from, to);
                let mut walked = walked.lock().unwrap_or_else(|e| e.into_inner());
                if walked.len() <= i {
                    walked.resize_with(i + 1, || None);
                }
                walked[i] = Some(w);
            }
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut result = worker();
        for t in others {
            // A worker that panicked left its segment unwalked, and the loop below walks it.
            result = result.and(t.join().unwrap_or(Ok(())));
        }
        result
    })?;

    let mut walked = walked.into_inner().unwrap_or_else(|e| e.into_inner());
    walked.resize_with(count, || None);
    let mut window = Window::default();
    for (i, w) in walked.into_iter().enumerate() {
        let (_, to) = bounds(i);
        if join.at >= to {
            // A payload or a gap covers this whole segment.
            continue;
        }
        let w = match w.filter(|w| w.start == join.at && w.rounds.holds_after(join.rounds)) {
            Some(w) => w,
            None => {
                let w = walk::<E>(source, schema, join.at, to, limit, &mut window, join.rounds)?;
                source.release(join.at, to);
                w
            }
        };
        join.add(w);
    }
    Ok(join.finish())
}

/// Joins the segments' results.
struct Join {
    /// Where the next segment must begin.
    at: u64,
    pieces: Vec<Piece>,
    /// How far perf's rounds have come there.
    rounds: Rounds,
    index: Index,
}

impl Join {
    fn new(at: u64) -> Join {
        let index = Index {
            runs: Vec::new(),
            spans: Vec::new(),
            marks: Marks::default(),
            census: [0; 128],
            span: None,
            meta: Vec::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            rounds: 0,
            quality: Quality::default(),
        };
        Join { at, pieces: Vec::new(), rounds: Rounds::default(), index }
    }

    fn add(&mut self, w: Walked) {
        self.at = w.end;
        self.index.marks.add(w.start, w.marks);
        for p in w.pieces {
            match self.pieces.last_mut() {
                // The segment boundary had split a piece.
                Some(prev) if joins(prev, &p) => {
                    prev.end = p.end;
                    if !p.timeless {
                        if prev.timeless {
                            (prev.first, prev.timeless) = (p.first, false);
                        }
                        prev.last = p.last;
                    }
                }
                _ => self.pieces.push(p),
            }
        }
        self.rounds = w.rounds.end(self.rounds);
        self.index.rounds += w.rounds.finished;
        self.index.quality.add(QualityCode::Reordered, w.rounds.late);
        for (sum, n) in self.index.census.iter_mut().zip(w.census) {
            *sum += n;
        }
        self.index.span = union(self.index.span, w.span);
        self.index.meta.extend(w.meta);
        self.index.tasks.extend(w.tasks);
        self.index.groups.extend(w.groups);
        self.index.quality.add(QualityCode::SkippedBytes, w.skipped_bytes);
        self.index.quality.add(QualityCode::Truncated, w.truncated as u64);
        self.index.quality.add(QualityCode::TrailingBytes, w.trailing);
    }

    fn finish(self) -> Index {
        let mut index = self.index;
        let census = index.census.iter().enumerate();
        let unknown: u64 =
            census.filter(|&(kind, _)| !record::is_known(kind as u32)).map(|(_, n)| n).sum();
        index.quality.add(QualityCode::UnknownRecords, unknown);
        index.quality.add(QualityCode::SkippedAux, index.census[record::AUXTRACE as usize]);
        index.runs = self.pieces.iter().map(|p| Run { first_ts: p.first }).collect();
        index.spans = self
            .pieces
            .iter()
            .map(|p| Span { start: p.start, end: p.end, unsorted: p.unsorted })
            .collect();
        index
    }
}

/// Whether `next` continues `prev` in offset and in time.
fn joins(prev: &Piece, next: &Piece) -> bool {
    prev.end == next.start
        && !prev.unsorted
        && !next.unsorted
        && (prev.timeless || next.timeless || prev.last <= next.first)
}
