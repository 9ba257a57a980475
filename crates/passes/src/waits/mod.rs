//! What threads wait for: the objects, their waiters and holders, and where chains of waits end.
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
//! * **Objects** are identified by the call slept in and its arguments ([`class`], [`calls`],
//!   [`files`], [`processes`]) and kept by their identity ([`object`], [`registry`]). Two of them
//!   turn out to be the same when a call on the second ends a wait for the first: two descriptors
//!   of one pipe, one file locked through two descriptors, one shared futex mapped at two
//!   addresses.
//! * **Holders** ([`holders`]): semaphores, queues, file locks and priority-inheritance futexes are
//!   taken and released by system calls, which are observed. A mutex of the threads library enters
//!   the kernel only when contended: the thread that wakes the next waiter held it, since its own
//!   wake-up if it slept for the mutex itself, else (inferred) since the previous owner released
//!   it. For what is handed over rather than held (pipe, condition variable, barrier), the holder
//!   is the thread that ended the wait.
//! * **Chains** ([`chains`]): every finished wait leaves a trail of segments, each with its root
//!   cause. A wait ended by W takes over what W's own trail shows for the same time, so causes
//!   travel along wake-ups without any search. The trail is short (`TRAIL`); older time is charged
//!   to the object itself.
//!
//! Memory grows with threads and objects, never with events, unless [`Detail::Intervals`] is asked
//! for.

mod by_thread;
mod calls;
mod chains;
mod class;
mod files;
mod holders;
mod in_turn;
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
mod turns;
mod wait;
mod waiters;
mod waiting;

pub use by_thread::ByThread;
pub(crate) use class::Class;
pub use kind::ObjectKind;
pub(crate) use names::{callers, descriptors, variables};
pub(crate) use object::{Caller, Key, Thing, Unaddressed};
pub use object::{FutexUse, Object};
pub use objects::ObjectStats;
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
use holdup_trace::{NameId, Nanos, Pid};
use processes::Group;
use rustc_hash::FxHashMap;
pub(crate) use turns::{Progress, Turns};
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

/// How long one thread held one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct HoldSum {
    /// Number of holds.
    pub holds: u64,
    /// Total time of the holds.
    pub hold_ns: Nanos,
    /// Part of `holds`: the beginning was not seen.
    pub inferred: u64,
    /// Part of `hold_ns`: the beginning was not seen.
    pub inferred_ns: Nanos,
    /// Waiting time of other threads meanwhile.
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
    /// Part of the waiting time, the last part of each wait: since the previous hand-over of the
    /// object.
    pub span_ns: Nanos,
}

/// Which thread waited for which on which object; kept for [`Detail::Edges`] and up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EdgeKey {
    /// The waiting thread.
    pub waiter: Slot,
    /// The thread that ended the wait; `None` if none did.
    pub waker: Option<Slot>,
    /// The object.
    pub object: Object,
    /// What the wait was for.
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
    /// What the wait was for, judged by the wait alone.
    pub(crate) cause: Cause,
    /// The system call slept in.
    pub(crate) nr: Option<u32>,
    /// The blame integral now.
    pub(crate) g: u128,
    /// It took part in sharing idle time.
    pub(crate) counted: bool,
}

impl Finished {
    /// Whether an application thread ended it.
    pub(crate) fn by_application(&self) -> bool {
        self.facts.waker.is_some_and(|w| !w.kthread)
    }
}

/// The state machine of waits.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) things: Vec<Thing>,
    pub(crate) keys: Vec<Key>,
    parents: Vec<Object>,
    index: FxHashMap<Key, Object>,
    threads: Waiters,
    groups: Vec<Group>,
    /// When threads are awake that nap, by their name.
    nappers: FxHashMap<NameId, Turns>,
    by_pid: FxHashMap<Pid, u32>,
    ids: Ids,
    spaces: u32,
    pub(crate) holds: FxHashMap<(Object, Slot), HoldSum>,
    pub(crate) wakes: FxHashMap<(Object, Slot), PairSum>,
    pub(crate) waiters: FxHashMap<(Object, Slot), PairSum>,
    pub(crate) edges: FxHashMap<EdgeKey, WaitSum>,
    detail: Detail,
    /// What it means if a thread sleeps in no recorded call.
    outside: Outside,
    pieces: Vec<Segment>,
    /// What the holders of each object did while others waited, if it is kept.
    pub(crate) holders_did: FxHashMap<(Object, Slot), HolderTimes>,
    /// Changes of what threads hold, since they were last taken.
    pub(crate) news: Vec<Holding>,
    /// The steps of threads, if they are kept.
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
            nappers: FxHashMap::default(),
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

    /// A thread ended some time ago.
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

    /// Clears every sum, keeps every state.
    pub(crate) fn restart(&mut self, now: Nanos, g: u128) {
        for thing in &mut self.things {
            thing.restart(now);
        }
        for group in &mut self.groups {
            group.turns = None;
        }
        self.nappers.clear();
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

    /// Sets how much is kept from `now` on; `threads` is the number of existing threads.
    pub(crate) fn keep(&mut self, detail: Detail, now: Nanos, threads: usize) {
        self.detail = detail;
        self.steps = (detail >= Detail::Steps).then(|| Steps::since(now, threads));
    }

    /// (time of idle waits, time of waits for locks) of a thread.
    pub(crate) fn thread_waits(&self, slot: Slot) -> (Nanos, Nanos) {
        let slept = self.threads.times(slot);
        (slept.idle_ns, slept.lock_ns)
    }

    /// Its times asleep, in order.
    pub(crate) fn intervals(&self, slot: Slot) -> &[Interval] {
        self.threads.intervals(slot)
    }
}
