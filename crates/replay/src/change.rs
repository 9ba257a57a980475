//! What is changed in a replay.

use crate::answers::asked_by_holders;
use crate::program::{ObjectId, Op, Order, Program};
use crate::spans::Spans;
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;

/// Something that is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The machine has this many CPUs.
    Cpus(u32),
    /// A lock, or another object that threads wait for.
    Lock(ObjectId, LockChange),
    /// The work of this thread is shared by this many threads.
    Split(usize, u32),
    /// Interrupts and softirqs take the same share of every CPU.
    SpreadIrqs,
    /// This thread runs this many times as fast.
    Speed(usize, f64),
    /// Multiplies the running time of every thread by a factor of its own.
    Scale {
        /// The part of the running time that changes.
        part: Part,
        /// The factor of each thread, by its number.
        factors: Vec<f64>,
    },
    /// Devices answer immediately.
    NoDevices,
    /// Every thread may run on any CPU.
    AnyCpu,
    /// No quota throttles threads.
    NoQuota,
    /// Every thread of a barrier takes the same time between two rounds.
    Deal,
}

/// A part of the running time of threads.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// This system call takes so many times its traced CPU time.
    Call(String, f64),
    /// What calls cost because other threads contend is gone.
    Contention,
    /// Calls cost more, because threads contend on more CPUs.
    MoreContention,
    /// Threads do not spin while they wait in their own code.
    Spinning,
    /// Threads do not spin while they wait for this one, but take their part of its work.
    Shared {
        /// The name of the thread that does most.
        comm: String,
    },
    /// What the hypervisor took from the virtual CPUs is given back.
    Stolen,
    /// The work of all threads is divided over all CPUs.
    AllWork,
    /// The work of threads of one kind is divided evenly among them.
    Team {
        /// The name of the thread that does most.
        comm: String,
        /// How many threads of its kind there are.
        threads: usize,
    },
}

/// How a lock is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LockChange {
    /// Multiplies the time for which threads hold it.
    Hold(f64),
    /// It becomes this many locks, each taken equally often.
    Split(u32),
    /// Its holder does not sleep: not for a device, a timer, a client or another lock.
    Awake,
    /// Its holder always has a CPU, as with a real-time priority: it is neither preempted nor
    /// throttled.
    First,
    /// No thread waits for it.
    None,
}

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// The object is not a lock.
    #[error(
        "{0} has no holder: threads wait for an action of another thread, not for a lock, so the \
         only possible change is `none`"
    )]
    NotALock(String),
    /// No valid number of CPUs.
    #[error("the number of CPUs must be between 1 and {MAX_CPUS}, and {0} is not")]
    Cpus(u32),
    /// A factor out of range.
    #[error(
        "a factor must be between {low} and {high}, and {0} is not",
        low = FACTORS.start(),
        high = FACTORS.end()
    )]
    Factor(f64),
    /// A number of parts out of range.
    #[error(
        "the number of parts must be between {low} and {high}, and {0} is not",
        low = PARTS.start(),
        high = PARTS.end()
    )]
    Parts(u32),
}

/// The largest number of CPUs of a simulated machine.
pub const MAX_CPUS: u32 = 1024;

/// Factors for times: values beyond these are typing errors.
pub const FACTORS: RangeInclusive<f64> = 0.001..=1000.0;

/// The number of parts that a lock or a thread can be split into.
pub const PARTS: RangeInclusive<u32> = 2..=1024;

/// How one lock behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Rule {
    /// As in the trace.
    Same,
    /// No thread waits for it.
    Gone,
    /// Held for this many times as long.
    Scaled(f64),
    /// One of this many locks, each taken equally often.
    Parts(u32),
    /// Its holder does not sleep.
    Awake,
    /// Its holder has a CPU.
    First,
}

impl Rule {
    /// The factor on the time that it is held.
    pub(crate) fn factor(self) -> f64 {
        match self {
            Rule::Scaled(by) => by,
            Rule::Same | Rule::Gone | Rule::Parts(_) | Rule::Awake | Rule::First => 1.0,
        }
    }

    /// What is left of `ns` spent spinning for it.
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
    /// The factor on each thread's running time.
    pub(crate) factors: Vec<f64>,
    /// The number of parts of each thread.
    pub(crate) parts: Vec<u32>,
    /// The number of requests that each thread has in hand at once.
    pub(crate) requests: Vec<u32>,
    /// The CPUs of this machine that each thread may run on; all ones for any.
    pub(crate) allowed: Vec<u64>,
    pub(crate) free_devices: bool,
    pub(crate) no_quota: bool,
    pub(crate) any_cpu: bool,
    /// The order of the trace is not kept: locks go to the first thread to arrive, as far as their
    /// holds are known, and no thread queues while a CPU idles.
    pub(crate) free: bool,
    /// Threads that poll for the end of the work do not nap: they are woken by what others do.
    pub(crate) unwatched: bool,
    /// Threads outside the work run only when none of the work's threads wants the CPU.
    pub(crate) alone: bool,
    /// Nothing is changed.
    pub(crate) unchanged: bool,
    /// Threads outside the work share the CPUs fairly with the work's.
    pub(crate) fair: bool,
    /// For each thread, the sleep that no lock holder waits for any more; empty where no lock is
    /// held without sleeping.
    pub(crate) unasked: Vec<Spans>,
    /// The numbers of waits that a split thread ends and that had begun in the trace before it
    /// began its work for them.
    pub(crate) asked: FxHashSet<u32>,
}

