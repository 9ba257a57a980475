//! Which records from outside a part must stay with it, so that what is known at its beginning is
//! known of the cut as well.
//!
//! Nothing is made up. The state at the beginning of a part is what the latest records of each
//! kind left behind: of each CPU who runs there, of each thread its latest switches, wake-ups and
//! calls, of each object what was done with it last. Those records stay, with their own times. And
//! one record of each kind of event stays wherever it is, so that what was recorded, and merely did
//! not happen in the part, is not taken for what was not recorded.

use crate::about::{About, awaits_events, futex_waits, lets_go};
use crate::spot::{Place, Spot, Spots};
use holdup_syscalls::{Arch, name};
use holdup_trace::{Batch, Cpu, Event, EventId, Nanos, Pid, Recorded, Tid, TraceInfo, What};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// So many uses of one futex are kept of each operation: who uses it, and for what, shows then.
const USES: usize = 32;
/// Places kept of one call: its entry, its return, and a sleep with all that belongs to it.
const CALL: usize = 16;
/// Tries that failed and naps are kept: two of each.
const NAPS: usize = 4;
/// Objects whose latest uses are kept.
const MAX_OBJECTS: usize = 1 << 20;

/// What the latest record of a kind is kept for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// A kind of event on a CPU, and its number.
    Cpu(Kind, Cpu, u64),
    /// A kind of event about a thread.
    Tid(Kind, Tid, u64),
    /// A kind of event about something with an address or a number.
    Of(Kind, u64),
    /// A lock, and as what kind it was taken.
    As(u64, u32),
}

impl Key {
    /// Of a lock and who takes it: the idle tasks have one number and a CPU each.
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
    /// It ended a sleep of another thread.
    woke: bool,
}

impl Call {
    /// All that stays of it.
    fn spots(&self) -> Box<[Spot]> {
        let call = std::iter::once(self.call.clone());
        call.chain(self.during.iter().cloned()).collect()
    }
}

/// Calls of one object, latest last.
type Uses = VecDeque<Box<[Spot]>>;
/// Calls of one thread, latest last: whether each is a try at a lock that failed, else a nap.
type Naps = VecDeque<(bool, Box<[Spot]>)>;
/// What a process means by a number: a descriptor, or an address.
type Number = (Pid, u64);
/// A thread's calls with one argument, and whether they slept.
type Use = (Tid, u32, u64, bool);
/// How often the meaning of two descriptors had changed, and the call out of which was woken.
type United = ([u32; 2], Box<[Spot]>);

/// Collects them.
pub(crate) struct Head {
    from: Nanos,
    cpus: Option<Vec<Cpu>>,
    /// Events that say nothing of the state, by number.
    unused: Vec<bool>,
    about: Vec<About>,
    spots: Spots,
    latest: FxHashMap<Key, Spot>,
    /// How threads came to be: the call that made each.
    births: FxHashMap<Tid, Vec<Spot>>,
    /// What each CPU said last, and who is there.
    said: FxHashMap<Cpu, (Spot, Tid)>,
    /// The first record of each event since that one came: the earliest that shows it there.
    came: FxHashMap<Cpu, Vec<(EventId, Spot)>>,
    calls: FxHashMap<Tid, Call>,
    pids: FxHashMap<Tid, Pid>,
    /// First uses of objects, by thread, call, argument, and whether the call slept: who is met
    /// first gives an object its name.
    firsts: FxHashMap<Use, (u32, Box<[Spot]>)>,
    /// Latest uses.
    uses: FxHashMap<Use, Box<[Spot]>>,
    futexes: FxHashMap<(Pid, u64, u64), Uses>,
    /// Latest tries at locks that failed, and the naps after them.
    naps: FxHashMap<Tid, Naps>,
    /// The calls that took what their threads have.
    taken: FxHashMap<(Tid, u32, u64), Spot>,
    /// The call that gave a descriptor its meaning, or took it.
    files: FxHashMap<Number, Box<[Spot]>>,
    /// How often the meaning of a descriptor has changed.
    changes: FxHashMap<Number, u32>,
    /// First wake-ups, by kind, out of a call with one number by a call with another: they show
    /// that the two are one object, while both mean what they did then.
    unions: FxHashMap<(Kind, Number, Number), United>,
    /// The calls in which threads wait for events, and those by which others let them go on.
    awaits: Vec<bool>,
    lets_go: Vec<bool>,
    /// First wake-ups out of the former by the latter, by who let whom go on: who once did so is
    /// known to contend with others.
    handed: FxHashMap<(Tid, Pid), Box<[Spot]>>,
    /// The first record of each event, before the part or else behind it.
    met: Vec<Option<Place>>,
    inside: Vec<bool>,
}

impl Head {
    /// Of the part that begins at `from`, of these CPUs.
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

    /// Take in an event of the whole trace; `to` is the part's last time.
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

    /// The places found, and nothing else any more.
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

    /// An event of a CPU: who it shows there.
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
            // Whoever was there before left unseen.
            self.keep(Key::Cpu(Kind::Changed, e.cpu, 0), &before);
            self.keep(Key::Cpu(Kind::Changed, e.cpu, 1), at);
        }
    }

    /// A thread is ready: the first time since it left its CPU, and any time.
    fn ready(&mut self, kind: Kind, (tid, waker): (Tid, Tid), at: &Spot) {
        self.keep(Key::Tid(kind, tid, 0), at);
        // Woken is who sleeps: without the switch before it, it would run, and not go to sleep
        // next.
        if let Some(out) = self.latest.get(&Key::Tid(Kind::Out, tid, 0)).cloned() {
            self.keep(Key::Tid(kind, tid, 2), &out);
        }
        // The call in which the other woke it: that is about the same object.
        let call = self.calls.get(&waker).filter(|_| waker != tid);
        if let Some(call) = call.map(|c| c.call.clone()) {
            self.during(tid, &call, false);
        }
        self.first(Key::Tid(kind, tid, 1), at);
        self.during(tid, at, false);
        self.unites(kind, (tid, waker), at);
        self.hands_over(tid, waker);
    }

    /// A thread that waits for events is let go on.
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

    /// A thread is woken out of a call, by another in a call.
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
            // Without it the call would wake nobody, which tells giving back from taking.
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
                // What came last stays.
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

    /// What is not about the life of a thread.
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
            // Its worker may sleep meanwhile, and another begin a work there.
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
            // Who was told of a word may have taken what it is about, until it tells another.
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

    /// A call took a lock or gave it back: by turns, unless it waited or ended another's wait.
    fn turn(&mut self, lock: (Tid, u32, u64), call: &Call) {
        match self.taken.remove(&lock) {
            Some(acquire) if !call.slept => acquire.took(&call.call),
            _ if call.woke || call.about == About::Futex => {}
            _ => {
                self.taken.insert(lock, call.call.clone());
            }
        }
    }

    /// A try at a lock failed, or the thread slept for something else: naps between two tries at a
    /// lock are waits for it.
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

    /// A descriptor means something else now, or nothing.
    fn means(&mut self, file: Number, places: Box<[Spot]>) {
        if self.files.len() < MAX_OBJECTS {
            self.files.insert(file, places);
            *self.changes.entry(file).or_default() += 1;
        }
    }
}
