//! From the steps of an analysis to programs.
//!
//! Two things turn what happened into what must happen again. A sleep that another thread ended
//! becomes a wait for that thread to get there again; one that nobody of the trace ended keeps its
//! length. And where the object is a lock, or a barrier, it is not that thread's arrival that
//! counts but the lock's being free, or everybody's arrival: under a change another thread may
//! well come first.

use crate::bits::BitSet;
use crate::program::{ObjectId, Op, Program, ReplayObject, ThreadProgram};
use holdup_attribution::is_recorder;
use holdup_passes::{
    Analysis, Did, FutexUse, Held, Object, ObjectKind, ObjectStats, Slot, Thread, ThreadSteps,
};
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Threads with so much of all CPU time, in per cent, the busiest first, do the work: when the last
/// of them ends, the work does. What is left are daemons that wake up now and then, and a
/// recorder's `sleep 10`.
pub const WORK_PCT: u64 = 98;

/// Part of a thread's CPU time that is work, in per cent. What comes last is being told to stop,
/// which may be hours later, and cleaning up.
const DONE_PCT: u64 = 99;

/// Wake-ups of one barrier by one thread within so long are one round.
const ROUND_NS: Nanos = 2_000_000;

/// A thread that was ready for so much of the time, in per cent, while CPUs idled that never took
/// it was not allowed there.
const PASSED_OVER_PCT: u64 = 30;
/// If that was so much of the recording, in per cent, too.
const PASSED_OVER_WALL_PCT: u64 = 5;

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CannotReplay {
    /// Nobody knows who ran.
    #[error("the trace has no sched_switch events: nobody knows who ran when")]
    NoSwitches,
    /// Nothing ran.
    #[error("no thread is seen to run in this trace")]
    NothingRan,
}

/// What a sleep of the trace is to the replay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lock,
    Barrier,
    Other,
}

struct Builder<'a> {
    analysis: &'a Analysis,
    slots: Vec<(Slot, &'a Thread)>,
    /// Thread number by slot.
    numbers: FxHashMap<Slot, u32>,
    /// Where the numbers of each thread's waits begin.
    bases: Vec<u32>,
    stats: BTreeMap<Object, ObjectStats>,
    objects: Vec<ReplayObject>,
    ids: FxHashMap<Object, ObjectId>,
    /// Locks of the kernel by address.
    kernel: FxHashMap<u64, ObjectId>,
    /// Holds of locks whose acquisition is not traced.
    inferred: FxHashMap<Slot, Vec<Held>>,
    /// Rounds of barriers, by who slept in them.
    in_round: FxHashMap<(Slot, u32), u32>,
    /// Sleeps that a thread of the trace ended, by number.
    woken: BitSet,
    /// Threads that others made.
    spawned: FxHashSet<Slot>,
    rounds: Vec<u32>,
    ops: Vec<Op>,
    times: Vec<Nanos>,
    usual_delay: Nanos,
}

impl Program {
    /// Of an analysis with [`holdup_passes::Detail::Steps`].
    ///
    /// # Errors
    /// The trace does not say who ran.
    pub fn new(analysis: &Analysis) -> Result<Program, CannotReplay> {
        if !analysis.capabilities.switches {
            return Err(CannotReplay::NoSwitches);
        }
        let slots: Vec<(Slot, &Thread)> =
            analysis.all_threads().filter(|&(slot, _)| slot != Slot::IDLE).collect();
        let numbers = slots.iter().zip(0..).map(|(&(slot, _), i)| (slot, i)).collect();
        let mut bases = Vec::with_capacity(slots.len());
        let mut total = 0_u32;
        for &(slot, _) in &slots {
            bases.push(total);
            total = total.saturating_add(analysis.steps(slot).steps.len() as u32);
        }
        let mut builder = Builder {
            analysis,
            slots,
            numbers,
            bases,
            stats: analysis.objects().map(|o| (o.object, o)).collect(),
            objects: Vec::new(),
            ids: FxHashMap::default(),
            kernel: FxHashMap::default(),
            inferred: FxHashMap::default(),
            in_round: FxHashMap::default(),
            woken: BitSet::new(total),
            spawned: FxHashSet::default(),
            rounds: Vec::new(),
            ops: Vec::new(),
            times: Vec::new(),
            usual_delay: 0,
        };
        builder.name_objects();
        builder.tell_apart();
        builder.find_ends();
        builder.infer_holds();
        builder.find_rounds();
        builder.usual_delay = builder.mean_delay(builder.slots.iter().map(|s| s.0)).unwrap_or(0);
        let mut threads: Vec<ThreadProgram> =
            (0..builder.slots.len()).map(|i| builder.thread(i)).collect();
        mark_workers(analysis, &mut threads);
        let traced_wall_ns = builder.traced_span(&threads).ok_or(CannotReplay::NothingRan)?;
        let irq_ns = analysis.irq_ns();
        Ok(Program {
            threads,
            objects: builder.objects,
            cpus: analysis.cpu_list().len().max(1) as u32,
            traced_wall_ns,
            irq_ns,
            wall_ns: analysis.wall_ns(),
            ops: builder.ops,
            times: builder.times,
            numbers: total,
            rounds: builder.rounds,
        })
    }
}

