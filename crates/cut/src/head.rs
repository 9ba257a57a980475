//! Which records from outside a part must stay with it, so that what is known at its beginning is
//! known of the cut as well.
//!
//! Nothing is made up. The state at the beginning of a part is what the latest records of each
//! kind left behind: of each CPU who runs there, of each thread its latest switches, wake-ups and
//! calls, of each object what was done with it last. Those records stay, with their own times. And
//! one record of each kind of event stays wherever it is, so that what was recorded, and merely did
//! not happen in the part, is not taken for what was not recorded.

use holdup_syscalls::{Arch, name, without_width};
use holdup_trace::{Batch, Cpu, Event, EventId, Nanos, Pid, Tid, TraceInfo, What};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Where a record is: enough to find it again in the file, whatever its format. Several records
/// of one place stay together.
pub(crate) type Place = (Nanos, Cpu);

/// So many uses of one futex are kept of each operation: who uses it, and for what, shows then.
const USES: usize = 8;
/// Places kept of one call: its entry, its return, and a sleep with all that belongs to it.
const CALL: usize = 16;
/// Lengths of a timer's tick, by `CONFIG_HZ` 1000, 300, 250, 100: silences of such lengths tell
/// which one a kernel has, if enough of them are found.
const TICKS: [Nanos; 4] = [1_000_000, 3_333_333, 4_000_000, 10_000_000];
/// So many are kept of about each length, as they come: by a tenth longer or shorter. How many of
/// those are much nearer decides whether it is a tick.
const SILENCES: usize = 120;
const ABOUT: Nanos = 10;
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
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
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

/// What a system call is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum About {
    /// It makes a descriptor.
    Opens,
    /// It makes the descriptor it returns mean what another does.
    Copies,
    Closes,
    /// It makes a thread or process, and returns its number.
    Begets,
    /// Something with the number or address in its first argument.
    First,
    /// A futex: the address, and what is done.
    Futex,
    Nothing,
}

impl About {
    fn of(name: &str) -> About {
        match without_width(name) {
            "open" | "openat" | "openat2" | "creat" | "memfd_create" | "open_by_handle_at"
            | "socket" | "accept" | "accept4" | "eventfd" | "eventfd2" | "timerfd_create"
            | "epoll_create" | "epoll_create1" | "mq_open" => About::Opens,
            "dup" | "dup2" | "dup3" => About::Copies,
            "close" => About::Closes,
            "futex" | "futex_wait" | "futex_wake" | "futex_requeue" => About::Futex,
            "semop" | "semtimedop" | "msgrcv" | "msgsnd" | "mq_timedreceive" | "mq_timedsend"
            | "flock" | "fcntl" | "fcntl64" | "read" | "pread64" | "readv" | "preadv"
            | "preadv2" | "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "fsync"
            | "fdatasync" | "recvfrom" | "recvmsg" | "recvmmsg" | "recv" | "sendto" | "sendmsg"
            | "sendmmsg" | "send" | "connect" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2"
            | "wait4" | "waitid" => About::First,
            "clone" | "clone3" | "fork" | "vfork" => About::Begets,
            _ => About::Nothing,
        }
    }
}

/// A call in progress, with the records that belong to it.
struct Call {
    nr: u32,
    about: About,
    args: [u64; 6],
    places: Vec<Place>,
    slept: bool,
}

/// What a CPU said last.
struct Said {
    at: Place,
    tid: Tid,
    /// The switch by which the thread came.
    switch: Option<Place>,
    /// It was the beginning of an interrupt or softirq.
    begins: bool,
}

/// Calls of one object, latest last: the places of each.
type Uses = VecDeque<Box<[Place]>>;

/// Collects them.
pub(crate) struct Head {
    from: Nanos,
    cpus: Option<Vec<Cpu>>,
    about: Vec<About>,
    latest: FxHashMap<Key, Place>,
    /// How threads came to be: the call that made each.
    births: FxHashMap<Tid, Vec<Place>>,
    said: FxHashMap<Cpu, Said>,
    silences: [Vec<[Place; 3]>; TICKS.len()],
    calls: FxHashMap<Tid, Call>,
    pids: FxHashMap<Tid, Pid>,
    /// First uses of objects, by thread, call, argument, and whether the call slept: who is met
    /// first gives an object its name.
    firsts: FxHashMap<(Tid, u32, u64, bool), Box<[Place]>>,
    /// Latest uses.
    uses: FxHashMap<(Tid, u32, u64, bool), Box<[Place]>>,
    futexes: FxHashMap<(Pid, u64, u64), Uses>,
    files: FxHashMap<(Pid, u64), Box<[Place]>>,
    /// The first record of each event, before the part or else behind it.
    met: Vec<Option<Place>>,
    inside: Vec<bool>,
}

