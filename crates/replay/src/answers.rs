//! Sleeps that take no time once no lock holder sleeps: those of threads that a holder waited for.
//! A client that is asked while a lock is held and naps before it answers does not nap for that
//! answer: else the replay would last as long as its naps.

use crate::program::{ObjectId, Op, Program};
use crate::spans::Spans;
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};

/// A sleep that another thread ended.
#[derive(Clone, Copy)]
struct Wait {
    number: u32,
    from: Nanos,
    to: Nanos,
    waker: u32,
    /// The sleeper held one of those locks.
    held: bool,
}

/// For each thread, the time it slept while a holder of one of those locks waited for it, directly
/// or through other threads.
pub(crate) fn asked_by_holders(program: &Program, is_one: impl Fn(ObjectId) -> bool) -> Vec<Spans> {
    let waits = waits(program, is_one);
    let mut asked: Vec<Vec<(Nanos, Nanos)>> = vec![Vec::new(); program.threads.len()];
    let mut known: FxHashSet<u32> = FxHashSet::default();
    let of_holders = waits.iter().flatten().filter(|w| w.held);
    let mut left: Vec<(u32, Nanos, Nanos)> = of_holders.map(|w| (w.waker, w.from, w.to)).collect();
    while let Some((thread, from, to)) = left.pop() {
        asked[thread as usize].push((from, to));
        let waits = &waits[thread as usize];
        let first = waits.partition_point(|w| w.to <= from);
        for w in waits[first..].iter().take_while(|w| w.from < to) {
            if known.insert(w.number) {
                left.push((w.waker, w.from.max(from), w.to.min(to)));
            }
        }
    }
    asked.into_iter().map(joined).collect()
}

/// The waits of each thread, in order of time.
fn waits(program: &Program, is_one: impl Fn(ObjectId) -> bool) -> Vec<Vec<Wait>> {
    let mut ends: FxHashMap<u32, (Nanos, u32)> = FxHashMap::default();
    for (t, thread) in program.threads.iter().zip(0..) {
        for at in t.from as usize..t.to as usize {
            if let Op::Wake { number, .. } = program.ops[at] {
                ends.insert(number, (program.times[at], thread));
            }
        }
    }
    let of_thread = |(t, thread): (&crate::program::ThreadProgram, u32)| {
        let mut held: Vec<ObjectId> = Vec::new();
        let mut waits = Vec::new();
        for at in t.from as usize..t.to as usize {
            match program.ops[at] {
                Op::Hold(lock) if is_one(lock) => held.push(lock),
                Op::Drop(lock) => held.retain(|&other| other != lock),
                Op::Wait { number, object, .. } => {
                    let from = program.times[at];
                    let end = ends.get(&number).filter(|end| end.0 > from && end.1 != thread);
                    let held = !held.is_empty() && !held.contains(&object);
                    waits.extend(end.map(|&(to, waker)| Wait { number, from, to, waker, held }));
                }
                _ => {}
            }
        }
        waits
    };
    program.threads.iter().zip(0..).map(of_thread).collect()
}

/// The union of these periods.
fn joined(mut pieces: Vec<(Nanos, Nanos)>) -> Spans {
    pieces.sort_unstable();
    let (mut spans, mut end) = (Spans::default(), 0);
    for (from, to) in pieces {
        let from = from.max(end);
        spans.add(from, to, to.saturating_sub(from));
        end = end.max(to);
    }
    spans
}
