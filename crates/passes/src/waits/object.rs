//! The things threads wait for.

use super::files::Opened;
use crate::hist::{Histogram, Octaves};
use crate::slot::Slot;
use crate::waits::{ObjectKind, Turns};
use holdup_trace::{Mapping, NameId, Nanos};

/// Index of an object in its table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Object(pub u32);

impl Object {
    /// Objects that are not followed: beyond a fixed number, or of threads without events.
    pub const OTHER: Object = Object(0);
}

/// The identity of an object: equal keys mean the same object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    Other,
    /// In one address space (private), or in a family of processes (shared).
    Futex {
        space: u32,
        shared: bool,
        addr: u64,
    },
    Semaphore(u32),
    MessageQueue(u32),
    /// An open descriptor; its data and its file lock are different objects.
    Descriptor {
        id: u32,
        lock: bool,
    },
    /// Waits that only the call identifies: timers, children, signals, `poll` …
    Call {
        group: u32,
        nr: u32,
    },
    /// What threads with this name take turns with, between naps.
    PolledLock {
        comm: NameId,
    },
    /// Asleep outside system calls: a page fault.
    Fault {
        group: u32,
    },
    /// In D state, if neither system calls nor the kernel tell the reason.
    Blocked {
        group: u32,
    },
    /// In D state, in a function that the kernel named.
    In {
        group: u32,
        caller: Caller,
        io: bool,
    },
    /// A contended lock of the kernel, by address; 0 if unknown: then by call.
    KernelLock {
        addr: u64,
        nr: u32,
    },
    /// What tasks of a runtime wait for, by address; and its semaphores, several of which may
    /// belong to one lock.
    Parked {
        space: u32,
        addr: u64,
    },
    ParkedAt {
        space: u32,
        semaphore: u64,
    },
    /// A monitor of Java, by address: to enter it, or to be notified.
    Monitor {
        space: u32,
        addr: u64,
        notified: bool,
    },
    /// What tasks wait for that has no address.
    ParkedFor {
        group: u32,
        why: Unaddressed,
    },
}

/// What a task of a runtime waits for if it has no address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Unaddressed {
    /// One of several channels.
    Select,
    /// A time.
    Sleep,
    /// A descriptor to become ready.
    Io,
    /// Something within the runtime.
    Runtime,
    /// The task has ended, and its memory waits for a new task.
    Start,
}

/// Where in the kernel a thread slept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Caller {
    /// A function and the offset in it.
    Name(NameId),
    /// 0 if the kernel did not know it.
    Address(u64),
}

/// What a futex word is used for, as far as its operations show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FutexUse {
    /// A mutex.
    Mutex,
    /// A mutex with priority inheritance.
    PiMutex,
    /// A readers-writer lock.
    RwLock,
    /// A condition variable: threads wait for it and signal it.
    Condvar,
    /// A POSIX semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// The end of a thread.
    Join,
    /// A channel between tasks of a runtime.
    Channel,
    /// Completion of other tasks (a wait group).
    Group,
    /// The operations do not show it.
    Unknown,
}

impl FutexUse {
    /// The name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            FutexUse::Mutex => "mutex",
            FutexUse::PiMutex => "pi-mutex",
            FutexUse::RwLock => "rwlock",
            FutexUse::Condvar => "condvar",
            FutexUse::Semaphore => "semaphore",
            FutexUse::Barrier => "barrier",
            FutexUse::Join => "join",
            FutexUse::Channel => "channel",
            FutexUse::Group => "wait-group",
            FutexUse::Unknown => "futex",
        }
    }
}

/// Operations seen on a futex word.
#[derive(Clone, Debug, Default)]
pub(crate) struct FutexOps {
    pub(crate) wait: u64,
    pub(crate) wait_bitset: u64,
    /// Waits while the word was 0: nothing to take (a semaphore).
    pub(crate) wait_0: u64,
    /// Waits while the word was 2: a contended lock of the threads library.
    pub(crate) wait_2: u64,
    /// Waits while the word was 1 or 3: the words of an rwlock.
    pub(crate) wait_odd: u64,
    /// Waits with another value than the wait before.
    pub(crate) value_changes: u64,
    pub(crate) last_value: u32,
    pub(crate) wake_one: u64,
    pub(crate) wake_all: u64,
    pub(crate) pi: u64,
    /// Waiters of a condition variable were requeued to this word: it is the mutex.
    pub(crate) requeued_to: u64,
    pub(crate) requeued_from: u64,
    pub(crate) join: u64,
    /// The use that the runtime states.
    pub(crate) said: Option<FutexUse>,
}

