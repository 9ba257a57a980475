//! A thread goes to sleep and is woken.

use super::class::{FutexOp, futex};
use super::{
    Caller, Class, EdgeKey, End, Finished, Interval, Key, Object, ObjectKind, Wait, Waits,
};
use crate::blame::{Blame, WaitKey, WaitSum};
use crate::cause::Cause;
use crate::judge::{BlockedFor, Ended, Outside};
use crate::options::Detail;
use crate::slot::Slot;
use crate::threads::Thread;
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;

impl Waits {
    /// What a thread that goes to sleep now waits for, by the call or function it is in.
    pub(crate) fn object(
        &mut self,
        slot: Slot,
        t: &Thread,
        kind: Option<WaitKind>,
        lock: u64,
        is_sibling: impl Fn(u32) -> bool,
    ) -> Object {
        let group = self.group(slot, t.pid);
        let recorded = t.living.call.map(|call| (call.nr, call.start));
        let Some((nr, start)) = recorded.or(t.living.untraced) else {
            return match t.uninterruptible {
                _ if t.contending > 0 => self.intern(
                    Key::KernelLock { addr: lock, nr: 0 },
                    ObjectKind::KernelLock,
                    group,
                ),
                true if self.outside == Outside::NoCall => {
                    self.intern(Key::Fault { group }, ObjectKind::PageFault, group)
                }
                true => self.intern(Key::Blocked { group }, ObjectKind::Uninterruptible, group),
                false => self.intern(Key::Call { group, nr: u32::MAX }, ObjectKind::Other, group),
            };
        };
        if t.contending > 0 {
            return self.intern(
                Key::KernelLock { addr: lock, nr: 0 },
                ObjectKind::KernelLock,
                group,
            );
        }
        if let Some(lock) = self.naps_for(slot, kind).or_else(|| self.polls_for(slot, t, kind)) {
            return lock;
        }
        let w = self.called(slot);
        if w.at == start && w.class != Class::None {
            w.slept = true;
            let (class, args) = (w.class, w.args);
            if let Some(monitor) = self.sleeps_for_monitor(slot, class, &args) {
                return monitor;
            }
            if let Some(o) = self.called_on(slot, t.pid, class, &args) {
                if class == Class::Futex {
                    let f = futex(class, &args);
                    // pthread_join waits for the kernel to clear the thread id.
                    if !f.private
                        && matches!(f.op, FutexOp::Wait | FutexOp::WaitBitset)
                        && f.val > 2
                        && is_sibling(f.val)
                    {
                        self.thing(o).futex.join += 1;
                    }
                }
                return o;
            }
        }
        let sort = match kind {
            Some(WaitKind::ThreadSync) => ObjectKind::Futex,
            Some(WaitKind::Semaphore) => ObjectKind::Semop,
            Some(WaitKind::Timer) => ObjectKind::Timer,
            Some(WaitKind::Child) => ObjectKind::Child,
            Some(WaitKind::Poll) => ObjectKind::Poll,
            Some(WaitKind::Signal) => ObjectKind::Signal,
            _ if t.uninterruptible => {
                return self.intern(Key::KernelLock { addr: 0, nr }, ObjectKind::KernelLock, group);
            }
            _ => ObjectKind::Other,
        };
        self.intern(Key::Call { group, nr }, sort, group)
    }

    /// A thread goes to sleep.
    pub(crate) fn begins(&mut self, now: Nanos, slot: Slot, object: Object, mark: u128) {
        let thing = self.thing(object);
        thing.wait_begins(now);
        match thing.first {
            None => (thing.first, thing.is_of_one) = (Some(slot), true),
            Some(first) => thing.is_of_one &= first == slot,
        }
        let w = self.waiter(slot);
        w.wait = Some(Wait { object, start: now, mark });
        w.last = None;
    }

