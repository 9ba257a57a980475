//! Threads are woken: by which thread or interrupt, and what their waits were for.

use super::Engine;
use crate::blame::{Over, WaitSum};
use crate::cpus::{Frame, Level, MAX_CPUS};
use crate::facts::{Fact, Slept, WakeEvent, Wakeup};
use crate::judge::{
    Activity, BlockedFor, Ended, HandOver, Outside, Sleep, WaitEnd, Waker, is_for_device,
};
use crate::lanes::SleptFor;
use crate::past::HolderDid;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::threads::{EarlyWake, Thread, role};
use crate::unsettled::Unsettled;
use crate::waits::{End, Finished, Object};
use holdup_syscalls::WaitKind;
use holdup_trace::{Cpu, Event, NameId, Nanos, Pid, Tid, What};

/// `NET_RX`: on the loopback this softirq runs on top of the sender, which is then the true waker.
const NET_RX: u32 = 3;
/// Longest time between a device's interrupt and the softirq that it requested.
const FROM_IRQ: Nanos = 10_000;

impl Engine {
    /// `sched_waking` (`early`) or `sched_wakeup`; `target` is the CPU the thread goes to, as far
    /// as the kernel knows yet.
    pub(super) fn wakeup(
        &mut self,
        now: Nanos,
        e: &Event,
        (tid, comm): (Tid, NameId),
        target: Cpu,
        early: bool,
    ) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        self.cpus.target(target);
        let waker = self.waker(now, e, tid);
        let slot = self.find_or_add(tid);
        let waker = waker.filter(|&(w, _)| self.may_wake(w, slot));
        // The thread below an interrupt has nothing to do with it. `sched_wakeup` is in an
        // interrupt too where the waker runs on another CPU.
        let waker = waker.filter(|_| !matches!(e.what, What::Waking { in_irq: true, .. }));
        let waker = match self.threads[slot].early_wake {
            // The kernel completes it on that CPU, on top of whatever thread is there by then.
            Some(EarlyWake { waker: Some(first) }) if !early => Some(first),
            _ => waker,
        };
        self.name(slot, comm);
        if self.threads[slot].state == State::Blocked {
            self.threads[slot].living.softirqd = self.softirqd(e.cpu);
        }
        if !early || !self.caps.wakeups {
            self.threads[slot].latency.wakeup(now);
        }
        let event = if early { WakeEvent::Waking } else { WakeEvent::Wakeup };
        self.note_wakeup(e.cpu, event, slot, waker, target);
        self.wake(now, slot, waker, target, early);
    }

    fn note_wakeup(
        &mut self,
        cpu: Cpu,
        event: WakeEvent,
        slot: Slot,
        waker: Option<(Slot, bool)>,
        target: Cpu,
    ) {
        if let Some(facts) = &mut self.facts {
            let waker = waker.map(|w| w.0);
            facts.rows.push(Fact::Wakeup(Wakeup { at: self.now, event, cpu, slot, waker, target }));
        }
    }

    pub(super) fn wakeup_new(
        &mut self,
        now: Nanos,
        e: &Event,
        (tid, comm): (Tid, NameId),
        target: Cpu,
    ) {
        if tid == Tid::IDLE || tid == Tid::UNKNOWN {
            return;
        }
        self.cpus.target(target);
        let slot = match self.threads.get(tid) {
            Some(slot) if matches!(self.threads[slot].state, State::New | State::Unseen) => slot,
            // Fork events are not recorded, or the id is used again and its exit was lost.
            _ => self.threads.insert(Thread::new(tid, now, State::New)),
        };
        let waker = self.waker(now, e, tid);
        let t = &mut self.threads[slot];
        if t.state == State::Unseen {
            (t.state, t.born, t.since) = (State::New, now, now);
        }
        self.begins(now, e, slot);
        let t = &mut self.threads[slot];
        t.latency.wakeup(now);
        self.name(slot, comm);
        self.note_wakeup(e.cpu, WakeEvent::New, slot, waker, target);
        self.wake(now, slot, waker, target, false);
    }

    pub(super) fn wake(
        &mut self,
        now: Nanos,
        slot: Slot,
        waker: Option<(Slot, bool)>,
        target: Cpu,
        early: bool,
    ) {
        if !self.system_wide && self.threads[slot].state == State::Unseen {
            // A recorded task wakes one that may not be recorded, and would be ready for ever.
            return;
        }
        self.settle_reason(now, slot);
        match self.threads[slot].state {
            State::Running(cpu) if self.is_presumed(slot, cpu) => {
                if early || !self.cpus.get_mut(cpu).is_blind() {
                    self.slept_unseen(now, slot);
                } else {
                    self.not_taken(now, slot, cpu);
                }
            }
            // Woken while a wake-up is in progress, or again without having run.
            State::Waking if early => self.slept_unseen(now, slot),
            State::Woken(_) if self.caps.wakeups => self.slept_unseen(now, slot),
            _ => {}
        }
        match self.threads[slot].state {
            State::Blocked | State::Unseen | State::New | State::Lost => {
                let counted = self.threads[slot].living.blame_mark.is_some();
                self.stop_waiting(now, slot, waker, Ended::Woken);
                if self.threads[slot].state == State::Unseen {
                    let since = self.threads[slot].since;
                    self.waits.slept_before(slot, since, now, waker.map(|w| w.0));
                    self.note_sleep(now, slot, waker.map(|w| w.0));
                }
                let t = &mut self.threads[slot];
                match t.state {
                    State::Unseen => t.was(State::Blocked, t.since, now),
                    _ => t.settle(now),
                }
                t.since = now;
                t.living.waker = waker.map(|w| w.0);
                if !early {
                    self.ready(now, slot, target);
                } else if self.caps.wakeups {
                    self.transition(now, slot, State::Waking);
                    if counted && self.threads[slot].living.unsettled.is_none() {
                        self.wake_up_begins(now, slot);
                    }
                    self.taken_by_blind(now, slot, target);
                } else {
                    // Still on its way: it must not be taken for a thread that is on the queue.
                    self.ready(now, slot, Cpu::UNKNOWN);
                    self.taken_by_blind(now, slot, target);
                }
            }
            State::Waking => {
                // Between waking and wakeup the kernel chose a CPU: the thread was not yet ready.
                self.end_wake_up(now, slot);
                self.threads[slot].settle(now);
                self.ready(now, slot, target);
            }
            State::Running(_) => self.threads[slot].early_wake = Some(EarlyWake { waker }),
            State::Woken(_) | State::Preempted(_) | State::Dead => {}
        }
    }

    /// A thread is on the run queue of `target` from now on.
    fn ready(&mut self, now: Nanos, slot: Slot, target: Cpu) {
        let queue = self.queue_of(target);
        self.transition(now, slot, State::Woken(queue));
        self.joins_throttled(now, slot, queue);
        self.taken_by_blind(now, slot, target);
    }

    /// A thread that took part in sharing idle time goes on doing so during its wake-up, if the
    /// wake-up is part of the cost of the wait.
    pub(super) fn wake_up_begins(&mut self, now: Nanos, slot: Slot) {
        if self.waits.wake_up_costs(slot) {
            let mark = self.blame.wait_begins(now);
            self.threads[slot].living.blame_mark = Some(mark);
        }
    }

    /// The wake-up of a thread is over: its share of idle time since `sched_waking` belongs to the
    /// wait before.
    fn end_wake_up(&mut self, now: Nanos, slot: Slot) {
        if let Some(mark) = self.threads[slot].living.blame_mark.take() {
            let share = self.blame.wait_ends(now, mark);
            let from = self.threads[slot].since;
            if let Some(key) = self.waits.last_wait(slot) {
                let over = Over { from, g_from: mark, to: now, g_to: mark + share };
                let sum = WaitSum { waits: 0, wait_ns: now - from, share };
                self.blame.attribute(key, sum, &over);
            }
        }
    }

    /// The thread that ends the sleep of `sleeper` by this event, unless an interrupt does; and
    /// whether certainly nothing ran on top of that thread.
    fn waker(&mut self, now: Nanos, e: &Event, sleeper: Tid) -> Option<(Slot, bool)> {
        if e.cpu.0 >= MAX_CPUS {
            return None;
        }
        let slot = if e.tid == Tid::UNKNOWN {
            // A thread that ends wakes who waits for it when its number is released already. Where
            // a format never says which thread it was, nothing is known.
            let slot = self.cpus.get_mut(e.cpu).current()?.1;
            if !self.threads[slot].exiting {
                return None;
            }
            slot
        } else {
            self.current(now, e.cpu, e.tid, e.pid)
        };
        let c = self.cpus.get_mut(e.cpu);
        let on_top = c.stack.last().copied();
        let own = c.stack.len() == 1 && c.stack[0].start > c.irq_left + FROM_IRQ;
        if slot == Slot::IDLE {
            return None;
        }
        let t = &self.threads[slot];
        match on_top {
            Some(Frame { level: Level::Softirq, id: NET_RX, .. }) if t.living.call.is_some() => {
                Some((slot, false))
            }
            // What an untraced call sends within the machine arrives in a softirq without an
            // interrupt before it; what a device brings arrives in a softirq after the device's.
            Some(Frame { level: Level::Softirq, id: NET_RX, .. })
                if own
                    && self.caps.irqs
                    && t.mode != Mode::Kthread
                    && self.awaits_a_peer(sleeper) =>
            {
                Some((slot, false))
            }
            Some(_) => None,
            // No interrupt releases a lock of the kernel on which threads sleep: that thread took a
            // page fault, whose end is not an event.
            None if self.sleeps_for_lock(sleeper) => Some((slot, true)),
            // Application code wakes no thread: an interrupt that was not recorded did. But the
            // thread may be in an untraced call, or end because of a signal.
            None if t.mode == Mode::User && !t.exiting && self.outside != Outside::UntracedCall => {
                None
            }
            None => Some((slot, self.caps.irqs || self.caps.softirqs)),
        }
    }

    /// Whether the thread sleeps in a call that waits for events of files, or in one that only its
    /// switch event showed.
    fn awaits_a_peer(&self, sleeper: Tid) -> bool {
        self.threads.get(sleeper).is_some_and(|slot| {
            self.threads[slot].living.untraced.is_some()
                || self.sleep_kind(slot).is_some_and(WaitKind::is_event)
        })
    }

    /// Between `contention_begin` and `contention_end`.
    fn sleeps_for_lock(&self, sleeper: Tid) -> bool {
        self.threads.get(sleeper).is_some_and(|slot| {
            let t = &self.threads[slot];
            t.state == State::Blocked && t.contending > 0
        })
    }

    /// Whether `waker` may end the sleep. Outside recorded calls it may be in an untraced call, but
    /// no untraced call ends a sleep in a contended call, until a time, or for a child.
    fn may_wake(&self, waker: Slot, sleeper: Slot) -> bool {
        let t = &self.threads[waker];
        if self.outside != Outside::UntracedCall || t.mode != Mode::User || t.exiting {
            return true;
        }
        let kind = self.sleep_kind(sleeper);
        !kind.is_some_and(|k| {
            k.is_for_contention() || matches!(k, WaitKind::Timer | WaitKind::Child)
        })
    }

    /// The `ksoftirqd` that runs a softirq on `cpu`. Unlike an interrupt, it waits for its CPU like
    /// any thread, and threads that wait for its work wait for that too.
    fn softirqd(&mut self, cpu: Cpu) -> Option<Slot> {
        self.waits.steps.as_ref()?;
        let c = self.cpus.known_mut(cpu)?;
        let [Frame { level: Level::Softirq, .. }] = c.stack[..] else { return None };
        let current = c.current()?.1;
        let name = self.names.bytes(self.threads[current].comm);
        name.starts_with(b"ksoftirqd/").then_some(current)
    }

    /// Records a sleep about which only the waker is known.
    fn note_sleep(&mut self, now: Nanos, slot: Slot, waker: Option<Slot>) {
        let waker = waker.or(self.threads[slot].living.softirqd);
        let Some(steps) = &mut self.waits.steps else { return };
        let waker = waker.map(|w| (w, self.threads[w].running_at(now)));
        steps.slept((self.threads[slot].since, now), slot, Object::OTHER, waker);
    }

    /// If the thread is asleep, settles what the sleep was for; if the reason may still come, all
    /// else.
    pub(super) fn stop_waiting(
        &mut self,
        now: Nanos,
        slot: Slot,
        waker: Option<(Slot, bool)>,
        ended: Ended,
    ) {
        self.settle_reason(now, slot);
        if self.threads[slot].state == State::Waking {
            return self.end_wake_up(now, slot);
        }
        let t = &mut self.threads[slot];
        let mark = t.living.blame_mark.take();
        if let Some(lane) = &mut t.lane {
            lane.slept = None;
        }
        if let Some(past) = &mut t.past {
            past.wakes();
        }
        let Some(wait) = self.waits.take(slot) else {
            self.io_ends(now, slot, ended);
            // What a kernel thread sleeps for does not count as a wait.
            if self.threads[slot].state == State::Blocked && ended != Ended::Trace {
                self.note_sleep(now, slot, waker.map(|w| w.0));
            }
            return;
        };
        let since = self.threads[slot].since;
        let g = match mark {
            Some(mark) => self.blame.wait_ends(now, mark) + mark,
            None => self.blame.integral_at(now),
        };
        let nr = self.threads[slot].living.sleeps_in();
        // Time alone ends a nap, whichever thread was running at that moment.
        let napped = self.waits.naps(slot, wait.object)
            && nr.is_some_and(|nr| self.wait_kind(nr) == WaitKind::Timer);
        let waits = &self.waits;
        let in_call = |w: Slot| {
            let t = &self.threads[w];
            t.living.call.is_some() || t.exiting || t.is_kthread()
        };
        let can_wake = |w: Slot| waits.can_wake(wait.object, slot, w, in_call(w));
        let waker = waker.filter(|w| !napped && can_wake(w.0));
        let end = End {
            waker: waker.map(|w| w.0),
            direct: waker.is_some_and(|w| w.1),
            early: self.threads[slot].early_wake.is_some(),
        };
        if let Some(w) = end.waker {
            if self.sleep_kind(slot).is_some_and(WaitKind::is_event)
                && self.hands_over(w, slot, end.direct).is_some()
            {
                self.threads[w].hands_over = true;
            }
            let waker = &mut self.threads[w];
            waker.ended_wait_ns += now - since;
            if let Some(call) = &mut waker.living.call {
                call.woke = true;
            }
        }
        if ended != Ended::Trace {
            let by = end.waker.or(self.threads[slot].living.softirqd);
            let by = by.map(|w| (w, self.threads[w].running_at(now)));
            self.waits.slept((wait.start, now), slot, wait.object, by);
        }
        let over = Unsettled { wait, now, end, ended, g, counted: mark.is_some() };
        if ended == Ended::Woken && self.awaits_reason(slot) {
            let t = &mut self.threads[slot];
            t.living.unsettled = Some(Box::new(over));
            if let Some(lane) = &mut t.lane {
                lane.awaits_reason();
            }
        } else {
            self.judge_sleep(now, slot, over);
        }
    }

    /// A CPU that may have idled because of a wait for I/O no longer does.
    fn io_ends(&mut self, now: Nanos, slot: Slot, ended: Ended) {
        let Some(cpu) = self.threads[slot].living.iowait_cpu.take() else { return };
        let t = &self.threads[slot];
        let said = self.blocked_for(slot);
        let said = said.or_else(|| self.is_silent(slot, ended).then_some(BlockedFor::Unsaid));
        let kind = self.sleep_kind(slot);
        let io = t.contending == 0 && is_for_device(kind, self.outside, said);
        // Charge the CPU's idle time with the waiter still counted.
        if !self.cpus.get_mut(cpu).is_presumed() {
            self.charge(now, cpu);
        }
        self.cpus.get_mut(cpu).io_ends(slot, io);
    }

    /// Everything is known about a sleep that ever will be: judges what it was for.
    pub(super) fn judge_sleep(&mut self, now: Nanos, slot: Slot, over: Unsettled) {
        let Unsettled { wait, now: over_at, end, ended, g, counted } = over;
        self.io_ends(now, slot, ended);
        let wait = self.blocked_in(over_at, slot, wait);
        let nr = self.threads[slot].living.sleeps_in();
        let facts = self.wait_end(over_at, slot, &end, wait.object, ended);
        let cause = (self.judge.cause)(&facts);
        if let Some(lane) = &mut self.threads[slot].lane {
            lane.learn(SleptFor { cause, object: wait.object, waker: end.waker });
        }
        if let Some(past) = &mut self.threads[slot].past {
            let kind = self.waits.kind_of(wait.object);
            past.learn(HolderDid::slept(cause, kind, wait.object, nr));
        }
        let finished = Finished { slot, wait, now: over_at, end, facts, cause, nr, g, counted };
        let waker = end.waker.map(|w| &self.threads[w]);
        let counted = self.waits.ends(&finished, waker, &mut self.blame);
        let timed_out = end.waker.is_none() && !end.early;
        let progress = self.progress(over_at, slot);
        let comm = self.threads[slot].comm;
        self.waits.wakes_up((slot, comm), progress, wait.object, timed_out);
        if let (Some(facts), Some(object)) = (&mut self.facts, counted) {
            let (start, waker) = (wait.start, end.waker);
            let slept = Slept { start, end: over_at, slot, object, cause, nr, waker, ended };
            facts.rows.push(Fact::Wait(slept));
        }
    }

    /// What is known about a sleeping thread.
    pub(super) fn sleep(&self, slot: Slot, object: Object) -> Sleep {
        let t = &self.threads[slot];
        Sleep {
            kind: self.sleep_kind(slot),
            uninterruptible: t.uninterruptible,
            contending: t.contending > 0,
            join: self.waits.is_join(object),
            outside: self.outside,
            idle_before: self.waits.idle_before(slot, object),
            peer_before: self.waits.peer_before(object),
            blocked_for: self.blocked_for(slot),
            retries: self.waits.retries(slot, object),
        }
    }

    /// What is known about a sleep that has ended.
    fn wait_end(
        &mut self,
        now: Nanos,
        slot: Slot,
        end: &End,
        object: Object,
        ended: Ended,
    ) -> WaitEnd {
        let t = &self.threads[slot];
        let activity =
            Activity::of(t.active_ns(), now.saturating_sub(t.born.max(self.start)), self.rare_pct);
        let mut sleep = self.sleep(slot, object);
        if sleep.blocked_for.is_none() && self.is_silent(slot, ended) {
            sleep.blocked_for = Some(BlockedFor::Unsaid);
        }
        let between_processes = self.waits.between(object, slot, end.waker);
        let waker = end.waker.map(|w| {
            // A thread that never wakes its siblings waits for work, not for a lock.
            let may = sleep.kind.is_some_and(WaitKind::is_event) && self.threads[slot].hands_over;
            Waker {
                kthread: self.threads[w].is_kthread(),
                // Names are compared only where nothing better is known.
                same_program: self.outside == Outside::Unknown && self.same_program(slot, w),
                hands_over: may.then(|| self.hands_over(w, slot, end.direct)).flatten(),
            }
        });
        WaitEnd {
            sleep,
            ended,
            waker,
            wakers_complete: self.caps.wakers && !self.lost,
            // This looks at every CPU, so it is done only if it matters.
            idle_tasks_unseen: ended == Ended::Unseen
                && self.caps.wakers
                && !self.lost
                && self.cpus.any_blind(),
            ended_before: self.waits.was_ended(object),
            is_contended: self.waits.is_contended(object),
            lock: self.waits.is_lock(object),
            activity,
            between_processes,
            contention_recorded: self.caps.contention,
        }
    }

    /// Threads of one process; or, if processes are not known, of one name without numbers.
    fn same_program(&self, a: Slot, b: Slot) -> bool {
        let (a, b) = (&self.threads[a], &self.threads[b]);
        if a.pid != Pid::UNKNOWN && b.pid != Pid::UNKNOWN {
            a.pid == b.pid
        } else {
            role(&self.names.bytes(a.comm)) == role(&self.names.bytes(b.comm))
        }
    }

    /// How `waker` hands something over to a thread of its own process or name: it sends a signal,
    /// or itself (`direct`) writes to what that thread sleeps for. Data from the network is a
    /// request, whichever thread sent it.
    fn hands_over(&self, waker: Slot, sleeper: Slot, direct: bool) -> Option<HandOver> {
        let (w, s) = (&self.threads[waker], &self.threads[sleeper]);
        let by = match self.traits.get(w.living.call?.nr as usize)? {
            call if call.signals => HandOver::Signal,
            call if direct && call.sends() => HandOver::Bytes,
            _ => return None,
        };
        let are_siblings = self.same_program(waker, sleeper)
            || role(&self.names.bytes(w.comm)) == role(&self.names.bytes(s.comm));
        are_siblings.then_some(by)
    }

    /// What the call a thread sleeps in stands for; for a task, what its runtime says.
    pub(super) fn sleep_kind(&self, slot: Slot) -> Option<WaitKind> {
        let living = &self.threads[slot].living;
        let parked = living.parked.map(|of| of.0);
        let called = || living.sleeps_in().map(|nr| self.wait_kind(nr));
        match parked.or_else(called) {
            // It has no task to run, whichever thread makes it look again.
            Some(WaitKind::ThreadSync) if self.threads[slot].carries => Some(WaitKind::Poll),
            kind => kind,
        }
    }

    pub(super) fn wait_kind(&self, nr: u32) -> WaitKind {
        self.traits.get(nr as usize).map_or(WaitKind::Other, |t| t.wait)
    }
}
