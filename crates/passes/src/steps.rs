//! What every thread did, step by step: what a replay of the trace starts from.
//!
//! Kept for [`crate::Detail::Steps`] only. A thread's steps are in the order of time. Between two
//! steps, a thread that neither ran nor slept was ready to run or out of sight.

use crate::connections::Connections;
use crate::slot::Slot;
use crate::state::State;
use crate::threads::Thread;
use crate::waits::Object;
use holdup_trace::{Cpu, Nanos};
use rustc_hash::FxHashMap;

/// One step of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// When it began.
    pub at: Nanos,
    /// What it was.
    pub what: Did,
}

/// What a thread did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// On a CPU for this long, including interrupts on top of it. A stay during which it woke
    /// another thread is several of these.
    Run(Nanos),
    /// Asleep for this long, until `sched_waking`.
    Sleep(Nanos, Object),
    /// An idle CPU took this long from the wake-up to running the thread.
    Delay(Nanos),
    /// It queued until the CPU that ran it was free, although other CPUs idled for part of that
    /// time.
    WaitedWhileIdle {
        /// For this long while other CPUs idled.
        ns: Nanos,
        /// The thread that had the CPU when this one was queued; [`Slot::IDLE`] if none.
        behind: Slot,
        /// A CPU already idled then.
        idle: bool,
    },
    /// It queued for a CPU until another CPU pulled it, although CPUs idled meanwhile.
    TakenOver {
        /// For this long while CPUs idled.
        ns: Nanos,
        /// The thread that had the CPU when this one was queued; [`Slot::IDLE`] if none.
        behind: Slot,
        /// A CPU already idled then.
        idle: bool,
    },
    /// Immediately after its wake-up it preempted this thread.
    Preempts(Slot),
    /// Ready for this long but not running, although the CPU that ran it next had been idle: a
    /// quota or a sibling kept it off.
    HeldOff(Nanos),
    /// Queued for this long since the recording began.
    Ready(Nanos),
    /// Unknown for this long: it had not been seen yet, or events are missing.
    Unknown(Nanos),
    /// It ended the sleep of another thread.
    Wake {
        /// The thread that slept.
        thread: Slot,
        /// Index of the sleep among that thread's steps.
        step: u32,
    },
    /// It created another thread.
    Spawn(Slot),
}

/// A thread held an object from one time to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The object, by the number at that time: see [`crate::Analysis::final_object`].
    pub object: Object,
    /// When it got it, as far as known.
    pub from: Nanos,
    /// When it released it.
    pub to: Nanos,
    /// A call of its own shows when it got the object. Otherwise the time follows from other
    /// threads' calls, and may be too late.
    pub seen: bool,
}

/// A thread waited for a lock of the kernel, spinning or asleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contended {
    /// The address of the lock that it waited for first.
    pub lock: u64,
    /// When the wait began.
    pub from: Nanos,
    /// When it had the lock.
    pub to: Nanos,
}

/// A thread's calls by which threads contend for a mutex.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    /// CPU time in them.
    pub ns: Nanos,
    /// How many there were.
    pub calls: u64,
}

/// The steps of one thread, and up to when they are written.
#[derive(Clone, Debug, Default)]
struct Course {
    steps: Vec<Step>,
    held: Vec<Held>,
    contended: Vec<Contended>,
    contends: Option<(Nanos, u64)>,
    turns: FxHashMap<Object, Turn>,
    /// The CPUs that it ran on, by the lowest six bits of their number.
    cpus: u64,
    /// The CPUs that it waited for although others idled, likewise.
    waited_for: u64,
    /// The CPUs that it ran on since its first wait of that kind.
    since: u64,
    /// Its share of idle time during the current ready time.
    passes_over: Nanos,
    queued: Queued,
    /// Its share of idle time in total.
    waited_while_idle: Nanos,
    /// Its steps are written up to this time.
    at: Nanos,
    /// Its steps are written up to this running time of the thread.
    ran: Nanos,
    begun: bool,
}

