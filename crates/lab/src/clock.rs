//! Work that takes a known amount of CPU time, and the end of a run.

use crate::count::{Tally, ns};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Iterations of the first trial of the calibration.
const TRIAL: u64 = 200_000;
/// Number of trials; the fastest counts, because nothing interrupted it.
const TRIALS: usize = 60;

/// Iterations of a loop that an undisturbed CPU makes in a millisecond. A piece of work is a number
/// of iterations, not a time: it takes longer when something disturbs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(pub u64);

fn turn(times: u64) {
    for i in 0..times {
        black_box(i);
    }
}

impl Pace {
    /// Measure the pace on the current CPU.
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

    /// Work that takes `ns` nanoseconds on an undisturbed CPU.
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
    /// Start the run now.
    pub(crate) fn start(pace: Pace, lasts: Duration) -> Clock {
        Clock { pace, end: Instant::now() + lasts }
    }

    /// Whether the run is over.
    pub(crate) fn over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Time until the end of the run.
    pub(crate) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Compute for `ns` nanoseconds of an undisturbed CPU, without holding anything others wait
    /// for.
    pub(crate) fn think(&self, ns: u64, tally: &mut Tally) {
        let begun = Instant::now();
        self.pace.work(ns);
        tally.work_ns += crate::count::ns(begun.elapsed());
    }

    /// Compute for `ns` nanoseconds while holding something that other workers wait for.
    pub(crate) fn hold(&self, ns: u64, tally: &mut Tally) {
        let begun = Instant::now();
        self.pace.work(ns);
        tally.hold_ns += crate::count::ns(begun.elapsed());
    }

    /// Wait for something, and count the time.
    pub(crate) fn wait<T>(&self, tally: &mut Tally, awaited: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = awaited();
        tally.wait_ns += crate::count::ns(begun.elapsed());
        result
    }
}
