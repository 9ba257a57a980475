//! Which thread is on a CPU, and what the CPU's time is charged to.

use super::Engine;
use super::invariants::Invariant;
use crate::cpus::{CpuState, Level};
use crate::judge::Ended;
use crate::lanes::Doing;
use crate::past::HolderPart;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::threads::{Thread, Threads, Undecided};
use crate::user_intervals::quarter;
use holdup_trace::{Cpu, Nanos, Pid, Tid};

impl Engine {
    /// The current thread of `cpu` as this event shows it; corrects a wrong belief.
    #[inline(always)]
    pub(super) fn current(&mut self, now: Nanos, cpu: Cpu, tid: Tid, pid: Pid) -> Slot {
        match self.cpus.get_mut(cpu).current() {
            Some((t, slot)) if t == tid => slot,
            _ => self.adopt(now, cpu, tid, pid),
        }
    }

    /// The current thread of `cpu` if it is the believed one. Events that may come from the middle
    /// of a switch must not correct anything.
    pub(crate) fn current_if(&mut self, cpu: Cpu, tid: Tid) -> Option<Slot> {
        if !self.valid(cpu, tid) {
            return None;
        }
        match self.cpus.get_mut(cpu).current() {
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
        if let Some(from) = self.left_idle_unseen(now, cpu, slot) {
            self.charge(from, cpu);
            self.arrives(now, slot, from, from, cpu);
            self.apply(Invariant::IdleTakesWoken, slot);
            let c = self.cpus.get_mut(cpu);
            c.idle_left_unseen = true;
            c.switched_unseen(from);
            self.set_current(now, cpu, Some((tid, slot)));
            return slot;
        }
        self.idle_until_ready(cpu, slot);
        let c = self.cpus.get_mut(cpu);
        let known_to = c.charged_to;
        let first = !c.seen;
        c.seen = true;
        // If this is its first event, the CPU did this all along, unless the thread is known to
        // have done something else meanwhile.
        let all_along = first && (slot == Slot::IDLE || self.threads[slot].state == State::Unseen);
        self.current_left_unseen(now, cpu);
        if !all_along {
            self.charge_as(now, cpu, |c, span| c.unaccounted += span);
            let c = self.cpus.get_mut(cpu);
            c.clear_stack();
            c.switched_unseen(now);
            if !first {
                self.apply(Invariant::CurrentRuns, slot);
            }
        }
        let since = self.cpus.get_mut(cpu).charged_to;
        if slot == Slot::IDLE {
            if !self.cpus.get_mut(cpu).queue.is_empty() {
                self.queue_is_empty(now, cpu, known_to);
            }
        } else {
            // A thread that was ready certainly was until the last event of this CPU.
            self.arrives(now, slot, known_to.min(now), since, cpu);
        }
        self.set_current(now, cpu, Some((tid, slot)));
        self.cpus.get_mut(cpu).busy_since = since;
        slot
    }

    /// A thread turns out to be on `cpu`, and the switch was not recorded: it was in its old state
    /// until `left`, and runs here since `since`; the time in between is unknown.
    fn arrives(&mut self, now: Nanos, slot: Slot, left: Nanos, since: Nanos, cpu: Cpu) {
        self.settle_reason(now, slot);
        let before = self.threads[slot].since;
        match self.threads[slot].state {
            State::Woken(_) | State::Preempted(_) => {
                let left = left.max(self.threads[slot].since);
                let preempted = matches!(self.threads[slot].state, State::Preempted(_));
                self.ready_until(now, slot, left);
                if let (Some(steps), true) = (&mut self.waits.steps, preempted) {
                    steps.arrives(since, slot);
                }
            }
            State::Running(other) if other != cpu => {
                self.apply(Invariant::OneCpu, slot);
                self.left_unseen(now, slot, other);
            }
            State::Blocked | State::Waking => {
                self.stop_waiting(now, slot, None, Ended::Unseen);
                self.threads[slot].settle(since);
            }
            State::Running(_) => self.threads[slot].settle(since),
            State::Unseen | State::New | State::Lost | State::Dead => {}
        }
        let (ready, was) = (self.threads[slot].state.is_ready(), before);
        self.transition(now, slot, State::Running(cpu));
        if let Some(facts) = &mut self.facts {
            let delay = ready.then(|| left.saturating_sub(was));
            facts.run_begins(since, slot, &self.threads[slot], cpu, delay);
        }
        self.threads[slot].since = since;
    }

    /// perf misses every event of some CPUs' idle tasks (seen on 6.18 guests), including switches
    /// out of idle; recordings of some tasks never have them. The CPU was then idle until the
    /// thread now running was woken. If the wake-up is missing too, it was idle until about now: a
    /// thread that slept shows first by returning from its call.
    fn left_idle_unseen(&self, now: Nanos, cpu: Cpu, slot: Slot) -> Option<Nanos> {
        let c = self.cpus.get(cpu)?;
        if slot == Slot::IDLE || !matches!(c.current(), Some((_, Slot::IDLE))) {
            return None;
        }
        let t = &self.threads[slot];
        let here = |queue: Cpu| queue == cpu || queue == Cpu::UNKNOWN;
        match t.state {
            State::Woken(queue) | State::Preempted(queue) if t.is_throttled() && here(queue) => {
                self.came_back(now, slot)
            }
            State::Woken(queue) if here(queue) && t.since >= c.charged_to => Some(t.since),
            State::Waking if t.since >= c.charged_to => Some(t.since),
            State::Blocked => Some(now),
            _ => None,
        }
    }

    /// An idle CPU has pulled a thread from another queue without an event: it idled at least until
    /// that thread was ready. Whether it idled or ran since is unknown.
    fn idle_until_ready(&mut self, cpu: Cpu, slot: Slot) {
        let t = &self.threads[slot];
        if slot != Slot::IDLE
            && t.state.is_ready()
            && matches!(self.cpus.get_mut(cpu).current(), Some((_, Slot::IDLE)))
        {
            self.charge(t.since, cpu);
        }
    }

    pub(super) fn set_current(&mut self, now: Nanos, cpu: Cpu, current: Option<(Tid, Slot)>) {
        if let Some((_, slot)) = self.cpus.get_mut(cpu).current() {
            self.ran(cpu, slot);
        }
        self.note_stay(now, cpu, current.map(|(_, slot)| slot));
        let c = self.cpus.get_mut(cpu);
        let was_running = matches!(c.current(), Some((_, s)) if s != Slot::IDLE);
        let is_running = matches!(current, Some((_, s)) if s != Slot::IDLE);
        draw(c, &self.threads, None);
        c.set_current(current);
        if was_running != is_running {
            c.busy_since = now;
            self.blame.cpu_running(now, is_running);
            if is_running {
                self.cpus.use_one(cpu);
            }
            self.busy = quarter(self.blame.others_running() as usize, self.cpus.used());
        }
        self.refresh_idle(now, cpu);
    }

    /// Tells the blame pass whether this CPU is idle: the idle task with an empty stack.
    #[inline]
    pub(super) fn refresh_idle(&mut self, now: Nanos, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        let idle = matches!(c.current(), Some((_, Slot::IDLE))) && c.stack.is_empty();
        if idle != c.counted_idle {
            c.counted_idle = idle;
            self.blame.cpu_idle(now, idle);
        }
    }

    /// Charge the time of `cpu` up to `now` to what it was doing.
    #[inline]
    pub(crate) fn charge(&mut self, now: Nanos, cpu: Cpu) {
        let c = self.cpus.get_mut(cpu);
        if now >= c.border {
            self.next_bins(now, cpu, &mut charge);
        }
        charge(self.cpus.get_mut(cpu), cpu, &mut self.threads, now);
    }

    /// Charges the time of `cpu` up to `now` to something that no event shows.
    pub(super) fn charge_as(&mut self, now: Nanos, cpu: Cpu, what: fn(&mut CpuState, Nanos)) {
        let mut to = |c: &mut CpuState, _: Cpu, threads: &mut Threads, now: Nanos| {
            draw(c, threads, None);
            let idle = c.idle;
            what(c, now.saturating_sub(c.charged_to));
            c.charged_to = c.charged_to.max(now);
            let what = if c.idle > idle { Doing::Idle } else { Doing::Unknown };
            draw(c, threads, Some(what));
        };
        if now >= self.cpus.get_mut(cpu).border {
            self.next_bins(now, cpu, &mut to);
        }
        to(self.cpus.get_mut(cpu), cpu, &mut self.threads, now);
    }

    /// `cpu` passes borders of the timeline: charges what it did up to each border.
    #[cold]
    #[inline(never)]
    fn next_bins(
        &mut self,
        now: Nanos,
        cpu: Cpu,
        charge: &mut dyn FnMut(&mut CpuState, Cpu, &mut Threads, Nanos),
    ) {
        loop {
            let c = self.cpus.get_mut(cpu);
            if now < c.border {
                return;
            }
            let border = c.border;
            charge(c, cpu, &mut self.threads, border);
            self.close_bin(cpu);
            let c = self.cpus.get_mut(cpu);
            c.bin += 1;
            c.border = self.timeline.grid.border(c.bin);
        }
    }

    /// Adds what `cpu` has done since its bin began to the timeline.
    pub(super) fn close_bin(&mut self, cpu: Cpu) {
        if let Some((_, slot)) = self.cpus.get_mut(cpu).current() {
            self.ran(cpu, slot);
        }
        let c = self.cpus.get_mut(cpu);
        let spent = c.spent();
        let switches = c.switches - std::mem::replace(&mut c.switches_mark, c.switches);
        self.timeline.spent(c.bin, &spent, &c.mark, switches);
        c.mark = spent;
        c.ran_mark = spent.by_threads();
    }

    /// Credits the thread that is or was on `cpu` with its time on the CPU.
    #[inline]
    fn ran(&mut self, cpu: Cpu, slot: Slot) {
        let c = self.cpus.get_mut(cpu);
        let ran = c.spent().by_threads();
        let ns = ran.saturating_sub(c.ran_mark);
        c.ran_mark = ran;
        let bin = c.bin;
        if slot != Slot::IDLE {
            self.timeline.ran(bin, &self.threads[slot], ns, &self.names);
        }
    }
}

/// Draws what a followed CPU did up to the charged time: its current activity, or `what` if no
/// event shows the activity.
#[inline]
pub(super) fn draw(c: &mut CpuState, threads: &Threads, what: Option<Doing>) {
    let who = c.current().map(|(_, slot)| slot);
    let Some(lane) = &mut c.lane else { return };
    match (what, who) {
        (None, Some(slot)) => lane.until(c.charged_to, threads.on_cpu(slot), slot),
        (what, _) => lane.until(c.charged_to, what.unwrap_or(Doing::Unknown), Slot::IDLE),
    }
}

#[inline]
fn charge(c: &mut CpuState, cpu: Cpu, threads: &mut Threads, now: Nanos) {
    let span = now.saturating_sub(c.charged_to);
    if span == 0 {
        return;
    }
    let from = std::mem::replace(&mut c.charged_to, now);
    let Some((_, slot)) = c.current() else {
        c.unaccounted += span;
        return;
    };
    if let Some(top) = c.stack.last() {
        match top.level {
            Level::Irq => c.irq += span,
            Level::Softirq => c.softirq += span,
        }
        if slot != Slot::IDLE {
            let t = &mut threads[slot];
            t.irq_ns += span;
            t.ran(from, now, HolderPart::Interrupted);
        }
        return;
    }
    if slot == Slot::IDLE {
        c.idles(span);
        return;
    }
    let t = &mut threads[slot];
    match t.mode {
        // Whatever its mode: it waits for a lock of the kernel.
        mode if t.spins && mode != Mode::Kthread => {
            c.kernel += span;
            c.lock_spin += span;
            t.kernel_ns += span;
            t.ran(from, now, HolderPart::Spinning);
        }
        mode @ (Mode::User | Mode::Kernel | Mode::Kthread) => {
            spend(c, t, mode, span);
            t.ran(from, now, mode.into());
        }
        Mode::Unknown => {
            t.ran(from, now, HolderPart::User);
            c.undecided += span;
            let bin = c.bin;
            match t.undecided.iter_mut().rev().find(|u| u.cpu == cpu && u.bin == bin) {
                Some(u) => u.span += span,
                None => t.undecided.push(Undecided { cpu, bin, span }),
            }
        }
    }
}

/// Adds `span` on this CPU by this thread in `mode`; an unknown mode counts as application code.
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
