//! Acquisitions, waits and holds as lockdep reports them: `lock:lock_acquire`, `lock_contended`,
//! `lock_acquired`, `lock_release` (kernels built with `LOCK_STAT` or `PROVE_LOCKING`).
//!
//! ```text
//!   free ──acquire──► acquiring ──contended──► waiting
//!                        │  │                    │ acquired
//!       release (lock    │  └──acquired──► held ◄┘
//!       without a wait)  │                   │ release
//!   free ◄───────────────┴───────────────────┘
//! ```
//!
//! * `acquire` with the *try* flag comes after the fact: the lock is already held.
//! * Lock maps that threads never wait for (`rcu_read_lock`, sequence counts, work items) have no
//!   `acquired`: they are held from `acquire` on. Only the release shows that a lock is of this
//!   kind.
//! * A wait that ends in `release` was abandoned (a signal): it counts as a wait, not as acquired.
//! * A lock taken again by the thread that holds it (readers may) counts again, as in
//!   `/proc/lock_stat`; the depth is kept as recursion.
//! * Hold times start at `acquired` (or else `acquire`), wait times at `contended`, as in
//!   lock_stat.
//!
//! Without `lock_release` in the recording hold times are not known, and without `lock_acquire`
//! acquisitions by trylock are not counted; the two events of waits alone
//! (`lock_contended`, `lock_acquired`) are much cheaper to record.
//!
//! Lost events: what does not fit is believed: `acquired` without `acquire` is held from then on,
//! `release` alone says nothing. A lock that another thread releases (per-CPU semaphores handed
//! over) stays open and is forgotten.

use super::contention::Depth;
use super::kind::LockKind;
use super::stats::{Away, Holds, Span, Waits};
use super::{MAX_KEYS, Waiter};
use crate::past::HolderTimes;
use holdup_trace::{NameId, Nanos};
use rustc_hash::FxHashMap;

/// Flags of `lock_acquire`.
const TRY: u32 = 1;
const READ: u32 = 2;
/// `MAX_LOCK_DEPTH` of the kernel is 48.
const MAX_HELD: usize = 64;
/// Maximal distance of a lock's map from the start of the lock.
const LOCK_SIZE: u64 = 512;

/// The key of the sums.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DepKey {
    /// Address of the `lockdep_map`.
    pub(crate) lock: u64,
    pub(crate) waiter: Waiter,
}

/// Sums of one lock and thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct DepSums {
    pub(crate) acquired: u64,
    pub(crate) trylocks: u64,
    pub(crate) reads: u64,
    pub(crate) waits: Waits,
    pub(crate) holds: Holds,
    /// Maximal number of times it was held at once by one thread.
    pub(crate) recursion: u64,
}

impl DepSums {
    pub(crate) fn merge(&mut self, o: &DepSums) {
        self.acquired += o.acquired;
        self.trylocks += o.trylocks;
        self.reads += o.reads;
        self.waits.merge(&o.waits);
        self.holds.merge(&o.holds);
        self.recursion = self.recursion.max(o.recursion);
    }
}

/// What is known about one lock, independent of threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DepLock {
    pub(crate) class: NameId,
    /// Bits of the kinds as which it was taken.
    kinds: u16,
    pub(crate) depth: Depth,
    /// Start of the current or last time in which threads wait for it.
    wanted_since: Nanos,
    /// End of the last such time.
    wanted_until: Nanos,
}

impl DepLock {
    /// The kinds as which it was taken.
    fn kinds(&self) -> impl Iterator<Item = LockKind> {
        let kinds = self.kinds;
        LockKind::ALL.into_iter().filter(move |&k| kinds & (1 << k as u16) != 0)
    }

    fn is_wanted(&mut self, now: Nanos) {
        if self.depth.now == 0 {
            self.wanted_since = now;
        }
        self.depth.up();
    }

    fn is_wanted_no_more(&mut self, now: Nanos) {
        self.depth.down();
        if self.depth.now == 0 {
            self.wanted_until = now;
        }
    }

