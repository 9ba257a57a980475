//! Threads get CPUs and lose them.

use super::Engine;
use super::invariants::Invariant;
use crate::facts::{Fact, Switch};
use crate::judge::{Ended, is_for_device};
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::steps::From;
use crate::waits::{Object, Progress};
use holdup_trace::{Cpu, Event, EventKind, NameId, Nanos, Pid, QualityCode, TaskState, Tid};

impl Engine {
    pub(super) fn switch(
        &mut self,
        now: Nanos,
        cpu: Cpu,
        prev_pid: Pid,
        prev: (Tid, NameId),
        state: TaskState,
        next: Option<(Tid, NameId)>,
    ) {
        let p = self.current(now, cpu, prev.0, prev_pid);
        self.charge(now, cpu);
        let c = self.cpus.get_mut(cpu);
        if !c.stack.is_empty() {
            // Interrupts cannot be switched out of: their exits were lost.
            self.quality.add(QualityCode::UnmatchedIrq, c.stack.len() as u64);
            c.clear_stack();
        }
        // perf takes the start of a stay from the CPU's previous switch, and counts the first as 0.
        let stay = if c.last_switch == 0 { 0 } else { now - c.last_switch };
        let known = c.last_switch != 0;
        c.switched(now);
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
            self.untraced_is_said();
        } else {
            self.cpus.get_mut(cpu).idle_left_seen = true;
        }
        let n = next.map(|(next, _)| self.find_or_add(next));
        if let Some(facts) = &mut self.facts {
            let stay = known.then_some(stay);
            let switch = Switch { at: now, cpu, prev: Some(p), state, next: n, stay };
            facts.rows.push(Fact::Switch(switch));
        }
        let (Some((next, next_comm)), Some(n)) = (next, n) else {
            self.set_current(now, cpu, None);
            return;
        };
        if n != Slot::IDLE {
            self.name(n, next_comm);
            if p != Slot::IDLE && known && state.is_runnable() {
                self.note_slice(now, n, stay);
            }
            self.enters(now, cpu, n, Some(p));
            self.gets_cpu(now, n);
        } else if !self.cpus.get_mut(cpu).queue.is_empty() {
            if p != Slot::IDLE && state.is_runnable() {
                self.throttle(now, p);
            }
            self.queue_is_empty(now, cpu, now);
        }
        self.set_current(now, cpu, Some((next, n)));
        if !self.system_wide && n != Slot::IDLE {
            // A thread that was not recorded never shows when it leaves.
            let c = self.cpus.get_mut(cpu);
            c.presumed_at = c.charged_to;
        }
    }

    /// A switch that does not name the previous thread, such as the first in Perfetto's lists: what
    /// the CPU did until now is unknown.
    #[cold]
    pub(super) fn switch_from_unknown(&mut self, now: Nanos, cpu: Cpu, next: Tid, comm: NameId) {
        self.current_left_unseen(now, cpu);
        self.charge_as(now, cpu, |c, span| c.unaccounted += span);
        let c = self.cpus.get_mut(cpu);
        c.seen = true;
        c.clear_stack();
        c.switched(now);
        let slot = self.find_or_add(next);
        if let Some(facts) = &mut self.facts {
            let (state, next) = (TaskState::UNKNOWN, Some(slot));
            facts.rows.push(Fact::Switch(Switch {
                at: now,
                cpu,
                prev: None,
                state,
                next,
                stay: None,
            }));
        }
        if slot != Slot::IDLE {
            self.name(slot, comm);
            self.enters(now, cpu, slot, None);
            self.gets_cpu(now, slot);
        }
        self.set_current(now, cpu, Some((next, slot)));
    }

    /// A thread's wait for its CPU is over.
    fn gets_cpu(&mut self, now: Nanos, slot: Slot) {
        let t = &mut self.threads[slot];
        if let Some(delay) = t.latency.switch_in(now)
            && !t.is_kthread()
        {
            self.delays.add(delay);
        }
    }

    /// A thread loses its CPU to `next` after this stay.
    fn note_slice(&mut self, now: Nanos, next: Slot, stay: Nanos) {
        let t = &self.threads[next];
        if let (Some(steps), true) = (&mut self.waits.steps, t.state.is_ready()) {
            steps.slice_ends(stay, now.saturating_sub(t.since));
        }
    }

    /// A thread leaves its CPU in `state`.
    fn leaves(&mut self, now: Nanos, cpu: Cpu, slot: Slot, state: TaskState) {
        let t = &mut self.threads[slot];
        t.settle(now);
        t.leaves_cpu(cpu);
        let ran = t.running_ns;
        if let Some(steps) = &mut self.waits.steps {
            steps.ran(now, slot, ran);
        }
        let t = &mut self.threads[slot];
        if let Some(throttle) = &mut t.throttle {
            let ran = t.running_ns - throttle.ran_to;
            self.throttles.entry(t.group).or_default().ran(ran);
            throttle.ran_to = t.running_ns;
        }
        if state.has_unknown() {
            self.quality.add(QualityCode::UnknownState, 1);
        }
        if state.is_unknown() {
            self.transition(now, slot, State::Lost);
            return;
        }
        let t = &mut self.threads[slot];
        if state.is_runnable() {
            t.involuntary += 1;
            self.transition(now, slot, State::Preempted(cpu));
            return;
        }
        t.voluntary += 1;
        if state.is_dead()
            || t.exiting && !state.is_uninterruptible() && state != TaskState::INTERRUPTIBLE
        {
            t.died = Some(now);
            let tid = self.tasks.carrier(slot).unwrap_or(t.tid);
            if let Some(call) = t.living.call.take() {
                let stats = t.living.calls.entry(call.nr);
                stats.pending += 1;
                stats.pending_ns += now - call.start;
                if call.inside {
                    self.costs.leave();
                }
            }
            self.threads.forget(tid);
            self.transition(now, slot, State::Dead);
            return self.ended(slot);
        }
        self.transition(now, slot, State::Blocked);
        let t = &mut self.threads[slot];
        (t.living.waker, t.living.softirqd) = (None, None);
        t.uninterruptible = state.is_uninterruptible();
        t.living.reason = None;
        if let Some(call) = &mut t.living.call
            && call.inside
            && t.contending == 0
            && !t.uninterruptible
        {
            call.inside = false;
            self.costs.leave();
        }
        if state.is_idle_kthread() {
            // Only kernel threads sleep in this state.
            self.decide(slot, Mode::Kthread);
        }
        let t = &self.threads[slot];
        // Nor does the recorder's own sleep delay any thread.
        if t.mode == Mode::Kthread || t.records {
            return;
        }
        self.sleeps_untraced(now, cpu, slot);
        let t = &self.threads[slot];
        let kind = self.sleep_kind(slot);
        let mut device = t.contending == 0 && is_for_device(kind, self.outside, None);
        if t.uninterruptible && !device && !self.reasons {
            device = self.sleeps_for(cpu, slot, kind);
        }
        let t = &self.threads[slot];
        // If the kernel gives reasons of such sleeps, any may turn out to be for I/O.
        if t.uninterruptible && (device || self.reasons) {
            let t = &mut self.threads[slot];
            if let Some(before) = t.living.iowait_cpu.replace(cpu) {
                self.cpus.get_mut(before).io_ends(slot, false);
            }
            self.cpus.get_mut(cpu).io_begins(slot);
        }
        let object = {
            let threads = &self.threads;
            let t = &threads[slot];
            // A thread of its own process, as far as processes are known.
            let is_sibling = |tid| {
                threads.get(Tid(tid)).is_some_and(|other| {
                    let pid = threads[other].pid;
                    pid == t.pid || pid == Pid::UNKNOWN || t.pid == Pid::UNKNOWN
                })
            };
            self.waits.object(slot, t, kind, t.living.contended, is_sibling)
        };
        self.begins_to_wait(now, slot, object);
    }

    /// How long a thread has run until now, and where.
    pub(super) fn progress(&self, now: Nanos, slot: Slot) -> Progress {
        let t = &self.threads[slot];
        Progress { now, ran: t.running_ns, cpu: t.last_cpu() }
    }

    /// A thread that sleeps from now on sleeps for this object.
    pub(super) fn begins_to_wait(&mut self, now: Nanos, slot: Slot, object: Object) {
        let mark = self.blame.integral_at(now);
        let progress = self.progress(now, slot);
        self.waits.falls_asleep(slot, progress);
        self.waits.begins(now, slot, object, mark);
        if (self.judge.counts)(&self.sleep(slot, object)) {
            let mark = self.blame.wait_begins(now);
            self.threads[slot].living.blame_mark = Some(mark);
        }
    }

    /// A thread gets a CPU `from` another thread (it was queued) or from the idle task (it waited
    /// for the CPU to wake up).
    pub(super) fn enters(&mut self, now: Nanos, cpu: Cpu, slot: Slot, from: Option<Slot>) {
        self.settle_reason(now, slot);
        let from_idle = from == Some(Slot::IDLE);
        let trust_wakeups = self.caps.wakeups && !self.lost;
        let woken = self.threads[slot].since;
        let before = self.threads[slot].state;
        match self.threads[slot].state {
            State::Woken(_) | State::Preempted(_) => {
                self.waited_behind(now, cpu, slot, woken);
                let share = self.ready_until(now, slot, now);
                let t = &mut self.threads[slot];
                let delay = now - woken;
                if let (Some(steps), false) = (&mut self.waits.steps, from_idle) {
                    steps.waited_while_idle(slot, (share >> crate::cause::FRACTION) as Nanos);
                }
                if !from_idle {
                    t.queued_ns += delay;
                    // A thread that wakes another and goes to sleep hands its CPU over.
                    if from.is_some() && from == t.living.waker {
                        t.handed_ns += delay;
                    }
                }
                if from_idle
                    && matches!(t.state, State::Woken(_))
                    && let Some(key) = self.waits.resumes(slot, delay)
                {
                    self.blame.move_to(key, share);
                }
            }
            // Its sched_wakeup is missing: when it joined the queue is unknown.
            State::Waking => {
                self.stop_waiting(now, slot, None, Ended::Unseen);
                self.threads[slot].settle(now);
                if from_idle {
                    self.waits.resumes(slot, now - woken);
                }
            }
            State::Blocked => {
                self.stop_waiting(now, slot, None, Ended::Unseen);
                let t = &mut self.threads[slot];
                if t.early_wake.is_some() {
                    // Woken before it had left its CPU: it never slept.
                    t.was(State::Woken(Cpu::UNKNOWN), t.since, now);
                    t.since = now;
                } else {
                    t.settle(now);
                    if self.caps.wakeups {
                        self.apply(Invariant::WakeBeforeRun, slot);
                    }
                }
            }
            State::Unseen => {
                // No thread woke it, so it was ready all along (or wake-ups are not known); but not
                // while this CPU idled, see [`Invariant::IdleQueueEmpty`].
                let busy_since = self.cpus.get_mut(cpu).busy_since;
                let queued = if from_idle { now } else { busy_since.max(woken) };
                let t = &mut self.threads[slot];
                if !trust_wakeups {
                    t.was(State::Blocked, woken, now);
                } else {
                    t.was(State::Woken(cpu), queued, now);
                    if queued > woken {
                        self.apply(Invariant::IdleQueueEmpty, slot);
                    }
                }
            }
            State::Running(other) if other != cpu => {
                self.apply(Invariant::OneCpu, slot);
                self.left_unseen(now, slot, other);
            }
            State::Running(_) => self.threads[slot].settle(now),
            State::New | State::Lost | State::Dead => {}
        }
        let t = &self.threads[slot];
        if let Some(steps) = &mut self.waits.steps {
            let full = self.blame.full_ns;
            let since = self.cpus.get_mut(cpu).busy_since;
            let whom = from.unwrap_or(Slot::IDLE);
            let preempted = matches!(self.threads[whom].state, State::Preempted(_));
            let from =
                From { full, since, whom, preempted, idle: from_idle, wakeups: trust_wakeups };
            steps.enters(now, slot, before, t, cpu, from);
        }
        self.transition(now, slot, State::Running(cpu));
        self.untraced_call_is_over(slot);
        let t = &mut self.threads[slot];
        if let Some(facts) = &mut self.facts {
            facts.run_begins(now, slot, t, cpu, before.is_ready().then(|| now - woken));
        }
        if !self.caps.migrations && t.last_cpu != Cpu::UNKNOWN && t.last_cpu != cpu {
            t.migrations += 1;
        }
        t.since = now;
        if let Some(call) = &mut t.living.call
            && !call.inside
        {
            call.inside = true;
            self.costs.enter();
        }
    }

    /// The poorer event: it lacks the sleep state, and per task it does not name the next thread.
    pub(super) fn context_switch(
        &mut self,
        now: Nanos,
        cpu: Cpu,
        e: &Event,
        out: bool,
        preempt: bool,
        other: Tid,
    ) {
        let current = self.cpus.get_mut(cpu).current().map(|(tid, _)| tid);
        let recorded = self.recorded.has(EventKind::Switch);
        // System-wide it repeats `sched_switch`. In a recording of some tasks only this event says
        // when they get a CPU, because `sched_switch` belongs to the thread that leaves.
        if recorded && (self.system_wide || out && current != Some(e.tid)) {
            return;
        }
        if out {
            let state = if preempt { TaskState::PREEMPTED } else { TaskState::INTERRUPTIBLE };
            let next = (other != Tid::UNKNOWN).then_some((other, NameId::NONE));
            self.switch(now, cpu, e.pid, (e.tid, NameId::NONE), state, next);
            return;
        }
        if current.is_none() {
            self.charge(now, cpu);
            let c = self.cpus.get_mut(cpu);
            (c.seen, c.last_switch) = (true, now);
            let slot = self.find_or_add(e.tid);
            if slot != Slot::IDLE {
                self.enters(now, cpu, slot, None);
            }
            self.set_current(now, cpu, Some((e.tid, slot)));
        } else {
            self.current(now, cpu, e.tid, e.pid);
            self.charge(now, cpu);
        }
    }

    /// A thread ends (PERF_RECORD_EXIT). In a recording of some tasks this is its last event: the
    /// kernel removes its events before it leaves its CPU.
    pub(super) fn task_end(&mut self, now: Nanos, cpu: Cpu, tid: Tid) {
        let Some(slot) = self.threads.get(tid).filter(|&s| s != Slot::IDLE && !self.system_wide)
        else {
            return;
        };
        match self.threads[slot].state {
            State::Running(on) if on == cpu => {
                self.charge(now, cpu);
                let since = self.cpus.get_mut(cpu).last_switch;
                let stay = if since == 0 { 0 } else { now.saturating_sub(since) };
                let t = &mut self.threads[slot];
                (t.stays, t.stays_ns) = (t.stays + 1, t.stays_ns + stay);
                self.leaves(now, cpu, slot, TaskState::DEAD);
                self.set_current(now, cpu, None);
            }
            State::Running(on) => self.left_unseen(now, slot, on),
            state if state.is_ready() => self.out_of_sight(now, slot),
            _ => {
                self.stop_waiting(now, slot, None, Ended::Unseen);
                self.threads[slot].settle(now);
            }
        }
        if self.threads[slot].state != State::Dead {
            self.threads[slot].died = Some(now);
            self.threads.forget(tid);
            self.transition(now, slot, State::Dead);
        }
    }
}
