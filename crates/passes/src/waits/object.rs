//! The things threads wait for.

use super::files::Opened;
use crate::hist::{Histogram, Octaves};
use crate::slot::Slot;
use crate::waits::ObjectKind;
use holdup_trace::{Mapping, NameId, Nanos};

/// Index of an object in its table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Object(pub u32);

impl Object {
    /// What is not followed: beyond a fixed number of objects, or of threads nobody sees.
    pub const OTHER: Object = Object(0);
}

/// What makes two waits be for the same thing.
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
    /// An open descriptor; waits for its bytes and waits for its lock are different things.
    Descriptor {
        id: u32,
        lock: bool,
    },
    /// Waits that only the call tells: timers, children, signals, `poll` …
    Call {
        group: u32,
        nr: u32,
    },
    /// Asleep outside of a system call: a page fault.
    Fault {
        group: u32,
    },
    /// In D state, where neither system calls nor the kernel tell what for.
    Blocked {
        group: u32,
    },
    /// In D state, in a function that the kernel named.
    In {
        group: u32,
        caller: Caller,
        io: bool,
    },
    /// A contended lock of the kernel, by address; 0 where none is known: then by call.
    KernelLock {
        addr: u64,
        nr: u32,
    },
    /// What tasks of a runtime wait for, by address; and its semaphores, of which one lock has
    /// several.
    Parked {
        space: u32,
        addr: u64,
    },
    ParkedAt {
        space: u32,
        semaphore: u64,
    },
    /// A monitor of Java, by address: to have it, or to be notified at it.
    Monitor {
        space: u32,
        addr: u64,
        notified: bool,
    },
    /// What tasks wait for where there is no address.
    ParkedFor {
        group: u32,
        why: Unaddressed,
    },
}

/// What a task of a runtime waits for that has no address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Unaddressed {
    /// One of several channels.
    Select,
    /// Time to pass.
    Sleep,
    /// A descriptor to become ready.
    Io,
    /// Something of the runtime.
    Runtime,
    /// It has ended, and its place waits for another.
    Start,
}

/// Where in the kernel a thread slept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Caller {
    /// A function and the offset in it.
    Name(NameId),
    /// 0 where the kernel did not know.
    Address(u64),
}

/// What a futex word is used for, as far as its operations tell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FutexUse {
    /// A mutex.
    Mutex,
    /// A mutex with priority inheritance.
    PiMutex,
    /// A readers-writer lock.
    RwLock,
    /// A condition variable: waited for and signalled.
    Condvar,
    /// A POSIX semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// The end of a thread.
    Join,
    /// A channel between tasks of a runtime.
    Channel,
    /// What other tasks have to do first.
    Group,
    /// The operations do not tell.
    Unknown,
}

impl FutexUse {
    /// As the tables show it.
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
    /// Waits while the word was 0: nothing to take.
    pub(crate) wait_0: u64,
    /// Waits while the word was 2: a lock of the threads library, contended.
    pub(crate) wait_2: u64,
    /// Waits while the word was 1 or 3: the words of an rwlock.
    pub(crate) wait_odd: u64,
    /// Waits that found another value than the wait before.
    pub(crate) value_changes: u64,
    pub(crate) last_value: u32,
    pub(crate) wake_one: u64,
    pub(crate) wake_all: u64,
    pub(crate) pi: u64,
    /// Waiters of a condition variable were moved here: it is its mutex.
    pub(crate) requeued_to: u64,
    pub(crate) requeued_from: u64,
    pub(crate) join: u64,
    /// The runtime says what it is.
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

    /// What they add up to.
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
            // All at once, each time with a new number: a round of a barrier.
            FutexUse::Barrier
        } else {
            FutexUse::Unknown
        }
    }
}

