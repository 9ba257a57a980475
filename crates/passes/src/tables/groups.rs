//! Control groups: whose a thread is, and what the machine gave to each.
//!
//! ```text
//!  capacity = used by the threads of each group + interrupts + idle + unaccounted
//!  wanted   = used + ready, behind the threads of some group or another + kept off by a quota
//! ```

use crate::analysis::Analysis;
use crate::engine::Engine;
use crate::rows::{CgroupRow, Rival, percent};
use crate::threads::Thread;
use holdup_trace::{GroupLimit, GroupName, NameId, Nanos, Pid};
use std::collections::{BTreeMap, BTreeSet};

/// Paths of the groups that threads were in, and the groups of processes. Where the threads of a
/// process are in several, that of the first.
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

impl Analysis {
    /// The control group of a thread: the latest that it was in, else that of its process;
    /// [`NameId::NONE`] if that is not known either.
    pub fn group(&self, t: &Thread) -> NameId {
        match t.group {
            NameId::NONE => self.group_of.get(&t.pid).copied().unwrap_or_default(),
            group => group,
        }
    }

    /// The path of a group; empty of one that is not known.
    pub fn path_of(&self, group: NameId) -> &str {
        self.paths.get(&group).map_or("", String::as_str)
    }

    /// A group by the name that people know.
    pub fn group_words(&self, group: NameId) -> Option<String> {
        let path = self.paths.get(&group)?;
        Some(GroupName::of(path).words(&self.groups))
    }

    /// The limit that a group meets first, if the recorder read one.
    pub fn limit_of(&self, group: NameId) -> Option<&GroupLimit> {
        self.groups.limit(self.path_of(group))
    }

    /// What each control group used of the machine and what it wanted beyond; then what is no
    /// group's. The time used adds up to the capacity.
    pub fn cgroups(&self) -> Vec<CgroupRow> {
        #[derive(Default)]
        struct Sum {
            row: CgroupRow,
            pids: BTreeSet<u32>,
            behind: BTreeMap<String, Nanos>,
            group: NameId,
        }
        let capacity = self.capacity_ns();
        let wakeups = self.capabilities.wakeups;
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        for (_, t) in self.threads() {
            let group = self.group(t);
            let sum = sums.entry(self.path_of(group).to_owned()).or_default();
            sum.group = group;
            let throttled = t.throttle().map_or(0, |throttle| throttle.ns);
            let ready = (t.woken_ns + t.preempted_ns).saturating_sub(throttled);
            let used = t.user_ns + t.kernel_ns;
            if used + ready + throttled > 0 {
                sum.pids.insert(super::pid_of(t).unwrap_or(t.tid.0));
                let threads = sum.row.threads.unwrap_or(0);
                sum.row.threads = Some(threads + 1);
            }
            let r = &mut sum.row;
            r.used_ns += used;
            r.ready_ns = wakeups.then(|| r.ready_ns.unwrap_or(0) + ready);
            r.throttled_ns = Some(r.throttled_ns.unwrap_or(0) + throttled);
            r.throttled_idle_ns =
                Some(r.throttled_idle_ns.unwrap_or(0) + t.throttle().map_or(0, |th| th.share_ns()));
        }
        for (slot, ran, ns) in self.engine.rivals.sums() {
            let t = self.thread(slot);
            if let Some(sum) = sums.get_mut(self.path_of(self.group(t))).filter(|_| self.wanted(t))
            {
                *sum.behind.entry(self.path_of(ran).to_owned()).or_default() += ns;
            }
        }
        sums.retain(|_, sum| sum.row.threads.is_some());
        let words = |path: &str| GroupName::of(path).words(&self.groups);
        let mut rows: Vec<CgroupRow> =
            sums.into_iter()
                .map(|(path, sum)| {
                    let mut behind: Vec<(String, Nanos)> = sum.behind.into_iter().collect();
                    behind.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                    let rival = |(path, ns): (String, Nanos)| Rival {
                        cgroup: (!path.is_empty()).then(|| words(&path)),
                        ns,
                    };
                    let limit = self.groups.limits.iter().find(|l| l.path == path);
                    CgroupRow {
                        kind: "cgroup",
                        cgroup: (!path.is_empty()).then(|| words(&path)),
                        path: (!path.is_empty()).then_some(path),
                        processes: Some(sum.pids.len() as u64),
                        wanted_ns: sum.row.ready_ns.map(|ready| {
                            sum.row.used_ns + ready + sum.row.throttled_ns.unwrap_or(0)
                        }),
                        behind: behind.into_iter().map(rival).collect(),
                        limit_cpus: limit.map(|l| (l.cpus() * 1000.0).round() / 1000.0),
                        periods: limit.map(|l| l.periods),
                        throttled_periods: limit.map(|l| l.throttled_periods),
                        stopped_ns: limit.map(|l| l.throttled_ns),
                        pct_capacity: percent(sum.row.used_ns, capacity),
                        ..sum.row
                    }
                })
                .collect();
        if !self.options.filter.chooses_threads() && self.shown.is_none() {
            let cpus = self.cpu_rows();
            let sum = |f: fn(&crate::rows::CpuRow) -> u64| cpus.iter().map(f).sum::<u64>();
            let irqs = sum(|c| c.irq_ns.unwrap_or(0) + c.softirq_ns.unwrap_or(0));
            for (kind, used_ns) in [
                ("interrupts", irqs),
                ("idle", sum(|c| c.idle_ns)),
                ("unaccounted", sum(|c| c.unaccounted_ns)),
            ] {
                let pct_capacity = percent(used_ns, capacity);
                rows.push(CgroupRow { kind, used_ns, pct_capacity, ..CgroupRow::default() });
            }
        }
        rows
    }
}
