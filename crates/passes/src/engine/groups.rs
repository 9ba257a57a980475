//! Control groups: the group of each thread, and which groups had the CPU that it was ready for.
//!
//! A thread is in the group that the latest event said; a new thread is in the group of its
//! creator. A thread that moves keeps its earlier times: they are sums of the thread, not of the
//! group.

use super::Engine;
use crate::slot::Slot;
use crate::state::State;
use holdup_trace::Pid;
use holdup_trace::{Cpu, NameId, Nanos, Tid};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::VecDeque;

impl Engine {
    /// A sample says in which group its thread is.
    pub(super) fn in_group(&mut self, tid: Tid, group: NameId) {
        if tid != Tid::IDLE && tid != Tid::UNKNOWN {
            let slot = self.find_or_add(tid);
            self.threads[slot].group = group;
        }
    }

    /// A thread is moved; moving the first thread of a process moves all.
    ///
    /// Version 1 of control groups has a hierarchy per controller. Hierarchies in which a thread is
    /// in the root group do not name it.
    pub(super) fn attached(&mut self, tid: Tid, root: u32, path: NameId) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN || root != 0 && path == self.root_group {
            return;
        }
        let slot = self.find_or_add(tid);
        self.threads[slot].group = path;
        let pid = self.threads[slot].pid;
        if pid.0 == tid.0 {
            let alive = self.threads.iter_mut().filter(|t| t.pid == pid && t.died.is_none());
            alive.for_each(|t| t.group = path);
        }
    }

    /// A new thread inherits the group of its creator.
    pub(super) fn inherits_group(&mut self, parent: Slot, child: Slot) {
        if self.threads[child].group == NameId::NONE {
            self.threads[child].group = self.threads[parent].group;
        }
    }

    /// A thread that was ready since `since` gets `cpu`: counts which groups had the CPU meanwhile,
    /// without the time in which a quota kept the thread off.
    #[inline]
    pub(super) fn waited_behind(&mut self, now: Nanos, cpu: Cpu, slot: Slot, since: Nanos) {
        if !self.caps.groups {
            return;
        }
        let (mut since, mut until) = (since.max(self.start), now);
        if let Some(throttle) = &self.threads[slot].throttle {
            since = since.max(throttle.until);
            until = throttle.off.map_or(now, |off| off.since);
        }
        self.rivals.got_cpu((since, until), cpu, slot, |s| self.threads[s].group);
    }

    /// Since when a quota has kept a thread on the queue of its CPU, which shows now that the CPU
    /// idles: since the last thread of its group left that CPU, or since it joined the queue. A run
    /// queue is stopped while its group runs, or when a thread joins it and no time is left.
    pub(super) fn off_since(&self, now: Nanos, slot: Slot) -> Nanos {
        let t = &self.threads[slot];
        let (State::Woken(cpu) | State::Preempted(cpu)) = t.state else { return now };
        if !self.caps.groups || t.group == NameId::NONE {
            return now;
        }
        let from = t.since.max(self.start);
        let left = self.rivals.last_ran(cpu, t.group, |s| self.threads[s].group);
        left.map_or(from, |left| from.max(left)).min(now)
    }

    /// `cpu` runs another thread from now on.
    #[inline]
    pub(super) fn note_stay(&mut self, now: Nanos, cpu: Cpu, slot: Option<Slot>) {
        if self.caps.groups {
            let slot = slot.unwrap_or(Slot::IDLE);
            self.rivals.stays(now, cpu, slot, |s| self.threads[s].group);
        }
    }
}

/// Number of stays remembered per CPU: a thread that waits behind more of them has waited behind an
/// unknown group for part of its time.
const REMEMBERED: usize = 256;

/// Who had one CPU.
#[derive(Clone, Debug, Default)]
struct Stays {
    /// The thread that has it, and since when. Its group may become known only while it runs.
    now: Option<(Nanos, Slot)>,
    /// Before that: when each group came, `None` for the idle task. Threads of one group that
    /// follow each other are one stay.
    past: VecDeque<(Nanos, Option<NameId>)>,
}

impl Stays {
    /// The stays, the latest first.
    fn backwards(
        &self,
        group: impl Fn(Slot) -> NameId,
    ) -> impl Iterator<Item = (Nanos, Option<NameId>)> {
        let now = self.now.map(|(from, slot)| (from, group_of(slot, group)));
        now.into_iter().chain(self.past.iter().rev().copied())
    }
}

/// The group of a thread that runs; `None` for the idle task.
fn group_of(slot: Slot, group: impl Fn(Slot) -> NameId) -> Option<NameId> {
    (slot != Slot::IDLE).then(|| group(slot))
}

/// Which groups had the CPUs that threads were ready for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rivals {
    stays: Vec<Stays>,
    /// Time that a thread was ready while a group had its CPU.
    sums: FxHashMap<(Slot, NameId), Nanos>,
}

