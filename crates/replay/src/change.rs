//! What shall be different in a replay.

use crate::answers::asked_by_holders;
use crate::program::{ObjectId, Op, Order, Program};
use crate::spans::Spans;
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;

/// Something that is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The machine has so many CPUs.
    Cpus(u32),
    /// A lock, or whatever threads wait for.
    Lock(ObjectId, LockChange),
    /// The work of this thread is shared by so many.
    Split(usize, u32),
    /// Interrupts and softirqs take the same part of all CPUs.
    SpreadIrqs,
    /// This thread runs so many times as fast.
    Speed(usize, f64),
    /// Every thread runs so many times its time: of each thread, by its number.
    Calls {
        /// As it was asked for.
        name: String,
        /// By thread.
        factors: Vec<f64>,
    },
    /// Devices answer at once.
    NoDevices,
    /// No thread is bound to some CPUs.
    AnyCpu,
    /// No quota keeps threads off the CPUs.
    NoQuota,
    /// What threads do between two rounds of a barrier takes each of them as long.
    Deal,
}

/// What is changed of a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LockChange {
    /// Threads have it for so many times as long.
    Hold(f64),
    /// It becomes so many locks, each taken equally often.
    Split(u32),
    /// Whoever has it does not sleep: not for a device, a time, a client or another lock.
    Awake,
    /// Whoever has it has a CPU, as with a real-time priority: it is not preempted, and no quota
    /// keeps it off.
    First,
    /// Nobody waits for it any more.
    None,
}

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// Nobody holds it.
    #[error(
        "{0} has no holder: threads wait for an action of another thread, not for a lock; the only \
         possible change is `none`"
    )]
    NotALock(String),
    /// No number of CPUs, or too many.
    #[error("the number of CPUs must be from 1 to {MAX_CPUS}, not {0}")]
    Cpus(u32),
    /// Beyond what a change of a program can be.
    #[error(
        "a factor must be from {low} to {high}, not {0}",
        low = FACTORS.start(),
        high = FACTORS.end()
    )]
    Factor(f64),
    /// Not split.
    #[error(
        "the number of parts must be from {low} to {high}, not {0}",
        low = PARTS.start(),
        high = PARTS.end()
    )]
    Parts(u32),
}

/// A simulated machine has so many CPUs at most.
pub const MAX_CPUS: u32 = 1024;

/// What times can be multiplied by: beyond these are slips of the finger.
pub const FACTORS: RangeInclusive<f64> = 0.001..=1000.0;

/// Into how many a lock or a thread can be split.
pub const PARTS: RangeInclusive<u32> = 2..=1024;

/// How one lock behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Rule {
    /// As it did.
    Same,
    /// Nobody waits for it.
    Gone,
    /// Held for so many times as long.
    Scaled(f64),
    /// One of so many, each taken equally often.
    Parts(u32),
    /// Whoever has it does not sleep.
    Awake,
    /// Whoever has it has a CPU.
    First,
}

impl Rule {
    /// What holding it takes, compared with the trace.
    pub(crate) fn factor(self) -> f64 {
        match self {
            Rule::Scaled(by) => by,
            Rule::Same | Rule::Gone | Rule::Parts(_) | Rule::Awake | Rule::First => 1.0,
        }
    }

    /// What is left of so much spinning for it.
    pub(crate) fn spun(self, ns: Nanos) -> Nanos {
        match self {
            Rule::Gone => 0,
            Rule::Parts(count) => ns / Nanos::from(count),
            Rule::Same | Rule::Scaled(_) | Rule::Awake | Rule::First => ns,
        }
    }
}

/// A program seen through changes.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub(crate) program: &'a Program,
    pub(crate) cpus: u32,
    /// By object.
    pub(crate) rules: Vec<Rule>,
    /// What each thread's runs are multiplied by.
    pub(crate) factors: Vec<f64>,
    /// Into how many a thread is split.
    pub(crate) parts: Vec<u32>,
    /// The CPUs of this machine that each thread may run on; all ones for any.
    pub(crate) allowed: Vec<u64>,
    pub(crate) free_devices: bool,
    pub(crate) no_quota: bool,
    pub(crate) any_cpu: bool,
    /// Threads are not held to who came first in the trace: locks go to whoever comes first, as far
    /// as their holds are known, and no thread queues while a CPU idles.
    pub(crate) free: bool,
    /// Who watches the work does not nap, and is woken by what others do.
    pub(crate) unwatched: bool,
    /// Those who are no part of the work come after all who are.
    pub(crate) alone: bool,
    /// Nothing is changed at all.
    pub(crate) unchanged: bool,
    /// Those who are no part of the work have the CPUs as a scheduler gives them, whoever gets on.
    pub(crate) fair: bool,
    /// Of each thread, sleep that nobody waits for with a lock in hand any more; empty where no
    /// lock is held awake.
    pub(crate) unasked: Vec<Spans>,
    /// Waits that are ended by a thread that is split, and that had begun in the trace before it
    /// began its work for them, by number.
    pub(crate) asked: FxHashSet<u32>,
}

