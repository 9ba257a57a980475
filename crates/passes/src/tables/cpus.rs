//! What each CPU did, and sar's rates of it.

use crate::analysis::Analysis;
use crate::cpus::Sort;
use crate::rounding::per_second;
use crate::rounding::percent;
use crate::rows::*;
use holdup_syscalls::{Direction, io_direction, is_message, is_semaphore};
use holdup_trace::{Cpu, EventKind};

impl Analysis {
    /// Where each CPU's time went.
    pub fn cpu_rows(&self) -> Vec<CpuRow> {
        let caps = &self.capabilities;
        self.cpu_list
            .iter()
            .filter_map(|&cpu| Some((cpu, self.engine.cpus.get(cpu)?)))
            .map(|(cpu, c)| CpuRow {
                cpu: cpu.0,
                user_ns: caps.syscalls.chosen().is_none().then_some(c.user),
                kernel_ns: caps.syscalls.are_all().then_some(c.kernel),
                kthread_ns: c.kthread,
                irq_ns: (caps.irqs || c.irq > 0).then_some(c.irq),
                softirq_ns: (caps.softirqs || c.softirq > 0).then_some(c.softirq),
                idle_ns: c.idle,
                iowait_ns: self.sees_iowait().then_some(c.iowait),
                unaccounted_ns: c.unaccounted,
                wall_ns: self.wall_ns(),
                switches: c.switches,
                switches_per_s: per_second(c.switches, self.wall_ns()),
                irqs: (caps.irqs || c.irqs > 0).then_some(c.irqs),
            })
            .collect()
    }

    /// sar's rates: the whole system first, then each CPU if asked for.
    pub fn sar(&self, per_cpu: bool) -> Vec<SarRow> {
        let wall = self.wall_ns();
        let caps = &self.capabilities;
        let recorded = |kind| self.engine.recorded.has(kind);
        let rows = self.cpu_rows();
        let row = |cpu: Option<u16>| {
            let mine: Vec<&CpuRow> =
                rows.iter().filter(|r| cpu.is_none_or(|c| r.cpu == c)).collect();
            let sum = |f: &dyn Fn(&CpuRow) -> u64| mine.iter().map(|r| f(r)).sum::<u64>();
            let capacity = sum(&|r| r.wall_ns);
            // If nothing is known about the CPUs at any moment, no share is 0.
            let seen = sum(&|r| r.wall_ns - r.unaccounted_ns) > 0;
            let sys = sum(&|r| {
                r.kernel_ns.unwrap_or(0)
                    + r.kthread_ns
                    + r.irq_ns.unwrap_or(0)
                    + r.softirq_ns.unwrap_or(0)
            });
            let wio = sum(&|r| r.iowait_ns.unwrap_or(0));
            let mut n = crate::cpus::Counts::default();
            for r in &mine {
                if let Some(c) = self.engine.cpus.get(Cpu(r.cpu)) {
                    n.add(&c.counts);
                }
            }
            let rate = |known: bool, count: u64| known.then(|| per_second(count, wall));
            let all = caps.syscalls.are_all();
            let reads = self.calls_are_known(|c| io_direction(c) == Some(Direction::Read));
            let writes = self.calls_are_known(|c| io_direction(c) == Some(Direction::Write));
            let blame = &self.engine.blame;
            let system = cpu.is_none() && self.sees_switches();
            SarRow {
                cpu,
                pct_usr: (seen && caps.syscalls.chosen().is_none())
                    .then(|| percent(sum(&|r| r.user_ns.unwrap_or(0)), capacity)),
                pct_sys: (seen && all).then(|| percent(sys, capacity)),
                pct_wio: (seen && self.sees_iowait()).then(|| percent(wio, capacity)),
                // Calls and wake-ups alone never show a CPU idle.
                pct_idle: (seen && self.sees_switches())
                    .then(|| percent(sum(&|r| r.idle_ns) - wio, capacity)),
                pct_unaccounted: percent(sum(&|r| r.unaccounted_ns), capacity),
                scall_per_s: rate(all, n.scalls),
                sread_per_s: rate(reads, n.calls(Sort::Read)),
                swrit_per_s: rate(writes, n.calls(Sort::Write)),
                rchar_per_s: rate(reads, n.chars(Sort::Read)),
                wchar_per_s: rate(writes, n.chars(Sort::Write)),
                fork_per_s: recorded(EventKind::Fork).then(|| per_second(n.forks, wall)),
                exec_per_s: recorded(EventKind::Exec).then(|| per_second(n.execs, wall)),
                cswch_per_s: self.sees_switches().then(|| per_second(sum(&|r| r.switches), wall)),
                runq_sz: (system && blame.occupied_ns > 0).then(|| {
                    (blame.queue_ns as f64 * 1000.0 / blame.occupied_ns as f64).round() / 1000.0
                }),
                pct_runocc: system.then(|| percent(blame.occupied_ns, wall)),
                sema_per_s: rate(self.calls_are_known(is_semaphore), n.calls(Sort::Semaphore)),
                msg_per_s: rate(self.calls_are_known(is_message), n.calls(Sort::Message)),
                fault_per_s: (caps.page_faults || n.faults > 0).then(|| per_second(n.faults, wall)),
            }
        };
        let mut out = vec![row(None)];
        if per_cpu {
            out.extend(rows.iter().map(|r| row(Some(r.cpu))));
        }
        out
    }

    /// Whether the trace shows both that CPUs idle and that threads sleep for devices.
    fn sees_iowait(&self) -> bool {
        self.sees_switches() && self.sees_devices()
    }

    /// Whether the trace contains every call of this sort that the recorded machine made.
    fn calls_are_known(&self, sort: impl Fn(&str) -> bool) -> bool {
        let (calls, arch) = (&self.capabilities.syscalls, self.engine.arch);
        let known = |nr: u32| match holdup_syscalls::name(arch, nr) {
            Some(name) if sort(name) => calls.have(name),
            _ => true,
        };
        calls.are_all()
            || calls.are_any() && (0..holdup_syscalls::table_len(arch) as u32).all(known)
    }
}
