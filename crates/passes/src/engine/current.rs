//! Who is on a CPU, and what its time is charged to.

use super::Engine;
use crate::cpus::{CpuState, Level};
use crate::judge::Ended;
use crate::threads::{Mode, Slot, State, Thread, Threads};
use holdup_trace::{Cpu, Nanos, Pid, QualityCode, Tid};

impl Engine {
    /// The current thread of `cpu` as this event shows it, corrected if it was believed another.
    #[inline(always)]
    pub(super) fn current(&mut self, now: Nanos, cpu: Cpu, tid: Tid, pid: Pid) -> Slot {
        match self.cpus.get_mut(cpu).current {
            Some((t, slot)) if t == tid => slot,
            _ => self.adopt(now, cpu, tid, pid),
        }
    }

    /// The current thread of `cpu` if it is the one believed; events that may come from the middle
    /// of a switch must not correct anything.
    pub(crate) fn current_if(&mut self, cpu: Cpu, tid: Tid) -> Option<Slot> {
        if !self.valid(cpu, tid) {
            return None;
        }
        match self.cpus.get_mut(cpu).current {
            Some((t, slot)) if t == tid && slot != Slot::IDLE => Some(slot),
            _ => None,
        }
    }

    #[cold]
    fn adopt(&mut self, now: Nanos, cpu: Cpu, tid: Tid, pid: Pid) -> Slot {
        let slot = self.find_or_add(tid);
        if pid != Pid::UNKNOWN && slot != Slot::IDLE {
            self.threads[slot].pid = pid;
        }
        if let Some(woken) = self.left_idle_unseen(now, cpu, slot) {
            self.charge(woken, cpu);
            if self.threads[slot].state == State::Blocked {
                self.stop_waiting(now, slot, None, Ended::Unseen);
            } else {
                self.blame.thread_runnable(now, false);
            }
            let t = &mut self.threads[slot];
            t.settle(woken);
            t.state = State::Running(cpu);
            self.quality.add(QualityCode::InferredSwitch, 1);
            self.cpus.get_mut(cpu).switched_unseen(woken);
            self.set_current(now, cpu, Some((tid, slot)));
            return slot;
        }
        let c = self.cpus.get_mut(cpu);
        let known_to = c.charged_to;
        let first = !c.seen;
        c.seen = true;
        // The CPU did this all along if this is its first event, and the thread is not known to
        // have done something else meanwhile.
        let all_along = first && (slot == Slot::IDLE || self.threads[slot].state == State::Unseen);
        if !all_along {
            c.unaccounted += now.saturating_sub(c.charged_to);
            c.charged_to = now;
            c.stack.clear();
            c.switched_unseen(now);
            if !first {
                self.quality.add(QualityCode::SwitchGap, 1);
            }
        }
        let since = c.charged_to;
        if let Some((_, old)) = c.current
            && old != Slot::IDLE
        {
            // It left unseen: all that is known is that it is not here any more.
            let t = &mut self.threads[old];
            if t.state == State::Running(cpu) {
                t.settle(known_to);
                t.state = State::Unseen;
                if let Some(call) = &mut t.call {
                    call.leaves_cpu(now, &mut self.crowding);
                }
            }
        }
        if slot != Slot::IDLE {
            self.stop_waiting(now, slot, None, Ended::Unseen);
            let t = &mut self.threads[slot];
            if t.state != State::Unseen {
                t.settle(now);
            }
            if t.is_runnable() {
                self.blame.thread_runnable(now, false);
            }
            let t = &mut self.threads[slot];
            t.state = State::Running(cpu);
            t.since = since;
        }
        self.set_current(now, cpu, Some((tid, slot)));
        slot
    }

    /// perf misses every event of some CPUs' idle tasks (seen on 6.18 guests), the switches out of
    /// idle among them; recordings of some tasks never have them. The CPU was idle then until the
    /// thread now running was woken, or, where that was missed too, until about now: who slept
    /// shows up first by returning from its call.
    fn left_idle_unseen(&self, now: Nanos, cpu: Cpu, slot: Slot) -> Option<Nanos> {
        let c = self.cpus.get(cpu)?;
        if slot == Slot::IDLE || !matches!(c.current, Some((_, Slot::IDLE))) {
            return None;
        }
        let t = &self.threads[slot];
        match t.state {
            State::Woken if t.since >= c.charged_to => Some(t.since),
            State::Blocked => Some(now),
            _ => None,
        }
    }

    pub(super) fn set_current(&mut self, now: Nanos, cpu: Cpu, current: Option<(Tid, Slot)>) {
        let c = self.cpus.get_mut(cpu);
        let was_running = matches!(c.current, Some((_, s)) if s != Slot::IDLE);
        let is_running = matches!(current, Some((_, s)) if s != Slot::IDLE);
        c.current = current;
        if was_running != is_running {
            self.blame.cpu_running(now, is_running);
        }
        self.refresh_idle(now, cpu);
    }

    /// Tell the blame pass whether this CPU is idle: the idle task with nothing on top.
    #[inline]
    pub(super) fn refresh_idle(&mut self, now: Nanos, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        let idle = matches!(c.current, Some((_, Slot::IDLE))) && c.stack.is_empty();
        if idle != c.counted_idle {
            c.counted_idle = idle;
            self.blame.cpu_idle(now, idle);
        }
    }

    /// Charge the time of `cpu` up to `now` to what it was doing.
    #[inline]
    pub(crate) fn charge(&mut self, now: Nanos, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        charge(c, cpu, &mut self.threads, now);
    }
}

#[inline]
fn charge(c: &mut CpuState, cpu: Cpu, threads: &mut Threads, now: Nanos) {
    let span = now.saturating_sub(c.charged_to);
    if span == 0 {
        return;
    }
    c.charged_to = now;
    let Some((_, slot)) = c.current else {
        c.unaccounted += span;
        return;
    };
    if let Some(top) = c.stack.last() {
        match top.level {
            Level::Irq => c.irq += span,
            Level::Softirq => c.softirq += span,
        }
        if slot != Slot::IDLE {
            threads[slot].irq_ns += span;
        }
        return;
    }
    if slot == Slot::IDLE {
        c.idle += span;
        if c.iowaiters > 0 {
            c.iowait += span;
        }
        return;
    }
    let t = &mut threads[slot];
    match t.mode {
        // Whatever it was believed to do: it waits for a lock of the kernel.
        mode if t.spins && mode != Mode::Kthread => {
            c.kernel += span;
            c.lock_spin += span;
            t.kernel_ns += span;
        }
        mode @ (Mode::User | Mode::Kernel | Mode::Kthread) => spend(c, t, mode, span),
        Mode::Unknown => {
            c.undecided += span;
            match t.undecided.iter_mut().find(|u| u.0 == cpu) {
                Some(u) => u.1 += span,
                None => t.undecided.push((cpu, span)),
            }
        }
    }
}

/// `span` more on this CPU by this thread, doing what `mode` says; what is not known counts as
/// application code.
#[inline(always)]
pub(super) fn spend(c: &mut CpuState, t: &mut Thread, mode: Mode, span: Nanos) {
    match mode {
        Mode::User | Mode::Unknown => {
            c.user += span;
            t.user_ns += span;
        }
        Mode::Kernel => {
            c.kernel += span;
            t.kernel_ns += span;
        }
        Mode::Kthread => {
            c.kthread += span;
            t.kernel_ns += span;
        }
    }
}
