//! A trace in memory, written down event by event.

use holdup_trace::{
    ArgsRef, Batch, Capabilities, Cpu, Descriptors, Event, EventDesc, EventId, EventKind, Extras,
    Frame, Groups, Mapping, NameId, Nanos, Opened, Pid, Presence, Quality, QualityCode, Reader,
    Reading, Result, Run, RunDecoder, Runtime, Spin, Spot, StackRef, Task, TaskState, Tid,
    TraceInfo, What,
};
use std::sync::Arc;

/// Collects events; times may come in any order.
pub struct TraceBuilder {
    info: TraceInfo,
    events: Vec<(Event, Option<[u64; 6]>)>,
    /// Creates references to call chains.
    refs: Batch,
    frames: Vec<u64>,
    mappings: Vec<Mapping>,
    /// The readings, in the order in which their references were created.
    readings: Vec<Vec<Reading>>,
    whole_pairs: bool,
}

/// The finished trace.
pub struct MemTrace {
    opened: Opened,
    events: Vec<(Event, Option<[u64; 6]>)>,
    frames: Vec<u64>,
    mappings: Vec<Mapping>,
    readings: Vec<Vec<Reading>>,
}

impl TraceBuilder {
    /// A machine with this many CPUs. Capabilities follow from the events added.
    pub fn new(cpus: u32) -> TraceBuilder {
        let mut info = TraceInfo::new("built.trace".into(), "built");
        info.cpus_online = Some(cpus);
        info.arch = Some("x86_64".into());
        TraceBuilder {
            info,
            events: Vec::new(),
            refs: Batch::new(),
            frames: Vec::new(),
            mappings: Vec::new(),
            readings: Vec::new(),
            whole_pairs: true,
        }
    }

    /// Only the events added were recorded. Without this, the other event of each pair counts as
    /// recorded too, whether one was added or not: a trace may end inside a call.
    pub fn only_these_events(mut self) -> Self {
        self.whole_pairs = false;
        self
    }

    fn id(&mut self, system: &str, name: &str) -> EventId {
        // Counters have no system.
        let full = if system.is_empty() { name.to_owned() } else { format!("{system}:{name}") };
        if let Some(i) = self.info.events.iter().position(|e| e.name == full) {
            return EventId(i as u16);
        }
        // An event that always happens counts as recorded only if it was seen.
        let always = EventKind::of(system, name).is_some_and(EventKind::always_happens);
        let presence = if always || system.is_empty() { Presence::Seen } else { Presence::Enabled };
        let system = system.to_owned();
        self.info.events.push(EventDesc { name: full, system, presence });
        EventId(self.info.events.len() as u16 - 1)
    }

    /// Declare the other events of all pairs as recorded.
    fn complete_pairs(&mut self) {
        for i in 0..self.info.events.len() {
            let desc = &self.info.events[i];
            let name = desc.short_name();
            let Some(kind) = EventKind::of(&desc.system, name) else { continue };
            let Some(other) = kind.other_half() else { continue };
            let detail = kind.detail(name).unwrap_or_default();
            let (system, name) = (other.system(), other.to_string().replace('*', detail));
            let name = name[system.len() + 1..].to_owned();
            self.id(system, &name);
        }
    }

    fn push(mut self, ts: Nanos, cpu: u16, tid: u32, event: (&str, &str), what: What) -> Self {
        let id = self.id(event.0, event.1);
        self.info.events[id.0 as usize].presence = Presence::Seen;
        self.push_as(ts, cpu, tid, id, what)
    }

    fn push_as(mut self, ts: Nanos, cpu: u16, tid: u32, id: EventId, what: What) -> Self {
        let event = Event {
            ts,
            tid: Tid(tid),
            pid: Pid::UNKNOWN,
            comm: NameId::NONE,
            cpu: Cpu(cpu),
            id,
            what,
        };
        self.events.push((event, None));
        self
    }

    /// A name for a thread, valid from the start; `parent` 2 makes it a kernel thread.
    pub fn task(mut self, tid: u32, pid: u32, parent: Option<u32>, comm: &str) -> Self {
        let comm = self.info.names.intern(comm.as_bytes());
        self.info.tasks.push(Task { tid: Tid(tid), pid: Pid(pid), parent: parent.map(Tid), comm });
        self
    }

