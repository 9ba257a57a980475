//! Writes one thread's program.

use crate::program::{ObjectId, Op};
use holdup_trace::Nanos;

/// From, to, lock.
pub(super) type Hold = (Nanos, Nanos, ObjectId);

/// Writes one thread's program: cuts its runs where holds begin and end, and where it spins.
pub(super) struct Writer<'b> {
    ops: &'b mut Vec<Op>,
    times: &'b mut Vec<Nanos>,
    /// Ends (`false`) and beginnings (`true`) of holds, in order of time.
    marks: Vec<(Nanos, bool, ObjectId)>,
    next_mark: usize,
    spins: Vec<Hold>,
    next_spin: usize,
    holding: Vec<ObjectId>,
}

impl<'b> Writer<'b> {
    pub(super) fn new(
        ops: &'b mut Vec<Op>,
        times: &'b mut Vec<Nanos>,
        holds: &[Hold],
        spins: Vec<Hold>,
    ) -> Writer<'b> {
        let ends = holds.iter().flat_map(|&(from, to, id)| [(from, true, id), (to, false, id)]);
        // A thread that releases one lock and takes another in the same moment releases first.
        let mut marks: Vec<_> = ends.collect();
        marks.sort_unstable_by_key(|&(at, begins, id)| (at, begins, id));
        Writer { ops, times, marks, next_mark: 0, spins, next_spin: 0, holding: Vec::new() }
    }

    pub(super) fn push(&mut self, at: Nanos, op: Op) {
        self.times.push(at);
        self.ops.push(op);
    }

    /// Write the beginnings and ends of holds up to `at`.
    pub(super) fn marks_until(&mut self, at: Nanos) {
        while let Some(&(time, begins, lock)) = self.marks.get(self.next_mark)
            && time <= at
        {
            self.next_mark += 1;
            let held = self.holding.iter().position(|&h| h == lock);
            match (begins, held) {
                (true, None) => {
                    self.push(time, Op::Hold(lock));
                    self.holding.push(lock);
                }
                (false, Some(held)) => {
                    self.holding.swap_remove(held);
                    self.push(time, Op::Drop(lock));
                }
                _ => {}
            }
        }
    }

    /// A stay on a CPU, from `at` on.
    pub(super) fn run(&mut self, at: Nanos, ns: Nanos) {
        let (mut at, end) = (at, at + ns);
        while at < end {
            self.marks_until(at);
            let to = self.marks.get(self.next_mark).map_or(end, |m| m.0.clamp(at + 1, end));
            while self.spins.get(self.next_spin).is_some_and(|s| s.1 <= at) {
                self.next_spin += 1;
            }
            let (to, op) = match self.spins.get(self.next_spin) {
                Some(&(from, until, lock)) if from <= at => {
                    let to = to.min(until);
                    (to, Op::Spin(to - at, lock))
                }
                spin => {
                    let to = spin.map_or(to, |s| s.0.min(to));
                    (to, Op::Run(to - at))
                }
            };
            self.push(at, op);
            at = to;
        }
    }

    pub(super) fn finish(&mut self) {
        self.marks_until(Nanos::MAX);
    }
}