/// Of the threads that are neither the kernel's nor a recorder's, the busiest.
fn mark_workers(analysis: &Analysis, threads: &mut [ThreadProgram]) {
    // Who sleeps for half of the recording only says when it is over.
    let is_worker =
        |t: &ThreadProgram| !is_recorder(&t.comm) && t.longest_ns < analysis.wall_ns() / 2;
    let of_program = |t: &ThreadProgram| is_worker(t) && !analysis.thread(t.slot).is_kthread();
    let any = threads.iter().any(|t| of_program(t) && t.run_ns > 0);
    let mut order: Vec<usize> = (0..threads.len())
        .filter(|&i| if any { of_program(&threads[i]) } else { is_worker(&threads[i]) })
        .collect();
    order.sort_by_key(|&i| std::cmp::Reverse(threads[i].run_ns));
    let all: Nanos = order.iter().map(|&i| threads[i].run_ns).sum();
    let mut sum = 0;
    for i in order {
        if is_part(sum, all, WORK_PCT) {
            break;
        }
        sum += threads[i].run_ns;
        threads[i].works = true;
    }
}

impl<'a> Builder<'a> {
    fn class(&self, object: Object) -> Class {
        match self.stats.get(&self.analysis.final_object(object)) {
            Some(o) if o.is_lock => Class::Lock,
            Some(o) if o.usage == Some(FutexUse::Barrier) => Class::Barrier,
            _ => Class::Other,
        }
    }

    fn id(&self, object: Object) -> ObjectId {
        self.ids.get(&self.analysis.final_object(object)).copied().unwrap_or(ObjectId::NONE)
    }

    fn name_objects(&mut self) {
        for (&object, o) in &self.stats {
            if o.waits == 0 && !o.is_lock || object == Object::OTHER {
                continue;
            }
            let id = ObjectId(self.objects.len() as u32);
            let kind = o.usage.map_or(o.kind.name(), FutexUse::name);
            let of = o.first.map(|slot| self.analysis.comm(self.analysis.thread(slot)));
            let name = match of {
                Some(comm) if o.kind != ObjectKind::KernelLock => {
                    format!("{kind} {} of {comm}", self.analysis.object_name(object))
                }
                _ => format!("{kind} {}", self.analysis.object_name(object)),
            };
            let is_device = matches!(o.kind, ObjectKind::Disk | ObjectKind::PageFault)
                || o.device_ns * 2 > o.wait_ns;
            let object_of = ReplayObject {
                name,
                is_lock: o.is_lock,
                waits: o.waits,
                wait_ns: o.wait_ns,
                hold_ns: 0,
                is_turn: is_turn(o) && !is_device,
                is_device,
            };
            self.objects.push(object_of);
            self.ids.insert(object, id);
            if let Some(address) = self.analysis.kernel_lock(object) {
                self.kernel.insert(address, id);
            }
        }
    }