    /// Declare an event as recorded although it never happens.
    pub fn records(mut self, system: &str, name: &str) -> Self {
        self.id(system, name);
        self
    }

    /// `sched_switch`; `state` in the kernel's letters.
    pub fn switch(self, ts: Nanos, cpu: u16, prev: u32, next: u32, state: &str) -> Self {
        let what = What::Switch {
            prev: Tid(prev),
            next: Tid(next),
            prev_state: TaskState::from_text(state.as_bytes()),
            prev_comm: NameId::NONE,
            next_comm: NameId::NONE,
            prev_prio: 120,
            next_prio: 120,
        };
        self.push(ts, cpu, prev, ("sched", "sched_switch"), what)
    }

    /// `sched_wakeup` of `tid`, while `current` is on `cpu`; its target CPU is not recorded.
    pub fn wakeup(self, ts: Nanos, cpu: u16, current: u32, tid: u32) -> Self {
        self.wakeup_to(ts, cpu, current, tid, Cpu::UNKNOWN.0)
    }

    /// `sched_wakeup` of `tid`, which joins the run queue of `target`.
    pub fn wakeup_to(self, ts: Nanos, cpu: u16, current: u32, tid: u32, target: u16) -> Self {
        let target = Cpu(target);
        let what = What::Wakeup { tid: Tid(tid), comm: NameId::NONE, prio: 120, target };
        self.push(ts, cpu, current, ("sched", "sched_wakeup"), what)
    }

    /// `sched_waking` of `tid`, by `current` on `cpu`; its target CPU is not recorded.
    pub fn waking(self, ts: Nanos, cpu: u16, current: u32, tid: u32) -> Self {
        self.waking_to(ts, cpu, current, tid, Cpu::UNKNOWN.0)
    }

    /// `sched_waking` of `tid`, last on `target`.
    pub fn waking_to(self, ts: Nanos, cpu: u16, current: u32, tid: u32, target: u16) -> Self {
        self.waking_from(ts, (cpu, current), tid, target, false)
    }

    /// `sched_waking` of `tid` by a hardware interrupt, while `current` is on `cpu`.
    pub fn waking_in_irq(self, ts: Nanos, cpu: u16, current: u32, tid: u32) -> Self {
        self.waking_from(ts, (cpu, current), tid, Cpu::UNKNOWN.0, true)
    }

    fn waking_from(
        self,
        ts: Nanos,
        (cpu, current): (u16, u32),
        tid: u32,
        target: u16,
        in_irq: bool,
    ) -> Self {
        let (tid, comm, target) = (Tid(tid), NameId::NONE, Cpu(target));
        let what = What::Waking { tid, comm, prio: 120, target, in_irq };
        self.push(ts, cpu, current, ("sched", "sched_waking"), what)
    }

    /// `sched_migrate_task` of `tid` to another CPU's run queue, by `current` on `cpu`.
    pub fn migrate(self, ts: Nanos, cpu: u16, current: u32, tid: u32, to: u16) -> Self {
        let what = What::Migrate { tid: Tid(tid), from: Cpu::UNKNOWN, to: Cpu(to) };
        self.push(ts, cpu, current, ("sched", "sched_migrate_task"), what)
    }

    /// `sched_process_fork` and `sched_wakeup_new`.
    pub fn fork(self, ts: Nanos, cpu: u16, parent: u32, child: u32) -> Self {
        self.makes(ts, cpu, parent, child).lets_begin(ts, cpu, parent, child)
    }

    /// `sched_process_fork` alone.
    pub fn makes(self, ts: Nanos, cpu: u16, parent: u32, child: u32) -> Self {
        let fork = What::Fork { parent: Tid(parent), child: Tid(child), child_comm: NameId::NONE };
        self.push(ts, cpu, parent, ("sched", "sched_process_fork"), fork)
    }

    /// `sched_wakeup_new` alone.
    pub fn lets_begin(self, ts: Nanos, cpu: u16, parent: u32, child: u32) -> Self {
        let new =
            What::WakeupNew { tid: Tid(child), comm: NameId::NONE, prio: 120, target: Cpu(cpu) };
        self.push(ts, cpu, parent, ("sched", "sched_wakeup_new"), new)
    }

