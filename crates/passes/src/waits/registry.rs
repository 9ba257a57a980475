//! Which objects exist, and which turned out to be the same.

use super::files::Opened;
use super::{FutexUse, Key, Object, ObjectKind, Thing, Waits};
use crate::limits::MATTERS;
use crate::slot::Slot;

/// Objects beyond this many share one row; a server opens a descriptor per connection.
pub(crate) const MAX_OBJECTS: usize = 1 << 18;

impl Waits {
    /// The final object of an object.
    pub(crate) fn find(&self, mut object: Object) -> Object {
        while self.parents[object.0 as usize] != object {
            object = self.parents[object.0 as usize];
        }
        object
    }

    pub(super) fn thing(&mut self, object: Object) -> &mut Thing {
        &mut self.things[object.0 as usize]
    }

    /// Its kind, as far as known.
    pub(crate) fn kind_of(&self, object: Object) -> ObjectKind {
        self.things[object.0 as usize].kind
    }

    pub(super) fn intern(&mut self, key: Key, kind: ObjectKind, group: u32) -> Object {
        if let Some(&o) = self.index.get(&key) {
            return self.find(o);
        }
        if self.things.len() >= MAX_OBJECTS {
            return Object::OTHER;
        }
        let object = Object(self.things.len() as u32);
        self.index.insert(key, object);
        let code = match key {
            Key::Futex { addr, .. } | Key::Parked { addr, .. } => {
                self.groups[group as usize].images.below(addr).map(Box::new)
            }
            _ => None,
        };
        self.things.push(Thing { kind, group, code, ..Thing::default() });
        self.keys.push(key);
        self.parents.push(object);
        object
    }

    /// The object that a descriptor refers to; or the lock of that object, which is a separate
    /// object.
    pub(super) fn intern_opened(
        &mut self,
        id: u32,
        lock: bool,
        kind: ObjectKind,
        group: u32,
        opened: Opened,
    ) -> Object {
        let object = self.intern(Key::Descriptor { id, lock }, kind, group);
        if object != Object::OTHER {
            self.things[object.0 as usize].opened.get_or_insert(opened);
        }
        object
    }

    /// Two objects turn out to be the same.
    pub(super) fn unite(&mut self, a: Object, b: Object) -> Object {
        let (a, b) = (self.find(a), self.find(b));
        if a == b || a == Object::OTHER || b == Object::OTHER {
            return a;
        }
        let (keep, drop) = (a.min(b), a.max(b));
        let other = std::mem::take(&mut self.things[drop.0 as usize]);
        self.things[keep.0 as usize].merge(&other);
        self.parents[drop.0 as usize] = keep;
        // Other objects then point to the root directly: chains stay short.
        let mut at = drop;
        while self.parents[at.0 as usize] != keep {
            at = std::mem::replace(&mut self.parents[at.0 as usize], keep);
        }
        keep
    }

    /// What a futex word is used for. glibc's condition variables keep two more words, on which
    /// signallers wait for slow waiters to leave, 24 bytes below the words that waiters sleep on.
    /// Waiters of a condition variable sleep on two neighbouring words in turn, waiters of a
    /// semaphore always on the same word.
    pub(crate) fn usage(&self, object: Object) -> FutexUse {
        /// After this many waits, one woken at a time, both words of a condition variable have been
        /// used.
        const BOTH_WORDS: u64 = 8;
        let thing = &self.things[object.0 as usize];
        let (usage, ops) = (thing.futex.usage(), &thing.futex);
        match self.keys[object.0 as usize] {
            Key::Futex { space, shared, addr }
                if usage == FutexUse::Condvar
                    && ops.wait_0 == ops.wait + ops.wait_bitset
                    && ops.wait_0.min(ops.wake_one) >= BOTH_WORDS
                    && ops.wake_all == 0
                    && addr % 8 == 0
                    && !self.index.contains_key(&Key::Futex { space, shared, addr: addr + 4 }) =>
            {
                FutexUse::Semaphore
            }
            Key::Futex { .. }
                if usage == FutexUse::Barrier && self.condvar_of(object).is_some() =>
            {
                FutexUse::Condvar
            }
            // Many barriers are built from a condition variable.
            Key::Futex { .. } if usage == FutexUse::Condvar && thing.is_barrier() => {
                FutexUse::Barrier
            }
            _ => usage,
        }
    }