    /// The same address in two processes of one name is two objects: their processes tell them
    /// apart.
    fn tell_apart(&mut self) {
        let mut often: FxHashMap<String, u32> = FxHashMap::default();
        for o in &self.objects {
            *often.entry(o.name.clone()).or_default() += 1;
        }
        for (object, id) in &self.ids {
            let known = &mut self.objects[id.0 as usize];
            let first = self.stats.get(object).and_then(|o| o.first);
            if often[&known.name] > 1
                && let Some(pid) = first.and_then(|s| self.analysis.pid(self.analysis.thread(s)))
            {
                known.name += &format!(", pid {pid}");
            }
        }
    }

    /// Nobody sees a lock of the kernel being taken. Who wakes the next had it: since it was woken
    /// for it itself, or the one before gave it back, or the waiting began, whatever came last.
    fn infer_holds(&mut self) {
        let mut ends: Vec<(Object, Nanos, Nanos, Slot, Slot)> = Vec::new();
        for &(slot, _) in &self.slots {
            for step in self.analysis.steps(slot).steps {
                let Did::Wake { thread, step: number } = step.what else { continue };
                let slept = self.analysis.steps(thread).steps[number as usize];
                let Did::Sleep(ns, object) = slept.what else { continue };
                let object = self.analysis.final_object(object);
                let of_kernel = self.stats.get(&object);
                if of_kernel.is_some_and(|o| o.is_lock && o.kind == ObjectKind::KernelLock) {
                    ends.push((object, slept.at + ns, slept.at, slot, thread));
                }
            }
        }
        ends.sort_unstable();
        let mut released: FxHashMap<Object, Nanos> = FxHashMap::default();
        let mut got: FxHashMap<(Object, Slot), Nanos> = FxHashMap::default();
        for (object, to, began, waker, sleeper) in ends {
            let last = released.insert(object, to).unwrap_or(0);
            let own = got.get(&(object, waker)).copied().unwrap_or(0);
            let from = last.max(own).max(if own == 0 { began } else { 0 }).min(to);
            self.inferred.entry(waker).or_default().push(Held { object, from, to });
            got.insert((object, sleeper), to);
        }
    }

    /// Who wakes the others at a barrier came last; all of them take part in one round. Some go to
    /// sleep once more before they leave it: that is an ordinary wait for the one that wakes them.
    fn find_rounds(&mut self) {
        for &(slot, _) in &self.slots {
            let mut open: Option<(Object, Nanos, u32)> = None;
            let mut members = Vec::new();
            for step in self.analysis.steps(slot).steps {
                let (thread, number) = match step.what {
                    Did::Wake { thread, step } => (thread, step),
                    Did::Sleep(..) => {
                        open = None;
                        continue;
                    }
                    _ => continue,
                };
                let slept = self.analysis.steps(thread).steps[number as usize];
                let Did::Sleep(_, object) = slept.what else { continue };
                if self.class(object) != Class::Barrier {
                    continue;
                }
                let object = self.analysis.final_object(object);
                let round = match open {
                    Some((o, at, round)) if o == object && step.at - at < ROUND_NS => round,
                    _ => {
                        members.clear();
                        self.rounds.push(1);
                        self.rounds.len() as u32 - 1
                    }
                };
                open = Some((object, step.at, round));
                if !members.contains(&thread) {
                    members.push(thread);
                    self.rounds[round as usize] += 1;
                    self.in_round.insert((thread, number), round);
                }
            }
        }
    }

    /// Which sleeps were ended by threads, and which threads were made by others.
    fn find_ends(&mut self) {
        for &(slot, _) in &self.slots {
            for step in self.analysis.steps(slot).steps {
                match step.what {
                    Did::Wake { thread, step } => {
                        let base = self.bases[self.numbers[&thread] as usize];
                        self.woken.insert(base + step);
                    }
                    Did::Spawn(child) => {
                        self.spawned.insert(child);
                    }
                    _ => {}
                }
            }
        }
    }

    fn mean_delay(&self, slots: impl Iterator<Item = Slot>) -> Option<Nanos> {
        let (mut sum, mut count) = (0, 0);
        for slot in slots {
            for step in self.analysis.steps(slot).steps {
                if let Did::Delay(ns) = step.what {
                    (sum, count) = (sum + ns, count + 1);
                }
            }
        }
        (count > 0).then(|| sum / count)
    }

