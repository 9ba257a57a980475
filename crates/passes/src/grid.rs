//! Bins of equal length over the time analysed, and what is charged to each.

use crate::cause::Cause;
use crate::state::Mode;
use holdup_trace::Nanos;

/// No time.
pub(crate) const NEVER: Nanos = Nanos::MAX;

/// Equal bins of the part analysed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    start: Nanos,
    width: Nanos,
    bins: u64,
}

impl Grid {
    /// Maximal number of bins.
    const BINS: u64 = 128;
    /// Minimal length of a bin: a few switches of a busy CPU.
    const NARROWEST: Nanos = 2_000_000;

    pub(crate) fn new(start: Nanos, end: Nanos) -> Grid {
        let span = end.saturating_sub(start);
        let width = span.div_ceil(Grid::BINS).max(Grid::NARROWEST);
        Grid { start, width, bins: span.div_ceil(width).max(1) }
    }

    pub(crate) fn len(&self) -> usize {
        self.bins as usize
    }

    /// Where a bin begins.
    pub(crate) fn begin(&self, bin: u16) -> Nanos {
        self.start + bin as u64 * self.width
    }

    /// Where a bin ends; the last one never does.
    pub(crate) fn border(&self, bin: u16) -> Nanos {
        if bin as u64 + 1 < self.bins { self.begin(bin + 1) } else { NEVER }
    }

    /// The bin of a time.
    pub(crate) fn bin(&self, at: Nanos) -> u16 {
        (at.saturating_sub(self.start) / self.width).min(self.bins - 1) as u16
    }
}

/// CPU time by what it was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) user: Nanos,
    pub(crate) kernel: Nanos,
    pub(crate) kthread: Nanos,
    pub(crate) irq: Nanos,
    pub(crate) softirq: Nanos,
    pub(crate) idle: Nanos,
    pub(crate) unaccounted: Nanos,
    /// Moves to one of the first three once the mode is known.
    pub(crate) undecided: Nanos,
}

impl Spent {
    /// CPU time of threads.
    pub(crate) fn by_threads(&self) -> Nanos {
        self.user + self.kernel + self.kthread + self.undecided
    }

    /// What has been spent since `mark`.
    pub(crate) fn since(&self, mark: &Spent) -> Spent {
        Spent {
            user: self.user.saturating_sub(mark.user),
            kernel: self.kernel.saturating_sub(mark.kernel),
            kthread: self.kthread.saturating_sub(mark.kthread),
            irq: self.irq.saturating_sub(mark.irq),
            softirq: self.softirq.saturating_sub(mark.softirq),
            idle: self.idle.saturating_sub(mark.idle),
            unaccounted: self.unaccounted.saturating_sub(mark.unaccounted),
            undecided: self.undecided.saturating_sub(mark.undecided),
        }
    }

    pub(crate) fn add(&mut self, o: &Spent) {
        self.user += o.user;
        self.kernel += o.kernel;
        self.kthread += o.kthread;
        self.irq += o.irq;
        self.softirq += o.softirq;
        self.idle += o.idle;
        self.unaccounted += o.unaccounted;
        self.undecided += o.undecided;
    }

    /// `span` that was undecided turns out to have been `mode`.
    pub(crate) fn decided(&mut self, mode: Mode, span: Nanos) {
        self.undecided = self.undecided.saturating_sub(span);
        match mode {
            Mode::User | Mode::Unknown => self.user += span,
            Mode::Kernel => self.kernel += span,
            Mode::Kthread => self.kthread += span,
        }
    }
}

/// Idle time of a bin by what threads waited for, in 2^-32 ns where it is a share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdleBin {
    pub(crate) causes: [u128; Cause::ALL.len()],
    /// While runnable threads waited for other CPUs, in ns.
    pub(crate) scheduler_ns: Nanos,
    /// Part of it that turned out not to be the scheduler's.
    pub(crate) moved: u128,
    /// Integral of the number of threads running or ready.
    pub(crate) queue_ns: u128,
}

impl IdleBin {
    pub(crate) fn scheduler_left_ns(&self) -> Nanos {
        self.scheduler_ns.saturating_sub((self.moved >> crate::cause::FRACTION) as Nanos)
    }
}
