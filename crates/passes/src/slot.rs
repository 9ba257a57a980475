//! The number of a thread within one analysis.

/// Index of a thread in the table of threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// The idle task: one slot for all CPUs; no table shows it.
    pub const IDLE: Slot = Slot(0);
}