    /// The program of one thread.
    fn thread(&mut self, number: usize) -> ThreadProgram {
        let (slot, t) = self.slots[number];
        let analysis = self.analysis;
        let of = analysis.steps(slot);
        let from = self.ops.len() as u32;
        let spawned = self.spawned.contains(&slot);
        let usual = self.mean_delay([slot].into_iter()).unwrap_or(self.usual_delay);
        let holds = self.holds(slot);
        let spins = of
            .contended
            .iter()
            .filter_map(|c| Some((c.from, c.to, *self.kernel.get(&c.lock)?)))
            .collect();
        let mut ops = std::mem::take(&mut self.ops);
        let mut times = std::mem::take(&mut self.times);
        let mut writer = Writer::new(&mut ops, &mut times, &holds, spins);

        let allowed = self.allowed(t, &of);
        let start = analysis.start_ns();
        let first = of.steps.first().map_or(start, |s| s.at);
        if !spawned && first > start {
            writer.push(start, Op::Sleep(first - start, ObjectId::NONE));
        }
        let mut first_delay = usual;
        let mut run_ns = 0;
        let mut in_round = None;
        let (mut ends_ns, mut longest_ns) = (0, 0);
        for (i, step) in of.steps.iter().enumerate() {
            writer.marks_until(step.at);
            let took = match of.steps.get(i + 1).map(|s| s.what) {
                Some(Did::Delay(ns)) => Some(ns),
                Some(Did::PassedOver(ns)) if allowed == u64::MAX => Some(ns),
                _ => None,
            };
            let delay = narrow(took.unwrap_or(usual));
            let after_run = i > 0 && matches!(of.steps[i - 1].what, Did::Run(_));
            match step.what {
                Did::Run(ns) => {
                    run_ns += ns;
                    writer.run(step.at, ns);
                }
                Did::Sleep(ns, object) => {
                    let id = self.id(object);
                    let wait = self.bases[number] + i as u32;
                    match self.class(object) {
                        _ if !self.woken.contains(wait) => {
                            longest_ns = longest_ns.max(ns);
                            writer
                                .push(step.at, Op::Sleep(ns.saturating_add(took.unwrap_or(0)), id));
                        }
                        Class::Barrier if self.in_round.contains_key(&(slot, i as u32)) => {
                            let round = self.in_round[&(slot, i as u32)];
                            writer.push(step.at, Op::Arrive { round, object: id, delay });
                        }
                        _ => writer.push(step.at, Op::Wait { number: wait, object: id, delay }),
                    }
                }
                Did::Delay(ns) if i == 0 => first_delay = ns,
                Did::PassedOver(ns) if after_run && allowed == u64::MAX => {
                    // Having lost its CPU it did not get the one that idled.
                    writer.push(step.at, Op::Sleep(ns, ObjectId::NONE));
                }
                Did::Delay(_) | Did::PassedOver(_) | Did::Ready(_) => {}
                Did::HeldOff(ns) | Did::Unknown(ns) => {
                    writer.push(step.at, Op::Sleep(ns, ObjectId::NONE));
                }
                Did::Wake { thread, step: sleep } => {
                    let slept = analysis.steps(thread).steps[sleep as usize];
                    let Did::Sleep(slept_ns, object) = slept.what else { continue };
                    if self.class(object) == Class::Other {
                        ends_ns += slept_ns;
                    }
                    match self.in_round.get(&(thread, sleep)) {
                        Some(&round) => {
                            if in_round.replace(round) != Some(round) {
                                let object = self.id(object);
                                writer.push(step.at, Op::Arrive { round, object, delay });
                            }
                        }
                        None => {
                            let thread = self.numbers[&thread];
                            let number = self.bases[thread as usize] + sleep;
                            writer.push(step.at, Op::Wake { thread, number });
                        }
                    }
                }
                Did::Spawn(child) => {
                    if let Some(&child) = self.numbers.get(&child) {
                        writer.push(step.at, Op::Spawn(child));
                    }
                }
            }
        }
        writer.finish();
        (self.ops, self.times) = (ops, times);
        for &(from, to, id) in &holds {
            self.objects[id.0 as usize].hold_ns += to - from;
        }
        let comm = analysis.comm(t);
        let done = work_to(&self.ops[from as usize..], run_ns) as u32;
        let at_barriers =
            self.ops[from as usize..].iter().any(|op| matches!(op, Op::Arrive { .. }));
        ThreadProgram {
            work_to: from + done,
            ends_ns,
            longest_ns,
            at_barriers,
            slot,
            tid: t.tid.0,
            works: false,
            run_ns,
            irq_ns: t.irq_ns,
            is_softirq: comm.starts_with("ksoftirqd"),
            comm,
            from,
            to: self.ops.len() as u32,
            spawned,
            delay: narrow(first_delay),
            allowed,
        }
    }

