//! What threads wait for: the objects, who waited, who held them, and where chains of waits end.
//!
//! ```text
//!            block: which object?                 wake: by whom?
//!  Running ───────────────────────► waiting for X ───────────────► woken by W
//!            call, arguments, state                │
//!                                                  ├─ X: one wait more, so long           (object)
//!                                                  ├─ W, or who took X and gave it back   (holders)
//!                                                  └─ where was W meanwhile? asleep for
//!                                                     the disk: that part is the disk's   (chains)
//! ```
//!
//! * **Objects** are told from the call slept in and its arguments ([`call`], [`files`],
//!   [`object`]). Two of them turn out to be one when a call on the second ends a wait for the
//!   first: two descriptors of one pipe, one file locked through two descriptors, one shared futex
//!   mapped at two addresses.
//! * **Holders**: semaphores, queues, file locks and priority-inheritance futexes are taken and
//!   given back by system calls, which is observed. A mutex of the threads library enters the
//!   kernel only when contended: whoever wakes the next waiter had it, since its own wake-up if it
//!   was asleep for it itself, else (inferred) since the previous owner let go. For what is handed
//!   over rather than held (pipe, condition variable, barrier), the holder is who ended the wait.
//! * **Chains**: every finished wait leaves a trail of segments, each with its root cause. A wait
//!   ended by W takes over what W's own trail shows for the same time, so causes travel along
//!   wake-ups without any search. The trail is short (`TRAIL`); what is older stays with the object.
//!
//! Memory grows with threads and objects, never with events, unless [`Detail::Intervals`] is asked for.

mod call;
mod files;
mod graph;
mod object;
mod path;
mod tables;

pub(crate) use call::Class;
pub use graph::{Edge, Graph, Node, Root};
pub use object::Object;
pub(crate) use object::{FutexUse, Key, Kind, Thing};
pub use path::{Path, PathRow};
pub use tables::{Holder, WaitsBy, WaitsRow};

use crate::blame::{Blame, Cause, WaitKey, WaitSum};
use crate::options::Detail;
use crate::threads::{Slot, Thread};
use call::{FcntlOp, Futex, FutexOp, fcntl, futex};
use files::{Ids, Table};
use holdup_syscalls::WaitKind;
use holdup_trace::{Nanos, Pid};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Objects beyond this many share one row; a server opens a descriptor per connection.
pub(crate) const MAX_OBJECTS: usize = 1 << 18;
/// Segments of a thread's past that can explain other threads' waits.
const TRAIL: usize = 32;
/// Locks one thread is believed to hold at a time.
const MAX_HELD: usize = 64;
const EAGAIN: i64 = -11;
const NO_GROUP: u32 = u32::MAX;

/// A process: what its threads share.
#[derive(Debug, Default)]
struct Group {
    /// Identity of its address space; a new one after exec.
    space: u32,
    /// Processes forked from one another share memory mapped before.
    family: u32,
    files: Table,
    /// Its process id is known: it is not part of another one seen.
    known: bool,
}

/// Part of a thread's past asleep, with its root cause.
#[derive(Clone, Copy, Debug)]
struct Segment {
    from: Nanos,
    to: Nanos,
    /// The blame integral at both ends.
    g_from: u128,
    g_to: u128,
    cause: Cause,
    object: Object,
    nr: Option<u32>,
    waker: Option<Slot>,
}

/// A wait in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) object: Object,
    start: Nanos,
    mark: u128,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    object: Object,
    since: Nanos,
    /// The object's integral of waiting threads then.
    integral: Nanos,
    /// That it was taken is certain; else a call on it returned at once, which may have been giving it back.
    certain: bool,
}

/// The call a thread is in: written at every call of interest, so it has a cache line of its own.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Called {
    args: [u64; 5],
    /// Start of the call that `args` belong to.
    at: Nanos,
    class: Class,
    /// It slept, or woke another thread, in that call.
    slept: bool,
    woke: bool,
}

/// The object that a descriptor was the last time: threads read and write the same few.
#[derive(Clone, Copy, Debug, Default)]
struct Cached {
    fd: u64,
    class: Class,
    version: u32,
    object: Option<Object>,
}

/// What is known of one thread.
#[derive(Debug)]
struct Waiter {
    cached: [Cached; 2],
    group: u32,
    /// The process id `group` was found by.
    group_pid: Pid,
    wait: Option<Wait>,
    held: Vec<Hold>,
    trail: VecDeque<Segment>,
    /// What the last wait was for, while it is not yet running again.
    last: Option<WaitKey>,
    /// Time holding objects, and of harmless and other waits.
    idle_ns: Nanos,
    lock_wait_ns: Nanos,
    intervals: Vec<Interval>,
}

impl Default for Waiter {
    fn default() -> Waiter {
        Waiter {
            cached: [Cached::default(); 2],
            group: NO_GROUP,
            group_pid: Pid::UNKNOWN,
            wait: None,
            held: Vec::new(),
            trail: VecDeque::new(),
            last: None,
            idle_ns: 0,
            lock_wait_ns: 0,
            intervals: Vec::new(),
        }
    }
}

