//! The events of locks of the kernel: which threads wait, and which hold them.

use super::Engine;
use crate::facts::{Fact, LockWait, LockWaiter, Split};
use crate::locks::{Key, LockKind, LockSource, Released, Waited, Waiter};
use crate::past::Past;
use crate::slot::Slot;
use crate::waits::Object;
use holdup_trace::{Event, NameId, Nanos, QualityCode, Tid};

/// A contended lock, as its events describe it.
struct Contended {
    lock: u64,
    kind: Option<LockKind>,
    caller: u64,
    source: LockSource,
}

impl Engine {
    fn lock_waiter(&mut self, e: &Event) -> Waiter {
        match e.tid {
            Tid::IDLE => Waiter::idle(e.cpu),
            Tid::UNKNOWN => Waiter::UNKNOWN,
            tid => Waiter::thread(self.find_or_add(tid)),
        }
    }

    /// The number of open lock waits of a thread changes: time up to now belongs to the old number.
    fn set_contending(&mut self, now: Nanos, e: &Event, waiter: Waiter, open: usize) {
        let Some(slot) = waiter.slot() else { return };
        if self.threads[slot].contending as usize == open {
            return;
        }
        if self.current_if(e.cpu, e.tid) == Some(slot) {
            self.charge(now, e.cpu);
        }
        let spins = open > 0 && self.caps.syscalls.are_any();
        let t = &mut self.threads[slot];
        if let Some(steps) = &mut self.waits.steps {
            steps.contends(now, slot, t.living.contended, open > 0);
        }
        t.contending = open as u32;
        t.spins = spins;
    }

    #[cold]
    pub(crate) fn contention_begin(
        &mut self,
        now: Nanos,
        e: &Event,
        lock: u64,
        flags: u32,
        chain: &[u64],
    ) {
        let waiter = self.lock_waiter(e);
        let away = waiter.away(&self.threads, now);
        let kind = LockKind::from_flags(flags);
        let caller = self.locks.code.caller(chain);
        if self.locks.lockdep.acquires {
            self.locks.lockdep.waits_at(lock, kind, waiter);
        }
        let open = self.locks.contention.begin(now, Key { lock, kind, caller, waiter }, away);
        if let Some(slot) = waiter.slot() {
            self.threads[slot].living.contended = lock;
        }
        self.set_contending(now, e, waiter, open);
    }

    #[cold]
    pub(crate) fn contention_end(&mut self, now: Nanos, e: &Event, lock: u64, taken: bool) {
        let waiter = self.lock_waiter(e);
        let away = waiter.away(&self.threads, now);
        if let Some(turns) = self.locks.contention.turns.as_mut().filter(|_| taken) {
            turns.taken(now, lock);
            self.waits.turn_ends(now, lock, None);
        }
        if let Some((open, over)) = self.locks.contention.end(now, lock, waiter, away) {
            let Key { lock, kind, caller, .. } = over.key;
            let of = Contended { lock, kind: Some(kind), caller, source: LockSource::Contention };
            self.waited(now, waiter, (over.since, over.span), of);
            self.set_contending(now, e, waiter, open);
        }
    }

    /// A lock that other threads wait for is released.
    #[cold]
    pub(crate) fn contended_release(&mut self, now: Nanos, e: &Event, lock: u64) {
        let holder = self.lock_waiter(e);
        if let Some(turns) = &mut self.locks.contention.turns {
            turns.released(now, lock, holder);
            self.waits.turn_ends(now, lock, holder.slot());
        }
    }

    /// A system call of a thread begins or ends: none of its lock waits can still be open.
    #[cold]
    pub(crate) fn abandon_waits(&mut self, slot: Slot) {
        let dropped = self.locks.contention.abandon(self.now, Waiter::thread(slot));
        self.quality.add(QualityCode::UnmatchedContention, dropped);
        let t = &mut self.threads[slot];
        t.contending = 0;
        t.spins = false;
    }

    #[cold]
    pub(crate) fn lock_acquire(
        &mut self,
        now: Nanos,
        e: &Event,
        lock: u64,
        class: NameId,
        flags: u32,
    ) {
        let waiter = self.lock_waiter(e);
        let away = waiter.away(&self.threads, now);
        self.locks.lockdep.acquire(now, lock, class, flags, waiter, away);
    }

