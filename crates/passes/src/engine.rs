//! The dispatcher: every event once, to every state machine it concerns.
//!
//! The order inside one event matters and is the same everywhere: first the time up to the event
//! is charged (CPU, then thread), then states change. See [`crate::cpus`], [`crate::threads`],
//! [`crate::syscalls`], [`crate::blame`] for the machines themselves.

use crate::blame::{Blame, Cause};
use crate::costs::{CostTable, QUARTERS};
use crate::counters::Counters;
use crate::cpus::{CpuState, Cpus, Frame, Level, MAX_CPUS};
use crate::crowding::Crowding;
use crate::irqs::{IrqKind, Irqs};
use crate::locks::Locks;
use crate::options::Detail;
use crate::stretches::StretchTable;
use crate::syscalls::{Call, Split};
use crate::threads::{Mode, Slot, State, Thread, Threads};
use crate::waits::{Class, End, Object, Waits};
use holdup_syscalls::{Arch, Direction, WaitKind};
use holdup_trace::{
    ArgsRef, Batch, Capabilities, Cpu, Event, EventId, NameId, Names, Nanos, Pid, Quality, QualityCode, SymbolTable, TaskState, Tid,
    TraceInfo, What,
};
use std::sync::Arc;

/// What holdup counts of a system call, by its number.
#[derive(Clone, Copy, Default)]
struct CallTraits {
    wait: WaitKind,
    direction: Option<Direction>,
    semaphore: bool,
    message: bool,
    class: Class,
}

/// How a wait is known to have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// By a wake-up.
    Woken,
    /// The thread ran again; its wake-up was not seen.
    Unseen,
    /// Not at all: the trace did.
    Trace,
}

/// `NET_RX`: on the loopback it runs on top of the sender, who is then the true waker.
const NET_RX: u32 = 3;

/// So many different `syscalls:sys_enter_*` events mean that all calls were recorded, not a choice.
const ALL_CALLS: usize = 20;

pub(crate) struct Engine {
    pub(crate) caps: Capabilities,
    /// `sched_switch` is there; PERF_RECORD_SWITCH, the poorer source, is not needed.
    has_sched_switch: bool,
    pub(crate) names: Arc<Names>,
    pub(crate) arch: Arch,
    traits: Vec<CallTraits>,
    /// Events that are software page-fault samples.
    fault_ids: Vec<bool>,
    /// `syscalls:*` events in a trace that has `raw_syscalls:*` too: the same calls a second time.
    duplicate_ids: Vec<bool>,

    pub(crate) start: Nanos,
    pub(crate) now: Nanos,
    /// End of the part analysed.
    last: Nanos,
    pub(crate) threads: Threads,
    pub(crate) cpus: Cpus,
    pub(crate) irqs: Irqs,
    pub(crate) blame: Blame,
    pub(crate) waits: Waits,
    pub(crate) locks: Locks,
    pub(crate) crowding: Crowding,
    pub(crate) costs: CostTable,
    pub(crate) stretches: StretchTable,
    pub(crate) counters: Counters,
    pub(crate) quality: Quality,
    pub(crate) events: u64,
    lost: bool,
}

impl Engine {
    pub(crate) fn new(info: &TraceInfo, symbols: &SymbolTable, start: Nanos, last: Nanos, detail: Detail) -> Engine {
        let arch = Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64"));
        let traits = (0..holdup_syscalls::table_len(arch) as u32)
            .map(|nr| match holdup_syscalls::name(arch, nr) {
                Some(name) => CallTraits {
                    wait: holdup_syscalls::wait_kind(name),
                    direction: holdup_syscalls::io_direction(name),
                    semaphore: holdup_syscalls::is_semaphore(name),
                    message: holdup_syscalls::is_message(name),
                    class: Class::of(name),
                },
                None => CallTraits::default(),
            })
            .collect();
        let raw = info.events.iter().any(|e| e.short_name() == "sys_enter");
        let named = info.events.iter().filter(|e| e.system == "syscalls" && e.short_name().starts_with("sys_enter_")).count();
        let mut caps = info.capabilities;
        // A few chosen calls say nothing about the time outside of them.
        caps.syscalls = raw || named >= ALL_CALLS;
        let mut engine = Engine {
            caps,
            has_sched_switch: info.events.iter().any(|e| e.short_name() == "sched_switch"),
            names: info.names.clone(),
            arch,
            traits,
            fault_ids: info.events.iter().map(|e| e.system.is_empty() && e.name.contains("faults")).collect(),
            duplicate_ids: if raw && named > 0 { info.events.iter().map(|e| e.system == "syscalls").collect() } else { Vec::new() },
            start,
            now: start,
            last,
            threads: Threads::default(),
            cpus: Cpus::new(start),
            irqs: Irqs::default(),
            blame: Blame::default(),
            waits: Waits::new(detail),
            locks: Locks::new(info, symbols),
            crowding: Crowding::default(),
            costs: CostTable::default(),
            stretches: StretchTable::default(),
            counters: Counters::new(&info.events),
            quality: Quality::default(),
            events: 0,
            lost: false,
        };
        engine.blame.start_at(start);
        for task in &info.tasks {
            if task.tid != Tid::IDLE && task.tid != Tid::UNKNOWN {
                let slot = engine.find_or_add(task.tid);
                engine.describe(slot, task.pid, task.parent, task.comm);
            }
        }
        engine
    }

