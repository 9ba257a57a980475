//! The dispatcher: passes every event once to every state machine it concerns.
//!
//! The order inside one event matters and is the same everywhere: first the time up to the event
//! is charged (CPU, then thread), then states change. See [`crate::cpus`], [`crate::threads`],
//! [`crate::syscalls`], [`crate::blame`] for the machines themselves.
//!
//! * [`calls`]: system calls begin and end. Most events of most traces, so this is where speed is.
//! * [`whole`]: calls whose two events follow each other.
//! * [`current`]: which thread is on a CPU, and what its time is charged to; corrected where events
//!   were lost.
//! * [`invariants`]: what must have happened unseen; [`queues`]: the run queues.
//! * [`switches`], [`wakeups`]: threads get and lose CPUs, are woken, and why they slept.
//! * [`silence`]: time that a hypervisor stole.
//! * [`reasons`]: what the kernel says uninterruptible sleeps were for.
//! * [`throttled`]: threads that are ready and may not run.
//! * [`groups`]: control groups, and which groups had the CPU that their threads were ready for.
//! * [`holders`]: what threads did while others waited for what they held.
//! * [`retire`]: frees what threads that have ended no longer need.
//! * [`irqs`]: interrupts and softirqs.
//! * [`tasks`]: threads begin, end, and get names.
//! * [`carried`]: tasks that a runtime schedules on threads.
//! * [`samples`]: which code threads were sampled in.
//! * [`bounds`]: the part analysed begins and ends.

mod bounds;
mod calls;
mod carried;
mod current;
mod groups;
mod holders;
mod invariants;
mod irqs;
mod locks;
mod queues;
mod reasons;
mod retire;
mod samples;
mod silence;
mod switches;
mod tasks;
mod throttled;
mod untraced;
mod wakeups;
mod whole;

use crate::blame::Blame;
use crate::costs::CostTable;
use crate::counters::{Concurrency, Counters, Ran, Stays};
use crate::cpus::{Cpus, Level, MAX_CPUS};
use crate::facts::Fact;
use crate::facts::Facts;
use crate::grid::Grid;
use crate::hist::Histogram;
use crate::irqs::{IrqKind, Irqs};
use crate::judge::{Judge, Outside};
use crate::lanes::{Follow, Lane};
use crate::limits::NAMED;
use crate::locks::Locks;
use crate::observer::Observer;
use crate::options::{Detail, Options};
use crate::programs::Programs;
use crate::slot::Slot;
use crate::spaces::Spaces;
use crate::spins::SampledCode;
use crate::state::Mode;
use crate::stolen::Ticks;
use crate::threads::Threads;
use crate::throttle::Throttles;
use crate::timeline::Timeline;
use crate::user_intervals::{UserIntervals, quarter};
use crate::waits::Waits;
use calls::CallTraits;
use carried::Tasks;
pub(crate) use groups::{Rivals, paths};
use holdup_syscalls::Arch;
use holdup_trace::{
    Batch, Capabilities, Cpu, Event, EventDesc, EventId, EventKind, Groups, NameId, Names, Nanos,
    Presence, Quality, QualityCode, Reading, Recorded, SymbolTable, Tid, TraceInfo, What, merge,
};
pub use invariants::Invariant;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use untraced::UntracedCalls;
use whole::Later;

