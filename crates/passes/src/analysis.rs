//! The result of the pass, and the tables drawn from it.

use crate::blame::{Cause, WaitKey, WaitSum};
use crate::costs::{Costs, Ends};
use crate::counters::{Counts, Running};
use crate::crowding::CrowdedCall;
use crate::engine::{Engine, Law};
use crate::irqs::{IrqKind, IrqStats};
use crate::judge::Outside;
use crate::options::Options;
use crate::programs::Together;
use crate::rows::*;
use crate::spaces::SpaceCosts;
use crate::stolen::Stolen;
use crate::stretches::QUARTERS;
use crate::stretches::Stretches;
use crate::syscalls::CallStats;
use crate::threads::{Slot, Thread};
use crate::throttle::Quota;
use crate::timeline::{Bin, Program};
use crate::waits::Object;
use crate::yields::Yields;
use holdup_counters::Mode;
use holdup_syscalls::{Direction, WaitKind, io_direction, is_message, is_semaphore};
use holdup_trace::{Capabilities, Cpu, EventKind, Nanos, Pid, Quality, QualityCode, Reader};
use std::collections::{BTreeMap, BTreeSet};

/// Everything one pass found out about a trace.
pub struct Analysis {
    /// What went wrong on the way.
    pub quality: Quality,
    /// First and last time analysed.
    pub start: Nanos,
    /// See `start`.
    pub end: Nanos,
    /// Events as `perf script` or `trace-cmd report` would print them.
    pub events: u64,
    /// Events the recorder lost.
    pub lost_events: u64,
    /// CPUs in the ledger.
    pub cpus: u32,
    /// What the trace can prove.
    pub capabilities: Capabilities,
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    /// CPUs that have a row.
    pub(crate) cpu_list: Vec<Cpu>,
    /// Names of work functions by address.
    pub(crate) functions: BTreeMap<u64, String>,
    /// Names of the functions that threads slept in, by address.
    pub(crate) callers: BTreeMap<u64, String>,
    /// Events that no state machine knows, by name (`ftrace:print`): those that came.
    others: Vec<(String, u64)>,
    /// The threads that have rows, where somebody chose.
    pub(crate) shown: Option<BTreeSet<u32>>,
}

/// Waits that one thread ended, in sum.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitRow {
    /// What for.
    pub cause: Cause,
    /// The call slept in.
    pub nr: Option<u32>,
    /// Its name.
    pub call: Option<String>,
    /// The thread that ended the waits.
    pub waker: Option<Slot>,
    /// The object waited for.
    pub object: Object,
    /// Number, time and share.
    pub sum: WaitSum,
}

impl Analysis {
    /// What a finished engine knows.
    pub(crate) fn new(
        mut engine: Engine,
        reader: &dyn Reader,
        options: &Options,
        (start, end): (Nanos, Nanos),
        cpu_list: Vec<Cpu>,
    ) -> Analysis {
        let info = reader.info();
        let symbols = options.symbols.as_deref().unwrap_or(&info.symbols);
        engine.locks.name(symbols);
        let mut quality = engine.quality.clone();
        if let Some(chosen) = info.capabilities.syscalls.chosen() {
            quality.add(QualityCode::DarkCalls, chosen.len() as u64);
        }
        if info.system_wide == Some(false) {
            quality.add(QualityCode::NotSystemWide, 1);
        }
        let functions = engine
            .irqs
            .rows
            .keys()
            .filter_map(|k| Some((k.1, symbols.lookup(k.1)?.0.to_owned())))
            .collect();
        let others = (info.events.iter().zip(&engine.others))
            .filter(|(_, n)| **n > 0)
            .map(|(e, n)| (e.full_name(), *n))
            .collect();
        let callers = crate::waits::callers(&engine.waits, symbols);
        Analysis {
            lost_events: 0,
            quality,
            start,
            end,
            events: engine.events,
            cpus: cpu_list.len() as u32,
            capabilities: engine.caps.clone(),
            engine,
            options: options.clone(),
            cpu_list,
            functions,
            callers,
            others,
            shown: None,
        }
    }

