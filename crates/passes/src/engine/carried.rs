//! Tasks that a runtime schedules on threads: goroutines.
//!
//! All later code treats a task as a thread: it has a slot, runs, sleeps for objects, is woken and
//! ready. The difference is who switches. The kernel switches between threads, and while a thread
//! runs a task, all events of the thread are those of the task; the thread itself is then out of
//! sight. Without a task, all the thread does is look for the next. A task that sleeps in the
//! kernel, in a system call, keeps its thread.
//!
//! ```text
//!              gopark: the task sleeps             execute: it runs, perhaps elsewhere
//!  thread ──── task A ────┐                    ┌──── task B ────
//!                         └── thread's own ────┘
//!                             code: looks for the next
//! ```
//!
//! Tasks are distinguished by their address. A runtime reuses the memory of a task that has ended
//! for a task that begins later: both are one slot, which waits to be started in between. So memory
//! grows with the number of tasks that exist at once.

use super::Engine;
use crate::judge::Ended;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::threads::Thread;
use crate::waits::{Object, Unaddressed};
use holdup_syscalls::WaitKind;
use holdup_trace::{Cpu, Event, NameId, Nanos, Parked, Pid, Runtime, Tid};
use rustc_hash::FxHashMap;

/// Which slots are tasks, and which threads run them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    by_address: FxHashMap<(Pid, u64), Slot>,
    /// Threads that have run tasks.
    carriers: FxHashMap<Tid, Slot>,
    /// The thread that runs each task.
    on: FxHashMap<Slot, Tid>,
    /// Number of tasks so far.
    number: u32,
}

/// How a task leaves its thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// It sleeps.
    Asleep(Object, WaitKind),
    /// It could go on running.
    Ready,
    /// No event showed it.
    Unseen,
}

impl Tasks {
    /// The thread that runs a task.
    pub(super) fn carrier(&self, slot: Slot) -> Option<Tid> {
        self.on.get(&slot).copied()
    }
}

impl Engine {
    /// The current task parks.
    pub(super) fn task_parks(&mut self, now: Nanos, e: &Event, at: u64, on: u64, why: Parked) {
        if !self.valid(e.cpu, e.tid) || e.tid == Tid::IDLE {
            return;
        }
        let pid = self.process(now, e);
        let task = self.task(now, pid, at, State::Lost);
        self.runs_task(now, e, Some(task));
        let asks = std::mem::take(&mut self.threads[task].living.asks);
        let (object, kind) = self.waits.parked_for((task, pid), asks, on, why);
        self.steps_off(now, e.cpu, e.tid, task, Leaves::Asleep(object, kind));
    }

    /// A runtime does something other than parking a task.
    pub(super) fn runtime_does(&mut self, now: Nanos, e: &Event, does: Runtime, with: u64) {
        if !self.valid(e.cpu, e.tid) || e.tid == Tid::IDLE {
            return;
        }
        let pid = self.process(now, e);
        match does {
            Runtime::Runs => {
                let task = self.task(now, pid, with, State::Lost);
                self.runs_task(now, e, Some(task));
            }
            Runtime::Idles => self.runs_task(now, e, None),
            Runtime::Readies => self.readies(now, e, pid, with),
            Runtime::Ends => {
                let task = self.task(now, pid, with, State::Lost);
                self.runs_task(now, e, Some(task));
                let why = Unaddressed::Start;
                let (object, kind) = self.waits.parked_without(task, pid, why);
                self.steps_off(now, e.cpu, e.tid, task, Leaves::Asleep(object, kind));
            }
            Runtime::Asks => {
                // The task may lose its thread before it is parked.
                if let Some(task) = self.current_task(now, e) {
                    self.threads[task].living.asks = with;
                }
            }
            Runtime::GivesBack => {
                if let Some(task) = self.current_task(now, e) {
                    self.waits.releases(now, task, pid, with);
                }
            }
            Runtime::AsksMonitor | Runtime::AwaitsMonitor | Runtime::GivesMonitor => {
                let thread = self.current(now, e.cpu, e.tid, e.pid);
                self.waits.monitor(now, (thread, pid), does, with);
            }
        }
    }

