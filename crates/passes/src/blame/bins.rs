//! The same parts of idle time, by bin of the timeline.

use crate::cause::Cause;
use crate::grid::{Grid, IdleBin};
use holdup_trace::Nanos;

/// The part of a wait that a share of idle time is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    /// When it began.
    pub(crate) from: Nanos,
    /// The integral when it began.
    pub(crate) g_from: u128,
    /// When it ended.
    pub(crate) to: Nanos,
    /// The integral when it ended.
    pub(crate) g_to: u128,
}

/// Idle time by bin of the timeline.
#[derive(Clone, Debug)]
pub(super) struct IdleBins {
    grid: Grid,
    /// The bin that is filled now.
    bin: u16,
    /// When that bin began.
    begin: Nanos,
    /// When that bin ends.
    border: Nanos,
    /// The integral when each bin so far began.
    integrals: Vec<u128>,
    /// The idle time of the scheduler when this bin began.
    scheduler_mark: Nanos,
    /// The integral of queue lengths when this bin began.
    queue_mark: u128,
    rows: Vec<IdleBin>,
}

impl Default for IdleBins {
    fn default() -> IdleBins {
        IdleBins::new(Grid::new(0, 0), 0)
    }
}

impl IdleBins {
    pub(super) fn new(grid: Grid, integral: u128) -> IdleBins {
        IdleBins {
            grid,
            bin: 0,
            begin: grid.begin(0),
            border: grid.border(0),
            integrals: vec![integral],
            scheduler_mark: 0,
            queue_mark: 0,
            rows: vec![IdleBin::default(); grid.len()],
        }
    }

    /// When the bin that is filled now ends.
    #[inline]
    pub(super) fn border(&self) -> Nanos {
        self.border
    }

    /// The bin that is filled now.
    pub(super) fn now(&mut self) -> &mut IdleBin {
        &mut self.rows[self.bin as usize]
    }

    /// All bins.
    pub(super) fn rows(&self) -> &[IdleBin] {
        &self.rows
    }

    /// The bin ends: takes what was added since it began to the scheduler's idle time and to the
    /// integral of queue lengths.
    pub(super) fn close(&mut self, scheduler_ns: Nanos, queue_ns: u128) {
        let row = &mut self.rows[self.bin as usize];
        row.scheduler_ns = scheduler_ns - self.scheduler_mark;
        row.queue_ns = queue_ns - self.queue_mark;
        (self.scheduler_mark, self.queue_mark) = (scheduler_ns, queue_ns);
    }

    /// The next bin begins, at this value of the integral.
    pub(super) fn next(&mut self, integral: u128) {
        self.integrals.push(integral);
        self.bin += 1;
        self.begin = self.border;
        self.border = self.grid.border(self.bin);
    }

    /// Adds a `share` of idle time for `cause`.
    #[inline]
    pub(super) fn add(&mut self, cause: Cause, share: u128, over: &Over) {
        if over.from >= self.begin {
            self.rows[self.bin as usize].causes[cause as usize] += share;
        } else {
            self.spread(cause, share, over);
        }
    }

    /// Adds a share that covers several bins, divided by the integral's gain in each.
    #[cold]
    fn spread(&mut self, cause: Cause, share: u128, over: &Over) {
        let mut left = share;
        let mut g = over.g_from;
        let last = self.grid.bin(over.to).min(self.bin);
        for bin in self.grid.bin(over.from)..last {
            let end = self.integrals[bin as usize + 1].min(over.g_to).max(g);
            let part = (end - g).min(left);
            self.rows[bin as usize].causes[cause as usize] += part;
            left -= part;
            g = end;
        }
        self.rows[last as usize].causes[cause as usize] += left;
    }
}
