//! How threads were scheduled.

use super::{GroupKey, pid_of};
use crate::analysis::Analysis;
use crate::rows::*;
use crate::threads::Thread;
use std::collections::BTreeMap;

impl Analysis {
    /// Scheduling of every thread that left a CPU or waited for a CPU.
    pub fn switches(&self) -> Vec<SwitchRow> {
        self.switches_by_thread().collect()
    }

    /// The same rows, made one by one.
    pub fn switches_by_thread(&self) -> impl Iterator<Item = SwitchRow> {
        self.scheduled().map(|t| self.switch_row(t))
    }

    /// The same rows by control group.
    pub fn switches_by_cgroup(&self) -> Vec<SwitchRow> {
        let mut rows: BTreeMap<GroupKey, (SwitchRow, u64)> = BTreeMap::new();
        for t in self.scheduled() {
            let key = GroupKey::Cgroup(self.path_of(self.group(t)).to_owned());
            let (row, delays) = (self.switch_row(t), t.latency.total_ns);
            match rows.get_mut(&key) {
                Some((sum, total)) => {
                    add(sum, row);
                    *total += delays;
                }
                None => {
                    rows.insert(key, (SwitchRow { threads: Some(1), ..row }, delays));
                }
            }
        }
        let mean = |(row, total): (SwitchRow, u64)| SwitchRow {
            avg_delay_ns: row.delay_count.map(|n| total.checked_div(n).unwrap_or(0)),
            ..row
        };
        rows.into_values().map(mean).collect()
    }

    fn scheduled(&self) -> impl Iterator<Item = &Thread> {
        self.threads().map(|(_, t)| t).filter(|t| t.stays > 0 || t.latency.count > 0)
    }

    fn switch_row(&self, t: &Thread) -> SwitchRow {
        let (caps, l) = (&self.capabilities, &t.latency);
        let woken = caps.wakeups || caps.wakers;
        SwitchRow {
            cgroup: Some(self.group_words(self.group(t))),
            threads: None,
            comm: self.comm(t),
            pid: pid_of(t),
            tid: t.tid.0,
            runtime_ns: t.stays_ns,
            switches: t.stays,
            delay_count: woken.then_some(l.count),
            avg_delay_ns: woken.then(|| l.total_ns.checked_div(l.count).unwrap_or(0)),
            max_delay_ns: woken.then_some(l.max_ns),
            max_delay_start_ns: woken.then_some(l.max_start),
            max_delay_end_ns: woken.then_some(l.max_end),
            voluntary: t.voluntary,
            involuntary: t.involuntary,
            preempted_ns: t.preempted_ns,
            migrations: Some(t.migrations),
            stat_runtime_ns: caps.stat_runtime.then_some(l.stat_runtime_ns),
        }
    }
}

/// Adds `b` to `a`, except for the mean delay, which the caller computes.
fn add(a: &mut SwitchRow, b: SwitchRow) {
    let sum = |a: &mut Option<u64>, b: Option<u64>| *a = a.zip(b).map(|(a, b)| a + b);
    if b.max_delay_ns > a.max_delay_ns {
        (a.max_delay_ns, a.max_delay_start_ns, a.max_delay_end_ns) =
            (b.max_delay_ns, b.max_delay_start_ns, b.max_delay_end_ns);
    }
    a.threads = a.threads.map(|n| n + 1);
    a.runtime_ns += b.runtime_ns;
    a.switches += b.switches;
    a.voluntary += b.voluntary;
    a.involuntary += b.involuntary;
    a.preempted_ns += b.preempted_ns;
    sum(&mut a.delay_count, b.delay_count);
    sum(&mut a.migrations, b.migrations);
    sum(&mut a.stat_runtime_ns, b.stat_runtime_ns);
}
