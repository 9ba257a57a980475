//! Threads change their state, and with it the run queues and the counts of [`crate::blame`].

use super::Engine;
use crate::blame::Kind;
use crate::facts::RunEnd;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::threads::Thread;
use holdup_trace::{Cpu, Nanos};

/// How the blame pass counts a thread.
pub(super) fn kind(t: &Thread) -> Kind {
    match t.mode {
        Mode::Unknown => Kind::Unknown,
        Mode::User | Mode::Kernel => Kind::Application,
        Mode::Kthread => Kind::Kernel,
    }
}

impl Engine {
    /// The only place that changes a thread's state; run queues and counts follow. The time up to
    /// `now` must be settled.
    #[inline]
    pub(super) fn transition(&mut self, now: Nanos, slot: Slot, to: State) {
        let from = self.threads[slot].state;
        if from != State::Blocked {
            self.settle_reason(now, slot);
        }
        match (from.is_ready(), to.is_ready()) {
            (true, _) => {
                self.leave_queue(slot, from);
                if !to.is_ready() {
                    self.blame.thread_runnable(now, false);
                }
            }
            (false, true) => self.blame.thread_runnable(now, true),
            (false, false) => {}
        }
        if to.is_ready() {
            self.join_queue(slot, to);
            if !from.is_ready() {
                self.threads[slot].living.ready_mark = self.blame.ready_at(now);
                self.note_queue(slot, to);
            }
        }
        if from.is_active() != to.is_active() {
            self.blame.thread_active(now, slot, kind(&self.threads[slot]), to.is_active());
            self.programs.active(now, &mut self.threads[slot], to.is_active());
        }
        let t = &mut self.threads[slot];
        if let (Some(facts), State::Running(_)) = (&mut self.facts, from) {
            let how = match to {
                State::Preempted(_) => Some(RunEnd::Preempted),
                State::Blocked => Some(RunEnd::Slept),
                State::Dead => Some(RunEnd::Exited),
                State::Running(cpu) if State::Running(cpu) == from => None,
                _ => Some(RunEnd::Unseen),
            };
            if let Some(how) = how {
                facts.run_ends(t.since, slot, t, how);
            }
        }
        if let State::Running(_) = to {
            t.early_wake = None;
        }
        t.state = to;
    }

    /// Notes where a thread becomes ready.
    fn note_queue(&mut self, slot: Slot, state: State) {
        let Some(steps) = &mut self.waits.steps else { return };
        let behind = match state {
            State::Woken(cpu) => self.cpus.get(cpu).and_then(|c| c.current()),
            _ => None,
        };
        let behind = behind.map_or(Slot::IDLE, |c| c.1);
        steps.queues(slot, self.blame.full_ns, behind, self.blame.any_idle());
    }

    fn join_queue(&mut self, slot: Slot, state: State) {
        if let State::Woken(cpu) | State::Preempted(cpu) = state
            && let Some(c) = self.cpus.known_mut(cpu)
        {
            self.threads[slot].living.queue_at = c.queue.len() as u32;
            c.queue.push(slot);
        }
    }

    fn leave_queue(&mut self, slot: Slot, state: State) {
        if let State::Woken(cpu) | State::Preempted(cpu) = state
            && let Some(c) = self.cpus.known_mut(cpu)
        {
            let at = self.threads[slot].living.queue_at as usize;
            if c.queue.get(at) == Some(&slot) {
                c.queue.swap_remove(at);
                if let Some(&moved) = c.queue.get(at) {
                    self.threads[moved].living.queue_at = at as u32;
                }
            }
        }
    }

    /// A ready thread stops being ready, and only its time up to `until` is certain. Settles that
    /// time, takes the rest of its share back from the scheduler's part of idle time, and returns
    /// what it keeps, in 2^-32 ns. The caller sets the new state.
    pub(super) fn ready_until(&mut self, now: Nanos, slot: Slot, until: Nanos) -> u128 {
        if self.threads[slot].is_throttled() {
            self.unthrottle(now, slot, until);
        }
        let t = &mut self.threads[slot];
        let share = self.blame.ready_at(now) - t.living.ready_mark;
        let kept = share.min((until.saturating_sub(t.since) as u128) << crate::cause::FRACTION);
        self.blame.take_back(share - kept);
        t.settle(until);
        kept
    }

    /// `sched_migrate_task`: a thread goes from one queue to another.
    pub(super) fn migrate(&mut self, now: Nanos, slot: Slot, to: Cpu) {
        let t = &mut self.threads[slot];
        t.migrations += 1;
        if t.is_throttled() {
            self.unthrottle(now, slot, now);
        }
        let state = match self.threads[slot].state {
            // Without sched_wakeup it is unknown when the thread joins that queue.
            State::Woken(Cpu::UNKNOWN) if !self.caps.wakeups => return,
            State::Woken(_) => State::Woken(self.queue_of(to)),
            State::Preempted(_) => State::Preempted(self.queue_of(to)),
            State::Running(cpu) if cpu != to && self.is_presumed(slot, cpu) => {
                self.not_taken(now, slot, cpu);
                return self.taken_by_blind(now, slot, to);
            }
            State::Waking => return self.taken_by_blind(now, slot, to),
            _ => return,
        };
        if let Some(steps) = &mut self.waits.steps {
            steps.moves(slot);
        }
        self.transition(now, slot, state);
        self.taken_by_blind(now, slot, to);
    }

    /// The queue of `cpu`, if any event has shown that CPU.
    pub(super) fn queue_of(&self, cpu: Cpu) -> Cpu {
        self.cpus.get(cpu).map_or(Cpu::UNKNOWN, |_| cpu)
    }
}
