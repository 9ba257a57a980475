//! The result of the pass. Its tables have files of their own ([`crate::tables`]).

use crate::blame::WaitSum;
use crate::cause::Cause;
use crate::costs::{Costs, Ends};
use crate::counters::{Counts, Running};
use crate::engine::{Engine, Invariant};
use crate::judge::Outside;
use crate::limits::{Threshold, Thresholds};
use crate::options::{Filter, Options};
use crate::programs::Together;
use crate::slot::Slot;
use crate::spaces::SpaceCosts;
use crate::spins::SampledRun;
use crate::stolen::Stolen;
use crate::syscalls::CallSum;
use crate::threads::{Thread, pid_of, role};
use crate::throttle::{Quota, Throttles};
use crate::timeline::{Bin, Program};
use crate::user_intervals::IntervalsOfCall;
use crate::user_intervals::QUARTERS;
use crate::waits::Object;
use crate::yields::Yields;
use holdup_counters::Mode;
use holdup_syscalls::WaitKind;
use holdup_trace::{
    Capabilities, Cpu, Groups, NameId, Nanos, Pid, Quality, QualityCode, Reader, Seen, Tid,
};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// Everything one pass found out about a trace.
pub struct Analysis {
    /// What went wrong on the way.
    pub quality: Quality,
    /// First and last time analysed.
    pub start: Nanos,
    /// Last time analysed.
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
    /// What the recorder saw of the descriptors that threads waited on.
    pub(crate) descriptors: BTreeMap<Object, Seen>,
    /// Names of the variables that threads waited on.
    pub(crate) variables: BTreeMap<Object, String>,
    /// Number of events that no state machine handles, by name (`ftrace:print`), without zeros.
    others: Vec<(String, u64)>,
    /// The threads that have rows, if the user chose threads.
    pub(crate) shown: Option<BTreeSet<u32>>,
    /// Paths of the control groups that threads were in.
    pub(crate) paths: BTreeMap<NameId, String>,
    /// The groups of processes, for threads without a group of their own.
    pub(crate) group_of: BTreeMap<Pid, NameId>,
    /// What the recorder read of control groups.
    pub(crate) groups: Groups,
    /// The system calls of the threads that have rows.
    pub(crate) calls: OnceCell<BTreeMap<u32, CallSum>>,
}

