//! Finds the records from outside a part that must stay with it, so that the state at its beginning
//! is known in the cut, too.
//!
//! Nothing is made up. The state at the beginning of a part is determined by the latest records of
//! each kind: for each CPU its running thread, for each thread its latest switches, wake-ups and
//! calls, for each object its latest use. Those records stay, with their own times. In addition one
//! record of each kind of event stays, wherever it is, so that an event which was recorded but did
//! not happen in the part is not mistaken for one that was not recorded.

use crate::about::{About, awaits_events, futex_waits, lets_go};
use crate::spot::{Place, Spot, Spots};
use holdup_syscalls::{Arch, name};
use holdup_trace::{Batch, Cpu, Event, EventId, Nanos, Pid, Recorded, Tid, TraceInfo, What};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Uses kept per futex and operation: enough to show which threads use it, and for what.
const USES: usize = 32;
/// Places kept per call: its entry, its return, and a sleep with everything that belongs to it.
const CALL: usize = 16;
/// Failed attempts and naps kept: two of each.
const NAPS: usize = 4;
/// Objects whose latest uses are kept.
const MAX_OBJECTS: usize = 1 << 20;

/// The key under which the latest record of a kind is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// A kind of event on a CPU, and its number.
    Cpu(Kind, Cpu, u64),
    /// A kind of event about a thread.
    Tid(Kind, Tid, u64),
    /// A kind of event about something with an address or a number.
    Of(Kind, u64),
    /// A lock, and the kind as which it was taken.
    As(u64, u32),
}

