//! What the threads of a trace did, as programs that a simulated machine can run.

use crate::prediction::Prediction;
use holdup_attribution::is_recorder;
use holdup_passes::{FutexUse, Object, ObjectKind, Slot};
use holdup_trace::Nanos;
use std::sync::OnceLock;

/// Index of an object of a [`Program`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(pub u32);

impl ObjectId {
    /// Nothing that has a name.
    pub(crate) const NONE: ObjectId = ObjectId(u32::MAX);
    /// The next period of a CPU quota.
    pub(crate) const QUOTA: ObjectId = ObjectId(u32::MAX - 1);
}

/// One step of a thread's program, 16 bytes: there are millions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Needs a CPU for so long.
    Run(Nanos),
    /// Needs a CPU for so long, spinning for a lock of the kernel.
    Spin(Nanos, ObjectId),
    /// Sleeps for so long, whatever others do: for a device, a timer, a client outside.
    Sleep(Nanos, ObjectId),
    /// Sleeps until another thread's [`Op::Wake`] of this number, which may have come already.
    /// An idle CPU then takes so long to take it.
    Wait { number: u32, object: ObjectId, delay: u32 },
    /// Ends the wait of this number of that thread, or lets it pass when it comes to it.
    Wake { thread: u32, number: u32 },
    /// What it slept for is over, but CPUs that idle let it queue for a busy one for so long,
    /// behind this thread; and one idled already then.
    Beside(Nanos, u32, bool),
    /// What it slept for is over, and it takes the CPU from this thread.
    Preempts(u32),
    /// Loses its CPU if another is further behind; CPUs that idle then leave it there for so long.
    LosesCpu(Nanos),
    /// Has a lock from now on.
    Hold(ObjectId),
    /// Gives it back.
    Drop(ObjectId),
    /// Waits until all who take part in this round of a barrier have arrived.
    Arrive { round: u32, object: ObjectId, delay: u32 },
    /// Makes that thread begin.
    Spawn(u32),
}

/// A thread of the trace.
#[derive(Clone, Debug)]
pub struct ThreadProgram {
    /// Which, in the analysis.
    pub slot: Slot,
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// It is one of those whose end is the end of the work.
    pub works: bool,
    /// CPU time of all its steps.
    pub run_ns: Nanos,
    /// Of it: interrupts on top of it.
    pub(crate) irq_ns: Nanos,
    /// `ksoftirqd`: it does the work of interrupts.
    pub(crate) is_softirq: bool,
    /// Its steps are `ops[from..to]`.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Where the work is done: all but the last hundredth of its CPU time.
    pub(crate) work_to: u32,
    /// Time that other threads of programs that are the work slept until it ended that, but for
    /// locks and barriers.
    pub(crate) ends_ns: Nanos,
    /// The same by thread, of all.
    pub(crate) ends: Vec<(u32, Nanos)>,
    /// Its longest sleep that nobody ended.
    pub(crate) longest_ns: Nanos,
    /// And all those that were for no device.
    pub(crate) napped_ns: Nanos,
    /// It naps for most of the time, while others do the work: it looks whether that is done.
    pub(crate) watches: bool,
    /// It takes part in rounds of a barrier.
    pub(crate) at_barriers: bool,
    /// It begins when another thread makes it.
    pub(crate) spawned: bool,
    /// So long an idle CPU takes to take it first.
    pub(crate) delay: u32,
    /// And so long when it is woken, the mean.
    pub(crate) usual_delay: u32,
    /// The CPUs it may run on, bit n for CPU n; all ones where nothing keeps it from any.
    pub(crate) allowed: u64,
    /// Time that a quota kept it off the CPUs.
    pub(crate) held_off_ns: Nanos,
    /// It is known to be no part of the work.
    pub(crate) is_background: bool,
    /// It is one of the kernel's.
    pub(crate) is_kthread: bool,
    /// And ends sleeps of others that wait for a device.
    pub(crate) drives: bool,
    /// Of its CPU time: in calls that it would not make if nobody else wanted the mutex.
    pub(crate) turns: Vec<(ObjectId, Nanos)>,
}