#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) caps: Capabilities,
    /// What it means if a thread sleeps in no recorded call.
    outside: Outside,
    /// Which single events are recorded, where one capability stands for several.
    pub(crate) recorded: Recorded,
    /// The recording is not limited to some tasks.
    pub(crate) system_wide: bool,
    pub(crate) names: Arc<Names>,
    pub(crate) arch: Arch,
    traits: Vec<CallTraits>,
    /// Number of `rt_sigreturn`.
    sigreturn: Option<u32>,
    /// Whether an event is a software page-fault sample, by event id.
    fault_ids: Vec<bool>,
    /// Events to ignore, by id: `syscalls:*` in a trace that also has `raw_syscalls:*`, which would
    /// count the same calls twice; and incomplete pairs. Empty if there are none.
    unused_ids: Vec<bool>,
    /// The recording has the event `sched_blocked_reason`.
    reasons: bool,
    /// At least one such event occurs in the trace.
    reasons_named: bool,
    /// At least one such event has occurred so far.
    pub(crate) reasons_seen: bool,
    /// Functions that `sched_blocked_reason` named, and whether they take locks.
    locking: FxHashMap<NameId, bool>,

    pub(crate) start: Nanos,
    pub(crate) now: Nanos,
    /// End of the part analysed.
    last: Nanos,
    /// The quarter of the CPUs that are busy: see [`quarter`].
    busy: u8,
    pub(crate) threads: Threads,
    /// Which threads are tasks of a runtime, and which threads run tasks.
    tasks: Tasks,
    /// The threads that ended last, oldest first.
    last_ended: VecDeque<Slot>,
    pub(crate) cpus: Cpus,
    pub(crate) irqs: Irqs,
    pub(crate) blame: Blame,
    pub(crate) ticks: Ticks,
    /// Throttling by control group.
    pub(crate) throttles: FxHashMap<NameId, Throttles>,
    pub(crate) rivals: Rivals,
    /// The group at the root of a hierarchy.
    root_group: NameId,
    /// What the recorder read of groups.
    groups: Groups,
    pub(crate) timeline: Timeline,
    pub(crate) programs: Programs,
    pub(crate) waits: Waits,
    judge: Judge,
    /// A thread is rare if it is active for less than this part of its lifetime, in per cent.
    rare_pct: f64,
    pub(crate) locks: Locks,
    pub(crate) costs: CostTable,
    later: Later,
    pub(crate) spaces: Spaces,
    pub(crate) user_intervals: UserIntervals,
    pub(crate) counters: Counters,
    pub(crate) code: SampledCode,
    pub(crate) quality: Quality,
    pub(crate) invariants: FxHashMap<(Invariant, Slot), u64>,
    pub(crate) events: u64,
    /// Delays from ready to running of all threads except kernel threads.
    pub(crate) delays: Histogram,
    /// Number of events that no state machine handles, by event id.
    pub(crate) others: Vec<u64>,
    /// Calls by the kernel function they begin in, and what was said about the next switch.
    untraced: UntracedCalls,
    /// Single facts, if the caller asks for them.
    pub(crate) facts: Option<Facts>,
    lost: bool,
    /// Number of lost events, and how many were lost before the part analysed.
    lost_events: u64,
    lost_before: u64,
}

impl Engine {
    pub(crate) fn new(
        info: &TraceInfo,
        symbols: &SymbolTable,
        (start, last): (Nanos, Nanos),
        options: &Options,
        judge: Judge,
    ) -> Engine {
        let detail = options.detail;
        let arch = Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64"));
        let recorded = Recorded::of(&info.events);
        let unused_ids = recorded.unused(&info.events);
        let outside = Outside::of(&info.capabilities.syscalls);
        let grid = Grid::new(start, last);
        let mut engine = Engine {
            caps: info.capabilities.clone(),
            outside,
            system_wide: info.system_wide != Some(false),
            names: info.names.clone(),
            arch,
            traits: CallTraits::table(arch),
            sigreturn: holdup_syscalls::entry_number(arch, "rt_sigreturn"),
            fault_ids: info
                .events
                .iter()
                .map(|e| e.system.is_empty() && e.name.contains("faults"))
                .collect(),
            unused_ids,
            reasons: recorded.has(EventKind::BlockedReason),
            reasons_named: info.events.iter().any(|e| {
                e.presence == Presence::Seen
                    && EventKind::of(&e.system, e.short_name()) == Some(EventKind::BlockedReason)
            }),
            reasons_seen: false,
            locking: FxHashMap::default(),
            start,
            now: start,
            last,
            busy: quarter(0, 0),
            threads: Threads::default(),
            tasks: Tasks::default(),
            last_ended: VecDeque::new(),
            cpus: Cpus::new(start, grid),
            irqs: Irqs::default(),
            blame: Blame::default(),
            ticks: Ticks::default(),
            throttles: FxHashMap::default(),
            rivals: Rivals::default(),
            root_group: info.names.intern(b"/"),
            groups: info.groups.clone(),
            timeline: Timeline::new(grid),
            programs: Programs::default(),
            waits: Waits::new(detail, outside),
            judge,
            rare_pct: options.limits.get(&NAMED),
            locks: Locks::new(&recorded, symbols),
            costs: CostTable::default(),
            later: Later::default(),
            spaces: Spaces::default(),
            user_intervals: UserIntervals::default(),
            counters: Counters::new(&info.events),
            code: SampledCode::new(info, options.spins.as_ref()),
            untraced: UntracedCalls::new(outside, arch, symbols),
            quality: Quality::default(),
            invariants: FxHashMap::default(),
            events: 0,
            delays: Histogram::default(),
            others: vec![0; info.events.len()],
            facts: None,
            lost: false,
            lost_events: 0,
            lost_before: 0,
            recorded,
        };
        engine.blame.start_at(start, grid);
        engine.threads.keep_known(options.detail >= Detail::Intervals);
        let ticks = |e: &EventDesc| e.short_name() == "local_timer_entry";
        if info.events.iter().any(|e| e.presence > Presence::Described && ticks(e)) {
            engine.ticks.tick();
        }
        for task in &info.tasks {
            if task.tid != Tid::IDLE && task.tid != Tid::UNKNOWN {
                let slot = engine.find_or_add(task.tid);
                engine.describe(slot, task.pid, task.parent, task.comm);
            }
        }
        engine
    }

