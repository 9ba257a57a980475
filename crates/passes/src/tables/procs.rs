//! What programs, processes and threads did with the CPUs.

use super::{GroupKey, pid_of};
use crate::analysis::Analysis;
use crate::rounding::per_second;
use crate::rounding::percent;
use crate::rows::*;
use crate::slot::Slot;
use crate::threads::Thread;
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

impl Analysis {
    /// CPU use.
    pub fn procs(&self, by: Group) -> Vec<ProcRow> {
        if by == Group::Thread {
            return self.procs_by_thread().collect();
        }
        let lock_times = self.lock_times();
        let mut groups: BTreeMap<GroupKey, Sum> = BTreeMap::new();
        for (slot, t) in self.threads().filter(|(_, t)| did_something(t)) {
            let sum = groups.entry(self.group_key(by, slot, t)).or_insert_with(Sum::empty);
            sum.add(self, slot, t, lock_times.get(&slot));
        }
        groups.into_values().filter_map(|sum| sum.row(self, by)).collect()
    }

    /// CPU use of each thread. The rows are made one by one: a recording of a build has a hundred
    /// thousand threads, and the caller may need few of them.
    pub fn procs_by_thread(&self) -> impl Iterator<Item = ProcRow> {
        let lock_times = self.lock_times();
        let threads = self.threads().filter(|(_, t)| did_something(t));
        threads.filter_map(move |(slot, t)| {
            let mut sum = Sum::empty();
            sum.add(self, slot, t, lock_times.get(&slot));
            sum.row(self, Group::Thread)
        })
    }
}

/// Whether more than the name of a thread is known.
fn did_something(t: &Thread) -> bool {
    t.running_ns > 0
        || t.voluntary + t.involuntary > 0
        || t.woken_ns + t.preempted_ns > 0
        || t.living.made_calls()
}

/// Threads added up.
#[derive(Default)]
struct Sum {
    row: ProcRow,
    /// The thread that names the group.
    slot: Option<Slot>,
    pids: BTreeSet<u32>,
    threads: u64,
    /// What [`Analysis::lock_times`] says: held, waited, execution.
    locks: Option<(Nanos, Nanos, Nanos)>,
}

impl Sum {
    fn empty() -> Sum {
        Sum { row: ProcRow { app_ns: Some(0), ..ProcRow::default() }, ..Sum::default() }
    }

    fn add(
        &mut self,
        analysis: &Analysis,
        slot: Slot,
        t: &Thread,
        locks: Option<&(Nanos, Nanos, Nanos)>,
    ) {
        let caps = &analysis.capabilities;
        if self.slot.is_none() || t.tid.0 == t.pid.0 {
            self.slot = Some(slot);
        }
        self.threads += 1;
        self.pids.insert(pid_of(t).unwrap_or(t.tid.0));
        if let Some(&(held, waited, execution)) = locks {
            let l = self.locks.get_or_insert((0, 0, 0));
            *l = (l.0 + held, l.1 + waited, l.2 + execution);
        }
        let r = &mut self.row;
        r.combined_ns += t.user_ns + t.kernel_ns;
        let split = caps.syscalls.are_all() || t.is_kthread();
        let blurred = caps.syscalls.chosen().is_some() && !t.is_kthread();
        r.app_ns = r.app_ns.filter(|_| !blurred).map(|ns| ns + t.user_ns);
        r.kernel_ns = (r.app_ns.is_some() && (split || r.kernel_ns.is_some()))
            .then(|| r.kernel_ns.unwrap_or(0) + t.kernel_ns);
        r.interrupted_ns += t.irq_ns;
        r.runnable_ns =
            caps.wakeups.then(|| r.runnable_ns.unwrap_or(0) + t.woken_ns + t.preempted_ns);
        r.blocked_ns += t.blocked_ns;
        r.switches += t.voluntary + t.involuntary;
        r.voluntary += t.voluntary;
        r.involuntary += t.involuntary;
        r.migrations = analysis.sees_switches().then(|| r.migrations.unwrap_or(0) + t.migrations);
        r.kthread = t.is_kthread();
    }

    fn row(self, analysis: &Analysis, by: Group) -> Option<ProcRow> {
        let t = analysis.thread(self.slot?);
        let several = matches!(by, Group::Command | Group::Cgroup);
        let ratio = |part: fn((Nanos, Nanos, Nanos)) -> Nanos| {
            self.locks
                .filter(|l| l.2 > 0)
                .map(|l| (part(l) as f64 * 10_000.0 / l.2 as f64).round() / 10_000.0)
        };
        Some(ProcRow {
            lock_ratio: ratio(|l| l.0),
            waiting_ratio: ratio(|l| l.1),
            pid_inferred: (!several).then_some(t.pid_inferred),
            comm: analysis.comm(t),
            cgroup: (by != Group::Command).then(|| analysis.group_words(analysis.group(t))),
            pid: (!several).then(|| pid_of(t)),
            tid: (by == Group::Thread).then_some(t.tid.0),
            processes: several.then_some(self.pids.len() as u64),
            threads: (by != Group::Thread).then_some(self.threads),
            pct_capacity: percent(self.row.combined_ns, analysis.capacity_ns()),
            switches_per_s: per_second(self.row.switches, analysis.wall_ns()),
            ..self.row
        })
    }
}
