//! The tables of locks: the sums of the events, grouped and made into rows.

use super::contention::Key;
use super::holders::Did;
use super::kind::LockKind;
use super::lockdep::DepSums;
use super::row::{LockBy, LockRow};
use super::stats::Waits;
use super::turns::{Held, Turns};
use super::{OTHER, Waiter};
use crate::analysis::Analysis;
use crate::locks::LockSource;
use crate::rounding::{per_second, percent, round3};
use crate::slot::Slot;
use holdup_trace::{Nanos, fits};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Number of locks of a row that are kept one by one; further locks of a class are not looked up.
const MANY: usize = 64;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Address and family: freed memory may hold another lock later.
    Lock(u64, Option<&'static str>),
    Name(String),
    Caller(u64, Option<LockKind>),
    Kind(Option<LockKind>),
    Task(Waiter),
}

#[derive(Default)]
pub(super) struct Sum {
    locks: Vec<u64>,
    kinds: Vec<LockKind>,
    pub(super) waits: Waits,
    pub(super) dep: Option<DepSums>,
}

impl Sum {
    fn note(&mut self, lock: u64, kinds: &[LockKind]) {
        if self.locks.len() < MANY && !self.locks.contains(&lock) {
            self.locks.push(lock);
        }
        for kind in kinds {
            if !self.kinds.contains(kind) {
                self.kinds.push(*kind);
            }
        }
    }

    /// The kind, or the family of several kinds.
    fn kind(&self) -> Option<String> {
        match self.kinds.as_slice() {
            [] => None,
            [one] => Some(one.name().to_owned()),
            [first, rest @ ..] if rest.iter().all(|k| k.family() == first.family()) => {
                Some(first.family().to_owned())
            }
            _ => None,
        }
    }
}

impl Analysis {
    /// Kernel locks, from the events that show most of them: lockdep's for locks and classes,
    /// contention events for callers, kinds and threads.
    pub fn locks(&self, by: LockBy) -> Vec<LockRow> {
        self.locks_from(by, self.lock_source(by))
    }

    /// Whether the trace was recorded with events of kernel locks.
    pub fn sees_locks(&self) -> bool {
        let locks = &self.engine.locks;
        self.capabilities.contention
            || self.capabilities.lockdep
            || !locks.contention.sums.is_empty()
            || !locks.lockdep.sums.is_empty()
    }

    /// Which events [`Analysis::locks`] uses.
    pub fn lock_source(&self, by: LockBy) -> LockSource {
        let lockdep = !self.engine.locks.lockdep.sums.is_empty();
        let contention =
            self.capabilities.contention || !self.engine.locks.contention.sums.is_empty();
        let first = match by {
            LockBy::Lock | LockBy::Class => lockdep,
            LockBy::Caller | LockBy::Type | LockBy::Task => lockdep && !contention,
        };
        if first { LockSource::Lockdep } else { LockSource::Contention }
    }

    /// CPU time of application threads inside system calls or faults spent waiting for a kernel
    /// lock, each nanosecond counted once.
    pub fn lock_spin_ns(&self) -> Nanos {
        self.cpu_list.iter().filter_map(|&cpu| self.engine.cpus.get(cpu)).map(|c| c.lock_spin).sum()
    }

    /// The CPU time in the rows of [`Analysis::locks`]: their `spin_ns`.
    pub fn spun_at_locks_ns(&self) -> Nanos {
        let (contention, lockdep) = (&self.engine.locks.contention, &self.engine.locks.lockdep);
        match self.lock_source(LockBy::Lock) {
            _ if !self.capabilities.switches => 0,
            LockSource::Contention => (contention.sums.iter())
                .filter(|(key, _)| self.lock_wanted(key.lock, &[key.kind], key.waiter))
                .map(|(_, waits)| waits.spin)
                .sum(),
            LockSource::Lockdep => (lockdep.sums.iter())
                .filter(|(key, _)| {
                    self.lock_wanted(key.lock, &lockdep.kinds_of(key.lock), key.waiter)
                })
                .map(|(_, sums)| sums.waits.spin)
                .sum(),
        }
    }

    /// Kernel locks, from these events.
    pub fn locks_from(&self, by: LockBy, source: LockSource) -> Vec<LockRow> {
        self.locks_with_sums(by, source).into_iter().map(|(row, _)| row).collect()
    }

