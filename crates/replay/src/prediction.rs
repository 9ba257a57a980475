//! How long changed work would take.

use holdup_trace::Nanos;

/// What a change would make of the work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Time of the work: the median of all seeds.
    pub wall_ns: Nanos,
    /// The shortest.
    pub wall_low_ns: Nanos,
    /// The longest.
    pub wall_high_ns: Nanos,
    /// In the replay of the median: times that threads waited for each other in a ring, which the
    /// trace did not have, and one was let go. Many of them, and the figure means little.
    pub forced: u64,
    /// CPU time of each thread, by its number in [`crate::Program::threads`].
    pub run_ns: Vec<Nanos>,
    /// The bound that the replay broke, if it broke one: then the times are those that the bound
    /// allows.
    pub bounded: Option<Bound>,
}

impl Prediction {
    /// Whether its band and that of the other do not touch.
    pub fn is_beyond_chance(&self, other: &Prediction) -> bool {
        self.wall_high_ns < other.wall_low_ns || self.wall_low_ns > other.wall_high_ns
    }
}

/// Why a replay was not believed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bound {
    /// All CPUs are busy all the time with the CPU work that is left.
    Cpus,
    /// One thread has so much of it.
    Thread,
    /// What was divided, or made faster, gains no more than that.
    Factor,
    /// Nothing that was done makes it slower.
    Relief,
}