impl Rivals {
    fn stays(&mut self, now: Nanos, cpu: Cpu, slot: Slot, group: impl Fn(Slot) -> NameId) {
        let at = usize::from(cpu.0);
        if at >= self.stays.len() {
            self.stays.resize_with(at + 1, Stays::default);
        }
        let Stays { now: stay, past } = &mut self.stays[at];
        if stay.is_some_and(|(_, same)| same == slot) {
            return;
        }
        let Some((from, left)) = stay.replace((now, slot)) else { return };
        let whose = group_of(left, group);
        if past.back().is_some_and(|last| last.1 == whose) {
            return;
        }
        if past.len() == REMEMBERED {
            past.pop_front();
        }
        past.push_back((from, whose));
    }

    fn got_cpu(
        &mut self,
        (since, until): (Nanos, Nanos),
        cpu: Cpu,
        slot: Slot,
        group: impl Fn(Slot) -> NameId,
    ) {
        let Some(stays) = self.stays.get(usize::from(cpu.0)) else { return };
        let mut end = Nanos::MAX;
        for (from, whose) in stays.backwards(group) {
            if end <= since {
                break;
            }
            let span = end.min(until).saturating_sub(from.max(since));
            if let Some(whose) = whose.filter(|_| span > 0) {
                *self.sums.entry((slot, whose)).or_default() += span;
            }
            end = from;
        }
    }

    /// When the latest thread of a group left `cpu`; 0 if it is there now.
    fn last_ran(&self, cpu: Cpu, wanted: NameId, group: impl Fn(Slot) -> NameId) -> Option<Nanos> {
        let mut left = 0;
        for (from, whose) in self.stays.get(usize::from(cpu.0))?.backwards(group) {
            if whose == Some(wanted) {
                return Some(left);
            }
            left = from;
        }
        None
    }

    /// (ready thread, group that had the CPU, time) of all pairs, unordered.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (Slot, NameId, Nanos)> {
        self.sums.iter().map(|(&(ready, ran), &ns)| (ready, ran, ns))
    }

    /// Clears the sums.
    pub(crate) fn restart(&mut self) {
        self.sums.clear();
    }
}

/// Paths of the groups that threads were in, and the group of each process: that of its first
/// thread, if its threads are in several.
pub(crate) fn paths(engine: &Engine) -> (BTreeMap<NameId, String>, BTreeMap<Pid, NameId>) {
    let (mut paths, mut group_of) = (BTreeMap::new(), BTreeMap::new());
    for (_, t) in engine.threads.iter().filter(|(_, t)| t.group != NameId::NONE) {
        paths.entry(t.group).or_insert_with(|| engine.names.get(t.group));
        let first = t.tid.0 == t.pid.0;
        if t.pid != Pid::UNKNOWN && (first || !group_of.contains_key(&t.pid)) {
            group_of.insert(t.pid, t.group);
        }
    }
    (paths, group_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_divided_among_those_who_had_the_cpu() {
        let group = |slot: Slot| NameId(slot.0 * 10);
        let (waits, b, c) = (Slot(1), Slot(2), Slot(3));
        let mut rivals = Rivals::default();
        for (at, slot) in [(0, b), (100, c), (150, Slot::IDLE), (170, b)] {
            rivals.stays(at, Cpu(0), slot, group);
        }
        rivals.got_cpu((40, 200), Cpu(0), waits, group);
        rivals.got_cpu((40, 200), Cpu(7), waits, group);
        let mut sums: Vec<_> = rivals.sums().collect();
        sums.sort();
        assert_eq!(sums, [(waits, NameId(20), 60 + 30), (waits, NameId(30), 50)]);
        // The quota kept the thread off from 120 on.
        rivals.restart();
        rivals.got_cpu((40, 120), Cpu(0), waits, group);
        let mut sums: Vec<_> = rivals.sums().collect();
        sums.sort();
        assert_eq!(sums, [(waits, NameId(20), 60), (waits, NameId(30), 20)]);
        let last_ran = |slot| rivals.last_ran(Cpu(0), group(slot), group);
        assert_eq!([c, b, waits].map(last_ran), [Some(150), Some(0), None]);
    }

    /// The threads of one group that take turns are one stay, so more time is remembered.
    #[test]
    fn any_number_of_threads_of_a_group_is_one_stay() {
        let group = |slot: Slot| NameId(slot.0 % 2);
        let mut rivals = Rivals::default();
        for turn in 0..2000 {
            rivals.stays(turn * 10, Cpu(0), Slot(2 + turn as u32 * 2), group);
        }
        rivals.stays(20_000, Cpu(0), Slot(1), group);
        rivals.got_cpu((5, 20_100), Cpu(0), Slot(1), group);
        let mut sums: Vec<_> = rivals.sums().collect();
        sums.sort();
        assert_eq!(sums, [(Slot(1), NameId(0), 19_995), (Slot(1), NameId(1), 100)]);
    }
}
