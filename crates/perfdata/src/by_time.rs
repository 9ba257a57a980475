//! Sorts the records of short flushes by time.

/// Times of records and where the records are, in ascending order once all are added. Records of
/// the same time keep the order of the file.
///
/// Buffers that are emptied often yield records that are almost in order: each belongs a few places
/// before the end. Putting it there at once takes a fifth of the time that sorting takes.
#[derive(Debug, Default)]
pub(crate) struct ByTime {
    records: Vec<(u64, u32)>,
    /// How many records had to move so far.
    moved: usize,
    /// So many that they are sorted at the end.
    is_rough: bool,
}

/// If more records have to move than this for each record, sorting all of them is quicker.
const FEW: usize = 16;

impl ByTime {
    /// Forget all records, keep the memory.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        (self.moved, self.is_rough) = (0, false);
    }

    /// Add a record that follows those added so far in the file.
    #[inline]
    pub(crate) fn add(&mut self, time: u64, at: u32) {
        let mut i = self.records.len();
        self.records.push((time, at));
        if self.is_rough {
            return;
        }
        while i > 0 && self.records[i - 1].0 > time {
            self.records[i] = self.records[i - 1];
            self.moved += 1;
            i -= 1;
        }
        self.records[i] = (time, at);
        self.is_rough = self.moved > FEW * (self.records.len() + FEW);
    }

    /// All records are added.
    pub(crate) fn finish(&mut self) {
        if self.is_rough {
            // Equal times keep their order: the second component grows.
            self.records.sort_unstable();
        }
    }

    /// The record in this place of the order.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Option<(u64, u32)> {
        self.records.get(i).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(times: &[u64]) -> Vec<(u64, u32)> {
        let mut by_time = ByTime::default();
        for (at, &time) in times.iter().enumerate() {
            by_time.add(time, at as u32);
        }
        by_time.finish();
        (0..).map_while(|i| by_time.get(i)).collect()
    }

    fn stable(times: &[u64]) -> Vec<(u64, u32)> {
        let mut all: Vec<(u64, u32)> = times.iter().copied().zip(0..).collect();
        all.sort_by_key(|&(time, _)| time);
        all
    }

    proptest! {
        #[test]
        fn records_are_sorted_and_ties_keep_their_order(
            times in prop::collection::vec(0..50_u64, 0..400),
        ) {
            prop_assert_eq!(sorted(&times), stable(&times));
        }
    }

    #[test]
    fn records_in_the_wrong_order_are_sorted_too() {
        let times: Vec<u64> = (0..2000).rev().map(|n| n / 2).collect();
        assert_eq!(sorted(&times), stable(&times));
    }
}
