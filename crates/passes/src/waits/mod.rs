//! What threads wait for: the objects, who waited, who held them, and where chains of waits end.
//!
//! ```text
//!            block: which object?                 wake: by whom?
//!  Running ───────────────────────► waiting for X ───────────────► woken by W
//!            call, arguments, state                │
//!                                                  ├─ X: one wait more          (object)
//!                                                  ├─ W, or who took X and
//!                                                  │  gave it back              (holders)
//!                                                  └─ where was W meanwhile?
//!                                                     asleep for the disk: that
//!                                                     part is the disk's         (chains)
//! ```
//!
//! * **Objects** are told from the call slept in and its arguments ([`class`], [`calls`],
//!   [`files`], [`processes`]) and kept by what they are ([`object`], [`registry`]). Two of them
//!   turn out to be one when a call on the second ends a wait for the first: two descriptors of one
//!   pipe, one file locked through two descriptors, one shared futex mapped at two addresses.
//! * **Holders** ([`holders`]): semaphores, queues, file locks and priority-inheritance futexes are
//!   taken and given back by system calls, which is observed. A mutex of the threads library enters
//!   the kernel only when contended: whoever wakes the next waiter had it, since its own wake-up if
//!   it was asleep for it itself, else (inferred) since the previous owner let go. For what is
//!   handed over rather than held (pipe, condition variable, barrier), the holder is who ended the
//!   wait.
//! * **Chains** ([`chains`]): every finished wait leaves a trail of segments, each with its root
//!   cause. A wait ended by W takes over what W's own trail shows for the same time, so causes
//!   travel along wake-ups without any search. The trail is short (`TRAIL`); what is older stays
//!   with the object.
//!
//! Memory grows with threads and objects, never with events, unless [`Detail::Intervals`] is asked
//! for.

mod calls;
mod chains;
mod class;
mod files;
mod holders;
mod kind;
mod lock_times;
mod monitors;
mod names;
mod object;
mod objects;
mod parked;
mod processes;
mod registry;
mod tries;
mod wait;
mod waiters;
mod waiting;

pub(crate) use class::Class;
pub use kind::ObjectKind;
pub(crate) use names::{callers, descriptors, variables};
pub(crate) use object::{Caller, Key, Thing, Unaddressed};
pub use object::{FutexUse, Object};
pub use objects::{ByThread, ObjectStats};
pub(crate) use wait::{End, Wait};

use crate::blame::WaitSum;
use crate::cause::Cause;
use crate::judge::{Outside, WaitEnd};
use crate::options::Detail;
use crate::past::{HolderTimes, Holding};
use crate::slot::Slot;
use crate::steps::Steps;
use crate::variables::Images;
use calls::Called;
use chains::Segment;
use files::Ids;
use holdup_trace::{Nanos, Pid};
use processes::Group;
use rustc_hash::FxHashMap;
use waiters::{Waiter, Waiters};

/// One time asleep, kept for [`Detail::Intervals`] only.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Its first moment.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// The thread that ended it, `Slot::IDLE` if none did.
    pub waker: Slot,
    /// What it was for.
    pub object: Object,
}

/// What one thread did with one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct HoldSum {
    /// Times it had it.
    pub holds: u64,
    /// So long in all.
    pub hold_ns: Nanos,
    /// Of `holds`: the beginning was not seen.
    pub inferred: u64,
    /// Of `hold_ns`: the beginning was not seen.
    pub inferred_ns: Nanos,
    /// Waiting time of others meanwhile.
    pub explained_ns: Nanos,
}

impl HoldSum {
    /// Add all of `o`.
    pub fn add(&mut self, o: HoldSum) {
        self.holds += o.holds;
        self.hold_ns += o.hold_ns;
        self.inferred += o.inferred;
        self.inferred_ns += o.inferred_ns;
        self.explained_ns += o.explained_ns;
    }
}

/// Waits for one object by or because of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairSum {
    /// Waits.
    pub waits: u64,
    /// Their time.
    pub wait_ns: Nanos,
    /// Of the waiting time, the last part of each: since the object was handed over before.
    pub span_ns: Nanos,
}

/// Who waited for whom on what; kept for [`Detail::Edges`] and up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EdgeKey {
    /// Who waited.
    pub waiter: Slot,
    /// Who ended it; `None` if no thread did.
    pub waker: Option<Slot>,
    /// On what.
    pub object: Object,
    /// What for.
    pub cause: Cause,
}

