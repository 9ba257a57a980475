//! The tables: waits by object, kind or thread; lock ratio and waiting ratio.

use super::{FutexUse, HoldSum, Key, Kind, Object, PairSum, Thing};
use crate::analysis::Analysis;
use crate::blame::WaitSum;
use crate::rows::percent;
use crate::threads::{Slot, Thread};
use holdup_trace::Nanos;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What the table of waits is grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsBy {
    /// One row per object.
    Object,
    /// One row per kind of object.
    Kind,
    /// One row per waiting thread and kind of object; needs [`crate::Detail::Edges`].
    Thread,
}

/// A thread that had an object while others waited for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// How long it had it.
    pub hold_ns: u64,
    /// Part of the waiting time of the others that falls into that time, in per cent.
    pub pct_explained: f64,
    /// More than half of `hold_ns` follows from wake-ups, not from calls that took the object.
    pub inferred: bool,
}

/// Waits for one object, one kind of objects, or by one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitsRow {
    /// `futex`, `semop`, `pipe`, `disk` …
    pub kind: &'static str,
    /// What a futex is used for: `mutex`, `condvar`, `barrier` …
    pub usage: Option<&'static str>,
    /// Address, id or descriptor. Of several objects: the one waited for longest.
    pub object: String,
    /// Objects in the row; absent by object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// Process of the waiting threads; `null` if there are several, or not known.
    pub pid: Option<u32>,
    /// Waiting thread; only by thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Name of that process, or of the thread that waited longest.
    pub comm: String,
    /// Times a thread went to sleep for it.
    pub waits: u64,
    /// Different threads that did.
    pub waiters: u64,
    /// Time asleep, summed over the threads.
    pub wait_total_ns: u64,
    /// Mean.
    pub wait_avg_ns: u64,
    /// 99th percentile, within 1/16.
    pub wait_p99_ns: Option<u64>,
    /// Longest.
    pub wait_max_ns: Option<u64>,
    /// Elapsed time of the calls that slept, from entry to return: what the program itself would
    /// measure. `null` for calls that are not followed to their return (`read`, `poll` …).
    pub elapsed_ns: Option<u64>,
    /// From wake-up to running, on CPUs that were idle; not part of `wait_total_ns`.
    pub wake_delay_ns: u64,
    /// Calls that found the object changed and returned at once: spinning in retries.
    pub retries: u64,
    /// Who had it meanwhile, most important first.
    pub holders: Vec<Holder>,
    /// Part of the waiting time that falls into holds of known threads, in per cent.
    pub pct_explained: Option<f64>,
    /// The thread that ended most of the waiting time.
    pub top_waker: Option<u32>,
    /// Whether the waits cost anything, judged by `rule`.
    pub harmful: bool,
    /// Why it counts as harmful or idle: an id that docs/waits.md explains.
    pub rule: &'static str,
    /// Idle CPU time that has its root cause here.
    pub idle_blamed_ns: u64,
    /// Of all idle CPU time.
    pub pct_idle_blamed: f64,
}

/// Holders per row.
const HOLDERS: usize = 8;

/// One object at the end of the trace.
struct View<'a> {
    object: Object,
    thing: &'a Thing,
    kind: Kind,
    usage: Option<FutexUse>,
}

impl Analysis {
    /// The objects that threads waited for.
    pub fn waits(&self, by: WaitsBy) -> Vec<WaitsRow> {
        let mut rows = match by {
            WaitsBy::Object => self.waits_by_object(),
            WaitsBy::Kind => kinds(self.waits_by_object()),
            WaitsBy::Thread => self.waits_by_thread(),
        };
        rows.sort_by(|a, b| {
            (b.harmful, b.idle_blamed_ns, b.wait_total_ns, &a.kind, &a.object, a.tid).cmp(&(
                a.harmful,
                a.idle_blamed_ns,
                a.wait_total_ns,
                &b.kind,
                &b.object,
                b.tid,
            ))
        });
        rows
    }

