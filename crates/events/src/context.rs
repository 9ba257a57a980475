//! The context in which an event happens.
//!
//! ```text
//!  CPU      irq 0 ──entry──► irq n ──exit──► irq 0        vectors count as interrupts
//!           softirq likewise; a switch or a loss puts both back to 0
//!  thread   application ──sys_enter──► syscall ──sys_exit──► application
//!           a forked thread begins inside the call that made it; a dead one is forgotten
//! ```
//!
//! The innermost wins: an event in an interrupt handler is `interrupt` whatever was interrupted.
//! What the scheduler does about threads (switch, migration, statistics) is `kernel`. After a loss
//! of events a thread may seem to be in a call it has left; its next entry or exit fixes that.

use holdup_trace::{Batch, Cpu, Event, EventId, NameId, Pid, Tid, TraceInfo, What};

/// Where an event happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Context {
    /// The program's own code.
    Application,
    /// Inside a system call.
    Syscall,
    /// The scheduler, a kernel thread, the idle task, or the kernel on behalf of a thread outside
    /// any call (handling a page fault, the return to user mode).
    Kernel,
    /// An interrupt handler or softirq.
    Interrupt,
}

impl Context {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Context::Application => "application",
            Context::Syscall => "syscall",
            Context::Kernel => "kernel",
            Context::Interrupt => "interrupt",
        }
    }
}

/// Threads with higher ids are not tracked: no kernel gives any (`PID_MAX_LIMIT`).
const MAX_TID: u32 = 1 << 22;
/// CPUs with higher numbers are not tracked.
const MAX_CPU: u16 = 1 << 13;
const KTHREADD: Tid = Tid(2);

/// What is known about a thread.
#[derive(Clone, Copy)]
struct Task {
    comm: NameId,
    pid: Pid,
    in_call: bool,
    kernel: bool,
    /// Its control group.
    group: NameId,
}

const NOTHING: Task = Task {
    comm: NameId::NONE,
    pid: Pid::UNKNOWN,
    in_call: false,
    kernel: false,
    group: NameId::NONE,
};

/// Handlers running on a CPU.
#[derive(Clone, Copy, Default)]
struct Depth {
    irq: u8,
    softirq: u8,
}

/// Follows the state of every CPU and thread through the trace.
pub struct Tracker {
    cpus: Vec<Depth>,
    tasks: Vec<Task>,
    /// By event: whether it is a mark that a program makes itself.
    marks: Vec<bool>,
}

impl Tracker {
    /// A tracker at the start of a trace.
    pub fn new(info: &TraceInfo) -> Tracker {
        let is_mark =
            |name: &str| matches!(name, "print" | "bprint" | "bputs" | "tracing_mark_write");
        let marks = info
            .events
            .iter()
            .map(|e| {
                is_mark(e.short_name()) || e.system.is_empty() || e.system.starts_with("probe_")
            })
            .collect();
        let mut tracker = Tracker { cpus: Vec::new(), tasks: Vec::new(), marks };
        for task in &info.tasks {
            let kernel = task.parent == Some(KTHREADD) || task.tid == KTHREADD;
            if let Some(t) = tracker.task_mut(task.tid) {
                *t = Task { comm: task.comm, pid: task.pid, kernel, ..NOTHING };
            }
        }
        tracker
    }

    /// Name of the current thread at `e`.
    #[inline]
    pub fn comm(&self, e: &Event) -> NameId {
        if e.comm != NameId::NONE { e.comm } else { self.comm_of(e.tid) }
    }

    /// Name of a thread.
    #[inline]
    pub fn comm_of(&self, tid: Tid) -> NameId {
        self.task(tid).comm
    }

    /// Control group of a thread.
    pub fn group_of(&self, tid: Tid) -> NameId {
        self.task(tid).group
    }

    /// Process of the current thread at `e`.
    #[inline]
    pub fn pid(&self, e: &Event) -> Pid {
        if e.pid != Pid::UNKNOWN { e.pid } else { self.pid_of(e.tid) }
    }

    /// Process of a thread.
    #[inline]
    pub fn pid_of(&self, tid: Tid) -> Pid {
        self.task(tid).pid
    }

    #[inline]
    fn task(&self, tid: Tid) -> Task {
        self.tasks.get(tid.0 as usize).copied().unwrap_or(NOTHING)
    }

    #[inline]
    fn task_mut(&mut self, tid: Tid) -> Option<&mut Task> {
        let at = tid.0 as usize;
        if at >= self.tasks.len() {
            if tid.0 >= MAX_TID {
                return None;
            }
            self.tasks.resize((at + 1).next_power_of_two(), NOTHING);
        }
        self.tasks.get_mut(at)
    }

    fn set_comm(&mut self, tid: Tid, comm: NameId) {
        if comm != NameId::NONE
            && let Some(t) = self.task_mut(tid)
        {
            t.comm = comm;
        }
    }