impl<'a> View<'a> {
    /// `program` as it is.
    pub(crate) fn unchanged(program: &'a Program) -> View<'a> {
        View {
            program,
            cpus: program.cpus,
            rules: vec![Rule::Same; program.objects.len()],
            factors: vec![1.0; program.threads.len()],
            parts: vec![1; program.threads.len()],
            allowed: program.threads.iter().map(|t| t.allowed).collect(),
            free_devices: false,
            no_quota: false,
            any_cpu: false,
            free: false,
            unwatched: false,
            alone: false,
            fair: false,
            unasked: Vec::new(),
            unchanged: true,
            asked: FxHashSet::default(),
        }
    }

    /// `program` without a change, but free of the order of the trace.
    pub(crate) fn free(program: &'a Program) -> View<'a> {
        View { free: true, unchanged: false, ..View::unchanged(program) }
    }

    /// `program` with `changes`, free of the order of the trace.
    pub(crate) fn new(program: &'a Program, changes: &[Change]) -> Result<View<'a>, ChangeError> {
        let mut view = View::free(program);
        for change in changes {
            view.apply(change)?;
        }
        view.allowed = (0..program.threads.len()).map(|i| view.allowed(i)).collect();
        view.find_asked();
        if view.rules.contains(&Rule::Awake) {
            let is_one = |lock: ObjectId| view.rules.get(lock.0 as usize) == Some(&Rule::Awake);
            view.unasked = asked_by_holders(program, is_one);
        }
        Ok(view)
    }

    /// Which thread gets this lock when it is released.
    pub(crate) fn order(&self, object: ObjectId) -> Order {
        match self.program.objects.get(object.0 as usize) {
            Some(known) if self.free => known.order,
            _ => Order::Traced,
        }
    }

    /// The CPUs that a thread may run on, of this machine.
    fn allowed(&self, thread: usize) -> u64 {
        let allowed = self.program.threads[thread].allowed;
        // One of several is bound nowhere.
        if self.any_cpu || allowed == u64::MAX || self.parts[thread] > 1 {
            return u64::MAX;
        }
        if self.cpus == self.program.cpus {
            return allowed;
        }
        let cpus = self.cpus.min(64);
        (0..64).filter(|bit| allowed >> bit & 1 == 1).fold(0, |all, bit| all | 1 << (bit % cpus))
    }

    /// Where the pieces of work of a thread begin that others could do: after it has woken
    /// somebody, the one who asked for it; and where it sleeps until there is something to do.
    pub(crate) fn pieces(&self, thread: usize) -> Vec<u32> {
        let t = &self.program.threads[thread];
        let ops = &self.program.ops[t.from as usize..t.to as usize];
        let mut starts = if ops.is_empty() { Vec::new() } else { vec![t.from] };
        for (&op, at) in ops.iter().zip(t.from..) {
            match op {
                Op::Wake { .. } if at + 1 < t.to => starts.push(at + 1),
                op if arrives(self.program, op) && starts.last() != Some(&at) => starts.push(at),
                _ => {}
            }
        }
        starts
    }

    fn find_asked(&mut self) {
        let program = self.program;
        // By number of the wait: when the work for it began.
        let mut began: FxHashMap<u32, Nanos> = FxHashMap::default();
        let split = (0..self.parts.len()).filter(|&thread| self.parts[thread] > 1);
        for thread in split.collect::<Vec<_>>() {
            let mut since = None;
            let t = &program.threads[thread];
            for at in t.from as usize..t.to as usize {
                match program.ops[at] {
                    Op::Run(_) | Op::Spin(..) => since = since.or(Some(program.times[at])),
                    Op::Wake { thread, number } => {
                        let since = since.take();
                        // A time-out or a stranger on top of it asked for nothing.
                        if program.threads[thread as usize].may_ask() {
                            began.extend(since.map(|at| (number, at)));
                        }
                    }
                    Op::Wait { .. } => since = None,
                    op if arrives(program, op) => since = None,
                    _ => {}
                }
            }
        }
        if began.is_empty() {
            return;
        }
        for (op, &at) in program.ops.iter().zip(&program.times) {
            if let Op::Wait { number, .. } = op
                && began.get(number).is_some_and(|&since| at <= since)
            {
                self.asked.insert(*number);
            }
        }
    }

    fn apply(&mut self, change: &Change) -> Result<(), ChangeError> {
        match change {
            &Change::Cpus(cpus) => {
                if !(1..=MAX_CPUS).contains(&cpus) {
                    return Err(ChangeError::Cpus(cpus));
                }
                self.cpus = cpus;
            }
            &Change::Lock(object, how) => {
                let known = &self.program.objects[object.0 as usize];
                let rule = match how {
                    LockChange::None => Rule::Gone,
                    _ if !known.is_lock => {
                        return Err(ChangeError::NotALock(known.name.clone()));
                    }
                    LockChange::Hold(f) => Rule::Scaled(factor(f)?),
                    LockChange::Split(count) => Rule::Parts(parts(count)?),
                    LockChange::Awake => Rule::Awake,
                    LockChange::First => Rule::First,
                };
                self.rules[object.0 as usize] = rule;
                if how == LockChange::None {
                    self.no_turns_at(object);
                }
            }
            &Change::Split(thread, count) => self.parts[thread] = parts(count)?,
            &Change::Speed(thread, times) => self.factors[thread] /= factor(times)?,
            Change::SpreadIrqs => self.spread_irqs(),
            Change::Calls { factors, .. } => {
                for (f, by) in self.factors.iter_mut().zip(factors) {
                    *f *= by;
                }
            }
            Change::NoDevices => self.free_devices = true,
            Change::AnyCpu => self.any_cpu = true,
            Change::NoQuota => self.no_quota = true,
            // That is another program.
            Change::Deal => {}
        }
        Ok(())
    }

    /// Nobody makes the calls that threads make because others want the same mutex.
    fn no_turns_at(&mut self, mutex: ObjectId) {
        for (factor, t) in self.factors.iter_mut().zip(&self.program.threads) {
            let calls: Nanos =
                t.turns.iter().filter(|turn| turn.0 == mutex).map(|turn| turn.1).sum();
            if calls > 0 {
                *factor *= t.run_ns.saturating_sub(calls) as f64 / t.run_ns.max(1) as f64;
            }
        }
    }

    /// What interrupts took from each thread becomes the mean of all CPUs, and the threads that do
    /// their work are as many as there are CPUs.
    fn spread_irqs(&mut self) {
        let capacity = self.program.wall_ns as f64 * f64::from(self.program.cpus);
        let mean = self.program.irq_ns as f64 / capacity.max(1.0);
        for (i, t) in self.program.threads.iter().enumerate() {
            if t.is_softirq {
                self.parts[i] = self.cpus.max(1);
            } else if t.run_ns > 0 {
                let own = t.run_ns.saturating_sub(t.irq_ns) as f64;
                self.factors[i] *= (own / (1.0 - mean.min(0.9)) / t.run_ns as f64).min(1.0);
            }
        }
    }

    /// What is left of a sleep of this thread that began at a moment of the trace.
    pub(crate) fn slept(&self, thread: usize, at: Nanos, ns: Nanos) -> Nanos {
        self.unasked.get(thread).map_or(ns, |spans| ns - spans.within(at, at.saturating_add(ns)))
    }

    /// Somebody has a CPU for as long as a lock is his.
    pub(crate) fn has_first(&self) -> bool {
        self.rules.contains(&Rule::First)
    }

    /// `ns` of running, of this thread, `holding` times as long because of what it holds.
    pub(crate) fn scaled(&self, thread: usize, holding: f64, ns: Nanos) -> Nanos {
        let by = self.factors[thread] * holding;
        if by == 1.0 { ns } else { (ns as f64 * by) as Nanos }
    }
}

/// Whether another part of a thread that is split may go on from there.
pub(crate) fn ends_piece(program: &Program, op: Op) -> bool {
    matches!(op, Op::Wake { .. }) || arrives(program, op)
}

/// Whether a thread sleeps there until it is told by somebody outside that there is something to
/// do, or until it is time.
pub(crate) fn arrives(program: &Program, op: Op) -> bool {
    let of = |object: ObjectId| program.objects.get(object.0 as usize);
    matches!(op, Op::Sleep(_, object) if !of(object).is_some_and(|o| o.is_device))
}

fn factor(f: f64) -> Result<f64, ChangeError> {
    if FACTORS.contains(&f) { Ok(f) } else { Err(ChangeError::Factor(f)) }
}

fn parts(n: u32) -> Result<u32, ChangeError> {
    if PARTS.contains(&n) { Ok(n) } else { Err(ChangeError::Parts(n)) }
}