    /// The condition variable that contains a word with the operations of a barrier.
    pub(crate) fn condvar_of(&self, object: Object) -> Option<u64> {
        const BELOW: u64 = 24;
        let Key::Futex { space, shared, addr } = self.keys[object.0 as usize] else { return None };
        let base = (addr & !7).checked_add(BELOW)?;
        let is_condvar = |addr| {
            let o = self.index.get(&Key::Futex { space, shared, addr })?;
            (self.things[self.find(*o).0 as usize].futex.usage() == FutexUse::Condvar)
                .then_some(base)
        };
        is_condvar(base).or_else(|| is_condvar(base + 4))
    }

    /// The object of the kernel lock at an address, if a thread has slept for it.
    pub(crate) fn kernel_lock(&self, addr: u64) -> Option<Object> {
        self.index.get(&Key::KernelLock { addr, nr: 0 }).map(|&object| self.find(object))
    }

    /// Whether a wait for it is a wait for the end of a thread, similar to one for a child.
    pub(crate) fn is_join(&self, object: Object) -> bool {
        self.things[object.0 as usize].futex.join > 0
    }

    /// Whether any thread's wait for the object has ended.
    pub(crate) fn was_ended(&self, object: Object) -> bool {
        self.things[object.0 as usize].spans.count > 0
    }

    /// Whether threads that wait for it also end others' waits for it: at least two so far, and a
    /// part that matters. A program that naps until a signal comes gets one now and then.
    pub(crate) fn is_contended(&self, object: Object) -> bool {
        let thing = &self.things[object.0 as usize];
        let pct = thing.turns.saturating_mul(100) / thing.spans.count.max(1);
        thing.turns > 1 && pct as f64 >= MATTERS.default || self.are_turns_taken(object)
    }

    /// Whether one thread at a time holds it, and releases it itself. A semaphore also counts as a
    /// lock if its waiters are mostly woken by threads that wait for it too: Python's locks are
    /// semaphores.
    pub(crate) fn is_lock(&self, object: Object) -> bool {
        let thing = &self.things[object.0 as usize];
        thing.is_lock()
            || self.are_turns_taken(object)
            || thing.kind == ObjectKind::Futex
                && thing.turns * 2 > thing.spans.count
                && self.usage(object) == FutexUse::Semaphore
    }

    /// Whether a thread can end a wait for the object. A futex's waiter is woken by a call, or by
    /// the end of a thread that it joins; and no thread can reach a private futex of another
    /// process. Otherwise a timer's interrupt, which few traces have, came on top of that thread.
    pub(crate) fn can_wake(&self, object: Object, slot: Slot, waker: Slot, in_call: bool) -> bool {
        let Key::Futex { shared, .. } = self.keys[object.0 as usize] else { return true };
        if !in_call && !self.is_join(object) {
            return false;
        }
        if shared {
            return true;
        }
        let known = |s: Slot| {
            let group = self.threads.get(s)?.group;
            Some((group, self.groups.get(group as usize).filter(|g| g.known)?.space))
        };
        match (known(slot), known(waker)) {
            (Some(sleeper), Some(waker)) => sleeper == waker,
            _ => true,
        }
    }

    /// Whether it is a futex in shared memory that a thread of another process than the sleeper's
    /// wakes, now or earlier.
    pub(crate) fn between(&mut self, object: Object, slot: Slot, waker: Option<Slot>) -> bool {
        let Key::Futex { shared: true, .. } = self.keys[object.0 as usize] else { return false };
        let group = |s: Slot| self.threads.get(s).map(|w| w.group);
        let now = waker.is_some_and(|w| group(w) != group(slot));
        let thing = self.thing(object);
        thing.between |= now;
        thing.between
    }

    /// Whether the last wait for it was ended on purpose by another thread. A thread that also
    /// waits for its clients does so on another object.
    pub(crate) fn peer_before(&self, object: Object) -> bool {
        self.things[object.0 as usize].peer
    }

    /// Whether the thread's last wait was for the same object, and idle.
    pub(crate) fn idle_before(&self, slot: Slot, object: Object) -> bool {
        self.threads.get(slot).is_some_and(|w| w.idle_before == Some(object))
    }
}