    /// Each row with the sums it was made from.
    pub(super) fn locks_with_sums(&self, by: LockBy, source: LockSource) -> Vec<(LockRow, Sum)> {
        let groups = self.lock_groups(by, source);
        let all: Nanos = groups.values().map(|s| s.waits.total).fold(0, Nanos::saturating_add);
        let likely = match (by, source) {
            (LockBy::Lock, LockSource::Contention) => self.likely_locks(),
            _ => BTreeMap::new(),
        };
        let of_locks = matches!(by, LockBy::Lock | LockBy::Class);
        let did = if of_locks { self.holders_did() } else { Did::new() };
        let row = |(group, sum): (Group, Sum)| {
            let mut row = self.lock_row(by, source, group, &sum, all);
            if of_locks {
                row.holders_did = Some(self.lock_holders_did(&sum.locks, source, &did));
                let nameless = row.address.flatten().filter(|_| row.name == Some(None));
                row.likely = Some(nameless.and_then(|a| likely.get(&a)).map(|&l| l.to_owned()));
            }
            (row, sum)
        };
        groups.into_iter().map(row).collect()
    }

    fn lock_groups(&self, by: LockBy, source: LockSource) -> BTreeMap<Group, Sum> {
        let mut groups: BTreeMap<Group, Sum> = BTreeMap::new();
        match source {
            LockSource::Contention => {
                for (key, waits) in &self.engine.locks.contention.sums {
                    if self.lock_wanted(key.lock, &[key.kind], key.waiter) {
                        let sum = groups.entry(self.contention_group(by, key)).or_default();
                        sum.note(key.lock, &[key.kind]);
                        sum.waits.merge(waits);
                    }
                }
            }
            LockSource::Lockdep => {
                let lockdep = &self.engine.locks.lockdep;
                for (key, sums) in &lockdep.sums {
                    let kinds = lockdep.kinds_of(key.lock);
                    // lockdep does not say which of the kinds an acquisition was.
                    let kind = if let [one] = kinds.as_slice() { Some(*one) } else { None };
                    if self.lock_wanted(key.lock, &kinds, key.waiter) {
                        let group = match by {
                            LockBy::Lock => Group::Lock(key.lock, None),
                            LockBy::Class => Group::Name(
                                self.class(key.lock).unwrap_or_else(|| format!("{:#x}", key.lock)),
                            ),
                            LockBy::Caller => Group::Caller(0, kind),
                            LockBy::Type => Group::Kind(kind),
                            LockBy::Task => Group::Task(if key.waiter.is_idle() {
                                Waiter(Waiter::IDLE)
                            } else {
                                key.waiter
                            }),
                        };
                        let sum = groups.entry(group).or_default();
                        sum.note(key.lock, &kinds);
                        sum.waits.merge(&sums.waits);
                        sum.dep.get_or_insert_default().merge(sums);
                    }
                }
            }
        }
        groups
    }

    pub(super) fn lock_wanted(&self, lock: u64, kinds: &[LockKind], waiter: Waiter) -> bool {
        let o = &self.options.filter;
        let named = || {
            let name = self.class(lock).or_else(|| self.lock_name(lock));
            name.is_some_and(|n| o.lock_names.contains(&n))
        };
        (o.lock_addresses.is_empty() && o.lock_names.is_empty()
            || o.lock_addresses.contains(&lock)
            || named())
            && (o.lock_kinds.is_empty() || kinds.iter().any(|k| o.lock_kinds.contains(k)))
            && match waiter.slot() {
                Some(slot) => self.wanted(self.thread(slot)),
                None => {
                    let idle = waiter.is_idle();
                    self.shown.is_none()
                        && o.cgroups.is_empty()
                        && (o.pids.is_empty() || idle && o.pids.contains(&0))
                        && (o.tids.is_empty() || idle && o.tids.contains(&0))
                        && (o.comms.is_empty() || idle && o.comms.iter().any(|c| fits(c, SWAPPER)))
                }
            }
    }

    fn contention_group(&self, by: LockBy, key: &Key) -> Group {
        match by {
            LockBy::Lock => Group::Lock(key.lock, Some(key.kind.family())),
            LockBy::Class => match self.lock_name(key.lock) {
                Some(name) => Group::Name(name),
                None => Group::Lock(key.lock, Some(key.kind.family())),
            },
            LockBy::Caller => Group::Caller(key.caller, Some(key.kind)),
            LockBy::Type => Group::Kind(Some(key.kind)),
            // All idle tasks share one row, as in every other tool.
            LockBy::Task => {
                Group::Task(if key.waiter.is_idle() { Waiter(Waiter::IDLE) } else { key.waiter })
            }
        }
    }