    /// Take one event in; `batch` holds what did not fit into it.
    #[inline]
    pub(crate) fn event(&mut self, e: &Event, batch: &Batch) {
        // Records of the recorder itself may come after the last event of the part analysed.
        let now = e.ts.min(self.last).max(self.now);
        self.now = now;
        if e.id != EventId::SIDEBAND {
            self.events += 1;
        }
        let cpu = e.cpu;
        match e.what {
            What::SysEnter { nr, args } => {
                if self.valid(cpu, e.tid) && !self.is_duplicate(e.id) {
                    self.sys_enter(now, cpu, e, nr, batch, args);
                }
            }
            What::SysExit { nr, ret } => {
                if self.valid(cpu, e.tid) && !self.is_duplicate(e.id) {
                    self.sys_exit(now, cpu, e, nr, ret);
                }
            }
            What::Switch { prev, next, prev_state, prev_comm, next_comm, .. } => {
                if self.valid(cpu, prev) && next != Tid::UNKNOWN {
                    self.switch(now, cpu, e.pid, (prev, prev_comm), prev_state, Some((next, next_comm)));
                }
            }
            What::Waking { tid, comm, .. } => self.wakeup(now, e, tid, comm, true),
            What::Wakeup { tid, comm, .. } => {
                self.wakeup(now, e, tid, comm, false);
            }
            What::WakeupNew { tid, comm, .. } => self.wakeup_new(now, e, tid, comm),
            What::IrqEntry { irq, name } => self.enter_level(now, e, Level::Irq, IrqKind::Irq, irq, name),
            What::IrqExit { irq } => self.leave_level(now, e, Level::Irq, IrqKind::Irq, irq),
            What::VectorEntry { vector, name } => self.enter_level(now, e, Level::Irq, IrqKind::Vector, vector, name),
            What::VectorExit { vector } => self.leave_level(now, e, Level::Irq, IrqKind::Vector, vector),
            What::SoftirqEntry { vec } => self.enter_level(now, e, Level::Softirq, IrqKind::Softirq, vec, NameId::NONE),
            What::SoftirqExit { vec } => self.leave_level(now, e, Level::Softirq, IrqKind::Softirq, vec),
            What::StatRuntime { tid, runtime } => {
                if tid != Tid::IDLE && tid != Tid::UNKNOWN {
                    let slot = self.find_or_add(tid);
                    self.threads[slot].latency.charged(now, runtime);
                }
            }
            What::ContentionBegin { lock, flags, stack } => self.contention_begin(now, e, lock, flags, batch.stack(stack)),
            What::ContentionEnd { lock, .. } => self.contention_end(now, e, lock),
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
            }
            What::Migrate { tid, .. } => {
                if tid != Tid::IDLE && tid != Tid::UNKNOWN {
                    let slot = self.find_or_add(tid);
                    self.threads[slot].migrations += 1;
                }
            }
            What::WorkStart { work, function, name } => self.irqs.work_start(now, cpu, work, function, name),
            What::WorkEnd { work } => {
                if !self.irqs.work_end(now, work) {
                    self.quality.add(QualityCode::UnmatchedIrq, 1);
                }
            }
            What::Fork { parent, child, child_comm } => self.fork(now, cpu, parent, child, child_comm),
            What::Exec { tid, old, .. } => self.exec(cpu, tid, old),
            What::Exit { tid, comm } => {
                if tid != Tid::IDLE {
                    let slot = self.find_or_add(tid);
                    self.name(slot, comm);
                    self.threads[slot].exiting = true;
                }
            }
            What::Comm { tid, pid, comm, .. } => {
                if tid != Tid::IDLE && tid != Tid::UNKNOWN {
                    let slot = self.find_or_add(tid);
                    self.describe(slot, pid, None, comm);
                }
            }
            What::TaskNew { tid, pid, parent_tid, .. } => self.task_new(now, e.ts, tid, pid, parent_tid),
            What::ContextSwitch { out, preempt, other } => {
                if !self.has_sched_switch && cpu.0 < MAX_CPUS && e.tid != Tid::UNKNOWN {
                    self.context_switch(now, cpu, e, out, preempt, other);
                }
            }
            What::Lost { .. } => self.lost = true,
            What::Other
            | What::StatDelay { .. }
            | What::PiSetPrio { .. }
            | What::SoftirqRaise { .. }
            | What::WorkQueue { .. }
            | What::CpuIdle { .. }
            | What::TaskEnd { .. } => {}
        }
        if e.comm != NameId::NONE
            && let Some(slot) = self.threads.get(e.tid)
            && slot != Slot::IDLE
        {
            self.name(slot, e.comm);
        }
    }

    #[inline]
    fn valid(&self, cpu: Cpu, tid: Tid) -> bool {
        cpu.0 < MAX_CPUS && tid != Tid::UNKNOWN
    }

    #[inline]
    fn is_duplicate(&self, id: EventId) -> bool {
        !self.duplicate_ids.is_empty() && self.duplicate_ids.get(id.0 as usize) == Some(&true)
    }

    // ---- who is on a CPU -------------------------------------------------------------------

    /// The current thread of `cpu` as this event shows it, corrected if it was believed another.
    #[inline]
    fn current(&mut self, now: Nanos, cpu: Cpu, tid: Tid, pid: Pid) -> Slot {
        match self.cpus.get_mut(cpu).current {
            Some((t, slot)) if t == tid => slot,
            _ => self.adopt(now, cpu, tid, pid),
        }
    }

    /// The current thread of `cpu` if it is the one believed; events that may come from the middle
    /// of a switch must not correct anything.
    pub(crate) fn current_if(&mut self, cpu: Cpu, tid: Tid) -> Option<Slot> {
        if !self.valid(cpu, tid) {
            return None;
        }
        match self.cpus.get_mut(cpu).current {
            Some((t, slot)) if t == tid && slot != Slot::IDLE => Some(slot),
            _ => None,
        }
    }

    #[cold]
    fn adopt(&mut self, now: Nanos, cpu: Cpu, tid: Tid, pid: Pid) -> Slot {
        let slot = self.find_or_add(tid);
        if pid != Pid::UNKNOWN && slot != Slot::IDLE {
            self.threads[slot].pid = pid;
        }
        if let Some(woken) = self.left_idle_unseen(now, cpu, slot) {
            self.charge(woken, cpu);
            if self.threads[slot].state == State::Blocked {
                self.stop_waiting(now, slot, None, Ended::Unseen);
            } else {
                self.blame.thread_runnable(now, false);
            }
            let t = &mut self.threads[slot];
            t.settle(woken);
            t.state = State::Running(cpu);
            self.quality.add(QualityCode::InferredSwitch, 1);
            self.cpus.get_mut(cpu).switched_unseen(woken);
            self.set_current(now, cpu, Some((tid, slot)));
            return slot;
        }
        let c = self.cpus.get_mut(cpu);
        let known_to = c.charged_to;
        let first = !c.seen;
        c.seen = true;
        // The CPU did this all along if this is its first event, and the thread is not known to
        // have done something else meanwhile.
        let all_along = first && (slot == Slot::IDLE || self.threads[slot].state == State::Unseen);
        if !all_along {
            c.unaccounted += now.saturating_sub(c.charged_to);
            c.charged_to = now;
            c.stack.clear();
            c.switched_unseen(now);
            if !first {
                self.quality.add(QualityCode::SwitchGap, 1);
            }
        }
        let since = c.charged_to;
        if let Some((_, old)) = c.current
            && old != Slot::IDLE
        {
            // It left unseen: all that is known is that it is not here any more.
            let t = &mut self.threads[old];
            if t.state == State::Running(cpu) {
                t.settle(known_to);
                t.state = State::Unseen;
                if let Some(call) = &mut t.call
                    && let Some(mark) = call.crowd_mark.take()
                {
                    call.crowd += self.crowding.leave(now, mark);
                }
            }
        }
        if slot != Slot::IDLE {
            self.stop_waiting(now, slot, None, Ended::Unseen);
            let t = &mut self.threads[slot];
            if t.state != State::Unseen {
                t.settle(now);
            }
            if t.is_runnable() {
                self.blame.thread_runnable(now, false);
            }
            let t = &mut self.threads[slot];
            t.state = State::Running(cpu);
            t.since = since;
        }
        self.set_current(now, cpu, Some((tid, slot)));
        slot
    }

    /// perf misses every event of some CPUs' idle tasks (seen on 6.18 guests), the switches out of
    /// idle among them; recordings of some tasks never have them. The CPU was idle then until the thread now running was woken, or, where
    /// that was missed too, until about now: who slept shows up first by returning from its call.
    fn left_idle_unseen(&self, now: Nanos, cpu: Cpu, slot: Slot) -> Option<Nanos> {
        let c = self.cpus.get(cpu)?;
        if slot == Slot::IDLE || !matches!(c.current, Some((_, Slot::IDLE))) {
            return None;
        }
        let t = &self.threads[slot];
        match t.state {
            State::Woken if t.since >= c.charged_to => Some(t.since),
            State::Blocked => Some(now),
            _ => None,
        }
    }

    fn set_current(&mut self, now: Nanos, cpu: Cpu, current: Option<(Tid, Slot)>) {
        let c = self.cpus.get_mut(cpu);
        let was_running = matches!(c.current, Some((_, s)) if s != Slot::IDLE);
        let is_running = matches!(current, Some((_, s)) if s != Slot::IDLE);
        c.current = current;
        if was_running != is_running {
            self.blame.cpu_running(now, is_running);
        }
        self.refresh_idle(now, cpu);
    }

    /// Tell the blame pass whether this CPU is idle: the idle task with nothing on top.
    #[inline]
    fn refresh_idle(&mut self, now: Nanos, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        let idle = matches!(c.current, Some((_, Slot::IDLE))) && c.stack.is_empty();
        if idle != c.counted_idle {
            c.counted_idle = idle;
            self.blame.cpu_idle(now, idle);
        }
    }

    /// Charge the time of `cpu` up to `now` to what it was doing.
    #[inline]
    pub(crate) fn charge(&mut self, now: Nanos, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        charge(c, cpu, &mut self.threads, now);
    }

    // ---- scheduling ------------------------------------------------------------------------

    fn switch(&mut self, now: Nanos, cpu: Cpu, prev_pid: Pid, prev: (Tid, NameId), state: TaskState, next: Option<(Tid, NameId)>) {
        let p = self.current(now, cpu, prev.0, prev_pid);
        self.charge(now, cpu);
        let c = self.cpus.get_mut(cpu);
        if !c.stack.is_empty() {
            // Interrupts cannot be switched out of: their exits were lost.
            self.quality.add(QualityCode::UnmatchedIrq, c.stack.len() as u64);
            c.stack.clear();
        }
        c.switches += 1;
        // perf knows a stay's length from the CPU's switch before it, and takes the first for 0.
        let stay = if c.last_switch == 0 { 0 } else { now - c.last_switch };
        c.last_switch = now;
        if p != Slot::IDLE {
            self.name(p, prev.1);
            let t = &mut self.threads[p];
            if prev_pid != Pid::UNKNOWN {
                t.pid = prev_pid;
            }
            t.stays += 1;
            t.stays_ns += stay;
            t.latency.switch_out(now, state);
            self.leaves(now, cpu, p, state);
        }
        let Some((next, next_comm)) = next else {
            self.set_current(now, cpu, None);
            return;
        };
        let n = self.find_or_add(next);
        if n != Slot::IDLE {
            self.name(n, next_comm);
            self.enters(now, cpu, n, p == Slot::IDLE);
            self.threads[n].latency.switch_in(now);
        }
        self.set_current(now, cpu, Some((next, n)));
    }

    /// A thread leaves its CPU in `state`.
    fn leaves(&mut self, now: Nanos, cpu: Cpu, slot: Slot, state: TaskState) {
        let t = &mut self.threads[slot];
        t.settle(now);
        t.last_cpu = cpu;
        if let Some(call) = &mut t.call
            && let Some(mark) = call.crowd_mark.take()
        {
            call.crowd += self.crowding.leave(now, mark);
        }
        if state.is_runnable() {
            t.involuntary += 1;
            t.state = State::Preempted;
            self.blame.thread_runnable(now, true);
            return;
        }
        t.voluntary += 1;
        if state.is_dead() || t.exiting && !state.is_uninterruptible() && state != TaskState::INTERRUPTIBLE {
            t.state = State::Dead;
            t.died = Some(now);
            let tid = t.tid;
            if let Some(call) = t.call.take() {
                let stats = t.calls.entry(call.nr);
                stats.pending += 1;
                stats.pending_ns += now - call.start;
                if call.inside {
                    self.costs.leave();
                }
            }
            self.threads.forget(tid);
            return;
        }
        t.state = State::Blocked;
        t.waker = None;
        t.uninterruptible = state.is_uninterruptible();
        if let Some(call) = &mut t.call
            && call.inside
            && t.contending == 0
            && !t.uninterruptible
        {
            call.inside = false;
            self.costs.leave();
        }
        if state.0 & TaskState::IDLE.0 != 0 {
            // Only kernel threads sleep in this state.
            self.decide(slot, Mode::Kthread);
        }
        let t = &self.threads[slot];
        if t.mode == Mode::Kthread {
            return;
        }
        let kind = t.call.map(|c| self.wait_kind(c.nr));
        let device = t.uninterruptible
            && t.contending == 0
            && kind.is_none_or(|k| matches!(k, WaitKind::ReadWrite | WaitKind::DiskSync | WaitKind::FileSystem | WaitKind::Memory));
        if device {
            self.threads[slot].iowait_cpu = Some(cpu);
            self.cpus.get_mut(cpu).iowaiters += 1;
        }
        let object = {
            let threads = &self.threads;
            let t = &threads[slot];
            self.waits.object(slot, t, kind, t.contended, |tid| threads.get(Tid(tid)).is_some())
        };
        let mark = self.blame.integral_at(now);
        self.waits.begins(now, slot, object, mark);
        let t = &self.threads[slot];
        let counts = t.contending > 0
            || match kind {
                Some(WaitKind::Timer | WaitKind::Child | WaitKind::Signal | WaitKind::Poll | WaitKind::Process | WaitKind::Yield) => false,
                Some(WaitKind::Other) => t.uninterruptible,
                Some(WaitKind::ThreadSync) => !self.waits.is_join(object),
                Some(_) => true,
                None => t.uninterruptible || !self.caps.syscalls,
            };
        if counts {
            let mark = self.blame.wait_begins(now);
            self.threads[slot].blame_mark = Some(mark);
        }
    }

    /// A thread gets a CPU, which was idle (it waited for the CPU to wake up) or not (it queued).
    fn enters(&mut self, now: Nanos, cpu: Cpu, slot: Slot, from_idle: bool) {
        let trust_wakeups = self.caps.wakeups && !self.lost;
        match self.threads[slot].state {
            State::Woken | State::Preempted => {
                let t = &mut self.threads[slot];
                let woken = t.ready_mark.take().filter(|_| t.state == State::Woken);
                let delay = now - t.since;
                if !from_idle {
                    t.queued_ns += delay;
                }
                t.settle(now);
                if let (Some(mark), true) = (woken, from_idle)
                    && let Some(key) = self.waits.resumes(slot, delay)
                {
                    let share = self.blame.ready_at(now) - mark;
                    self.blame.move_to(key, share);
                }
                self.blame.thread_runnable(now, false);
            }
            State::Blocked => {
                self.stop_waiting(now, slot, None, Ended::Unseen);
                let t = &mut self.threads[slot];
                if t.early_wake {
                    // Woken before it had left its CPU: it never slept.
                    t.woken_ns += now - t.since;
                    t.since = now;
                } else {
                    t.settle(now);
                    if self.caps.wakeups {
                        self.quality.add(QualityCode::MissingWakeup, 1);
                    }
                }
            }
            State::Unseen => {
                let t = &mut self.threads[slot];
                let span = now.saturating_sub(t.since);
                // Nobody woke it, so it was ready all along (or wake-ups are not known).
                if trust_wakeups { t.woken_ns += span } else { t.blocked_ns += span }
            }
            State::Running(other) if other != cpu => {
                self.threads[slot].settle(now);
                self.quality.add(QualityCode::SwitchGap, 1);
                if matches!(self.cpus.get(other), Some(c) if matches!(c.current, Some((_, s)) if s == slot)) {
                    self.charge(now, other);
                    self.set_current(now, other, None);
                }
            }
            State::Running(_) => self.threads[slot].settle(now),
            State::New | State::Dead => {}
        }
        let t = &mut self.threads[slot];
        if !self.caps.migrations && t.last_cpu != Cpu::UNKNOWN && t.last_cpu != cpu {
            t.migrations += 1;
        }
        t.early_wake = false;
        t.state = State::Running(cpu);
        t.since = now;
        if let Some(call) = &mut t.call {
            call.crowd_mark = Some(self.crowding.enter(now));
            if !call.inside {
                call.inside = true;
                self.costs.enter();
            }
        }
    }

    /// `sched_waking` (`early`) or `sched_wakeup`.
    fn wakeup(&mut self, now: Nanos, e: &Event, tid: Tid, comm: NameId, early: bool) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        let waker = self.waker(now, e);
        let slot = self.find_or_add(tid);
        self.name(slot, comm);
        if !early || !self.caps.wakeups {
            self.threads[slot].latency.wakeup(now);
        }
        self.wake(now, slot, waker, early);
    }

    fn wake(&mut self, now: Nanos, slot: Slot, waker: Option<(Slot, bool)>, early: bool) {
        match self.threads[slot].state {
            State::Blocked | State::Unseen | State::New => {
                self.stop_waiting(now, slot, waker, Ended::Woken);
                if self.threads[slot].state == State::Unseen {
                    let since = self.threads[slot].since;
                    self.waits.slept_before(slot, since, now, waker.map(|w| w.0));
                }
                let t = &mut self.threads[slot];
                match t.state {
                    State::Unseen => t.blocked_ns += now.saturating_sub(t.since),
                    _ => t.settle(now),
                }
                t.since = now;
                t.state = State::Woken;
                t.wake_is_early = early;
                t.waker = waker.map(|w| w.0);
                self.blame.thread_runnable(now, true);
                self.threads[slot].ready_mark = Some(self.blame.ready_at(now));
            }
            State::Woken => {
                let t = &mut self.threads[slot];
                if t.wake_is_early && !early {
                    // Between waking and wakeup the kernel looked for a CPU: not yet ready.
                    t.blocked_ns += now - t.since;
                    t.since = now;
                    t.wake_is_early = false;
                }
            }
            State::Running(_) => self.threads[slot].early_wake = true,
            State::Preempted | State::Dead => {}
        }
    }

    fn wakeup_new(&mut self, now: Nanos, e: &Event, tid: Tid, comm: NameId) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        let slot = match self.threads.get(tid) {
            Some(slot) if matches!(self.threads[slot].state, State::New | State::Unseen) => slot,
            // Fork events are not recorded, or the id was used before and its exit lost.
            _ => self.threads.insert(Thread::new(tid, now, State::New)),
        };
        let waker = self.waker(now, e);
        let t = &mut self.threads[slot];
        if t.state == State::Unseen {
            (t.state, t.born, t.since) = (State::New, now, now);
        }
        t.latency.wakeup(now);
        self.name(slot, comm);
        self.wake(now, slot, waker, false);
    }

    /// The thread that causes this event, unless an interrupt does; and whether nothing ran on top
    /// of it for sure.
    fn waker(&mut self, now: Nanos, e: &Event) -> Option<(Slot, bool)> {
        if !self.valid(e.cpu, e.tid) {
            return None;
        }
        let slot = self.current(now, e.cpu, e.tid, e.pid);
        let c = self.cpus.get_mut(e.cpu);
        let on_top = c.stack.last().copied();
        if slot == Slot::IDLE {
            return None;
        }
        let t = &self.threads[slot];
        match on_top {
            Some(Frame { level: Level::Softirq, id: NET_RX, .. }) if t.call.is_some() => Some((slot, false)),
            Some(_) => None,
            // Nobody wakes others from application code: an interrupt that was not recorded did.
            None if t.mode == Mode::User => None,
            None => Some((slot, self.caps.irqs || self.caps.softirqs)),
        }
    }

    /// If the thread is asleep, settle what it was for.
    fn stop_waiting(&mut self, now: Nanos, slot: Slot, waker: Option<(Slot, bool)>, ended: Ended) {
        let t = &mut self.threads[slot];
        if let Some(cpu) = t.iowait_cpu.take() {
            // Charge the CPU's idle time with the waiter still counted.
            self.charge(now, cpu);
            let c = self.cpus.get_mut(cpu);
            c.iowaiters = c.iowaiters.saturating_sub(1);
        }
        let t = &mut self.threads[slot];
        let mark = t.blame_mark.take();
        let Some(wait) = self.waits.take(slot) else { return };
        let since = t.since;
        let g = match mark {
            Some(mark) => self.blame.wait_ends(now, mark) + mark,
            None => self.blame.integral_at(now),
        };
        let t = &self.threads[slot];
        let nr = t.call.map(|c| c.nr);
        let end = End { waker: waker.map(|w| w.0), direct: waker.is_some_and(|w| w.1), early: t.early_wake };
        let cause = self.cause(slot, end.waker, wait.object, ended);
        if let Some(w) = end.waker {
            self.threads[w].ended_wait_ns += now - since;
        }
        if cause == Cause::External {
            self.threads[slot].rested = Some((since, now));
        }
        let waker = end.waker.map(|w| (&self.threads[w], self.threads[w].is_kthread()));
        let uninterruptible = self.threads[slot].uninterruptible;
        self.waits.ends(now, slot, wait, end, cause, nr, (g, mark.is_some()), waker, uninterruptible, &mut self.blame);
    }

    fn cause(&self, slot: Slot, waker: Option<Slot>, object: Object, ended: Ended) -> Cause {
        let t = &self.threads[slot];
        let by_application = waker.is_some_and(|w| !self.threads[w].is_kthread());
        if t.contending > 0 {
            return Cause::KernelLock;
        }
        if !self.caps.syscalls {
            return self.cause_without_calls(slot, waker.filter(|_| by_application));
        }
        let kind = t.call.map(|c| self.wait_kind(c.nr));
        let taking_turns = matches!(kind, Some(WaitKind::ThreadSync | WaitKind::Semaphore | WaitKind::MessageQueue | WaitKind::FileLock));
        if taking_turns && !t.uninterruptible {
            let nobody = match ended {
                // Only a thread's call ends such a wait; else it is a time-out or a signal.
                Ended::Woken => waker.is_none() && self.caps.wakers && !self.lost,
                Ended::Unseen => false,
                // Nobody ever did, for any thread: work that never came.
                Ended::Trace => !self.waits.was_ended(object),
            };
            if nobody || self.waits.is_join(object) {
                return Cause::External;
            }
        }
        match kind {
            Some(WaitKind::ThreadSync) => Cause::ThreadSync,
            Some(WaitKind::Semaphore | WaitKind::MessageQueue | WaitKind::FileLock) => Cause::KernelService,
            // In D state: the disk's completion comes from an interrupt or kernel thread; another
            // application thread ends the wait for a lock it held. Where contention is recorded,
            // the lock would have shown, and it was a buffer, a page or a place in a driver's queue.
            _ if t.uninterruptible && by_application && !self.caps.contention => Cause::KernelLock,
            _ if t.uninterruptible => Cause::Io,
            Some(WaitKind::ReadWrite | WaitKind::Socket) if by_application && !self.rested(slot, waker) => Cause::KernelService,
            Some(WaitKind::DiskSync) => Cause::Io,
            Some(_) => Cause::External,
            None => Cause::Unknown,
        }
    }

    /// Whether whom a thread waited for had itself nothing to do for most of that wait: a server is
    /// idle, not held up, while its client sleeps.
    fn rested(&self, slot: Slot, waker: Option<Slot>) -> bool {
        let wait = self.threads[slot].since;
        let Some((from, to)) = waker.and_then(|w| self.threads[w].rested) else { return false };
        to.saturating_sub(from.max(wait)) * 2 >= self.now.saturating_sub(wait)
    }

    /// What a thread slept for, where only switches and wake-ups were recorded. Threads of one process
    /// (or of one name, where processes are not known) that end each other's sleep take turns at
    /// something of their own; others use a service of the kernel to do so.
    fn cause_without_calls(&self, slot: Slot, waker: Option<Slot>) -> Cause {
        let t = &self.threads[slot];
        let Some(waker) = waker.map(|w| &self.threads[w]) else {
            return if t.uninterruptible { Cause::Io } else { Cause::External };
        };
        if t.uninterruptible {
            return Cause::KernelLock;
        }
        let one_process = if t.pid != Pid::UNKNOWN && waker.pid != Pid::UNKNOWN {
            t.pid == waker.pid
        } else {
            stem(&self.names.bytes(t.comm)) == stem(&self.names.bytes(waker.comm))
        };
        if one_process { Cause::ThreadSync } else { Cause::KernelService }
    }

    fn wait_kind(&self, nr: u32) -> WaitKind {
        self.traits.get(nr as usize).map_or(WaitKind::Other, |t| t.wait)
    }

    // ---- life and names --------------------------------------------------------------------

    #[inline]
    pub(crate) fn find_or_add(&mut self, tid: Tid) -> Slot {
        match self.threads.get(tid) {
            Some(slot) => slot,
            None => self.threads.insert(Thread::new(tid, self.start, State::Unseen)),
        }
    }

    #[inline]
    fn name(&mut self, slot: Slot, comm: NameId) {
        if comm != NameId::NONE && self.threads[slot].comm != comm {
            self.rename(slot, comm);
        }
    }

    #[cold]
    fn rename(&mut self, slot: Slot, comm: NameId) {
        self.threads[slot].comm = comm;
        let t = &self.threads[slot];
        if t.mode == Mode::Unknown && t.parent.is_none_or(|p| p == KTHREADD) && is_kthread_name(&self.names.bytes(comm)) {
            self.decide(slot, Mode::Kthread);
        }
    }

    fn describe(&mut self, slot: Slot, pid: Pid, parent: Option<Tid>, comm: NameId) {
        let t = &mut self.threads[slot];
        if pid != Pid::UNKNOWN {
            t.pid = pid;
        }
        if let Some(parent) = parent {
            t.parent = Some(parent);
            if parent == KTHREADD || t.tid == KTHREADD {
                self.decide(slot, Mode::Kthread);
            }
        }
        self.name(slot, comm);
    }

    fn fork(&mut self, now: Nanos, cpu: Cpu, parent: Tid, child: Tid, comm: NameId) {
        if cpu.0 < MAX_CPUS {
            self.cpus.get_mut(cpu).counts.forks += 1;
        }
        if child == Tid::IDLE || child == Tid::UNKNOWN {
            return;
        }
        let slot = match self.threads.get(child) {
            // PERF_RECORD_FORK comes first and tells the same.
            Some(slot) if self.threads[slot].state == State::New => slot,
            _ => self.threads.insert(Thread::new(child, now, State::New)),
        };
        self.describe(slot, Pid::UNKNOWN, Some(parent), comm);
        self.made(parent, slot);
    }

    /// Which process a new thread belongs to, where the format does not say: the flags of the
    /// `clone` its parent is in do.
    fn made(&mut self, parent: Tid, child: Slot) {
        let Some(p) = self.threads.get(parent).filter(|&p| p != Slot::IDLE) else { return };
        let flags = self.threads[p].call.and_then(|c| self.waits.cloning(p, c.start));
        let t = &self.threads[child];
        let thread = match (t.pid != Pid::UNKNOWN, flags) {
            (true, _) => t.pid.0 != t.tid.0,
            (false, Some((thread, _))) => thread,
            (false, None) => return,
        };
        if t.pid == Pid::UNKNOWN {
            let own = Pid(t.tid.0);
            let pid = if thread {
                let p = &mut self.threads[p];
                if p.pid == Pid::UNKNOWN {
                    (p.pid, p.pid_inferred) = (Pid(p.tid.0), true);
                }
                p.pid
            } else {
                own
            };
            let t = &mut self.threads[child];
            (t.pid, t.pid_inferred) = (pid, true);
        }
        self.waits.forked((p, self.threads[p].pid), (child, self.threads[child].pid), thread);
    }

    fn task_new(&mut self, now: Nanos, ts: Nanos, tid: Tid, pid: Pid, parent: Tid) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        // Without a time it was synthesised when recording began: the thread is older.
        let slot = if ts < self.start { self.find_or_add(tid) } else { self.threads.insert(Thread::new(tid, now, State::New)) };
        let comm = self.threads.get(parent).map_or(NameId::NONE, |p| self.threads[p].comm);
        let inherit = ts >= self.start;
        self.describe(slot, pid, (parent != tid).then_some(parent), if inherit { comm } else { NameId::NONE });
        if inherit && parent != tid {
            self.made(parent, slot);
        }
    }

    fn exec(&mut self, cpu: Cpu, tid: Tid, old: Tid) {
        if cpu.0 < MAX_CPUS {
            self.cpus.get_mut(cpu).counts.execs += 1;
        }
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        if old != tid
            && let Some(slot) = self.threads.get(old)
        {
            // A thread that is not the leader takes the leader's id.
            self.threads.rename_tid(slot, old, tid);
            if let Some((t, s)) = &mut self.cpus.get_mut(cpu).current
                && *s == slot
            {
                *t = tid;
            }
        }
        let slot = self.find_or_add(tid);
        let t = &mut self.threads[slot];
        if t.mode == Mode::Kthread {
            // A helper that the kernel forks off itself becomes a program here.
            t.mode = Mode::Kernel;
        }
        // A thread that was only believed to be one of its parent's process is none.
        let leaves = t.pid_inferred && t.pid.0 != t.tid.0;
        if leaves {
            t.pid = Pid(t.tid.0);
        }
        let pid = t.pid;
        self.waits.exec(slot, pid, leaves);
    }

    /// An application or kernel thread, a call or not: settle the time charged before this was known.
    fn decide(&mut self, slot: Slot, mode: Mode) {
        let t = &mut self.threads[slot];
        if mode == Mode::Kthread {
            t.mode = Mode::Kthread;
        }
        for (cpu, span) in std::mem::take(&mut t.undecided) {
            let c = self.cpus.get_mut(cpu);
            c.undecided -= span.min(c.undecided);
            match mode {
                Mode::User | Mode::Unknown => {
                    c.user += span;
                    t.user_ns += span;
                }
                Mode::Kernel => {
                    c.kernel += span;
                    t.kernel_ns += span;
                }
                Mode::Kthread => {
                    c.kthread += span;
                    t.kernel_ns += span;
                }
            }
        }
    }

    // ---- system calls ----------------------------------------------------------------------

    /// The current thread enters or leaves the kernel: settle what it did until now, which was
    /// `before`. `None` for the idle task.
    #[inline(always)]
    fn at_boundary(&mut self, now: Nanos, cpu: Cpu, e: &Event, before: Mode) -> Option<Slot> {
        let slot = self.current(now, cpu, e.tid, e.pid);
        if slot == Slot::IDLE {
            return None;
        }
        self.charge(now, cpu);
        if !self.threads[slot].undecided.is_empty() {
            self.decide(slot, before);
        }
        if self.threads[slot].contending > 0 {
            self.abandon_waits(slot);
        }
        Some(slot)
    }

    #[inline]
    fn sys_enter(&mut self, now: Nanos, cpu: Cpu, e: &Event, nr: u32, batch: &Batch, args: ArgsRef) {
        let Some(slot) = self.at_boundary(now, cpu, e, Mode::User) else { return };
        let t = &mut self.threads[slot];
        t.mode = Mode::Kernel;
        t.syscall_events += 1;
        if let Some(lost) = t.call {
            self.quality.add(QualityCode::OrphanSysEnter, 1);
            if let Some(mark) = lost.crowd_mark {
                self.crowding.leave(now, mark);
            }
            if lost.inside {
                self.costs.leave();
            }
        } else if let Some((user0, faults0, quarter)) = t.stretch.take() {
            let ns = t.user_ns - user0;
            self.costs.stretch(nr, ns, quarter);
            // What a page fault takes is the kernel's time.
            if t.faults == faults0 {
                self.stretches.add(slot, nr, ns, quarter);
            }
        }
        t.call = Some(Call {
            nr,
            start: now,
            running0: t.running_at(now),
            irq0: t.irq_ns,
            runnable0: t.woken_ns + t.preempted_ns,
            blocked0: t.blocked_ns,
            crowd_mark: Some(self.crowding.enter(now)),
            crowd: 0,
            alone: self.costs.enter(),
            inside: true,
        });
        let pid = t.pid;
        self.cpus.get_mut(cpu).counts.scalls += 1;
        if let Some(traits) = self.traits.get(nr as usize)
            && traits.class != Class::None
            && let Some(args) = batch.args(args)
        {
            self.waits.call_begins(now, slot, pid, traits.class, args);
        }
    }

    #[inline]
    fn sys_exit(&mut self, now: Nanos, cpu: Cpu, e: &Event, nr: u32, ret: i64) {
        let Some(slot) = self.at_boundary(now, cpu, e, Mode::Kernel) else { return };
        let quarter = self.busy_quarter();
        let t = &mut self.threads[slot];
        t.mode = Mode::User;
        t.syscall_events += 1;
        let call = t.call.take();
        let crowd = call.map(|c| c.crowd + c.crowd_mark.map_or(0, |mark| self.crowding.leave(now, mark)));
        let split = call.map(|c| {
            let interrupted = t.irq_ns - c.irq0;
            Split {
                elapsed: now - c.start,
                running: (t.running_at(now) - c.running0).saturating_sub(interrupted),
                interrupted,
                runnable: t.woken_ns + t.preempted_ns - c.runnable0,
                blocked: t.blocked_ns - c.blocked0,
            }
        });
        if split.is_none() && t.syscall_events > 1 {
            self.quality.add(QualityCode::OrphanSysExit, 1);
        }
        // rt_sigreturn returns as number -1, with what the interrupted code had in its registers:
        // the number it was entered with is the true one, and there is no result.
        let (nr, ret) = if nr == u32::MAX { (call.map_or(nr, |c| c.nr), 0) } else { (nr, ret) };
        t.calls.entry(nr).returned(split, ret);
        // How many CPUs are busy as the application goes on.
        t.stretch = Some((t.user_ns, t.faults, quarter));
        if let (Some(s), Some(crowd), Some(call)) = (split, crowd, call) {
            self.crowding.call(nr, s.running + s.interrupted, crowd, s.running);
            if call.inside {
                self.costs.leave();
            }
            self.costs.call(nr, now, slot, s.running, call.alone, s.blocked > 0);
        }
        let Some(traits) = self.traits.get(nr as usize) else { return };
        if traits.class.returns()
            && let Some(call) = call
        {
            let pid = self.threads[slot].pid;
            self.waits.call_returns(now, slot, pid, traits.class, call.start, ret);
        }
        let counts = &mut self.cpus.get_mut(cpu).counts;
        match traits.direction {
            Some(Direction::Read) => {
                counts.sreads += 1;
                counts.rchars += ret.max(0) as u64;
            }
            Some(Direction::Write) => {
                counts.swrites += 1;
                counts.wchars += ret.max(0) as u64;
            }
            None => {
                counts.semas += traits.semaphore as u64;
                counts.msgs += traits.message as u64;
            }
        }
    }

    /// The quarter of the CPUs that are busy beside the current one: 0 if at most one in four is.
    fn busy_quarter(&self) -> u8 {
        (self.blame.others_running() as usize * QUARTERS / self.cpus.len().max(1)).min(QUARTERS - 1) as u8
    }

    /// A sample of a counter, taken at the first address of `chain`.
    fn counted(&mut self, e: &Event, period: u64, chain: &[u64]) {
        let Some(slot) = self.threads.get(e.tid).filter(|&s| s != Slot::IDLE) else { return };
        let user = chain.first().map_or(self.threads[slot].mode == Mode::User, |ip| ip >> 63 == 0);
        self.counters.sample(e.id, slot, period, user, self.busy_quarter());
    }

    fn page_fault(&mut self, cpu: Cpu, tid: Tid) {
        if cpu.0 < MAX_CPUS {
            self.cpus.get_mut(cpu).counts.faults += 1;
        }
        if let Some(slot) = self.threads.get(tid) {
            self.threads[slot].faults += 1;
        }
    }

    // ---- interrupts ------------------------------------------------------------------------

    fn enter_level(&mut self, now: Nanos, e: &Event, level: Level, kind: IrqKind, id: u32, name: NameId) {
        if e.cpu.0 >= MAX_CPUS {
            return;
        }
        // A thread that ends has no id for its last few microseconds: whom it interrupts is known.
        if e.tid != Tid::UNKNOWN {
            self.current(now, e.cpu, e.tid, e.pid);
        }
        self.charge(now, e.cpu);
        let c = self.cpus.get_mut(e.cpu);
        if level == Level::Irq {
            c.irqs += 1;
        }
        if !c.push(Frame { level, id, start: now }) {
            self.quality.add(QualityCode::UnmatchedIrq, 1);
        }
        self.refresh_idle(now, e.cpu);
        if name != NameId::NONE {
            self.irqs.named(kind, id as u64, e.cpu, name);
        }
    }

    fn leave_level(&mut self, now: Nanos, e: &Event, level: Level, kind: IrqKind, id: u32) {
        if e.cpu.0 >= MAX_CPUS {
            return;
        }
        // A thread that ends has no id for its last few microseconds: whom it interrupts is known.
        if e.tid != Tid::UNKNOWN {
            self.current(now, e.cpu, e.tid, e.pid);
        }
        self.charge(now, e.cpu);
        let frame = self.cpus.get_mut(e.cpu).pop(level, id);
        self.refresh_idle(now, e.cpu);
        match frame {
            Some(frame) => self.irqs.ran(kind, id as u64, e.cpu, frame.start, now),
            None => self.quality.add(QualityCode::UnmatchedIrq, 1),
        }
    }

    // ---- PERF_RECORD_SWITCH ----------------------------------------------------------------

    /// The poorer source: it does not say whether the thread sleeps, and per task not who is next.
    fn context_switch(&mut self, now: Nanos, cpu: Cpu, e: &Event, out: bool, preempt: bool, other: Tid) {
        if out {
            let state = if preempt { TaskState::PREEMPTED } else { TaskState::INTERRUPTIBLE };
            let next = (other != Tid::UNKNOWN).then_some((other, NameId::NONE));
            self.switch(now, cpu, e.pid, (e.tid, NameId::NONE), state, next);
            return;
        }
        let c = self.cpus.get_mut(cpu);
        if c.current.is_none() && c.seen {
            self.charge(now, cpu);
            let slot = self.find_or_add(e.tid);
            if slot != Slot::IDLE {
                self.enters(now, cpu, slot, false);
            }
            self.set_current(now, cpu, Some((e.tid, slot)));
        } else {
            self.current(now, cpu, e.tid, e.pid);
        }
    }

    // ---- beginning and end -----------------------------------------------------------------

    /// Forget every sum, keep every state: the part of the trace to be analysed starts at `now`.
    pub(crate) fn restart(&mut self, now: Nanos) {
        let now = now.max(self.now);
        let cpus: Vec<Cpu> = self.cpus.iter().map(|(c, _)| c).collect();
        for cpu in cpus {
            self.charge(now, cpu);
        }
        self.cpus.restart(now);
        self.irqs.restart();
        self.blame.restart(now);
        self.crowding.restart(now);
        self.costs.restart();
        self.stretches.restart();
        self.counters.restart();
        self.quality = Quality::default();
        self.events = 0;
        let marks: Vec<Slot> = self.threads.iter().filter(|(_, t)| t.blame_mark.is_some()).map(|(s, _)| s).collect();
        for t in self.threads.iter_mut() {
            t.restart(now);
        }
        self.restart_locks(now);
        for slot in marks {
            // The wait goes on; its share counts from here.
            self.blame.wait_ends(now, 0);
            let mark = self.blame.wait_begins(now);
            self.threads[slot].blame_mark = Some(mark);
        }
        let (g, ready) = (self.blame.integral_at(now), self.blame.ready_at(now));
        self.waits.restart(now, g);
        for t in self.threads.iter_mut() {
            t.ready_mark = t.ready_mark.map(|_| ready);
        }
        self.start = now;
        self.now = now;
    }

    /// The trace ends at `end`: close what is open.
    pub(crate) fn finish(&mut self, end: Nanos, cpus: &[Cpu]) {
        let end = end.max(self.now);
        self.now = end;
        for &cpu in cpus {
            let silent_is_idle = self.caps.irqs || self.caps.softirqs;
            let c = self.cpus.get_mut(cpu);
            if !c.seen {
                self.quality.add(QualityCode::SilentCpu, 1);
                let span = end.saturating_sub(c.charged_to);
                if silent_is_idle {
                    c.idle += span
                } else {
                    c.unaccounted += span
                }
                c.charged_to = end;
            }
            self.charge(end, cpu);
        }
        let slots: Vec<Slot> = self.threads.iter().map(|(s, _)| s).collect();
        for slot in slots {
            self.stop_waiting(end, slot, None, Ended::Trace);
            let t = &mut self.threads[slot];
            t.settle(end);
            if let Some(call) = t.call.take() {
                let stats = t.calls.entry(call.nr);
                stats.pending += 1;
                stats.pending_ns += end - call.start;
            }
            // Whoever showed a call is decided.
            if self.threads[slot].mode == Mode::Unknown {
                let mode = self.mode_without_calls(slot);
                self.decide(slot, mode);
            }
        }
        self.finish_locks(end);
        self.blame.advance(end);
    }

    /// What a thread must have been that showed no system call from beginning to end.
    fn mode_without_calls(&self, slot: Slot) -> Mode {
        let t = &self.threads[slot];
        let slept = t.voluntary > 0 && t.faults == 0;
        if !self.caps.syscalls || !slept {
            // It ran and was preempted: application code.
            return Mode::User;
        }
        // Who sleeps of its own will is in the kernel: in one system call all along, or a thread of
        // the kernel itself, which is a process of one thread and a child of kthreadd.
        let may_be_kthread = t.parent.is_none_or(|p| p == KTHREADD) && (t.pid == Pid::UNKNOWN || t.pid.0 == t.tid.0);
        if may_be_kthread { Mode::Kthread } else { Mode::Kernel }
    }
}