/// One time asleep, kept for [`Detail::Intervals`] only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    /// `Slot::IDLE` if no thread did.
    pub(crate) waker: Slot,
    pub(crate) object: Object,
}

/// What one thread did with one object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HoldSum {
    pub(crate) holds: u64,
    pub(crate) hold_ns: Nanos,
    /// Of it: the beginning was not seen.
    pub(crate) inferred_ns: Nanos,
    /// Waiting time of others meanwhile.
    pub(crate) explained_ns: Nanos,
}

/// Waits for one object by or because of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairSum {
    pub(crate) waits: u64,
    pub(crate) wait_ns: Nanos,
    /// Of the waiting time, the last part of each: since the object was handed over before.
    pub(crate) span_ns: Nanos,
}

/// Who waited for whom on what; kept for [`Detail::Edges`] and up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct EdgeKey {
    pub(crate) waiter: Slot,
    pub(crate) waker: Option<Slot>,
    pub(crate) object: Object,
    pub(crate) cause: Cause,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// By this thread.
    pub(crate) waker: Option<Slot>,
    /// The thread itself, not an interrupt on top of it, as far as interrupts are recorded.
    pub(crate) direct: bool,
    /// It was on its way to sleep and never slept.
    pub(crate) early: bool,
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) things: Vec<Thing>,
    pub(crate) keys: Vec<Key>,
    parents: Vec<Object>,
    index: FxHashMap<Key, Object>,
    calls: Vec<Called>,
    threads: Vec<Waiter>,
    groups: Vec<Group>,
    by_pid: FxHashMap<Pid, u32>,
    ids: Ids,
    spaces: u32,
    pub(crate) holds: FxHashMap<(Object, Slot), HoldSum>,
    pub(crate) wakes: FxHashMap<(Object, Slot), PairSum>,
    pub(crate) waiters: FxHashMap<(Object, Slot), PairSum>,
    pub(crate) edges: FxHashMap<EdgeKey, WaitSum>,
    detail: Detail,
    pieces: Vec<Segment>,
}

impl Waits {
    pub(crate) fn new(detail: Detail) -> Waits {
        Waits {
            things: vec![Thing::default()],
            keys: vec![Key::Other],
            parents: vec![Object::OTHER],
            index: FxHashMap::default(),
            calls: Vec::new(),
            threads: Vec::new(),
            groups: Vec::new(),
            by_pid: FxHashMap::default(),
            ids: Ids::default(),
            spaces: 0,
            holds: FxHashMap::default(),
            wakes: FxHashMap::default(),
            waiters: FxHashMap::default(),
            edges: FxHashMap::default(),
            detail,
            pieces: Vec::new(),
        }
    }

    #[inline]
    fn waiter(&mut self, slot: Slot) -> &mut Waiter {
        let i = slot.0 as usize;
        if i >= self.threads.len() {
            self.grow(i);
        }
        &mut self.threads[i]
    }

    #[inline]
    fn called(&mut self, slot: Slot) -> &mut Called {
        let i = slot.0 as usize;
        if i >= self.calls.len() {
            self.grow(i);
        }
        &mut self.calls[i]
    }

    #[cold]
    fn grow(&mut self, i: usize) {
        self.calls.resize((i + 1).next_power_of_two(), Called::default());
        self.threads.resize_with((i + 1).next_power_of_two(), Waiter::default);
    }

    // ---- objects ---------------------------------------------------------------------------

    /// What an object turned out to be.
    pub(crate) fn find(&self, mut object: Object) -> Object {
        while self.parents[object.0 as usize] != object {
            object = self.parents[object.0 as usize];
        }
        object
    }

    fn thing(&mut self, object: Object) -> &mut Thing {
        &mut self.things[object.0 as usize]
    }

    fn intern(&mut self, key: Key, kind: Kind, group: u32, fd: Option<u32>) -> Object {
        if let Some(&o) = self.index.get(&key) {
            return self.find(o);
        }
        if self.things.len() >= MAX_OBJECTS {
            return Object::OTHER;
        }
        let object = Object(self.things.len() as u32);
        self.index.insert(key, object);
        self.things.push(Thing { kind, group, fd, ..Thing::default() });
        self.keys.push(key);
        self.parents.push(object);
        object
    }

    /// The two are one.
    fn unite(&mut self, a: Object, b: Object) -> Object {
        let (a, b) = (self.find(a), self.find(b));
        if a == b || a == Object::OTHER || b == Object::OTHER {
            return a;
        }
        let (keep, drop) = (a.min(b), a.max(b));
        let other = std::mem::take(&mut self.things[drop.0 as usize]);
        self.things[keep.0 as usize].merge(&other);
        self.parents[drop.0 as usize] = keep;
        // Others point to the root directly: chains stay short.
        let mut at = drop;
        while self.parents[at.0 as usize] != keep {
            at = std::mem::replace(&mut self.parents[at.0 as usize], keep);
        }
        keep
    }