    /// The class of a `lockdep_map`.
    pub(crate) fn class(&self, map: u64) -> Option<String> {
        if map == OTHER {
            return Some("other".to_owned());
        }
        let class = self.engine.locks.lockdep.locks.get(&map)?.class;
        let name = self.engine.names.get(class);
        (!name.is_empty()).then_some(name)
    }

    /// The threads that waited for each kernel lock, spinning or asleep, by the addresses of
    /// [`Analysis::locks`], without idle tasks.
    pub fn lock_waiters(&self) -> BTreeMap<u64, BTreeSet<Slot>> {
        let locks = &self.engine.locks;
        let keys: Vec<(u64, Waiter)> = match self.lock_source(LockBy::Lock) {
            LockSource::Contention => {
                locks.contention.sums.keys().map(|k| (k.lock, k.waiter)).collect()
            }
            LockSource::Lockdep => {
                let waited = locks.lockdep.sums.iter().filter(|(_, sums)| sums.waits.begun > 0);
                waited.map(|(k, _)| (k.lock, k.waiter)).collect()
            }
        };
        let mut waiters: BTreeMap<u64, BTreeSet<Slot>> = BTreeMap::new();
        for (lock, waiter) in keys {
            waiters.entry(lock).or_default().extend(waiter.slot());
        }
        waiters
    }

    /// The address in lockdep's events of the lock at `lock` in contention events.
    pub fn lockdep_map(&self, lock: u64) -> Option<u64> {
        self.engine.locks.lockdep.map_of(lock)
    }

    /// Name of a lock in the contention events: its class if lockdep gave it, or its variable.
    pub(crate) fn lock_name(&self, lock: u64) -> Option<String> {
        if lock == OTHER {
            return Some("other".to_owned());
        }
        let locks = &self.engine.locks;
        locks
            .lockdep
            .map_of(lock)
            .and_then(|map| self.class(map))
            .or_else(|| locks.names.get(&lock).cloned())
    }

    /// The code at a return address; 0 means that none was recorded.
    pub(crate) fn caller_name(&self, caller: u64) -> Option<String> {
        let known = self.engine.locks.names.get(&caller).cloned();
        (caller != 0).then(|| known.unwrap_or_else(|| format!("{caller:#x}")))
    }

