//! What the threads of a trace did, as programs that a simulated machine can run.

use crate::prediction::Prediction;
use holdup_attribution::is_recorder;
use holdup_passes::{FutexUse, Object, ObjectKind, Slot};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// Index of an object of a [`Program`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// No named object.
    pub(crate) const NONE: ObjectId = ObjectId(u32::MAX);
    /// The next period of a CPU quota.
    pub(crate) const QUOTA: ObjectId = ObjectId(u32::MAX - 1);
    /// A set time, by a server that has a request in hand.
    pub(crate) const REQUEST: ObjectId = ObjectId(u32::MAX - 2);
}

/// One step of a thread's program, 16 bytes: there are millions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Needs a CPU for this long.
    Run(Nanos),
    /// Needs a CPU for this long, spinning for a kernel lock.
    Spin(Nanos, ObjectId),
    /// Sleeps for this long, whatever other threads do: for a device, a timer, an outside client.
    Sleep(Nanos, ObjectId),
    /// Sleeps until another thread's [`Op::Wake`] of this number, which may have come already. An
    /// idle CPU needs `delay` to pick it up then.
    Wait { number: u32, object: ObjectId, delay: u32 },
    /// Ends that thread's wait of this number, or lets the thread pass when it gets to it.
    Wake { thread: u32, number: u32 },
    /// Its sleep is over, but idle CPUs let it queue for a busy one for this long, behind this
    /// thread. The flag: a CPU idled already when it began to queue.
    Queues(Nanos, u32, bool),
    /// Its sleep is over, and it takes the CPU from this thread.
    Preempts(u32),
    /// Loses its CPU if another thread is further behind; idle CPUs leave it there for this long.
    LosesCpu(Nanos),
    /// Holds a lock from now on.
    Hold(ObjectId),
    /// Releases it.
    Drop(ObjectId),
    /// Waits until all threads of this round of a barrier have arrived.
    Arrive { round: u32, object: ObjectId, delay: u32 },
    /// Starts that thread.
    Spawn(u32),
}

/// A thread of the trace.
#[derive(Clone, Debug)]
pub struct ThreadProgram {
    /// Its slot in the analysis.
    pub slot: Slot,
    /// Its thread id.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// It does the work: the work ends when these threads end.
    pub works: bool,
    /// Its program was there before the recorded command, whose threads wait for it for a part of
    /// the time that matters.
    pub(crate) serves_work: bool,
    /// CPU time of all its steps.
    pub run_ns: Nanos,
    /// The part of it that is interrupts on top of the thread.
    pub(crate) irq_ns: Nanos,
    /// `ksoftirqd`: it does the work of interrupts.
    pub(crate) is_softirq: bool,
    /// Its steps are `ops[from..to]`.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The step at which its work is done: all but the last hundredth of its CPU time.
    pub(crate) work_to: u32,
    /// How long other threads of the working programs slept until this thread woke them, except for
    /// locks and barriers.
    pub(crate) ends_ns: Nanos,
    /// As `ends_ns`, by woken thread, and of all programs.
    pub(crate) ends: Vec<(u32, Nanos)>,
    /// All its sleeps that no thread ended, except for devices and with a request in hand.
    pub(crate) napped_ns: Nanos,
    /// Its sleeps with a request in hand ([`ObjectId::REQUEST`]), while others waited for it.
    pub(crate) occupied_ns: Nanos,
    /// Most of the time it sleeps it has a request in hand, and others wait.
    pub(crate) keeps_waiting: bool,
    /// From the first request that it served to its last answer, as far as clients waited for it.
    pub(crate) served_ns: Nanos,
    /// Threads that wait for what this one serves, or connections through which they ask.
    pub(crate) clients: usize,
    /// It naps most of the time while others work: it polls for the end of the work.
    pub(crate) watches: bool,
    /// Rounds of a barrier are a part of its sleeps that matters.
    pub(crate) at_barriers: bool,
    /// Its team, if it has one.
    pub(crate) team: Option<Team>,
    /// It starts when another thread creates it.
    pub(crate) spawned: bool,
    /// How long an idle CPU takes to pick it up the first time.
    pub(crate) delay: u32,
    /// How long an idle CPU takes to pick it up when it is woken: the mean.
    pub(crate) usual_delay: u32,
    /// The CPUs it may run on, bit n for CPU n; all ones if it may run on any.
    pub(crate) allowed: u64,
    /// How long a quota throttled it.
    pub(crate) held_off_ns: Nanos,
    /// It is known not to belong to the work.
    pub(crate) is_background: bool,
    /// It is a kernel thread.
    pub(crate) is_kthread: bool,
    /// It is a kernel thread that ends other threads' waits for a device.
    pub(crate) drives: bool,
    /// By mutex: its CPU time in calls that it would not make if no other thread wanted the mutex.
    pub(crate) turns: Vec<(ObjectId, Nanos)>,
}

/// The order in which threads get a lock once anything is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The order of the trace, because not all holds are known.
    Traced,
    /// The lock is free when it is released. The longest waiter is woken, and the first thread to
    /// arrive gets the lock.
    Taken,
    /// The longest waiter gets it directly.
    Handed,
}