/// A wait that has ended, judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) slot: Slot,
    pub(crate) wait: Wait,
    pub(crate) now: Nanos,
    pub(crate) end: End,
    pub(crate) facts: WaitEnd,
    /// What the wait alone tells it was for.
    pub(crate) cause: Cause,
    /// The system call slept in.
    pub(crate) nr: Option<u32>,
    /// The blame integral now.
    pub(crate) g: u128,
    /// It took part in sharing idle time.
    pub(crate) counted: bool,
}

impl Finished {
    /// An application thread ended it.
    pub(crate) fn by_application(&self) -> bool {
        self.facts.waker.is_some_and(|w| !w.kthread)
    }
}

/// The machine.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) things: Vec<Thing>,
    pub(crate) keys: Vec<Key>,
    parents: Vec<Object>,
    index: FxHashMap<Key, Object>,
    threads: Waiters,
    groups: Vec<Group>,
    by_pid: FxHashMap<Pid, u32>,
    ids: Ids,
    spaces: u32,
    pub(crate) holds: FxHashMap<(Object, Slot), HoldSum>,
    pub(crate) wakes: FxHashMap<(Object, Slot), PairSum>,
    pub(crate) waiters: FxHashMap<(Object, Slot), PairSum>,
    pub(crate) edges: FxHashMap<EdgeKey, WaitSum>,
    detail: Detail,
    /// What it means to sleep in no recorded call.
    outside: Outside,
    pieces: Vec<Segment>,
    /// What the holders of each object did while others waited, where it is kept.
    pub(crate) holders_did: FxHashMap<(Object, Slot), HolderTimes>,
    /// What is new of who has what.
    pub(crate) news: Vec<Holding>,
    /// What threads did, where that is asked for.
    pub(crate) steps: Option<Steps>,
}

impl Waits {
    pub(crate) fn new(detail: Detail, outside: Outside) -> Waits {
        Waits {
            things: vec![Thing::default()],
            keys: vec![Key::Other],
            parents: vec![Object::OTHER],
            index: FxHashMap::default(),
            threads: Waiters::default(),
            groups: Vec::new(),
            by_pid: FxHashMap::default(),
            ids: Ids::default(),
            spaces: 0,
            holds: FxHashMap::default(),
            wakes: FxHashMap::default(),
            waiters: FxHashMap::default(),
            edges: FxHashMap::default(),
            detail,
            outside,
            pieces: Vec::new(),
            holders_did: FxHashMap::default(),
            news: Vec::new(),
            steps: (detail >= Detail::Steps).then(Steps::default),
        }
    }

    #[inline]
    fn waiter(&mut self, slot: Slot) -> &mut Waiter {
        self.threads.of(slot)
    }

    #[inline]
    fn called(&mut self, slot: Slot) -> &mut Called {
        self.threads.called(slot)
    }

    /// A thread has ended, some time ago.
    pub(crate) fn retire(&mut self, slot: Slot) {
        let group = self.threads.retire(slot).map(|w| w.group);
        if let Some(group) = group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.files.shrink();
            group.images = Images::default();
        }
        if let Some(steps) = &mut self.steps {
            steps.retire(slot);
        }
    }

    /// Forget every sum, keep every state.
    pub(crate) fn restart(&mut self, now: Nanos, g: u128) {
        for thing in &mut self.things {
            thing.restart(now);
        }
        self.threads.restart(now, g);
        if let Some(steps) = &mut self.steps {
            steps.restart(now);
        }
        self.holds.clear();
        self.holders_did.clear();
        self.wakes.clear();
        self.waiters.clear();
        self.edges.clear();
    }

    /// Keep so much from `now` on, in place of what was kept; `threads` is how many there are.
    pub(crate) fn keep(&mut self, detail: Detail, now: Nanos, threads: usize) {
        self.detail = detail;
        self.steps = (detail >= Detail::Steps).then(|| Steps::since(now, threads));
    }

    /// (waits that were idle, waits for locks) of a thread.
    pub(crate) fn thread_waits(&self, slot: Slot) -> (Nanos, Nanos) {
        let slept = self.threads.times(slot);
        (slept.idle_ns, slept.lock_ns)
    }

    /// Its times asleep, in order.
    pub(crate) fn intervals(&self, slot: Slot) -> &[Interval] {
        self.threads.intervals(slot)
    }
}
