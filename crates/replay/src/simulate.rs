//! The simulated machine: CPUs, a scheduler, locks, and threads that follow their programs.
//!
//! The scheduler keeps all threads as far as they were in the trace: whoever is furthest behind
//! goes first, for a time slice if others wait. So what the traced scheduler did about priorities,
//! groups and fairness is kept, and the rest is as in Linux: who wakes up goes to an idle CPU, its
//! last one if it can be, else it takes the place of whoever is further ahead. No CPU idles while a
//! thread is ready that may run there. Ties and lengths of slices are drawn from a seed.

use crate::bits::BitSet;
use crate::change::{Rule, View};
use crate::program::{ObjectId, Op};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long a thread runs while others wait (`sysctl_sched_base_slice` of machines with some CPUs).
const SLICE_NS: Nanos = 3_000_000;
/// Who wakes up takes the CPU of a thread that has run for so much longer
/// (`sysctl_sched_wakeup_granularity`).
const WAKE_UP_NS: Nanos = 1_000_000;
const NOBODY: u32 = u32::MAX;

/// What came out of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// From the moment the work began to its end.
    pub(crate) wall_ns: Nanos,
    /// Threads that all waited for each other, and of which one was let go.
    pub(crate) forced: u64,
    /// CPU time of each thread.
    pub(crate) run_ns: Vec<Nanos>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Has not been made yet.
    Unborn,
    Ready,
    Running,
    /// Until a moment.
    Asleep,
    /// Until its wait of this number is ended.
    Waiting(u32),
    /// At a barrier.
    Arrived,
    Ended,
}

#[derive(Clone, Debug)]
struct Thread {
    /// Which thread of the program it is, or is a part of.
    of: u32,
    /// It works, and has not done its work yet.
    works: bool,
    /// The next step, and the end of this piece of its program.
    at: u32,
    end: u32,
    /// What is left of the run it is in.
    left: Nanos,
    /// How far it has come, as the moment of the trace at which it was there.
    course: Nanos,
    ran: Nanos,
    last_cpu: u32,
    state: State,
    /// The locks it has that are changed.
    held: Vec<ObjectId>,
    /// Product of the factors of the locks it has.
    holding: f64,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    thread: u32,
    /// Since when it runs what it runs, and how long its slice is.
    since: Nanos,
    slice_ends: Nanos,
    /// Only the latest event of a CPU counts.
    turn: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    Cpu { cpu: u32, turn: u32 },
    Wakes(u32),
}

/// The work of a thread that is split, in pieces: what each part takes next.
#[derive(Clone, Debug)]
struct Pieces {
    /// Where each begins.
    starts: Vec<u32>,
    next: usize,
    end: u32,
    /// The threads that share them.
    parts: Vec<u32>,
}

/// Threads that are ready: who is furthest behind comes first.
type Queue = BinaryHeap<Reverse<(Nanos, u32, u32)>>;

pub(crate) struct Machine<'a> {
    view: &'a View<'a>,
    now: Nanos,
    count: u32,
    events: BinaryHeap<Reverse<(Nanos, u32, What)>>,
    cpus: Vec<Cpu>,
    idle: u32,
    ready: Queue,
    /// Of threads that may not run everywhere, by the CPU they were put on.
    ready_on: Vec<Queue>,
    threads: Vec<Thread>,
    /// Of threads that are split.
    pieces: FxHashMap<u32, Pieces>,
    /// Who waits for a client to ask, by the number of the client's wait.
    awaiting: FxHashMap<u32, u32>,
    /// Waits that were ended.
    ended: BitSet,
    /// Waits that were begun, where somebody is split.
    begun: Option<BitSet>,
    /// Who has arrived, by round.
    arrived: Vec<Vec<u32>>,
    chance: u64,
    jitter: bool,
    /// Threads of the work that have not ended.
    left: u32,
    work: Option<(Nanos, Nanos)>,
    forced: u64,
}

/// Replay `view` once. Seed 0 is the scheduler without chance.
pub(crate) fn simulate(view: &View<'_>, seed: u64) -> Ran {
    let mut machine = Machine::new(view, seed);
    machine.go();
    let mut run_ns = vec![0; view.program.threads.len()];
    for t in &machine.threads {
        run_ns[t.of as usize] += t.ran;
    }
    let wall_ns = machine.work.map_or(0, |(from, to)| to - from);
    Ran { wall_ns, forced: machine.forced, run_ns }
}

