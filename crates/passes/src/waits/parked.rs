//! Tasks of a runtime sleep: for what, and which task releases it.
//!
//! A mutex of Go is a word and a semaphore. A task that finds the word locked sleeps on the
//! semaphore (`runtime.semacquire1`), and a task that unlocks while others sleep wakes one of them
//! (`runtime.semrelease1`). A futex does the same for the mutexes of the threads library, so both
//! are judged in the same way.

use super::object::Unaddressed;
use super::{FutexUse, Key, Object, ObjectKind, Waits};
use crate::slot::Slot;
use holdup_syscalls::WaitKind;
use holdup_trace::{Nanos, Parked, Pid};

/// Offset of the semaphore in a `sync.Mutex`; and in a `sync.RWMutex`, which begins with a mutex
/// for writers, of the semaphore of the writer that waits for readers, and of the readers'
/// semaphore.
const OF_MUTEX: u64 = 4;
const OF_WRITER: u64 = 8;
const OF_READERS: u64 = 12;

impl Waits {
    /// What a parking task waits for: the semaphore that it last asked for, if that was recorded
    /// (else 0), or what the runtime names, which for semaphores is the runtime's table of all of
    /// them.
    pub(crate) fn parked_for(
        &mut self,
        (slot, pid): (Slot, Pid),
        semaphore: u64,
        on: u64,
        why: Parked,
    ) -> (Object, WaitKind) {
        let group = self.group(slot, pid);
        let (within, usage) = match why {
            Parked::Mutex => (OF_MUTEX, FutexUse::Mutex),
            Parked::WriteLock => (OF_WRITER, FutexUse::RwLock),
            Parked::ReadLock => (OF_READERS, FutexUse::RwLock),
            Parked::Group => (0, FutexUse::Group),
            Parked::Semaphore => (0, FutexUse::Semaphore),
            Parked::Cond => (0, FutexUse::Condvar),
            Parked::Receive | Parked::Send => (0, FutexUse::Channel),
            Parked::Select => return self.unaddressed(group, Unaddressed::Select),
            Parked::Sleep => return self.unaddressed(group, Unaddressed::Sleep),
            Parked::Io => return self.unaddressed(group, Unaddressed::Io),
            Parked::Runtime => return self.unaddressed(group, Unaddressed::Runtime),
        };
        let space = self.groups[group as usize].space;
        let at = match why {
            Parked::Cond | Parked::Receive | Parked::Send => on,
            _ if semaphore == 0 => return self.unaddressed(group, Unaddressed::Runtime),
            _ => semaphore,
        };
        let key = Key::Parked { space, addr: at.wrapping_sub(within) };
        let object = self.intern(key, ObjectKind::Futex, group);
        if object == Object::OTHER {
            return (object, WaitKind::ThreadSync);
        }
        self.index.insert(Key::ParkedAt { space, semaphore: at }, object);
        let ops = &mut self.thing(object).futex;
        // Writers first take the mutex of a readers-writer lock.
        if ops.said != Some(FutexUse::RwLock) {
            ops.said = Some(usage);
        }
        // Parked again: it did not get what it was woken for.
        let again = self.forget_hold(slot, object);
        self.thing(object).came += u64::from(!again);
        (object, WaitKind::ThreadSync)
    }

    /// A task waits for something without an address.
    pub(crate) fn parked_without(
        &mut self,
        slot: Slot,
        pid: Pid,
        why: Unaddressed,
    ) -> (Object, WaitKind) {
        let group = self.group(slot, pid);
        self.unaddressed(group, why)
    }

    fn unaddressed(&mut self, group: u32, why: Unaddressed) -> (Object, WaitKind) {
        let (kind, wait) = match why {
            Unaddressed::Select => (ObjectKind::Futex, WaitKind::ThreadSync),
            Unaddressed::Sleep => (ObjectKind::Timer, WaitKind::Timer),
            Unaddressed::Io => (ObjectKind::Poll, WaitKind::Poll),
            Unaddressed::Runtime | Unaddressed::Start => (ObjectKind::Other, WaitKind::Poll),
        };
        let object = self.intern(Key::ParkedFor { group, why }, kind, group);
        if why == Unaddressed::Select && object != Object::OTHER {
            self.thing(object).futex.said = Some(FutexUse::Channel);
        }
        (object, wait)
    }

    /// A task releases the lock with this semaphore while other tasks wait.
    pub(crate) fn releases(&mut self, now: Nanos, slot: Slot, pid: Pid, semaphore: u64) {
        let group = self.group(slot, pid);
        let space = self.groups[group as usize].space;
        if let Some(&object) = self.index.get(&Key::ParkedAt { space, semaphore }) {
            let object = self.find(object);
            self.release(now, slot, object);
        }
    }

    /// A woken task runs: now it tries to take the lock, if it waited for one.
    pub(crate) fn was_released(&mut self, now: Nanos, slot: Slot, object: Object) {
        let object = self.find(object);
        if self.is_lock(object) {
            self.acquire(now, slot, object, true);
        }
    }
}