/// An idle CPU takes up to this long to look into the queues of others.
const WAITS: Nanos = 1_000_000;

/// A ready thread and its queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// Total time without an idle CPU when it was queued.
    full: Nanos,
    /// The thread that had the CPU at that moment.
    behind: Slot,
    /// Whether a CPU idled at that moment.
    idle: bool,
    /// Whether it moved from one queue to another.
    moved: bool,
}

impl Default for Queued {
    fn default() -> Queued {
        Queued { full: 0, behind: Slot::IDLE, idle: false, moved: false }
    }
}

/// The state of a CPU when a thread gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From {
    /// Time without an idle CPU up to now.
    pub(crate) full: Nanos,
    /// Since when the CPU has idled, or has not.
    pub(crate) since: Nanos,
    /// The thread that had the CPU.
    pub(crate) whom: Slot,
    /// That thread was preempted.
    pub(crate) preempted: bool,
    /// The CPU was idle.
    pub(crate) idle: bool,
    /// Every thread that was asleep has been woken: no wake-up is missing.
    pub(crate) wakeups: bool,
}

/// Records steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    courses: Vec<Course>,
    pub(crate) connections: Connections,
    /// Stays that ended because another thread had queued for long: total length and number.
    slices: (Nanos, u64),
}

impl Steps {
    /// Calls of a thread by which threads contend for a mutex, by mutex.
    pub(crate) fn fought_for(&self, slot: Slot) -> impl Iterator<Item = (Object, Turn)> {
        let course = self.courses.get(slot.0 as usize);
        course.into_iter().flat_map(|c| c.turns.iter().map(|(&object, &turn)| (object, turn)))
    }

    /// How long threads keep a CPU that others queue for, on average.
    pub(crate) fn slice_ns(&self) -> Option<Nanos> {
        let (ns, count) = self.slices;
        ns.checked_div(count)
    }