    // ---- processes -------------------------------------------------------------------------

    fn new_group(&mut self, family: Option<u32>, files: Table) -> u32 {
        let id = self.groups.len() as u32;
        self.spaces += 1;
        self.groups.push(Group { space: self.spaces, family: family.unwrap_or(self.spaces), files, known: false });
        id
    }

    /// The process of a thread; one of its own while nothing is known.
    fn group(&mut self, slot: Slot, pid: Pid) -> u32 {
        let w = self.waiter(slot);
        if w.group != NO_GROUP && w.group_pid == pid {
            return w.group;
        }
        let own = w.group;
        let group = match self.by_pid.get(&pid) {
            Some(&g) if pid != Pid::UNKNOWN => g,
            _ => {
                let g = if own != NO_GROUP { own } else { self.new_group(None, Table::default()) };
                if pid != Pid::UNKNOWN {
                    self.by_pid.insert(pid, g);
                }
                g
            }
        };
        self.groups[group as usize].known |= pid != Pid::UNKNOWN;
        let w = self.waiter(slot);
        (w.group, w.group_pid, w.cached) = (group, pid, Default::default());
        group
    }

    /// The flags a thread passes to the `clone` it is in; `None` if they are not known, or if it is
    /// not in one: (makes a thread, the trace says so).
    pub(crate) fn cloning(&self, slot: Slot, call_start: Nanos) -> Option<(bool, bool)> {
        const CLONE_THREAD: u64 = 0x1_0000;
        let w = self.calls.get(slot.0 as usize).filter(|w| w.at == call_start)?;
        match w.class {
            Class::Clone => Some((w.args[0] & CLONE_THREAD != 0, true)),
            // Its flags are in memory; the threads library uses it for threads (fork is clone).
            Class::Clone3 => Some((true, false)),
            Class::Fork => Some((false, true)),
            _ => None,
        }
    }

    /// A thread or process came to be.
    pub(crate) fn forked(&mut self, parent: (Slot, Pid), child: (Slot, Pid), thread: bool) {
        let group = self.group(parent.0, parent.1);
        let known = self.waiter(child.0);
        if known.group != NO_GROUP && known.group_pid == child.1 {
            return;
        }
        let group = if thread {
            group
        } else {
            let g = &self.groups[group as usize];
            let (family, files) = (g.family, g.files.clone());
            let new = self.new_group(Some(family), files);
            if child.1 != Pid::UNKNOWN {
                self.by_pid.insert(child.1, new);
            }
            new
        };
        let w = self.waiter(child.0);
        (w.group, w.group_pid, w.cached) = (group, child.1, Default::default());
    }

    /// A new program: a new address space, the same descriptors. A thread believed to be part of
    /// its parent's process leaves it.
    pub(crate) fn exec(&mut self, slot: Slot, pid: Pid, leaves: bool) {
        let group = self.group(slot, pid);
        if leaves {
            let files = self.groups[group as usize].files.clone();
            let new = self.new_group(None, files);
            self.by_pid.insert(pid, new);
            let w = self.waiter(slot);
            (w.group, w.group_pid, w.cached) = (new, pid, Default::default());
            return;
        }
        self.spaces += 1;
        let space = self.spaces;
        let g = &mut self.groups[group as usize];
        (g.space, g.family) = (space, space);
    }

    // ---- calls -----------------------------------------------------------------------------

    /// A call of interest begins.
    #[inline(always)]
    pub(crate) fn call_begins(&mut self, now: Nanos, slot: Slot, pid: Pid, class: Class, args: &[u64; 6]) {
        let w = self.called(slot);
        w.args = [args[0], args[1], args[2], args[3], args[4]];
        w.class = class;
        w.at = now;
        w.slept = false;
        w.woke = false;
        if matches!(class, Class::Futex | Class::Futex2Wait | Class::Futex2Wake) {
            self.futex_begins(now, slot, pid);
        }
    }

    fn futex_key(&mut self, slot: Slot, pid: Pid, private: bool, addr: u64) -> (Key, u32) {
        let group = self.group(slot, pid);
        let g = &self.groups[group as usize];
        let space = if private { g.space } else { g.family };
        (Key::Futex { space, shared: !private, addr }, group)
    }

    /// The word, if anybody ever waited for it.
    fn known_futex(&mut self, slot: Slot, pid: Pid, f: &Futex, addr: u64) -> Option<Object> {
        let (key, _) = self.futex_key(slot, pid, f.private, addr);
        self.index.get(&key).map(|&o| self.find(o))
    }