/// An object that threads waited for.
#[derive(Clone, Debug)]
pub struct ReplayObject {
    /// The objects of the analysis: a condition variable is two words.
    pub of: Vec<Object>,
    /// Its kind.
    pub kind: ObjectKind,
    /// What a futex is used for.
    pub usage: Option<FutexUse>,
    /// A futex that no other process can wait for.
    pub(crate) is_private: bool,
    /// Such as `mutex 0x7f71238a0108 of orders`.
    pub name: String,
    /// One thread at a time holds it, so that its holds can be changed.
    pub is_lock: bool,
    /// A futex whose waiters take turns: see [`holdup_passes::ObjectStats::in_turn`].
    pub in_turn: bool,
    /// The order in which threads get it once anything is changed.
    pub order: Order,
    /// It is a contended mutex: most threads that come to wait find it free before they sleep.
    pub is_contended: bool,
    /// Sleeps for it that the replay has.
    pub waits: u64,
    /// Their time in the trace.
    pub wait_ns: Nanos,
    /// The sum over threads of the waiting time multiplied by the thread's CPU time: a thread
    /// without work delays nothing by waiting, however long.
    pub work_delayed: u128,
    /// How long threads held it in the trace, as far as known.
    pub hold_ns: Nanos,
    /// The waits are for a device.
    pub is_device: bool,
    /// The waits were ended by another thread that held a lock.
    pub is_kernel_lock: bool,
}

/// A trace, ready to be replayed.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its threads.
    pub threads: Vec<ThreadProgram>,
    /// The objects that they waited for.
    pub objects: Vec<ReplayObject>,
    /// CPUs of the traced machine.
    pub cpus: u32,
    /// Time from the beginning of the work to its end, in the trace.
    pub traced_wall_ns: Nanos,
    /// Interrupts and softirqs on all CPUs.
    pub irq_ns: Nanos,
    pub(crate) wall_ns: Nanos,
    pub(crate) ops: Vec<Op>,
    /// When each step was taken in the trace.
    pub(crate) times: Vec<Nanos>,
    /// A thread's time slice while others wait.
    pub(crate) slice_ns: Nanos,
    /// How long idle CPUs let threads queue for others.
    pub(crate) looks_ns: Nanos,
    /// Waits that have a number.
    pub(crate) numbers: u32,
    /// The number of threads in each round of a barrier.
    pub(crate) rounds: Vec<u32>,
    /// The prediction without a change.
    pub(crate) unchanged: OnceLock<Prediction>,
    /// The times of the unchanged work with and without the order of the trace.
    pub(crate) free: OnceLock<Free>,
    /// The order of the trace is kept if its loss changes the time by more than this, in per cent.
    pub(crate) free_pct: f64,
    /// A change of the time by less than this, in per cent, is none.
    pub(crate) met_pct: f64,
    /// Fewer cases than this may be chance.
    pub(crate) enough: usize,
    /// Rounds of fork and join.
    pub(crate) joins: OnceLock<Joins>,
    /// The same work, dealt evenly over the threads of each round.
    pub(crate) dealt: OnceLock<Box<Program>>,
}

/// A team: threads or processes of one kind that one thread or process started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Team(pub(crate) u32);

/// The moments at which rounds of work of each team end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joins {
    /// For each team, the number of its first round, and its joins in order.
    pub(crate) by_team: FxHashMap<Team, (u32, Vec<Nanos>)>,
    /// Rounds of all teams.
    pub(crate) rounds: u32,
    /// How long the masters waited for their teams.
    pub(crate) waited_ns: Nanos,
    /// By object: waiting of masters for their teams, and of workers for the next round.
    pub(crate) by_object: FxHashMap<ObjectId, Nanos>,
}

/// Times of the work without a change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Free {
    /// In the order of the trace, in ns.
    pub(crate) traced_ns: Nanos,
    /// Not in that order.
    pub(crate) free_ns: Nanos,
    /// Not in that order, without the threads outside the work.
    pub(crate) alone_ns: Nanos,
    /// In those, threads that poll for the end of the work do not nap, which alone changes nothing.
    pub(crate) unwatched: bool,
    /// The share of CPU time that idled: alone, and with the threads outside the work.
    pub(crate) idle: f64,
    pub(crate) idle_with_background: f64,
}

impl ThreadProgram {
    /// Whether it can wait for what the work does: it is no kernel thread, no recorder, and not
    /// known to be outside the work.
    pub(crate) fn may_ask(&self) -> bool {
        !self.is_background && !self.is_kthread && !is_recorder(&self.comm)
    }

    /// Whether the work is done sooner if it has less to do.
    pub(crate) fn takes_part(&self) -> bool {
        self.works || self.serves_work
    }

    /// When its work was done in the trace. It has taken a step.
    pub(crate) fn work_ends(&self, program: &Program) -> Nanos {
        let last = self.work_to.max(self.from + 1) as usize - 1;
        let ns = match program.ops[last] {
            Op::Run(ns) | Op::Spin(ns, _) => ns,
            _ => 0,
        };
        program.times[last] + ns
    }
}

impl Program {
    /// Whether some threads are known to be outside the work.
    pub(crate) fn has_background(&self) -> bool {
        self.threads.iter().any(|t| t.is_background && t.run_ns > 0)
    }

    /// Whether a sleep for an object that no thread ended was for a set time: nobody wakes a waiter
    /// of a futex but a thread. A program naps so, as Java and Ruby do, whoever has the lock. Of
    /// threads that take turns, the one that times out has the lock next.
    pub(crate) fn times_out(&self, object: ObjectId) -> bool {
        self.objects
            .get(object.0 as usize)
            .is_some_and(|o| o.kind == ObjectKind::Futex && !o.in_turn)
    }

    /// Steps of all threads.
    pub fn steps(&self) -> usize {
        self.ops.len()
    }
}