    /// A task is put on a queue of runnable tasks.
    fn readies(&mut self, now: Nanos, e: &Event, pid: Pid, at: u64) {
        let by = self.current_task(now, e);
        let task = self.task(now, pid, at, State::New);
        match self.threads[task].state {
            // It yields to other tasks.
            State::Running(_) if by == Some(task) => self.runs_task(now, e, None),
            State::New => {
                if let Some(by) = by {
                    self.inherits_group(by, task);
                    let ran = self.threads[by].running_at(now);
                    if let Some(steps) = &mut self.waits.steps {
                        steps.spawns(now, by, ran, task);
                    }
                }
                self.wake(now, task, by.map(|by| (by, true)), Cpu::UNKNOWN, false);
            }
            State::Blocked | State::Lost | State::Unseen if self.tasks.carrier(task).is_none() => {
                self.wake(now, task, by.map(|by| (by, true)), Cpu::UNKNOWN, false);
            }
            _ => {}
        }
    }

    /// The process of the event's thread.
    fn process(&mut self, now: Nanos, e: &Event) -> Pid {
        let current = self.current(now, e.cpu, e.tid, e.pid);
        self.threads[current].pid
    }

    /// The task at an address; a new task begins in `state`.
    fn task(&mut self, now: Nanos, pid: Pid, at: u64, state: State) -> Slot {
        if let Some(&slot) = self.tasks.by_address.get(&(pid, at)) {
            return slot;
        }
        self.tasks.number += 1;
        let tid = Tid(Tid::FIRST_TASK.saturating_add(self.tasks.number).min(Tid::UNKNOWN.0 - 1));
        let thread = Thread { pid, task: at, mode: Mode::User, ..Thread::new(tid, now, state) };
        let slot = self.threads.insert(thread);
        self.tasks.by_address.insert((pid, at), slot);
        slot
    }

    /// The task that the event's thread runs; `None` if the thread runs its own code.
    fn current_task(&mut self, now: Nanos, e: &Event) -> Option<Slot> {
        let current = self.current(now, e.cpu, e.tid, e.pid);
        self.tasks.on.contains_key(&current).then_some(current)
    }

    /// From now on the event's thread runs `task`, or none.
    fn runs_task(&mut self, now: Nanos, e: &Event, task: Option<Slot>) {
        let current = self.current(now, e.cpu, e.tid, e.pid);
        if task == Some(current) {
            return;
        }
        if self.tasks.on.contains_key(&current) {
            self.steps_off(now, e.cpu, e.tid, current, Leaves::Ready);
        }
        let Some(task) = task else { return };
        if let Some(other) = self.tasks.carrier(task) {
            self.left_carrier_unseen(now, task, other);
        }
        self.steps_on(now, e.cpu, e.tid, task);
    }

    /// A thread that runs its own code runs `task` from now on.
    fn steps_on(&mut self, now: Nanos, cpu: Cpu, tid: Tid, task: Slot) {
        let own = self.current(now, cpu, tid, Pid::UNKNOWN);
        self.tasks.carriers.insert(tid, own);
        self.charge(now, cpu);
        if self.threads[task].state == State::Blocked {
            // What it waited for from the network has arrived: a thread that finds this runs the
            // task at once, without a queue. The sender is not known: the thread may have been
            // woken for one of several tasks.
            self.wake(now, task, None, Cpu::UNKNOWN, false);
        }
        self.is_out_of_sight(now, own);
        let woken = matches!(self.threads[task].state, State::Woken(_));
        self.enters(now, cpu, task, Some(own));
        let name = self.threads[own].comm;
        self.name(task, name);
        if self.threads[task].group == NameId::NONE {
            self.inherits_group(own, task);
        }
        if let (Some((_, object)), true) = (self.threads[task].living.parked.take(), woken) {
            self.waits.was_released(now, task, object);
        }
        self.tasks.on.insert(task, tid);
        self.threads.stands_for(tid, task);
        self.set_current(now, cpu, Some((tid, task)));
    }

