//! The invariants of a Linux run queue, and what they fix.
//!
//! A recording has holes: lost events, tasks whose events a filter removes (`--exclude-perf`), idle
//! tasks whose events the kernel does not deliver. Believing each thread to be in the state of its
//! last event would then leave it ready, or running, for the rest of the trace. The invariants
//! below hold in every kernel. If an event contradicts the believed state of a thread, the
//! invariant says what must have happened unseen; time whose use cannot be known counts nowhere.
//!
//! Each application is counted by invariant and thread ([`crate::Analysis::invariants`]), and in
//! the trace's quality.

use super::Engine;
use crate::judge::Ended;
use crate::slot::Slot;
use crate::state::State;
use holdup_trace::{Cpu, Nanos, QualityCode};

/// Makes [`Invariant`] from one list: the reason and exceptions of each invariant, the code under
/// which the trace's quality counts it, and the invariant in one sentence.
macro_rules! invariants {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:ident, $says:literal;)+) => {
        /// An invariant of run queues. Whatever contradicts it was not recorded.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Invariant { $($(#[doc = $doc])+ $name),+ }

        impl Invariant {
            /// All of them.
            pub const ALL: &'static [Invariant] = &[$(Invariant::$name),+];

            /// The code under which the trace's quality counts its applications.
            pub fn code(self) -> QualityCode {
                match self { $(Invariant::$name => QualityCode::$code),+ }
            }

            /// The invariant in one sentence.
            pub fn says(self) -> &'static str {
                match self { $(Invariant::$name => $says),+ }
            }
        }
    };
}

invariants! {
    /// The thread that an event names as current runs on that CPU (`current` is a property of the
    /// CPU). If another thread was believed there, a switch was not recorded: the time since that
    /// CPU's last event is unaccounted.
    CurrentRuns = SwitchGap, "the thread of an event runs on the event's CPU";
    /// An idle CPU immediately takes the thread that is woken on it: `ttwu_queue` interrupts it. If
    /// that thread shows on it next, it has run since it was woken.
    IdleTakesWoken = InferredSwitch, "an idle CPU takes the thread woken on it at once";
    /// A CPU whose switches out of idle are never recorded also takes every thread woken on it,
    /// even before the thread shows. The time counts once an event of the thread confirms it, and
    /// is unaccounted otherwise.
    BlindTakesWoken = PresumedSwitch,
        "an idle CPU takes the thread woken on it at once, even if the thread has no event yet and \
         no switch out of idle is recorded on this CPU";
    /// A CPU that switches to idle has an empty run queue: `pick_next_task_idle` is asked last. A
    /// thread believed ready on it ran unseen and sleeps, or was moved.
    ///
    /// Exceptions: a wake-up in progress is not yet on the queue (`sched_waking` without
    /// `sched_wakeup`, `ttwu_queue_wakelist`). A thread that leaves in state R for the idle task is
    /// out of quota (`throttle_cfs_rq`) or may not run at the same time as its sibling (core
    /// scheduling's forced idle); while it is queued, others may be queued for the same reason.
    IdleQueueEmpty = QueuedAtIdle, "a CPU that goes idle has an empty run queue";
    /// A thread runs on one CPU at a time (`p->on_cpu`). If it shows on a second CPU, it left the
    /// first after the last event there.
    OneCpu = TwoCpus, "a thread runs on one CPU at a time";
    /// A thread that is woken had gone to sleep: `try_to_wake_up` first matches the state, and a
    /// thread on a run queue has the state running. A thread woken while believed ready after a
    /// wake-up ran and slept in between.
    ///
    /// Exception: a thread that was preempted on its way to sleep, state `R+`, is woken while on
    /// the queue (`ttwu_runnable`).
    SleepBeforeWake = WokenTwice, "a thread that is woken had gone to sleep";
    /// A thread that runs after sleeping must have been woken; the wake-up was not recorded.
    WakeBeforeRun = MissingWakeup, "a thread that slept was woken before it ran again";
}

impl Engine {
    /// Counts that `invariant` corrected the state of a thread.
    #[cold]
    pub(super) fn apply(&mut self, invariant: Invariant, slot: Slot) {
        self.quality.add(invariant.code(), 1);
        *self.invariants.entry((invariant, slot)).or_default() += 1;
    }

    /// `cpu` switches, or switched after `since`, to the idle task: threads queued on it before
    /// that are not ready any more ([`Invariant::IdleQueueEmpty`]).
    #[cold]
    #[inline(never)]
    pub(super) fn queue_is_empty(&mut self, now: Nanos, cpu: Cpu, since: Nanos) {
        let queue = || self.cpus.get(cpu).into_iter().flat_map(|c| &c.queue).copied();
        if queue().any(|s| self.threads[s].is_throttled() || self.is_out_of_quota(s)) {
            return self.throttle_queue(now, cpu);
        }
        let gone: Vec<Slot> = queue().filter(|&s| self.threads[s].since < since).collect();
        for slot in gone {
            self.apply(Invariant::IdleQueueEmpty, slot);
            self.out_of_sight(now, slot);
        }
    }

