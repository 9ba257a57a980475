//! The scheduler: which thread runs on which CPU, and for how long.
//!
//! It keeps all threads at the progress they had in the trace: the one that is furthest behind runs
//! first, for a time slice if others wait. This preserves what the traced scheduler did about
//! priorities, groups and fairness. The rest is as in Linux: a woken thread goes to an idle CPU, if
//! possible its last one; else it preempts the thread that is furthest ahead, or queues for that
//! CPU (see [`super::queues`]). Ties and lengths of slices are drawn from a seed.

use super::queues::Queues;
use super::{Cpu, Machine, NOBODY, Queue, State, What};
use holdup_trace::Nanos;
use std::cmp::Reverse;

/// A woken thread preempts one that has run for this much longer
/// (`sysctl_sched_wakeup_granularity`).
const WAKE_UP_NS: Nanos = 1_000_000;
/// Threads outside the work get this much later progress, so they come after all others.
const BACKGROUND_LATER: Nanos = 1 << 62;

impl Machine<'_> {
    fn slice(&mut self) -> Nanos {
        // A factor from 4/5 to 6/5.
        let odd = self.draw(401);
        let ns = self.view.program.slice_ns;
        if self.jitter { ns * (800 + Nanos::from(odd)) / 1000 } else { ns }
    }

    /// A thread is ready; an idle CPU takes it after `delay`.
    pub(super) fn wake(&mut self, thread: u32, mut delay: u32) {
        let queues = self.left_queueing(thread);
        self.find_course(thread);
        if self.view.fair {
            // It has no claim to the time that it slept.
            let least = self.least_course();
            let course = &mut self.threads[thread as usize].course;
            *course = (*course).max(least);
        }
        let t = &mut self.threads[thread as usize];
        t.state = State::Ready;
        let (mine, last) = (t.course, t.last_cpu);
        let looks_ns = self.view.program.looks_ns;
        if let Some(Queues { behind, ns, idle }) = queues {
            let cpu = self.home(thread, behind);
            // It takes an idle CPU, unless it did not in the trace.
            if self.cpus[cpu as usize].thread != NOBODY && (idle || self.idle == 0) {
                return match ns {
                    Some(ns) => self.queue_there(thread, cpu, ns.max(looks_ns)),
                    None => self.preempt(thread, cpu),
                };
            }
            // The thread in its way comes and goes independently: next time it will be there.
            if let Some(ns) = ns
                && self.is_away(behind)
            {
                delay = delay.max(ns.min(u64::from(u32::MAX)) as u32);
            }
        }
        let allowed = self.allowed(thread);
        if self.idle == 0
            && self.goes_first(thread)
            && let Some(cpu) = self.cpu_of_another(allowed)
        {
            return self.preempt(thread, cpu);
        }
        if let Some(cpu) = self.idle_cpu(allowed, last) {
            self.idle -= 1;
            self.idle_changed();
            let at = self.now.saturating_add(Nanos::from(delay));
            self.put_on(cpu, thread, at);
            self.look_at(cpu, at);
            return;
        }
        if allowed == u64::MAX && looks_ns > 0 && !self.view.free {
            let cpu = self.home(thread, NOBODY);
            return self.queue_there(thread, cpu, looks_ns);
        }
        // The thread that has run most is preempted.
        let candidates = (0..self.cpus.len() as u32).filter(|&c| allowed >> (c % 64) & 1 == 1);
        let run = |c: u32| (self.course_on(c), c == last);
        let Some(cpu) = candidates.max_by_key(|&c| run(c)) else { return };
        let gives_way = self.course_on(cpu) > mine.saturating_add(WAKE_UP_NS);
        self.queue(thread, allowed, cpu);
        if gives_way {
            self.gives_way(cpu);
        } else {
            self.cut_slices(allowed, cpu);
        }
    }

    /// The CPU of the thread that has run most, of those without priority.
    fn cpu_of_another(&self, allowed: u64) -> Option<u32> {
        let cpus = (0..self.cpus.len() as u32).filter(|&c| allowed >> (c % 64) & 1 == 1);
        let others = cpus.filter(|&c| {
            let thread = self.cpus[c as usize].thread;
            thread != NOBODY && !self.goes_first(thread)
        });
        others.max_by_key(|&c| self.course_on(c))
    }

    /// A thread is ready, and queues for `cpu` alone until others have idled for `ns`.
    fn queue_there(&mut self, thread: u32, cpu: u32, ns: Nanos) {
        let mine = self.threads[thread as usize].course;
        let gives_way = self.course_on(cpu) > mine.saturating_add(WAKE_UP_NS);
        self.rest(thread, cpu, ns);
        if gives_way {
            self.gives_way(cpu);
        } else {
            self.cut_slices(1 << (cpu % 64), cpu);
        }
    }

    /// `thread` takes `cpu` from the thread that runs there.
    fn preempt(&mut self, thread: u32, cpu: u32) {
        self.stop(cpu);
        self.put_on(cpu, thread, self.now);
        self.look_at(cpu, self.now);
    }

    /// The thread on `cpu` yields to one that queues for it.
    fn gives_way(&mut self, cpu: u32) {
        self.stop(cpu);
        self.take_next(cpu);
        // Not at once: a waker has not finished its own step yet.
        self.look_at(cpu, self.now);
    }

    /// The progress of the thread on `cpu`.
    pub(super) fn course_on(&self, cpu: u32) -> Nanos {
        let c = &self.cpus[cpu as usize];
        let course = self.threads.get(c.thread as usize).map_or(0, |t| t.course);
        course.saturating_add(self.now.saturating_sub(c.since))
    }

    /// The CPUs that a thread may run on.
    pub(super) fn allowed(&self, thread: u32) -> u64 {
        self.view.allowed[self.threads[thread as usize].of as usize]
    }

    pub(super) fn idle_cpu(&mut self, allowed: u64, last: u32) -> Option<u32> {
        if self.idle == 0 {
            return None;
        }
        let is_free = |cpu: u32, cpus: &[Cpu]| {
            allowed >> (cpu % 64) & 1 == 1 && cpus[cpu as usize].thread == NOBODY
        };
        if (last as usize) < self.cpus.len() && is_free(last, &self.cpus) {
            return Some(last);
        }
        let count = self.cpus.len() as u32;
        let from = self.draw(count);
        (0..count).map(|i| (from + i) % count).find(|&cpu| is_free(cpu, &self.cpus))
    }

    /// Set a thread's progress.
    pub(super) fn find_course(&mut self, thread: u32) {
        // With fair sharing, a thread's progress is its running time.
        if self.view.fair {
            return;
        }
        let t = &mut self.threads[thread as usize];
        if t.left == 0
            && let Some(&time) = self.view.program.times.get(t.at as usize)
        {
            // If threads outside the work hindered it as in the trace, no change could gain
            // anything: all that is done earlier would wait for them. So they get what the work
            // leaves.
            let of = &self.view.program.threads[t.of as usize];
            let after = if self.view.alone && of.is_background { BACKGROUND_LATER } else { 0 };
            t.course = time.saturating_add(after);
        }
    }

    /// The least progress of all threads that are ready or run.
    fn least_course(&self) -> Nanos {
        let first = |queue: &Queue| queue.peek().map(|r| r.0.0);
        let ready = self.ready_on.iter().chain([&self.ready]).filter_map(first);
        let busy = (0..self.cpus.len() as u32).filter(|&c| self.cpus[c as usize].thread != NOBODY);
        ready.chain(busy.map(|cpu| self.course_on(cpu))).min().unwrap_or(0)
    }

    fn queue(&mut self, thread: u32, allowed: u64, cpu: u32) {
        self.count = self.count.wrapping_add(1);
        let entry = Reverse((self.threads[thread as usize].course, self.count, thread));
        self.threads[thread as usize].queued = self.count;
        if allowed == u64::MAX {
            self.ready.push(entry);
        } else {
            self.ready_on[cpu as usize].push(entry);
        }
    }

    /// A thread waits now: a thread that runs without a time slice gets one.
    fn cut_slices(&mut self, allowed: u64, cpu: u32) {
        if allowed != u64::MAX {
            if self.ready_on[cpu as usize].len() == 1 {
                self.schedule(cpu);
            }
        } else if self.ready.len() == 1 {
            for cpu in 0..self.cpus.len() as u32 {
                if self.cpus[cpu as usize].since <= self.now {
                    self.schedule(cpu);
                }
            }
        }
    }

    /// Whether a ready thread is further behind than the thread on `cpu`.
    fn is_ahead(&self, cpu: u32) -> bool {
        let thread = self.cpus[cpu as usize].thread;
        if self.goes_first(thread) {
            return false;
        }
        let t = &self.threads[thread as usize];
        let mine = t.course;
        let odds = if t.left_for.is_some() { 0 } else { WAKE_UP_NS };
        let first = |queue: &Queue| queue.peek().is_some_and(|r| r.0.0.saturating_add(odds) < mine);
        first(&self.ready) || first(&self.ready_on[cpu as usize])
    }

    /// When this CPU has to be looked at next.
    fn schedule(&mut self, cpu: u32) {
        let c = self.cpus[cpu as usize];
        if c.thread == NOBODY {
            return;
        }
        let done = c.since.saturating_add(self.threads[c.thread as usize].left);
        let at = if self.is_contended(cpu) { done.min(c.slice_ends) } else { done };
        self.look_at(cpu, at.max(self.now));
    }

    /// Look at `cpu` at that time, and not before.
    pub(super) fn look_at(&mut self, cpu: u32, at: Nanos) {
        let c = &mut self.cpus[cpu as usize];
        c.turn = c.turn.wrapping_add(1);
        let turn = c.turn;
        self.later(at, What::Cpu { cpu, turn });
    }

    /// Whether a ready thread waits for `cpu` and may have it.
    pub(super) fn is_contended(&self, cpu: u32) -> bool {
        let thread = self.cpus[cpu as usize].thread;
        if thread != NOBODY && self.goes_first(thread) {
            return false;
        }
        !self.ready.is_empty() || !self.ready_on[cpu as usize].is_empty()
    }

    /// `cpu` belongs to `thread` from `since` on.
    pub(super) fn put_on(&mut self, cpu: u32, thread: u32, since: Nanos) {
        let slice = self.slice();
        let c = &mut self.cpus[cpu as usize];
        (c.thread, c.since, c.slice_ends) = (thread, since, since.saturating_add(slice));
        let t = &mut self.threads[thread as usize];
        (t.state, t.last_cpu, t.left_for) = (State::Running, cpu, None);
    }

    /// Charge the thread on `cpu` for its time up to now.
    fn charge(&mut self, cpu: u32) {
        // Real-time priority is not charged to a thread's share.
        let is_free = self.view.fair && self.goes_first(self.cpus[cpu as usize].thread);
        let c = &mut self.cpus[cpu as usize];
        let t = &mut self.threads[c.thread as usize];
        let ns = self.now.saturating_sub(c.since).min(t.left);
        t.left -= ns;
        t.ran += ns;
        self.ran += ns;
        t.course = t.course.saturating_add(if is_free { 0 } else { ns });
        c.since = c.since.max(self.now);
    }

    /// The thread on `cpu` goes back to its queue.
    fn stop(&mut self, cpu: u32) {
        self.charge(cpu);
        let thread = self.cpus[cpu as usize].thread;
        let t = &mut self.threads[thread as usize];
        t.state = State::Ready;
        let left_for = t.left_for.take();
        let allowed = self.allowed(thread);
        match left_for {
            // An idle CPU does not notice at once that this CPU has more to do.
            _ if allowed != u64::MAX || self.idle == 0 => self.queue(thread, allowed, cpu),
            Some(ns) => self.rest(thread, cpu, ns),
            None => self.rest_again(thread, cpu),
        }
    }

    /// `cpu` takes the thread that is furthest behind. Returns false if there is none and it idles.
    fn take_next(&mut self, cpu: u32) -> bool {
        let here = self.ready_on[cpu as usize].peek().map(|r| r.0);
        let any = self.ready.peek().map(|r| r.0);
        let taken = match (here, any) {
            (Some(h), Some(a)) if a < h => self.ready.pop(),
            (None, _) => self.ready.pop(),
            _ => self.ready_on[cpu as usize].pop(),
        };
        let Some(Reverse((_, _, thread))) = taken else {
            let c = &mut self.cpus[cpu as usize];
            (c.thread, c.turn) = (NOBODY, c.turn.wrapping_add(1));
            self.idle += 1;
            self.idle_changed();
            return false;
        };
        self.put_on(cpu, thread, self.now);
        true
    }

    /// An event of `cpu`: the end of a run or a slice, or its thread has arrived.
    pub(super) fn turn(&mut self, cpu: u32) {
        self.charge(cpu);
        let c = &self.cpus[cpu as usize];
        if self.threads[c.thread as usize].left > 0 {
            if !self.is_contended(cpu) || self.now < c.slice_ends {
                return self.schedule(cpu);
            }
            self.stop(cpu);
            if !self.take_next(cpu) {
                return;
            }
        }
        while self.goes_on(cpu) {}
    }

    /// The thread on `cpu` takes steps until one takes time or another thread is due. Returns true
    /// if another thread has the CPU then, whose steps are to be taken.
    fn goes_on(&mut self, cpu: u32) -> bool {
        let thread = self.cpus[cpu as usize].thread;
        loop {
            if self.threads[thread as usize].left > 0 {
                if self.is_ahead(cpu) {
                    self.stop(cpu);
                    return self.take_next(cpu);
                }
                self.schedule(cpu);
                return false;
            }
            if !self.step(thread) {
                return self.take_next(cpu);
            }
            // Waking others may have cost it its CPU, which has an event of its own then.
            if self.cpus[cpu as usize].thread != thread {
                return false;
            }
        }
    }
}