    /// Idle CPU time.
    pub(crate) fn idle_ns(&self) -> Nanos {
        self.cpu_list.iter().filter_map(|&c| self.engine.cpus.get(c)).map(|c| c.idle).sum()
    }

    /// Idle time by the object its blame ends at.
    fn blamed(&self) -> BTreeMap<Object, WaitSum> {
        let mut sums: BTreeMap<Object, WaitSum> = BTreeMap::new();
        for (key, sum) in &self.engine.blame.waits {
            sums.entry(self.engine.waits.find(key.object)).or_default().add(sum);
        }
        sums
    }

    fn views(&self) -> Vec<View<'_>> {
        let waits = &self.engine.waits;
        (0..waits.things.len() as u32)
            .map(Object)
            .filter(|&o| waits.find(o) == o)
            .map(|object| {
                let thing = &waits.things[object.0 as usize];
                let mostly = |part: Nanos| part * 2 > thing.spans.total;
                let kind = match thing.kind {
                    Kind::File | Kind::Descriptor | Kind::KernelLock | Kind::Pipe
                        if mostly(thing.device_wait) =>
                    {
                        Kind::Disk
                    }
                    Kind::File | Kind::Descriptor if mostly(thing.lock_wait) => Kind::KernelLock,
                    kind => kind,
                };
                let usage = (kind == Kind::Futex).then(|| waits.usage(object));
                View { object, thing, kind, usage }
            })
            .collect()
    }

    /// Pairs of a map of the machine, by object.
    fn by_object<T: Copy + Default>(
        &self,
        map: &rustc_hash::FxHashMap<(Object, Slot), T>,
        add: fn(&mut T, T),
    ) -> BTreeMap<Object, BTreeMap<Slot, T>> {
        let mut out: BTreeMap<Object, BTreeMap<Slot, T>> = BTreeMap::new();
        for (&(object, slot), &sum) in map {
            add(
                out.entry(self.engine.waits.find(object)).or_default().entry(slot).or_default(),
                sum,
            );
        }
        out
    }

    fn waits_by_object(&self) -> Vec<WaitsRow> {
        let machine = &self.engine.waits;
        let blamed = self.blamed();
        let waiters = self.by_object(&machine.waiters, add_pair);
        let wakes = self.by_object(&machine.wakes, add_pair);
        let holds = self.by_object(&machine.holds, add_hold);
        let idle = self.idle_ns();
        let server = self.server().map(|s| s.slot);
        let none = BTreeMap::new();
        let no_holds = BTreeMap::new();
        let mut rows = Vec::new();
        for v in self.views() {
            let share = blamed.get(&v.object).map_or(0, WaitSum::share_ns);
            let who = waiters.get(&v.object).unwrap_or(&none);
            if v.thing.spans.count == 0 && share == 0 {
                continue;
            }
            if !who.is_empty() && !who.keys().any(|&s| self.wanted(self.thread(s))) {
                continue;
            }
            let woken_by = wakes.get(&v.object).unwrap_or(&none);
            let top = woken_by
                .iter()
                .max_by_key(|(s, p)| (p.wait_ns, std::cmp::Reverse(**s)))
                .map(|(&s, p)| (s, p.wait_ns));
            let (harmful, rule) = self.rule(&v, top, server);
            // Nobody holds a disk, a timer or the outside world.
            let held = harmful && !matches!(v.kind, Kind::Disk | Kind::PageFault);
            let (holders, pct_explained) = if !held {
                (Vec::new(), None)
            } else {
                self.holders(&v, rule, woken_by, holds.get(&v.object).unwrap_or(&no_holds))
            };
            let (pid, comm) = self.owner(who, v.thing.first);
            let spans = &v.thing.spans;
            let row = WaitsRow {
                kind: v.kind.name(),
                usage: v.usage.map(FutexUse::name),
                object: self.label(&v),
                objects: None,
                pid,
                tid: None,
                comm,
                waits: spans.count,
                waiters: who.len() as u64,
                wait_total_ns: spans.total,
                wait_avg_ns: spans.total.checked_div(spans.count).unwrap_or(0),
                wait_p99_ns: spans.p99(),
                wait_max_ns: Some(spans.max),
                elapsed_ns: (v.thing.elapsed > 0).then_some(v.thing.elapsed),
                wake_delay_ns: v.thing.wake_delay,
                retries: v.thing.retries,
                holders,
                pct_explained,
                top_waker: top.map(|(s, _)| self.thread(s).tid.0),
                harmful,
                rule,
                idle_blamed_ns: share,
                pct_idle_blamed: percent(share, idle),
            };
            rows.push((v.object, row));
        }
        self.join_condvars(rows)
    }

    /// A condition variable of glibc sleeps on two words in turn, four bytes apart: one row.
    fn join_condvars(&self, rows: Vec<(Object, WaitsRow)>) -> Vec<WaitsRow> {
        let machine = &self.engine.waits;
        let mut out: Vec<WaitsRow> = Vec::new();
        let mut words: BTreeMap<(u32, u64), usize> = BTreeMap::new();
        for (object, row) in rows {
            let word = match machine.keys[object.0 as usize] {
                Key::Futex { space, addr, .. } if row.usage == Some("condvar") => {
                    let inner =
                        machine.things[object.0 as usize].futex.usage() == FutexUse::Barrier;
                    Some((space, machine.condvar_of(object).filter(|_| inner).unwrap_or(addr & !7)))
                }
                _ => None,
            };
            if let Some(&at) = word.and_then(|w| words.get(&w)) {
                absorb(&mut out[at], row);
                continue;
            }
            if let Some(w) = word {
                words.insert(w, out.len());
            }
            out.push(row);
        }
        out
    }

    fn holders(
        &self,
        v: &View<'_>,
        rule: &str,
        woken_by: &BTreeMap<Slot, PairSum>,
        held_by: &BTreeMap<Slot, HoldSum>,
    ) -> (Vec<Holder>, Option<f64>) {
        let total = v.thing.spans.total;
        let by_holds = v.thing.is_lock() && !held_by.is_empty() && rule != "one-server";
        // hold, explained, inferred
        let mut list: Vec<(Slot, Nanos, Nanos, bool)> = if by_holds {
            held_by
                .iter()
                .map(|(&s, h)| (s, h.hold_ns, h.explained_ns, h.inferred_ns * 2 > h.hold_ns))
                .collect()
        } else {
            woken_by.iter().map(|(&s, p)| (s, p.span_ns, p.wait_ns, true)).collect()
        };
        list.sort_by_key(|&(s, hold, explained, _)| (std::cmp::Reverse((explained, hold)), s));
        let explained: Nanos = list.iter().map(|h| h.2).sum();
        let holders = list
            .iter()
            .take(HOLDERS)
            .filter(|h| h.1 > 0 || h.2 > 0)
            .map(|&(slot, hold_ns, explained, inferred)| {
                let t = self.thread(slot);
                Holder {
                    tid: t.tid.0,
                    comm: self.comm(t),
                    hold_ns,
                    pct_explained: percent(explained.min(total), total),
                    inferred,
                }
            })
            .collect();
        (holders, (total > 0).then(|| percent(explained.min(total), total)))
    }

    /// Process and name that stand for the waiting threads.
    fn owner(&self, who: &BTreeMap<Slot, PairSum>, first: Option<Slot>) -> (Option<u32>, String) {
        let pids: BTreeSet<Option<u32>> = who.keys().map(|&s| self.pid(self.thread(s))).collect();
        let longest = who
            .iter()
            .max_by_key(|(s, p)| (p.wait_ns, std::cmp::Reverse(**s)))
            .map(|(&s, _)| s)
            .or(first);
        let pid = if pids.len() == 1 { pids.into_iter().next().flatten() } else { None };
        let leader = pid
            .and_then(|p| self.engine.threads.iter().find(|(_, t)| t.tid.0 == p && t.pid.0 == p));
        let comm = match (leader, longest) {
            (Some((_, t)), _) if who.len() > 1 => self.comm(t),
            (_, Some(s)) => self.comm(self.thread(s)),
            _ => String::new(),
        };
        (pid, comm)
    }

    fn label(&self, v: &View<'_>) -> String {
        let of_process = |slot: Option<Slot>| match slot.map(|s| self.thread(s)) {
            Some(t) => format!(" of pid {}", self.pid(t).unwrap_or(t.tid.0)),
            None => String::new(),
        };
        match self.engine.waits.keys[v.object.0 as usize] {
            Key::Other => "others".to_owned(),
            Key::Futex { addr, .. } => format!("{addr:#x}"),
            Key::Semaphore(id) => format!("semid {}", id as i32),
            Key::MessageQueue(id) => format!("msqid {}", id as i32),
            Key::Descriptor { .. } => {
                format!("fd {}{}", v.thing.fd.unwrap_or(0) as i32, of_process(v.thing.first))
            }
            Key::Call { nr: u32::MAX, .. } => "no system call".to_owned(),
            Key::Call { nr, .. } => self.call_name(nr),
            Key::Fault { .. } => format!("memory{}", of_process(v.thing.first)),
            Key::KernelLock { addr: 0, nr } => format!("in {}", self.call_name(nr)),
            Key::KernelLock { addr, .. } => format!("{addr:#x}"),
        }
    }

    /// Does waiting for it cost anything, and why.
    fn rule(
        &self,
        v: &View<'_>,
        top: Option<(Slot, Nanos)>,
        server: Option<Slot>,
    ) -> (bool, &'static str) {
        let spans = &v.thing.spans;
        let idle = v.thing.idle_wait * 4 > spans.total * 3;
        match v.kind {
            Kind::Timer => (false, "idle-timer"),
            Kind::Child => (false, "idle-child"),
            Kind::Signal => (false, "idle-signal"),
            Kind::Poll | Kind::Epoll => (false, "idle-poll"),
            Kind::Accept => (false, "idle-accept"),
            Kind::Timerfd => (false, "idle-timer"),
            Kind::Disk => (true, "io-device"),
            Kind::PageFault if v.thing.lock_wait * 2 > spans.total => (true, "kernel-lock"),
            Kind::PageFault => (true, "io-paging"),
            Kind::KernelLock => (true, "kernel-lock"),
            _ if v.usage == Some(FutexUse::Join) => (false, "idle-join"),
            _ if idle && v.thing.is_lock() => (false, "idle-timeout"),
            _ if idle => (false, "idle-no-work"),
            _ if v.usage == Some(FutexUse::Barrier) => (true, "barrier-imbalance"),
            _ if server.is_some() && top.map(|t| t.0) == server => (true, "one-server"),
            _ if v.thing.is_lock() => (true, "lock-turns"),
            // Nearly all the wakers' own time went into waiting for input: they had nothing to
            // give.
            _ if self.follows_idle(v) => (false, "idle-no-work"),
            Kind::Other => (false, "idle-unknown"),
            _ => (true, "handover-turns"),
        }
    }

    /// Most of the blame for its waits ended in waits that are idle.
    fn follows_idle(&self, v: &View<'_>) -> bool {
        self.engine.waits.things[v.object.0 as usize].followed_idle * 4 > v.thing.spans.total * 3
    }

    fn waits_by_thread(&self) -> Vec<WaitsRow> {
        let idle = self.idle_ns();
        let server = self.server().map(|s| s.slot);
        let views: BTreeMap<Object, View<'_>> =
            self.views().into_iter().map(|v| (v.object, v)).collect();
        #[derive(Default)]
        struct Sum {
            sum: WaitSum,
            objects: BTreeMap<Object, Nanos>,
            wakers: BTreeMap<Slot, Nanos>,
        }
        let mut rows: BTreeMap<(Slot, Kind, Option<FutexUse>), Sum> = BTreeMap::new();
        for (key, sum) in &self.engine.waits.edges {
            let object = self.engine.waits.find(key.object);
            let Some(v) = views.get(&object) else { continue };
            if !self.wanted(self.thread(key.waiter)) {
                continue;
            }
            let row = rows.entry((key.waiter, v.kind, v.usage)).or_default();
            row.sum.add(sum);
            *row.objects.entry(object).or_default() += sum.wait_ns;
            if let Some(w) = key.waker {
                *row.wakers.entry(w).or_default() += sum.wait_ns;
            }
        }
        rows.into_iter()
            .filter_map(|((slot, kind, usage), r)| {
                let t = self.thread(slot);
                let most = r
                    .objects
                    .iter()
                    .max_by_key(|(o, ns)| (**ns, std::cmp::Reverse(**o)))
                    .map(|(&o, _)| o)?;
                let v = views.get(&most)?;
                let top = r
                    .wakers
                    .iter()
                    .max_by_key(|(s, ns)| (**ns, std::cmp::Reverse(**s)))
                    .map(|(&s, &ns)| (s, ns));
                let (harmful, rule) = self.rule(v, top, server);
                Some(WaitsRow {
                    kind: kind.name(),
                    usage: usage.map(FutexUse::name),
                    object: self.label(v),
                    objects: Some(r.objects.len() as u64),
                    pid: self.pid(t),
                    tid: Some(t.tid.0),
                    comm: self.comm(t),
                    waits: r.sum.waits,
                    waiters: 1,
                    wait_total_ns: r.sum.wait_ns,
                    wait_avg_ns: r.sum.wait_ns.checked_div(r.sum.waits).unwrap_or(0),
                    top_waker: top.map(|(s, _)| self.thread(s).tid.0),
                    harmful,
                    rule,
                    idle_blamed_ns: r.sum.share_ns(),
                    pct_idle_blamed: percent(r.sum.share_ns(), idle),
                    ..WaitsRow::default()
                })
            })
            .collect()
    }

    /// (kind and label, usage) of an object, for graphs and paths.
    pub(crate) fn object_names(
        &self,
    ) -> BTreeMap<Object, (&'static str, Option<&'static str>, String)> {
        self.views()
            .iter()
            .map(|v| (v.object, (v.kind.name(), v.usage.map(FutexUse::name), self.label(v))))
            .collect()
    }

    /// Threads at a barrier wait for the slowest of them, which is imbalance.
    pub(crate) fn is_barrier(&self, object: Object) -> bool {
        let waits = &self.engine.waits;
        let object = waits.find(object);
        waits.things[object.0 as usize].kind == Kind::Futex
            && waits.usage(object) == FutexUse::Barrier
    }

    /// Objects between two threads, who wait for each other and for nobody else, by their final
    /// numbers.
    pub(crate) fn between_two(&self) -> BTreeSet<Object> {
        let waits = &self.engine.waits;
        let mut of: BTreeMap<Object, BTreeSet<Slot>> = BTreeMap::new();
        for &(object, slot) in waits.waiters.keys().chain(waits.wakes.keys()) {
            of.entry(waits.find(object)).or_default().insert(slot);
        }
        of.into_iter().filter(|o| o.1.len() <= 2).map(|o| o.0).collect()
    }

    /// Per thread: (time holding locks, waiting for them, execution time); `None` where the trace
    /// shows no lock or synchronisation call of it.
    pub(crate) fn lock_times(&self) -> BTreeMap<Slot, (Nanos, Nanos, Nanos)> {
        let machine = &self.engine.waits;
        let mut held: BTreeMap<Slot, Nanos> = BTreeMap::new();
        for (&(object, slot), h) in &machine.holds {
            if machine.things[machine.find(object).0 as usize].is_lock() {
                *held.entry(slot).or_default() += h.hold_ns;
            }
        }
        self.engine
            .threads
            .iter()
            .filter_map(|(slot, t)| {
                let (idle, waited) = machine.thread_waits(slot);
                let alive = t.running_ns + t.woken_ns + t.preempted_ns + t.blocked_ns;
                let execution = alive.saturating_sub(idle);
                let in_locks = match held.get(&slot) {
                    Some(&ns) => ns.min(execution),
                    None if waited > 0 => 0,
                    None => Some(self.in_services(t)).filter(|&ns| ns > 0)?,
                };
                Some((slot, (in_locks, waited, execution)))
            })
            .collect()
    }

    /// CPU time of a thread in calls that synchronise.
    fn in_services(&self, t: &Thread) -> Nanos {
        t.calls
            .iter()
            .filter(|(nr, _)| holdup_syscalls::wait_kind(&self.call_name(*nr)).takes_turns())
            .map(|(_, s)| s.running)
            .sum()
    }
}