    /// A thread is not ready any more, and has not been for an unknown time: none of the time
    /// counts.
    pub(super) fn out_of_sight(&mut self, now: Nanos, slot: Slot) {
        let since = self.threads[slot].since;
        self.ready_until(now, slot, since);
        self.transition(now, slot, State::Lost);
        self.threads[slot].since = now;
    }

    /// The thread believed on `cpu` is not there any more; its leaving was not recorded.
    pub(super) fn current_left_unseen(&mut self, now: Nanos, cpu: Cpu) {
        if let Some((_, old)) = self.cpus.get_mut(cpu).current()
            && old != Slot::IDLE
            && self.threads[old].state == State::Running(cpu)
        {
            self.left_unseen(now, old, cpu);
        }
    }

    /// A thread believed to run on `cpu` has left it, some time after the last event of that CPU.
    pub(super) fn left_unseen(&mut self, now: Nanos, slot: Slot, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        let known_to = c.charged_to;
        if matches!(c.current(), Some((_, s)) if s == slot) {
            c.clear_stack();
            self.set_current(now, cpu, None);
        }
        self.threads[slot].settle(known_to);
        self.transition(now, slot, State::Lost);
    }

    /// A thread is woken on `cpu`: if that CPU idles and its switches out of idle are never
    /// recorded, the thread runs there from now on ([`Invariant::BlindTakesWoken`]).
    pub(super) fn taken_by_blind(&mut self, now: Nanos, slot: Slot, cpu: Cpu) {
        let Some(c) = self.cpus.known_mut(cpu) else { return };
        if !c.is_blind() || c.current().is_some_and(|(_, slot)| slot != Slot::IDLE) {
            return;
        }
        self.charge(now, cpu);
        self.enters(now, cpu, slot, Some(Slot::IDLE));
        let c = self.cpus.get_mut(cpu);
        c.clear_stack();
        c.switched_unseen(now);
        c.presumed_at = c.charged_to;
        let tid = self.tasks.carrier(slot).unwrap_or(self.threads[slot].tid);
        self.set_current(now, cpu, Some((tid, slot)));
        self.apply(Invariant::BlindTakesWoken, slot);
    }

    /// The thread believed to run on `cpu` by [`Invariant::BlindTakesWoken`] alone moves to another
    /// CPU, or had not been enqueued yet: `cpu` has idled until now.
    pub(super) fn not_taken(&mut self, now: Nanos, slot: Slot, cpu: Cpu) {
        self.charge_as(now, cpu, |c, span| c.idle += span);
        self.transition(now, slot, State::Waking);
        self.threads[slot].since = now;
        self.set_current(now, cpu, Some((holdup_trace::Tid::IDLE, Slot::IDLE)));
    }

    /// Whether `slot` is believed to run on `cpu` by [`Invariant::BlindTakesWoken`] alone.
    pub(super) fn is_presumed(&self, slot: Slot, cpu: Cpu) -> bool {
        self.cpus.get(cpu).is_some_and(|c| {
            c.is_presumed() && matches!(c.current(), Some((_, current)) if current == slot)
        })
    }

    /// A thread that is woken now was believed ready or running after the wake-up before: it slept
    /// in between ([`Invariant::SleepBeforeWake`]).
    #[cold]
    pub(super) fn slept_unseen(&mut self, now: Nanos, slot: Slot) {
        self.apply(Invariant::SleepBeforeWake, slot);
        match self.threads[slot].state {
            State::Running(cpu) => self.left_unseen(now, slot, cpu),
            State::Waking => {
                self.stop_waiting(now, slot, None, Ended::Unseen);
                self.threads[slot].settle(now);
                self.transition(now, slot, State::Lost);
            }
            _ => self.out_of_sight(now, slot),
        }
    }

    /// The trace ends: a thread still queued on an idle CPU is not ready, and a thread only
    /// presumed to run is not known to run.
    pub(super) fn last_of_queues(&mut self, end: Nanos, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        if matches!(c.current(), Some((_, Slot::IDLE))) && !c.queue.is_empty() {
            self.queue_is_empty(end, cpu, end.saturating_sub(ON_THE_WAY));
        }
        let c = self.cpus.get_mut(cpu);
        if let (true, Some((_, slot))) = (c.is_presumed(), c.current()) {
            self.left_unseen(end, slot, cpu);
        }
    }
}

/// At the end of the trace an idle CPU may still be leaving its idle state for this long after a
/// wake-up. The deepest idle states of x86 and arm64 take less than a millisecond to leave; a guest
/// whose virtual CPUs share a CPU of the host has to wait until it is scheduled.
const ON_THE_WAY: Nanos = 10_000_000;
