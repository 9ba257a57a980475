//! A set of small numbers.

/// Numbers below a limit.
#[derive(Clone, Debug)]
pub(crate) struct BitSet(Vec<u64>);

impl BitSet {
    /// None of the numbers below `limit`.
    pub(crate) fn new(limit: u32) -> BitSet {
        BitSet(vec![0; limit as usize / 64 + 1])
    }

    /// Whether the set has `number`.
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// Add `number`.
    pub(crate) fn insert(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }
}
