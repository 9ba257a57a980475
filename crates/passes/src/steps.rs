//! What every thread did, step by step: what a replay of the trace starts from.
//!
//! Kept for [`crate::Detail::Steps`] only. A thread's steps are in the order of time, and times
//! between two steps in which it neither ran nor slept it was ready to run, or out of sight.

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
    /// It was on a CPU for so long, interrupts on top of it included. A stay during which it woke
    /// another thread is several of these.
    Run(Nanos),
    /// It slept for so long, until `sched_waking`.
    Sleep(Nanos, Object),
    /// An idle CPU took so long to take it, from its wake-up on.
    Delay(Nanos),
    /// It queued until the CPU that takes it was free, though for so long of it others idled.
    PassedOver {
        /// For so long.
        ns: Nanos,
        /// The thread that had the CPU when it was put there; [`Slot::IDLE`] if none.
        behind: Slot,
        /// One idled already then.
        idle: bool,
    },
    /// It queued for a CPU until another took it over, though CPUs idled for so long of it.
    TakenOver {
        /// For so long.
        ns: Nanos,
        /// The thread that had the CPU when it was put there; [`Slot::IDLE`] if none.
        behind: Slot,
        /// One idled already then.
        idle: bool,
    },
    /// It took its CPU from this thread, which would have gone on, as soon as it was woken.
    Preempts(Slot),
    /// It could have run and did not for so long, though the CPU that took it had been idle: a
    /// quota or a sibling kept it off.
    HeldOff(Nanos),
    /// It queued for so long since the recording began.
    Ready(Nanos),
    /// Nobody knows what it did for so long: it had not been seen yet, or events are missing.
    Unknown(Nanos),
    /// It ended the sleep of another thread that is the step with this number there.
    Wake {
        /// Who slept.
        thread: Slot,
        /// Number of the sleep among its steps.
        step: u32,
    },
    /// It made another thread.
    Spawn(Slot),
}

/// A thread had an object, from one moment to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Which object, by the number it had then: see [`crate::Analysis::final_object`].
    pub object: Object,
    /// When it got it, as far as known.
    pub from: Nanos,
    /// When it gave it back.
    pub to: Nanos,
    /// A call of its own shows when it got it. Else that follows from what others did, and may be
    /// later than it was.
    pub seen: bool,
}

/// A thread waited for a lock of the kernel, spinning or asleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contended {
    /// The address of the lock that it waited for first.
    pub lock: u64,
    /// When it began to.
    pub from: Nanos,
    /// When it had it.
    pub to: Nanos,
}

/// The steps of one thread, and where they are written up to.
#[derive(Clone, Debug, Default)]
struct Course {
    steps: Vec<Step>,
    held: Vec<Held>,
    contended: Vec<Contended>,
    contends: Option<(Nanos, u64)>,
    turns: FxHashMap<Object, Nanos>,
    /// The CPUs that it ran on, by their lowest six bits; and those that it waited for though
    /// others idled.
    cpus: u64,
    waited_for: u64,
    /// Those that it ran on since it first did, and how often it has.
    since: u64,
    /// Its share of idle time while it is ready.
    passes_over: Nanos,
    queued: Queued,
    /// The same in all.
    passed_over: Nanos,
    /// Up to this time, and this running time of the thread, its steps are written.
    at: Nanos,
    ran: Nanos,
    begun: bool,
}

/// It takes a CPU that idles up to so long to look what others have in their queues.
const WAITS: Nanos = 1_000_000;

/// A thread that is ready, and where.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// Time without an idle CPU when it began to.
    full: Nanos,
    /// The thread that had the CPU then.
    behind: Slot,
    /// A CPU idled then.
    idle: bool,
    /// It went from one queue to another.
    moved: bool,
}

impl Default for Queued {
    fn default() -> Queued {
        Queued { full: 0, behind: Slot::IDLE, idle: false, moved: false }
    }
}

/// What a thread gets a CPU from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct From {
    /// Time without an idle CPU up to now.
    pub(crate) full: Nanos,
    /// Since when the CPU has idled, or has not.
    pub(crate) since: Nanos,
    /// From whom.
    pub(crate) whom: Slot,
    /// Who would have gone on.
    pub(crate) preempted: bool,
    /// From the idle task.
    pub(crate) idle: bool,
    /// Whoever was asleep before has been woken: no wake-up is missing.
    pub(crate) wakeups: bool,
}

/// Writes down steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    courses: Vec<Course>,
    /// Stays that ended because another thread had queued for long: the time it did, and how many.
    slices: (Nanos, u64),
}