impl<'a> Machine<'a> {
    fn new(view: &'a View<'a>, seed: u64) -> Machine<'a> {
        let program = view.program;
        let cpu = Cpu { thread: NOBODY, since: 0, slice_ends: 0, turn: 0 };
        let count = view.cpus as usize;
        let mut threads: Vec<Thread> = Vec::with_capacity(program.threads.len());
        for (t, of) in program.threads.iter().zip(0..) {
            threads.push(Thread {
                of,
                works: t.works,
                at: t.from,
                end: t.to,
                left: 0,
                course: 0,
                ran: 0,
                last_cpu: NOBODY,
                state: State::Unborn,
                held: Vec::new(),
                holding: 1.0,
            });
        }
        let mut machine = Machine {
            view,
            now: 0,
            count: 0,
            events: BinaryHeap::new(),
            cpus: vec![cpu; count],
            idle: view.cpus,
            ready: BinaryHeap::new(),
            ready_on: vec![BinaryHeap::new(); count],
            threads,
            pieces: FxHashMap::default(),
            awaiting: FxHashMap::default(),
            ended: BitSet::new(program.numbers),
            begun: None,
            arrived: vec![Vec::new(); program.rounds.len()],
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            jitter: seed != 0,
            left: 0,
            work: None,
            forced: 0,
        };
        for i in 0..program.threads.len() {
            machine.split(i as u32);
        }
        machine.left = machine.threads.iter().filter(|t| t.works).count() as u32;
        machine
    }

    /// Make the parts of a thread that is split.
    fn split(&mut self, thread: u32) {
        let parts = self.view.parts[thread as usize];
        if parts < 2 {
            return;
        }
        let program = self.view.program;
        let t = &program.threads[thread as usize];
        let ops = &program.ops[t.from as usize..t.to as usize];
        // A piece of its work ends when it has woken somebody: the one who asked for it.
        let mut starts = if ops.is_empty() { Vec::new() } else { vec![t.from] };
        let ends = ops.iter().zip(t.from + 1..).filter(|(op, _)| matches!(op, Op::Wake { .. }));
        starts.extend(ends.map(|(_, next)| next).filter(|&next| next < t.to));
        let mut members = vec![thread];
        for _ in 1..parts {
            members.push(self.threads.len() as u32);
            let mut part = self.threads[thread as usize].clone();
            (part.at, part.end) = (t.to, t.to);
            self.threads.push(part);
        }
        for &m in &members {
            (self.threads[m as usize].at, self.threads[m as usize].end) = (t.to, t.to);
        }
        self.begun.get_or_insert_with(|| BitSet::new(program.numbers));
        self.pieces.insert(thread, Pieces { starts, next: 0, end: t.to, parts: members });
    }

    fn go(&mut self) {
        for i in 0..self.threads.len() as u32 {
            let t = &self.view.program.threads[self.threads[i as usize].of as usize];
            if !t.spawned {
                self.wake(i, t.delay);
            }
        }
        loop {
            let Some(Reverse((at, _, what))) = self.events.pop() else {
                if self.left > 0 && self.force() {
                    continue;
                }
                break;
            };
            self.now = at;
            match what {
                What::Wakes(thread) => self.wake(thread, 0),
                What::Cpu { cpu, turn } if self.cpus[cpu as usize].turn == turn => self.turn(cpu),
                What::Cpu { .. } => {}
            }
        }
    }

    fn later(&mut self, at: Nanos, what: What) {
        self.count = self.count.wrapping_add(1);
        self.events.push(Reverse((at, self.count, what)));
    }

    /// A number below `n`; always the first without chance.
    fn draw(&mut self, n: u32) -> u32 {
        if self.jitter && n > 1 { self.random(n) } else { 0 }
    }

    fn random(&mut self, n: u32) -> u32 {
        // Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 33) as u32 % n
    }

    fn slice(&mut self) -> Nanos {
        // From 4/5 to 6/5.
        let odd = self.draw(401);
        if self.jitter { SLICE_NS * (800 + Nanos::from(odd)) / 1000 } else { SLICE_NS }
    }

    /// A thread is ready; a CPU that idles takes it after `delay`.
    fn wake(&mut self, thread: u32, delay: u32) {
        self.find_course(thread);
        let t = &mut self.threads[thread as usize];
        t.state = State::Ready;
        let (mine, last) = (t.course, t.last_cpu);
        let allowed = self.allowed(thread);
        if let Some(cpu) = self.idle_cpu(allowed, last) {
            self.idle -= 1;
            let at = self.now.saturating_add(Nanos::from(delay));
            let slice = self.slice();
            let c = &mut self.cpus[cpu as usize];
            (c.thread, c.since, c.slice_ends) = (thread, at, at.saturating_add(slice));
            c.turn = c.turn.wrapping_add(1);
            let turn = c.turn;
            let t = &mut self.threads[thread as usize];
            (t.state, t.last_cpu) = (State::Running, cpu);
            self.later(at, What::Cpu { cpu, turn });
            return;
        }
        // The one that has run most gives way.
        let candidates = (0..self.cpus.len() as u32).filter(|&c| allowed >> (c % 64) & 1 == 1);
        let run = |c: u32| {
            let c = &self.cpus[c as usize];
            let t = &self.threads[c.thread as usize];
            t.course.saturating_add(self.now.saturating_sub(c.since))
        };
        let Some(cpu) = candidates.max_by_key(|&c| (run(c), c == last)) else { return };
        let gives_way = run(cpu) > mine.saturating_add(WAKE_UP_NS);
        self.queue(thread, allowed, cpu);
        if gives_way {
            self.stop(cpu);
            self.take_next(cpu);
            // Not at once: whoever wakes others has not taken its own step yet.
            let turn = self.cpus[cpu as usize].turn.wrapping_add(1);
            self.cpus[cpu as usize].turn = turn;
            self.later(self.now, What::Cpu { cpu, turn });
        } else {
            self.cut_slices(allowed, cpu);
        }
    }

    /// The CPUs that a thread may run on, of this machine.
    fn allowed(&self, thread: u32) -> u64 {
        let of = self.threads[thread as usize].of as usize;
        let allowed = match self.view.parts[of] {
            1 => self.view.program.threads[of].allowed,
            // One of several is bound nowhere.
            _ => u64::MAX,
        };
        if allowed == u64::MAX || self.view.same_cpus {
            return allowed;
        }
        let cpus = self.view.cpus.min(64);
        (0..64).filter(|bit| allowed >> bit & 1 == 1).fold(0, |all, bit| all | 1 << (bit % cpus))
    }

    fn idle_cpu(&mut self, allowed: u64, last: u32) -> Option<u32> {
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
    fn find_course(&mut self, thread: u32) {
        let t = &mut self.threads[thread as usize];
        if t.left == 0
            && let Some(&time) = self.view.program.times.get(t.at as usize)
        {
            t.course = time;
        }
    }

    fn queue(&mut self, thread: u32, allowed: u64, cpu: u32) {
        self.count = self.count.wrapping_add(1);
        let entry = Reverse((self.threads[thread as usize].course, self.count, thread));
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
        let mine = self.threads[self.cpus[cpu as usize].thread as usize].course;
        let first =
            |queue: &Queue| queue.peek().is_some_and(|r| r.0.0.saturating_add(WAKE_UP_NS) < mine);
        first(&self.ready) || first(&self.ready_on[cpu as usize])
    }

    /// When this CPU has to be looked at next.
    fn schedule(&mut self, cpu: u32) {
        let contended = !self.ready.is_empty() || !self.ready_on[cpu as usize].is_empty();
        let c = &mut self.cpus[cpu as usize];
        if c.thread == NOBODY {
            return;
        }
        let done = c.since.saturating_add(self.threads[c.thread as usize].left);
        let at = if contended { done.min(c.slice_ends) } else { done };
        c.turn = c.turn.wrapping_add(1);
        let turn = c.turn;
        self.later(at.max(self.now), What::Cpu { cpu, turn });
    }

    /// Charge what ran on `cpu` up to now.
    fn charge(&mut self, cpu: u32) {
        let c = &mut self.cpus[cpu as usize];
        let t = &mut self.threads[c.thread as usize];
        let ns = self.now.saturating_sub(c.since).min(t.left);
        t.left -= ns;
        t.ran += ns;
        t.course = t.course.saturating_add(ns);
        c.since = c.since.max(self.now);
    }

    /// Who is on `cpu` goes back to the queue.
    fn stop(&mut self, cpu: u32) {
        self.charge(cpu);
        let thread = self.cpus[cpu as usize].thread;
        self.threads[thread as usize].state = State::Ready;
        self.queue(thread, self.allowed(thread), cpu);
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
            return false;
        };
        let slice = self.slice();
        let c = &mut self.cpus[cpu as usize];
        (c.thread, c.since, c.slice_ends) = (thread, self.now, self.now.saturating_add(slice));
        let t = &mut self.threads[thread as usize];
        (t.state, t.last_cpu) = (State::Running, cpu);
        true
    }

    /// Something is due on `cpu`: a run or a slice is over, or its thread has arrived.
    fn turn(&mut self, cpu: u32) {
        self.charge(cpu);
        let c = &self.cpus[cpu as usize];
        if self.threads[c.thread as usize].left > 0 {
            let contended = !self.ready.is_empty() || !self.ready_on[cpu as usize].is_empty();
            if !contended || self.now < c.slice_ends {
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

    /// Take the next step. False if the thread leaves its CPU.
    fn step(&mut self, thread: u32) -> bool {
        let t = &self.threads[thread as usize];
        if t.works && t.at >= self.view.program.threads[t.of as usize].work_to {
            self.has_worked(thread);
        }
        let t = &self.threads[thread as usize];
        if t.at == t.end {
            return self.next_piece(thread);
        }
        let (of, op) = (t.of as usize, self.view.program.ops[t.at as usize]);
        let mut stays = true;
        match op {
            Op::Run(ns) => self.runs(thread, self.view.scaled(of, t.holding, ns)),
            Op::Spin(ns, lock) => match self.view.rules[lock.0 as usize] {
                Rule::Gone => {}
                Rule::Scaled(f) => {
                    let ns = self.view.scaled(of, t.holding * f, ns);
                    self.runs(thread, ns);
                }
                Rule::Parts(count) => {
                    let ns = self.view.scaled(of, t.holding, ns) / Nanos::from(count);
                    self.runs(thread, ns);
                }
                Rule::Same => self.runs(thread, self.view.scaled(of, t.holding, ns)),
            },
            Op::Sleep(ns, object) => {
                if !self.is_gone(object) {
                    self.threads[thread as usize].state = State::Asleep;
                    self.later(self.now.saturating_add(ns), What::Wakes(thread));
                    stays = false;
                }
            }
            Op::Wait { number, object, .. } => {
                if let Some(begun) = &mut self.begun {
                    begun.insert(number);
                    if let Some(server) = self.awaiting.remove(&number) {
                        self.wake(server, 0);
                    }
                }
                if !self.ended.contains(number) && !self.is_gone(object) && self.meets(object) {
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
            Op::Hold(lock) => self.hold(thread, lock),
            Op::Drop(lock) => self.drop(thread, lock),
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
        // A sleeper takes this step again, or the one after it, when it is awake.
        if stays || matches!(op, Op::Sleep(..)) {
            self.threads[thread as usize].at += 1;
        }
        stays
    }

    fn runs(&mut self, thread: u32, ns: Nanos) {
        self.find_course(thread);
        let t = &mut self.threads[thread as usize];
        t.left = ns;
        if self.view.program.threads[t.of as usize].works && self.work.is_none() {
            self.work = Some((self.now, self.now));
        }
    }

    /// A thread has done its work.
    fn has_worked(&mut self, thread: u32) {
        let t = &mut self.threads[thread as usize];
        // The other parts of one that is split still do theirs.
        if t.at < t.end && self.view.parts[t.of as usize] > 1 {
            return;
        }
        t.works = false;
        self.left -= 1;
        if let Some((_, to)) = &mut self.work {
            *to = self.now;
        }
    }

    /// Whether nobody waits for this any more.
    fn is_gone(&self, object: ObjectId) -> bool {
        object != ObjectId::NONE
            && (matches!(self.view.rules[object.0 as usize], Rule::Gone)
                || self.view.free_devices && self.view.program.objects[object.0 as usize].is_device)
    }

    /// Whether two meet at the same part of a lock that is split.
    fn meets(&mut self, object: ObjectId) -> bool {
        match self.view.rules.get(object.0 as usize) {
            Some(&Rule::Parts(count)) => self.random(count) == 0,
            _ => true,
        }
    }

    /// Who of `other`, or of its parts, sleeps until this wait is ended.
    fn waiting_for(&self, other: u32, number: u32) -> Option<u32> {
        let waits = |t: u32| self.threads[t as usize].state == State::Waiting(number);
        match self.pieces.get(&other) {
            Some(pieces) => pieces.parts.iter().copied().find(|&t| waits(t)),
            None => Some(other).filter(|&t| waits(t)),
        }
    }

    /// How long an idle CPU takes to take a thread from the step it sleeps in.
    fn delay(&self, thread: u32) -> u32 {
        match self.view.program.ops.get(self.threads[thread as usize].at as usize) {
            Some(Op::Wait { delay, .. } | Op::Arrive { delay, .. }) => *delay,
            _ => 0,
        }
    }

    /// The thread has a lock: what it does with it takes longer or shorter if that was changed.
    fn hold(&mut self, thread: u32, lock: ObjectId) {
        if let Rule::Scaled(f) = self.view.rules[lock.0 as usize] {
            let t = &mut self.threads[thread as usize];
            t.held.push(lock);
            t.holding *= f;
        }
    }

    fn drop(&mut self, thread: u32, lock: ObjectId) {
        let t = &mut self.threads[thread as usize];
        if let Rule::Scaled(f) = self.view.rules[lock.0 as usize]
            && let Some(at) = t.held.iter().position(|&h| h == lock)
        {
            t.held.swap_remove(at);
            t.holding = if t.held.is_empty() { 1.0 } else { t.holding / f };
        }
    }

    /// Whether the round is complete now; then all go on.
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

    /// The thread has come to the end of a piece of its program. False if there is no other.
    fn next_piece(&mut self, thread: u32) -> bool {
        let of = self.threads[thread as usize].of;
        let work_to = self.view.program.threads[of as usize].work_to;
        let piece = self.pieces.get_mut(&of).and_then(|p| {
            let from = *p.starts.get(p.next)?;
            p.next += 1;
            Some((from, p.starts.get(p.next).copied().unwrap_or(p.end)))
        });
        let Some((from, to)) = piece else {
            let t = &mut self.threads[thread as usize];
            t.state = State::Ended;
            if t.works {
                self.has_worked(thread);
            }
            return false;
        };
        let t = &mut self.threads[thread as usize];
        if t.works && from >= work_to {
            self.has_worked(thread);
        }
        let t = &mut self.threads[thread as usize];
        (t.at, t.end) = (from, to);
        // Its work is for the one whose wait it ends: nobody works for who has not asked yet.
        if let Op::Wake { thread: client, number } = self.view.program.ops[to as usize - 1]
            && self.view.asks(client, of)
            && self.begun.as_ref().is_some_and(|begun| !begun.contains(number))
            && !self.ended.contains(number)
        {
            self.awaiting.insert(number, thread);
            self.threads[thread as usize].state = State::Arrived;
            return false;
        }
        true
    }

    /// Nothing will happen any more, and there is work left: all wait for each other, in an order
    /// that the trace did not have. Let the first go.
    fn force(&mut self) -> bool {
        let stuck = |t: &Thread| matches!(t.state, State::Waiting(_) | State::Arrived);
        let Some(thread) = self.threads.iter().position(stuck) else { return false };
        self.forced += 1;
        let thread = thread as u32;
        self.awaiting.retain(|_, &mut t| t != thread);
        for arrived in &mut self.arrived {
            arrived.retain(|&t| t != thread);
        }
        let t = &mut self.threads[thread as usize];
        let waits = |op: &Op| matches!(op, Op::Wait { .. } | Op::Arrive { .. });
        let past = t.at < t.end && self.view.program.ops.get(t.at as usize).is_some_and(waits);
        t.at += u32::from(past);
        self.wake(thread, 0);
        true
    }
}