    fn futex_begins(&mut self, now: Nanos, slot: Slot, pid: Pid) {
        let w = self.called(slot);
        let f = futex(w.class, &w.args);
        match f.op {
            FutexOp::Wait | FutexOp::WaitBitset | FutexOp::LockPi => {
                let (key, group) = self.futex_key(slot, pid, f.private, f.addr);
                let object = self.intern(key, Kind::Futex, group, None);
                let ops = &mut self.thing(object).futex;
                match f.op {
                    FutexOp::LockPi => ops.pi += 1,
                    op => {
                        if op == FutexOp::Wait {
                            ops.wait += 1;
                        } else {
                            ops.wait_bitset += 1;
                        }
                        ops.wait_2 += (f.val == 2) as u64;
                        ops.wait_odd += (f.val == 1 || f.val == 3) as u64;
                        ops.value_changes += (ops.wait + ops.wait_bitset > 1 && ops.last_value != f.val) as u64;
                        ops.last_value = f.val;
                    }
                }
                // Back to sleep: it did not get what it was woken for.
                self.forget_hold(slot, object);
            }
            FutexOp::Wake | FutexOp::WakeOp | FutexOp::UnlockPi => {
                if f.op == FutexOp::WakeOp
                    && let Some(o) = self.known_futex(slot, pid, &f, f.addr2)
                {
                    self.thing(o).futex.wake_one += 1;
                }
                if let Some(o) = self.known_futex(slot, pid, &f, f.addr) {
                    let ops = &mut self.thing(o).futex;
                    if f.val >= i32::MAX as u32 {
                        ops.wake_all += 1
                    } else {
                        ops.wake_one += 1
                    }
                    self.release(now, slot, o);
                }
            }
            FutexOp::Requeue => {
                let (key, group) = self.futex_key(slot, pid, f.private, f.addr2);
                let to = self.intern(key, Kind::Futex, group, None);
                self.thing(to).futex.requeued_to += 1;
                if let Some(from) = self.known_futex(slot, pid, &f, f.addr) {
                    self.thing(from).futex.requeued_from += 1;
                    self.release(now, slot, from);
                }
            }
            FutexOp::Other => {}
        }
    }

    /// A call of a class that [`Class::returns`] returns.
    pub(crate) fn call_returns(&mut self, now: Nanos, slot: Slot, pid: Pid, class: Class, start: Nanos, ret: i64) {
        let w = self.called(slot);
        if w.class != class || w.at != start {
            return;
        }
        let (args, slept, woke) = (w.args, w.slept, w.woke);
        w.class = Class::None;
        match class {
            Class::Futex | Class::Futex2Wait => {
                let f = futex(class, &args);
                match f.op {
                    FutexOp::LockPi if ret == 0 => {
                        let (key, group) = self.futex_key(slot, pid, f.private, f.addr);
                        let o = self.intern(key, Kind::Futex, group, None);
                        self.acquire(now, slot, o, true);
                        if slept {
                            self.thing(o).elapsed += now - start;
                        }
                    }
                    FutexOp::Wait | FutexOp::WaitBitset => {
                        if let Some(o) = self.known_futex(slot, pid, &f, f.addr) {
                            if slept {
                                self.thing(o).elapsed += now - start;
                            }
                            if ret == EAGAIN {
                                self.thing(o).retries += 1;
                            }
                            // Woken, or just too late to sleep: now it tries to take the lock.
                            if f.val == 2 && (ret == 0 || ret == EAGAIN) {
                                self.acquire(now, slot, o, true);
                            }
                        }
                    }
                    _ => {}
                }
            }
            Class::Semop | Class::MsgReceive | Class::MsgSend | Class::MqReceive | Class::MqSend | Class::Flock | Class::Fcntl => {
                if class == Class::Fcntl && fcntl(args[1]) == FcntlOp::Dup {
                    let group = self.group(slot, pid) as usize;
                    self.groups[group].files.dup(args[0], ret, &mut self.ids);
                    return;
                }
                let Some(o) = self.called_on(slot, pid, class, &args) else { return };
                if slept {
                    self.thing(o).elapsed += now - start;
                }
                if ret < 0 || woke {
                    // Who woke another gave it back, which was noted then.
                    return;
                }
                let held = self.waiter(slot).held.iter().any(|h| h.object == o);
                let gives_back = match class {
                    Class::MsgSend | Class::MqSend => true,
                    Class::MsgReceive | Class::MqReceive => false,
                    Class::Flock => args[1] & call::LOCK_UN != 0,
                    _ => held && !slept,
                };
                if gives_back {
                    self.release(start, slot, o);
                } else {
                    let certain = slept || matches!(class, Class::MsgReceive | Class::MqReceive | Class::Flock);
                    self.acquire(now, slot, o, certain);
                }
            }
            _ => self.descriptor_call(slot, pid, class, &args, ret),
        }
    }

