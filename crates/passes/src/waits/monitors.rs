//! Monitors of Java: which one a thread sleeps for that sleeps at a word of its own.
//!
//! Each thread of HotSpot has one word at which it sleeps for monitors, whichever they are: to have
//! one, and to be notified at one. Probes tell before it sleeps which it is
//! (`ObjectMonitor::EnterI` and `wait`), and who gives one back before it wakes the next
//! (`ExitEpilog`). That is also how the word is told from others at which the thread sleeps: for
//! `LockSupport.park`, or for a time.

use super::class::{FutexOp, futex};
use super::{Class, FutexUse, Key, Object, ObjectKind, Waits};
use crate::slot::Slot;
use holdup_trace::{Nanos, Pid, Runtime};

/// What is known of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Monitors {
    /// What it asked for last, and the address of that.
    asked: Option<(Object, u64)>,
    /// The word at which it sleeps for monitors, as far as known. A condition variable of glibc has
    /// two of them, side by side.
    word: Option<u64>,
    /// It sleeps for the monitor that it asked for, or was woken from that.
    sleeps: bool,
    /// It gives back the one at this address, and has not yet woken the next.
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

    /// The monitor that a thread goes to sleep for in this call, if it does.
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
        // It did not get what it was woken for.
        self.forget_hold(slot, asked);
        Some(asked)
    }

    /// A thread ended the wait of another. Where that is for the monitor which it gave back just
    /// now, the word is known.
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

    /// The call returns in which a thread slept: it has the monitor now, or tries to.
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

/// The condition variable that a thread sleeps at in this call, if it does.
fn sleeps_at(class: Class, args: &[u64; 5]) -> Option<u64> {
    if class != Class::Futex {
        return None;
    }
    let f = futex(class, args);
    (f.op == FutexOp::WaitBitset).then_some(f.addr & !7)
}