/// Spans kept one by one until a histogram is worth its memory.
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
    /// The process it was first met in, by its group.
    pub(crate) group: u32,
    /// The thread that first waited.
    pub(crate) first: Option<Slot>,
    /// Of a descriptor: which.
    pub(crate) opened: Option<Opened>,
    /// Of a futex: the code next below the word.
    pub(crate) code: Option<Box<Mapping>>,
    pub(crate) spans: Spans,
    /// Of the waiting time: ended by nobody (time-out, signal, interrupt), or judged idle.
    pub(crate) idle_wait: Nanos,
    /// Of the waiting time: the thread that ended it was idle itself meanwhile.
    pub(crate) followed_idle: Nanos,
    /// Of the waiting time: uninterruptible without a thread that ended it, so for a device.
    pub(crate) device_wait: Nanos,
    /// Of the waiting time: uninterruptible, ended by another application thread.
    pub(crate) lock_wait: Nanos,
    /// Elapsed time, from entry to return, of the calls that slept for it.
    pub(crate) elapsed: Nanos,
    /// From wake-up to running on a CPU that was idle.
    pub(crate) wake_delay: Nanos,
    /// Calls that returned without sleeping because the word had changed: one more turn of a loop.
    pub(crate) retries: u64,
    /// Since the last wake-up a thread wanted to sleep for it as a lock, and was just too late.
    pub(crate) wanted: bool,
    /// Waits ended by a thread that has waited for it itself: they contend for it.
    pub(crate) turns: u64,
    /// Ended by a thread in a call that moves bytes.
    pub(crate) piped: u64,
    /// The last wait for it was ended by another thread, on purpose.
    pub(crate) peer: bool,
    /// Threads of other processes than the first have ended waits for it.
    pub(crate) between: bool,
    pub(crate) futex: FutexOps,

    /// Threads waiting now, and the integral of their number.
    pub(crate) waiting: u32,
    pub(crate) waiting_since: Nanos,
    /// When the last of them no longer was.
    pub(crate) waiting_until: Nanos,
    pub(crate) integral: Nanos,
    pub(crate) integral_at: Nanos,
    /// Latest release known.
    pub(crate) last_release: Nanos,
    /// The integral when the present turn at a lock of the kernel began.
    pub(crate) turn_integral: Nanos,
    /// Who gave back a lock of the kernel last while others waited, and when.
    pub(crate) released: Option<(Nanos, Slot)>,
    /// Threads that took it for certain and have not given it back.
    pub(crate) holding: u32,
    pub(crate) acquired: u64,
    /// Acquisitions while another thread held it: then it is no lock.
    pub(crate) overlaps: u64,
    /// Of a futex: times that a thread came to wait, each counted once however often it slept.
    pub(crate) came: u64,
    /// The most threads that waited at once.
    pub(crate) most: u32,
    /// Threads that waited when all were woken, added up.
    pub(crate) gathered: u64,
}

impl Thing {
    /// Bring the integral of waiting threads up to `now`.
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

    /// Several threads had it at once, too often to be a mistake.
    pub(crate) fn is_shared(&self) -> bool {
        self.overlaps * 10 > self.acquired
    }

    /// All who ever wait for it wait each time that somebody wakes all of them, and that is one of
    /// them: a barrier, whatever it is made of. Those of two could as well hand work to and fro.
    pub(crate) fn is_barrier(&self) -> bool {
        /// Rounds that chance does not make.
        const ROUNDS: u64 = 8;
        let rounds = self.futex.wake_all;
        rounds >= ROUNDS
            && self.futex.wake_one * 10 <= rounds
            && self.most >= 2
            && self.gathered * 10 >= u64::from(self.most) * rounds * 9
            && self.turns * 2 > self.spans.count
    }

    /// One thread at a time has it, and releases it itself.
    pub(crate) fn is_lock(&self) -> bool {
        match self.kind {
            ObjectKind::Futex => {
                matches!(self.futex.usage(), FutexUse::Mutex | FutexUse::PiMutex | FutexUse::RwLock)
            }
            ObjectKind::Semop | ObjectKind::MessageQueue | ObjectKind::Mqueue => {
                self.acquired > 0 && !self.is_shared()
            }
            ObjectKind::Flock | ObjectKind::PosixLock | ObjectKind::KernelLock => true,
            _ => false,
        }
    }

    /// All of `o` was this one all along.
    pub(crate) fn merge(&mut self, o: &Thing) {
        if self.kind == ObjectKind::Descriptor || self.kind == ObjectKind::Other {
            self.kind = o.kind;
        }
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
        self.overlaps += o.overlaps;
        self.came += o.came;
        self.most = self.most.max(o.most);
        self.gathered += o.gathered;
    }

    /// Forget the sums, keep the state.
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
