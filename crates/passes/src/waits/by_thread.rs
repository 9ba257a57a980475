//! Sums by object and thread, in one list: there may be very many pairs.

use super::Object;
use crate::slot::Slot;

/// Sums by object and thread.
#[derive(Clone, Debug)]
pub struct ByThread<T> {
    /// Where the threads of each object begin, by its final number; the end of the last one's last.
    begins: Vec<usize>,
    sums: Vec<(Slot, T)>,
}

impl<T: Copy> ByThread<T> {
    /// Sums of pairs, in any order; what comes twice is added. `objects` is the number of objects.
    pub(super) fn new(
        objects: usize,
        mut pairs: Vec<(Object, Slot, T)>,
        add: fn(&mut T, T),
    ) -> ByThread<T> {
        pairs.sort_unstable_by_key(|&(object, slot, _)| (object, slot));
        pairs.dedup_by(|pair, before| {
            let same = (pair.0, pair.1) == (before.0, before.1);
            if same {
                add(&mut before.2, pair.2);
            }
            same
        });
        let mut begins = Vec::with_capacity(objects + 1);
        for (at, pair) in pairs.iter().enumerate() {
            begins.resize(begins.len().max(pair.0.0 as usize + 1), at);
        }
        begins.resize(objects + 1, pairs.len());
        ByThread { begins, sums: pairs.into_iter().map(|(_, slot, sum)| (slot, sum)).collect() }
    }
}

impl<T> ByThread<T> {
    /// The threads of an object, in order.
    pub fn of(&self, object: Object) -> &[(Slot, T)] {
        let at = object.0 as usize;
        &self.sums[self.begins[at]..self.begins[at + 1]]
    }

    /// The sum of a thread at an object.
    pub fn at(&self, object: Object, slot: Slot) -> Option<&T> {
        let of = self.of(object);
        of.binary_search_by_key(&slot, |pair| pair.0).ok().map(|at| &of[at].1)
    }

    /// Every object that has threads, in order.
    pub fn objects(&self) -> impl Iterator<Item = (Object, &[(Slot, T)])> {
        let all = (0..self.begins.len() as u32 - 1).map(Object);
        all.map(|object| (object, self.of(object))).filter(|(_, of)| !of.is_empty())
    }
}
