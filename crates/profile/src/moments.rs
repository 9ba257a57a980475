//! Keeps where threads were at earlier moments: the facts of a batch come after its events, and
//! refer to these moments.

use crate::chains::ChainId;
use crate::context::Context;
use holdup_passes::Thread;
use holdup_syscalls::Arch;
use holdup_trace::{Batch, Event, EventId, Nanos, Pid, Runtime, StackRef, Tid, TraceInfo, What};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Code that ran: a call chain in the memory of a process.
pub(crate) type InCode = (Pid, ChainId);

/// A thread, or a task that a runtime schedules on threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Actor {
    Thread(Tid),
    /// A task, by its address in the memory of a process.
    Task(Pid, u64),
}

impl Actor {
    /// The actor of an analysed thread.
    pub(crate) fn of(thread: &Thread) -> Actor {
        match thread.task {
            0 => Actor::Thread(thread.tid),
            address => Actor::Task(thread.pid, address),
        }
    }
}

/// A moment of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Nanos,
    /// The thread whose chain it is.
    pub(crate) by: Actor,
    /// Whether it was in application code, not in the kernel.
    pub(crate) in_user: bool,
    pub(crate) code: InCode,
}

/// The latest moments of each thread, oldest first. At most as many are kept per thread as a batch
/// has events: older ones were used already, or never will be.
#[derive(Default)]
pub(crate) struct Moments(FxHashMap<Actor, VecDeque<Moment>>);

impl Moments {
    fn push(&mut self, of: Actor, moment: Moment) {
        let moments = self.0.entry(of).or_default();
        if moments.len() > Batch::TARGET {
            moments.pop_front();
        }
        moments.push_back(moment);
    }

    /// The last moment up to a time. For one thread, the requested times must not decrease.
    pub(crate) fn last(&mut self, of: Actor, at: Nanos) -> Option<Moment> {
        let moments = self.0.get_mut(&of)?;
        while moments.get(1).is_some_and(|next| next.at <= at) {
            moments.pop_front();
        }
        moments.front().copied().filter(|first| first.at <= at)
    }

    /// The moments between two times.
    pub(crate) fn between(
        &self,
        of: Actor,
        from: Nanos,
        to: Nanos,
    ) -> impl Iterator<Item = Moment> + '_ {
        let moments = self.0.get(&of);
        let first = moments.map_or(0, |m| m.partition_point(|m| m.at < from));
        moments
            .into_iter()
            .flat_map(move |m| m.range(first..))
            .take_while(move |m| m.at <= to)
            .copied()
    }
}

/// A thread that has requested a monitor.
#[derive(Default)]
struct Asked {
    /// Where it last did so.
    code: Option<InCode>,
    /// The futex word at which it sleeps for all monitors, if known.
    word: Option<u64>,
    /// The word of its current call of futex.
    at: Option<u64>,
}

impl Asked {
    /// Where it requested the monitor for which it now goes to sleep.
    fn sleeps(&self) -> Option<InCode> {
        self.code
            .filter(|_| self.at.is_some() && self.word.is_none_or(|word| self.at == Some(word)))
    }
}

/// The moments of a trace that have chains.
pub(crate) struct Watch {
    pub(crate) context: Context,
    held: Option<StackRef>,
    /// The event whose samples show what ran.
    sampled: Option<EventId>,
    /// Threads that gave up their CPUs.
    pub(crate) left: Moments,
    /// Threads that were woken: the chains are those of the wakers.
    pub(crate) woken: Moments,
    /// Threads that entered system calls.
    pub(crate) entered: Moments,
    /// Threads that began to wait for a lock of the kernel.
    pub(crate) contended: Moments,
    /// Threads that ran when a sample was taken.
    pub(crate) ran: Moments,
    /// The tasks that threads run.
    on: FxHashMap<Tid, Actor>,
    /// Where a thread, or its task, last released a lock, which lets another thread continue.
    gave_back: FxHashMap<Tid, Moment>,
    /// Threads that have requested monitors.
    asked: FxHashMap<Tid, Asked>,
    arch: Arch,
}

impl Watch {
    /// The state at the begin of a trace; `sampled` is the event whose samples show what ran.
    pub(crate) fn new(info: &TraceInfo, sampled: Option<EventId>) -> Watch {
        Watch {
            context: Context::new(info),
            held: None,
            sampled,
            left: Moments::default(),
            woken: Moments::default(),
            entered: Moments::default(),
            contended: Moments::default(),
            ran: Moments::default(),
            on: FxHashMap::default(),
            gave_back: FxHashMap::default(),
            asked: FxHashMap::default(),
            arch: Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64")),
        }
    }

    /// Feed events, in order.
    pub(crate) fn see_all(&mut self, events: &[Event], batch: &Batch) {
        for e in events {
            self.see(e, batch);
        }
    }

