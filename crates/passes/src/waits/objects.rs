//! The objects that threads waited for, with what was measured about them.

use super::object::Unaddressed;
use super::{
    ByThread, Caller, EdgeKey, FutexUse, HoldSum, Interval, Key, Object, ObjectKind, PairSum, Thing,
};
use crate::analysis::Analysis;
use crate::blame::WaitSum;
use crate::hist::{HistRow, Octaves};
use crate::past::{HolderDid, HolderTimes};
use crate::slot::Slot;
use holdup_trace::{Nanos, Pid};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// One object at the end of the trace, and the waits for it by all threads.
#[derive(Clone, Copy, Debug)]
pub struct ObjectStats {
    /// Its number.
    pub object: Object,
    /// What it is.
    pub kind: ObjectKind,
    /// What a futex is used for; `None` for other objects.
    pub usage: Option<FutexUse>,
    /// Whether one thread at a time holds it, and releases it itself.
    pub is_lock: bool,
    /// For a futex: the threads whose sleeps for it no thread ends are awake one at a time. Those
    /// sleeps were for the lock too.
    pub in_turn: bool,
    /// For a futex: most calls that wake a thread wake all waiters.
    pub wakes_all: bool,
    /// Several threads held it at once, like readers of a lock.
    pub is_shared: bool,
    /// A futex of one process: no other process can wait for it or end a wait.
    pub private: bool,
    /// The thread that first waited.
    pub first: Option<Slot>,
    /// The condition variable (address space, address) that this futex word is part of. glibc's
    /// condition variables use two words in turn.
    pub condvar: Option<(u32, u64)>,
    /// Waits.
    pub waits: u64,
    /// Time asleep, summed over the threads.
    pub wait_ns: Nanos,
    /// Longest wait.
    pub max_ns: Nanos,
    /// 99th percentile, within 1/16.
    pub p99_ns: Option<Nanos>,
    /// Part of `wait_ns`: for something outside, or unknown ([`crate::Cause::is_idle`]).
    pub idle_ns: Nanos,
    /// Part of `wait_ns`: the thread that ended it was idle itself meanwhile.
    pub followed_idle_ns: Nanos,
    /// Part of `wait_ns`: for a device.
    pub device_ns: Nanos,
    /// Part of `wait_ns`: uninterruptible, for a lock of the kernel.
    pub lock_ns: Nanos,
    /// Elapsed time, from entry to return, of the calls that slept for it; 0 if they are not
    /// followed to their return.
    pub elapsed_ns: Nanos,
    /// Time from the wake-up to running, on CPUs that were idle.
    pub wake_delay_ns: Nanos,
    /// Calls that returned without sleeping because the word had changed.
    pub retries: u64,
    /// For a futex: times that a thread came to wait, each counted once however often it slept
    /// until it had it.
    pub came: u64,
}

impl Analysis {
    /// Every object by its number; objects that turned out to be the same, once.
    pub fn objects(&self) -> impl Iterator<Item = ObjectStats> {
        let waits = &self.engine.waits;
        (0..waits.things.len() as u32)
            .map(Object)
            .filter(|&o| waits.find(o) == o)
            .map(|o| self.stats(o))
    }

    /// More than the largest number of an object.
    pub fn objects_in_all(&self) -> usize {
        self.engine.waits.things.len()
    }

    fn stats(&self, object: Object) -> ObjectStats {
        let waits = &self.engine.waits;
        let thing = &waits.things[object.0 as usize];
        let usage = (thing.kind == ObjectKind::Futex).then(|| waits.usage(object));
        let condvar = match waits.keys[object.0 as usize] {
            Key::Futex { space, addr, .. }
                if usage == Some(FutexUse::Condvar)
                    || thing.futex.usage() == FutexUse::Condvar && thing.is_barrier() =>
            {
                let inner = thing.futex.usage() == FutexUse::Barrier;
                let base = waits.condvar_of(object).filter(|_| inner);
                Some((space, base.unwrap_or(addr & !7)))
            }
            _ => None,
        };
        ObjectStats {
            object,
            kind: thing.kind,
            usage,
            is_lock: waits.is_lock(object),
            in_turn: waits.are_turns_taken(object),
            wakes_all: thing.futex.wake_all > thing.futex.wake_one,
            is_shared: thing.is_shared(),
            private: matches!(
                waits.keys[object.0 as usize],
                Key::Futex { shared: false, .. }
                    | Key::Parked { .. }
                    | Key::ParkedFor { .. }
                    | Key::Monitor { .. }
            ),
            first: thing.first,
            condvar,
            waits: thing.spans.count,
            wait_ns: thing.spans.total,
            max_ns: thing.spans.max,
            p99_ns: thing.spans.p99(),
            idle_ns: thing.idle_wait,
            followed_idle_ns: thing.followed_idle,
            device_ns: thing.device_wait,
            lock_ns: thing.lock_wait,
            elapsed_ns: thing.elapsed,
            wake_delay_ns: thing.wake_delay,
            retries: thing.retries,
            came: thing.came,
        }
    }

