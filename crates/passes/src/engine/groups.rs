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
        let is_sibling = |s: Slot| self.threads[s].group == t.group;
        let from = t.since.max(self.start);
        self.rivals.last_ran(cpu, is_sibling).map_or(from, |left| from.max(left)).min(now)
    }

    /// `cpu` runs another thread from now on.
    #[inline]
    pub(super) fn note_stay(&mut self, now: Nanos, cpu: Cpu, slot: Option<Slot>) {
        if self.caps.groups {
            self.rivals.stays(now, cpu, slot.unwrap_or(Slot::IDLE));
        }
    }
}

/// Number of stays remembered per CPU: a thread that waits behind more of them has waited behind an
/// unknown group for part of its time.
const REMEMBERED: usize = 256;

/// Which groups had the CPUs that threads were ready for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rivals {
    /// The latest stays on each CPU: start and thread.
    stays: Vec<VecDeque<(Nanos, Slot)>>,
    /// Time that a thread was ready while a group had its CPU.
    sums: FxHashMap<(Slot, NameId), Nanos>,
}

impl Rivals {
    fn stays(&mut self, now: Nanos, cpu: Cpu, slot: Slot) {
        let at = usize::from(cpu.0);
        if at >= self.stays.len() {
            self.stays.resize_with(at + 1, VecDeque::new);
        }
        let stays = &mut self.stays[at];
        if stays.back().is_some_and(|last| last.1 == slot) {
            return;
        }
        if stays.len() == REMEMBERED {
            stays.pop_front();
        }
        stays.push_back((now, slot));
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
        for &(from, whose) in stays.iter().rev() {
            if end <= since {
                break;
            }
            let span = end.min(until).saturating_sub(from.max(since));
            if span > 0 && whose != Slot::IDLE {
                *self.sums.entry((slot, group(whose))).or_default() += span;
            }
            end = from;
        }
    }

    /// When the latest of the wanted threads left `cpu`; 0 if it is there now.
    fn last_ran(&self, cpu: Cpu, wanted: impl Fn(Slot) -> bool) -> Option<Nanos> {
        let mut left = 0;
        for &(from, whose) in self.stays.get(usize::from(cpu.0))?.iter().rev() {
            if whose != Slot::IDLE && wanted(whose) {
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
        rivals.stays(0, Cpu(0), b);
        rivals.stays(100, Cpu(0), c);
        rivals.stays(150, Cpu(0), Slot::IDLE);
        rivals.stays(170, Cpu(0), b);
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
        assert_eq!(rivals.last_ran(Cpu(0), |s| s == c), Some(150));
        assert_eq!(rivals.last_ran(Cpu(0), |s| s == b), Some(0));
        assert_eq!(rivals.last_ran(Cpu(0), |s| s == waits), None);
    }
}