    /// Feed an event; if it is a sample, returns the moment of its running thread.
    pub(crate) fn see(&mut self, e: &Event, batch: &Batch) -> Option<Moment> {
        let held = self.held.take();
        self.context.event(e, batch);
        if let What::TaskParks { .. } | What::Runtime { .. } = e.what {
            self.runtime(e, batch, held);
            return None;
        }
        if !self.asked.is_empty() && self.monitor(e, batch) {
            return None;
        }
        let stack = match e.what {
            What::Stack { of } => {
                self.held = Some(of);
                return None;
            }
            What::Sample { stack, .. } if self.sampled == Some(e.id) => stack,
            What::ContentionBegin { stack, .. } => stack,
            What::Switch { .. }
            | What::Waking { .. }
            | What::Wakeup { .. }
            | What::WakeupNew { .. }
            | What::SysEnter { .. } => held?,
            _ => return None,
        };
        // A chain belongs to the thread on the CPU: in a switch, to the thread switched out.
        let by = if let What::Switch { prev, .. } = e.what { prev } else { e.tid };
        if by == Tid::IDLE || batch.stack(stack).is_empty() {
            return None;
        }
        let by = self.who(by);
        let in_user = stack.in_kernel() == 0;
        let moment = Moment { at: e.ts, by, in_user, code: self.context.chain(e, batch, stack) };
        match e.what {
            What::Switch { .. } => self.left.push(by, moment),
            What::Waking { tid, .. } | What::Wakeup { tid, .. } | What::WakeupNew { tid, .. } => {
                self.woken.push(self.who(tid), moment);
            }
            What::SysEnter { .. } => self.entered.push(by, moment),
            What::ContentionBegin { .. } => self.contended.push(by, moment),
            _ => {
                self.ran.push(by, moment);
                return Some(moment);
            }
        }
        None
    }

    /// Whether an event's place is where its thread requested or released a monitor. The stack at
    /// the event itself may be useless, because it begins in libraries without frame pointers.
    fn monitor(&mut self, e: &Event, batch: &Batch) -> bool {
        match e.what {
            What::Switch { prev, prev_state, .. } if !prev_state.is_runnable() => {
                let asked = self.asked.get(&prev).and_then(Asked::sleeps);
                let Some(code) = asked else { return false };
                let by = Actor::Thread(prev);
                self.left.push(by, Moment { at: e.ts, by, in_user: true, code });
                true
            }
            What::SysEnter { nr, args } => {
                let Some(asked) = self.asked.get_mut(&e.tid) else { return false };
                let is_futex = holdup_syscalls::name(self.arch, nr) == Some("futex");
                // A condition variable has two adjacent words.
                asked.at = batch.args(args).filter(|_| is_futex).map(|args| args[0] & !7);
                if !is_futex {
                    // The thread got the monitor without sleeping, otherwise it would be asleep.
                    asked.code = None;
                }
                false
            }
            What::SysExit { .. } => {
                if let Some(asked) = self.asked.get_mut(&e.tid) {
                    asked.at = None;
                }
                false
            }
            What::Waking { tid, .. } => {
                let Some(asked) = self.asked.get_mut(&tid) else { return false };
                let Some(gave) = self.gave_back.remove(&e.tid) else { return false };
                asked.word = asked.at.or(asked.word);
                let is_released = asked.sleeps().is_some();
                if is_released {
                    self.woken.push(Actor::Thread(tid), Moment { at: e.ts, ..gave });
                }
                is_released
            }
            _ => false,
        }
    }

    /// The thread, or the task that it runs.
    fn who(&self, tid: Tid) -> Actor {
        match self.on.get(&tid) {
            Some(&task) => task,
            None => Actor::Thread(tid),
        }
    }

    /// Update which task runs on which thread.
    fn runtime(&mut self, e: &Event, batch: &Batch, held: Option<StackRef>) {
        let stack = held.filter(|&stack| !batch.stack(stack).is_empty());
        match e.what {
            What::TaskParks { task, .. } => {
                let by = Actor::Task(e.pid, task);
                self.on.remove(&e.tid);
                if let Some(stack) = stack {
                    let code = self.context.chain(e, batch, stack);
                    self.left.push(by, Moment { at: e.ts, by, in_user: true, code });
                }
            }
            What::Runtime { does: Runtime::Runs, with } => {
                self.on.insert(e.tid, Actor::Task(e.pid, with));
                self.gave_back.remove(&e.tid);
            }
            What::Runtime { does: Runtime::Ends | Runtime::Idles, .. } => {
                self.on.remove(&e.tid);
            }
            What::Runtime { does: Runtime::AsksMonitor | Runtime::AwaitsMonitor, .. } => {
                let code = stack.map(|stack| self.context.chain(e, batch, stack));
                self.asked.entry(e.tid).or_default().code = code;
            }
            What::Runtime { does: Runtime::GivesBack | Runtime::GivesMonitor, .. } => {
                if let Some(stack) = stack {
                    let (by, code) = (self.who(e.tid), self.context.chain(e, batch, stack));
                    self.gave_back.insert(e.tid, Moment { at: e.ts, by, in_user: true, code });
                }
            }
            What::Runtime { does: Runtime::Readies, with } => {
                if let Some(gave) = self.gave_back.remove(&e.tid) {
                    self.woken.push(Actor::Task(e.pid, with), Moment { at: e.ts, ..gave });
                }
            }
            _ => {}
        }
    }
}