    #[inline]
    fn depth(&mut self, cpu: Cpu) -> Option<&mut Depth> {
        let at = cpu.0 as usize;
        if at >= self.cpus.len() {
            if cpu.0 >= MAX_CPU {
                return None;
            }
            self.cpus.resize(at + 1, Depth::default());
        }
        self.cpus.get_mut(at)
    }

    #[inline]
    fn in_interrupt(&mut self, cpu: Cpu) -> bool {
        self.depth(cpu).is_some_and(|d| d.irq | d.softirq != 0)
    }

    /// Process the next event; returns the context it happened in. An event that opens or closes a
    /// context belongs to it.
    #[inline]
    pub fn step(&mut self, e: &Event, batch: &Batch) -> Context {
        let inside = match e.what {
            What::IrqEntry { .. } | What::VectorEntry { .. } => {
                self.depth(e.cpu).into_iter().for_each(|d| d.irq = d.irq.saturating_add(1));
                Context::Interrupt
            }
            What::IrqExit { .. } | What::VectorExit { .. } => {
                self.depth(e.cpu).into_iter().for_each(|d| d.irq = d.irq.saturating_sub(1));
                Context::Interrupt
            }
            What::SoftirqEntry { .. } => {
                self.depth(e.cpu).into_iter().for_each(|d| d.softirq = d.softirq.saturating_add(1));
                Context::Interrupt
            }
            What::SoftirqExit { .. } => {
                self.depth(e.cpu).into_iter().for_each(|d| d.softirq = d.softirq.saturating_sub(1));
                Context::Interrupt
            }
            What::SysEnter { .. } => {
                self.task_mut(e.tid).into_iter().for_each(|t| t.in_call = true);
                Context::Syscall
            }
            What::SysExit { .. } => {
                self.task_mut(e.tid).into_iter().for_each(|t| t.in_call = false);
                Context::Syscall
            }
            What::Switch { prev, next, prev_state, prev_comm, next_comm, .. } => {
                self.depth(e.cpu).into_iter().for_each(|d| *d = Depth::default());
                self.set_comm(prev, prev_comm);
                self.set_comm(next, next_comm);
                if prev_state.is_dead() {
                    self.task_mut(prev).into_iter().for_each(|t| t.in_call = false);
                }
                Context::Kernel
            }
            What::Waking { tid, comm, .. } | What::Wakeup { tid, comm, .. } => {
                self.set_comm(tid, comm);
                self.of_thread(e, false)
            }
            What::WakeupNew { tid, comm, .. } => {
                self.set_comm(tid, comm);
                self.of_thread(e, false)
            }
            What::Fork { parent, child, child_comm } => {
                let Task { in_call, group, .. } = self.task(parent);
                if let Some(t) = self.task_mut(child) {
                    let kernel = parent == KTHREADD;
                    *t = Task { comm: child_comm, in_call, kernel, group, ..*t };
                }
                self.of_thread(e, false)
            }
            What::AttachTask { tid, root, path } => {
                // Hierarchies other than cgroup v2's have groups of their own.
                self.task_mut(tid).filter(|_| root == 0).into_iter().for_each(|t| t.group = path);
                self.of_thread(e, false)
            }
            What::Exec { tid, old, .. } => {
                let in_call = self.task(old).in_call;
                self.task_mut(tid).into_iter().for_each(|t| t.in_call = in_call);
                self.of_thread(e, false)
            }
            What::PageFault { user, .. } => self.of_thread(e, user),
            What::Sample { stack, .. } => {
                // The upper half of the address space is the kernel's.
                let user = batch.stack(stack).first().is_none_or(|ip| ip >> 63 == 0);
                self.of_thread(e, user)
            }
            What::Other => {
                let mark = self.marks.get(e.id.0 as usize) == Some(&true);
                self.of_thread(e, mark)
            }
            What::StatRuntime { .. }
            | What::StatDelay { .. }
            | What::Migrate { .. }
            | What::BlockedReason { .. }
            | What::PiSetPrio { .. }
            | What::CpuIdle { .. } => {
                if self.in_interrupt(e.cpu) {
                    Context::Interrupt
                } else {
                    Context::Kernel
                }
            }
            _ => {
                if e.id == EventId::SIDEBAND {
                    self.record(e);
                    Context::Kernel
                } else {
                    self.of_thread(e, false)
                }
            }
        };
        if e.comm != NameId::NONE || e.pid != Pid::UNKNOWN {
            self.seen(e);
        }
        inside
    }

    /// Take the thread's name from the event.
    #[inline]
    fn seen(&mut self, e: &Event) {
        if let Some(t) = self.task_mut(e.tid) {
            if e.comm != NameId::NONE {
                t.comm = e.comm;
            }
            if e.pid != Pid::UNKNOWN {
                t.pid = e.pid;
            }
        }
    }

    /// The context of the current thread. `user`: the event comes from the program's own code if
    /// the thread runs that.
    #[inline]
    fn of_thread(&mut self, e: &Event, user: bool) -> Context {
        if self.in_interrupt(e.cpu) {
            return Context::Interrupt;
        }
        let task = self.task(e.tid);
        if task.in_call {
            Context::Syscall
        } else if user && e.tid != Tid::IDLE && !task.kernel {
            Context::Application
        } else {
            Context::Kernel
        }
    }