    /// How long the waits for `objects` were, which share the name `name`.
    pub fn wait_hist(&self, objects: &[Object], kind: &str, name: &str) -> Vec<HistRow> {
        let mut octaves = Octaves::default();
        for object in objects {
            octaves.merge(&self.engine.waits.things[object.0 as usize].spans.octaves());
        }
        HistRow::of("wait", Some(kind.to_owned()), name, &octaves)
    }

    /// The final object of an object, by the number it has in [`Analysis::objects`].
    pub fn final_object(&self, object: Object) -> Object {
        self.engine.waits.find(object)
    }

    /// Address, id or descriptor of an object, as tables show it.
    pub fn object_name(&self, object: Object) -> String {
        let thing = &self.engine.waits.things[object.0 as usize];
        let of_process = || match thing.first.map(|s| self.thread(s)) {
            Some(t) => format!(" of pid {}", self.pid(t).unwrap_or(t.tid.0)),
            None => String::new(),
        };
        match self.engine.waits.keys[object.0 as usize] {
            Key::Other => "others".to_owned(),
            Key::Futex { addr, .. } => match self.variables.get(&object) {
                Some(name) => name.clone(),
                None => format!("{addr:#x}"),
            },
            Key::Semaphore(id) => format!("semid {}", id as i32),
            Key::MessageQueue(id) => format!("msqid {}", id as i32),
            Key::Descriptor { .. } => self.descriptor_name(object, thing),
            Key::Call { nr: u32::MAX, .. } if self.capabilities.syscalls.chosen().is_some() => {
                "an unrecorded call".to_owned()
            }
            Key::Call { nr: u32::MAX, .. } => "no recorded call".to_owned(),
            Key::Call { nr, .. } => self.call_name(nr),
            Key::PolledLock { .. } => "tried for between naps".to_owned(),
            Key::Fault { .. } => format!("memory{}", of_process()),
            Key::Blocked { .. } => format!("not recorded{}", of_process()),
            Key::In { caller: Caller::Name(name), .. } => {
                format!("in {}{}", self.engine.names.get(name), of_process())
            }
            Key::In { caller: Caller::Address(at), .. } => match self.callers.get(&at) {
                Some(name) => format!("in {name}{}", of_process()),
                None => format!("in {at:#x}{}", of_process()),
            },
            Key::Parked { addr, .. } | Key::ParkedAt { semaphore: addr, .. } => {
                let of = of_go(thing.futex.usage());
                match self.variables.get(&object) {
                    Some(name) => format!("{of} {name}"),
                    None => format!("{of} {addr:#x}"),
                }
            }
            Key::Monitor { addr, .. } => format!("monitor {addr:#x}"),
            Key::ParkedFor { why, .. } => match why {
                Unaddressed::Select => "select",
                Unaddressed::Sleep => "time.Sleep",
                Unaddressed::Io => "network poller",
                Unaddressed::Runtime => "runtime",
                Unaddressed::Start => "go statement",
            }
            .to_owned(),
            Key::KernelLock { addr: 0, nr } => format!("in {}", self.call_name(nr)),
            Key::KernelLock { addr, .. } => format!("{addr:#x}"),
        }
    }

    /// What a descriptor refers to, if known, else its number; with its process if that is not the
    /// waiter's.
    fn descriptor_name(&self, object: Object, thing: &Thing) -> String {
        let Some(o) = thing.opened else { return "fd 0".to_owned() };
        let first = thing.first.map(|slot| self.thread(slot));
        let pid = match o.pid {
            Pid::UNKNOWN => first.map(|t| self.pid(t).unwrap_or(t.tid.0)),
            pid => Some(pid.0),
        };
        let whose = pid.map_or_else(String::new, |pid| format!(" of pid {pid}"));
        let number = format!("fd {}{whose}", o.fd as i32);
        match self.descriptors.get(&object) {
            Some(seen) if !seen.name.is_empty() => {
                let waits_itself = first.and_then(|t| self.pid(t)) == pid;
                let names_number =
                    waits_itself || seen.name.ends_with(')') && seen.name.contains(" of pid ");
                if names_number { seen.name.clone() } else { format!("{} ({number})", seen.name) }
            }
            _ => number,
        }
    }