    /// Number of lost events, and how many were lost before the part analysed.
    pub(crate) fn lost(&self) -> (u64, u64) {
        (self.lost_events, self.lost_before)
    }

    /// Draws lanes of these CPUs and threads.
    pub(crate) fn follow(&mut self, follow: &Follow) {
        self.threads.follow(follow);
        for &cpu in &follow.cpus {
            self.cpus.get_mut(cpu).lane = Some(Lane::of_cpu(follow));
        }
    }

    /// Handles these events; those of `only` these CPUs, if the user chose some.
    pub(crate) fn take<const FACTS: bool>(
        &mut self,
        events: &[Event],
        batch: &Batch,
        only: Option<&[Cpu]>,
    ) {
        let Some(list) = only else { return self.handle::<FACTS>([(events, batch)]) };
        let chosen = |e: &&Event| list.contains(&e.cpu) || e.id == EventId::SIDEBAND;
        self.handle::<FACTS>(
            events.iter().filter(chosen).map(|e| (std::slice::from_ref(e), batch)),
        );
    }

    /// Handles events; the batches hold their variable-length data. `FACTS`: the caller asks for
    /// facts.
    #[inline(never)]
    pub(crate) fn handle<'a, const FACTS: bool>(
        &mut self,
        slices: impl IntoIterator<Item = (&'a [Event], &'a Batch)>,
    ) {
        for (events, batch) in slices {
            self.events += events.len() as u64;
            let mut rest = events;
            while let [e, others @ ..] = rest {
                rest = others;
                if let [exit, others @ ..] = others
                    && !FACTS
                    && let Some(nr) = merge::call(e, exit)
                    && let Some(traits) = self.comes_whole(nr)
                {
                    rest = others;
                    self.whole_call(e, exit, traits, batch);
                } else {
                    self.event::<FACTS>(e, batch);
                }
            }
        }
    }

    #[inline(always)]
    fn event<const FACTS: bool>(&mut self, e: &Event, batch: &Batch) {
        self.catch_up(e);
        // The recorder's own records may come after the last event of the part analysed.
        let now = e.ts.min(self.last).max(self.now);
        self.now = now;
        // System calls are most events of most traces: only they are worth inlining here.
        let done = match e.what {
            What::SysEnter { .. } | What::SysExit { .. } if self.is_unused(e.id) => false,
            What::SysEnter { nr, args } => self.sys_enter::<false>(now, e, nr, args, batch),
            What::SysExit { nr, ret } => self.sys_exit::<false, FACTS>(now, e, nr, ret),
            _ => false,
        };
        if !done {
            self.any_event::<FACTS>(now, e, batch);
        }
        if e.comm != NameId::NONE {
            self.name_current(e);
        }
    }

    /// Everything but the common case of a system call that begins or ends.
    #[inline(never)]
    fn any_event<const FACTS: bool>(&mut self, now: Nanos, e: &Event, batch: &Batch) {
        self.events -= (e.id == EventId::SIDEBAND) as u64;
        match e.what {
            What::SysEnter { .. } | What::SysExit { .. } if self.is_unused(e.id) => self.skip(e.id),
            What::SysEnter { nr, args } => self.sys_enter_settled(now, e, nr, args, batch),
            What::SysExit { nr, ret } => self.sys_exit_settled::<FACTS>(now, e, nr, ret),
            _ => self.other_event(now, e, batch),
        }
        self.tell_holders(now);
    }

    /// What threads hold may have changed.
    #[inline]
    fn tell_holders(&mut self, now: Nanos) {
        if !self.waits.news.is_empty() {
            self.holders_news(now);
        }
    }

    /// The format repeats the current thread's name in each event.
    #[inline(never)]
    fn name_current(&mut self, e: &Event) {
        if let Some(slot) = self.threads.get(e.tid)
            && slot != Slot::IDLE
        {
            self.name(slot, e.comm);
        }
    }

    fn other_event(&mut self, now: Nanos, e: &Event, batch: &Batch) {
        if let What::Leaves { of, argument } = e.what {
            return self.leaves_from(e.cpu, &batch.stack(of)[..of.in_kernel()], argument);
        }
        // Data that belongs to another event, and events without a CPU.
        match e.what {
            What::Stack { .. } => return,
            What::Mapped { pid, mapping } => {
                if let Some(mapping) = batch.mapping(mapping) {
                    self.waits.mapped(pid, mapping);
                }
                return;
            }
            _ => {}
        }
        let cpu = e.cpu;
        if cpu.0 >= MAX_CPUS && happens_on_a_cpu(&e.what) {
            // It is unknown whose state it changed; a guess would make threads wait for ever.
            return;
        }
        self.heard(now, e);
        if self.is_unused(e.id) {
            return self.skip(e.id);
        }
        match e.what {
            What::Switch { prev, next, prev_state, prev_comm, next_comm, .. } => {
                if self.valid(cpu, prev) && next != Tid::UNKNOWN {
                    self.switch(
                        now,
                        cpu,
                        e.pid,
                        (prev, prev_comm),
                        prev_state,
                        Some((next, next_comm)),
                    );
                } else if self.valid(cpu, next) {
                    self.switch_from_unknown(now, cpu, next, next_comm);
                }
            }
            What::Waking { tid, comm, target, .. } => {
                self.wakeup(now, e, (tid, comm), target, true)
            }
            What::Wakeup { tid, comm, target, .. } => {
                self.wakeup(now, e, (tid, comm), target, false)
            }
            What::WakeupNew { tid, comm, target, .. } => {
                self.wakeup_new(now, e, (tid, comm), target)
            }
            What::IrqEntry { irq, name } => {
                self.enter_level(now, e, Level::Irq, IrqKind::Irq, irq, name)
            }
            What::IrqExit { irq } => self.leave_level(now, e, Level::Irq, IrqKind::Irq, irq),
            What::VectorEntry { vector, name } => {
                self.enter_level(now, e, Level::Irq, IrqKind::Vector, vector, name)
            }
            What::VectorExit { vector } => {
                self.leave_level(now, e, Level::Irq, IrqKind::Vector, vector)
            }
            What::SoftirqEntry { vec } => {
                self.enter_level(now, e, Level::Softirq, IrqKind::Softirq, vec, NameId::NONE)
            }
            What::SoftirqExit { vec } => {
                self.leave_level(now, e, Level::Softirq, IrqKind::Softirq, vec)
            }
            What::BlockedReason { tid, io_wait, caller, name } => {
                self.blocked_reason(now, tid, io_wait, (caller, name))
            }
            What::StatRuntime { tid, runtime } => {
                self.ticks.tick();
                if tid != Tid::IDLE && tid != Tid::UNKNOWN {
                    let slot = self.find_or_add(tid);
                    self.threads[slot].latency.charged(now, runtime);
                }
            }
            What::ContentionBegin { lock, flags, stack } => {
                // User code cannot take a lock of the kernel: the user part of the chain says
                // nothing.
                let chain = &batch.stack(stack)[..stack.in_kernel()];
                self.contention_begin(now, e, lock, flags, chain)
            }
            What::ContentionEnd { lock, ret } => self.contention_end(now, e, lock, ret == 0),
            What::ContendedRelease { lock } => self.contended_release(now, e, lock),
            What::LockAcquire { lock, name, flags } => self.lock_acquire(now, e, lock, name, flags),
            What::LockContended { lock, name } => self.lock_contended(now, e, lock, name),
            What::LockAcquired { lock, name } => self.lock_acquired(now, e, lock, name),
            What::LockRelease { lock, .. } => self.lock_release(now, e, lock),
            What::PageFault { .. } => self.page_fault(cpu, e.tid),
            What::Sample { period, stack } => {
                if self.fault_ids.get(e.id.0 as usize) == Some(&true) {
                    self.page_fault(cpu, e.tid);
                } else if self.counters.counts(e.id) {
                    self.counted(e, period, batch.stack(stack));
                }
                if self.code.is_of(e.id) {
                    self.sampled(e, stack.in_kernel() > 0, batch.stack(stack));
                }
            }
            What::Readings { leader, of } => self.readings(e, leader, batch.readings(of)),
            What::Migrate { tid, from, to } => {
                self.cpus.target(from);
                self.cpus.target(to);
                if tid != Tid::IDLE && tid != Tid::UNKNOWN {
                    let slot = self.find_or_add(tid);
                    self.migrate(now, slot, to);
                }
            }
            What::WorkStart { work, function, name } => {
                self.irqs.work_start(now, cpu, work, function, name)
            }
            What::WorkEnd { work } => self.work_end(now, work),
            What::Fork { parent, child, child_comm } => {
                self.fork(now, cpu, parent, child, child_comm)
            }
            What::Exec { tid, old, .. } => {
                self.no_more_tasks(now, cpu, old);
                self.exec(cpu, tid, old)
            }
            What::Exit { tid, comm } => {
                if tid != Tid::IDLE {
                    self.no_more_tasks(now, cpu, tid);
                    let slot = self.find_or_add(tid);
                    self.name(slot, comm);
                    self.threads[slot].exiting = true;
                }
            }
            What::Comm { tid, pid, comm, exec } => {
                if exec {
                    self.waits.unmapped(pid);
                }
                if tid != Tid::IDLE && tid != Tid::UNKNOWN {
                    let slot = self.find_or_add(tid);
                    self.describe(slot, pid, None, comm);
                }
            }
            What::InGroup { tid, group } => self.in_group(tid, group),
            What::AttachTask { tid, root, path } => self.attached(tid, root, path),
            What::TaskNew { tid, pid, parent_tid, .. } => {
                self.task_new(now, e.ts, tid, pid, parent_tid)
            }
            What::ContextSwitch { out, preempt, other } => {
                if self.valid(cpu, e.tid) {
                    self.context_switch(now, cpu, e, out, preempt, other);
                }
            }
            What::TaskEnd { tid, .. } => self.task_end(now, cpu, tid),
            What::TaskParks { task, on, why } => self.task_parks(now, e, task, on, why),
            What::Runtime { does, with } => self.runtime_does(now, e, does, with),
            What::Lost { count } => {
                self.lost = true;
                self.lost_events = self.lost_events.saturating_add(count);
                // It is unknown which threads ran meanwhile.
                self.counters.forget_readings();
            }
            What::Other => {
                if let Some(count) = self.others.get_mut(e.id.0 as usize) {
                    *count += 1;
                }
            }
            What::StatDelay { .. }
            | What::PiSetPrio { .. }
            | What::SoftirqRaise { .. }
            | What::WorkQueue { .. }
            | What::CpuIdle { .. }
            | What::SysEnter { .. }
            | What::SysExit { .. }
            | What::Leaves { .. }
            | What::Stack { .. }
            | What::Mapped { .. } => {}
        }
    }

    #[inline]
    fn valid(&self, cpu: Cpu, tid: Tid) -> bool {
        cpu.0 < MAX_CPUS && tid != Tid::UNKNOWN
    }

    #[inline(always)]
    fn is_unused(&self, id: EventId) -> bool {
        !self.unused_ids.is_empty() && self.unused_ids.get(id.0 as usize) == Some(&true)
    }

    #[cold]
    fn skip(&mut self, id: EventId) {
        self.quality.add(QualityCode::HalfRecorded, self.recorded.is_half(id) as u64);
    }

    fn page_fault(&mut self, cpu: Cpu, tid: Tid) {
        if cpu.0 < MAX_CPUS {
            self.cpus.get_mut(cpu).counts.faults += 1;
        }
        if let Some(slot) = self.threads.get(tid) {
            let t = &mut self.threads[slot];
            t.faults += 1;
            if let Some(interval) = &mut t.living.user_interval {
                interval.faulted = true;
            }
        }
    }

    /// A sample of a counter, taken at the first address of `chain`.
    fn counted(&mut self, e: &Event, period: u64, chain: &[u64]) {
        let Some(slot) = self.threads.get(e.tid).filter(|&s| s != Slot::IDLE) else { return };
        let user = chain.first().map_or(self.threads[slot].mode == Mode::User, |ip| ip >> 63 == 0);
        self.counters.sample(e.id, slot, period, user, self.busy);
    }

    /// The counter values of a group while `e.tid` was still on its CPU.
    #[inline(never)]
    fn readings(&mut self, e: &Event, leader: EventId, readings: &[Reading]) {
        let now = self.now;
        let cpu = self.cpus.get(e.cpu);
        let ran = match cpu.and_then(|c| Some((c, c.current()?.1, self.threads.get(e.tid)))) {
            Some((c, Slot::IDLE, _)) if e.tid == Tid::IDLE => Ran::Idle { since: c.last_switch },
            // Without a switch it is unknown since when they counted.
            Some((c, on_cpu, Some(slot))) if c.last_switch > 0 && e.tid != Tid::IDLE => {
                let t = &self.threads[slot];
                let stays = Stays { ran_ns: t.running_at(now), migrations: t.migrations };
                let one = |since, after_idle| Ran::One { slot, since, after_idle, stays };
                match c.idle_before {
                    Some(since) if on_cpu == slot => one(since, true),
                    None if on_cpu == slot || on_cpu == Slot::IDLE => {
                        one(c.last_switch, on_cpu != slot)
                    }
                    _ => Ran::Unknown,
                }
            }
            _ => Ran::Unknown,
        };
        let concurrency = Concurrency {
            running: self.blame.others_running() + 1,
            running_ns: self.blame.running_ns(now),
            cpus: self.cpus.used() as u32,
        };
        let off = self.counters.readings(now, readings, ran, concurrency);
        // A group with another leader misses only its own readings.
        let off = off && self.counters.is_switch(leader);
        self.quality.add(QualityCode::GroupOff, off.into());
    }
}

