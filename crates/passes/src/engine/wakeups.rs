//! Threads are woken: by whom, and what their waits were for.

use super::Engine;
use crate::blame::{Cause, WaitSum};
use crate::cpus::{Frame, Level};
use crate::threads::{Mode, Slot, State, Thread, role};
use crate::waits::{End, Object};
use holdup_syscalls::WaitKind;
use holdup_trace::{Cpu, Event, NameId, Nanos, Pid, Tid};

/// How a wait is known to have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// By a wake-up.
    Woken,
    /// The thread ran again; its wake-up was not seen.
    Unseen,
    /// Not at all: the trace did.
    Trace,
}

/// `NET_RX`: on the loopback it runs on top of the sender, who is then the true waker.
const NET_RX: u32 = 3;

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
        let waker = self.waker(now, e);
        let slot = self.find_or_add(tid);
        self.name(slot, comm);
        if !early || !self.caps.wakeups {
            self.threads[slot].latency.wakeup(now);
        }
        self.wake(now, slot, waker, target, early);
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
        let slot = match self.threads.get(tid) {
            Some(slot) if matches!(self.threads[slot].state, State::New | State::Unseen) => slot,
            // Fork events are not recorded, or the id was used before and its exit lost.
            _ => self.threads.insert(Thread::new(tid, now, State::New)),
        };
        let waker = self.waker(now, e);
        let t = &mut self.threads[slot];
        if t.state == State::Unseen {
            (t.state, t.born, t.since) = (State::New, now, now);
        }
        t.latency.wakeup(now);
        self.name(slot, comm);
        self.wake(now, slot, waker, target, false);
    }

    fn wake(
        &mut self,
        now: Nanos,
        slot: Slot,
        waker: Option<(Slot, bool)>,
        target: Cpu,
        early: bool,
    ) {
        match self.threads[slot].state {
            State::Running(cpu) if self.is_presumed(slot, cpu) => {
                if early {
                    self.slept_unseen(now, slot);
                } else {
                    self.not_taken(now, slot, cpu);
                }
            }
            // Woken after a wake-up that is on its way, or once more without having run.
            State::Waking if early => self.slept_unseen(now, slot),
            State::Woken(_) if self.caps.wakeups => self.slept_unseen(now, slot),
            _ => {}
        }
        match self.threads[slot].state {
            State::Blocked | State::Unseen | State::New | State::Lost => {
                let counted = self.threads[slot].blame_mark.is_some();
                self.stop_waiting(now, slot, waker, Ended::Woken);
                if self.threads[slot].state == State::Unseen {
                    let since = self.threads[slot].since;
                    self.waits.slept_before(slot, since, now, waker.map(|w| w.0));
                }
                let t = &mut self.threads[slot];
                match t.state {
                    State::Unseen => t.blocked_ns += now.saturating_sub(t.since),
                    _ => t.settle(now),
                }
                t.since = now;
                t.waker = waker.map(|w| w.0);
                if !early {
                    self.ready(now, slot, target);
                } else if self.caps.wakeups {
                    self.transition(now, slot, State::Waking);
                    if counted && self.waits.wake_up_costs(slot) {
                        let mark = self.blame.wait_begins(now);
                        self.threads[slot].blame_mark = Some(mark);
                    }
                    self.taken_by_blind(now, slot, target);
                } else {
                    // On its way, to a queue it is not yet on: not to be taken for one that is.
                    self.ready(now, slot, Cpu::UNKNOWN);
                    self.taken_by_blind(now, slot, target);
                }
            }
            State::Waking => {
                // Between waking and wakeup the kernel looked for a CPU: not yet ready.
                self.end_wake_up(now, slot);
                self.threads[slot].settle(now);
                self.ready(now, slot, target);
            }
            State::Running(_) => self.threads[slot].early_wake = true,
            State::Woken(_) | State::Preempted(_) | State::Dead => {}
        }
    }

    /// A thread is on the run queue of `target` from now on.
    fn ready(&mut self, now: Nanos, slot: Slot, target: Cpu) {
        let queue = self.queue_of(target);
        self.transition(now, slot, State::Woken(queue));
        self.taken_by_blind(now, slot, target);
    }

    /// What a thread that is no longer being woken has of idle time since `sched_waking`: part of
    /// the wait before.
    fn end_wake_up(&mut self, now: Nanos, slot: Slot) {
        if let Some(mark) = self.threads[slot].blame_mark.take() {
            let share = self.blame.wait_ends(now, mark);
            let wait_ns = now - self.threads[slot].since;
            if let Some(key) = self.waits.last_wait(slot) {
                self.blame.attribute(key, WaitSum { waits: 0, wait_ns, share });
            }
        }
    }

    /// The thread that causes this event, unless an interrupt does; and whether nothing ran on top
    /// of it for sure.
    pub(super) fn waker(&mut self, now: Nanos, e: &Event) -> Option<(Slot, bool)> {
        if !self.valid(e.cpu, e.tid) {
            return None;
        }
        let slot = self.current(now, e.cpu, e.tid, e.pid);
        let c = self.cpus.get_mut(e.cpu);
        let on_top = c.stack.last().copied();
        if slot == Slot::IDLE {
            return None;
        }
        let t = &self.threads[slot];
        match on_top {
            Some(Frame { level: Level::Softirq, id: NET_RX, .. }) if t.call.is_some() => {
                Some((slot, false))
            }
            Some(_) => None,
            // Nobody wakes others from application code: an interrupt that was not recorded did.
            None if t.mode == Mode::User => None,
            None => Some((slot, self.caps.irqs || self.caps.softirqs)),
        }
    }

    /// If the thread is asleep, settle what it was for.
    pub(super) fn stop_waiting(
        &mut self,
        now: Nanos,
        slot: Slot,
        waker: Option<(Slot, bool)>,
        ended: Ended,
    ) {
        if self.threads[slot].state == State::Waking {
            return self.end_wake_up(now, slot);
        }
        let t = &mut self.threads[slot];
        if let Some(cpu) = t.iowait_cpu.take() {
            // Charge the CPU's idle time with the waiter still counted.
            if !self.cpus.get_mut(cpu).is_presumed() {
                self.charge(now, cpu);
            }
            let c = self.cpus.get_mut(cpu);
            c.iowaiters = c.iowaiters.saturating_sub(1);
        }
        let t = &mut self.threads[slot];
        let mark = t.blame_mark.take();
        let Some(wait) = self.waits.take(slot) else { return };
        let since = t.since;
        let g = match mark {
            Some(mark) => self.blame.wait_ends(now, mark) + mark,
            None => self.blame.integral_at(now),
        };
        let t = &self.threads[slot];
        let nr = t.call.map(|c| c.nr);
        let end = End {
            waker: waker.map(|w| w.0),
            direct: waker.is_some_and(|w| w.1),
            early: t.early_wake,
        };
        let cause = self.cause(slot, end.waker, wait.object, ended);
        if let Some(w) = end.waker {
            self.threads[w].ended_wait_ns += now - since;
        }
        let waker = end.waker.map(|w| (&self.threads[w], self.threads[w].is_kthread()));
        let uninterruptible = self.threads[slot].uninterruptible;
        self.waits.ends(
            now,
            slot,
            wait,
            end,
            cause,
            nr,
            (g, mark.is_some()),
            waker,
            uninterruptible,
            &mut self.blame,
        );
    }

    fn cause(&self, slot: Slot, waker: Option<Slot>, object: Object, ended: Ended) -> Cause {
        let t = &self.threads[slot];
        let by_application = waker.is_some_and(|w| !self.threads[w].is_kthread());
        if t.contending > 0 {
            return Cause::KernelLock;
        }
        if !self.caps.syscalls {
            return self.cause_without_calls(slot, waker.filter(|_| by_application));
        }
        let kind = t.call.map(|c| self.wait_kind(c.nr));
        let taking_turns = kind.is_some_and(WaitKind::takes_turns);
        if taking_turns && !t.uninterruptible {
            let nobody = match ended {
                // Only a thread's call ends such a wait; else it is a time-out or a signal.
                Ended::Woken => waker.is_none() && self.caps.wakers && !self.lost,
                Ended::Unseen => false,
                // Nobody ever did, for any thread: work that never came.
                Ended::Trace => !self.waits.was_ended(object),
            };
            if nobody || self.waits.is_join(object) {
                return Cause::External;
            }
        }
        match kind {
            Some(WaitKind::ThreadSync) => Cause::ThreadSync,
            Some(kind) if kind.is_service() => Cause::KernelService,
            // In D state: the disk's completion comes from an interrupt or kernel thread; another
            // application thread ends the wait for a lock it held. Where contention is recorded,
            // the lock would have shown, and it was a buffer, a page or a place in a driver's
            // queue.
            _ if t.uninterruptible && by_application && !self.caps.contention => Cause::KernelLock,
            _ if t.uninterruptible => Cause::Io,
            Some(WaitKind::ReadWrite | WaitKind::Socket) if by_application => Cause::KernelService,
            Some(WaitKind::DiskSync) => Cause::Io,
            Some(_) => Cause::External,
            None => Cause::Unknown,
        }
    }

    /// What a thread slept for, where only switches and wake-ups were recorded. Threads of one
    /// process (or of one name, where processes are not known) that end each other's sleep take
    /// turns at something of their own; others use a service of the kernel to do so.
    fn cause_without_calls(&self, slot: Slot, waker: Option<Slot>) -> Cause {
        let t = &self.threads[slot];
        let Some(waker) = waker.map(|w| &self.threads[w]) else {
            return if t.uninterruptible { Cause::Io } else { Cause::External };
        };
        if t.uninterruptible {
            return Cause::KernelLock;
        }
        let one_process = if t.pid != Pid::UNKNOWN && waker.pid != Pid::UNKNOWN {
            t.pid == waker.pid
        } else {
            role(&self.names.bytes(t.comm)) == role(&self.names.bytes(waker.comm))
        };
        if one_process { Cause::ThreadSync } else { Cause::KernelService }
    }

    pub(super) fn wait_kind(&self, nr: u32) -> WaitKind {
        self.traits.get(nr as usize).map_or(WaitKind::Other, |t| t.wait)
    }
}
