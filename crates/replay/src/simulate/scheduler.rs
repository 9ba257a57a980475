//! The scheduler: who runs where, from when to when.
//!
//! It keeps all threads as far as they were in the trace: whoever is furthest behind
//! goes first, for a time slice if others wait. So what the traced scheduler did about priorities,
//! groups and fairness is kept, and the rest is as in Linux: who wakes up goes to an idle CPU, its
//! last one if it can be, else it takes the place of whoever is further ahead, or queues for that
//! CPU: see [`super::beside`]. Ties and lengths of slices are drawn from a seed.

use super::beside::Queues;
use super::{Cpu, Machine, NOBODY, Queue, State, What};
use holdup_trace::Nanos;
use std::cmp::Reverse;

/// Who wakes up takes the CPU of a thread that has run for so much longer
/// (`sysctl_sched_wakeup_granularity`).
const WAKE_UP_NS: Nanos = 1_000_000;
/// Those who are no part of the work come so much later: after all who are.
const BACKGROUND_LATER: Nanos = 1 << 62;

impl Machine<'_> {
    fn slice(&mut self) -> Nanos {
        // From 4/5 to 6/5.
        let odd = self.draw(401);
        let ns = self.view.program.slice_ns;
        if self.jitter { ns * (800 + Nanos::from(odd)) / 1000 } else { ns }
    }

    /// A thread is ready; a CPU that idles takes it after `delay`.
    pub(super) fn wake(&mut self, thread: u32, mut delay: u32) {
        let beside = self.left_beside(thread);
        self.find_course(thread);
        if self.view.fair {
            // It is not owed the time for which it slept.
            let least = self.least_course();
            let course = &mut self.threads[thread as usize].course;
            *course = (*course).max(least);
        }
        let t = &mut self.threads[thread as usize];
        t.state = State::Ready;
        let (mine, last) = (t.course, t.last_cpu);
        let looks_ns = self.view.program.looks_ns;
        if let Some(Queues { behind, ns, idle }) = beside {
            let cpu = self.home(thread, behind);
            // A CPU that idles is taken, unless one was not.
            if self.cpus[cpu as usize].thread != NOBODY && (idle || self.idle == 0) {
                return match ns {
                    Some(ns) => self.queue_beside(thread, cpu, ns.max(looks_ns)),
                    None => self.preempt(thread, cpu),
                };
            }
            // Who was in its way comes and goes by itself: another time it will be.
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
            return self.queue_beside(thread, cpu, looks_ns);
        }
        // The one that has run most gives way.
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

    /// The CPU of the thread that has run most, of those that do not go first.
    fn cpu_of_another(&self, allowed: u64) -> Option<u32> {
        let cpus = (0..self.cpus.len() as u32).filter(|&c| allowed >> (c % 64) & 1 == 1);
        let others = cpus.filter(|&c| {
            let thread = self.cpus[c as usize].thread;
            thread != NOBODY && !self.goes_first(thread)
        });
        others.max_by_key(|&c| self.course_on(c))
    }

    /// A thread is ready, and queues for `cpu` alone until others have idled for `ns`.
    fn queue_beside(&mut self, thread: u32, cpu: u32, ns: Nanos) {
        let mine = self.threads[thread as usize].course;
        let gives_way = self.course_on(cpu) > mine.saturating_add(WAKE_UP_NS);
        self.rest(thread, cpu, ns);
        if gives_way {
            self.gives_way(cpu);
        } else {
            self.cut_slices(1 << (cpu % 64), cpu);
        }
    }

    /// A thread takes `cpu` from whoever has it.
    fn preempt(&mut self, thread: u32, cpu: u32) {
        self.stop(cpu);
        self.put_on(cpu, thread, self.now);
        self.look_at(cpu, self.now);
    }

    /// The thread on `cpu` leaves it to one that queues for it.
    fn gives_way(&mut self, cpu: u32) {
        self.stop(cpu);
        self.take_next(cpu);
        // Not at once: whoever wakes others has not taken its own step yet.
        self.look_at(cpu, self.now);
    }

    /// How far the thread on `cpu` is.
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

    /// How far it has come.
    pub(super) fn find_course(&mut self, thread: u32) {
        // Who shares CPUs fairly has come as far as it ran.
        if self.view.fair {
            return;
        }
        let t = &mut self.threads[thread as usize];
        if t.left == 0
            && let Some(&time) = self.view.program.times.get(t.at as usize)
        {
            // A replay that others are in the way of as they were gains nothing: whatever is done
            // sooner than it was waits for all who are not. So those who are no part of the work
            // have what it leaves.
            let of = &self.view.program.threads[t.of as usize];
            let after = if self.view.alone && of.is_background { BACKGROUND_LATER } else { 0 };
            t.course = time.saturating_add(after);
        }
    }

    /// How far whoever is furthest behind has come, of those who are ready or run.
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

    /// Somebody waits now: who runs without an end of its slice gets one.
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

    /// Somebody who is ready is further behind than the thread on `cpu`.
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

    /// Whether somebody who is ready waits for `cpu`, and may have it.
    pub(super) fn is_contended(&self, cpu: u32) -> bool {
        let thread = self.cpus[cpu as usize].thread;
        if thread != NOBODY && self.goes_first(thread) {
            return false;
        }
        !self.ready.is_empty() || !self.ready_on[cpu as usize].is_empty()
    }

    /// `cpu` is `thread`'s from `since` on.
    pub(super) fn put_on(&mut self, cpu: u32, thread: u32, since: Nanos) {
        let slice = self.slice();
        let c = &mut self.cpus[cpu as usize];
        (c.thread, c.since, c.slice_ends) = (thread, since, since.saturating_add(slice));
        let t = &mut self.threads[thread as usize];
        (t.state, t.last_cpu, t.left_for) = (State::Running, cpu, None);
    }

    /// Charge what ran on `cpu` up to now.
    fn charge(&mut self, cpu: u32) {
        // A real-time priority costs a thread nothing of its share.
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

    /// Who is on `cpu` goes back to the queue.
    fn stop(&mut self, cpu: u32) {
        self.charge(cpu);
        let thread = self.cpus[cpu as usize].thread;
        let t = &mut self.threads[thread as usize];
        t.state = State::Ready;
        let left_for = t.left_for.take();
        let allowed = self.allowed(thread);
        match left_for {
            // An idle CPU does not see at once that this one has more to do now.
            _ if allowed != u64::MAX || self.idle == 0 => self.queue(thread, allowed, cpu),
            Some(ns) => self.rest(thread, cpu, ns),
            None => self.rest_again(thread, cpu),
        }
    }

    /// `cpu` takes whoever is furthest behind, or idles: then it is false.
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

    /// Something is due on `cpu`: a run or a slice is over, or its thread has arrived.
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

    /// The thread on `cpu` takes its steps until one takes time, or somebody else is due. True if
    /// another thread has the CPU then, whose steps are to be taken.
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
            // Waking others may have cost it its CPU: that has its own turn.
            if self.cpus[cpu as usize].thread != thread {
                return false;
            }
        }
    }
}
