//! Tries at locks that fail at once. A thread that naps between two tries waits for the lock,
//! although no thread wakes it.
//!
//! ```text
//!  try fails ──► sleeps for a time ──► tries again ──► fails ──► sleeps: waiting for the lock
//!                (perhaps only a pause)                          (it does so again and again)
//! ```
//!
//! Programs that fail to get one lock of several give the others back before they nap, so one call
//! on the same file may succeed in between.

use super::{Object, ObjectKind, Waits};
use crate::slot::Slot;
use holdup_syscalls::WaitKind;

/// The results of a thread's last tries at a lock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tries {
    /// The object that the last try since its last nap failed to get.
    failed: Option<Object>,
    /// Successful calls on that object since then.
    successes: u8,
    /// The object of a failed try after which it naps, or napped and has not tried again.
    napped: Option<Object>,
    /// The object for which it has returned from such a nap to try again.
    again: Option<Object>,
}

/// Calls that may succeed between a failed try and the nap: one, which releases something.
const GIVEN_BACK: u8 = 1;

impl Waits {
    /// A call that would have to wait for `object` returns without it.
    pub(super) fn try_fails(&mut self, slot: Slot, object: Object) {
        if object == Object::OTHER {
            return;
        }
        if self.comes_back(slot, object) {
            self.thing(object).retries += 1;
        }
        let tries = &mut self.waiter(slot).tries;
        (tries.failed, tries.successes) = (Some(object), 0);
    }

    /// A call takes or releases the object.
    #[inline]
    pub(super) fn try_succeeds(&mut self, slot: Slot, object: Object) {
        let tries = &mut self.waiter(slot).tries;
        if tries.failed.is_none() && tries.napped.is_none() {
            return;
        }
        self.comes_back(slot, object);
        let tries = &mut self.waiter(slot).tries;
        tries.successes = tries.successes.saturating_add(1);
        if tries.successes > GIVEN_BACK {
            tries.failed = None;
        }
    }

    /// Whether it tries again after a nap.
    fn comes_back(&mut self, slot: Slot, object: Object) -> bool {
        let napped = self.waiter(slot).tries.napped.map(|o| self.find(o));
        if napped != Some(object) {
            return false;
        }
        let tries = &mut self.waiter(slot).tries;
        (tries.napped, tries.again, tries.successes) = (None, Some(object), 0);
        true
    }

    /// A thread goes to sleep in a call of this kind: the object of its nap, if it is one.
    pub(super) fn naps_for(&mut self, slot: Slot, kind: Option<WaitKind>) -> Option<Object> {
        if !matches!(kind, Some(WaitKind::Timer | WaitKind::Poll)) {
            return None;
        }
        let tries = &mut self.waiter(slot).tries;
        let object = tries.failed.take();
        if object.is_none() {
            // A thread that napped twice without a try does something else.
            tries.again = None;
        }
        tries.napped = object;
        object.map(|o| self.find(o))
    }

    /// Whether the current sleep is a nap after a try at the object.
    pub(crate) fn naps(&self, slot: Slot, object: Object) -> bool {
        let napped = self.threads.get(slot).and_then(|w| w.tries.napped);
        napped.is_some_and(|o| self.find(o) == self.find(object))
    }

    /// Whether it is a nap between two tries at the object, and not the first.
    pub(crate) fn retries(&self, slot: Slot, object: Object) -> bool {
        if self.kind_of(object) == ObjectKind::PolledLock {
            return true;
        }
        let again = self.threads.get(slot).and_then(|w| w.tries.again);
        self.naps(slot, object) && again.is_some_and(|o| self.find(o) == self.find(object))
    }
}
