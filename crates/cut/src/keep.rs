//! Whether a record stays.

use crate::Written;
use crate::spot::Place;
use holdup_trace::{Cpu, Cut, Nanos};
use rustc_hash::FxHashSet;

/// The part, and the records needed from outside of it.
pub(crate) struct Keep {
    pub(crate) cut: Cut,
    places: FxHashSet<Place>,
    pub(crate) written: Written,
}

impl Keep {
    pub(crate) fn new(cut: Cut, places: FxHashSet<Place>) -> Keep {
        Keep { cut, places, written: Written::default() }
    }

    /// Whether the event with this time and CPU stays; counts it if so.
    pub(crate) fn event(&mut self, time: Nanos, cpu: Cpu) -> bool {
        let chosen = self.cut.cpus.as_ref().is_none_or(|list| list.contains(&cpu));
        if self.is_inside(time) {
            self.written.inside += u64::from(chosen);
            return chosen;
        }
        let stays = self.places.contains(&(time, cpu));
        self.written.outside += u64::from(stays);
        stays
    }

    /// Whether a record that is no event stays; the choice of CPUs does not apply.
    pub(crate) fn side_band(&self, time: Nanos, cpu: Cpu) -> bool {
        self.is_inside(time) || self.places.contains(&(time, cpu))
    }

    /// Whether the event at this place, which is before the part, is needed.
    pub(crate) fn stays_from_before(&self, place: Place) -> bool {
        self.places.contains(&place)
    }

    /// Whether the time is inside the part.
    pub(crate) fn is_inside(&self, time: Nanos) -> bool {
        let (from, to) = self.cut.times();
        (from..=to).contains(&time)
    }
}
