//! Threads begin, end, are renamed, and turn out to be kernel or application threads.

use super::Engine;
use super::current::spend;
use super::queues::kind;
use crate::blame::Kind;
use crate::cpus::MAX_CPUS;
use crate::judge::Outside;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::threads::{Thread, Undecided};
use holdup_trace::EventKind::WakeupNew;
use holdup_trace::{Cpu, Event, NameId, Nanos, Pid, Tid};

/// Parent of every kernel thread.
const KTHREADD: Tid = Tid(2);

impl Engine {
    #[inline]
    pub(crate) fn find_or_add(&mut self, tid: Tid) -> Slot {
        match self.threads.get(tid) {
            Some(slot) => slot,
            None => self.threads.insert(Thread::new(tid, self.start, State::Unseen)),
        }
    }

    #[inline]
    pub(super) fn name(&mut self, slot: Slot, comm: NameId) {
        if comm != NameId::NONE && self.threads[slot].comm != comm {
            self.rename(slot, comm);
        }
    }

    #[cold]
    fn rename(&mut self, slot: Slot, comm: NameId) {
        let records = (self.judge.is_recorder)(&self.names.get(comm));
        let t = &mut self.threads[slot];
        (t.comm, t.records) = (comm, records);
        let t = &self.threads[slot];
        if t.mode == Mode::Unknown
            && t.parent.is_none_or(|p| p == KTHREADD)
            && holdup_trace::is_kernel_thread(&self.names.bytes(comm))
        {
            self.decide(slot, Mode::Kthread);
        }
    }

    pub(super) fn describe(&mut self, slot: Slot, pid: Pid, parent: Option<Tid>, comm: NameId) {
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

    pub(super) fn fork(&mut self, now: Nanos, cpu: Cpu, parent: Tid, child: Tid, comm: NameId) {
        if cpu.0 < MAX_CPUS {
            self.cpus.get_mut(cpu).counts.forks += 1;
        }
        if child == Tid::IDLE || child == Tid::UNKNOWN {
            return;
        }
        let slot = match self.threads.get(child) {
            // PERF_RECORD_FORK came first and says the same.
            Some(slot) if self.threads[slot].state == State::New => slot,
            _ => self.threads.insert(Thread::new(child, now, State::New)),
        };
        self.describe(slot, Pid::UNKNOWN, Some(parent), comm);
        self.made(parent, slot);
        self.made_ready(now, parent, slot);
    }

    /// The kernel makes a new thread ready within the call that creates it. Without an event
    /// (`sched_wakeup_new`) a thread that waits for its first CPU would count nowhere.
    fn made_ready(&mut self, now: Nanos, parent: Tid, child: Slot) {
        let woken = self.caps.wakeups || self.caps.wakers;
        if !woken || self.recorded.has(WakeupNew) || self.threads[child].state != State::New {
            return;
        }
        let parent = self.threads.get(parent).filter(|&p| p != Slot::IDLE);
        self.threads[child].latency.wakeup(now);
        self.wake(now, child, parent.map(|p| (p, true)), Cpu::UNKNOWN, false);
    }

    /// Which process a new thread belongs to, if the format does not say: decided by the flags of
    /// the `clone` that its parent is in.
    fn made(&mut self, parent: Tid, child: Slot) {
        let Some(p) = self.threads.get(parent).filter(|&p| p != Slot::IDLE) else { return };
        let ran = self.threads[p].running_at(self.now);
        if let (Some(steps), false) = (&mut self.waits.steps, self.recorded.has(WakeupNew)) {
            steps.spawns(self.now, p, ran, child);
        }
        self.inherits_group(p, child);
        let flags = self.threads[p].living.call.and_then(|c| self.waits.cloning(p, c.start));
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

    /// A new thread becomes ready. Its creator does not do this at once: it may have lost its CPU
    /// between creating the thread and waking it.
    pub(super) fn begins(&mut self, now: Nanos, e: &Event, child: Slot) {
        if self.waits.steps.is_none() || !self.valid(e.cpu, e.tid) {
            return;
        }
        let parent = self.current(now, e.cpu, e.tid, e.pid);
        if parent == Slot::IDLE || self.threads[child].state != State::New {
            return;
        }
        let ran = self.threads[parent].running_at(now);
        if let Some(steps) = &mut self.waits.steps {
            steps.spawns(now, parent, ran, child);
        }
    }

    pub(super) fn task_new(&mut self, now: Nanos, ts: Nanos, tid: Tid, pid: Pid, parent: Tid) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        // A record without a time was synthesised when recording began: the thread is older.
        let slot = if ts < self.start {
            self.find_or_add(tid)
        } else {
            self.threads.insert(Thread::new(tid, now, State::New))
        };
        let comm = self.threads.get(parent).map_or(NameId::NONE, |p| self.threads[p].comm);
        let inherit = ts >= self.start;
        self.describe(
            slot,
            pid,
            (parent != tid).then_some(parent),
            if inherit { comm } else { NameId::NONE },
        );
        if inherit && parent != tid {
            self.made(parent, slot);
        }
    }

    pub(super) fn exec(&mut self, cpu: Cpu, tid: Tid, old: Tid) {
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
            let c = self.cpus.get_mut(cpu);
            if matches!(c.current(), Some((_, s)) if s == slot) {
                c.set_current(Some((tid, slot)));
            }
        }
        let slot = self.find_or_add(tid);
        let t = &mut self.threads[slot];
        if t.mode == Mode::Kthread {
            // A helper forked by the kernel itself becomes a program here.
            t.mode = Mode::Kernel;
            let active = t.state.is_active();
            self.blame.thread_known(self.now, slot, (Kind::Kernel, Kind::Application), active);
        }
        let t = &mut self.threads[slot];
        // A thread that was wrongly inferred to belong to its parent's process.
        let leaves = t.pid_inferred && t.pid.0 != t.tid.0;
        if leaves {
            t.pid = Pid(t.tid.0);
        }
        let pid = t.pid;
        self.waits.exec(slot, pid, leaves);
    }

