//! Waits for kernel locks: `lock:contention_begin` and `lock:contention_end`.
//!
//! ```text
//!            begin(L)                    end(L)
//!   free ───────────────► waiting for L ─────────► free       one wait, from the first begin
//!                          │      ▲
//!                          └──────┘ begin(L) again
//! ```
//!
//! One state per thread and lock, as in perf, because waits nest: a mutex reports
//! `begin(SPIN|MUTEX)` while it spins for the owner and `begin(MUTEX)` when it goes to sleep, with
//! no end in between, perhaps several times, and one end. Within that wait the spinlock that guards
//! the mutex's own list may have a begin and an end; and an interrupt may wait for a spinlock on
//! top of it all. Each lock's wait is counted in full, so sums over locks may count a nanosecond
//! twice; the ledger does not (see [`crate::ledger`]).
//!
//! Lost events: a wait cannot outlast the system call it began in. If it is still open when a call
//! of its thread begins or ends, its end was lost; it is dropped and counted in the quality notes.
//! perf keeps it and charges the whole time to the next end.

use super::kind::LockKind;
use super::stats::{Away, Span, Waits};
use super::turns::Turns;
use super::{MAX_KEYS, Waiter};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// Maximal number of open waits per thread; the kernel's limit on locks held is 48.
const MAX_NESTED: usize = 64;

/// The key of the sums: everything a table may be grouped or filtered by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) lock: u64,
    pub(crate) kind: LockKind,
    /// Return address in the caller; 0 if not recorded.
    pub(crate) caller: u64,
    pub(crate) waiter: Waiter,
}

/// Number of waiters of one lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Depth {
    pub(super) now: u32,
    pub(crate) max: u32,
}

impl Depth {
    pub(crate) fn up(&mut self) {
        self.now += 1;
        self.max = self.max.max(self.now);
    }

    pub(crate) fn down(&mut self) {
        self.now = self.now.saturating_sub(1);
    }

    pub(crate) fn restart(&mut self) {
        self.max = self.now;
    }
}

/// A wait in progress.
#[derive(Clone, Copy, Debug)]
struct Open {
    key: Key,
    since: Nanos,
    away: Away,
}

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    pub(crate) since: Nanos,
    pub(crate) key: Key,
    pub(crate) span: Span,
}

/// The state machine and its sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contention {
    open: FxHashMap<Waiter, Vec<Open>>,
    pub(crate) sums: FxHashMap<Key, Waits>,
    pub(crate) depths: FxHashMap<u64, Depth>,
    /// Waits that were counted in the row for all other locks.
    pub(crate) folded: u64,
    /// Holders of locks that others waited for; `None` if the trace does not tell.
    pub(crate) turns: Option<Turns>,
}

impl Contention {
    /// `contention_begin`. Returns how many waits `key.waiter` has open now.
    pub(crate) fn begin(&mut self, now: Nanos, mut key: Key, away: Away) -> usize {
        let open = self.open.entry(key.waiter).or_default();
        if open.iter().any(|o| o.key.lock == key.lock) || open.len() >= MAX_NESTED {
            return open.len();
        }
        if self.depths.len() < MAX_KEYS || self.depths.contains_key(&key.lock) {
            self.depths.entry(key.lock).or_default().up();
        }
        let lock = key.lock;
        if let Some(turns) = &mut self.turns {
            turns.wait_begins(now, lock);
        }
        if self.sums.len() >= MAX_KEYS && !self.sums.contains_key(&key) {
            key = Key { lock: super::OTHER, kind: key.kind, caller: 0, waiter: Waiter::OTHER };
            self.folded += 1;
        }
        self.sums.entry(key).or_default().begin(now);
        open.push(Open { key: Key { lock, ..key }, since: now, away });
        open.len()
    }

    /// `contention_end`. Returns how many waits `waiter` has open now, and the wait that ended;
    /// `None` if there was none.
    pub(crate) fn end(
        &mut self,
        now: Nanos,
        lock: u64,
        waiter: Waiter,
        away: Away,
    ) -> Option<(usize, Over)> {
        let open = self.open.get_mut(&waiter)?;
        let at = open.iter().rposition(|o| o.key.lock == lock)?;
        let o = open.remove(at);
        let left = open.len();
        if let Some(turns) = &mut self.turns {
            turns.wait_ends(now, lock);
        }
        let span = o.away.split(away, now.saturating_sub(o.since));
        let mut key = o.key;
        if key.waiter == Waiter::OTHER {
            key.lock = super::OTHER;
        }
        self.sums.entry(key).or_default().end(span);
        if let Some(depth) = self.depths.get_mut(&lock) {
            depth.down();
        }
        Some((left, Over { since: o.since, key: o.key, span }))
    }

    /// Drops the waits of `waiter`; returns how many.
    pub(crate) fn abandon(&mut self, now: Nanos, waiter: Waiter) -> u64 {
        let Some(open) = self.open.get_mut(&waiter) else { return 0 };
        let dropped = open.len() as u64;
        for o in open.drain(..) {
            if let Some(turns) = &mut self.turns {
                turns.wait_ends(now, o.key.lock);
            }
            if let Some(depth) = self.depths.get_mut(&o.key.lock) {
                depth.down();
            }
        }
        dropped
    }

    /// The part to be analysed starts at `now`; waits go on and count from here.
    pub(crate) fn restart(&mut self, now: Nanos, away: impl Fn(Waiter) -> Away) {
        self.sums.clear();
        self.folded = 0;
        self.depths.values_mut().for_each(Depth::restart);
        if let Some(turns) = &mut self.turns {
            turns.restart(now);
        }
        for (&waiter, open) in &mut self.open {
            for o in open {
                o.since = now;
                o.away = away(waiter);
                self.sums.entry(o.key).or_default().begin(now);
            }
        }
    }

    /// The trace ends.
    pub(crate) fn finish(&mut self, end: Nanos) {
        for o in self.open.values().flatten() {
            let mut key = o.key;
            if key.waiter == Waiter::OTHER {
                key.lock = super::OTHER;
            }
            let waits = self.sums.entry(key).or_default();
            waits.open += 1;
            waits.open_ns += end.saturating_sub(o.since);
        }
    }
}