    /// What the thread held of locks: from, to, which.
    fn holds(&self, slot: Slot) -> Vec<Hold> {
        let inferred = self.inferred.get(&slot).map_or(&[][..], Vec::as_slice);
        let held = self.analysis.steps(slot).held.iter().chain(inferred);
        let lock = |h: &Held| {
            (self.class(h.object) == Class::Lock).then(|| (h.from, h.to, self.id(h.object)))
        };
        held.filter_map(lock).filter(|h| h.2 != ObjectId::NONE).collect()
    }

    /// The CPUs that a thread may run on, as far as what it did tells.
    fn allowed(&self, t: &Thread, of: &ThreadSteps<'_>) -> u64 {
        let cpus = self.analysis.cpu_list();
        let all = cpus.iter().fold(0_u64, |all, cpu| all | 1 << (cpu.0 % 64));
        let ready = t.woken_ns + t.preempted_ns;
        let passed_over = of.passed_over_ns > 0
            && is_part(of.passed_over_ns, self.analysis.wall_ns(), PASSED_OVER_WALL_PCT)
            && is_part(of.passed_over_ns, ready, PASSED_OVER_PCT);
        let at_home = is_per_cpu(&self.analysis.comm(t)) && of.cpus.count_ones() == 1;
        let bound_to = match (passed_over, at_home) {
            (true, _) => of.waited_for,
            (false, true) => of.cpus,
            (false, false) => 0,
        };
        if cpus.len() > 64 || bound_to == 0 || bound_to & all == all {
            return u64::MAX;
        }
        // As places in the list of CPUs.
        let places = cpus.iter().enumerate().filter(|(_, cpu)| bound_to >> (cpu.0 % 64) & 1 == 1);
        places.fold(0, |allowed, (place, _)| allowed | 1 << place)
    }

    /// From the moment those threads began that do the work to the one when they had done it.
    fn traced_span(&self, threads: &[ThreadProgram]) -> Option<Nanos> {
        let mut span: Option<(Nanos, Nanos)> = None;
        for t in threads.iter().filter(|t| t.works) {
            for at in t.from as usize..t.work_to as usize {
                if let Op::Run(ns) | Op::Spin(ns, _) = self.ops[at] {
                    let begins = self.times[at];
                    let (from, to) = span.unwrap_or((begins, 0));
                    span = Some((from.min(begins), to.max(begins + ns)));
                }
            }
        }
        span.map(|(from, to)| to - from)
    }
}

/// The step after which a thread has done its work.
fn work_to(ops: &[Op], run_ns: Nanos) -> usize {
    let mut sum = 0;
    for (op, next) in ops.iter().zip(1..) {
        if let Op::Run(ns) | Op::Spin(ns, _) = op {
            sum += ns;
            if is_part(sum, run_ns, DONE_PCT) {
                return next;
            }
        }
    }
    ops.len()
}