    /// The name of an object's kind in the `kind` column. For a descriptor, what the recorder saw
    /// counts, not what calls suggest.
    pub fn kind_name(&self, object: Object, kind: ObjectKind) -> &'static str {
        match (kind, self.descriptors.get(&object)) {
            (
                ObjectKind::Descriptor
                | ObjectKind::Pipe
                | ObjectKind::Socket
                | ObjectKind::File
                | ObjectKind::Eventfd
                | ObjectKind::Timerfd,
                Some(seen),
            ) => seen.kind.name(),
            _ => kind.name(),
        }
    }

    /// Waits for each object by each thread.
    pub fn waited_by(&self) -> ByThread<PairSum> {
        self.by_object(&self.engine.waits.waiters, add_pair)
    }

    /// Waits for each object that each thread ended.
    pub fn ended_by(&self) -> ByThread<PairSum> {
        self.by_object(&self.engine.waits.wakes, add_pair)
    }

    /// How long each thread held each object.
    pub fn held_by(&self) -> ByThread<HoldSum> {
        self.by_object(&self.engine.waits.holds, HoldSum::add)
    }

    /// What each thread did while it held each object and others waited for it, longest first.
    pub fn holders_did(&self) -> BTreeMap<Object, BTreeMap<Slot, Vec<(HolderDid, Nanos)>>> {
        let mut all: BTreeMap<Object, BTreeMap<Slot, HolderTimes>> = BTreeMap::new();
        for (&(object, slot), times) in &self.engine.waits.holders_did {
            let of = all.entry(self.final_object(object)).or_default().entry(slot).or_default();
            for (did, ns) in times.iter() {
                let object = did.object.map(|object| self.final_object(object));
                of.add(HolderDid { object, ..did }, ns);
            }
        }
        let listed = |times: HolderTimes| {
            let mut list: Vec<_> = times.iter().collect();
            list.sort_by_key(|&(did, ns)| (std::cmp::Reverse(ns), did));
            list
        };
        let of = |by: BTreeMap<Slot, HolderTimes>| {
            by.into_iter().map(|(slot, times)| (slot, listed(times))).collect()
        };
        all.into_iter().map(|(object, by)| (object, of(by))).collect()
    }

    /// Pairs of a map of the state machine, by the final numbers of the objects.
    fn by_object<T: Copy>(
        &self,
        map: &FxHashMap<(Object, Slot), T>,
        add: fn(&mut T, T),
    ) -> ByThread<T> {
        let pairs = map.iter().map(|(&(o, slot), &sum)| (self.final_object(o), slot, sum));
        ByThread::new(self.objects_in_all(), pairs.collect(), add)
    }

    /// Which thread waited for which on which object; needs [`crate::Detail::Edges`]. Unordered.
    pub fn edges(&self) -> impl Iterator<Item = (&EdgeKey, &WaitSum)> {
        self.engine.waits.edges.iter()
    }

    /// A thread's times asleep, in order; needs [`crate::Detail::Intervals`].
    pub fn sleeps(&self, slot: Slot) -> &[Interval] {
        self.engine.waits.intervals(slot)
    }

    /// The spans in which the trace shows what a thread did, in order; needs
    /// [`crate::Detail::Intervals`].
    pub fn known(&self, slot: Slot) -> &[(Nanos, Nanos)] {
        self.thread(slot).known.as_deref().map_or(&[], |list| list)
    }

    /// A thread's time asleep for something outside or unknown ([`crate::Cause::is_idle`]).
    pub fn idle_wait_ns(&self, slot: Slot) -> Nanos {
        self.engine.waits.thread_waits(slot).0
    }
}

/// Go's name for this use.
fn of_go(usage: FutexUse) -> &'static str {
    match usage {
        FutexUse::Mutex => "sync.Mutex",
        FutexUse::RwLock => "sync.RWMutex",
        FutexUse::Condvar => "sync.Cond",
        FutexUse::Group => "sync.WaitGroup",
        FutexUse::Channel => "chan",
        FutexUse::Semaphore => "sema",
        usage => usage.name(),
    }
}

fn add_pair(a: &mut PairSum, b: PairSum) {
    a.waits += b.waits;
    a.wait_ns += b.wait_ns;
    a.span_ns += b.span_ns;
}