    /// The kernel said what uninterruptible sleeps were for (`sched_blocked_reason`).
    pub fn reasons_seen(&self) -> bool {
        self.engine.reasons_seen
    }

    /// What the readers found wrong adds to what the passes did.
    pub fn absorb(&mut self, readers: &Quality) {
        self.quality.absorb(readers);
        // Two counts of the same losses.
        self.lost_events = (self.quality.count(QualityCode::LostEvents))
            .max(self.quality.count(QualityCode::LostSamples));
    }

    /// From here on rows are of these threads only, beside what the filters say.
    pub fn show_threads(&mut self, tids: BTreeSet<u32>) {
        self.shown = Some(tids);
    }

    /// Events that mean something to the recorded program alone, such as writes to trace_marker and
    /// probes: name and number of those that came.
    pub fn other_events(&self) -> impl Iterator<Item = (&str, u64)> {
        self.others.iter().map(|(name, n)| (name.as_str(), *n))
    }

    /// The delay from ready to running that `per_cent` of all delays do not exceed, within 1/16:
    /// of all threads that are not the kernel's. `None` without delays.
    pub fn delay_percentile(&self, per_cent: u64) -> Option<Nanos> {
        self.engine.delays.percentile(per_cent)
    }

    /// Length of the part analysed.
    pub fn wall_ns(&self) -> Nanos {
        self.end - self.start
    }

    /// When the part analysed begins, by the trace's clock.
    pub fn start_ns(&self) -> Nanos {
        self.start
    }

    /// When it ends.
    pub fn end_ns(&self) -> Nanos {
        self.end
    }

    /// The CPUs of the machine, as far as they show.
    pub fn cpu_list(&self) -> &[Cpu] {
        &self.cpu_list
    }

    /// Time of interrupts and softirqs on all CPUs.
    pub fn irq_ns(&self) -> Nanos {
        self.cpu_rows().iter().filter_map(|c| Some(c.irq_ns? + c.softirq_ns.unwrap_or(0))).sum()
    }

    /// CPUs x wall time.
    pub fn capacity_ns(&self) -> Nanos {
        self.cpus as u64 * self.wall_ns()
    }

    /// One thread.
    pub fn thread(&self, slot: Slot) -> &Thread {
        &self.engine.threads[slot]
    }

    /// All threads that pass the filters, in order of appearance.
    pub fn threads(&self) -> impl Iterator<Item = (Slot, &Thread)> {
        self.engine.threads.iter().filter(|(_, t)| self.wanted(t))
    }

    /// All threads, whatever the filters say, in order of appearance.
    pub fn all_threads(&self) -> impl Iterator<Item = (Slot, &Thread)> {
        self.engine.threads.iter()
    }

    /// A thread's name, `:TID` if it has none.
    pub fn comm(&self, t: &Thread) -> String {
        let name = self.engine.names.get(t.comm);
        if name.is_empty() { format!(":{}", t.tid) } else { name }
    }

    /// How long a thread existed within the part analysed.
    pub fn life_ns(&self, t: &Thread) -> Nanos {
        t.died.unwrap_or(self.end).saturating_sub(t.born.max(self.start))
    }

    /// A thread's process id, if known.
    pub fn pid(&self, t: &Thread) -> Option<u32> {
        pid_of(t)
    }

    /// Name of a system call on the recorded machine.
    pub fn call_name(&self, nr: u32) -> String {
        holdup_syscalls::name(self.engine.arch, nr)
            .map_or_else(|| format!("syscall_{}", nr as i32), str::to_owned)
    }

    /// Whether a thread passes the filters.
    pub fn wanted(&self, t: &Thread) -> bool {
        let o = &self.options.filter;
        self.shown.as_ref().is_none_or(|shown| shown.contains(&t.tid.0))
            && (o.pids.is_empty() || o.pids.contains(&t.pid.0))
            && (o.tids.is_empty() || o.tids.contains(&t.tid.0))
            && (o.comms.is_empty() || o.comms.contains(&self.comm(t)))
    }

    /// What it means that a thread sleeps in no recorded system call.
    pub fn outside(&self) -> Outside {
        Outside::of(&self.capabilities.syscalls)
    }