    /// The span within `since` to `now` in which others waited for the lock while it was held.
    fn wanted_within(&self, since: Nanos, now: Nanos) -> Option<(Nanos, Nanos)> {
        let from = since.max(self.wanted_since);
        let to = if self.depth.now > 0 { now } else { self.wanted_until.min(now) };
        (from < to).then_some((from, to))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Acquiring,
    Waiting,
    Held,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    lock: u64,
    stage: Stage,
    since: Nanos,
    away: Away,
}

/// When a wait began, and what its time was spent on.
pub(crate) type Waited = (Nanos, Span);

/// What a thread releases, or no longer waits for.
#[derive(Default)]
pub(crate) struct Released {
    /// Waits that it has open now.
    pub(crate) open: usize,
    /// The wait that is over.
    pub(crate) waited: Option<Waited>,
    /// The span in which it held the lock and others waited for it.
    pub(crate) held_while_wanted: Option<(Nanos, Nanos)>,
}

/// The state machine and its sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lockdep {
    /// `lock_release` was recorded: otherwise hold times are unknown.
    pub(crate) releases: bool,
    /// `lock_acquire` was recorded: otherwise trylocks and reads are unknown.
    pub(crate) acquires: bool,
    held: FxHashMap<Waiter, Vec<Held>>,
    pub(crate) sums: FxHashMap<DepKey, DepSums>,
    pub(crate) locks: FxHashMap<u64, DepLock>,
    /// The map in the lock at an address, if both are known.
    maps: FxHashMap<u64, u64>,
    /// Acquisitions and waits that were counted in the row for all other locks.
    pub(crate) folded: u64,
    /// What holders of a lock did while others waited for it.
    pub(crate) holders_did: FxHashMap<u64, HolderTimes>,
}

impl Lockdep {
    fn sums(&mut self, lock: u64, waiter: Waiter) -> &mut DepSums {
        let mut key = DepKey { lock, waiter };
        if self.sums.len() >= MAX_KEYS && !self.sums.contains_key(&key) {
            key = DepKey { lock: super::OTHER, waiter: Waiter::OTHER };
            self.folded += 1;
        }
        self.sums.entry(key).or_default()
    }

    fn lock(&mut self, lock: u64, class: NameId) -> Option<&mut DepLock> {
        if self.locks.len() >= MAX_KEYS && !self.locks.contains_key(&lock) {
            return None;
        }
        let known = self.locks.entry(lock).or_default();
        if class != NameId::NONE {
            known.class = class;
        }
        Some(known)
    }

    /// `lock_acquire`.
    pub(crate) fn acquire(
        &mut self,
        now: Nanos,
        lock: u64,
        class: NameId,
        flags: u32,
        waiter: Waiter,
        away: Away,
    ) {
        self.lock(lock, class);
        let held = self.held.entry(waiter).or_default();
        // Only readers may take a lock twice: the release was lost, or another thread did it.
        held.retain(|h| {
            h.lock != lock
                || h.stage == Stage::Held && flags & (READ | TRY) != 0
                || flags & READ != 0
        });
        let depth =
            held.iter().filter(|h| h.lock == lock && h.stage != Stage::Waiting).count() as u64 + 1;
        if held.len() >= MAX_HELD {
            held.remove(0);
        }
        let tried = flags & TRY != 0;
        if self.releases || !tried {
            held.push(Held {
                lock,
                stage: if tried { Stage::Held } else { Stage::Acquiring },
                since: now,
                away,
            });
        }
        let sums = self.sums(lock, waiter);
        sums.recursion = sums.recursion.max(depth);
        sums.trylocks += tried as u64;
        sums.acquired += tried as u64;
        sums.reads += (flags & READ != 0) as u64;
    }

    /// `lock_contended`. Returns how many waits `waiter` has open now.
    pub(crate) fn contended(
        &mut self,
        now: Nanos,
        lock: u64,
        class: NameId,
        waiter: Waiter,
        away: Away,
    ) -> usize {
        if let Some(l) = self.lock(lock, class) {
            l.is_wanted(now);
        }
        let held = self.held.entry(waiter).or_default();
        let waiting = Held { lock, stage: Stage::Waiting, since: now, away };
        match held.iter().rposition(|h| h.lock == lock && h.stage == Stage::Acquiring) {
            Some(at) => held[at] = waiting,
            None if held.len() < MAX_HELD => held.push(waiting),
            None => {}
        }
        let open = held.iter().filter(|h| h.stage == Stage::Waiting).count();
        self.sums(lock, waiter).waits.begin(now);
        open
    }