impl FutexOps {
    pub(crate) fn merge(&mut self, o: &FutexOps) {
        self.wait += o.wait;
        self.wait_bitset += o.wait_bitset;
        self.wait_0 += o.wait_0;
        self.wait_2 += o.wait_2;
        self.wait_odd += o.wait_odd;
        self.value_changes += o.value_changes;
        self.wake_one += o.wake_one;
        self.wake_all += o.wake_all;
        self.pi += o.pi;
        self.requeued_to += o.requeued_to;
        self.requeued_from += o.requeued_from;
        self.join += o.join;
        self.said = self.said.or(o.said);
    }

    /// What the operations add up to.
    pub(crate) fn usage(&self) -> FutexUse {
        let waits = self.wait + self.wait_bitset;
        if let Some(said) = self.said {
            said
        } else if self.pi > 0 {
            FutexUse::PiMutex
        } else if self.join > 0 {
            FutexUse::Join
        } else if self.requeued_to > 0
            || waits > 0 && self.wait_2 * 10 >= waits * 9 && self.wake_all * 10 <= self.wake_one
        {
            FutexUse::Mutex
        } else if self.requeued_from > 0 {
            FutexUse::Condvar
        } else if self.wait_bitset * 10 >= waits * 9 && self.wait_bitset > 0 {
            if self.wait_odd * 10 >= waits * 9 { FutexUse::RwLock } else { FutexUse::Condvar }
        } else if self.wake_all > self.wake_one && (self.value_changes > 0 || waits <= 2) {
            // All woken at once, each time with a new value: a round of a barrier.
            FutexUse::Barrier
        } else {
            FutexUse::Unknown
        }
    }
}

/// Number of spans kept one by one before a histogram is allocated.
const EARLY: usize = 32;

/// Waiting times of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) count: u64,
    pub(crate) total: Nanos,
    pub(crate) max: Nanos,
    early: Vec<Nanos>,
    hist: Histogram,
}

impl Spans {
    pub(crate) fn add(&mut self, ns: Nanos) {
        self.count += 1;
        self.total += ns;
        self.max = self.max.max(ns);
        if self.count <= EARLY as u64 {
            self.early.push(ns);
        } else {
            self.flush();
            self.hist.add(ns);
        }
    }

    fn flush(&mut self) {
        for ns in self.early.drain(..) {
            self.hist.add(ns);
        }
    }

    pub(crate) fn merge(&mut self, o: &Spans) {
        self.count += o.count;
        self.total += o.total;
        self.max = self.max.max(o.max);
        self.early.extend_from_slice(&o.early);
        if self.count > EARLY as u64 {
            self.flush();
        }
        self.hist.merge(&o.hist);
    }

    /// By powers of two.
    pub(crate) fn octaves(&self) -> Octaves {
        let mut octaves = self.hist.octaves();
        self.early.iter().for_each(|&ns| octaves.add(ns));
        octaves
    }

    /// 99th percentile, within 1/16.
    pub(crate) fn p99(&self) -> Option<Nanos> {
        if self.count <= EARLY as u64 {
            return (self.count > 0).then_some(self.max);
        }
        self.hist.percentile(99).map(|ns| ns.min(self.max))
    }
}

