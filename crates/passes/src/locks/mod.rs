//! Kernel locks: which threads waited for which, how, and for how long; with lockdep also holders.
//!
//! [`contention`] follows `lock:contention_begin/end`, [`lockdep`] the four lockdep events; both
//! keep sums per lock, kind, caller and thread, from which [`Analysis::locks`] makes every table.
//! Memory grows with these combinations, not with events.
//!
//! Some waits have no events in the kernel: rwsems report nothing while they spin for a running
//! owner, only when they go to sleep; guests of a hypervisor without paravirtual spinlocks use
//! test-and-set locks, which report nothing at all. Kernels before 5.19 have no contention events.

mod caller;
mod contention;
mod hists;
mod holders;
mod kind;
mod known;
mod lockdep;
mod row;
mod rows;
mod stats;
mod threads;
mod turns;

pub(crate) use caller::is_locking;
pub use kind::{LockKind, LockSource};
pub use known::known_lock;
pub use row::{LockBy, LockRow};
pub(crate) use rows::SWAPPER;
pub use threads::LockThreads;

use crate::slot::Slot;
use crate::threads::Threads;
use caller::LockCode;
use contention::Contention;
pub(crate) use contention::Key;
use holdup_trace::{Cpu, EventKind, Nanos, Recorded, SymbolTable};
use lockdep::Lockdep;
pub(crate) use lockdep::{Released, Waited};
use stats::Away;
use std::collections::BTreeMap;
use turns::Turns;

/// This many combinations of lock, kind, caller and thread are kept apart, the rest shares one row:
/// a bound against hostile files.
const MAX_KEYS: usize = 1 << 17;

/// The address that stands for all locks beyond [`MAX_KEYS`].
const OTHER: u64 = u64::MAX;

/// A waiter or holder: a thread, or the idle task of one CPU (interrupts on top of it).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Waiter(u32);

impl Waiter {
    const IDLE: u32 = 1 << 31;
    /// The recorder could not tell (perf writes -1 for threads that have already ended).
    pub(crate) const UNKNOWN: Waiter = Waiter(u32::MAX - 1);
    /// All waiters beyond [`MAX_KEYS`].
    const OTHER: Waiter = Waiter(u32::MAX);

    pub(crate) fn idle(cpu: Cpu) -> Waiter {
        Waiter(Waiter::IDLE | cpu.0 as u32)
    }

    pub(crate) fn thread(slot: Slot) -> Waiter {
        Waiter(slot.0)
    }

    pub(crate) fn is_idle(self) -> bool {
        self.0 & Waiter::IDLE != 0 && self < Waiter::UNKNOWN
    }

    /// The thread; `None` for the idle tasks and the unknown.
    pub(crate) fn slot(self) -> Option<Slot> {
        (self.0 < Waiter::IDLE).then_some(Slot(self.0))
    }

    pub(crate) fn away(self, threads: &Threads, now: Nanos) -> Away {
        self.slot().map_or_else(Away::default, |slot| Away::at(&threads[slot], now))
    }
}

/// Both state machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    pub(crate) code: LockCode,
    pub(crate) contention: Contention,
    pub(crate) lockdep: Lockdep,
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