    fn lock_row(
        &self,
        by: LockBy,
        source: LockSource,
        group: Group,
        sum: &Sum,
        all: Nanos,
    ) -> LockRow {
        let wall = self.wall_ns();
        let w = &sum.waits;
        let ended = w.ended > 0;
        let sched = self.capabilities.switches;
        let mut row = LockRow {
            contended: Some(w.begun),
            wait_total_ns: Some(w.total),
            wait_min_ns: ended.then_some(w.min),
            wait_avg_ns: w.total.checked_div(w.ended),
            wait_max_ns: ended.then_some(w.max),
            wait_p50_ns: w.percentile(50),
            wait_p99_ns: w.percentile(99),
            spin_ns: sched.then_some(w.spin),
            runnable_ns: sched.then_some(w.runnable),
            block_ns: sched.then_some(w.block),
            slept: sched.then_some(w.slept),
            slept_wait_ns: sched.then_some(w.slept_ns),
            open: Some(w.open),
            open_ns: Some(w.open_ns),
            first_ns: (w.begun > 0).then_some(w.first),
            last_ns: (w.begun > 0).then_some(w.last),
            contended_per_s: Some(per_second(w.begun, wall)),
            pct_wait: Some(percent(w.total, all)),
            ..LockRow::default()
        };
        if let Some(dep) = &sum.dep {
            let h = &dep.holds;
            let held = h.count > 0;
            let of_acquired = |n: u64| (dep.acquired > 0).then(|| percent(n, dep.acquired));
            row = LockRow {
                acquired: Some(dep.acquired),
                acquired_per_s: Some(per_second(dep.acquired, wall)),
                miss_rate: (dep.acquired > 0).then(|| round3(w.begun as f64 / dep.acquired as f64)),
                block_pct: of_acquired(w.begun),
                sleep_pct: if sched { of_acquired(w.slept) } else { None },
                ..row
            };
            if self.engine.locks.lockdep.acquires {
                (row.trylocks, row.reads, row.recursion) =
                    (Some(dep.trylocks), Some(dep.reads), Some(dep.recursion));
            }
            if self.engine.locks.lockdep.releases {
                row = LockRow {
                    hold_total_ns: Some(h.total),
                    hold_min_ns: held.then_some(h.min),
                    hold_avg_ns: h.total.checked_div(h.count),
                    hold_max_ns: held.then_some(h.max),
                    utilization: (wall > 0).then(|| round3(h.total as f64 / wall as f64)),
                    preempted_holds: sched.then_some(h.preempted),
                    preempted_hold_ns: sched.then_some(h.preempted_ns),
                    slept_holds: sched.then_some(h.slept),
                    slept_hold_ns: sched.then_some(h.slept_ns),
                    ..row
                };
            }
        }
        let kind = sum.kind();
        match group {
            Group::Task(waiter) => {
                let (tid, comm) = match waiter.slot() {
                    Some(slot) => (Some(self.thread(slot).tid.0), self.comm(self.thread(slot))),
                    None if waiter.is_idle() => (Some(0), SWAPPER.to_owned()),
                    None if waiter == Waiter::UNKNOWN => (None, "Unknown".to_owned()),
                    None => (None, "other".to_owned()),
                };
                (row.tid, row.comm) = (Some(tid), Some(comm));
                let group = |slot| self.group_words(self.group(self.thread(slot)));
                row.cgroup = Some(waiter.slot().and_then(group));
            }
            Group::Kind(kind) => row.lock_type = Some(kind.map(|k| k.name().to_owned())),
            Group::Caller(caller, kind) => {
                row.lock_type = Some(kind.map(|k| k.name().to_owned()));
                row.caller = Some(self.caller_name(caller));
            }
            Group::Lock(..) | Group::Name(_) => {
                let one = if let [lock] = sum.locks.as_slice() { Some(*lock) } else { None };
                row.address = Some(one.filter(|&lock| lock != OTHER));
                row.name = Some(match (group, source) {
                    (Group::Name(name), _) => Some(name),
                    (_, LockSource::Lockdep) => one.and_then(|lock| self.class(lock)),
                    (_, LockSource::Contention) => one.and_then(|lock| self.lock_name(lock)),
                });
                row.lock_type = Some(kind);
                if by == LockBy::Lock {
                    row.max_waiters = one.and_then(|lock| match source {
                        LockSource::Contention => {
                            self.engine.locks.contention.depths.get(&lock).map(|d| d.max as u64)
                        }
                        LockSource::Lockdep => {
                            self.engine.locks.lockdep.locks.get(&lock).map(|l| l.depth.max as u64)
                        }
                    });
                }
            }
        }
        if let (true, Some(turns)) = (
            matches!(by, LockBy::Lock | LockBy::Class) && source == LockSource::Contention,
            &self.engine.locks.contention.turns,
        ) {
            self.hold(&mut row, sum, turns);
        }
        row
    }

    /// Fills in the holders of a row's locks while others waited.
    fn hold(&self, row: &mut LockRow, sum: &Sum, turns: &Turns) {
        let mut holders: BTreeMap<Waiter, Held> = BTreeMap::new();
        for (&(lock, holder), held) in &turns.held {
            if sum.locks.contains(&lock) {
                holders.entry(holder).or_default().add(held);
            }
        }
        let waited = sum.waits.total + sum.waits.open_ns;
        let most = holders.iter().max_by_key(|(who, held)| (held.waited_ns, Reverse(**who)));
        let name = |who: &Waiter| match who.slot() {
            Some(slot) => (Some(self.thread(slot).tid.0), self.comm(self.thread(slot))),
            None if who.is_idle() => (Some(0), SWAPPER.to_owned()),
            None => (None, "Unknown".to_owned()),
        };
        let named = most.map(|(who, _)| name(who));
        row.holder = Some(named.as_ref().and_then(|(tid, _)| *tid));
        row.holder_comm = Some(named.map(|(_, comm)| comm));
        row.holder_ns = Some(most.map(|(_, held)| held.hold_ns));
        row.pct_holder = Some(most.map(|(_, held)| percent(held.waited_ns.min(waited), waited)));
        row.holders = Some(holders.len() as u64);
    }
}

/// The name of every idle task.
pub(crate) const SWAPPER: &str = "swapper";