impl Head {
    /// Of the part that begins at `from`, of these CPUs.
    pub(crate) fn new(info: &TraceInfo, from: Nanos, cpus: Option<Vec<Cpu>>) -> Head {
        let arch = Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64"));
        let about = (0..1024).map(|nr| name(arch, nr).map_or(About::Nothing, About::of));
        Head {
            from,
            cpus,
            about: about.collect(),
            latest: FxHashMap::default(),
            births: FxHashMap::default(),
            said: FxHashMap::default(),
            silences: Default::default(),
            calls: FxHashMap::default(),
            pids: FxHashMap::default(),
            firsts: FxHashMap::default(),
            uses: FxHashMap::default(),
            futexes: FxHashMap::default(),
            files: FxHashMap::default(),
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
        if e.ts < self.from && (chosen || e.id == EventId::SIDEBAND) {
            self.before(e, batch, place);
        }
    }

    /// The places found, and nothing else any more.
    pub(crate) fn places(self) -> FxHashSet<Place> {
        let mut places: FxHashSet<Place> = self.latest.into_values().collect();
        places.extend(self.births.into_values().flatten());
        places.extend(self.silences.into_iter().flatten().flatten());
        places.extend(self.calls.into_values().flat_map(|c| c.places));
        places.extend(self.firsts.into_values().flatten());
        places.extend(self.uses.into_values().flatten());
        places.extend(self.files.into_values().flatten());
        places.extend(self.futexes.into_values().flatten().flatten());
        let met = self.met.into_iter().zip(self.inside);
        places.extend(met.filter_map(|(place, inside)| place.filter(|_| !inside)));
        places
    }

    fn keep(&mut self, key: Key, place: Place) {
        self.latest.insert(key, place);
    }

    /// An event of a CPU: who it shows there, since when, and after how long a silence.
    fn said(&mut self, e: &Event, at: Place) {
        self.keep(Key::Cpu(Kind::Any, e.cpu, 0), at);
        let is_switch = matches!(e.what, What::Switch { .. });
        let now = match e.what {
            What::Switch { next, .. } => next,
            _ => e.tid,
        };
        // What begins alone here would never end.
        let begins = matches!(
            e.what,
            What::IrqEntry { .. } | What::SoftirqEntry { .. } | What::VectorEntry { .. }
        );
        let before = self.said.get(&e.cpu);
        let mut switch = if is_switch { Some(at) } else { before.and_then(|b| b.switch) };
        if let Some(before) = before {
            let last = before.at;
            let silence = at.0.saturating_sub(last.0);
            let alone = begins || before.begins;
            if before.tid == e.tid
                && !alone
                && let Some(came) = before.switch
                && let Some(i) = TICKS.iter().position(|t| silence.abs_diff(*t) <= t / ABOUT)
                && self.silences[i].len() < SILENCES
            {
                self.silences[i].push([came, last, at]);
            }
            if before.tid != e.tid && !alone {
                // Whoever was there before left unseen.
                self.keep(Key::Cpu(Kind::Changed, e.cpu, 0), last);
                self.keep(Key::Cpu(Kind::Changed, e.cpu, 1), at);
                switch = switch.filter(|_| is_switch);
            }
        }
        self.said.insert(e.cpu, Said { at, tid: now, switch, begins });
    }

    /// A thread is ready: the first time since it left its CPU, and any time.
    fn ready(&mut self, kind: Kind, (tid, waker): (Tid, Tid), at: Place) {
        self.keep(Key::Tid(kind, tid, 0), at);
        // Woken is who sleeps: without the switch before it, it would run, and not go to sleep
        // next.
        if let Some(&out) = self.latest.get(&Key::Tid(Kind::Out, tid, 0)) {
            self.keep(Key::Tid(kind, tid, 2), out);
        }
        // The call in which the other woke it: that is about the same object.
        let call = self.calls.get(&waker).filter(|_| waker != tid);
        if let Some(entry) = call.and_then(|c| c.places.first().copied()) {
            self.during(tid, entry, false);
        }
        self.latest.entry(Key::Tid(kind, tid, 1)).or_insert(at);
        self.during(tid, at, false);
    }

    /// The record belongs to the call that the thread is in.
    fn during(&mut self, tid: Tid, place: Place, sleeps: bool) {
        if let Some(call) = self.calls.get_mut(&tid) {
            call.slept |= sleeps;
            if call.places.len() >= CALL {
                // Its entry stays, and what came last.
                call.places.remove(1);
            }
            call.places.push(place);
        }
    }

    fn before(&mut self, e: &Event, batch: &Batch, at: Place) {
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
            What::Switch { prev, next, .. } => {
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
                self.during(prev, at, true);
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
                let call = self.calls.get(&parent).and_then(|c| c.places.first());
                self.births.insert(child, call.copied().into_iter().chain([at]).collect());
            }
            What::TaskNew { tid, .. } => self.keep(Key::Tid(Kind::Life, tid, 0), at),
            What::Exec { tid, .. } => self.keep(Key::Tid(Kind::Life, tid, 1), at),
            What::Exit { tid, .. } | What::TaskEnd { tid, .. } => {
                self.keep(Key::Tid(Kind::Life, tid, 2), at);
            }
            What::Comm { tid, .. } => self.keep(Key::Tid(Kind::Name, tid, 0), at),
            _ => self.other(e, at),
        }
    }