    /// `lock_acquired`. Returns how many waits `waiter` has open now, and the one that is over.
    pub(crate) fn acquired(
        &mut self,
        now: Nanos,
        lock: u64,
        class: NameId,
        waiter: Waiter,
        away: Away,
    ) -> (usize, Option<Waited>) {
        let held = self.held.entry(waiter).or_default();
        let mut waited = None;
        let holding = Held { lock, stage: Stage::Held, since: now, away };
        match held.iter().rposition(|h| h.lock == lock && h.stage != Stage::Held) {
            Some(at) => {
                let h = if self.releases {
                    std::mem::replace(&mut held[at], holding)
                } else {
                    held.remove(at)
                };
                waited = (h.stage == Stage::Waiting)
                    .then(|| (h.since, h.away.split(away, now.saturating_sub(h.since))));
            }
            None if self.releases && held.len() < MAX_HELD => held.push(holding),
            None => {}
        }
        let open = held.iter().filter(|h| h.stage == Stage::Waiting).count();
        if let Some(l) = self.lock(lock, class)
            && waited.is_some()
        {
            l.is_wanted_no_more(now);
        }
        let sums = self.sums(lock, waiter);
        sums.acquired += 1;
        if let Some((_, span)) = waited {
            sums.waits.end(span);
        }
        (open, waited)
    }

    /// `lock_release`.
    pub(crate) fn release(
        &mut self,
        now: Nanos,
        lock: u64,
        waiter: Waiter,
        away: Away,
    ) -> Released {
        let Some(held) = self.held.get_mut(&waiter) else { return Released::default() };
        let Some(at) = held.iter().rposition(|h| h.lock == lock) else {
            let open = held.iter().filter(|h| h.stage == Stage::Waiting).count();
            return Released { open, ..Released::default() };
        };
        let h = held.remove(at);
        let open = held.iter().filter(|h| h.stage == Stage::Waiting).count();
        let span = h.away.split(away, now.saturating_sub(h.since));
        if h.stage == Stage::Waiting
            && let Some(l) = self.locks.get_mut(&lock)
        {
            l.is_wanted_no_more(now);
        }
        let wanted = self.locks.get(&lock).and_then(|l| l.wanted_within(h.since, now));
        let sums = self.sums(lock, waiter);
        match h.stage {
            Stage::Waiting => sums.waits.end(span),
            Stage::Acquiring => {
                sums.acquired += 1;
                sums.holds.end(span);
            }
            Stage::Held => sums.holds.end(span),
        }
        let is_wait = h.stage == Stage::Waiting;
        Released {
            open,
            waited: is_wait.then_some((h.since, span)),
            held_while_wanted: wanted.filter(|_| !is_wait),
        }
    }

    /// A `contention_begin` of this kind for a lock at `lock`: the map that `waiter` is acquiring
    /// is in this lock if the addresses say so.
    pub(crate) fn waits_at(&mut self, lock: u64, kind: LockKind, waiter: Waiter) {
        let acquiring = self
            .held
            .get(&waiter)
            .and_then(|held| held.iter().rev().find(|h| h.stage != Stage::Held));
        if let Some(map) =
            acquiring.map(|h| h.lock).filter(|map| map.wrapping_sub(lock) < LOCK_SIZE)
            && let Some(known) = self.locks.get_mut(&map)
        {
            known.kinds |= 1 << kind as u16;
            self.maps.insert(lock, map);
        }
    }

    /// The kinds as which a lock was taken.
    pub(crate) fn kinds_of(&self, lock: u64) -> Vec<LockKind> {
        self.locks.get(&lock).map(|lock| lock.kinds().collect()).unwrap_or_default()
    }

    /// The lockdep map in the lock at `lock`, if [`Lockdep::waits_at`] found one.
    pub(crate) fn map_of(&self, lock: u64) -> Option<u64> {
        self.maps.get(&lock).copied()
    }

    /// The part to be analysed starts at `now`; waits and holds go on and count from here.
    pub(crate) fn restart(&mut self, now: Nanos, away: impl Fn(Waiter) -> Away) {
        self.sums.clear();
        self.holders_did.clear();
        self.folded = 0;
        self.locks.values_mut().for_each(|l| l.depth.restart());
        let mut open = Vec::new();
        for (&waiter, held) in &mut self.held {
            for h in held {
                h.since = now;
                h.away = away(waiter);
                if h.stage == Stage::Waiting {
                    open.push((h.lock, waiter));
                }
            }
        }
        for (lock, waiter) in open {
            self.sums(lock, waiter).waits.begin(now);
        }
    }

    /// The trace ends.
    pub(crate) fn finish(&mut self, end: Nanos) {
        let open: Vec<(u64, Waiter, Nanos)> = self
            .held
            .iter()
            .flat_map(|(&waiter, held)| {
                held.iter()
                    .filter(|h| h.stage == Stage::Waiting)
                    .map(move |h| (h.lock, waiter, h.since))
            })
            .collect();
        for (lock, waiter, since) in open {
            let waits = &mut self.sums(lock, waiter).waits;
            waits.open += 1;
            waits.open_ns += end.saturating_sub(since);
        }
    }
}