    /// Every call of the recorded machine of this sort is recorded, if it is ever made.
    fn calls_are_known(&self, sort: impl Fn(&str) -> bool) -> bool {
        let (calls, arch) = (&self.capabilities.syscalls, self.engine.arch);
        let known = |nr: u32| match holdup_syscalls::name(arch, nr) {
            Some(name) if sort(name) => calls.have(name),
            _ => true,
        };
        calls.are_all()
            || calls.are_any() && (0..holdup_syscalls::table_len(arch) as u32).all(known)
    }

    /// CPU time of applications, by where it was: outside of recorded system calls, and in them;
    /// waiting for locks of the kernel counts as the latter. The second is `None` where no system
    /// calls are recorded, and the first then is both.
    pub fn application_ns(&self) -> (Nanos, Option<Nanos>) {
        let cpus = || self.cpu_list.iter().filter_map(|&cpu| self.engine.cpus.get(cpu));
        let calls = self.capabilities.syscalls.are_any();
        (cpus().map(|c| c.user).sum(), calls.then(|| cpus().map(|c| c.kernel).sum()))
    }

    fn sees_switches(&self) -> bool {
        self.capabilities.switches
    }

    /// For each system call the sum of the squares of the threads' numbers of it: over the square
    /// of the sum, how often two calls drawn by lot are the same thread's.
    pub fn squares_of_calls(&self) -> BTreeMap<u32, u128> {
        let mut squares = BTreeMap::new();
        for (nr, stats) in self.threads().flat_map(|(_, t)| t.calls.iter()) {
            *squares.entry(nr).or_default() += (stats.count as u128).pow(2);
        }
        squares
    }