    /// The thread turns out to be an application or kernel thread, in a call or not: settles the
    /// time charged before this was known.
    pub(super) fn decide(&mut self, slot: Slot, mode: Mode) {
        let t = &mut self.threads[slot];
        let was = kind(t);
        let is = if mode == Mode::Kthread { Kind::Kernel } else { Kind::Application };
        if was != is && slot != Slot::IDLE {
            self.blame.thread_known(self.now, slot, (was, is), t.state.is_active());
        }
        if mode == Mode::Kthread {
            t.mode = Mode::Kthread;
        }
        if !t.undecided.is_empty() {
            t.decided = Some(mode);
            if let Some(facts) = &mut self.facts {
                facts.decided(slot, matches!(mode, Mode::User | Mode::Unknown));
            }
        }
        for Undecided { cpu, bin, span } in std::mem::take(&mut t.undecided) {
            let c = self.cpus.get_mut(cpu);
            c.undecided -= span.min(c.undecided);
            spend(c, t, mode, span);
            if bin != c.bin {
                // That bin is over: the time moves within it, not in the bin that is filled now.
                c.mark.decided(mode, span);
                self.timeline.decided(bin, mode, span);
            }
        }
    }

    /// The mode that a thread must have had if it made no system call in the whole trace.
    pub(super) fn mode_without_calls(&self, slot: Slot) -> Mode {
        let t = &self.threads[slot];
        let slept = t.voluntary > 0 && t.faults == 0;
        if !self.caps.syscalls.are_any() || !slept {
            // It ran and was preempted: application code.
            return Mode::User;
        }
        // A thread that sleeps voluntarily is in the kernel: in one system call all along, or as a
        // kernel thread, which is a process of one thread and a child of kthreadd.
        let may_be_kthread =
            t.parent.is_none_or(|p| p == KTHREADD) && (t.pid == Pid::UNKNOWN || t.pid.0 == t.tid.0);
        match self.outside {
            _ if may_be_kthread => Mode::Kthread,
            Outside::NoCall => Mode::Kernel,
            // In untraced calls, for an unknown part of the time.
            Outside::UntracedCall | Outside::Unknown => Mode::User,
        }
    }
}