impl<'a> View<'a> {
    /// `program` without a change.
    pub(crate) fn unchanged(program: &'a Program) -> View<'a> {
        View {
            program,
            cpus: program.cpus,
            rules: vec![Rule::Same; program.objects.len()],
            factors: vec![1.0; program.threads.len()],
            parts: vec![1; program.threads.len()],
            requests: vec![1; program.threads.len()],
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

    /// `program` without a change, but not in the order of the trace.
    pub(crate) fn free(program: &'a Program) -> View<'a> {
        View { free: true, unchanged: false, ..View::unchanged(program) }
    }

    /// `program` with `changes`, not in the order of the trace.
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
        // The parts of a split thread are not bound.
        if self.any_cpu || allowed == u64::MAX || self.parts[thread] > 1 {
            return u64::MAX;
        }
        if self.cpus == self.program.cpus {
            return allowed;
        }
        let cpus = self.cpus.min(64);
        (0..64).filter(|bit| allowed >> bit & 1 == 1).fold(0, |all, bit| all | 1 << (bit % cpus))
    }

    /// The steps at which pieces of a thread's work begin that other threads could do: after it has
    /// woken the thread that asked for one, and where it sleeps until there is something to do.
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
                        // A timeout or an unrelated interrupted thread asked for nothing.
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
            // The trace does not tell which requests a second thread would have got. So `count`
            // threads are one that needs `1 / count` of the time for each request.
            &Change::Split(thread, count) if self.program.threads[thread].keeps_waiting => {
                self.requests[thread] = parts(count)?;
                self.factors[thread] /= f64::from(count);
            }
            &Change::Split(thread, count) => self.parts[thread] = parts(count)?,
            &Change::Speed(thread, times) => self.factors[thread] /= factor(times)?,
            Change::SpreadIrqs => self.spread_irqs(),
            Change::Scale { factors, .. } => {
                for (f, by) in self.factors.iter_mut().zip(factors) {
                    *f *= by;
                }
            }
            Change::NoDevices => self.free_devices = true,
            Change::AnyCpu => self.any_cpu = true,
            Change::NoQuota => self.no_quota = true,
            // `Program::dealt` is replayed for it.
            Change::Deal => {}
        }
        Ok(())
    }

    /// Removes the calls that threads make because others want the same mutex.
    fn no_turns_at(&mut self, mutex: ObjectId) {
        for (factor, t) in self.factors.iter_mut().zip(&self.program.threads) {
            let calls: Nanos =
                t.turns.iter().filter(|turn| turn.0 == mutex).map(|turn| turn.1).sum();
            if calls > 0 {
                *factor *= t.run_ns.saturating_sub(calls) as f64 / t.run_ns.max(1) as f64;
            }
        }
    }

    /// Each thread's interrupt time becomes the mean over all CPUs; the work is taken to run on as
    /// many threads as there are CPUs.
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

    /// What is left of a sleep of this thread that began at this moment of the trace.
    pub(crate) fn slept(&self, thread: usize, at: Nanos, ns: Nanos, object: ObjectId) -> Nanos {
        if object == ObjectId::REQUEST {
            return ns / Nanos::from(self.requests[thread]);
        }
        self.unasked.get(thread).map_or(ns, |spans| ns - spans.within(at, at.saturating_add(ns)))
    }

    /// Whether the holder of some lock always has a CPU.
    pub(crate) fn has_first(&self) -> bool {
        self.rules.contains(&Rule::First)
    }

    /// `ns` of this thread's running time, scaled; `holding` is the factor of the locks it holds.
    pub(crate) fn scaled(&self, thread: usize, holding: f64, ns: Nanos) -> Nanos {
        let by = self.factors[thread] * holding;
        if by == 1.0 { ns } else { (ns as f64 * by) as Nanos }
    }
}

/// Whether another part of a split thread may go on after this step.
pub(crate) fn ends_piece(program: &Program, op: Op) -> bool {
    matches!(op, Op::Wake { .. }) || arrives(program, op)
}

/// Whether this step sleeps until something outside the trace gives the thread work, or for a time.
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