    /// Process a side-band record.
    fn record(&mut self, e: &Event) {
        match e.what {
            What::Comm { tid, pid, comm, .. } => {
                self.set_comm(tid, comm);
                self.task_mut(tid).into_iter().for_each(|t| t.pid = pid);
            }
            What::InGroup { tid, group } => {
                self.task_mut(tid).into_iter().for_each(|t| t.group = group);
            }
            What::TaskNew { tid, pid, parent_tid, .. } => {
                let parent = self.task(parent_tid);
                if let Some(t) = self.task_mut(tid)
                    && t.comm == NameId::NONE
                {
                    *t = Task {
                        comm: parent.comm,
                        pid,
                        in_call: t.in_call,
                        kernel: parent_tid == KTHREADD,
                        group: parent.group,
                    };
                }
            }
            What::ContextSwitch { .. } => {
                self.depth(e.cpu).into_iter().for_each(|d| *d = Depth::default())
            }
            What::Lost { .. } if e.cpu == Cpu::UNKNOWN => self.cpus.fill(Depth::default()),
            What::Lost { .. } => self.depth(e.cpu).into_iter().for_each(|d| *d = Depth::default()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::{ArgsRef, TaskState};

    fn event(cpu: u16, tid: u32, what: What) -> Event {
        Event {
            ts: 0,
            tid: Tid(tid),
            pid: Pid::UNKNOWN,
            comm: NameId::NONE,
            cpu: Cpu(cpu),
            id: EventId(0),
            what,
        }
    }

    #[test]
    fn contexts_nest() {
        let mut tracker = Tracker::new(&TraceInfo::new("x".into(), "x"));
        let batch = Batch::new();
        let mut step = |cpu, tid, what| tracker.step(&event(cpu, tid, what), &batch);
        let fault = What::PageFault { user: true, address: 0, ip: 0 };
        let begin =
            What::ContentionBegin { lock: 1, flags: 1, stack: holdup_trace::StackRef::NONE };
        let none = NameId::NONE;
        let wake = What::Waking { tid: Tid(9), comm: none, prio: 0, target: Cpu(0), in_irq: false };
        let state = TaskState::INTERRUPTIBLE;
        let switch = What::Switch {
            prev: Tid(7),
            next: Tid(0),
            prev_state: state,
            prev_comm: none,
            next_comm: none,
            prev_prio: 0,
            next_prio: 0,
        };
        assert_eq!(step(0, 7, fault), Context::Application);
        assert_eq!(step(0, 7, begin), Context::Kernel);
        assert_eq!(step(0, 7, What::SysEnter { nr: 1, args: ArgsRef::NONE }), Context::Syscall);
        assert_eq!(step(0, 7, begin), Context::Syscall);
        assert_eq!(step(0, 7, What::IrqEntry { irq: 4, name: none }), Context::Interrupt);
        assert_eq!(step(0, 7, wake), Context::Interrupt);
        assert_eq!(step(1, 8, begin), Context::Kernel);
        assert_eq!(step(0, 7, What::IrqExit { irq: 4 }), Context::Interrupt);
        assert_eq!(step(0, 7, wake), Context::Syscall);
        assert_eq!(step(0, 7, switch), Context::Kernel);
        assert_eq!(step(0, 0, wake), Context::Kernel);
        // The thread is still in its call, on whatever CPU it wakes up.
        assert_eq!(step(3, 7, begin), Context::Syscall);
        assert_eq!(step(3, 7, What::SysExit { nr: 1, ret: 0 }), Context::Syscall);
        assert_eq!(step(3, 7, fault), Context::Application);
    }

    #[test]
    fn a_new_thread_returns_from_the_call_that_made_it() {
        let mut tracker = Tracker::new(&TraceInfo::new("x".into(), "x"));
        let batch = Batch::new();
        let mut step = |tid, what| tracker.step(&event(0, tid, what), &batch);
        let fault = What::PageFault { user: false, address: 0, ip: 0 };
        step(7, What::SysEnter { nr: 56, args: ArgsRef::NONE });
        step(7, What::Fork { parent: Tid(7), child: Tid(8), child_comm: NameId::NONE });
        assert_eq!(step(8, fault), Context::Syscall);
        assert_eq!(step(8, What::SysExit { nr: 56, ret: 0 }), Context::Syscall);
        assert_eq!(step(8, fault), Context::Kernel);
    }

    #[test]
    fn wild_numbers_take_no_memory() {
        let mut tracker = Tracker::new(&TraceInfo::new("x".into(), "x"));
        let batch = Batch::new();
        for tid in [u32::MAX, u32::MAX - 1, MAX_TID] {
            assert_eq!(
                tracker.step(
                    &event(u16::MAX, tid, What::SysEnter { nr: 1, args: ArgsRef::NONE }),
                    &batch
                ),
                Context::Syscall
            );
        }
        assert!(tracker.tasks.is_empty() && tracker.cpus.is_empty());
    }
}