/// Waits that one thread ended, in total.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitRow {
    /// What for.
    pub cause: Cause,
    /// The call slept in.
    pub nr: Option<u32>,
    /// What threads that sleep in it wait for.
    pub kind: Option<WaitKind>,
    /// The thread that ended the waits.
    pub waker: Option<Slot>,
    /// The object waited for, by its final number.
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
            quality.add(QualityCode::UntracedCalls, chosen.len() as u64);
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
        let descriptors = crate::waits::descriptors(&engine.waits, info);
        let (paths, group_of) = crate::engine::paths(&engine);
        let variables = options.variables.as_ref();
        let variables = variables.map(|v| crate::waits::variables(&engine.waits, info, v));
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
            descriptors,
            variables: variables.unwrap_or_default(),
            others,
            shown: None,
            paths,
            group_of,
            groups: info.groups.clone(),
            calls: OnceCell::new(),
        }
    }

    /// The value of a limit in force when the analysis was made.
    pub fn limit(&self, limit: &Threshold) -> f64 {
        self.options.limits.get(limit)
    }

    /// The limits in force when the analysis was made.
    pub fn limits(&self) -> &Thresholds {
        &self.options.limits
    }

    /// Compares figures with other limits from now on; the measured values stay.
    pub fn set_limits(&mut self, limits: Thresholds) {
        self.options.limits = limits;
    }

    /// The kernel said what uninterruptible sleeps were for (`sched_blocked_reason`).
    pub fn reasons_seen(&self) -> bool {
        self.engine.reasons_seen
    }

    /// The recording distinguishes sleeps for devices from other sleeps in state D: by the kernel's
    /// reasons, or by the calls slept in.
    pub fn sees_devices(&self) -> bool {
        self.reasons_seen() || self.outside() != Outside::Unknown
    }

    /// Adds the readers' problems to those of the passes; `of_file` are those found when opening.
    pub fn absorb(&mut self, readers: &Quality, of_file: &Quality) {
        self.quality.absorb(readers);
        // Losses before or after the part are not losses of the part.
        let (seen, before) = self.engine.lost();
        let read = [readers, of_file].map(|q| q.count(QualityCode::LostEvents));
        let behind = match self.options.selection.to {
            Some(_) => read[0].saturating_sub(read[1]).saturating_sub(seen),
            None => 0,
        };
        self.quality.take_back(QualityCode::LostEvents, before + behind);
        // Two counts of the same losses: the larger is right.
        self.lost_events = (self.quality.count(QualityCode::LostEvents))
            .max(self.quality.count(QualityCode::LostSamples));
    }

    /// From here on only these threads have rows, in addition to what the filters say.
    pub fn show_threads(&mut self, tids: BTreeSet<u32>) {
        self.shown = Some(tids);
        self.calls = OnceCell::new();
    }

    /// Events that mean something to the recorded program alone, such as writes to trace_marker and
    /// probes: name and count, without zeros.
    pub fn other_events(&self) -> impl Iterator<Item = (&str, u64)> {
        self.others.iter().map(|(name, n)| (name.as_str(), *n))
    }

    /// The delay from ready to running that `per_cent` of all delays do not exceed, within 1/16,
    /// over all threads except kernel threads. `None` without delays.
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

    /// When the part analysed ends, by the trace's clock.
    pub fn end_ns(&self) -> Nanos {
        self.end
    }

    /// The CPUs of the machine, as far as the trace shows them.
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

    /// What a thread is for, by its name: see [`role`].
    pub fn role(&self, t: &Thread) -> Vec<u8> {
        role(self.comm(t).as_bytes()).to_vec()
    }

    /// The name of a thread's process: that of its leader if it is alive, else that of the thread.
    pub fn process_name(&self, slot: Slot) -> String {
        let t = self.thread(slot);
        let leader = pid_of(t).and_then(|pid| self.engine.threads.get(Tid(pid)));
        self.comm(leader.map_or(t, |leader| self.thread(leader)))
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

    /// What a thread that sleeps in a system call most plausibly waits for.
    pub fn call_kind(&self, nr: u32) -> WaitKind {
        holdup_syscalls::name(self.engine.arch, nr)
            .map_or(WaitKind::Other, holdup_syscalls::wait_kind)
    }

    /// Whether a thread passes the filters.
    pub fn wanted(&self, t: &Thread) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&t.tid.0))
            && self.fits(&self.options.filter, t)
    }

    /// Whether a thread is one that `filter` chooses.
    pub fn fits(&self, filter: &Filter, t: &Thread) -> bool {
        !filter.chooses_threads()
            || filter.wants(t.pid.0, t.tid.0, &self.comm(t))
                && filter.wants_group(self.path_of(self.group(t)), &self.groups)
    }

    /// Whether the user chose which threads are the workload.
    pub fn has_chosen_work(&self) -> bool {
        self.options.work.chooses_threads()
    }

    /// Whether a thread is one of those that the user chose as the workload.
    pub fn is_chosen(&self, t: &Thread) -> bool {
        self.has_chosen_work() && self.fits(&self.options.work, t)
    }

    /// The threads that the user chose as the workload.
    pub fn chosen(&self) -> impl Iterator<Item = (Slot, &Thread)> {
        self.all_threads().filter(|(_, t)| self.is_chosen(t))
    }

    /// What it means if a thread sleeps in no recorded system call.
    pub fn outside(&self) -> Outside {
        Outside::of(&self.capabilities.syscalls)
    }

    /// CPU time of applications, outside recorded system calls and in them; waiting for locks of
    /// the kernel counts as the latter. If no system calls are recorded, the second is `None` and
    /// the first contains both.
    pub fn application_ns(&self) -> (Nanos, Option<Nanos>) {
        let cpus = || self.cpu_list.iter().filter_map(|&cpu| self.engine.cpus.get(cpu));
        let calls = self.capabilities.syscalls.are_any();
        (cpus().map(|c| c.user).sum(), calls.then(|| cpus().map(|c| c.kernel).sum()))
    }

    /// Time during which at least one work item with this function (the id of its row) was in
    /// progress.
    pub fn work_busy_ns(&self, id: u64) -> Nanos {
        self.engine.irqs.busy.get(&id).map_or(0, |b| b.total)
    }

    /// The part analysed in bins of equal length, with what the CPUs did in each.
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

    /// Every wait that may explain idle CPUs, grouped by cause, call, waker and object, in no
    /// order.
    pub fn wait_rows(&self) -> Vec<WaitRow> {
        let mut kinds: FxHashMap<u32, WaitKind> = FxHashMap::default();
        let mut kind_of = |nr| *kinds.entry(nr).or_insert_with(|| self.call_kind(nr));
        let waits = self.engine.blame.waits.iter();
        waits
            .map(|(key, &sum)| WaitRow {
                cause: key.cause,
                nr: key.nr,
                kind: key.nr.map(&mut kind_of),
                waker: key.waker,
                object: self.final_object(key.object),
                sum,
            })
            .collect()
    }

    /// Samples of a thread's running code.
    pub fn sampled(&self, slot: Slot) -> SampledRun {
        self.engine.code.of_thread(slot)
    }

    /// Samples of the running code of all threads.
    pub fn sampled_in_all(&self) -> SampledRun {
        self.engine.code.of_all()
    }

    /// Functions in which these threads were sampled while they spun, with the number of samples,
    /// most first. A name is empty if it is not known.
    pub fn spins_in(&self, threads: &[Slot]) -> Vec<(String, u64)> {
        self.engine.code.functions(threads)
    }

    /// Threads that yield their CPU, and how.
    pub fn yields(&self) -> impl Iterator<Item = (Slot, &Yields)> {
        self.all_threads().filter_map(|(slot, t)| Some((slot, t.yields.as_deref()?)))
    }

    /// What a system call, and the application's user-mode intervals that lead to it, cost compared
    /// with similar ones.
    pub fn costs(&self, nr: u32) -> Option<&Costs> {
        self.engine.costs.get(nr)
    }

    /// Whether this process accepted a connection, as far as such calls were recorded.
    pub fn accepts(&self, pid: u32) -> bool {
        self.engine.waits.accepts(Pid(pid))
    }

    /// Costs of a call that changes an address space, by whether a sibling was on a CPU.
    pub fn space_costs(&self, nr: u32) -> Option<&SpaceCosts> {
        self.engine.spaces.get(nr)
    }

    /// End times of calls that change the same address space.
    pub fn space_ends(&self) -> &Ends {
        self.engine.spaces.ends()
    }

    /// How long each thread's own code took between two system calls, by the call it led to.
    pub fn user_intervals(&self) -> Vec<(Slot, u32, &IntervalsOfCall)> {
        self.engine.user_intervals.rows()
    }

    /// What the processor's counters say about each thread's own code, by the quarter of the CPUs
    /// that were busy.
    pub fn counters(&self) -> impl Iterator<Item = (Slot, &[Counts; QUARTERS])> {
        self.engine.counters.rows()
    }

    /// What the processor's counters counted of all threads in one mode.
    pub fn counted(&self, mode: Mode) -> Counts {
        self.counted_by_concurrency(mode).iter().fold(Counts::default(), Counts::with)
    }

    /// The counters of all threads in one mode, by the quarter of the CPUs that were busy.
    pub fn counted_by_concurrency(&self, mode: Mode) -> &[Counts; QUARTERS] {
        self.engine.counters.machine(mode)
    }

    /// How long counters that were read in groups counted; `None` if the trace does not say.
    pub fn counters_ran(&self) -> Option<Running> {
        self.engine.counters.running()
    }

    /// The totals of the blame, for tests: the shares plus the remainders of divisions, and the
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

    /// Lower bound of the CPU time that a hypervisor took; `None` if ticks leave no events, because
    /// the silence of a CPU then proves nothing.
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

    /// What is known of the quota that keeps the threads of a control group off the CPUs; without
    /// groups all threads belong to [`NameId::NONE`].
    pub fn quota_of(&self, group: NameId) -> Option<Quota> {
        self.engine.throttles.get(&group).map(Throttles::quota)
    }

    /// The quota of the group that used it up most often.
    pub fn quota(&self) -> Quota {
        let all = self.engine.throttles.values().map(Throttles::quota);
        all.max_by_key(|q| (q.periods, q.ran_ns)).unwrap_or_default()
    }

    /// Idle CPU time while exactly one application thread was running or ready, without the
    /// scheduler's part ([`Analysis::scheduler_idle_ns`]): the work was serial. A lower bound:
    /// nothing counts while a second active thread may be an application's or the kernel's.
    pub fn serial_ns(&self) -> Nanos {
        let other = self.scheduler_idle_ns() + self.throttled_idle_ns();
        let rest = self.idle_ns().saturating_sub(other);
        self.engine.blame.serial().idle_ns.min(rest)
    }

    /// Time (not CPU time) during which exactly one application thread was running or ready; a
    /// lower bound like [`Analysis::serial_ns`].
    pub fn serial_wall_ns(&self) -> Nanos {
        self.engine.blame.serial().wall_ns
    }

    /// How long one thread of a process, and several at a time, were running or ready.
    pub fn together(&self, pid: u32) -> Option<Together> {
        self.engine.programs.of(Pid(pid))
    }

    /// How often each invariant of run queues corrected the state of each thread: where the
    /// recording has holes. By invariant, then by thread in order of appearance.
    pub fn invariants(&self) -> Vec<(Invariant, Slot, u64)> {
        let mut rows: Vec<_> =
            self.engine.invariants.iter().map(|(&(l, s), &n)| (l, s, n)).collect();
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

    /// Time during which no CPU was idle, and the mean number of threads running or ready during
    /// that time, in thousandths.
    pub fn full(&self) -> (Nanos, u64) {
        let blame = &self.engine.blame;
        (
            blame.full_ns,
            (blame.full_queue_ns * 1000).checked_div(blame.full_ns as u128).unwrap_or(0) as u64,
        )
    }
}
