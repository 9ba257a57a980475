//! The steps of a thread, one after the other.

use super::{Machine, State, What, Work};
use crate::change::Rule;
use crate::program::{ObjectId, Op, Order, ReplayObject};
use holdup_trace::Nanos;

impl Machine<'_> {
    /// Take the next step. Returns false if the thread leaves its CPU.
    pub(super) fn step(&mut self, thread: u32) -> bool {
        let t = &self.threads[thread as usize];
        let done = self.view.program.threads[t.of as usize].work_to;
        if t.works && (t.at >= done || t.at == t.end) {
            self.has_worked(thread);
        }
        let t = &self.threads[thread as usize];
        if t.at == t.end {
            // The thread that gets a lock now may take this CPU: the end is a step of its own.
            if !t.took.is_empty() {
                self.releases_all(thread);
                return true;
            }
            return self.next_piece(thread);
        }
        let (of, op) = (t.of as usize, self.view.program.ops[t.at as usize]);
        let mut stays = true;
        match op {
            Op::Run(ns) if self.view.unchanged => {
                let more = self.runs_on(thread);
                self.runs(thread, ns + more);
            }
            Op::Run(ns) => self.runs(thread, self.view.scaled(of, t.holding, ns)),
            Op::Spin(ns, lock) => {
                let rule = self.view.rules[lock.0 as usize];
                let ns = rule.spun(self.view.scaled(of, t.holding * rule.factor(), ns));
                if ns > 0 {
                    self.runs(thread, ns);
                }
            }
            Op::Sleep(ns, object) => {
                let slept = self.is_slept(thread, object) || self.holder_goes_on(thread, object);
                let ns = self.view.slept(of, self.view.program.times[t.at as usize], ns, object);
                if !slept && ns > 0 && !self.is_free_order(object) {
                    self.threads[thread as usize].state = State::Asleep;
                    self.later(self.now.saturating_add(ns), What::Wakes(thread));
                    stays = false;
                }
            }
            Op::Wait { number, object, .. } => {
                if let Some(begun) = &mut self.begun {
                    begun.insert(number);
                    // Not at once: the server may take the CPU that this thread is about to leave.
                    if let Some(server) = self.awaiting.remove(&number) {
                        self.later(self.now, What::Wakes(server));
                    }
                }
                let over = self.ended.contains(number)
                    || self.is_gone(object)
                    || self.holder_goes_on(thread, object)
                    // Which thread the wake-up interrupt came on top of is chance.
                    || self.view.free_devices && self.view.program.threads[of].is_softirq;
                if !over && !self.is_free_order(object) && self.meets(object) {
                    self.threads[thread as usize].state = State::Waiting(number);
                    stays = false;
                }
            }
            Op::Wake { thread: other, number } => {
                self.ended.insert(number);
                if let Some(sleeper) = self.waiting_for(other, number) {
                    let delay = self.delay(sleeper);
                    self.threads[sleeper as usize].at += 1;
                    self.threads[thread as usize].at += 1;
                    self.wake(sleeper, delay);
                    return true;
                }
            }
            Op::Queues(..) | Op::Preempts(_) => {}
            Op::LosesCpu(ns) => stays = self.loses_cpu(thread, ns),
            Op::Hold(lock) => {
                // A holder that does not sleep waits for no other lock.
                let waits = self.is_free_order(lock) && !self.has_with(thread, Rule::Awake);
                if waits && !self.takes(thread, lock) {
                    return false;
                }
                self.hold(thread, lock);
            }
            Op::Drop(lock) => {
                self.drop(thread, lock);
                // Advance before the woken thread may take this CPU.
                self.threads[thread as usize].at += 1;
                self.releases(thread, lock);
                return true;
            }
            Op::Arrive { round, object, .. } => {
                if !self.is_gone(object) && !self.arrive(thread, round) {
                    return false;
                }
            }
            Op::Spawn(child) => {
                self.threads[thread as usize].at += 1;
                self.spawn(child);
                return true;
            }
        }
        // A sleeper takes this step again, or the one after it, when it wakes up.
        if stays || matches!(op, Op::Sleep(..) | Op::LosesCpu(..)) {
            self.threads[thread as usize].at += 1;
        }
        if stays && matches!(op, Op::Sleep(..)) && !self.pieces.is_empty() {
            self.has_slept(thread);
        }
        stays
    }

    /// Beginnings and ends of holds split a run only if they are changed: skip to the last piece of
    /// this run. Returns the length of the others.
    fn runs_on(&mut self, thread: u32) -> Nanos {
        let t = &mut self.threads[thread as usize];
        let program = self.view.program;
        let end = program.threads[t.of as usize].work_to.max(t.at + 1).min(t.end);
        let (mut more, mut at, mut cut) = (0, t.at + 1, false);
        while at < end {
            match program.ops[at as usize] {
                Op::Hold(lock) | Op::Drop(lock)
                    if program.objects[lock.0 as usize].order != Order::Traced =>
                {
                    cut = true;
                }
                Op::Run(ns) if cut => {
                    (more, t.at, cut) = (more + ns, at, false);
                }
                _ => break,
            }
            at += 1;
        }
        more
    }

    fn runs(&mut self, thread: u32, ns: Nanos) {
        self.find_course(thread);
        let t = &mut self.threads[thread as usize];
        t.left = ns;
        if self.view.program.threads[t.of as usize].works && self.work.is_none() {
            let (now, ran) = (self.now, self.ran);
            self.work = Some(Work { from: now, to: now, ran_from: ran, ran_to: ran });
        }
    }

    /// A thread has finished its work.
    pub(super) fn has_worked(&mut self, thread: u32) {
        let t = &mut self.threads[thread as usize];
        t.works = false;
        let of = t.of;
        // The other parts of a split thread still work.
        if !self.is_last_piece(of) {
            return;
        }
        self.left -= 1;
        if let Some(work) = &mut self.work {
            (work.to, work.ran_to) = (self.now, self.ran);
        }
    }

    /// Whether no thread waits for this object any more.
    fn is_gone(&self, object: ObjectId) -> bool {
        match self.view.rules.get(object.0 as usize) {
            Some(rule) => matches!(rule, Rule::Gone),
            None => object == ObjectId::QUOTA && self.view.no_quota,
        }
    }

    /// Whether a sleep that no traced thread ended is over at once.
    fn is_slept(&self, thread: u32, object: ObjectId) -> bool {
        if self.is_gone(object) && !self.view.program.times_out(object) {
            return true;
        }
        // What a driver does for others, it does without the device too, as soon as it can.
        let of = &self.view.program.threads[self.threads[thread as usize].of as usize];
        let known = self.view.program.objects.get(object.0 as usize);
        let for_device = known.is_some_and(|o: &ReplayObject| o.is_device);
        self.view.free_devices && (of.drives || for_device)
            || self.view.unwatched && of.watches && !for_device
    }

    /// Whether this lock goes to the first thread to arrive.
    fn is_free_order(&self, object: ObjectId) -> bool {
        self.view.order(object) != Order::Traced
    }

    /// Whether two threads meet at the same part of a split lock.
    fn meets(&mut self, object: ObjectId) -> bool {
        match self.view.rules.get(object.0 as usize) {
            Some(&Rule::Parts(count)) => self.random(count) == 0,
            _ => true,
        }
    }

    /// The thread `other`, or one of its parts, if it sleeps until this wait is ended.
    fn waiting_for(&self, other: u32, number: u32) -> Option<u32> {
        let waits = |t: u32| self.threads[t as usize].state == State::Waiting(number);
        match self.pieces.get(&other) {
            Some(pieces) => pieces.parts.iter().copied().find(|&t| waits(t)),
            None => Some(other).filter(|&t| waits(t)),
        }
    }

    /// How long an idle CPU takes to pick up a thread from the step in which it sleeps.
    fn delay(&self, thread: u32) -> u32 {
        match self.view.program.ops.get(self.threads[thread as usize].at as usize) {
            Some(Op::Wait { delay, .. } | Op::Arrive { delay, .. }) => *delay,
            _ => 0,
        }
    }

    /// The thread holds a lock: if the lock is changed, its steps change from here on.
    fn hold(&mut self, thread: u32, lock: ObjectId) {
        let rule = self.view.rules[lock.0 as usize];
        if matches!(rule, Rule::Scaled(_) | Rule::Awake | Rule::First) {
            let t = &mut self.threads[thread as usize];
            t.held.push(lock);
            t.holding *= rule.factor();
        }
    }

    fn drop(&mut self, thread: u32, lock: ObjectId) {
        let t = &mut self.threads[thread as usize];
        if let Some(at) = t.held.iter().position(|&h| h == lock) {
            t.held.swap_remove(at);
            let f = self.view.rules[lock.0 as usize].factor();
            t.holding = if t.held.is_empty() { 1.0 } else { t.holding / f };
        }
    }

    /// Whether the thread holds a lock with this rule.
    fn has_with(&self, thread: u32, rule: Rule) -> bool {
        let held = &self.threads[thread as usize].held;
        held.iter().any(|lock| self.view.rules[lock.0 as usize] == rule)
    }

    /// Whether the thread holds a lock that gives it a CPU whenever it can use one.
    pub(super) fn goes_first(&self, thread: u32) -> bool {
        self.has_with(thread, Rule::First)
    }

    /// Whether the thread holds a lock with which it does not sleep for this object.
    fn holder_goes_on(&self, thread: u32, object: ObjectId) -> bool {
        match object == ObjectId::QUOTA {
            true => self.goes_first(thread),
            false => self.has_with(thread, Rule::Awake),
        }
    }

    /// Whether the round is complete now; then all its threads run on.
    fn arrive(&mut self, thread: u32, round: u32) -> bool {
        let all = self.view.program.rounds[round as usize];
        let arrived = &mut self.arrived[round as usize];
        if arrived.len() as u32 + 1 < all {
            arrived.push(thread);
            self.threads[thread as usize].state = State::Arrived;
            return false;
        }
        for other in std::mem::take(arrived) {
            let delay = self.delay(other);
            self.threads[other as usize].at += 1;
            self.wake(other, delay);
        }
        true
    }

    fn spawn(&mut self, child: u32) {
        let delay = self.view.program.threads[child as usize].delay;
        let members = self.pieces.get(&child).map_or_else(|| vec![child], |p| p.parts.clone());
        for member in members {
            if self.threads[member as usize].state == State::Unborn {
                self.wake(member, delay);
            }
        }
    }
}