    /// `sched_blocked_reason`: `tid` slept in the function `caller` until now, `current` wakes it.
    pub fn blocked_reason(
        self,
        ts: Nanos,
        (cpu, current): (u16, u32),
        tid: u32,
        io_wait: bool,
        caller: &str,
    ) -> Self {
        let name = self.info.names.intern(caller.as_bytes());
        let what = What::BlockedReason { tid: Tid(tid), io_wait, caller: 0, name };
        self.push(ts, cpu, current, ("sched", "sched_blocked_reason"), what)
    }

    /// Only tasks with events of their own were recorded.
    pub fn of_some_tasks(mut self) -> Self {
        self.info.system_wide = Some(false);
        self
    }

    /// PERF_RECORD_SWITCH: `tid` leaves the CPU voluntarily, or gets it.
    pub fn switch_record(self, ts: Nanos, cpu: u16, tid: u32, out: bool) -> Self {
        let what = What::ContextSwitch { out, preempt: false, other: Tid::UNKNOWN };
        self.push_as(ts, cpu, tid, EventId::SIDEBAND, what)
    }

    /// `count` events of `cpu` were lost before `ts`.
    pub fn lost(self, ts: Nanos, cpu: u16, count: u64) -> Self {
        self.push_as(ts, cpu, 0, EventId::SIDEBAND, What::Lost { count })
    }

    /// PERF_RECORD_EXIT of `tid`.
    pub fn task_end(self, ts: Nanos, cpu: u16, tid: u32) -> Self {
        let what = What::TaskEnd { pid: Pid::UNKNOWN, tid: Tid(tid) };
        self.push_as(ts, cpu, tid, EventId::SIDEBAND, what)
    }

    /// `sched_process_exit`.
    pub fn exit(self, ts: Nanos, cpu: u16, tid: u32) -> Self {
        self.push(
            ts,
            cpu,
            tid,
            ("sched", "sched_process_exit"),
            What::Exit { tid: Tid(tid), comm: NameId::NONE },
        )
    }

    /// `sys_enter`, without arguments.
    pub fn sys_enter(self, ts: Nanos, cpu: u16, tid: u32, nr: u32) -> Self {
        self.push(
            ts,
            cpu,
            tid,
            ("raw_syscalls", "sys_enter"),
            What::SysEnter { nr, args: ArgsRef::NONE },
        )
    }

    /// `sys_enter` with its first arguments; the others are 0.
    pub fn sys_enter_with(self, ts: Nanos, cpu: u16, tid: u32, nr: u32, args: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        let mut built = self.sys_enter(ts, cpu, tid, nr);
        if let Some(last) = built.events.last_mut() {
            last.1 = Some(all);
        }
        built
    }

    /// `sys_exit`.
    pub fn sys_exit(self, ts: Nanos, cpu: u16, tid: u32, nr: u32, ret: i64) -> Self {
        self.push(ts, cpu, tid, ("raw_syscalls", "sys_exit"), What::SysExit { nr, ret })
    }

    /// `irq_handler_entry`, then `irq_handler_exit`.
    pub fn irq(self, from: Nanos, to: Nanos, cpu: u16, current: u32, irq: u32) -> Self {
        self.push(
            from,
            cpu,
            current,
            ("irq", "irq_handler_entry"),
            What::IrqEntry { irq, name: NameId::NONE },
        )
        .push(to, cpu, current, ("irq", "irq_handler_exit"), What::IrqExit { irq })
    }

    /// `softirq_entry`, then `softirq_exit`.
    pub fn softirq(self, from: Nanos, to: Nanos, cpu: u16, current: u32, vec: u32) -> Self {
        self.push(from, cpu, current, ("irq", "softirq_entry"), What::SoftirqEntry { vec }).push(
            to,
            cpu,
            current,
            ("irq", "softirq_exit"),
            What::SoftirqExit { vec },
        )
    }

    /// `contention_begin`.
    pub fn contention_begin(self, ts: Nanos, cpu: u16, tid: u32, lock: u64, flags: u32) -> Self {
        self.push(
            ts,
            cpu,
            tid,
            ("lock", "contention_begin"),
            What::ContentionBegin { lock, flags, stack: StackRef::NONE },
        )
    }

    /// `contention_begin` with a call chain, innermost frame first.
    pub fn contention_begin_from(
        mut self,
        ts: Nanos,
        cpu: u16,
        tid: u32,
        lock: u64,
        flags: u32,
        chain: &[u64],
    ) -> Self {
        let stack = self.stack(chain);
        self.push(
            ts,
            cpu,
            tid,
            ("lock", "contention_begin"),
            What::ContentionBegin { lock, flags, stack },
        )
    }