impl Steps {
    /// CPU time of a thread in calls by which threads contend for a mutex, by mutex.
    pub(crate) fn turns(&self, slot: Slot) -> impl Iterator<Item = (Object, Nanos)> {
        let course = self.courses.get(slot.0 as usize);
        course.into_iter().flat_map(|c| c.turns.iter().map(|(&object, &ns)| (object, ns)))
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
            passed_over_ns: c.passed_over,
        })
    }

    /// From `now` on, of so many threads that are there already.
    pub(crate) fn since(now: Nanos, threads: usize) -> Steps {
        let course = || Course { at: now, begun: true, ..Course::default() };
        Steps { courses: std::iter::repeat_with(course).take(threads).collect(), slices: (0, 0) }
    }

    fn course(&mut self, slot: Slot) -> &mut Course {
        let i = slot.0 as usize;
        if i >= self.courses.len() {
            self.courses.resize_with((i + 1).next_power_of_two(), Course::default);
        }
        &mut self.courses[i]
    }

    /// `slot` has run for `ran` in all up to `now`.
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
        // It left its last CPU unseen.
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
        // The CPU idled when it was put there, and took another first when it no longer did.
        let late = if from.idle { 0 } else { from.since.saturating_sub(c.at).min(ns) };
        let taken_over = match state {
            // Where it queued is not always said.
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
                Some(Did::PassedOver { ns: idled.max(late), behind, idle: queued.idle })
            }
            _ => None,
        };
        if let Some(what) = what.filter(|_| ns > 0) {
            c.steps.push(Step { at: c.at, what });
        }
        (c.at, c.begun) = (now, true);
    }

    /// `slot`, which was ready, was kept off the CPUs from one moment to another; how it got one
    /// again may not be recorded.
    pub(crate) fn held_off(&mut self, slot: Slot, since: Nanos, until: Nanos) {
        let c = self.course(slot);
        if c.begun && since >= c.at && until > since {
            c.steps.push(Step { at: since, what: Did::HeldOff(until - since) });
            c.at = until;
        }
    }

    /// `slot`, which had lost its CPU, turns out to have had one since `since`. Whoever had it
    /// before was not recorded.
    pub(crate) fn arrives(&mut self, since: Nanos, slot: Slot) {
        let c = self.course(slot);
        if since > c.at {
            c.steps.push(Step { at: c.at, what: Did::Unknown(since - c.at) });
            c.at = since;
        }
    }

    /// `slot` is ready from now on, behind the thread that has the CPU; there was no idle CPU for
    /// so long in all.
    pub(crate) fn queues(&mut self, slot: Slot, full: Nanos, behind: Slot, idle: bool) {
        self.course(slot).queued = Queued { full, behind, idle, moved: false };
    }

    /// Being ready, it goes to the queue of another CPU.
    pub(crate) fn moves(&mut self, slot: Slot) {
        self.course(slot).queued.moved = true;
    }

    /// So much of the time that `slot` was ready, CPUs idled that it could have had.
    pub(crate) fn passed_over(&mut self, slot: Slot, ns: Nanos) {
        let c = self.course(slot);
        c.passes_over = ns;
        c.passed_over += ns;
    }

    /// The sleep of `slot`, since `from`, ended; by `waker`, if a thread did, which has run for
    /// `ran` up to now.
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

    /// What the last sleep of `slot` was for, where more is known of it now.
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
        // Who has just been woken takes its place by right, not because its slice is over.
        if queued > WAITS {
            self.slices = (self.slices.0 + ns.min(queued), self.slices.1 + 1);
        }
    }

    /// `parent`, which has run for `ran` in all, lets `child` begin.
    pub(crate) fn spawns(&mut self, now: Nanos, parent: Slot, ran: Nanos, child: Slot) {
        self.ran(now, parent, ran);
        self.course(parent).steps.push(Step { at: now, what: Did::Spawn(child) });
        let c = self.course(child);
        (c.at, c.begun) = (now, true);
    }

    /// `slot` gives back what it has had.
    pub(crate) fn held(&mut self, slot: Slot, held: Held) {
        self.course(slot).held.push(held);
    }

    /// `slot` spent so much CPU time in a call by which threads contend for a mutex.
    pub(crate) fn contended(&mut self, slot: Slot, mutex: Object, ns: Nanos) {
        *self.course(slot).turns.entry(mutex).or_default() += ns;
    }

    /// `slot` begins to wait for the lock of the kernel at this address, or is no longer waiting
    /// for any.
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

    /// A thread has ended, some time ago: it makes no more steps.
    pub(crate) fn retire(&mut self, slot: Slot) {
        if let Some(c) = self.courses.get_mut(slot.0 as usize) {
            c.steps.shrink_to_fit();
            c.held.shrink_to_fit();
            c.contended.shrink_to_fit();
        }
    }

    /// Forget what was written, keep what is going on.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.slices = (0, 0);
        for c in &mut self.courses {
            *c = Course { at: c.at.max(now), begun: c.begun, ..Course::default() };
        }
    }
}

/// What a thread did, from beginning to end.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSteps<'a> {
    /// Its steps, in order of time.
    pub steps: &'a [Step],
    /// What it held, in the order in which it gave it back. Objects that the waiting of others
    /// proves only, and locks of the kernel, whose acquisition is seldom traced, may be missing.
    pub held: &'a [Held],
    /// When it waited for locks of the kernel.
    pub contended: &'a [Contended],
    /// The CPUs that it ran on: bit n for CPU n modulo 64.
    pub cpus: u64,
    /// Of them, those that it waited for though others idled.
    pub waited_for: u64,
    /// And those that it ran on since it first did.
    pub since: u64,
    /// Of the time it was ready: its share of the idle time of CPUs that did not take it.
    pub passed_over_ns: Nanos,
}