/// In which order threads get a lock once anything is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// In the order of the trace: not all of its holds are known.
    Traced,
    /// It is free when it is given back, and who has waited longest is woken: whoever is there
    /// first has it.
    Taken,
    /// Who has waited longest has it at once.
    Handed,
}

/// What threads waited for.
#[derive(Clone, Debug)]
pub struct ReplayObject {
    /// What it is in the analysis: a condition variable is two words.
    pub of: Vec<Object>,
    /// What kind of thing it is.
    pub kind: ObjectKind,
    /// What a futex is used for.
    pub usage: Option<FutexUse>,
    /// A futex that no other process can wait for.
    pub(crate) is_private: bool,
    /// Such as `mutex 0x7f71238a0108 of orders`.
    pub name: String,
    /// One thread at a time has it: holds of it can be changed.
    pub is_lock: bool,
    /// Who gets it once anything is changed.
    pub order: Order,
    /// It is a mutex that threads fight for: most of those who come to wait find it free before
    /// they sleep.
    pub is_fought_for: bool,
    /// Sleeps for it that the replay has.
    pub waits: u64,
    /// Their time in the trace.
    pub wait_ns: Nanos,
    /// The same, that of each thread times its CPU time: a thread without work holds nothing up by
    /// waiting, however long.
    pub work_held_up: u128,
    /// Time that threads had it in the trace, as far as known.
    pub hold_ns: Nanos,
    /// The waits are for a device.
    pub is_device: bool,
    /// Another thread ended the waits, who had a lock.
    pub is_kernel_lock: bool,
}

/// A trace, ready to be replayed.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its threads.
    pub threads: Vec<ThreadProgram>,
    /// What they waited for.
    pub objects: Vec<ReplayObject>,
    /// CPUs of the traced machine.
    pub cpus: u32,
    /// From the moment the work began to its end, in the trace.
    pub traced_wall_ns: Nanos,
    /// Interrupts and softirqs on all CPUs.
    pub irq_ns: Nanos,
    pub(crate) wall_ns: Nanos,
    pub(crate) ops: Vec<Op>,
    /// When each step was taken in the trace.
    pub(crate) times: Vec<Nanos>,
    /// How long a thread runs while others wait.
    pub(crate) slice_ns: Nanos,
    /// So long CPUs that idle let threads queue for others.
    pub(crate) looks_ns: Nanos,
    /// Waits that have a number.
    pub(crate) numbers: u32,
    /// Who takes part in each round of a barrier.
    pub(crate) rounds: Vec<u32>,
    /// What comes of it without a change.
    pub(crate) unchanged: OnceLock<Prediction>,
    /// What being free of the order of the trace makes of the work, if nothing else is changed.
    pub(crate) free: OnceLock<Free>,
    /// Somebody chose the threads that work, and all others are none of it.
    pub(crate) chosen: bool,
    /// If that changes the time of the work by more, in per cent, the order of the trace is kept.
    pub(crate) free_pct: f64,
    /// And what is no change, in per cent.
    pub(crate) met_pct: f64,
    /// The same work, dealt evenly over those who meet at barriers.
    pub(crate) dealt: OnceLock<Box<Program>>,
}

/// Times of the work without a change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Free {
    /// In the order of the trace.
    pub(crate) traced_ns: Nanos,
    /// Free of it.
    pub(crate) free_ns: Nanos,
    /// And of those who are no part of the work.
    pub(crate) alone_ns: Nanos,
    /// Who watches the work does not nap then: that alone changes nothing.
    pub(crate) unwatched: bool,
    /// The part of the CPU time that idled then; and beside them.
    pub(crate) idle: f64,
    pub(crate) idle_beside: f64,
}

impl ThreadProgram {
    /// Whether it waits for what the work does: it is not a thread of the kernel's, no recorder,
    /// and not known to be no part of the work.
    pub(crate) fn may_ask(&self) -> bool {
        !self.is_background && !self.is_kthread && !is_recorder(&self.comm)
    }
}

impl Program {
    /// Whether some are known to be no part of the work.
    pub(crate) fn has_background(&self) -> bool {
        self.threads.iter().any(|t| t.is_background && t.run_ns > 0)
    }

    /// Steps of all threads.
    pub fn steps(&self) -> usize {
        self.ops.len()
    }
}