    /// What a thread did.
    pub(crate) fn of(&self, slot: Slot) -> ThreadSteps<'_> {
        let course = self.courses.get(slot.0 as usize);
        course.map_or_else(ThreadSteps::default, |c| ThreadSteps {
            steps: &c.steps,
            held: &c.held,
            contended: &c.contended,
            cpus: c.cpus,
            waited_for: c.waited_for,
            since: c.since,
            waited_while_idle_ns: c.waited_while_idle,
        })
    }

    /// Starts at `now` with this many known threads.
    pub(crate) fn since(now: Nanos, threads: usize) -> Steps {
        let course = || Course { at: now, begun: true, ..Course::default() };
        let courses = std::iter::repeat_with(course).take(threads).collect();
        Steps { courses, ..Steps::default() }
    }

    fn course(&mut self, slot: Slot) -> &mut Course {
        let i = slot.0 as usize;
        if i >= self.courses.len() {
            self.courses.resize_with((i + 1).next_power_of_two(), Course::default);
        }
        &mut self.courses[i]
    }

    /// `slot` has run for `ran` in total up to `now`.
    pub(crate) fn ran(&mut self, now: Nanos, slot: Slot, ran: Nanos) {
        let c = self.course(slot);
        let ns = ran.saturating_sub(c.ran);
        if ns > 0 {
            c.steps.push(Step { at: now.saturating_sub(ns), what: Did::Run(ns) });
        }
        (c.at, c.ran, c.begun) = (now, ran, true);
    }

    /// The thread in `slot`, which was in `state` before, gets `cpu`.
    pub(crate) fn enters(
        &mut self,
        now: Nanos,
        slot: Slot,
        state: State,
        thread: &Thread,
        cpu: Cpu,
        from: From,
    ) {
        let c = self.course(slot);
        c.cpus |= 1 << (cpu.0 % 64);
        if !c.begun {
            c.at = thread.born;
        }
        // It left its last CPU without an event.
        let ran = thread.running_ns.saturating_sub(c.ran);
        if ran > 0 {
            c.steps.push(Step { at: c.at, what: Did::Run(ran) });
            (c.at, c.ran) = ((c.at + ran).min(now), thread.running_ns);
        }
        let ns = now.saturating_sub(c.at);
        let passed = std::mem::take(&mut c.passes_over).min(ns);
        if passed > WAITS {
            c.waited_for |= 1 << (cpu.0 % 64);
        }
        if c.waited_for != 0 {
            c.since |= 1 << (cpu.0 % 64);
        }
        let queued = std::mem::take(&mut c.queued);
        let idled = ns.saturating_sub(from.full.saturating_sub(queued.full));
        // The CPU was idle when the thread was queued, but ran another thread first.
        let late = if from.idle { 0 } else { from.since.saturating_sub(c.at).min(ns) };
        let taken_over = match state {
            // The queue is not always known.
            State::Woken(Cpu::UNKNOWN) => queued.moved,
            State::Woken(queue) => queued.moved || from.idle && queue != cpu,
            State::Preempted(_) => queued.moved || from.idle && thread.last_cpu != cpu,
            _ => false,
        };
        let what = match state {
            _ if taken_over => {
                Some(Did::TakenOver { ns: idled, behind: queued.behind, idle: queued.idle })
            }
            State::Woken(_) if from.preempted && ns <= WAITS => Some(Did::Preempts(from.whom)),
            State::Woken(_) | State::Waking if from.idle => Some(Did::Delay(ns)),
            State::Preempted(_) if from.idle => Some(Did::HeldOff(ns)),
            State::Unseen if from.wakeups => Some(Did::Ready(ns)),
            State::Lost | State::Unseen | State::Dead | State::Running(_) => Some(Did::Unknown(ns)),
            State::Woken(_) if queued.behind == Slot::IDLE && late > 0 && ns - late <= WAITS => {
                Some(Did::Delay(late))
            }
            _ if idled.max(late) > 0 => {
                let behind = if queued.behind == Slot::IDLE { from.whom } else { queued.behind };
                Some(Did::WaitedWhileIdle { ns: idled.max(late), behind, idle: queued.idle })
            }
            _ => None,
        };
        if let Some(what) = what.filter(|_| ns > 0) {
            c.steps.push(Step { at: c.at, what });
        }
        (c.at, c.begun) = (now, true);
    }

    /// `slot`, which was ready, was kept off the CPUs from one time to another; how it got a CPU
    /// again may not be recorded.
    pub(crate) fn held_off(&mut self, slot: Slot, since: Nanos, until: Nanos) {
        let c = self.course(slot);
        if c.begun && since >= c.at && until > since {
            c.steps.push(Step { at: since, what: Did::HeldOff(until - since) });
            c.at = until;
        }
    }

    /// `slot`, which had lost its CPU, turns out to have had one since `since`. What had that CPU
    /// before was not recorded.
    pub(crate) fn arrives(&mut self, since: Nanos, slot: Slot) {
        let c = self.course(slot);
        if since > c.at {
            c.steps.push(Step { at: c.at, what: Did::Unknown(since - c.at) });
            c.at = since;
        }
    }

    /// `slot` becomes ready, behind the thread that has the CPU; `full` is the total time without
    /// an idle CPU so far.
    pub(crate) fn queues(&mut self, slot: Slot, full: Nanos, behind: Slot, idle: bool) {
        self.course(slot).queued = Queued { full, behind, idle, moved: false };
    }

    /// The ready thread moves to the queue of another CPU.
    pub(crate) fn moves(&mut self, slot: Slot) {
        self.course(slot).queued.moved = true;
    }

    /// For `ns` of the time that `slot` was ready, CPUs idled that could have run it.
    pub(crate) fn waited_while_idle(&mut self, slot: Slot, ns: Nanos) {
        let c = self.course(slot);
        c.passes_over = ns;
        c.waited_while_idle += ns;
    }

    /// The sleep of `slot`, since `from`, ended. If a thread ended it, that is `waker`, which has
    /// run for `ran` up to now.
    pub(crate) fn slept(
        &mut self,
        (from, now): (Nanos, Nanos),
        slot: Slot,
        object: Object,
        waker: Option<(Slot, Nanos)>,
    ) {
        let c = self.course(slot);
        let step = c.steps.len() as u32;
        c.steps.push(Step { at: from, what: Did::Sleep(now.saturating_sub(from), object) });
        (c.at, c.begun) = (now, true);
        if let Some((waker, ran)) = waker {
            self.ran(now, waker, ran);
            let what = Did::Wake { thread: slot, step };
            self.course(waker).steps.push(Step { at: now, what });
        }
    }

    /// Corrects what the last sleep of `slot` was for.
    pub(crate) fn slept_for(&mut self, slot: Slot, object: Object) {
        let last = self.course(slot).steps.iter_mut().rev().find_map(|step| match &mut step.what {
            Did::Sleep(_, object) => Some(object),
            _ => None,
        });
        if let Some(last) = last {
            *last = object;
        }
    }

    /// A thread that has run for `ns` loses its CPU to one that has queued for `queued`.
    pub(crate) fn slice_ends(&mut self, ns: Nanos, queued: Nanos) {
        // A thread that has just been woken preempts by priority, not because a slice is over.
        if queued > WAITS {
            self.slices = (self.slices.0 + ns.min(queued), self.slices.1 + 1);
        }
    }

    /// `parent`, which has run for `ran` in total, wakes its new `child`.
    pub(crate) fn spawns(&mut self, now: Nanos, parent: Slot, ran: Nanos, child: Slot) {
        self.ran(now, parent, ran);
        self.course(parent).steps.push(Step { at: now, what: Did::Spawn(child) });
        let c = self.course(child);
        (c.at, c.begun) = (now, true);
    }

    /// `slot` releases what it has held.
    pub(crate) fn held(&mut self, slot: Slot, held: Held) {
        self.course(slot).held.push(held);
    }

    /// `slot` spent `ns` of CPU time in a call by which threads contend for a mutex.
    pub(crate) fn contended(&mut self, slot: Slot, mutex: Object, ns: Nanos) {
        let turn = self.course(slot).turns.entry(mutex).or_default();
        (turn.ns, turn.calls) = (turn.ns + ns, turn.calls + 1);
    }

    /// `slot` begins to wait for the lock of the kernel at this address, or waits for none any
    /// more.
    pub(crate) fn contends(&mut self, now: Nanos, slot: Slot, lock: u64, waits: bool) {
        let c = self.course(slot);
        match (c.contends, waits) {
            (None, true) => c.contends = Some((now, lock)),
            (Some((from, lock)), false) => {
                c.contended.push(Contended { lock, from, to: now });
                c.contends = None;
            }
            _ => {}
        }
    }

    /// A thread ended some time ago: it makes no more steps.
    pub(crate) fn retire(&mut self, slot: Slot) {
        if let Some(c) = self.courses.get_mut(slot.0 as usize) {
            c.steps.shrink_to_fit();
            c.held.shrink_to_fit();
            c.contended.shrink_to_fit();
        }
    }

    /// Drops what was written, keeps what is in progress.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.slices = (0, 0);
        self.connections.all.clear();
        for c in &mut self.courses {
            *c = Course { at: c.at.max(now), begun: c.begun, ..Course::default() };
        }
    }
}

/// The complete record of what a thread did.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSteps<'a> {
    /// Its steps, in order of time.
    pub steps: &'a [Step],
    /// What it held, in the order of release. May lack objects that only other threads' waits
    /// prove, and locks of the kernel, whose acquisition is seldom traced.
    pub held: &'a [Held],
    /// When it waited for locks of the kernel.
    pub contended: &'a [Contended],
    /// The CPUs that it ran on: bit n for CPU n modulo 64.
    pub cpus: u64,
    /// Those of them that it waited for although others idled.
    pub waited_for: u64,
    /// The CPUs that it ran on since its first wait of that kind.
    pub since: u64,
    /// Part of its ready time: its share of the idle time of CPUs that did not run it.
    pub waited_while_idle_ns: Nanos,
}
