//! How threads were scheduled.

use super::pid_of;
use crate::analysis::Analysis;
use crate::rows::*;

impl Analysis {
    /// Scheduling of every thread that left a CPU or waited for one.
    pub fn switches(&self) -> Vec<SwitchRow> {
        let caps = &self.capabilities;
        self.threads()
            .filter(|(_, t)| t.stays > 0 || t.latency.count > 0)
            .map(|(_, t)| {
                let l = &t.latency;
                let woken = caps.wakeups || caps.wakers;
                SwitchRow {
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
            })
            .collect()
    }
}
