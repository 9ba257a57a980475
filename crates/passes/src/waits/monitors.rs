//! Monitors of Java: which monitor a thread sleeps for on its own futex word.
//!
//! Each thread of HotSpot has one word on which it sleeps for all monitors: to enter one, and to be
//! notified. Probes tell before the sleep which monitor it is (`ObjectMonitor::EnterI` and `wait`),
//! and which thread releases one before it wakes the next (`ExitEpilog`). That also distinguishes
//! this word from the others on which the thread sleeps: for `LockSupport.park`, or for a time.

use super::class::{FutexOp, futex};
use super::{Class, FutexUse, Key, Object, ObjectKind, Waits};
use crate::slot::Slot;
use holdup_trace::{Nanos, Pid, Runtime};

/// What is known about one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Monitors {
    /// The monitor that it last asked for, and its address.
    asked: Option<(Object, u64)>,
    /// The word on which it sleeps for monitors, as far as known. A condition variable of glibc has
    /// two adjacent words.
    word: Option<u64>,
    /// It sleeps for the monitor that it asked for, or was woken from that sleep.
    sleeps: bool,
    /// It is releasing the monitor at this address, and has not yet woken the next thread.
    gives: Option<u64>,
}

impl Waits {
    /// A thread does something with the monitor at an address.
    pub(crate) fn monitor(&mut self, now: Nanos, who: (Slot, Pid), does: Runtime, addr: u64) {
        let (slot, pid) = who;
        let group = self.group(slot, pid);
        let space = self.groups[group as usize].space;
        let notified = does == Runtime::AwaitsMonitor;
        let key = Key::Monitor { space, addr, notified };
        if does == Runtime::GivesMonitor {
            self.waiter(slot).monitors.gives = Some(addr);
            if let Some(&object) = self.index.get(&key) {
                self.release(now, slot, object);
            }
            return;
        }
        let object = self.intern(key, ObjectKind::Futex, group);
        if object == Object::OTHER {
            return;
        }
        let usage = if notified { FutexUse::Condvar } else { FutexUse::Mutex };
        let thing = self.thing(object);
        thing.futex.said = Some(usage);
        thing.came += 1;
        let monitors = &mut self.waiter(slot).monitors;
        (monitors.asked, monitors.sleeps) = (Some((object, addr)), false);
    }

    /// The monitor for which a thread goes to sleep in this call; `None` if it sleeps for another
    /// thing.
    pub(super) fn sleeps_for_monitor(
        &mut self,
        slot: Slot,
        class: Class,
        args: &[u64; 5],
    ) -> Option<Object> {
        let (asked, _) = self.threads.get(slot)?.monitors.asked?;
        let word = sleeps_at(class, args)?;
        let monitors = &mut self.waiter(slot).monitors;
        if monitors.word.is_some_and(|known| known != word) {
            return None;
        }
        monitors.sleeps = true;
        // It did not get the monitor that it was woken for.
        self.forget_hold(slot, asked);
        Some(asked)
    }

    /// A thread ended the wait of another. If the wait was for the monitor that the waker just
    /// released, the word is now known.
    pub(super) fn lets_go(&mut self, slot: Slot, waker: Slot) {
        let Some(gives) = self.threads.get(waker).and_then(|w| w.monitors.gives) else { return };
        self.waiter(waker).monitors.gives = None;
        if self.waiter(slot).monitors.asked.is_some_and(|(_, addr)| addr == gives) {
            let called = *self.called(slot);
            let word = sleeps_at(called.class, &called.args);
            let known = &mut self.waiter(slot).monitors.word;
            *known = word.or(*known);
        }
    }

    /// The call in which a thread slept returns: it has the monitor now, or tries to enter it.
    pub(super) fn woken_for_monitor(&mut self, now: Nanos, slot: Slot) {
        let Some(Monitors { asked: Some((object, _)), sleeps: true, .. }) =
            self.threads.get(slot).map(|w| w.monitors)
        else {
            return;
        };
        self.waiter(slot).monitors.sleeps = false;
        if self.is_lock(object) {
            self.acquire(now, slot, object, true);
        }
    }
}

/// The word on which a thread sleeps in this call, if it does.
fn sleeps_at(class: Class, args: &[u64; 5]) -> Option<u64> {
    if class != Class::Futex {
        return None;
    }
    let f = futex(class, args);
    (f.op == FutexOp::WaitBitset).then_some(f.addr & !7)
}
