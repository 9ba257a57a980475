//! Calls begin and return: which object they refer to, and what they do to it.

use super::class::{FcntlOp, Futex, FutexOp, LOCK_UN, fcntl, futex};
use super::files::{Descriptor, Opened};
use super::{Class, FutexUse, Key, Object, ObjectKind, Waits};
use crate::slot::Slot;
use holdup_trace::{Nanos, Pid};

const EAGAIN: i64 = -11;
const EACCES: i64 = -13;
/// The value of a mutex of glibc, of Rust and of others that is held while threads wait for it.
const LOCKED_AND_WANTED: u32 = 2;
/// The values, while threads sleep, of two words of glibc's readers-writer lock: the word on which
/// writers sleep, and that of its phase, on which readers do (`PTHREAD_RWLOCK_FUTEX_USED`).
const WRITTEN_AND_WANTED: u32 = 3;

/// The call a thread is in: written in every call of interest, so it has its own cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Called {
    /// Only the first is of this call, unless [`Class::needs_all_arguments`].
    pub(super) args: [u64; 5],
    /// Start of the call that `args` belong to.
    pub(super) at: Nanos,
    pub(super) class: Class,
    /// It slept, or woke another thread, in that call.
    pub(super) slept: bool,
    pub(super) woke: bool,
}

/// The object of the descriptor used last: threads read and write the same few descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cached {
    pub(super) fd: u64,
    pub(super) class: Class,
    pub(super) version: u32,
    pub(super) object: Option<Object>,
}

impl Waits {
    /// A call of interest begins, of which only the first argument counts.
    #[inline(always)]
    pub(crate) fn plain_call_begins(&mut self, now: Nanos, slot: Slot, class: Class, first: u64) {
        let w = self.called(slot);
        w.args[0] = first;
        w.class = class;
        w.at = now;
        w.slept = false;
        w.woke = false;
    }

    /// A call of interest begins.
    pub(crate) fn call_begins(
        &mut self,
        now: Nanos,
        slot: Slot,
        pid: Pid,
        class: Class,
        args: &[u64; 6],
    ) {
        self.plain_call_begins(now, slot, class, args[0]);
        self.called(slot).args[1..].copy_from_slice(&args[1..5]);
        if matches!(class, Class::Futex | Class::Futex2Wait | Class::Futex2Wake) {
            self.futex_begins(now, slot, pid);
        }
    }

    /// A call whose return was not recorded is dropped.
    pub(crate) fn call_is_over(&mut self, slot: Slot) {
        self.called(slot).class = Class::None;
    }

    fn futex_key(&mut self, slot: Slot, pid: Pid, private: bool, addr: u64) -> (Key, u32) {
        let group = self.group(slot, pid);
        let g = &self.groups[group as usize];
        let space = if private { g.space } else { g.family };
        (Key::Futex { space, shared: !private, addr }, group)
    }

