//! Kernel locks: who waited for which, how, and for how long; with lockdep also who held them.
//!
//! [`contention`] follows `lock:contention_begin/end`, [`lockdep`] the four lockdep events; both
//! keep sums per lock, kind, caller and thread, from which [`Analysis::locks`] makes every table.
//! Memory grows with those, not with events.
//!
//! What a trace cannot show, because the kernel has no event for it: rwsems report nothing while
//! they spin for a running owner, only when they go to sleep; guests of a hypervisor without
//! paravirtual spinlocks use test-and-set locks, which report nothing at all. Kernels before 5.19
//! have no contention events.

mod caller;
mod contention;
mod hists;
mod holders;
mod kind;
mod known;
mod lockdep;
mod people;
mod rows;
mod stats;
mod turns;

pub(crate) use caller::is_locking;
pub use kind::LockKind;
pub use known::known_lock;
pub use people::LockPeople;
pub(crate) use rows::SWAPPER;
pub use rows::{LockBy, LockRow, LockSource};

use crate::engine::Engine;
use crate::facts::{Fact, LockWait, LockWaiter, Split};
use crate::threads::{Slot, Threads};
use caller::LockCode;
use contention::{Contention, Key};
use holdup_trace::{Cpu, Event, EventKind, NameId, Nanos, QualityCode, Recorded, SymbolTable, Tid};
use lockdep::{Lockdep, Released, Waited};
use stats::Away;
use std::collections::BTreeMap;
use turns::Turns;

/// So many combinations of lock, kind, caller and thread are kept apart, the rest goes to one row:
/// a bound against hostile files.
const MAX_KEYS: usize = 1 << 17;

/// The address that stands for all locks beyond [`MAX_KEYS`].
const OTHER: u64 = u64::MAX;

/// Who waits or holds: a thread, or the idle task of one CPU (interrupts on top of it).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Waiter(u32);

impl Waiter {
    const IDLE: u32 = 1 << 31;
    /// The recorder could not tell (perf writes -1 for threads already gone).
    const UNKNOWN: Waiter = Waiter(u32::MAX - 1);
    /// Everybody beyond [`MAX_KEYS`].
    const OTHER: Waiter = Waiter(u32::MAX);

    fn idle(cpu: Cpu) -> Waiter {
        Waiter(Waiter::IDLE | cpu.0 as u32)
    }

    fn thread(slot: Slot) -> Waiter {
        Waiter(slot.0)
    }

    fn is_idle(self) -> bool {
        self.0 & Waiter::IDLE != 0 && self < Waiter::UNKNOWN
    }

    /// The thread; `None` for the idle tasks and the unknown.
    fn slot(self) -> Option<Slot> {
        (self.0 < Waiter::IDLE).then_some(Slot(self.0))
    }

    fn away(self, threads: &Threads, now: Nanos) -> Away {
        self.slot().map_or_else(Away::default, |slot| Away::at(&threads[slot], now))
    }
}

/// A lock that was waited for, as its events tell.
struct Contended {
    lock: u64,
    kind: Option<LockKind>,
    caller: u64,
    source: LockSource,
}

/// Both machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    code: LockCode,
    contention: Contention,
    lockdep: Lockdep,
    /// Names by address, of callers and of locks.
    names: BTreeMap<u64, String>,
}

impl Locks {
    pub(crate) fn new(recorded: &Recorded, symbols: &SymbolTable) -> Locks {
        let mut locks = Locks { code: LockCode::new(symbols), ..Locks::default() };
        locks.contention.turns = recorded.has(EventKind::ContendedRelease).then(Turns::default);
        locks.lockdep.releases = recorded.has(EventKind::LockRelease);
        locks.lockdep.acquires = recorded.has(EventKind::LockAcquire);
        locks
    }

    /// Whether `address` lies in a function that takes locks, as far as symbols tell.
    pub(crate) fn is_locking(&self, address: u64) -> bool {
        self.code.contains(address)
    }

    /// Keep the names of all addresses seen.
    pub(crate) fn name(&mut self, symbols: &SymbolTable) {
        if symbols.is_empty() {
            return;
        }
        let name = |(name, offset): (&str, u64)| {
            if offset == 0 { name.to_owned() } else { format!("{name}+{offset:#x}") }
        };
        for key in self.contention.sums.keys() {
            if let Some(known) = symbols.lookup(key.caller) {
                self.names.entry(key.caller).or_insert_with(|| name(known));
            }
            if let Some(known) = symbols.variable(key.lock) {
                self.names.entry(key.lock).or_insert_with(|| name(known));
            }
        }
    }
}

/// The events.
impl Engine {
    fn lock_waiter(&mut self, e: &Event) -> Waiter {
        match e.tid {
            Tid::IDLE => Waiter::idle(e.cpu),
            Tid::UNKNOWN => Waiter::UNKNOWN,
            tid => Waiter::thread(self.find_or_add(tid)),
        }
    }

    /// The number of waits its thread has open changes: time up to now belongs to the old number.
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
            self.locks.lockdep.told(lock, kind, waiter);
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

    /// A lock that others wait for is given back.
    #[cold]
    pub(crate) fn contended_release(&mut self, now: Nanos, e: &Event, lock: u64) {
        let holder = self.lock_waiter(e);
        if let Some(turns) = &mut self.locks.contention.turns {
            turns.released(now, lock, holder);
            self.waits.turn_ends(now, lock, holder.slot());
        }
    }

    /// A system call of a thread begins or ends: whatever it waited for before, it waits no more.
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

    /// Where contention events tell who waits, lockdep need not.
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
}
