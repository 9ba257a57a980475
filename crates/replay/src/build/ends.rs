//! Which sleeps other threads ended, and who made whom.

use super::{Builder, is_part};
use crate::spans::Spans;
use holdup_passes::limits::NAMED;
use holdup_passes::{Did, FutexUse, Object, ObjectKind, Slot, Step};
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
    /// The sleep that is ended by a step of `waker`, if one is. An interrupt that ends one is not
    /// what the thread does on top of which it came.
    pub(super) fn ended(&self, waker: Slot, step: &Step) -> Option<Ended> {
        let Did::Wake { thread: sleeper, step: number } = step.what else { return None };
        let slept = self.analysis.steps(sleeper).steps[number as usize];
        let Did::Sleep(ns, object) = slept.what else { return None };
        let object = self.analysis.final_object(object);
        let known = self.objects.get(self.id(object).0 as usize);
        let by_interrupt = known.is_some_and(|o| {
            o.kind == ObjectKind::Timer || o.is_device && !self.analysis.thread(waker).is_kthread()
        });
        if by_interrupt || self.only_answers(waker, slept.at, step.at) {
            return None;
        }
        Some(Ended { sleeper, number, at: slept.at, ns, object })
    }

    /// Whether a thread of the kernel slept for nearly all of this time. Then its work is not what
    /// was waited for, but time that has to pass, such as until all CPUs were somewhere else (RCU):
    /// it would pass as well had the wait begun sooner.
    fn only_answers(&self, waker: Slot, from: Nanos, to: Nanos) -> bool {
        let Some(slept) = self.kernel_slept.get(&waker) else { return false };
        let nearly_all = 100.0 - self.analysis.limit(&NAMED);
        is_part(slept.within(from, to), to.saturating_sub(from).max(1), nearly_all)
    }

    /// When threads of the kernel slept.
    pub(super) fn find_kernel_sleeps(&mut self) {
        for &(slot, _) in self.slots.iter().filter(|(_, t)| t.is_kthread()) {
            let mut slept = Spans::default();
            for step in self.analysis.steps(slot).steps {
                if let Did::Sleep(ns, _) = step.what {
                    slept.add(step.at, step.at + ns, ns);
                }
            }
            self.kernel_slept.insert(slot, slept);
        }
    }

    /// Whether an object is the end of a thread or process. Whoever waits for it has nothing more
    /// to ask.
    pub(super) fn is_end(&self, object: Object) -> bool {
        let known = self.objects.get(self.id(object).0 as usize);
        known.is_some_and(|o| o.kind == ObjectKind::Child || o.usage == Some(FutexUse::Join))
    }

    /// Which sleeps were ended by threads, and which threads were made by others.
    pub(super) fn find_ends(&mut self) {
        for &(slot, _) in &self.slots {
            for step in self.analysis.steps(slot).steps {
                match step.what {
                    Did::Wake { .. } => {
                        let Some(Ended { sleeper, number, .. }) = self.ended(slot, step) else {
                            continue;
                        };
                        let base = self.bases[self.numbers[&sleeper] as usize];
                        self.woken.insert(base + number);
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
