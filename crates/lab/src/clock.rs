//! Work that takes a known time of a CPU, and when to stop.

use crate::count::{Tally, ns};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// So long a trial of the calibration is.
const TRIAL: u64 = 200_000;
/// The fastest of so many trials counts: nobody interrupted it.
const TRIALS: usize = 60;

/// Turns of a loop that a CPU makes in a millisecond when nothing disturbs it. A piece of work is
/// so many turns, not so much time: it takes longer when something disturbs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(pub u64);

fn turn(times: u64) {
    for i in 0..times {
        black_box(i);
    }
}

impl Pace {
    /// Measure it, on whatever CPU this is.
    pub fn measure() -> Pace {
        let begun = Instant::now();
        turn(TRIAL);
        let first = begun.elapsed().max(Duration::from_nanos(1));
        // A trial is about a fifth of a millisecond.
        let turns = (TRIAL as f64 * 2e5 / ns(first) as f64).max(1.0) as u64;
        let trial = || {
            let begun = Instant::now();
            turn(turns);
            ns(begun.elapsed()).max(1)
        };
        let best = (0..TRIALS).map(|_| trial()).min().unwrap_or(1);
        Pace((turns as f64 * 1e6 / best as f64).max(1.0) as u64)
    }

    /// Work for so many nanoseconds of an undisturbed CPU.
    pub(crate) fn work(self, ns: u64) {
        turn((ns as f64 * self.0 as f64 / 1e6) as u64);
    }
}

/// The time of one run, as its workers see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pace: Pace,
    end: Instant,
}

impl Clock {
    /// It starts now.
    pub(crate) fn start(pace: Pace, lasts: Duration) -> Clock {
        Clock { pace, end: Instant::now() + lasts }
    }

    /// Whether the run is over.
    pub(crate) fn over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// How long it still lasts.
    pub(crate) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Compute for so many nanoseconds of an undisturbed CPU, outside of whatever others wait for.
    pub(crate) fn think(&self, ns: u64, tally: &mut Tally) {
        let begun = Instant::now();
        self.pace.work(ns);
        tally.work_ns += crate::count::ns(begun.elapsed());
    }

    /// The same while something is held that others wait for.
    pub(crate) fn hold(&self, ns: u64, tally: &mut Tally) {
        let begun = Instant::now();
        self.pace.work(ns);
        tally.hold_ns += crate::count::ns(begun.elapsed());
    }

    /// Wait for something.
    pub(crate) fn wait<T>(&self, tally: &mut Tally, awaited: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = awaited();
        tally.wait_ns += crate::count::ns(begun.elapsed());
        result
    }
}
