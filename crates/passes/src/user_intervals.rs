//! How long the application's own code takes between two system calls, by how many CPUs are busy.
//!
//! A thread that does the same work again and again takes the same time for it, unless the machine
//! gets slower: because other threads compete for memory, cache lines, or the other half of the
//! core. So user-mode intervals of one thread that lead to the same call are alike, and their
//! typical time while few CPUs are busy is compared with the time while many are.
//!
//! Kept per thread, unlike [`crate::costs`]: threads that run alone do other work than threads that
//! run together, and that must not look like a slow machine.

use crate::slot::Slot;
use crate::spread::Spread;
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Shorter user-mode intervals contain as much of the recorder's time as of the application's;
/// skipping them spares the busiest traces the look-up.
const SHORTEST: Nanos = 1 << SHORTEST_BITS;
const SHORTEST_BITS: u32 = 12;
/// The first user-mode intervals of a kind meet cold caches and untouched pages; and a thread that
/// does something only a few times needs no memory here.
const EARLY: u32 = 8;
/// Lengths of user-mode intervals: a sixteenth of an octave per bucket, from the shortest to 4 s.
pub type Lengths = Spread<SHORTEST_BITS, 4, { 20 << 4 }>;
/// Levels of user-mode intervals and counts: quarters of the CPUs busy.
pub const QUARTERS: usize = 4;

/// The quarter of `cpus` CPUs that `busy` is in: `busy * QUARTERS / cpus` without the division,
/// which would cost as much as everything else together.
#[inline]
pub(crate) fn quarter(busy: usize, cpus: usize) -> u8 {
    (1..QUARTERS).map(|q| (busy * QUARTERS >= q * cpus) as u8).sum()
}

/// A user-mode interval in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserInterval {
    /// CPU time of the thread's own code when it began.
    pub(crate) since: Nanos,
    /// Which [`quarter`] of the CPUs was busy then.
    pub(crate) quarter: u8,
    /// There was a page fault in it, whose time is the kernel's.
    pub(crate) faulted: bool,
}

/// The user-mode intervals of one thread that led to one system call.
#[derive(Clone, Debug, Default)]
pub struct IntervalsOfCall {
    early: u32,
    /// By the quarter of the CPUs that were busy when they began.
    levels: [Option<Box<Lengths>>; QUARTERS],
}

impl IntervalsOfCall {
    /// Every quarter that has user-mode intervals, fewest busy CPUs first.
    pub fn levels(&self) -> impl Iterator<Item = (usize, &Lengths)> {
        self.levels.iter().enumerate().filter_map(|(quarter, l)| Some((quarter, l.as_deref()?)))
    }
}

/// By thread and number of the call that the intervals led to.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserIntervals(FxHashMap<(Slot, u32), IntervalsOfCall>);

impl UserIntervals {
    /// A user-mode interval led to this call.
    #[inline]
    pub(crate) fn add(&mut self, slot: Slot, nr: u32, ns: Nanos, of: UserInterval) {
        if ns >= SHORTEST && !of.faulted {
            self.keep(slot, nr, ns, of.quarter);
        }
    }

    #[inline(never)]
    fn keep(&mut self, slot: Slot, nr: u32, ns: Nanos, quarter: u8) {
        let kind = self.0.entry((slot, nr)).or_default();
        if kind.early < EARLY {
            kind.early += 1;
        } else {
            kind.levels[quarter as usize % QUARTERS].get_or_insert_default().add(ns);
        }
    }

    /// A thread that made these calls has ended: call kinds that it made only a few times are
    /// dropped.
    pub(crate) fn retire(&mut self, slot: Slot, numbers: impl Iterator<Item = u32>) {
        for nr in numbers {
            if let Entry::Occupied(kind) = self.0.entry((slot, nr))
                && kind.get().levels().next().is_none()
            {
                kind.remove();
            }
        }
    }

    /// In order of threads and numbers.
    pub(crate) fn rows(&self) -> Vec<(Slot, u32, &IntervalsOfCall)> {
        let mut rows: Vec<_> = self.0.iter().map(|(&(slot, nr), s)| (slot, nr, s)).collect();
        rows.sort_by_key(|r| (r.0, r.1));
        rows
    }

    /// Clears the sums.
    pub(crate) fn restart(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_kind_short_ones_and_page_faults_do_not_count() {
        let mut table = UserIntervals::default();
        for i in 0..20 {
            let of = |quarter, faulted| UserInterval { since: 0, quarter, faulted };
            table.add(Slot(1), 39, 20_000 + i, of((i % 2) as u8 * 2, false));
            table.add(Slot(1), 40, 100, of(0, false));
            table.add(Slot(1), 41, 20_000, of(2, true));
        }
        let rows = table.rows();
        assert_eq!(rows.len(), 1);
        let counts: Vec<(usize, u64)> = rows[0].2.levels().map(|(q, l)| (q, l.count)).collect();
        assert_eq!(counts, [(0, 6), (2, 6)]);
    }
}