    #[cold]
    pub(crate) fn lock_contended(&mut self, now: Nanos, e: &Event, lock: u64, class: NameId) {
        let waiter = self.lock_waiter(e);
        let away = waiter.away(&self.threads, now);
        let open = self.locks.lockdep.contended(now, lock, class, waiter, away);
        self.set_dep_contending(now, e, waiter, open);
    }

    #[cold]
    pub(crate) fn lock_acquired(&mut self, now: Nanos, e: &Event, lock: u64, class: NameId) {
        let waiter = self.lock_waiter(e);
        let away = waiter.away(&self.threads, now);
        let (open, waited) = self.locks.lockdep.acquired(now, lock, class, waiter, away);
        self.dep_waited(now, waiter, lock, waited);
        self.set_dep_contending(now, e, waiter, open);
    }

    #[cold]
    pub(crate) fn lock_release(&mut self, now: Nanos, e: &Event, lock: u64) {
        let waiter = self.lock_waiter(e);
        let away = waiter.away(&self.threads, now);
        let Released { open, waited, held_while_wanted } =
            self.locks.lockdep.release(now, lock, waiter, away);
        self.dep_waited(now, waiter, lock, waited);
        self.set_dep_contending(now, e, waiter, open);
        if let Some((slot, span)) = waiter.slot().zip(held_while_wanted) {
            self.lock_was_held(now, lock, slot, span);
        }
    }

    fn dep_waited(&mut self, now: Nanos, waiter: Waiter, lock: u64, waited: Option<Waited>) {
        if let Some(waited) = waited {
            let source = LockSource::Lockdep;
            self.waited(now, waiter, waited, Contended { lock, kind: None, caller: 0, source });
        }
    }

    /// A wait for a lock is over.
    fn waited(&mut self, now: Nanos, waiter: Waiter, (since, span): Waited, of: Contended) {
        let Some(facts) = &mut self.facts else { return };
        let Contended { lock, kind, caller, source } = of;
        facts.rows.push(Fact::LockWait(LockWait {
            start: since,
            end: now.max(since),
            waiter: match waiter.slot() {
                Some(slot) => LockWaiter::Thread(slot),
                None if waiter.is_idle() => LockWaiter::Idle,
                None => LockWaiter::Unknown,
            },
            lock,
            kind,
            caller,
            split: Split {
                running: span.running,
                interrupted: 0,
                runnable: span.runnable,
                blocked: span.blocked,
            },
            source,
        }));
    }

    /// If contention events say which threads wait, lockdep's events are not needed for that.
    fn set_dep_contending(&mut self, now: Nanos, e: &Event, waiter: Waiter, open: usize) {
        if !self.caps.contention {
            self.set_contending(now, e, waiter, open);
        }
    }

    /// See [`Engine::restart`].
    pub(crate) fn restart_locks(&mut self, now: Nanos) {
        let threads = &self.threads;
        self.locks.contention.restart(now, |w| w.away(threads, now));
        self.locks.lockdep.restart(now, |w| w.away(threads, now));
    }

    /// See [`Engine::finish`].
    pub(crate) fn finish_locks(&mut self, end: Nanos) {
        self.locks.contention.finish(end);
        self.locks.lockdep.finish(end);
        self.quality.add(
            QualityCode::LocksFolded,
            self.locks.contention.folded + self.locks.lockdep.folded,
        );
    }

    /// A thread held the lock with this lockdep map while others waited. The thread is followed
    /// from its first such hold on: following every thread that ever takes a lock would cost too
    /// much.
    #[cold]
    fn lock_was_held(&mut self, now: Nanos, lock: u64, slot: Slot, span: (Nanos, Nanos)) {
        let t = &mut self.threads[slot];
        t.past.get_or_insert_with(|| Box::new(Past::since(now)));
        let t = &self.threads[slot];
        let Some(past) = &t.past else { return };
        let times = self.locks.lockdep.holders_did.entry(lock).or_default();
        // The hold began after the thread's own wait for the lock.
        past.while_it_had(|_: Object| false, span, t.does(), |did, ns| times.add(did, ns));
    }
}