    /// The task that a thread runs leaves the thread, which then runs its own code.
    fn steps_off(&mut self, now: Nanos, cpu: Cpu, tid: Tid, task: Slot, how: Leaves) {
        let Some(&own) = self.tasks.carriers.get(&tid) else { return };
        self.charge(now, cpu);
        let t = &mut self.threads[task];
        t.settle(now);
        t.last_cpu = cpu;
        let ran = t.running_ns;
        if let Some(steps) = &mut self.waits.steps {
            steps.ran(now, task, ran);
        }
        match how {
            Leaves::Asleep(object, kind) => {
                self.transition(now, task, State::Blocked);
                let t = &mut self.threads[task];
                t.uninterruptible = false;
                (t.living.waker, t.living.softirqd, t.living.reason) = (None, None, None);
                t.living.parked = Some((kind, object));
                self.begins_to_wait(now, task, object);
            }
            Leaves::Ready => self.transition(now, task, State::Preempted(Cpu::UNKNOWN)),
            Leaves::Unseen => self.transition(now, task, State::Lost),
        }
        self.tasks.on.remove(&task);
        self.threads.stands_for(tid, own);
        self.threads[own].mode = Mode::User;
        self.enters(now, cpu, own, Some(task));
        self.set_current(now, cpu, Some((tid, own)));
    }

    /// A task shows on another thread than the one believed to run it.
    #[cold]
    fn left_carrier_unseen(&mut self, now: Nanos, task: Slot, tid: Tid) {
        if let State::Running(cpu) = self.threads[task].state {
            return self.steps_off(now, cpu, tid, task, Leaves::Unseen);
        }
        self.tasks.on.remove(&task);
        if let Some(&own) = self.tasks.carriers.get(&tid) {
            self.threads.stands_for(tid, own);
        }
        match self.threads[task].state {
            state if state.is_ready() => self.out_of_sight(now, task),
            State::Blocked | State::Waking => {
                self.stop_waiting(now, task, None, Ended::Unseen);
                self.threads[task].settle(now);
                self.transition(now, task, State::Lost);
            }
            _ => {}
        }
    }

    /// A thread that was on a CPU runs a task instead of its own code.
    fn is_out_of_sight(&mut self, now: Nanos, own: Slot) {
        let t = &mut self.threads[own];
        t.settle(now);
        t.carries = true;
        let ran = t.running_ns;
        if let Some(steps) = &mut self.waits.steps {
            steps.ran(now, own, ran);
        }
        self.transition(now, own, State::Lost);
    }

    /// A thread ends, or becomes another program: from now on it runs its own code. With the first
    /// thread of a process all its tasks end.
    pub(super) fn no_more_tasks(&mut self, now: Nanos, cpu: Cpu, tid: Tid) {
        if self.tasks.carriers.is_empty() {
            return;
        }
        if let Some(slot) = self.threads.get(tid)
            && self.tasks.carrier(slot) == Some(tid)
        {
            match self.threads[slot].state {
                State::Running(on) if on == cpu => {
                    self.steps_off(now, cpu, tid, slot, Leaves::Unseen);
                }
                _ => self.left_carrier_unseen(now, slot, tid),
            }
        }
        self.tasks.carriers.remove(&tid);
        let Some(slot) = self.threads.get(tid) else { return };
        let pid = self.threads[slot].pid;
        if pid.0 == tid.0 {
            self.all_tasks_end(now, pid);
        }
    }

    /// All tasks of a process are over.
    #[cold]
    fn all_tasks_end(&mut self, now: Nanos, pid: Pid) {
        let of = |key: &(Pid, u64)| key.0 == pid;
        let mut slots: Vec<Slot> =
            self.tasks.by_address.iter().filter(|(key, _)| of(key)).map(|(_, &s)| s).collect();
        slots.sort_unstable();
        self.tasks.by_address.retain(|key, _| !of(key));
        for slot in slots {
            if let Some(tid) = self.tasks.carrier(slot) {
                self.left_carrier_unseen(now, slot, tid);
            }
            match self.threads[slot].state {
                state if state.is_ready() => self.out_of_sight(now, slot),
                State::Blocked => {
                    self.stop_waiting(now, slot, None, Ended::Trace);
                    self.threads[slot].settle(now);
                }
                _ => {}
            }
            self.threads[slot].died = Some(now);
            self.transition(now, slot, State::Dead);
        }
    }
}