/// Whether the state machines need the CPU of an event to use it.
fn happens_on_a_cpu(what: &What) -> bool {
    match what {
        What::Readings { .. }
        | What::Leaves { .. }
        | What::Stack { .. }
        | What::Mapped { .. }
        | What::InGroup { .. }
        | What::AttachTask { .. }
        | What::Comm { .. }
        | What::TaskNew { .. }
        | What::TaskEnd { .. }
        | What::Lost { .. }
        | What::Sample { .. }
        | What::Other => false,
        What::Switch { .. }
        | What::ContextSwitch { .. }
        | What::Waking { .. }
        | What::Wakeup { .. }
        | What::WakeupNew { .. }
        | What::Migrate { .. }
        | What::Fork { .. }
        | What::Exec { .. }
        | What::Exit { .. }
        | What::StatRuntime { .. }
        | What::StatDelay { .. }
        | What::BlockedReason { .. }
        | What::PiSetPrio { .. }
        | What::SysEnter { .. }
        | What::SysExit { .. }
        | What::IrqEntry { .. }
        | What::IrqExit { .. }
        | What::VectorEntry { .. }
        | What::VectorExit { .. }
        | What::SoftirqRaise { .. }
        | What::SoftirqEntry { .. }
        | What::SoftirqExit { .. }
        | What::WorkQueue { .. }
        | What::WorkStart { .. }
        | What::WorkEnd { .. }
        | What::PageFault { .. }
        | What::ContentionBegin { .. }
        | What::ContentionEnd { .. }
        | What::ContendedRelease { .. }
        | What::LockAcquire { .. }
        | What::LockContended { .. }
        | What::LockAcquired { .. }
        | What::LockRelease { .. }
        | What::TaskParks { .. }
        | What::Runtime { .. }
        | What::CpuIdle { .. } => true,
    }
}

impl Engine {
    /// Hands out the collected facts.
    pub(crate) fn take_facts(
        &mut self,
        take: &mut dyn FnMut(&Fact) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(facts) = &mut self.facts else { return ControlFlow::Continue(()) };
        let taken = facts.rows.iter().try_for_each(take);
        facts.rows.clear();
        taken
    }

    /// Hands the collected facts to an observer.
    pub(crate) fn show_facts(&mut self, observer: &mut dyn Observer) {
        let Some(facts) = &mut self.facts else { return };
        facts.rows.iter().for_each(|fact| observer.fact(fact, &self.threads));
        facts.rows.clear();
    }

    /// The part to be analysed has not begun: drops the collected facts.
    pub(crate) fn forget_facts(&mut self) {
        if let Some(facts) = &mut self.facts {
            facts.rows.clear();
        }
    }
}