    /// What is not about the life of a thread.
    fn other(&mut self, e: &Event, at: Place) {
        let key = match e.what {
            What::IrqEntry { irq, .. } => Key::Cpu(Kind::Irq, e.cpu, u64::from(irq)),
            What::IrqExit { irq } => Key::Cpu(Kind::Irq, e.cpu, 1 << 32 | u64::from(irq)),
            What::VectorEntry { vector, .. } => {
                Key::Cpu(Kind::Irq, e.cpu, 2 << 32 | u64::from(vector))
            }
            What::VectorExit { vector } => Key::Cpu(Kind::Irq, e.cpu, 3 << 32 | u64::from(vector)),
            What::SoftirqEntry { vec } => Key::Cpu(Kind::Softirq, e.cpu, u64::from(vec)),
            What::SoftirqExit { vec } => Key::Cpu(Kind::Softirq, e.cpu, 1 << 32 | u64::from(vec)),
            What::WorkStart { .. } => Key::Cpu(Kind::Work, e.cpu, 0),
            What::WorkEnd { .. } => Key::Cpu(Kind::Work, e.cpu, 1),
            What::ContentionBegin { lock, .. } => {
                self.keep(Key::Of(Kind::Begin, lock), at);
                Key::Tid(Kind::Begin, e.tid, lock)
            }
            What::ContentionEnd { lock, .. } => {
                self.keep(Key::Of(Kind::End, lock), at);
                Key::Tid(Kind::End, e.tid, lock)
            }
            What::ContendedRelease { lock } => Key::Of(Kind::Release, lock),
            What::LockAcquire { lock, .. } => Key::Tid(Kind::Begin, e.tid, lock),
            What::LockContended { lock, .. } => Key::Tid(Kind::End, e.tid, lock),
            What::LockAcquired { lock, .. } => Key::Tid(Kind::Acquire, e.tid, lock),
            What::LockRelease { lock, .. } => Key::Tid(Kind::Release, e.tid, lock),
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

    fn enter(&mut self, e: &Event, nr: u32, args: &[u64; 6], at: Place) {
        self.keep(Key::Tid(Kind::Enter, e.tid, 0), at);
        let about = self.about.get(nr as usize).copied().unwrap_or(About::Nothing);
        let call = Call { nr, about, args: *args, places: vec![at], slept: false };
        self.calls.insert(e.tid, call);
    }

    fn exit(&mut self, e: &Event, nr: u32, ret: i64, at: Place) {
        self.keep(Key::Tid(Kind::Exit, e.tid, 0), at);
        let Some(mut call) = self.calls.remove(&e.tid) else { return };
        if call.nr != nr {
            return;
        }
        call.places.push(at);
        let places = call.places.into_boxed_slice();
        let pid = self.pids.get(&e.tid).copied().unwrap_or(Pid(e.tid.0));
        let first = call.args[0];
        if matches!(call.about, About::First | About::Futex) && self.firsts.len() < MAX_OBJECTS {
            let key = (e.tid, nr, first, call.slept);
            self.firsts.entry(key).or_insert_with(|| places.clone());
        }
        match call.about {
            About::Opens if ret >= 0 => self.opened((pid, ret as u64), places),
            About::Copies if ret >= 0 => {
                let of = self.files.get(&(pid, first)).cloned().unwrap_or_default();
                self.opened((pid, ret as u64), of.iter().chain(&places).copied().collect());
            }
            About::Begets if ret > 0 => {
                self.births.entry(Tid(ret as u32)).or_default().extend([places[0], at]);
            }
            About::Closes => {
                self.files.remove(&(pid, first));
            }
            About::Futex if self.futexes.len() < MAX_OBJECTS => {
                let uses = self.futexes.entry((pid, first, call.args[1])).or_default();
                if uses.len() == USES {
                    uses.pop_front();
                }
                uses.push_back(places);
            }
            About::First if self.uses.len() < MAX_OBJECTS => {
                self.uses.insert((e.tid, nr, first, call.slept), places);
            }
            _ => {}
        }
    }

    fn opened(&mut self, file: (Pid, u64), places: Box<[Place]>) {
        if self.files.len() < MAX_OBJECTS {
            self.files.insert(file, places);
        }
    }
}
