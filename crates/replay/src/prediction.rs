//! How long the work would take with changes.

use holdup_trace::Nanos;

/// The predicted work under a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Time of the work: the median of all seeds.
    pub wall_ns: Nanos,
    /// The shortest.
    pub wall_low_ns: Nanos,
    /// The longest.
    pub wall_high_ns: Nanos,
    /// In the median replay: how often threads waited for each other in a cycle that the trace did
    /// not have, and one was released. If there are many, the prediction means little.
    pub forced: u64,
    /// CPU time of each thread, by its number in [`crate::Program::threads`].
    pub run_ns: Vec<Nanos>,
    /// The bound that the replay broke, if any: then the times are those that the bound allows.
    pub bounded: Option<Bound>,
}

impl Prediction {
    /// Whether the two ranges do not overlap.
    pub fn is_beyond_chance(&self, other: &Prediction) -> bool {
        self.wall_high_ns < other.wall_low_ns || self.wall_low_ns > other.wall_high_ns
    }
}

/// Why a replay's time was replaced by a bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bound {
    /// All CPUs are busy all the time with the CPU work that remains.
    Cpus,
    /// One thread has this much of it.
    Thread,
    /// Work that is divided or made faster gains no more than the factor.
    Factor,
    /// Removing a bottleneck does not make the work slower.
    Relief,
}
