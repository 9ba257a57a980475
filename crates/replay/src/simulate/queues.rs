//! Threads that queue for a busy CPU while other CPUs idle.
//!
//! In Linux each CPU has its own queue, and an idle CPU looks into other queues only now and then.
//! So a thread that queued in the trace while a CPU idled stays on its queue here, until its CPU is
//! free or other CPUs have idled as long as they let it wait in the trace. That delay is a fact
//! about the machine; the CPU, and whether one idles, the replay finds anew. Once anything is
//! changed, no thread queues while a CPU idles, because which thread is in the way then is another
//! question.

use super::{Machine, NOBODY, State, Thread, What};
use crate::program::Op;
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The threads that stay in their queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Resting {
    /// A thread, the idle time after which another CPU takes it, and its place in the queue.
    until: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    /// Time during which some CPU idled, up to `since`.
    idled: Nanos,
    /// Since when some CPU idles, if one does.
    since: Option<Nanos>,
    /// Only the latest event counts.
    turn: u32,
}

/// How a thread queued in the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queues {
    /// The thread that ran on the CPU.
    pub(super) behind: u32,
    /// How long idle CPUs left it there; `None` if it took the CPU from that thread.
    pub(super) ns: Option<Nanos>,
    /// A CPU idled already when it was queued.
    pub(super) idle: bool,
}

impl Machine<'_> {
    /// How `thread`, which is woken now, queued.
    pub(super) fn left_queueing(&mut self, thread: u32) -> Option<Queues> {
        let t = &mut self.threads[thread as usize];
        let op = *self.view.program.ops.get(t.at as usize).filter(|_| t.at < t.end)?;
        let queues = match op {
            Op::Queues(ns, behind, idle) => Queues { behind, ns: Some(ns), idle },
            Op::Preempts(behind) => Queues { behind, ns: None, idle: false },
            _ => return None,
        };
        t.at += 1;
        let here = !self.view.free && self.view.allowed[t.of as usize] == u64::MAX;
        Some(queues).filter(|_| here)
    }

    /// The CPU that `thread`, which is woken now, queues for: the CPU of the thread `behind` which
    /// it queued, its own last one, or that of the thread that is furthest ahead.
    pub(super) fn home(&self, thread: u32, behind: u32) -> u32 {
        let last = match self.threads.get(behind as usize) {
            Some(behind) if is_there(behind) => behind.last_cpu,
            _ => self.threads[thread as usize].last_cpu,
        };
        if (last as usize) < self.cpus.len() {
            return last;
        }
        (0..self.cpus.len() as u32)
            .max_by_key(|&cpu| (self.cpus[cpu as usize].thread != NOBODY, self.course_on(cpu)))
            .unwrap_or(0)
    }

    /// Whether this thread exists, has no CPU and does not wait for one.
    pub(super) fn is_away(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).is_some_and(|t| !is_there(t))
    }

    /// `thread` lost its CPU here, and idle CPUs left it where it was for `ns`. Returns false if it
    /// leaves its CPU at once.
    pub(super) fn loses_cpu(&mut self, thread: u32, ns: Nanos) -> bool {
        let cpu = self.threads[thread as usize].last_cpu;
        let contended = self.is_contended(cpu);
        if self.view.free || !contended && ns == 0 {
            return true;
        }
        let ns = if contended { ns.max(self.view.program.looks_ns) } else { ns };
        let t = &mut self.threads[thread as usize];
        if contended {
            t.left_for = Some(ns);
        } else {
            // The thread that took the CPU does not depend on the work: it does so again.
            t.state = State::Asleep;
            self.later(self.now.saturating_add(ns), What::Wakes(thread));
        }
        contended
    }

    /// `thread` queues for `cpu` alone until others have idled for `ns`.
    pub(super) fn rest(&mut self, thread: u32, cpu: u32, ns: Nanos) {
        self.rest_until(thread, cpu, self.idled().saturating_add(ns));
    }

    /// `thread` has had its slice on `cpu`, and others idle. The next thread on `cpu` was due to be
    /// taken by an idle CPU; now `thread` is.
    pub(super) fn rest_again(&mut self, thread: u32, cpu: u32) {
        let next = self.ready_on[cpu as usize].peek().map(|next| next.0.2);
        let next = next.filter(|&next| self.allowed(next) == u64::MAX);
        let until = match next {
            Some(next) => self.threads[next as usize].until,
            None => self.idled().saturating_add(self.view.program.looks_ns),
        };
        self.rest_until(thread, cpu, until);
    }

    fn rest_until(&mut self, thread: u32, cpu: u32, until: Nanos) {
        self.count = self.count.wrapping_add(1);
        let t = &mut self.threads[thread as usize];
        (t.queued, t.until, t.last_cpu) = (self.count, until, cpu);
        self.ready_on[cpu as usize].push(Reverse((t.course, self.count, thread)));
        // While no CPU idles, nothing else removes threads that no longer stay.
        self.first_resting();
        self.resting.until.push(Reverse((until, self.count, thread)));
        self.look_around();
    }

    /// The first thread that still stays: idle time until which, number in the queue, thread.
    fn first_resting(&mut self) -> Option<(Nanos, u32, u32)> {
        while let Some(&Reverse(first)) = self.resting.until.peek() {
            let t = &self.threads[first.2 as usize];
            if t.state == State::Ready && t.queued == first.1 {
                return Some(first);
            }
            self.resting.until.pop();
        }
        None
    }

    /// Time during which some CPU idled.
    fn idled(&self) -> Nanos {
        let since = self.resting.since.map_or(0, |since| self.now.saturating_sub(since));
        self.resting.idled + since
    }

    /// The number of idle CPUs has changed.
    pub(super) fn idle_changed(&mut self) {
        match (self.idle > 0, self.resting.since) {
            (true, None) => {
                self.resting.since = Some(self.now);
                self.look_around();
            }
            (false, Some(_)) => {
                self.resting.idled = self.idled();
                self.resting.since = None;
            }
            _ => {}
        }
    }

    /// Have an idle CPU look into other queues when the first thread has stayed long enough.
    fn look_around(&mut self) {
        if self.resting.since.is_none() {
            return;
        }
        let Some((until, ..)) = self.first_resting() else { return };
        self.resting.turn = self.resting.turn.wrapping_add(1);
        let at = self.now.saturating_add(until.saturating_sub(self.idled()));
        self.later(at, What::Looks(self.resting.turn));
    }

    /// Idle CPUs take the threads that have stayed long enough.
    pub(super) fn take_over(&mut self, turn: u32) {
        if turn != self.resting.turn {
            return;
        }
        while let Some((_, number, thread)) = self.first_resting().filter(|f| f.0 <= self.idled()) {
            let home = self.threads[thread as usize].last_cpu;
            let Some(cpu) = self.idle_cpu(u64::MAX, home) else { break };
            self.resting.until.pop();
            self.ready_on[home as usize].retain(|entry| entry.0.1 != number);
            self.idle -= 1;
            self.idle_changed();
            self.put_on(cpu, thread, self.now);
            self.look_at(cpu, self.now);
        }
        self.look_around();
    }
}

fn is_there(t: &Thread) -> bool {
    matches!(t.state, State::Running | State::Ready)
}