    fn descriptor_call(&mut self, slot: Slot, pid: Pid, class: Class, args: &[u64; 5], ret: i64) {
        if ret < 0 {
            return;
        }
        let group = self.group(slot, pid) as usize;
        let files = &mut self.groups[group].files;
        let ids = &mut self.ids;
        match class {
            Class::Open => files.open(ret, Kind::File, ids),
            Class::Socket | Class::Accept => files.open(ret, Kind::Socket, ids),
            Class::Eventfd => files.open(ret, Kind::Eventfd, ids),
            Class::Timerfd => files.open(ret, Kind::Timerfd, ids),
            Class::EpollCreate => files.open(ret, Kind::Epoll, ids),
            Class::MqOpen => files.open(ret, Kind::Mqueue, ids),
            Class::Dup | Class::DupTo => files.dup(args[0], ret, ids),
            Class::Close => files.close(args[0]),
            Class::CloseRange => files.close_range(args[0], args[1]),
            _ => {}
        }
    }

    /// The object a call is about, by its arguments.
    fn called_on(&mut self, slot: Slot, pid: Pid, class: Class, args: &[u64; 5]) -> Option<Object> {
        let group = self.group(slot, pid);
        let (key, kind, fd) = match class {
            Class::Futex | Class::Futex2Wait | Class::Futex2Wake => {
                let f = futex(class, args);
                let (key, _) = self.futex_key(slot, pid, f.private, f.addr);
                (key, Kind::Futex, None)
            }
            Class::Semop => (Key::Semaphore(args[0] as u32), Kind::Semop, None),
            Class::MsgReceive | Class::MsgSend => (Key::MessageQueue(args[0] as u32), Kind::MessageQueue, None),
            Class::Fcntl if fcntl(args[1]) != FcntlOp::Lock => return None,
            Class::Flock | Class::Fcntl => {
                let d = self.groups[group as usize].files.get(args[0], &mut self.ids)?;
                let kind = if class == Class::Flock { Kind::Flock } else { Kind::PosixLock };
                (Key::Descriptor { id: d.id, lock: true }, kind, Some(args[0] as u32))
            }
            Class::Read
            | Class::Write
            | Class::Receive
            | Class::Send
            | Class::Accept
            | Class::Connect
            | Class::Epoll
            | Class::MqReceive
            | Class::MqSend => {
                let version = self.groups[group as usize].files.version();
                let place = matches!(class, Class::Write | Class::Send | Class::MqSend) as usize;
                let c = self.waiter(slot).cached[place];
                if let Some(o) = c.object
                    && (c.fd, c.class, c.version) == (args[0], class, version)
                {
                    return Some(self.find(o));
                }
                let d = self.groups[group as usize].files.get(args[0], &mut self.ids)?;
                let kind = match (class, d.kind) {
                    (Class::Accept, _) => Kind::Accept,
                    (Class::Epoll, _) => Kind::Epoll,
                    (Class::MqReceive | Class::MqSend, _) => Kind::Mqueue,
                    (Class::Receive | Class::Send | Class::Connect, _) => Kind::Socket,
                    (_, kind) => kind,
                };
                let object = self.intern(Key::Descriptor { id: d.id, lock: false }, kind, group, Some(args[0] as u32));
                let version = self.groups[group as usize].files.version();
                self.waiter(slot).cached[place] = Cached { fd: args[0], class, version, object: Some(object) };
                return Some(object);
            }
            _ => return None,
        };
        Some(self.intern(key, kind, group, fd))
    }

    // ---- waits -----------------------------------------------------------------------------

    /// What a thread that goes to sleep now waits for, by where it is.
    pub(crate) fn object(&mut self, slot: Slot, t: &Thread, kind: Option<WaitKind>, lock: u64, is_tid: impl Fn(u32) -> bool) -> Object {
        let group = self.group(slot, t.pid);
        let Some(call) = &t.call else {
            return match t.uninterruptible {
                _ if t.contending > 0 => self.intern(Key::KernelLock { addr: lock, nr: 0 }, Kind::KernelLock, group, None),
                true => self.intern(Key::Fault { group }, Kind::PageFault, group, None),
                false => self.intern(Key::Call { group, nr: u32::MAX }, Kind::Other, group, None),
            };
        };
        if t.contending > 0 {
            return self.intern(Key::KernelLock { addr: lock, nr: 0 }, Kind::KernelLock, group, None);
        }
        let w = self.called(slot);
        if w.at == call.start && w.class != Class::None {
            w.slept = true;
            let (class, args) = (w.class, w.args);
            if let Some(o) = self.called_on(slot, t.pid, class, &args) {
                if class == Class::Futex {
                    let f = futex(class, &args);
                    // pthread_join waits for the kernel to clear the thread's id.
                    if !f.private && matches!(f.op, FutexOp::Wait | FutexOp::WaitBitset) && f.val > 2 && is_tid(f.val) {
                        self.thing(o).futex.join += 1;
                    }
                }
                return o;
            }
        }
        let sort = match kind {
            Some(WaitKind::ThreadSync) => Kind::Futex,
            Some(WaitKind::Semaphore) => Kind::Semop,
            Some(WaitKind::Timer) => Kind::Timer,
            Some(WaitKind::Child) => Kind::Child,
            Some(WaitKind::Poll) => Kind::Poll,
            Some(WaitKind::Signal) => Kind::Signal,
            _ if t.uninterruptible => return self.intern(Key::KernelLock { addr: 0, nr: call.nr }, Kind::KernelLock, group, None),
            _ => Kind::Other,
        };
        self.intern(Key::Call { group, nr: call.nr }, sort, group, None)
    }