impl Key {
    /// The key of a lock and its taker; idle tasks share one id and are distinguished by CPU.
    fn by(kind: Kind, e: &Event, lock: u64) -> Key {
        match e.tid {
            Tid::IDLE => Key::Cpu(kind, e.cpu, lock),
            tid => Key::Tid(kind, tid, lock),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    First,
    Any,
    Changed,
    Switch,
    FromIdle,
    ToIdle,
    In,
    Out,
    Waking,
    Wakeup,
    Migrate,
    Life,
    Name,
    Group,
    Reason,
    Runtime,
    Enter,
    Exit,
    Irq,
    Softirq,
    Work,
    Begin,
    End,
    Acquire,
    Release,
    Fault,
    Sample,
    Lost,
}

/// A call in progress, with the records that belong to it.
struct Call {
    nr: u32,
    about: About,
    args: [u64; 6],
    call: Spot,
    during: Vec<Spot>,
    slept: bool,
    /// Whether it ended a sleep of another thread.
    woke: bool,
}

impl Call {
    /// All records of the call that stay.
    fn spots(&self) -> Box<[Spot]> {
        let call = std::iter::once(self.call.clone());
        call.chain(self.during.iter().cloned()).collect()
    }
}

/// Calls of one object, latest last.
type Uses = VecDeque<Box<[Spot]>>;
/// Calls of one thread, latest last: whether each is a failed attempt at a lock, else a nap.
type Naps = VecDeque<(bool, Box<[Spot]>)>;
/// A descriptor or an address of a process.
type Number = (Pid, u64);
/// A thread's calls with one argument, and whether they slept.
type Use = (Tid, u32, u64, bool);
/// How often two descriptors had changed their meaning, and the call of the woken thread.
type United = ([u32; 2], Box<[Spot]>);

/// Collects the records.
pub(crate) struct Head {
    from: Nanos,
    cpus: Option<Vec<Cpu>>,
    /// Whether each event is irrelevant to the state, by its id.
    unused: Vec<bool>,
    about: Vec<About>,
    spots: Spots,
    latest: FxHashMap<Key, Spot>,
    /// The calls that created threads.
    births: FxHashMap<Tid, Vec<Spot>>,
    /// The latest record of each CPU, and its running thread.
    said: FxHashMap<Cpu, (Spot, Tid)>,
    /// The first record of each event since that thread came to the CPU: the earliest shows it
    /// there.
    came: FxHashMap<Cpu, Vec<(EventId, Spot)>>,
    calls: FxHashMap<Tid, Call>,
    pids: FxHashMap<Tid, Pid>,
    /// First uses of objects, by thread, call, argument, and whether the call slept: the first user
    /// gives an object its name.
    firsts: FxHashMap<Use, (u32, Box<[Spot]>)>,
    /// Latest uses of objects, by the same key.
    uses: FxHashMap<Use, Box<[Spot]>>,
    futexes: FxHashMap<(Pid, u64, u64), Uses>,
    /// Latest failed attempts at locks, and the naps after them.
    naps: FxHashMap<Tid, Naps>,
    /// The calls that acquired what their threads hold.
    taken: FxHashMap<(Tid, u32, u64), Spot>,
    /// The call that last opened or closed a descriptor.
    files: FxHashMap<Number, Box<[Spot]>>,
    /// How often the meaning of a descriptor has changed.
    changes: FxHashMap<Number, u32>,
    /// First wake-ups, by kind, of a thread in a call on one number by a call on another number:
    /// they show that the two numbers are one object, as long as neither has changed its meaning.
    unions: FxHashMap<(Kind, Number, Number), United>,
    /// The calls in which threads wait for events, and the calls by which other threads wake them.
    awaits: Vec<bool>,
    lets_go: Vec<bool>,
    /// First wake-ups of the former by the latter, by waker and woken thread: a thread that did so
    /// once is known to contend with others.
    handed: FxHashMap<(Tid, Pid), Box<[Spot]>>,
    /// The first record of each event, before the part or else after it.
    met: Vec<Option<Place>>,
    inside: Vec<bool>,
}

impl Head {
    /// A collector for the part that begins at `from`, on these CPUs.
    pub(crate) fn new(info: &TraceInfo, from: Nanos, cpus: Option<Vec<Cpu>>) -> Head {
        let arch = Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64"));
        let about = (0..1024).map(|nr| name(arch, nr).map_or(About::Nothing, About::of));
        let all =
            |is: fn(&str) -> bool| (0..1024).map(|nr| name(arch, nr).is_some_and(is)).collect();
        Head {
            from,
            cpus,
            unused: Recorded::of(&info.events).unused(&info.events),
            about: about.collect(),
            spots: Spots::default(),
            latest: FxHashMap::default(),
            births: FxHashMap::default(),
            said: FxHashMap::default(),
            came: FxHashMap::default(),
            calls: FxHashMap::default(),
            pids: FxHashMap::default(),
            firsts: FxHashMap::default(),
            uses: FxHashMap::default(),
            futexes: FxHashMap::default(),
            files: FxHashMap::default(),
            changes: FxHashMap::default(),
            unions: FxHashMap::default(),
            awaits: all(awaits_events),
            lets_go: all(lets_go),
            handed: FxHashMap::default(),
            naps: FxHashMap::default(),
            taken: FxHashMap::default(),
            met: vec![None; info.events.len()],
            inside: vec![false; info.events.len()],
        }
    }

    /// Process an event of the whole trace; `to` is the part's last time.
    pub(crate) fn event(&mut self, e: &Event, batch: &Batch, to: Nanos) {
        let chosen = self.cpus.as_ref().is_none_or(|list| list.contains(&e.cpu));
        let id = usize::from(e.id.0);
        let place = (e.ts, e.cpu);
        if e.ts >= self.from && e.ts <= to {
            if let Some(inside) = self.inside.get_mut(id) {
                *inside |= chosen;
            }
            return;
        }
        if let Some(met) = self.met.get_mut(id) {
            met.get_or_insert(place);
        }
        let unused = self.unused.get(id) == Some(&true);
        if e.ts < self.from && (chosen && !unused || e.id == EventId::SIDEBAND) {
            self.before(e, batch, place);
        }
    }

    /// The places of the records found.
    pub(crate) fn places(self) -> FxHashSet<Place> {
        let latest = self.latest.into_values();
        let births = self.births.into_values().flatten();
        let calls = self.calls.into_values().flat_map(|c| c.spots());
        let firsts = self.firsts.into_values().map(|(_, spots)| spots);
        let uses = firsts.chain(self.uses.into_values()).flatten();
        let unions = self.unions.into_values().map(|(_, spots)| spots);
        let files = self.files.into_values().chain(unions).flatten();
        let files = files.chain(self.handed.into_values().flatten());
        let taken = self.taken.into_values();
        let naps = self.naps.into_values().flatten().flat_map(|(_, spots)| spots);
        let futexes = self.futexes.into_values().flatten().flatten();
        let came = self.came.into_values().flatten().map(|(_, spot)| spot);
        let spots = latest.chain(births).chain(calls).chain(came);
        let spots = spots.chain(uses).chain(files).chain(futexes).chain(taken).chain(naps);
        let mut places = FxHashSet::default();
        spots.for_each(|spot| spot.places(&mut places));
        self.spots.held().for_each(|spot| spot.places(&mut places));
        let met = self.met.into_iter().zip(self.inside);
        places.extend(met.filter_map(|(place, inside)| place.filter(|_| !inside)));
        places
    }

    fn keep(&mut self, key: Key, at: &Spot) {
        self.latest.insert(key, at.clone());
    }

    fn first(&mut self, key: Key, at: &Spot) {
        self.latest.entry(key).or_insert_with(|| at.clone());
    }

    /// An event of a CPU shows the thread that runs there.
    fn said(&mut self, e: &Event, at: &Spot) {
        self.keep(Key::Cpu(Kind::Any, e.cpu, 0), at);
        self.first(Key::Cpu(Kind::First, e.cpu, 0), at);
        self.first(Key::Tid(Kind::First, e.tid, 0), at);
        let tid = match e.what {
            What::Switch { next, .. } => next,
            _ => e.tid,
        };
        let before = self.said.insert(e.cpu, (at.clone(), tid));
        let came = self.came.entry(e.cpu).or_default();
        if tid != e.tid || before.as_ref().is_none_or(|(_, before)| *before != tid) {
            came.clear();
        }
        if came.iter().all(|(id, _)| *id != e.id) {
            came.push((e.id, at.clone()));
        }
        if let Some((before, _)) = before.filter(|(_, tid)| *tid != e.tid) {
            // The previous thread left the CPU unseen.
            self.keep(Key::Cpu(Kind::Changed, e.cpu, 0), &before);
            self.keep(Key::Cpu(Kind::Changed, e.cpu, 1), at);
        }
    }

    /// A thread becomes ready: keep the first such record since it left its CPU, and the latest.
    fn ready(&mut self, kind: Kind, (tid, waker): (Tid, Tid), at: &Spot) {
        self.keep(Key::Tid(kind, tid, 0), at);
        // A woken thread sleeps. Without the switch before, it would count as running and not as
        // going to sleep next.
        if let Some(out) = self.latest.get(&Key::Tid(Kind::Out, tid, 0)).cloned() {
            self.keep(Key::Tid(kind, tid, 2), &out);
        }
        // The waker's call, which concerns the same object.
        let call = self.calls.get(&waker).filter(|_| waker != tid);
        if let Some(call) = call.map(|c| c.call.clone()) {
            self.during(tid, &call, false);
        }
        self.first(Key::Tid(kind, tid, 1), at);
        self.during(tid, at, false);
        self.unites(kind, (tid, waker), at);
        self.hands_over(tid, waker);
    }

    /// A thread that waits for events is woken.
    fn hands_over(&mut self, tid: Tid, waker: Tid) {
        let (Some(theirs), Some(own)) = (self.calls.get(&tid), self.calls.get(&waker)) else {
            return;
        };
        let is = |list: &[bool], call: &Call| list.get(call.nr as usize) == Some(&true);
        if is(&self.awaits, theirs) && is(&self.lets_go, own) && self.handed.len() < MAX_OBJECTS {
            let pid = self.pids.get(&tid).copied().unwrap_or(Pid(tid.0));
            let spots = || theirs.spots().iter().chain([&own.call]).cloned().collect();
            self.handed.entry((waker, pid)).or_insert_with(spots);
        }
    }

    /// A thread in a call is woken by another thread in a call.
    fn unites(&mut self, kind: Kind, (tid, waker): (Tid, Tid), at: &Spot) {
        let number = |tid: &Tid| {
            let call = self.calls.get(tid)?;
            matches!(call.about, About::First | About::Lock | About::Futex).then_some(())?;
            Some((self.pids.get(tid).copied().unwrap_or(Pid(tid.0)), call.args[0]))
        };
        let (Some(theirs), Some(own)) = (number(&tid), number(&waker)) else { return };
        if let Some(call) = self.calls.get_mut(&waker)
            && !std::mem::replace(&mut call.woke, true)
        {
            // Without this record the call would wake no thread, which distinguishes release from
            // acquisition.
            self.during(waker, at, false);
        }
        let key = (kind, theirs, own);
        let changes = [self.changes(theirs), self.changes(own)];
        let is_known = self.unions.get(&key).is_some_and(|known| known.0 == changes);
        if theirs != own && !is_known && self.unions.len() < MAX_OBJECTS {
            self.unions.insert(key, (changes, self.calls[&tid].spots()));
        }
    }

    fn changes(&self, number: Number) -> u32 {
        self.changes.get(&number).copied().unwrap_or(0)
    }

    /// The record belongs to the call that the thread is in.
    fn during(&mut self, tid: Tid, at: &Spot, sleeps: bool) {
        if let Some(call) = self.calls.get_mut(&tid) {
            call.slept |= sleeps;
            if call.during.len() >= CALL {
                // Keep the latest records.
                call.during.remove(0);
            }
            call.during.push(at.clone());
        }
    }

    fn before(&mut self, e: &Event, batch: &Batch, place: Place) {
        let at = &self.spots.spot(e, place);
        if e.id != EventId::SIDEBAND {
            self.said(e, at);
            if e.pid != Pid::UNKNOWN && e.tid != Tid::UNKNOWN {
                self.pids.insert(e.tid, e.pid);
            }
        }
        match e.what {
            What::SysEnter { nr, args } => {
                self.enter(e, nr, batch.args(args).unwrap_or(&[0; 6]), at);
            }
            What::SysExit { nr, ret } => self.exit(e, nr, ret, at),
            What::Switch { prev, next, prev_state, .. } => {
                self.keep(Key::Cpu(Kind::Switch, e.cpu, 0), at);
                self.keep(Key::Tid(Kind::Out, prev, 0), at);
                self.keep(Key::Tid(Kind::In, next, 0), at);
                if prev == Tid::IDLE {
                    self.keep(Key::Cpu(Kind::FromIdle, e.cpu, 0), at);
                }
                if next == Tid::IDLE {
                    self.keep(Key::Cpu(Kind::ToIdle, e.cpu, 0), at);
                }
                for tid in [prev, next] {
                    self.latest.remove(&Key::Tid(Kind::Waking, tid, 1));
                    self.latest.remove(&Key::Tid(Kind::Wakeup, tid, 1));
                }
                self.during(prev, at, !prev_state.is_runnable());
                self.during(next, at, false);
            }
            What::Waking { tid, .. } => self.ready(Kind::Waking, (tid, e.tid), at),
            What::Wakeup { tid, .. } | What::WakeupNew { tid, .. } => {
                self.ready(Kind::Wakeup, (tid, e.tid), at);
            }
            What::BlockedReason { tid, .. } => {
                self.keep(Key::Tid(Kind::Reason, tid, 0), at);
                self.during(tid, at, false);
            }
            What::Migrate { tid, .. } => self.keep(Key::Tid(Kind::Migrate, tid, 0), at),
            What::StatRuntime { tid, .. } | What::StatDelay { tid, .. } => {
                self.keep(Key::Tid(Kind::Runtime, tid, 0), at);
            }
            What::Fork { parent, child, .. } => {
                let call = self.calls.get(&parent).map(|c| c.call.clone());
                self.births.insert(child, call.into_iter().chain([at.clone()]).collect());
            }
            What::TaskNew { tid, .. } => self.keep(Key::Tid(Kind::Life, tid, 0), at),
            What::Exec { tid, .. } => self.keep(Key::Tid(Kind::Life, tid, 1), at),
            What::Exit { tid, .. } | What::TaskEnd { tid, .. } => {
                self.keep(Key::Tid(Kind::Life, tid, 2), at);
            }
            What::Comm { tid, .. } => self.keep(Key::Tid(Kind::Name, tid, 0), at),
            What::AttachTask { tid, root, .. } => {
                self.keep(Key::Tid(Kind::Group, tid, u64::from(root)), at);
            }
            _ => self.other(e, at),
        }
    }

    /// Events other than those about the life of a thread.
    fn other(&mut self, e: &Event, at: &Spot) {
        let key = match e.what {
            What::IrqEntry { irq, .. } => Key::Cpu(Kind::Irq, e.cpu, u64::from(irq)),
            What::IrqExit { irq } => Key::Cpu(Kind::Irq, e.cpu, 1 << 32 | u64::from(irq)),
            What::VectorEntry { vector, .. } => {
                Key::Cpu(Kind::Irq, e.cpu, 2 << 32 | u64::from(vector))
            }
            What::VectorExit { vector } => Key::Cpu(Kind::Irq, e.cpu, 3 << 32 | u64::from(vector)),
            What::SoftirqEntry { vec } => Key::Cpu(Kind::Softirq, e.cpu, u64::from(vec)),
            What::SoftirqExit { vec } => Key::Cpu(Kind::Softirq, e.cpu, 1 << 32 | u64::from(vec)),
            // The worker may sleep meanwhile, and another worker may start a work item on this CPU.
            What::WorkStart { .. } => Key::Tid(Kind::Work, e.tid, 0),
            What::WorkEnd { .. } => Key::Tid(Kind::Work, e.tid, 1),
            What::ContentionBegin { lock, flags, .. } => {
                self.keep(Key::Of(Kind::Begin, lock), at);
                self.keep(Key::As(lock, flags), at);
                Key::by(Kind::Begin, e, lock)
            }
            What::ContentionEnd { lock, .. } => {
                self.keep(Key::Of(Kind::End, lock), at);
                Key::by(Kind::End, e, lock)
            }
            What::ContendedRelease { lock } => Key::Of(Kind::Release, lock),
            What::LockAcquire { lock, .. } => Key::by(Kind::Begin, e, lock),
            What::LockContended { lock, .. } => Key::by(Kind::End, e, lock),
            What::LockAcquired { lock, .. } => Key::by(Kind::Acquire, e, lock),
            What::LockRelease { lock, .. } => Key::by(Kind::Release, e, lock),
            What::PageFault { .. } => Key::Tid(Kind::Fault, e.tid, 0),
            What::Sample { .. } => Key::Cpu(Kind::Sample, e.cpu, u64::from(e.id.0)),
            What::Readings { leader, .. } => {
                Key::Cpu(Kind::Sample, e.cpu, 1 << 32 | u64::from(leader.0))
            }
            What::ContextSwitch { out, .. } => {
                self.keep(Key::Cpu(Kind::Switch, e.cpu, u64::from(out)), at);
                Key::Tid(if out { Kind::Out } else { Kind::In }, e.tid, 0)
            }
            What::Lost { .. } => Key::Cpu(Kind::Lost, e.cpu, 0),
            _ => return,
        };
        self.keep(key, at);
    }

    fn enter(&mut self, e: &Event, nr: u32, args: &[u64; 6], at: &Spot) {
        self.keep(Key::Tid(Kind::Enter, e.tid, 0), at);
        let about = self.about.get(nr as usize).map_or(About::Nothing, |about| about.with(args));
        let call = Call {
            nr,
            about,
            args: *args,
            call: at.clone(),
            during: Vec::new(),
            slept: false,
            woke: false,
        };
        self.calls.insert(e.tid, call);
    }

    fn exit(&mut self, e: &Event, nr: u32, ret: i64, at: &Spot) {
        self.keep(Key::Tid(Kind::Exit, e.tid, 0), at);
        let Some(call) = self.calls.remove(&e.tid) else { return };
        if call.nr != nr {
            return;
        }
        let places = call.spots();
        let pid = self.pids.get(&e.tid).copied().unwrap_or(Pid(e.tid.0));
        let first = call.args[0];
        if matches!(call.about, About::First | About::Lock | About::Futex)
            && self.firsts.len() < MAX_OBJECTS
        {
            let key = (e.tid, nr, first, call.slept);
            let changes = self.changes((pid, first));
            if self.firsts.get(&key).is_none_or(|known| known.0 != changes) {
                self.firsts.insert(key, (changes, places.clone()));
            }
        }
        match call.about {
            About::Lock if ret >= 0 => self.turn((e.tid, nr, first), &call),
            // A thread woken at a futex may have acquired the lock, until it wakes another thread.
            About::Futex if futex_waits(&call.args) => {
                self.taken.insert((e.tid, nr, first), call.call.clone());
            }
            About::Futex => self.turn((e.tid, nr, first), &call),
            _ => {}
        }
        let tries = call.about == About::Lock && ret < 0;
        if tries || call.about == About::Nothing && call.slept {
            self.tried(e.tid, tries, &places);
        }
        match call.about {
            About::Opens if ret >= 0 => self.means((pid, ret as u64), places),
            About::Copies if ret >= 0 => {
                let of = self.files.get(&(pid, first)).cloned().unwrap_or_default();
                self.means((pid, ret as u64), of.iter().chain(&places).cloned().collect());
            }
            About::Begets if ret > 0 => {
                let birth = self.births.entry(Tid(ret as u32)).or_default();
                birth.push(at.clone());
            }
            About::Closes => self.means((pid, first), places),
            About::Futex if self.futexes.len() < MAX_OBJECTS => {
                let uses = self.futexes.entry((pid, first, call.args[1])).or_default();
                if uses.len() == USES {
                    uses.pop_front();
                }
                uses.push_back(places);
            }
            About::First | About::Lock if self.uses.len() < MAX_OBJECTS => {
                self.uses.insert((e.tid, nr, first, call.slept), places);
            }
            _ => {}
        }
    }

    /// A call acquired or released a lock: alternately, unless it waited or ended another thread's
    /// wait.
    fn turn(&mut self, lock: (Tid, u32, u64), call: &Call) {
        match self.taken.remove(&lock) {
            Some(acquire) if !call.slept => acquire.took(&call.call),
            _ if call.woke || call.about == About::Futex => {}
            _ => {
                self.taken.insert(lock, call.call.clone());
            }
        }
    }

    /// An attempt at a lock failed, or the thread slept for another reason: naps between two
    /// attempts at a lock are waits for it.
    fn tried(&mut self, tid: Tid, tries: bool, places: &[Spot]) {
        let naps = self.naps.entry(tid).or_default();
        if !tries && naps.back().is_none_or(|(tried, _)| !tried) {
            return naps.clear();
        }
        if naps.len() == NAPS {
            naps.pop_front();
        }
        naps.push_back((tries, places.into()));
    }

    /// A descriptor was opened, replaced or closed.
    fn means(&mut self, file: Number, places: Box<[Spot]>) {
        if self.files.len() < MAX_OBJECTS {
            self.files.insert(file, places);
            *self.changes.entry(file).or_default() += 1;
        }
    }
}
