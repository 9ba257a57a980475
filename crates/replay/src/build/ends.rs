//! Which sleeps other threads ended, and which thread created which.

use super::{Builder, is_part};
use crate::program::ReplayObject;
use crate::spans::Spans;
use holdup_passes::limits::NAMED;
use holdup_passes::{Did, FutexUse, Object, ObjectKind, Slot, Step};
use holdup_trace::Nanos;

/// A sleep that a thread ended.
pub(super) struct Ended {
    /// The sleeping thread.
    pub(super) sleeper: Slot,
    /// Index of the sleep among the thread's steps.
    pub(super) number: u32,
    /// When it began.
    pub(super) at: Nanos,
    /// How long it lasted.
    pub(super) ns: Nanos,
    /// What it was for.
    pub(super) object: Object,
}

impl Builder<'_> {
    /// The sleep that this step of `waker` ended, if any. A wake-up from an interrupt is not
    /// charged to the thread that the interrupt came on top of.
    pub(super) fn ended(&self, waker: Slot, step: &Step) -> Option<Ended> {
        let Did::Wake { thread: sleeper, step: number } = step.what else { return None };
        let slept = self.analysis.steps(sleeper).steps[number as usize];
        let Did::Sleep(ns, object) = slept.what else { return None };
        let object = self.analysis.final_object(object);
        let known = self.known(object);
        let by_interrupt = known.is_some_and(|o| {
            o.kind == ObjectKind::Timer || o.is_device && !self.analysis.thread(waker).is_kthread()
        });
        if by_interrupt || self.only_answers(waker, slept.at, step.at) {
            return None;
        }
        Some(Ended { sleeper, number, at: slept.at, ns, object })
    }

    /// Whether a kernel thread slept for nearly all of this time. Then the sleeper did not wait for
    /// its work but for time to pass, for example until all CPUs had been through a quiescent state
    /// (RCU). That time would pass as well had the wait begun earlier.
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

    /// What the replay knows of an object.
    fn known(&self, object: Object) -> Option<&ReplayObject> {
        self.objects.get(self.id(object).0 as usize)
    }

    /// The kind of an object.
    pub(super) fn kind(&self, object: Object) -> ObjectKind {
        self.known(object).map_or(ObjectKind::Other, |o| o.kind)
    }

    /// Whether an object is the end of a thread or process. A thread that waits for an end asks
    /// nothing of it.
    pub(super) fn is_end(&self, object: Object) -> bool {
        let is_end =
            |o: &ReplayObject| o.kind == ObjectKind::Child || o.usage == Some(FutexUse::Join);
        self.known(object).is_some_and(is_end)
    }

    /// Find which sleeps threads ended, and which threads other threads created.
    pub(super) fn find_ends(&mut self) {
        for &(slot, _) in &self.slots {
            for step in self.analysis.steps(slot).steps {
                match step.what {
                    Did::Wake { .. } => {
                        let Some(ended) = self.ended(slot, step) else { continue };
                        let base = self.bases[self.numbers[&ended.sleeper] as usize];
                        self.woken.insert(base + ended.number);
                        let kind = self.kind(ended.object);
                        self.asked.add(self.analysis, slot, &ended, kind);
                    }
                    Did::Spawn(child) => {
                        self.spawned.insert(child);
                    }
                    _ => {}
                }
            }
        }
        self.asked.sort(self.analysis);
    }
}