    /// What a futex word is used for. Condition variables of glibc keep two more words, on which
    /// signallers wait for slow waiters to leave, 24 bytes below those that waiters sleep on.
    pub(crate) fn usage(&self, object: Object) -> FutexUse {
        let thing = &self.things[object.0 as usize];
        let usage = thing.futex.usage();
        match self.keys[object.0 as usize] {
            Key::Futex { .. } if usage == FutexUse::Barrier && self.condvar_of(object).is_some() => FutexUse::Condvar,
            _ => usage,
        }
    }

    /// The condition variable that a word with the operations of a barrier is part of.
    pub(crate) fn condvar_of(&self, object: Object) -> Option<u64> {
        const BELOW: u64 = 24;
        let Key::Futex { space, shared, addr } = self.keys[object.0 as usize] else { return None };
        let base = (addr & !7).checked_add(BELOW)?;
        let is_condvar = |addr| {
            let o = self.index.get(&Key::Futex { space, shared, addr })?;
            (self.things[self.find(*o).0 as usize].futex.usage() == FutexUse::Condvar).then_some(base)
        };
        is_condvar(base).or_else(|| is_condvar(base + 4))
    }

    /// Waiting for the end of a thread, as for a child.
    pub(crate) fn is_join(&self, object: Object) -> bool {
        self.things[object.0 as usize].futex.join > 0
    }

    /// Whether anybody's wait for the object was ever ended.
    pub(crate) fn was_ended(&self, object: Object) -> bool {
        self.things[object.0 as usize].spans.count > 0
    }

    /// A thread goes to sleep.
    pub(crate) fn begins(&mut self, now: Nanos, slot: Slot, object: Object, mark: u128) {
        let thing = self.thing(object);
        thing.wait_begins(now);
        if thing.first.is_none() {
            thing.first = Some(slot);
        }
        let w = self.waiter(slot);
        w.wait = Some(Wait { object, start: now, mark });
        w.last = None;
    }