/// An object and all that happened to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thing {
    pub(crate) kind: ObjectKind,
    /// The process in which it was first seen, by its group.
    pub(crate) group: u32,
    /// The thread that first waited.
    pub(crate) first: Option<Slot>,
    /// For a descriptor: what was opened.
    pub(crate) opened: Option<Opened>,
    /// For a futex: the code next below the word.
    pub(crate) code: Option<Box<Mapping>>,
    pub(crate) spans: Spans,
    /// Part of the waiting time: ended by no thread (time-out, signal, interrupt), or judged idle.
    pub(crate) idle_wait: Nanos,
    /// Part of the waiting time: the thread that ended it was idle itself meanwhile.
    pub(crate) followed_idle: Nanos,
    /// Part of the waiting time: uninterruptible and not ended by a thread, so for a device.
    pub(crate) device_wait: Nanos,
    /// Part of the waiting time: uninterruptible, ended by another application thread.
    pub(crate) lock_wait: Nanos,
    /// Elapsed time, from entry to return, of the calls that slept for it.
    pub(crate) elapsed: Nanos,
    /// Time from the wake-up to running, on CPUs that were idle.
    pub(crate) wake_delay: Nanos,
    /// Calls that returned without sleeping because the word had changed: another turn of a loop.
    pub(crate) retries: u64,
    /// Since the last wake-up a thread tried to sleep on it as on a lock, and came just too late.
    pub(crate) wanted: bool,
    /// Waits ended by a thread that has waited for it itself: the threads contend for it.
    pub(crate) turns: u64,
    /// Waits ended by a thread in a call that moves bytes.
    pub(crate) piped: u64,
    /// The last wait for it was ended on purpose by another thread.
    pub(crate) peer: bool,
    /// Threads of other processes than the first have ended waits for it.
    pub(crate) between: bool,
    pub(crate) futex: FutexOps,
    /// Only the thread that first waited has.
    pub(crate) is_of_one: bool,
    /// For a futex at which a wait was over without a thread's doing: the word that has `in_turn`.
    pub(crate) turns_at: Option<Object>,
    pub(crate) in_turn: Option<Box<Turns>>,

    /// Threads waiting now, and the integral of their number.
    pub(crate) waiting: u32,
    pub(crate) waiting_since: Nanos,
    /// When the number of waiting threads last became 0.
    pub(crate) waiting_until: Nanos,
    pub(crate) integral: Nanos,
    pub(crate) integral_at: Nanos,
    /// Latest release known.
    pub(crate) last_release: Nanos,
    /// The integral when the current turn at a lock of the kernel began.
    pub(crate) turn_integral: Nanos,
    /// When and by which thread a lock of the kernel was last released while others waited.
    pub(crate) released: Option<(Nanos, Slot)>,
    /// Threads that certainly took it and have not released it.
    pub(crate) holding: u32,
    pub(crate) acquired: u64,
    /// Signs that it is not one lock: acquisitions while another thread held it, and releases that
    /// woke none of the threads that waited for it.
    pub(crate) refuted: u64,
    /// For a futex: times that a thread came to wait, each counted once however often it slept.
    pub(crate) came: u64,
    /// The most threads that waited at once.
    pub(crate) most: u32,
    /// Threads that were waiting when all were woken, summed over these wake-ups.
    pub(crate) gathered: u64,
}

impl Thing {
    /// Updates the integral of waiting threads up to `now`.
    pub(crate) fn advance(&mut self, now: Nanos) -> Nanos {
        self.integral += self.waiting as u64 * now.saturating_sub(self.integral_at);
        self.integral_at = self.integral_at.max(now);
        self.integral
    }

    pub(crate) fn wait_begins(&mut self, now: Nanos) {
        self.advance(now);
        if self.waiting == 0 {
            self.waiting_since = now;
        }
        self.waiting += 1;
        self.most = self.most.max(self.waiting);
    }

    pub(crate) fn wait_ends(&mut self, now: Nanos) {
        self.advance(now);
        self.waiting = self.waiting.saturating_sub(1);
        self.waiting_until = now;
    }

    /// Whether several threads held it at once, or were not woken when it was released, too often
    /// to be a mistake: it has several permits, or several parts.
    pub(crate) fn is_shared(&self) -> bool {
        self.refuted * 10 > self.acquired
    }

    /// Whether all threads that ever wait for it wait each time that one of them wakes all: a
    /// barrier, however it is built. With only two threads it could as well be a hand-over of work.
    pub(crate) fn is_barrier(&self) -> bool {
        /// Number of rounds that excludes chance.
        const ROUNDS: u64 = 8;
        let rounds = self.futex.wake_all;
        rounds >= ROUNDS
            && self.futex.wake_one * 10 <= rounds
            && self.most >= 2
            && self.gathered * 10 >= u64::from(self.most) * rounds * 9
            && self.turns * 2 > self.spans.count
    }

    /// Whether one thread at a time holds it, and releases it itself.
    pub(crate) fn is_lock(&self) -> bool {
        match self.kind {
            ObjectKind::Futex => {
                matches!(self.futex.usage(), FutexUse::Mutex | FutexUse::PiMutex | FutexUse::RwLock)
            }
            ObjectKind::Semop | ObjectKind::MessageQueue | ObjectKind::Mqueue => {
                self.acquired > 0 && !self.is_shared()
            }
            ObjectKind::Flock
            | ObjectKind::PosixLock
            | ObjectKind::PolledLock
            | ObjectKind::KernelLock => true,
            _ => false,
        }
    }