/// Whether a thread of this name is one that the kernel has for each CPU, such as `ksoftirqd/3`
/// and `kworker/3:1H`.
fn is_per_cpu(comm: &str) -> bool {
    comm.split_once('/').is_some_and(|(_, of)| of.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether threads wait there for what others do.
fn is_turn(o: &ObjectStats) -> bool {
    match o.kind {
        ObjectKind::Futex => o.usage != Some(FutexUse::Join),
        ObjectKind::Semop
        | ObjectKind::MessageQueue
        | ObjectKind::Mqueue
        | ObjectKind::Flock
        | ObjectKind::PosixLock
        | ObjectKind::Pipe
        | ObjectKind::Socket
        | ObjectKind::Eventfd
        | ObjectKind::KernelLock
        | ObjectKind::Uninterruptible => true,
        ObjectKind::Other
        | ObjectKind::Accept
        | ObjectKind::Timerfd
        | ObjectKind::File
        | ObjectKind::Descriptor
        | ObjectKind::Epoll
        | ObjectKind::Poll
        | ObjectKind::Child
        | ObjectKind::Timer
        | ObjectKind::Signal
        | ObjectKind::Disk
        | ObjectKind::PageFault => false,
    }
}

/// Whether `part` is at least so many per cent of `whole`.
pub(crate) fn is_part(part: Nanos, whole: Nanos, pct: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(pct)
}

fn narrow(ns: Nanos) -> u32 {
    ns.min(u64::from(u32::MAX)) as u32
}

/// From, to, which.
type Hold = (Nanos, Nanos, ObjectId);

/// Writes one thread's program: cuts its runs where holds begin and end, and where it spins.
struct Writer<'b> {
    ops: &'b mut Vec<Op>,
    times: &'b mut Vec<Nanos>,
    /// Ends (`false`) and beginnings (`true`) of holds, in order of time.
    marks: Vec<(Nanos, bool, ObjectId)>,
    next_mark: usize,
    spins: Vec<Hold>,
    next_spin: usize,
    holding: Vec<ObjectId>,
}

impl<'b> Writer<'b> {
    fn new(
        ops: &'b mut Vec<Op>,
        times: &'b mut Vec<Nanos>,
        holds: &[Hold],
        spins: Vec<Hold>,
    ) -> Writer<'b> {
        let ends = holds.iter().flat_map(|&(from, to, id)| [(from, true, id), (to, false, id)]);
        // Who gives a lock back and takes another in the same moment gives back first.
        let mut marks: Vec<_> = ends.collect();
        marks.sort_unstable_by_key(|&(at, begins, id)| (at, begins, id));
        Writer { ops, times, marks, next_mark: 0, spins, next_spin: 0, holding: Vec::new() }
    }

    fn push(&mut self, at: Nanos, op: Op) {
        self.times.push(at);
        self.ops.push(op);
    }

    /// Begin and end holds up to `at`.
    fn marks_until(&mut self, at: Nanos) {
        while let Some(&(time, begins, lock)) = self.marks.get(self.next_mark)
            && time <= at
        {
            self.next_mark += 1;
            let held = self.holding.iter().position(|&h| h == lock);
            match (begins, held) {
                (true, None) => {
                    self.push(time, Op::Hold(lock));
                    self.holding.push(lock);
                }
                (false, Some(held)) => {
                    self.holding.swap_remove(held);
                    self.push(time, Op::Drop(lock));
                }
                _ => {}
            }
        }
    }

    /// A stay on a CPU, from `at` on.
    fn run(&mut self, at: Nanos, ns: Nanos) {
        let (mut at, end) = (at, at + ns);
        while at < end {
            self.marks_until(at);
            let to = self.marks.get(self.next_mark).map_or(end, |m| m.0.clamp(at + 1, end));
            while self.spins.get(self.next_spin).is_some_and(|s| s.1 <= at) {
                self.next_spin += 1;
            }
            let (to, op) = match self.spins.get(self.next_spin) {
                Some(&(from, until, lock)) if from <= at => {
                    let to = to.min(until);
                    (to, Op::Spin(to - at, lock))
                }
                spin => {
                    let to = spin.map_or(to, |s| s.0.min(to));
                    (to, Op::Run(to - at))
                }
            };
            self.push(at, op);
            at = to;
        }
    }

    fn finish(&mut self) {
        self.marks_until(Nanos::MAX);
    }
}
