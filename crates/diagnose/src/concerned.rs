//! Whom what happens concerns, where threads were chosen.

use holdup_passes::{Analysis, ByThread, Object, PairSum, Slot};
use std::collections::BTreeSet;

/// The chosen threads, whom they wait for, whom those wait for and so on.
pub(crate) struct Concerned<'a> {
    analysis: &'a Analysis,
    waited: ByThread<PairSum>,
    people: BTreeSet<Slot>,
}

impl<'a> Concerned<'a> {
    /// `None` where nobody was chosen.
    pub(crate) fn of(a: &'a Analysis) -> Option<Concerned<'a>> {
        if !a.has_chosen_work() {
            return None;
        }
        let (waited, ended) = (a.waited_by(), a.ended_by());
        let mut people: BTreeSet<Slot> = a.chosen().map(|(slot, _)| slot).collect();
        loop {
            let before = people.len();
            for (object, enders) in &ended {
                if waited.get(object).is_some_and(|of| of.keys().any(|s| people.contains(s))) {
                    people.extend(enders.keys().filter(|&&s| !a.thread(s).is_kthread()));
                }
            }
            if people.len() == before {
                return Some(Concerned { analysis: a, waited, people });
            }
        }
    }

    /// Whether these threads, or waiting for these objects, are the chosen threads' affair. A lock
    /// of strangers takes CPU time from them at most.
    pub(crate) fn are_met(&self, tids: &[u32], objects: &[Object]) -> bool {
        let waits = |o| {
            self.waited.get(o).is_some_and(|of| of.keys().any(|slot| self.people.contains(slot)))
        };
        tids.is_empty() && objects.is_empty()
            || objects.iter().any(waits)
            || self.people.iter().any(|&s| tids.contains(&self.analysis.thread(s).tid.0))
    }
}