    /// Every thread that made one of these calls, in order of appearance.
    pub fn callers(&self, numbers: &[u32]) -> Vec<Caller> {
        let of = |(slot, t): (Slot, &Thread)| {
            let (mut calls, mut all_calls) = (0, 0);
            for (nr, stats) in t.calls.iter() {
                all_calls += stats.count;
                calls += if numbers.contains(&nr) { stats.count } else { 0 };
            }
            (calls > 0).then_some(Caller { slot, calls, all_calls })
        };
        self.threads().filter_map(of).collect()
    }

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
                    errnos: s
                        .errnos
                        .iter()
                        .map(|&(e, n)| {
                            (
                                holdup_syscalls::errno_name(e as u32)
                                    .map_or_else(|| format!("errno_{e}"), str::to_owned),
                                n,
                            )
                        })
                        .collect(),
                }
            })
            .collect()
    }

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
                && t.calls.iter().next().is_none()
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
                let by_command = by == Group::Command;
                let ratio = |part: fn((Nanos, Nanos, Nanos)) -> Nanos| {
                    sum.locks
                        .filter(|l| l.2 > 0)
                        .map(|l| (part(l) as f64 * 10_000.0 / l.2 as f64).round() / 10_000.0)
                };
                Some(ProcRow {
                    lock_ratio: ratio(|l| l.0),
                    waiting_ratio: ratio(|l| l.1),
                    pid_inferred: (!by_command).then_some(t.pid_inferred),
                    comm: self.comm(t),
                    pid: (!by_command).then(|| pid_of(t)),
                    tid: (by == Group::Thread).then_some(t.tid.0),
                    processes: by_command.then_some(sum.pids.len() as u64),
                    threads: (by != Group::Thread).then_some(sum.threads),
                    pct_capacity: percent(sum.row.combined_ns, capacity),
                    switches_per_s: per_second(sum.row.switches, self.wall_ns()),
                    ..sum.row
                })
            })
            .collect()
    }

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
                iowait_ns: c.iowait,
                unaccounted_ns: c.unaccounted,
                wall_ns: self.wall_ns(),
                switches: c.switches,
                switches_per_s: per_second(c.switches, self.wall_ns()),
                irqs: (caps.irqs || c.irqs > 0).then_some(c.irqs),
            })
            .collect()
    }

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

    /// Interrupts, softirqs, work functions; per CPU or over all of them.
    pub fn irqs(&self, per_cpu: bool) -> Vec<IrqRow> {
        let mut groups: BTreeMap<(IrqKind, u64, Option<Cpu>), IrqStats> = BTreeMap::new();
        for (&(kind, id, cpu), stats) in &self.engine.irqs.rows {
            if self.options.selection.cpus.as_ref().is_none_or(|list| list.contains(&cpu)) {
                groups.entry((kind, id, per_cpu.then_some(cpu))).or_default().merge(stats);
            }
        }
        let mut rows: Vec<IrqRow> = groups
            .into_iter()
            .filter(|(_, s)| s.count > 0)
            .map(|((kind, id, cpu), s)| {
                let given = self.engine.names.get(s.name);
                // Text gives works a name and no address; what was counted by is a number of ours.
                let id = if kind == IrqKind::Work && !given.is_empty() { 0 } else { id };
                let (kind, name) = match kind {
                    IrqKind::Irq => ("irq", given),
                    IrqKind::Vector => ("irq", given),
                    IrqKind::Softirq => ("softirq", softirq(id)),
                    IrqKind::Work if given.is_empty() => (
                        "workqueue",
                        self.functions.get(&id).cloned().unwrap_or_else(|| format!("{id:#x}")),
                    ),
                    IrqKind::Work => ("workqueue", given),
                };
                IrqRow {
                    kind,
                    id,
                    name,
                    cpu: cpu.map(|c| c.0),
                    count: s.count,
                    total_ns: s.total,
                    avg_ns: s.total / s.count,
                    max_ns: s.max,
                    max_start_ns: s.max_start,
                }
            })
            .collect();
        // Interned ids must not decide the order.
        rows.sort_by(|a, b| {
            (a.kind, &a.name, a.cpu, a.count, a.total_ns)
                .cmp(&(b.kind, &b.name, b.cpu, b.count, b.total_ns))
        });
        rows
    }

    /// Time during which at least one work item with this function (the id of its row) was in
    /// progress.
    pub fn work_busy_ns(&self, id: u64) -> Nanos {
        self.engine.irqs.busy.get(&id).map_or(0, |b| b.total)
    }

    /// sar's rates: the system first, then each CPU if asked for.
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
            let sys = sum(&|r| {
                r.kernel_ns.unwrap_or(0)
                    + r.kthread_ns
                    + r.irq_ns.unwrap_or(0)
                    + r.softirq_ns.unwrap_or(0)
            });
            let wio = sum(&|r| r.iowait_ns);
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
                pct_usr: caps
                    .syscalls
                    .chosen()
                    .is_none()
                    .then(|| percent(sum(&|r| r.user_ns.unwrap_or(0)), capacity)),
                pct_sys: all.then(|| percent(sys, capacity)),
                pct_wio: percent(wio, capacity),
                pct_idle: percent(sum(&|r| r.idle_ns) - wio, capacity),
                pct_unaccounted: percent(sum(&|r| r.unaccounted_ns), capacity),
                scall_per_s: rate(all, n.scalls),
                sread_per_s: rate(reads, n.sreads),
                swrit_per_s: rate(writes, n.swrites),
                rchar_per_s: rate(reads, n.rchars),
                wchar_per_s: rate(writes, n.wchars),
                fork_per_s: recorded(EventKind::Fork).then(|| per_second(n.forks, wall)),
                exec_per_s: recorded(EventKind::Exec).then(|| per_second(n.execs, wall)),
                cswch_per_s: self.sees_switches().then(|| per_second(sum(&|r| r.switches), wall)),
                runq_sz: (system && blame.occupied_ns > 0).then(|| {
                    (blame.queue_ns as f64 * 1000.0 / blame.occupied_ns as f64).round() / 1000.0
                }),
                pct_runocc: system.then(|| percent(blame.occupied_ns, wall)),
                sema_per_s: rate(self.calls_are_known(is_semaphore), n.semas),
                msg_per_s: rate(self.calls_are_known(is_message), n.msgs),
                fault_per_s: (caps.page_faults || n.faults > 0).then(|| per_second(n.faults, wall)),
            }
        };
        let mut out = vec![row(None)];
        if per_cpu {
            out.extend(rows.iter().map(|r| row(Some(r.cpu))));
        }
        out
    }

    /// The part analysed in equal parts, with what the CPUs did in each.
    pub fn bins(&self) -> Vec<Bin> {
        self.engine.timeline.rows(self.end, self.engine.blame.bins())
    }

    /// Every program that ran, with its CPU time in each of [`Analysis::bins`].
    pub fn programs(&self) -> Vec<Program> {
        self.engine.timeline.programs(self.end)
    }

    /// Idle CPU time.
    pub fn idle_ns(&self) -> Nanos {
        self.cpu_list.iter().filter_map(|&c| self.engine.cpus.get(c)).map(|c| c.idle).sum()
    }

    /// Every wait that may explain idle CPUs, grouped by cause, call and waker.
    pub fn wait_rows(&self) -> Vec<WaitRow> {
        let mut rows: Vec<(WaitKey, WaitSum)> =
            self.engine.blame.waits.iter().map(|(k, s)| (*k, *s)).collect();
        rows.sort_by_key(|r| r.0);
        rows.into_iter()
            .map(|(k, sum)| WaitRow {
                cause: k.cause,
                nr: k.nr,
                call: k.nr.map(|nr| self.call_name(nr)),
                waker: k.waker,
                object: k.object,
                sum,
            })
            .collect()
    }

    /// Threads that yield their CPU, and how.
    pub fn yields(&self) -> impl Iterator<Item = (Slot, &Yields)> {
        self.threads().filter_map(|(slot, t)| Some((slot, t.yields.as_deref()?)))
    }

    /// CPU time in calls of these kinds that slept, or ended the sleep of another thread: the price
    /// of waiting for each other, apart from the waiting.
    pub fn in_turns_ns(&self, kinds: fn(WaitKind) -> bool) -> Nanos {
        let calls = self.threads().flat_map(|(_, t)| t.calls.iter());
        let of_kind = |nr: u32| kinds(holdup_syscalls::wait_kind(&self.call_name(nr)));
        calls.filter(|(nr, s)| s.in_turns > 0 && of_kind(*nr)).map(|(_, s)| s.in_turns).sum()
    }

    /// What a system call costs by the number of threads in system calls meanwhile.
    pub fn crowding(&self, nr: u32) -> Option<&CrowdedCall> {
        self.engine.crowding.get(nr)
    }

    /// What a system call, and the application's stretches that lead to it, cost among their likes.
    pub fn costs(&self, nr: u32) -> Option<&Costs> {
        self.engine.costs.get(nr)
    }

    /// The same for a call that changes an address space, by whether a sibling was on a CPU.
    pub fn space_costs(&self, nr: u32) -> Option<&SpaceCosts> {
        self.engine.spaces.get(nr)
    }

    /// When calls ended that change one address space.
    pub fn space_ends(&self) -> &Ends {
        self.engine.spaces.ends()
    }

    /// How long each thread's own code took between two system calls, by the call it led to.
    pub fn stretches(&self) -> Vec<(Slot, u32, &Stretches)> {
        self.engine.stretches.rows()
    }

    /// What the processor's counters say about each thread's own code, by the quarter of the CPUs
    /// that were busy.
    pub fn counters(&self) -> impl Iterator<Item = (Slot, &[Counts; QUARTERS])> {
        self.engine.counters.rows()
    }

    /// What the processor's counters counted of all threads in one mode.
    pub fn counted(&self, mode: Mode) -> &Counts {
        self.engine.counters.machine(mode)
    }

    /// How long counters that were read in groups counted; `None` where the trace does not say.
    pub fn counters_ran(&self) -> Option<Running> {
        self.engine.counters.running()
    }

    /// The blame's books, for tests: the parts shared out, with what divisions left over, and the
    /// whole, in 2^-32 ns. They are equal.
    #[doc(hidden)]
    pub fn blame_check(&self) -> (u128, u128) {
        let blame = &self.engine.blame;
        let shares: u128 = blame.waits.values().map(|s| s.share).sum();
        (shares + blame.rounding, ((blame.shared_ns as u128) << 32) + blame.moved)
    }

    /// Time with at least one thread running or ready.
    pub fn occupied_ns(&self) -> Nanos {
        self.engine.blame.occupied_ns
    }

    /// Idle CPU time while a runnable thread waited for another CPU.
    pub fn scheduler_idle_ns(&self) -> Nanos {
        self.engine.blame.scheduler_left_ns()
    }

    /// CPU time that a hypervisor took away, at least; `None` where ticks leave no events, so that
    /// the silence of a CPU means nothing.
    pub fn stolen(&self) -> Option<Stolen> {
        if !self.engine.ticks.seen() || !self.engine.system_wide {
            return None;
        }
        let mut sum = Stolen::default();
        for c in self.cpu_list.iter().filter_map(|&c| self.engine.cpus.get(c)) {
            sum.add(&c.stolen);
        }
        Some(sum)
    }

    /// Idle CPU time while threads were ready and kept off the CPUs by a quota.
    pub fn throttled_idle_ns(&self) -> Nanos {
        self.engine.blame.throttled_left_ns()
    }

    /// What is known of the quota that keeps threads off the CPUs.
    pub fn quota(&self) -> Quota {
        self.engine.throttles.quota()
    }

    /// Idle CPU time while exactly one application thread was running or ready, the scheduler's
    /// part ([`Analysis::scheduler_idle_ns`]) left out: the work was serial. A lower bound: while a
    /// thread of which it is not known whether it is the kernel's is running or ready beside
    /// another, nothing counts.
    pub fn serial_ns(&self) -> Nanos {
        let other = self.scheduler_idle_ns() + self.throttled_idle_ns();
        let rest = self.idle_ns().saturating_sub(other);
        self.engine.blame.serial().idle_ns.min(rest)
    }

    /// Time (not CPU time) during which exactly one application thread was running or ready; a
    /// lower bound as [`Analysis::serial_ns`].
    pub fn serial_wall_ns(&self) -> Nanos {
        self.engine.blame.serial().wall_ns
    }

    /// How long one thread of a process, and several at a time, were running or ready.
    pub fn together(&self, pid: u32) -> Option<Together> {
        self.engine.programs.of(Pid(pid))
    }

    /// How often which law of run queues put something right about which thread: where the
    /// recording has holes. By law, then by thread in order of appearance.
    pub fn laws(&self) -> Vec<(Law, Slot, u64)> {
        let mut rows: Vec<_> = self.engine.laws.iter().map(|(&(l, s), &n)| (l, s, n)).collect();
        rows.sort_unstable();
        rows
    }

    /// Mean number of threads running or ready, over the whole trace, in thousandths.
    pub fn mean_queue_milli(&self) -> u64 {
        (self.engine.blame.queue_ns * 1000).checked_div(self.wall_ns() as u128).unwrap_or(0) as u64
    }

    /// Time during which two or more CPUs ran threads.
    pub fn several_ns(&self) -> Nanos {
        self.engine.blame.several_ns
    }

    /// Time during which no CPU was idle, and the mean number of threads running or ready then, in
    /// thousandths.
    pub fn full(&self) -> (Nanos, u64) {
        let blame = &self.engine.blame;
        (
            blame.full_ns,
            (blame.full_queue_ns * 1000).checked_div(blame.full_ns as u128).unwrap_or(0) as u64,
        )
    }

    fn group_key(&self, by: Group, slot: Slot, t: &Thread) -> GroupKey {
        match by {
            Group::System => GroupKey::All,
            Group::Command => GroupKey::Comm(self.comm(t), t.is_kthread()),
            // Without a process id the thread stands for its process.
            Group::Process => GroupKey::Pid(pid_of(t).unwrap_or(t.tid.0)),
            Group::Thread => GroupKey::Slot(slot),
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    All,
    Comm(String, bool),
    Pid(u32),
    Slot(Slot),
}

fn pid_of(t: &Thread) -> Option<u32> {
    (t.pid != Pid::UNKNOWN).then_some(t.pid.0)
}

/// A softirq by the kernel's name, or by its number.
fn softirq(vec: u64) -> String {
    let name = u32::try_from(vec).ok().and_then(holdup_trace::softirq_name);
    name.map_or_else(|| format!("softirq_{vec}"), str::to_owned)
}