    /// The wait of a thread that is no longer asleep.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<Wait> {
        let mut wait = self.threads.get_mut(slot.0 as usize)?.wait.take()?;
        wait.object = self.find(wait.object);
        Some(wait)
    }

    /// It ended: whatever follows from that. `cause` is what the wait alone tells, `g` the blame
    /// integral now, `counted` whether it took part in sharing idle time.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn ends(
        &mut self,
        now: Nanos,
        slot: Slot,
        wait: Wait,
        end: End,
        cause: Cause,
        nr: Option<u32>,
        (g, counted): (u128, bool),
        waker: Option<(&Thread, bool)>,
        uninterruptible: bool,
        blame: &mut Blame,
    ) {
        let mut object = wait.object;
        self.thing(object).wait_ends(now);
        let span = now - wait.start;
        if let (Some(w), Some((thread, false))) = (end.waker, waker) {
            object = self.woken_by(now, object, end, w, thread);
        }
        if !end.early {
            let thing = self.thing(object);
            thing.spans.add(span);
            match cause {
                Cause::External | Cause::Unknown => thing.idle_wait += span,
                Cause::Io => thing.device_wait += span,
                Cause::KernelLock if uninterruptible => thing.lock_wait += span,
                _ => {}
            }
            let last = thing.last_release.max(wait.start).min(now);
            let pair = self.waiters.entry((object, slot)).or_default();
            pair.waits += 1;
            pair.wait_ns += span;
            if let Some(w) = end.waker {
                let pair = self.wakes.entry((object, w)).or_default();
                pair.waits += 1;
                pair.wait_ns += span;
                pair.span_ns += now - last;
            }
            let is_lock = self.things[object.0 as usize].is_lock();
            let detail = self.detail;
            let w = self.waiter(slot);
            match cause {
                Cause::External | Cause::Unknown => w.idle_ns += span,
                _ if is_lock => w.lock_wait_ns += span,
                _ => {}
            }
            if detail >= Detail::Intervals {
                let interval = Interval { from: wait.start, to: now, waker: end.waker.unwrap_or(Slot::IDLE), object };
                w.intervals.push(interval);
            }
            if self.detail >= Detail::Edges {
                let share = if counted { g - wait.mark } else { 0 };
                let edge = self.edges.entry(EdgeKey { waiter: slot, waker: end.waker, object, cause }).or_default();
                edge.add(&WaitSum { waits: 1, wait_ns: span, share });
            }
        }
        self.follow(now, slot, Wait { object, ..wait }, end, cause, nr, (g, counted), waker, blame);
    }

    /// A thread was asleep since before its first event, nobody knows for what: idle.
    pub(crate) fn slept_before(&mut self, slot: Slot, from: Nanos, to: Nanos, waker: Option<Slot>) {
        let keep = self.detail >= Detail::Intervals;
        let w = self.waiter(slot);
        w.idle_ns += to.saturating_sub(from);
        if keep && to > from {
            w.intervals.push(Interval { from, to, waker: waker.unwrap_or(Slot::IDLE), object: Object::OTHER });
        }
    }

    /// What the call of the waker tells about the object.
    fn woken_by(&mut self, now: Nanos, mut object: Object, end: End, w: Slot, thread: &Thread) -> Object {
        let Some(call) = &thread.call else { return object };
        let state = self.called(w);
        if state.at != call.start || state.class == Class::None {
            return object;
        }
        let (class, args) = (state.class, state.args);
        let kind = self.things[object.0 as usize].kind;
        let same = match kind {
            Kind::Semop => class == Class::Semop,
            Kind::MessageQueue => matches!(class, Class::MsgReceive | Class::MsgSend),
            Kind::Mqueue => matches!(class, Class::MqReceive | Class::MqSend),
            Kind::Flock => class == Class::Flock,
            Kind::PosixLock => class == Class::Fcntl,
            Kind::Pipe | Kind::Descriptor => end.direct && class.is_stream(),
            // Private words of one process may differ: a waiter was moved from one to the other.
            Kind::Futex => matches!(class, Class::Futex | Class::Futex2Wake),
            _ => false,
        };
        if !same {
            return object;
        }
        let Some(theirs) = self.called_on(w, thread.pid, class, &args) else { return object };
        match kind {
            Kind::Futex => {
                let space = |key: &Key| if let Key::Futex { space, shared, .. } = key { Some((*space, *shared)) } else { None };
                let (mine, other) = (space(&self.keys[object.0 as usize]), space(&self.keys[theirs.0 as usize]));
                // Private words of two processes are two; while it is not known who belongs to
                // which process, the wake-up proves that these two do to the same.
                let known = |o: Object| self.groups[self.things[o.0 as usize].group as usize].known;
                let may = match (mine, other) {
                    (Some((_, true)), Some((_, true))) => true,
                    (Some((_, false)), Some((_, false))) => !(known(object) && known(theirs)),
                    _ => false,
                };
                if mine != other && may {
                    object = self.unite(object, theirs);
                }
                return object;
            }
            Kind::Pipe | Kind::Descriptor => {
                // A file is no pipe, whoever reads it meanwhile.
                if !matches!(self.things[theirs.0 as usize].kind, Kind::Pipe | Kind::Descriptor) {
                    return object;
                }
                object = self.unite(object, theirs);
                let thing = self.thing(object);
                thing.kind = Kind::Pipe;
                thing.piped += 1;
                thing.last_release = thing.last_release.min(now);
                return object;
            }
            _ => object = self.unite(object, theirs),
        }
        self.called(w).woke = true;
        self.release(now, w, object);
        object
    }

    /// Share the wait out to its root causes, and leave a trail for those who wait for this thread.
    #[allow(clippy::too_many_arguments)]
    fn follow(
        &mut self,
        now: Nanos,
        slot: Slot,
        wait: Wait,
        end: End,
        cause: Cause,
        nr: Option<u32>,
        (g, counted): (u128, bool),
        waker: Option<(&Thread, bool)>,
        blame: &mut Blame,
    ) {
        let object = wait.object;
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        let follows = matches!(cause, Cause::ThreadSync | Cause::KernelService | Cause::KernelLock);
        if let (Some(w), Some((_, false)), true) = (end.waker, waker, follows) {
            let lock = self.things[object.0 as usize].is_lock();
            // A waker that never waited itself has no trail.
            let trail = self.threads.get(w.0 as usize).into_iter().flat_map(|w| w.trail.iter().rev());
            for s in trail {
                if s.to <= wait.start || pieces.len() >= TRAIL / 2 {
                    break;
                }
                let root = match s.cause {
                    Cause::Io | Cause::KernelLock => true,
                    Cause::ThreadSync | Cause::KernelService => s.object != object,
                    // Who sleeps with a lock in hand holds others up; who has nothing to hand over does not.
                    Cause::External | Cause::Unknown => !lock,
                };
                if root {
                    if matches!(s.cause, Cause::External | Cause::Unknown) {
                        self.things[object.0 as usize].followed_idle += s.to - s.from.max(wait.start);
                    }
                    pieces.push(Segment { from: s.from.max(wait.start), g_from: s.g_from.max(wait.mark), ..*s });
                }
            }
        }
        pieces.reverse();
        let key = |s: &Segment| WaitKey { cause: s.cause, nr: s.nr, waker: s.waker, object: s.object };
        let own = Segment { from: wait.start, to: now, g_from: wait.mark, g_to: g, cause, object, nr, waker: end.waker };
        let (mut rest_ns, mut rest_share) = (now - wait.start, if counted { g - wait.mark } else { 0 });
        let trail = &mut self.waiter(slot).trail;
        let mut push = |s: Segment| {
            if s.to > s.from {
                if trail.len() >= TRAIL {
                    trail.pop_front();
                }
                trail.push_back(s);
            }
        };
        let (mut at, mut g_at) = (wait.start, wait.mark);
        for s in &pieces {
            push(Segment { from: at, g_from: g_at, to: s.from, g_to: s.g_from, ..own });
            push(*s);
            (at, g_at) = (s.to, s.g_to);
            if counted {
                let (ns, share) = (s.to - s.from, s.g_to.saturating_sub(s.g_from).min(rest_share));
                (rest_ns, rest_share) = (rest_ns.saturating_sub(ns), rest_share - share);
                blame.attribute(key(s), WaitSum { waits: 0, wait_ns: ns, share });
            }
        }
        push(Segment { from: at, g_from: g_at, ..own });
        if counted {
            blame.attribute(key(&own), WaitSum { waits: 1, wait_ns: rest_ns, share: rest_share });
        }
        self.waiter(slot).last = Some(key(&own));
        self.pieces = pieces;
    }

    /// The thread got a CPU that had been idle `delay` after its wake-up: what the wait was for.
    pub(crate) fn resumes(&mut self, slot: Slot, delay: Nanos) -> Option<WaitKey> {
        let key = self.threads.get_mut(slot.0 as usize)?.last.take()?;
        self.thing(key.object).wake_delay += delay;
        // A request over a socket is answered when it is answered; only taking turns costs by waking up.
        let turns = match key.cause {
            Cause::ThreadSync | Cause::KernelLock => true,
            Cause::KernelService => self.things[key.object.0 as usize].kind != Kind::Socket,
            _ => false,
        };
        turns.then_some(key)
    }

    // ---- holders ---------------------------------------------------------------------------

    fn forget_hold(&mut self, slot: Slot, object: Object) {
        let w = self.waiter(slot);
        let Some(i) = w.held.iter().position(|h| h.object == object) else { return };
        if w.held.swap_remove(i).certain {
            let thing = self.thing(object);
            thing.holding = thing.holding.saturating_sub(1);
        }
    }

    fn acquire(&mut self, now: Nanos, slot: Slot, object: Object, certain: bool) {
        if object == Object::OTHER {
            return;
        }
        self.forget_hold(slot, object);
        let thing = self.thing(object);
        let integral = thing.advance(now);
        if certain {
            thing.acquired += 1;
            thing.overlaps += (thing.holding > 0) as u64;
            thing.holding += 1;
        }
        let w = self.waiter(slot);
        if w.held.len() < MAX_HELD {
            w.held.push(Hold { object, since: now, integral, certain });
        }
    }

    fn release(&mut self, now: Nanos, slot: Slot, object: Object) {
        if object == Object::OTHER {
            return;
        }
        let w = self.waiter(slot);
        let held = w.held.iter().position(|h| h.object == object).map(|i| w.held.swap_remove(i));
        let thing = self.thing(object);
        let integral = thing.advance(now);
        let last = std::mem::replace(&mut thing.last_release, now);
        let (hold_ns, inferred_ns, explained_ns) = match held {
            Some(h) => {
                thing.holding -= (h.certain && thing.holding > 0) as u32;
                (now.saturating_sub(h.since), 0, integral.saturating_sub(h.integral))
            }
            // It must have had it; since when, only the others' waiting tells.
            None if thing.waiting > 0 => {
                let ns = now.saturating_sub(last.max(thing.waiting_since));
                (ns, ns, ns * thing.waiting as u64)
            }
            None => return,
        };
        let sum = self.holds.entry((object, slot)).or_default();
        sum.holds += 1;
        sum.hold_ns += hold_ns;
        sum.inferred_ns += inferred_ns;
        sum.explained_ns += explained_ns;
    }

    // ---- beginning and end -----------------------------------------------------------------

    /// Forget every sum, keep every state.
    pub(crate) fn restart(&mut self, now: Nanos, g: u128) {
        for thing in &mut self.things {
            thing.restart(now);
        }
        for w in &mut self.threads {
            if let Some(wait) = &mut w.wait {
                (wait.start, wait.mark) = (now, g);
            }
            for h in &mut w.held {
                (h.since, h.integral) = (now, 0);
            }
            w.trail.clear();
            w.intervals.clear();
            (w.idle_ns, w.lock_wait_ns) = (0, 0);
        }
        self.holds.clear();
        self.wakes.clear();
        self.waiters.clear();
        self.edges.clear();
    }

    /// (waits that were idle, waits for locks) of a thread.
    pub(crate) fn thread_waits(&self, slot: Slot) -> (Nanos, Nanos) {
        self.threads.get(slot.0 as usize).map_or((0, 0), |w| (w.idle_ns, w.lock_wait_ns))
    }

    /// Its times asleep, in order.
    pub(crate) fn intervals(&self, slot: Slot) -> &[Interval] {
        self.threads.get(slot.0 as usize).map_or(&[], |w| &w.intervals)
    }
}