fn add_pair(a: &mut PairSum, b: PairSum) {
    a.waits += b.waits;
    a.wait_ns += b.wait_ns;
    a.span_ns += b.span_ns;
}

fn add_hold(a: &mut HoldSum, b: HoldSum) {
    a.holds += b.holds;
    a.hold_ns += b.hold_ns;
    a.inferred_ns += b.inferred_ns;
    a.explained_ns += b.explained_ns;
}

/// Put `b` into `a`: of the two, the object and judgement of the one waited for longer stay.
fn absorb(a: &mut WaitsRow, mut b: WaitsRow) {
    if b.wait_total_ns > a.wait_total_ns {
        std::mem::swap(a, &mut b);
    }
    let total = a.wait_total_ns + b.wait_total_ns;
    let weigh = |x: f64, own: u64| if total == 0 { 0.0 } else { x * own as f64 / total as f64 };
    let round = |x: f64| (x * 1000.0).round() / 1000.0;
    for h in a.holders.iter_mut() {
        h.pct_explained = weigh(h.pct_explained, a.wait_total_ns);
    }
    for h in &b.holders {
        let part = weigh(h.pct_explained, b.wait_total_ns);
        match a.holders.iter_mut().find(|x| x.tid == h.tid) {
            Some(x) => {
                x.hold_ns += h.hold_ns;
                x.pct_explained += part;
            }
            None => a.holders.push(Holder { pct_explained: part, ..h.clone() }),
        }
    }
    for h in a.holders.iter_mut() {
        h.pct_explained = round(h.pct_explained);
    }
    a.holders.sort_by(|x, y| y.pct_explained.total_cmp(&x.pct_explained).then(x.tid.cmp(&y.tid)));
    a.holders.truncate(HOLDERS);
    a.pct_explained = Some(round(
        weigh(a.pct_explained.unwrap_or(0.0), a.wait_total_ns)
            + weigh(b.pct_explained.unwrap_or(0.0), b.wait_total_ns),
    ));
    a.waits += b.waits;
    a.waiters = a.waiters.max(b.waiters);
    a.wait_total_ns = total;
    a.wait_avg_ns = total.checked_div(a.waits).unwrap_or(0);
    a.wait_p99_ns = a.wait_p99_ns.max(b.wait_p99_ns);
    a.wait_max_ns = a.wait_max_ns.max(b.wait_max_ns);
    a.elapsed_ns = if a.elapsed_ns.is_none() {
        b.elapsed_ns
    } else {
        a.elapsed_ns.map(|e| e + b.elapsed_ns.unwrap_or(0))
    };
    a.wake_delay_ns += b.wake_delay_ns;
    a.retries += b.retries;
    a.harmful |= b.harmful;
    a.idle_blamed_ns += b.idle_blamed_ns;
    a.pct_idle_blamed = round(a.pct_idle_blamed + b.pct_idle_blamed);
}

/// One row per kind, use and judgement.
fn kinds(rows: Vec<WaitsRow>) -> Vec<WaitsRow> {
    let mut out: BTreeMap<(&'static str, Option<&'static str>, &'static str), WaitsRow> =
        BTreeMap::new();
    for row in rows {
        let key = (row.kind, row.usage, row.rule);
        match out.get_mut(&key) {
            Some(sum) => {
                let (n, waiters, pid) = (
                    sum.objects.unwrap_or(1) + 1,
                    sum.waiters + row.waiters,
                    sum.pid.filter(|_| sum.pid == row.pid),
                );
                absorb(sum, row);
                (sum.objects, sum.waiters, sum.pid) = (Some(n), waiters, pid);
            }
            None => {
                out.insert(key, WaitsRow { objects: Some(1), ..row });
            }
        }
    }
    out.into_values().collect()
}
