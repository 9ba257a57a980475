//! System calls.

use super::{GroupKey, pid_of};
use crate::analysis::Analysis;
use crate::rows::*;
use crate::syscalls::CallStats;
use crate::threads::Slot;
use std::collections::BTreeMap;

/// Name of an error, `errno_N` if it has none.
pub fn errno_word(errno: u32) -> String {
    holdup_syscalls::errno_name(errno).map_or_else(|| format!("errno_{errno}"), str::to_owned)
}

impl Analysis {
    /// System calls.
    pub fn syscalls(&self, by: Group) -> Vec<SyscallRow> {
        let mut groups: BTreeMap<(GroupKey, u32), (CallStats, Option<Slot>)> = BTreeMap::new();
        for (slot, t) in self.threads() {
            let key = self.group_key(by, slot, t);
            for (nr, stats) in t.calls.iter() {
                let entry = groups.entry((key.clone(), nr)).or_default();
                entry.0.merge(stats);
                // A process is named after its leader, or the first thread seen.
                if entry.1.is_none() || t.tid.0 == t.pid.0 {
                    entry.1 = Some(slot);
                }
            }
        }
        let sched = self.sees_switches();
        let capacity = self.capacity_ns();
        groups
            .into_iter()
            .map(|((_, nr), (s, slot))| {
                let t = slot.map(|s| self.thread(s));
                SyscallRow {
                    comm: t.filter(|_| by != Group::System).map(|t| self.comm(t)),
                    pid: t.filter(|_| matches!(by, Group::Process | Group::Thread)).map(pid_of),
                    tid: t.filter(|_| by == Group::Thread).map(|t| t.tid.0),
                    name: self.call_name(nr),
                    nr,
                    count: s.count,
                    errors: s.errors,
                    total_ns: s.total,
                    cpu_ns: sched.then_some(s.running),
                    interrupted_ns: sched.then_some(s.interrupted),
                    runnable_ns: sched.then_some(s.runnable),
                    blocked_ns: sched.then_some(s.blocked),
                    min_ns: s.min,
                    avg_ns: s.total.checked_div(s.count).unwrap_or(0),
                    max_ns: s.max,
                    // The middle of a bucket may lie beyond the longest call.
                    p50_ns: s.hist.percentile(50).map(|p| p.clamp(s.min, s.max)),
                    p99_ns: s.hist.percentile(99).map(|p| p.clamp(s.min, s.max)),
                    pending: s.pending,
                    pending_ns: s.pending_ns,
                    returned_only: s.returned_only,
                    pct_capacity: sched.then(|| percent(s.running, capacity)),
                    errnos: s.errnos.iter().map(|&(e, n)| (errno_word(e.into()), n)).collect(),
                    code: None,
                }
            })
            .collect()
    }
}