/// `worker-12` without what numbers it: threads of one kind.
fn stem(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|c| !c.is_ascii_digit()).map_or(0, |i| i + 1);
    &name[..end]
}

/// Parent of every kernel thread.
const KTHREADD: Tid = Tid(2);

/// Names that only kernel threads carry. Consulted when the file says nothing about parents.
fn is_kthread_name(name: &[u8]) -> bool {
    const PREFIXES: &[&[u8]] = &[
        b"kworker/",
        b"ksoftirqd/",
        b"migration/",
        b"rcu_",
        b"rcuc/",
        b"rcuog/",
        b"rcuos/",
        b"rcuop/",
        b"rcub/",
        b"cpuhp/",
        b"idle_inject/",
        b"watchdog/",
        b"kswapd",
        b"kcompactd",
        b"khugepaged",
        b"kthreadd",
        b"ksmd",
        b"kauditd",
        b"khungtaskd",
        b"oom_reaper",
        b"kdevtmpfs",
        b"jbd2/",
        b"xfsaild/",
        b"btrfs-",
        b"irq/",
        b"scsi_eh_",
        b"nvme-",
        b"dmcrypt_",
        b"ktimers/",
        b"kpsmoused",
        b"netns",
        b"posixcputmr",
    ];
    PREFIXES.iter().any(|p| name.starts_with(p))
}