    /// The wait of a thread that is no longer asleep.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<Wait> {
        let mut wait = self.threads.get_mut(slot)?.wait.take()?;
        wait.object = self.find(wait.object);
        Some(wait)
    }

    /// The kernel says where a thread slept that is awake now. For I/O this says less than the
    /// descriptor or page that the wait is known by, so it counts only without one.
    pub(crate) fn blocked_in(
        &mut self,
        now: Nanos,
        slot: Slot,
        wait: Wait,
        of: BlockedFor,
        caller: Caller,
    ) -> Wait {
        let io = of == BlockedFor::Io;
        if io && !matches!(self.keys[wait.object.0 as usize], Key::Blocked { .. }) {
            return wait;
        }
        let group = self.things[wait.object.0 as usize].group;
        let kind = match of {
            BlockedFor::Io => ObjectKind::Disk,
            BlockedFor::Lock => ObjectKind::KernelLock,
            BlockedFor::Other | BlockedFor::Unsaid => ObjectKind::Uninterruptible,
        };
        let object = self.intern(Key::In { group, caller, io }, kind, group);
        self.thing(wait.object).wait_ends(now);
        let thing = self.thing(object);
        thing.wait_begins(now);
        thing.first.get_or_insert(slot);
        Wait { object, ..wait }
    }

    /// A sleep ended now; by `waker`, if a thread is known, which has run for this long.
    pub(crate) fn slept(
        &mut self,
        span: (Nanos, Nanos),
        slot: Slot,
        object: Object,
        waker: Option<(Slot, Nanos)>,
    ) {
        if let Some(steps) = &mut self.steps {
            steps.slept(span, slot, object, waker);
        }
    }

    /// A wait ended, perhaps by `waker`: applies all consequences. Returns how it counts, if the
    /// thread really slept.
    pub(crate) fn ends(
        &mut self,
        f: &Finished,
        waker: Option<&Thread>,
        blame: &mut Blame,
    ) -> Option<Object> {
        let Finished { slot, wait, now, end, cause, .. } = *f;
        let mut object = wait.object;
        self.thing(object).wait_ends(now);
        let span = now - wait.start;
        if let (Some(steps), true) = (&mut self.steps, f.facts.ended != Ended::Trace) {
            steps.slept_for(slot, object);
        }
        if let (Some(w), Some(thread), true) = (end.waker, waker, f.by_application()) {
            object = self.woken_by(now, object, end, w, thread);
            self.lets_go(slot, w);
        }
        if !end.early {
            let thing = self.thing(object);
            thing.spans.add(span);
            thing.peer = cause.is_ended_by_thread();
            match cause {
                cause if cause.is_idle() => thing.idle_wait += span,
                Cause::Io => thing.device_wait += span,
                Cause::KernelLock if f.facts.sleep.uninterruptible => thing.lock_wait += span,
                _ => {}
            }
            let last = thing.last_release.max(wait.start).min(now);
            let pair = self.waiters.entry((object, slot)).or_default();
            pair.waits += 1;
            pair.wait_ns += span;
            if let Some(w) = end.waker {
                let turn = self.waiters.contains_key(&(object, w));
                self.thing(object).turns += turn as u64;
                let pair = self.wakes.entry((object, w)).or_default();
                pair.waits += 1;
                pair.wait_ns += span;
                pair.span_ns += now - last;
            }
            let is_lock = self.is_lock(object);
            let detail = self.detail;
            self.waiter(slot).idle_before = cause.is_idle().then_some(object);
            match cause {
                cause if cause.is_idle() => self.threads.slept(slot).idle_ns += span,
                _ if is_lock => self.threads.slept(slot).lock_ns += span,
                _ => {}
            }
            if detail >= Detail::Intervals {
                let interval = Interval {
                    from: wait.start,
                    to: now,
                    waker: end.waker.unwrap_or(Slot::IDLE),
                    object,
                };
                self.threads.keep(slot, interval);
            }
            if self.detail >= Detail::Edges {
                let share = if f.counted { f.g - wait.mark } else { 0 };
                // The waker need not be the holder; if the holder is known, it ended the wait.
                let waker = self.released_by(object, wait.start).or(end.waker);
                let edge =
                    self.edges.entry(EdgeKey { waiter: slot, waker, object, cause }).or_default();
                edge.add(&WaitSum { waits: 1, wait_ns: span, share });
            }
        }
        self.follow(&Finished { wait: Wait { object, ..wait }, ..*f }, blame);
        (!end.early).then_some(object)
    }

    /// A thread was asleep since before its first event, for an unknown reason: idle.
    pub(crate) fn slept_before(&mut self, slot: Slot, from: Nanos, to: Nanos, waker: Option<Slot>) {
        let keep = self.detail >= Detail::Intervals;
        self.threads.slept(slot).idle_ns += to.saturating_sub(from);
        if keep && to > from {
            let (waker, object) = (waker.unwrap_or(Slot::IDLE), Object::OTHER);
            self.threads.keep(slot, Interval { from, to, waker, object });
        }
    }

    /// What the waker's call tells about the object.
    fn woken_by(
        &mut self,
        now: Nanos,
        mut object: Object,
        end: End,
        w: Slot,
        thread: &Thread,
    ) -> Object {
        let Some(call) = &thread.living.call else { return object };
        let state = self.called(w);
        if state.at != call.start || state.class == Class::None {
            return object;
        }
        let (class, args) = (state.class, state.args);
        let kind = self.things[object.0 as usize].kind;
        if self.is_untraced(object) {
            let writes = end.direct && class == Class::Write;
            return self.written_to(now, writes.then_some((w, thread)), args).unwrap_or(object);
        }
        let same = match kind {
            ObjectKind::Semop => class == Class::Semop,
            ObjectKind::MessageQueue => matches!(class, Class::MsgReceive | Class::MsgSend),
            ObjectKind::Mqueue => matches!(class, Class::MqReceive | Class::MqSend),
            ObjectKind::Flock => class == Class::Flock,
            ObjectKind::PosixLock => class == Class::Fcntl,
            ObjectKind::Pipe | ObjectKind::Descriptor => end.direct && class.is_stream(),
            // Different private words of one process: a waiter was requeued from one to the other.
            ObjectKind::Futex => {
                matches!(class, Class::Futex | Class::Futex2Wake) && futex(class, &args).op.wakes()
            }
            _ => false,
        };
        if !same {
            return object;
        }
        let Some(theirs) = self.called_on(w, thread.pid, class, &args) else { return object };
        match kind {
            ObjectKind::Futex => {
                let space = |key: &Key| {
                    if let Key::Futex { space, shared, .. } = key {
                        Some((*space, *shared))
                    } else {
                        None
                    }
                };
                let (mine, other) =
                    (space(&self.keys[object.0 as usize]), space(&self.keys[theirs.0 as usize]));
                // Private words of two processes are different objects; while it is not known which
                // thread belongs to which process, the wake-up proves that these two share one.
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
            ObjectKind::Pipe | ObjectKind::Descriptor => {
                // A file is not a pipe, whichever thread reads it meanwhile.
                if !matches!(
                    self.things[theirs.0 as usize].kind,
                    ObjectKind::Pipe | ObjectKind::Descriptor
                ) {
                    return object;
                }
                object = self.unite(object, theirs);
                let thing = self.thing(object);
                thing.kind = ObjectKind::Pipe;
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

    /// Whether a thread slept in no recorded call, and possibly in an untraced one.
    fn is_untraced(&self, object: Object) -> bool {
        self.outside == Outside::UntracedCall
            && matches!(self.keys[object.0 as usize], Key::Call { nr: u32::MAX, .. })
    }

    /// The pipe or similar object whose reader this thread's write woke from an untraced call: that
    /// is what the reader waited for. `None` if the thread writes to something else.
    fn written_to(
        &mut self,
        now: Nanos,
        writer: Option<(Slot, &Thread)>,
        args: [u64; 5],
    ) -> Option<Object> {
        let (slot, thread) = writer?;
        let object = self.called_on(slot, thread.pid, Class::Write, &args)?;
        let thing = self.thing(object);
        match thing.kind {
            ObjectKind::Pipe | ObjectKind::Descriptor => {
                thing.kind = ObjectKind::Pipe;
                thing.piped += 1;
                thing.last_release = thing.last_release.min(now);
            }
            ObjectKind::Eventfd => {}
            // A file is not a pipe, whichever thread sleeps meanwhile.
            _ => return None,
        }
        Some(object)
    }

    /// What the last wait was for of a thread that is not running again yet.
    pub(crate) fn last_wait(&self, slot: Slot) -> Option<WaitKey> {
        self.threads.get(slot)?.last
    }

    /// Whether the wake-up of a thread that is not running yet is part of the cost of its wait.
    pub(crate) fn wake_up_costs(&self, slot: Slot) -> bool {
        self.last_wait(slot).is_some_and(|key| self.costs_by_waking(&key))
    }

    /// Whether wake-up latency is charged to this wait. The time of a reply over a socket does not
    /// depend on it; a contended object is idle until its next owner runs.
    fn costs_by_waking(&self, key: &WaitKey) -> bool {
        match key.cause {
            Cause::ThreadSync | Cause::KernelLock => true,
            Cause::KernelService => self.things[key.object.0 as usize].kind != ObjectKind::Socket,
            _ => false,
        }
    }

    /// The thread got a CPU that had been idle, `delay` after its wake-up: what the wait was for.
    pub(crate) fn resumes(&mut self, slot: Slot, delay: Nanos) -> Option<WaitKey> {
        let key = self.threads.get_mut(slot)?.last.take()?;
        self.thing(key.object).wake_delay += delay;
        self.costs_by_waking(&key).then_some(key)
    }
}
