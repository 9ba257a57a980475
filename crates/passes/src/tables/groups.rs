//! Control groups: the group of each thread, and the share of the machine each group got.
//!
//! ```text
//!  capacity = used by the threads of each group + interrupts + idle + unaccounted
//!  wanted   = used + ready, behind the threads of some group or another + kept off by a quota
//! ```

use crate::analysis::Analysis;
use crate::options::Selection;
use crate::rounding::percent;
use crate::rows::{CgroupRow, CpuRow, Rival};
use crate::threads::Thread;
use holdup_trace::{GroupLimit, GroupName, NameId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

impl Analysis {
    /// The control group of a thread: its own latest one, or else that of its process;
    /// [`NameId::NONE`] if neither is known.
    pub fn group(&self, t: &Thread) -> NameId {
        match t.group {
            NameId::NONE => self.group_of.get(&t.pid).copied().unwrap_or_default(),
            group => group,
        }
    }

    /// The path of a group; empty if the group is not known.
    pub fn path_of(&self, group: NameId) -> &str {
        self.paths.get(&group).map_or("", String::as_str)
    }

    /// The name by which users know a group (a container, a unit).
    pub fn group_words(&self, group: NameId) -> Option<String> {
        let path = self.paths.get(&group)?;
        Some(GroupName::of(path).words(&self.groups))
    }

    /// The limit that a group meets first, if the recorder read one.
    pub fn limit_of(&self, group: NameId) -> Option<&GroupLimit> {
        self.groups.limit(self.path_of(group))
    }

    /// What each control group used of the machine and how much more it wanted; then the time that
    /// belongs to no group. The used time adds up to the capacity.
    pub fn cgroups(&self) -> Vec<CgroupRow> {
        let mut sums = self.group_sums();
        // A parent group with a quota may have no threads of its own.
        for limit in self.groups.limits.iter().filter(|l| l.periods > 0) {
            sums.entry(limit.path.clone()).or_default();
        }
        let mut rows: Vec<CgroupRow> =
            sums.into_iter().map(|(path, sum)| self.group_row(path, sum)).collect();
        if self.options.filter.chooses_threads() || self.shown.is_some() {
            rows.retain(|row| row.threads.is_some());
            return rows;
        }
        let cpus = self.cpu_rows();
        let sum = |f: fn(&CpuRow) -> u64| cpus.iter().map(f).sum::<u64>();
        for (kind, used_ns) in [
            ("interrupts", sum(|c| c.irq_ns.unwrap_or(0) + c.softirq_ns.unwrap_or(0))),
            ("idle", sum(|c| c.idle_ns)),
            ("unaccounted", sum(|c| c.unaccounted_ns)),
        ] {
            let pct_capacity = percent(used_ns, self.capacity_ns());
            rows.push(CgroupRow { kind, used_ns, pct_capacity, ..CgroupRow::default() });
        }
        rows
    }

    /// By path; empty for threads whose group is not known.
    fn group_sums(&self) -> BTreeMap<String, Sum> {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        for (_, t) in self.threads() {
            let (throttled, share) = t.throttle().map_or((0, 0), |th| (th.ns, th.share_ns()));
            let ready = (t.woken_ns + t.preempted_ns).saturating_sub(throttled);
            let used = t.user_ns + t.kernel_ns;
            if used + ready + throttled == 0 {
                continue;
            }
            let sum = sums.entry(self.path_of(self.group(t)).to_owned()).or_default();
            sum.pids.insert(super::pid_of(t).unwrap_or(t.tid.0));
            sum.threads += 1;
            sum.used += used;
            sum.ready += ready;
            sum.throttled += throttled;
            sum.share += share;
        }
        for (slot, ran, ns) in self.engine.rivals.sums() {
            let t = self.thread(slot);
            let sum = sums.get_mut(self.path_of(self.group(t)));
            if let Some(sum) = sum.filter(|_| self.wanted(t)) {
                *sum.behind.entry(self.path_of(ran).to_owned()).or_default() += ns;
            }
        }
        sums
    }

    fn group_row(&self, path: String, mut sum: Sum) -> CgroupRow {
        let limit = self.groups.limits.iter().find(|l| l.path == path);
        // The kernel counts stopped run queues over the whole recording: each has at least one
        // thread, and no thread is on two. Switches show a thread's return only when it gets a CPU,
        // which may be long after it could have run.
        let counted = limit.filter(|_| self.options.selection == Selection::default());
        if let Some(limit) = counted {
            let all = sum.ready + sum.throttled;
            let least = limit.throttled_ns.min(all);
            let most = limit.throttled_ns.saturating_mul(sum.threads.max(1)).min(all);
            sum.throttled = sum.throttled.clamp(least, most);
            sum.ready = all - sum.throttled;
        }
        let words = |path: &str| GroupName::of(path).words(&self.groups);
        let named = |path: &str| (!path.is_empty()).then(|| words(path));
        let mut behind: Vec<(String, Nanos)> = sum.behind.into_iter().collect();
        behind.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let rival = |(path, ns): (String, Nanos)| Rival { cgroup: named(&path), ns };
        let wakeups = self.capabilities.wakeups;
        CgroupRow {
            kind: "cgroup",
            cgroup: named(&path),
            processes: (sum.threads > 0).then_some(sum.pids.len() as u64),
            threads: (sum.threads > 0).then_some(sum.threads),
            used_ns: sum.used,
            pct_capacity: percent(sum.used, self.capacity_ns()),
            wanted_ns: wakeups.then_some(sum.used + sum.ready + sum.throttled),
            ready_ns: wakeups.then_some(sum.ready),
            behind: behind.into_iter().map(rival).collect(),
            throttled_ns: Some(sum.throttled),
            throttled_at_least: (sum.throttled > 0)
                .then_some(counted.is_none() && sum.ready >= sum.throttled),
            throttled_idle_ns: Some(sum.share),
            limit_cpus: limit.map(|l| (l.cpus() * 1000.0).round() / 1000.0),
            periods: limit.map(|l| l.periods),
            throttled_periods: limit.map(|l| l.throttled_periods),
            stopped_ns: limit.map(|l| l.throttled_ns),
            path: (!path.is_empty()).then_some(path),
        }
    }
}

/// What the threads of one group add up to.
#[derive(Default)]
struct Sum {
    pids: BTreeSet<u32>,
    threads: u64,
    used: Nanos,
    ready: Nanos,
    /// Time ready and kept off by a quota, and the idle CPU time that the threads could have used.
    throttled: Nanos,
    share: Nanos,
    /// By the path of the group that had the CPU.
    behind: BTreeMap<String, Nanos>,
}