#[inline]
fn charge(c: &mut CpuState, cpu: Cpu, threads: &mut Threads, now: Nanos) {
    let span = now.saturating_sub(c.charged_to);
    if span == 0 {
        return;
    }
    c.charged_to = now;
    let Some((_, slot)) = c.current else {
        c.unaccounted += span;
        return;
    };
    if let Some(top) = c.stack.last() {
        match top.level {
            Level::Irq => c.irq += span,
            Level::Softirq => c.softirq += span,
        }
        if slot != Slot::IDLE {
            threads[slot].irq_ns += span;
        }
        return;
    }
    if slot == Slot::IDLE {
        c.idle += span;
        if c.iowaiters > 0 {
            c.iowait += span;
        }
        return;
    }
    let t = &mut threads[slot];
    match t.mode {
        // Whatever it was believed to do: it waits for a lock of the kernel.
        mode if t.spins && mode != Mode::Kthread => {
            c.kernel += span;
            c.lock_spin += span;
            t.kernel_ns += span;
        }
        Mode::User => {
            c.user += span;
            t.user_ns += span;
        }
        Mode::Kernel => {
            c.kernel += span;
            t.kernel_ns += span;
        }
        Mode::Kthread => {
            c.kthread += span;
            t.kernel_ns += span;
        }
        Mode::Unknown => {
            c.undecided += span;
            match t.undecided.iter_mut().find(|u| u.0 == cpu) {
                Some(u) => u.1 += span,
                None => t.undecided.push((cpu, span)),
            }
        }
    }
}
