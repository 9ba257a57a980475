//! What programs, processes and threads did with the CPUs.

use super::{GroupKey, pid_of};
use crate::analysis::Analysis;
use crate::rounding::per_second;
use crate::rounding::percent;
use crate::rows::*;
use crate::slot::Slot;
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

impl Analysis {
    /// CPU use.
    pub fn procs(&self, by: Group) -> Vec<ProcRow> {
        #[derive(Default)]
        struct Sum {
            row: ProcRow,
            slot: Option<Slot>,
            pids: BTreeSet<u32>,
            threads: u64,
            locks: Option<(Nanos, Nanos, Nanos)>,
        }
        let caps = &self.capabilities;
        let lock_times = self.lock_times();
        let mut groups: BTreeMap<GroupKey, Sum> = BTreeMap::new();
        for (slot, t) in self.threads() {
            if t.running_ns == 0
                && t.voluntary + t.involuntary == 0
                && t.woken_ns + t.preempted_ns == 0
                && !t.living.made_calls()
            {
                continue; // known by name only
            }
            let sum = groups.entry(self.group_key(by, slot, t)).or_insert_with(|| Sum {
                row: ProcRow { app_ns: Some(0), ..ProcRow::default() },
                ..Sum::default()
            });
            if sum.slot.is_none() || t.tid.0 == t.pid.0 {
                sum.slot = Some(slot);
            }
            sum.threads += 1;
            sum.pids.insert(pid_of(t).unwrap_or(t.tid.0));
            if let Some(&(held, waited, execution)) = lock_times.get(&slot) {
                let l = sum.locks.get_or_insert((0, 0, 0));
                *l = (l.0 + held, l.1 + waited, l.2 + execution);
            }
            let r = &mut sum.row;
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
            r.migrations = self.sees_switches().then(|| r.migrations.unwrap_or(0) + t.migrations);
            r.kthread = t.is_kthread();
        }
        let capacity = self.capacity_ns();
        groups
            .into_values()
            .filter_map(|sum| {
                let t = self.thread(sum.slot?);
                let several = matches!(by, Group::Command | Group::Cgroup);
                let ratio = |part: fn((Nanos, Nanos, Nanos)) -> Nanos| {
                    sum.locks
                        .filter(|l| l.2 > 0)
                        .map(|l| (part(l) as f64 * 10_000.0 / l.2 as f64).round() / 10_000.0)
                };
                Some(ProcRow {
                    lock_ratio: ratio(|l| l.0),
                    waiting_ratio: ratio(|l| l.1),
                    pid_inferred: (!several).then_some(t.pid_inferred),
                    comm: self.comm(t),
                    cgroup: (by != Group::Command).then(|| self.group_words(self.group(t))),
                    pid: (!several).then(|| pid_of(t)),
                    tid: (by == Group::Thread).then_some(t.tid.0),
                    processes: several.then_some(sum.pids.len() as u64),
                    threads: (by != Group::Thread).then_some(sum.threads),
                    pct_capacity: percent(sum.row.combined_ns, capacity),
                    switches_per_s: per_second(sum.row.switches, self.wall_ns()),
                    ..sum.row
                })
            })
            .collect()
    }
}