    /// `o` turned out to be the same object.
    pub(crate) fn merge(&mut self, o: &Thing) {
        if self.kind == ObjectKind::Descriptor || self.kind == ObjectKind::Other {
            self.kind = o.kind;
        }
        self.is_of_one &= o.first.is_none() || o.is_of_one && o.first == self.first;
        self.is_of_one |= self.first.is_none() && o.is_of_one;
        self.first = self.first.or(o.first);
        self.opened = self.opened.or(o.opened);
        self.spans.merge(&o.spans);
        self.idle_wait += o.idle_wait;
        self.followed_idle += o.followed_idle;
        self.device_wait += o.device_wait;
        self.lock_wait += o.lock_wait;
        self.elapsed += o.elapsed;
        self.wake_delay += o.wake_delay;
        self.retries += o.retries;
        self.wanted |= o.wanted;
        self.turns += o.turns;
        self.piped += o.piped;
        self.between |= o.between;
        self.peer |= o.peer;
        self.futex.merge(&o.futex);
        if o.waiting > 0 {
            self.waiting_since = if self.waiting == 0 {
                o.waiting_since
            } else {
                self.waiting_since.min(o.waiting_since)
            };
        }
        let at = self.integral_at.max(o.integral_at);
        self.advance(at);
        self.integral += o.integral + o.waiting as u64 * (at - o.integral_at);
        self.waiting += o.waiting;
        self.waiting_until = self.waiting_until.max(o.waiting_until);
        self.last_release = self.last_release.max(o.last_release);
        self.holding += o.holding;
        self.acquired += o.acquired;
        self.refuted += o.refuted;
        self.came += o.came;
        self.most = self.most.max(o.most);
        self.gathered += o.gathered;
    }

    /// Clears the sums, keeps the state.
    pub(crate) fn restart(&mut self, now: Nanos) {
        let keep = Thing {
            kind: self.kind,
            group: self.group,
            first: self.first,
            opened: self.opened,
            code: self.code.take(),
            between: self.between,
            peer: self.peer,
            futex: self.futex.clone(),
            turns_at: self.turns_at,
            is_of_one: self.is_of_one,
            waiting: self.waiting,
            waiting_since: now,
            integral_at: now,
            last_release: self.last_release,
            released: self.released,
            holding: self.holding,
            ..Thing::default()
        };
        *self = keep;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futex_words_are_told_apart_by_their_operations() {
        let mutex = FutexOps { wait: 10, wait_2: 10, wake_one: 11, ..FutexOps::default() };
        assert_eq!(mutex.usage(), FutexUse::Mutex);
        let rust_mutex =
            FutexOps { wait_bitset: 10, wait_2: 10, wake_one: 11, ..FutexOps::default() };
        assert_eq!(rust_mutex.usage(), FutexUse::Mutex);
        let condvar = FutexOps { wait_bitset: 10, wake_all: 4, ..FutexOps::default() };
        assert_eq!(condvar.usage(), FutexUse::Condvar);
        let rwlock = FutexOps { wait_bitset: 10, wait_odd: 10, wake_all: 4, ..FutexOps::default() };
        assert_eq!(rwlock.usage(), FutexUse::RwLock);
        let barrier =
            FutexOps { wait: 9, wake_all: 3, value_changes: 2, wait_2: 1, ..FutexOps::default() };
        assert_eq!(barrier.usage(), FutexUse::Barrier);
        assert_eq!(FutexOps { pi: 1, ..FutexOps::default() }.usage(), FutexUse::PiMutex);
        assert_eq!(
            FutexOps { wait: 3, requeued_to: 1, ..FutexOps::default() }.usage(),
            FutexUse::Mutex
        );
        assert_eq!(FutexOps::default().usage(), FutexUse::Unknown);
    }

    #[test]
    fn the_integral_counts_every_waiter() {
        let mut t = Thing::default();
        t.wait_begins(100);
        t.wait_begins(150);
        t.wait_ends(200);
        t.wait_ends(300);
        assert_eq!((t.advance(400), t.waiting_since), (50 + 2 * 50 + 100, 100));
    }

    #[test]
    fn percentiles_of_few_spans_are_exact() {
        let mut s = Spans::default();
        s.add(7);
        s.add(3);
        assert_eq!((s.p99(), s.count, s.total), (Some(7), 2, 10));
        let mut o = Spans::default();
        for n in 0..100 {
            o.add(n);
        }
        s.merge(&o);
        assert_eq!((s.count, s.max), (102, 99));
        assert!(s.p99().unwrap() >= 90);
    }
}
