//! Which sleeps other threads ended, and who made whom.

use super::Builder;
use holdup_passes::{Did, Object, Slot, Step};
use holdup_trace::Nanos;

/// A sleep that a thread ended.
pub(super) struct Ended {
    /// Who slept.
    pub(super) sleeper: Slot,
    /// Number of the sleep among its steps.
    pub(super) number: u32,
    /// Since when.
    pub(super) at: Nanos,
    /// For how long.
    pub(super) ns: Nanos,
    /// For what.
    pub(super) object: Object,
}

impl Builder<'_> {
    /// The sleep that is ended by a step, if one is.
    pub(super) fn ended(&self, step: &Step) -> Option<Ended> {
        let Did::Wake { thread: sleeper, step: number } = step.what else { return None };
        let slept = self.analysis.steps(sleeper).steps[number as usize];
        let Did::Sleep(ns, object) = slept.what else { return None };
        let object = self.analysis.final_object(object);
        Some(Ended { sleeper, number, at: slept.at, ns, object })
    }

    /// Which sleeps were ended by threads, and which threads were made by others.
    pub(super) fn find_ends(&mut self) {
        for &(slot, _) in &self.slots {
            for step in self.analysis.steps(slot).steps {
                match step.what {
                    Did::Wake { thread, step } => {
                        let base = self.bases[self.numbers[&thread] as usize];
                        self.woken.insert(base + step);
                    }
                    Did::Spawn(child) => {
                        self.spawned.insert(child);
                    }
                    _ => {}
                }
            }
        }
    }
}