    /// `lock_acquire` of a lockdep class; `flags` 1 try, 2 read.
    pub fn lock_acquire(
        self,
        ts: Nanos,
        cpu: u16,
        tid: u32,
        lock: u64,
        class: &str,
        flags: u32,
    ) -> Self {
        let name = self.info.names.intern(class.as_bytes());
        self.push(ts, cpu, tid, ("lock", "lock_acquire"), What::LockAcquire { lock, name, flags })
    }

    /// `lock_contended`.
    pub fn lock_contended(self, ts: Nanos, cpu: u16, tid: u32, lock: u64, class: &str) -> Self {
        let name = self.info.names.intern(class.as_bytes());
        self.push(ts, cpu, tid, ("lock", "lock_contended"), What::LockContended { lock, name })
    }

    /// `lock_acquired`.
    pub fn lock_acquired(self, ts: Nanos, cpu: u16, tid: u32, lock: u64, class: &str) -> Self {
        let name = self.info.names.intern(class.as_bytes());
        self.push(ts, cpu, tid, ("lock", "lock_acquired"), What::LockAcquired { lock, name })
    }

    /// `lock_release`.
    pub fn lock_release(self, ts: Nanos, cpu: u16, tid: u32, lock: u64, class: &str) -> Self {
        let name = self.info.names.intern(class.as_bytes());
        self.push(ts, cpu, tid, ("lock", "lock_release"), What::LockRelease { lock, name })
    }

    /// `contention_end`.
    pub fn contention_end(self, ts: Nanos, cpu: u16, tid: u32, lock: u64) -> Self {
        self.push(ts, cpu, tid, ("lock", "contention_end"), What::ContentionEnd { lock, ret: 0 })
    }

    /// `contended_release`.
    pub fn contended_release(self, ts: Nanos, cpu: u16, tid: u32, lock: u64) -> Self {
        self.push(ts, cpu, tid, ("lock", "contended_release"), What::ContendedRelease { lock })
    }

    /// The event of a probe in a runtime.
    pub fn does(self, ts: Nanos, cpu: u16, tid: u32, does: Runtime, with: u64) -> Self {
        self.push(ts, cpu, tid, ("runtime", "probe"), What::Runtime { does, with })
    }

    /// Any other event, for what has no method of its own.
    pub fn event(self, ts: Nanos, cpu: u16, tid: u32, event: (&str, &str), what: What) -> Self {
        self.push(ts, cpu, tid, event, what)
    }

    /// The values of counters at the next event: name and value. Each CPU has its own counters.
    pub fn readings(mut self, ts: Nanos, cpu: u16, tid: u32, counters: &[(&str, u64)]) -> Self {
        let readings: Vec<Reading> = counters
            .iter()
            .zip(0..)
            .map(|(&(name, value), i)| Reading {
                event: self.id("", name),
                instance: u32::from(cpu) * 16 + i,
                value,
                enabled_running: None,
            })
            .collect();
        let of = self.refs.push_readings(readings.iter().copied());
        self.readings.push(readings);
        let leader = EventId::SIDEBAND;
        self.push_as(ts, cpu, tid, EventId::SIDEBAND, What::Readings { leader, of })
    }

    /// The call chain of the next event, innermost frame first.
    pub fn chain(mut self, ts: Nanos, cpu: u16, tid: u32, chain: &[u64]) -> Self {
        let of = self.stack(chain);
        self.push_as(ts, cpu, tid, EventId::SIDEBAND, What::Stack { of })
    }

    /// The kernel's call chain of the next switch's thread, and its call's first argument.
    pub fn leaves(mut self, ts: Nanos, cpu: u16, tid: u32, chain: &[u64], argument: u64) -> Self {
        let of = self.stack(chain);
        self.push_as(ts, cpu, tid, EventId::SIDEBAND, What::Leaves { of, argument })
    }

    /// A sample of `cpu-clock` with its call chain, innermost frame first.
    pub fn sample(mut self, ts: Nanos, cpu: u16, tid: u32, chain: &[u64]) -> Self {
        let stack = self.stack(chain);
        self.push(ts, cpu, tid, ("", "cpu-clock"), What::Sample { period: 1_000_000, stack })
    }

