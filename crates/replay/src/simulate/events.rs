//! The events to come, the earliest first.

use super::What;
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events at the same time happen in the order in which they were pushed.
type Event = (Nanos, u32, What);

/// The earliest is kept outside the heap: a thread's next step is often the next event, and needs
/// no heap then.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// No later than any in the heap. `None` while the heap's first serves as well.
    soonest: Option<Event>,
    rest: BinaryHeap<Reverse<Event>>,
    said: u32,
}

impl Events {
    pub(super) fn push(&mut self, at: Nanos, what: What) {
        self.said = self.said.wrapping_add(1);
        let new = (at, self.said, what);
        let first = self.soonest.or_else(|| self.rest.peek().map(|first| first.0));
        if first.is_some_and(|first| first <= new) {
            self.rest.push(Reverse(new));
        } else if let Some(later) = self.soonest.replace(new) {
            self.rest.push(Reverse(later));
        }
    }

    pub(super) fn pop(&mut self) -> Option<(Nanos, What)> {
        let next = self.soonest.take().or_else(|| self.rest.pop().map(|next| next.0));
        next.map(|(at, _, what)| (at, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However events are pushed and popped, they come as from a sorted list.
        #[test]
        fn the_soonest_comes_first(
            doing in prop::collection::vec(prop::option::of(0u64..9), 0..99),
        ) {
            let (mut events, mut sorted) = (Events::default(), Vec::new());
            for (said, what) in (0..).zip(doing) {
                match what {
                    Some(at) => {
                        events.push(at, What::Wakes(said));
                        sorted.push((at, said));
                    }
                    None => {
                        sorted.sort_unstable();
                        let first = (!sorted.is_empty()).then(|| sorted.remove(0));
                        let expected = first.map(|(at, said)| (at, What::Wakes(said)));
                        prop_assert_eq!(events.pop(), expected);
                    }
                }
            }
        }
    }
}