    /// The word, if a thread has ever waited on it.
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
                let object = self.intern(key, ObjectKind::Futex, group);
                let ops = &mut self.thing(object).futex;
                match f.op {
                    FutexOp::LockPi => ops.pi += 1,
                    op => {
                        if op == FutexOp::Wait {
                            ops.wait += 1;
                        } else {
                            ops.wait_bitset += 1;
                        }
                        ops.wait_0 += (f.val == 0) as u64;
                        ops.wait_2 += (f.val == LOCKED_AND_WANTED) as u64;
                        ops.wait_odd += (f.val == 1 || f.val == 3) as u64;
                        ops.value_changes +=
                            (ops.wait + ops.wait_bitset > 1 && ops.last_value != f.val) as u64;
                        ops.last_value = f.val;
                    }
                }
                // It sleeps again: it did not get what it was woken for.
                let again = self.forget_hold(slot, object);
                self.thing(object).came += u64::from(!again);
            }
            FutexOp::Wake | FutexOp::WakeOp | FutexOp::UnlockPi => {
                if f.op == FutexOp::WakeOp
                    && let Some(o) = self.known_futex(slot, pid, &f, f.addr2)
                {
                    self.thing(o).futex.wake_one += 1;
                }
                if let Some(o) = self.known_futex(slot, pid, &f, f.addr) {
                    let thing = self.thing(o);
                    if f.val >= i32::MAX as u32 {
                        thing.futex.wake_all += 1;
                        thing.gathered += u64::from(thing.waiting);
                    } else {
                        thing.futex.wake_one += 1;
                    }
                    self.release(now, slot, o);
                }
            }
            FutexOp::Requeue => {
                let (key, group) = self.futex_key(slot, pid, f.private, f.addr2);
                let to = self.intern(key, ObjectKind::Futex, group);
                self.thing(to).futex.requeued_to += 1;
                if let Some(from) = self.known_futex(slot, pid, &f, f.addr) {
                    self.thing(from).futex.requeued_from += 1;
                    self.release(now, slot, from);
                }
            }
            FutexOp::Other => {}
        }
    }

    /// A call of a class that [`Class::returns`] returns. Returns the mutex if threads contended
    /// for it in this call: a free mutex is taken and released without a call.
    pub(crate) fn call_returns(
        &mut self,
        now: Nanos,
        slot: Slot,
        pid: Pid,
        class: Class,
        start: Nanos,
        ret: i64,
    ) -> Option<Object> {
        let w = self.called(slot);
        if w.class != class || w.at != start {
            return None;
        }
        let (args, slept, woke) = (w.args, w.slept, w.woke);
        w.class = Class::None;
        match class {
            Class::Futex | Class::Futex2Wait => {
                let f = futex(class, &args);
                match f.op {
                    FutexOp::LockPi if ret == 0 => {
                        let (key, group) = self.futex_key(slot, pid, f.private, f.addr);
                        let o = self.intern(key, ObjectKind::Futex, group);
                        self.acquire(now, slot, o, true);
                        if slept {
                            self.thing(o).elapsed += now - start;
                        }
                    }
                    FutexOp::Wait | FutexOp::WaitBitset => {
                        if slept && ret == 0 {
                            self.woken_for_monitor(now, slot);
                        }
                        if let Some(o) = self.known_futex(slot, pid, &f, f.addr) {
                            if slept {
                                self.thing(o).elapsed += now - start;
                            }
                            if ret == EAGAIN {
                                self.thing(o).retries += 1;
                            }
                            // The thread was woken, or came just too late to sleep: now it tries to
                            // take the lock.
                            let wanted = f.val == LOCKED_AND_WANTED
                                || f.val == WRITTEN_AND_WANTED
                                    && self.thing(o).futex.usage() == FutexUse::RwLock;
                            if wanted && (ret == 0 || ret == EAGAIN) {
                                self.acquire(now, slot, o, true);
                            }
                            if f.val == LOCKED_AND_WANTED && self.thing(o).is_lock() {
                                // The word says "contended" now: its holder will make a call to
                                // wake.
                                self.thing(o).wanted |= ret == EAGAIN;
                                return Some(o);
                            }
                        }
                    }
                    FutexOp::Wake => {
                        let o = self.known_futex(slot, pid, &f, f.addr)?;
                        let thing = self.thing(o);
                        let wanted = std::mem::take(&mut thing.wanted) || ret > 0;
                        return Some(o).filter(|_| wanted && thing.is_lock());
                    }
                    _ => {}
                }
            }
            Class::Semop
            | Class::MsgReceive
            | Class::MsgSend
            | Class::MqReceive
            | Class::MqSend
            | Class::Flock
            | Class::Fcntl => {
                if class == Class::Fcntl && fcntl(args[1]) == FcntlOp::Dup {
                    let group = self.group(slot, pid) as usize;
                    self.groups[group].files.dup(args[0], ret, &mut self.ids);
                    return None;
                }
                let o = self.called_on(slot, pid, class, &args)?;
                if slept {
                    self.thing(o).elapsed += now - start;
                }
                let lock = matches!(class, Class::Semop | Class::Flock | Class::Fcntl);
                if lock && matches!(ret, EAGAIN | EACCES) {
                    self.try_fails(slot, o);
                }
                if ret < 0 {
                    return None;
                }
                if lock {
                    self.try_succeeds(slot, o);
                }
                if woke {
                    // Waking another thread released the object, which was noted then.
                    return None;
                }
                let held = self.waiter(slot).held.iter().any(|h| h.object == o);
                let releases = match class {
                    Class::MsgSend | Class::MqSend => true,
                    Class::MsgReceive | Class::MqReceive => false,
                    Class::Flock => args[1] & LOCK_UN != 0,
                    _ => held && !slept,
                };
                if releases {
                    // Whoever gives back a semaphore or a message hands it to a waiter itself.
                    let hands_on = !matches!(class, Class::Flock | Class::Fcntl);
                    let thing = self.thing(o);
                    thing.refuted += u64::from(hands_on && thing.waiting > 0);
                    self.release(start, slot, o);
                } else {
                    let certain = slept
                        || matches!(class, Class::MsgReceive | Class::MqReceive | Class::Flock);
                    self.acquire(now, slot, o, certain);
                }
            }
            Class::Connect => {
                let process = self.group(slot, pid);
                if let Some(steps) = &mut self.steps {
                    steps.connections.connects(start, slot, process, args[0], ret);
                }
            }
            _ => self.descriptor_call(now, (slot, pid), class, &args, ret),
        }
        None
    }

    fn descriptor_call(
        &mut self,
        now: Nanos,
        (slot, pid): (Slot, Pid),
        class: Class,
        args: &[u64; 5],
        ret: i64,
    ) {
        if ret < 0 {
            return;
        }
        let process = self.group(slot, pid);
        if let Some(steps) = &mut self.steps {
            match class {
                Class::Accept => steps.connections.accepts(now, slot, process, ret as u64),
                Class::Close => steps.connections.closes(now, slot, process, args[0]),
                _ => {}
            }
        }
        let group = &mut self.groups[process as usize];
        group.accepts |= class == Class::Accept;
        let files = &mut group.files;
        let ids = &mut self.ids;
        match class {
            Class::Open => files.open(now, ret, ObjectKind::File, ids),
            Class::Socket | Class::Accept => files.open(now, ret, ObjectKind::Socket, ids),
            Class::Eventfd => files.open(now, ret, ObjectKind::Eventfd, ids),
            Class::Timerfd => files.open(now, ret, ObjectKind::Timerfd, ids),
            Class::EpollCreate => files.open(now, ret, ObjectKind::Epoll, ids),
            Class::MqOpen => files.open(now, ret, ObjectKind::Mqueue, ids),
            Class::Dup | Class::DupTo => files.dup(args[0], ret, ids),
            Class::Close => {
                let closed = files.close(args[0]);
                self.closed(now, closed);
            }
            Class::CloseRange => files.close_range(args[0], args[1]),
            _ => {}
        }
    }

    /// From here on its number may refer to another descriptor.
    fn closed(&mut self, now: Nanos, descriptor: Option<Descriptor>) {
        let Some(id) = descriptor.map(|d| d.id) else { return };
        for lock in [false, true] {
            if let Some(&object) = self.index.get(&Key::Descriptor { id, lock })
                && let Some(opened) = &mut self.things[object.0 as usize].opened
            {
                opened.until = opened.until.min(now);
            }
        }
    }

    /// The object that a call refers to, by its arguments.
    pub(super) fn called_on(
        &mut self,
        slot: Slot,
        pid: Pid,
        class: Class,
        args: &[u64; 5],
    ) -> Option<Object> {
        let group = self.group(slot, pid);
        let (key, kind) = match class {
            Class::Futex | Class::Futex2Wait | Class::Futex2Wake => {
                let f = futex(class, args);
                let (key, _) = self.futex_key(slot, pid, f.private, f.addr);
                (key, ObjectKind::Futex)
            }
            Class::Semop => (Key::Semaphore(args[0] as u32), ObjectKind::Semop),
            Class::MsgReceive | Class::MsgSend => {
                (Key::MessageQueue(args[0] as u32), ObjectKind::MessageQueue)
            }
            Class::Fcntl if fcntl(args[1]) != FcntlOp::Lock => return None,
            Class::Flock | Class::Fcntl => {
                let d = self.groups[group as usize].files.get(args[0], &mut self.ids)?;
                let kind =
                    if class == Class::Flock { ObjectKind::Flock } else { ObjectKind::PosixLock };
                let opened = Opened::of(pid, args[0], d);
                return Some(self.intern_opened(d.id, true, kind, group, opened));
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
                    (Class::Accept, _) => ObjectKind::Accept,
                    (Class::Epoll, _) => ObjectKind::Epoll,
                    (Class::MqReceive | Class::MqSend, _) => ObjectKind::Mqueue,
                    (Class::Receive | Class::Send | Class::Connect, _) => ObjectKind::Socket,
                    (_, kind) => kind,
                };
                let opened = Opened::of(pid, args[0], d);
                let object = self.intern_opened(d.id, false, kind, group, opened);
                let version = self.groups[group as usize].files.version();
                self.waiter(slot).cached[place] =
                    Cached { fd: args[0], class, version, object: Some(object) };
                return Some(object);
            }
            _ => return None,
        };
        Some(self.intern(key, kind, group))
    }
}