    /// Threads spin at this offset of a file, as the recorder found.
    pub fn spins(mut self, file: &str, offset: u64) -> Self {
        let spot = Spot { spin: Spin::Pause, function: "poll".to_owned() };
        let mut spins = (*self.info.spins).clone();
        spins.0.entry(file.to_owned()).or_default().spots.insert(offset, spot);
        self.info.spins = Arc::new(spins);
        self
    }

    /// Code of `file` is mapped into the memory of a process at `start`.
    pub fn mapped(mut self, ts: Nanos, pid: u32, start: u64, len: u64, file: &str) -> Self {
        let file = self.info.names.intern(file.as_bytes());
        let mapping = Mapping { start, len, offset: 0, file, kernel: false, build_id: None };
        let mapped = What::Mapped { pid: Pid(pid), mapping: self.refs.push_mapping(mapping) };
        self.mappings.push(mapping);
        self.push_as(ts, 0, pid, EventId::SIDEBAND, mapped)
    }

    /// The next sample's thread is in the control group `path`.
    pub fn in_group(self, ts: Nanos, cpu: u16, tid: u32, path: &str) -> Self {
        let group = self.info.names.intern(path.as_bytes());
        let what = What::InGroup { tid: Tid(tid), group };
        self.push_as(ts, cpu, tid, EventId::SIDEBAND, what)
    }

    /// `cgroup_attach_task`: the current thread moves `tid` to the control group `path` of the
    /// hierarchy `root`.
    pub fn attach_task(
        self,
        ts: Nanos,
        (cpu, current): (u16, u32),
        tid: u32,
        (root, path): (u32, &str),
    ) -> Self {
        let path = self.info.names.intern(path.as_bytes());
        let what = What::AttachTask { tid: Tid(tid), root, path };
        self.push(ts, cpu, current, ("cgroup", "cgroup_attach_task"), what)
    }

    /// Sets the control groups that the recorder read.
    pub fn read_groups(mut self, groups: Groups) -> Self {
        self.info.groups = groups;
        self
    }

    /// Sets the descriptors that the recorder saw.
    pub fn saw(mut self, descriptors: Descriptors) -> Self {
        self.info.descriptors = descriptors;
        self
    }

    fn stack(&mut self, chain: &[u64]) -> StackRef {
        self.frames.extend(chain);
        self.refs.push_stack(chain.iter().copied().map(Frame::by_half))
    }

    /// Sort by time (stable) and finish.
    pub fn build(mut self) -> MemTrace {
        self.events.sort_by_key(|e| e.0.ts);
        if self.whole_pairs {
            self.complete_pairs();
        }
        let groups = self.events.iter().any(|(e, _)| matches!(e.what, What::InGroup { .. }));
        let extras = Extras { stacks: !self.frames.is_empty(), groups, ..Extras::default() };
        self.info.capabilities = Capabilities::of(&self.info.events, extras);
        self.info.span = self.events.first().zip(self.events.last()).map(|(a, b)| (a.0.ts, b.0.ts));
        let runs = self.events.first().map(|e| Run { first_ts: e.0.ts }).into_iter().collect();
        let mut quality = Quality::default();
        for (e, _) in &self.events {
            if let What::Lost { count } = e.what {
                quality.add(QualityCode::LostEvents, count);
            }
        }
        MemTrace {
            opened: Opened { info: self.info, quality, runs },
            events: self.events,
            frames: self.frames,
            mappings: self.mappings,
            readings: self.readings,
        }
    }
}

impl Reader for MemTrace {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }
    fn decoder(&self, _: usize) -> Box<dyn RunDecoder + '_> {
        Box::new(All(Some(self)))
    }
}

struct All<'a>(Option<&'a MemTrace>);

impl RunDecoder for All<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        if let Some(trace) = self.0.take() {
            for &(mut event, args) in &trace.events {
                if let (What::SysEnter { args: place, .. }, Some(args)) = (&mut event.what, args) {
                    *place = batch.push_args(args);
                }
                batch.events.push(event);
            }
            // In the same chunks as when the references were created.
            for frames in trace.frames.chunks(1 << 15) {
                batch.push_stack(frames.iter().copied().map(Frame::by_half));
            }
            for &mapping in &trace.mappings {
                batch.push_mapping(mapping);
            }
            for readings in &trace.readings {
                batch.push_readings(readings.iter().copied());
            }
        }
        Ok(false)
    }
}
