//! The table of waits: by object, kind or thread.

use crate::leaf::Leaf;
use crate::object::{JudgedObject, WaitRule, top_waker};
use crate::per_object::PerObject;
use crate::{Attribution, ObjectThreads};
use holdup_passes::{
    FutexUse, HoldSum, HolderTime, Object, ObjectKind, PairSum, Slot, WaitSum, add_holder_times,
    percent,
};
use holdup_trace::Nanos;
use serde::Serialize;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

/// What the table of waits is grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitsBy {
    /// One row per object.
    Object,
    /// One row per kind of object.
    Kind,
    /// One row per waiting thread and kind of object; needs [`holdup_passes::Detail::Edges`].
    Thread,
    /// One row per control group of waiting threads and kind of object; needs these edges, too.
    Cgroup,
}

/// A thread that had an object while other threads waited for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Holder {
    /// Thread.
    pub tid: u32,
    /// Name of the thread.
    pub comm: String,
    /// How long the thread had the object while other threads waited for it.
    pub hold_ns: u64,
    /// Part of the waiting time of the other threads that falls into the hold time, in per cent.
    pub pct_explained: f64,
    /// Whether more than half of `hold_ns` is inferred from wake-ups, not known from calls that
    /// took the object.
    pub inferred: bool,
}

/// Waits for one object or one kind of object, or waits of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WaitsRow {
    /// Name of the control group of the waiting threads: service, container or pod; `null` if the
    /// trace does not contain it. Present only with `--by thread` or `--by cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Kind of the object: `futex`, `semop`, `pipe`, `disk` …
    pub kind: &'static str,
    /// What a futex is used for: `mutex`, `condvar`, `barrier` …
    pub usage: Option<&'static str>,
    /// Address, id or descriptor of the object. If the row combines several objects: the object
    /// that threads waited for longest.
    pub object: String,
    /// Number of objects in the row; absent if each row is one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// Process of the waiting threads; `null` if there are several processes, or if it is not
    /// known.
    pub pid: Option<u32>,
    /// Thread that waited; present only with `--by thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Name of the process of the waiting threads, or of the thread that waited longest.
    pub comm: String,
    /// Number of times that a thread went to sleep for the object.
    pub waits: u64,
    /// Number of different threads that waited for the object.
    pub waiters: u64,
    /// Time asleep for the object, summed over the threads.
    pub wait_total_ns: u64,
    /// Mean time asleep in one wait.
    pub wait_avg_ns: u64,
    /// 99th percentile of the time asleep in one wait, within 1/16.
    pub wait_p99_ns: Option<u64>,
    /// Longest time asleep in one wait.
    pub wait_max_ns: Option<u64>,
    /// Elapsed time of the calls in which threads slept, from entry to return, as the program
    /// itself would measure it. `null` for calls that are not followed to their return (`read`,
    /// `poll` …).
    pub elapsed_ns: Option<u64>,
    /// Time from the wake-up until the woken thread ran, counted where its CPU was idle; not part
    /// of `wait_total_ns`.
    pub wake_delay_ns: u64,
    /// Number of calls that returned at once because the object had changed: the thread tries again
    /// without sleeping.
    pub retries: u64,
    /// Threads that held the object while other threads waited for it, the most important first.
    pub holders: Vec<Holder>,
    /// What the holders did while other threads waited for the object, longest first. The times add
    /// up to the time for which the object was held while threads waited for it. Empty if the
    /// holders are unknown.
    pub holders_did: Vec<HolderTime>,
    /// Part of the waiting time during which a known thread held the object, in per cent.
    pub pct_explained: Option<f64>,
    /// Thread that ended most of the waiting time.
    pub top_waker: Option<u32>,
    /// Whether the waits cost the work time, as `rule` judges.
    pub harmful: bool,
    /// Id of the rule that classified the waits as harmful or idle: see docs/waits.md.
    pub rule: &'static str,
    /// Idle CPU time that the waits for this object caused.
    pub idle_blamed_ns: u64,
    /// Part of all idle CPU time that the waits for this object caused, in per cent.
    pub pct_idle_blamed: f64,
    /// The function of the program in which threads sleep longest for the object, with its source
    /// line or file. `null` without call chains.
    pub code: Option<String>,
}

/// Holders per row.
pub(crate) const HOLDERS: usize = 8;

impl Attribution<'_> {
    /// The objects that threads waited for.
    pub fn waits(&self, by: WaitsBy) -> Vec<WaitsRow> {
        let mut rows = match by {
            WaitsBy::Object => self.object_rows().into_iter().map(|o| o.row).collect(),
            WaitsBy::Kind => {
                let mut rows: Vec<_> = self.object_rows().into_iter().map(|o| o.row).collect();
                // A kind is represented by its costliest object, whichever was met first.
                rows.sort_by(by_cost);
                kinds(rows)
            }
            WaitsBy::Thread | WaitsBy::Cgroup => self.waits_by_people(by),
        };
        rows.sort_by(by_cost);
        rows
    }

    /// Idle time by the object it is attributed to, as in the ledger: time that no wait could have
    /// ended earlier belongs to none.
    fn blamed_sums(&self) -> PerObject<WaitSum> {
        let mut sums = PerObject::<WaitSum>::new(self.analysis);
        for w in self.waits.iter().filter(|w| w.leaf != Leaf::NoWork) {
            sums[w.row.object].add(&w.row.sum);
        }
        sums
    }

    /// One row per object, in no order.
    pub(crate) fn object_rows(&self) -> Vec<ObjectRow> {
        let a = self.analysis;
        let (blamed, idle) = (self.blamed_sums(), a.idle_ns());
        let ObjectThreads { waited_by, ended_by, held_by } = &self.by_object;
        let leaders = self.leaders();
        let did = a.holders_did();
        let mut rows = Vec::with_capacity(self.objects.len());
        for o in self.objects.values() {
            let stats = &o.stats;
            let share = blamed[stats.object].share_ns();
            let who = waited_by.of(stats.object);
            if stats.waits == 0 && share == 0 {
                continue;
            }
            if !who.is_empty() && !who.iter().any(|of| a.wanted(a.thread(of.0))) {
                continue;
            }
            // A disk, a timer or the outside world has no holder.
            let held = o.rule.is_harmful()
                && !matches!(o.kind, ObjectKind::Disk | ObjectKind::PageFault)
                && o.rule != WaitRule::IoDevice;
            let by_holds = held && o.is_held();
            let did = did.get(&stats.object).filter(|_| by_holds);
            let holders_did =
                did.map_or_else(Vec::new, |did| a.holder_times(did.values().flatten().copied()));
            let (holders, holders_in_all, pct_explained) = if !held {
                (Vec::new(), 0, None)
            } else {
                self.holders(o, ended_by.of(stats.object), held_by.of(stats.object))
            };
            let (pid, comm) = self.owner(who, stats.first, &leaders);
            let row = WaitsRow {
                cgroup: None,
                kind: a.kind_name(stats.object, o.kind),
                usage: stats.usage.map(FutexUse::name),
                object: a.object_name(stats.object),
                objects: None,
                pid,
                tid: None,
                comm,
                waits: stats.waits,
                waiters: who.len() as u64,
                wait_total_ns: stats.wait_ns,
                wait_avg_ns: stats.wait_ns.checked_div(stats.waits).unwrap_or(0),
                wait_p99_ns: stats.p99_ns,
                wait_max_ns: Some(stats.max_ns),
                elapsed_ns: (stats.elapsed_ns > 0).then_some(stats.elapsed_ns),
                wake_delay_ns: stats.wake_delay_ns,
                retries: stats.retries,
                holders,
                holders_did,
                pct_explained,
                top_waker: o.top_waker.map(|(s, _)| a.thread(s).tid.0),
                harmful: o.rule.is_harmful(),
                rule: o.rule.id(),
                idle_blamed_ns: share,
                pct_idle_blamed: percent(share, idle),
                code: None,
            };
            rows.push((o, ObjectRow { objects: vec![stats.object], row, holders_in_all }));
        }
        join_condvars(rows)
    }

    fn holders(
        &self,
        o: &JudgedObject,
        woken_by: &[(Slot, PairSum)],
        held_by: &[(Slot, HoldSum)],
    ) -> (Vec<Holder>, u64, Option<f64>) {
        let total = o.stats.wait_ns;
        let by_holds = o.is_held() && !held_by.is_empty();
        // Hold time, explained time, inferred.
        let mut list: Vec<(Slot, Nanos, Nanos, bool)> = if by_holds {
            held_by
                .iter()
                .map(|&(s, h)| (s, h.hold_ns, h.explained_ns, h.inferred_ns * 2 > h.hold_ns))
                .collect()
        } else {
            woken_by.iter().map(|&(s, p)| (s, p.span_ns, p.wait_ns, true)).collect()
        };
        list.retain(|h| h.1 > 0 || h.2 > 0);
        list.sort_by_key(|&(s, hold, explained, _)| (Reverse((explained, hold)), s));
        let explained: Nanos = list.iter().map(|h| h.2).sum();
        let holders = list
            .iter()
            .take(HOLDERS)
            .map(|&(slot, hold_ns, explained, inferred)| {
                let t = self.analysis.thread(slot);
                Holder {
                    tid: t.tid.0,
                    comm: self.analysis.comm(t),
                    hold_ns,
                    pct_explained: percent(explained.min(total), total),
                    inferred,
                }
            })
            .collect();
        let pct_explained = (total > 0).then(|| percent(explained.min(total), total));
        (holders, list.len() as u64, pct_explained)
    }

    /// The first thread of each process; if an id was reused, of the first process.
    fn leaders(&self) -> BTreeMap<u32, Slot> {
        let mut leaders = BTreeMap::new();
        for (slot, t) in self.analysis.all_threads().filter(|(_, t)| t.tid.0 == t.pid.0) {
            leaders.entry(t.tid.0).or_insert(slot);
        }
        leaders
    }

    /// Process and name that represent the waiting threads.
    fn owner(
        &self,
        who: &[(Slot, PairSum)],
        first: Option<Slot>,
        leaders: &BTreeMap<u32, Slot>,
    ) -> (Option<u32>, String) {
        let a = self.analysis;
        // Without any waiting time, the first waiter represents its process alone.
        let met = first.filter(|_| who.is_empty());
        let mut pids = met.into_iter().chain(who.iter().map(|of| of.0)).map(|s| a.pid(a.thread(s)));
        let longest = top_waker(who.iter().map(|&(s, p)| (s, p.wait_ns))).map(|of| of.0).or(first);
        let pid = pids.next().flatten().filter(|&pid| pids.all(|other| other == Some(pid)));
        let leader = pid.and_then(|p| leaders.get(&p));
        let comm = match (leader, longest) {
            (Some(&leader), _) if who.len() != 1 => a.comm(a.thread(leader)),
            (_, Some(s)) => a.comm(a.thread(s)),
            _ => String::new(),
        };
        (pid, comm)
    }

    /// By thread, or by control group.
    fn waits_by_people(&self, by: WaitsBy) -> Vec<WaitsRow> {
        let a = self.analysis;
        let idle = a.idle_ns();
        // An object's cost is divided among its waiters in proportion to their own shares.
        let blamed = self.blamed_sums();
        let mut shares: BTreeMap<Object, Nanos> = BTreeMap::new();
        for (key, sum) in a.edges() {
            *shares.entry(a.final_object(key.object)).or_default() += sum.share_ns();
        }
        #[derive(Default)]
        struct Sum {
            sum: WaitSum,
            idle: Nanos,
            threads: BTreeSet<Slot>,
            objects: BTreeMap<Object, Nanos>,
            wakers: BTreeMap<Slot, Nanos>,
        }
        /// The waiter of a row: a thread, or the control group with this path.
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        enum Whose {
            Thread(Slot),
            Group(String),
        }
        let whose = |slot: Slot| match by {
            WaitsBy::Cgroup => Whose::Group(a.path_of(a.group(a.thread(slot))).to_owned()),
            WaitsBy::Object | WaitsBy::Kind | WaitsBy::Thread => Whose::Thread(slot),
        };
        let mut rows: BTreeMap<(Whose, ObjectKind, Option<FutexUse>), Sum> = BTreeMap::new();
        for (key, sum) in a.edges() {
            let object = a.final_object(key.object);
            let Some(o) = self.objects.get(&object) else { continue };
            if !a.wanted(a.thread(key.waiter)) {
                continue;
            }
            let row = rows.entry((whose(key.waiter), o.kind, o.stats.usage)).or_default();
            row.threads.insert(key.waiter);
            row.sum.add(sum);
            let laid = blamed[object].share_ns();
            let all = shares.get(&object).copied().unwrap_or(0);
            row.idle += share_of(laid, sum.share_ns(), all);
            *row.objects.entry(object).or_default() += sum.wait_ns;
            if let Some(w) = key.waker {
                *row.wakers.entry(w).or_default() += sum.wait_ns;
            }
        }
        rows.into_iter()
            .filter_map(|((whose, kind, usage), r)| {
                let t = a.thread(*r.threads.first()?);
                let alone = matches!(whose, Whose::Thread(_));
                let most =
                    r.objects.iter().max_by_key(|(o, ns)| (**ns, Reverse(**o))).map(|(&o, _)| o)?;
                let top = top_waker(r.wakers.into_iter());
                let object = self.objects.get(&most)?;
                let rule = match object.rule {
                    // By what the ledger says of all its waiters.
                    rule @ WaitRule::IdleNoWork => rule,
                    _ => object.rule_if_ended_by(top, self.server.map(|s| s.slot)),
                };
                Some(WaitsRow {
                    cgroup: Some(a.group_words(a.group(t))),
                    kind: a.kind_name(most, kind),
                    usage: usage.map(FutexUse::name),
                    object: a.object_name(most),
                    objects: Some(r.objects.len() as u64),
                    pid: a.pid(t).filter(|_| alone),
                    tid: alone.then_some(t.tid.0),
                    comm: if alone { a.comm(t) } else { String::new() },
                    waits: r.sum.waits,
                    waiters: r.threads.len() as u64,
                    wait_total_ns: r.sum.wait_ns,
                    wait_avg_ns: r.sum.wait_ns.checked_div(r.sum.waits).unwrap_or(0),
                    top_waker: top.map(|(s, _)| a.thread(s).tid.0),
                    harmful: rule.is_harmful(),
                    rule: rule.id(),
                    idle_blamed_ns: r.idle,
                    pct_idle_blamed: percent(r.idle, idle),
                    ..WaitsRow::default()
                })
            })
            .collect()
    }

    /// The name of every object in words.
    pub fn object_words(&self) -> BTreeMap<Object, String> {
        let words = |(kind, usage, name): ObjectWords| in_words(kind, usage, &name);
        self.object_names().into_iter().map(|(o, w)| (o, words(w))).collect()
    }

    /// (kind, usage, name) of every object, for graphs and paths.
    pub(crate) fn object_names(&self) -> BTreeMap<Object, ObjectWords> {
        let words = |o: &JudgedObject| {
            let name = self.analysis.object_name(o.stats.object);
            let kind = self.analysis.kind_name(o.stats.object, o.kind);
            (kind, o.stats.usage.map(FutexUse::name), name)
        };
        self.objects.iter().map(|(&object, o)| (object, words(o))).collect()
    }
}

/// `laid` in proportion `own` : `all`.
fn share_of(laid: Nanos, own: Nanos, all: Nanos) -> Nanos {
    let part = u128::from(laid) * u128::from(own) / u128::from(all.max(1));
    Nanos::try_from(part).unwrap_or(laid)
}

/// An object in words: its kind, or what a futex is used for, and its name.
pub fn in_words(kind: &str, usage: Option<&str>, name: &str) -> String {
    let kind = usage.unwrap_or(kind);
    // No word twice: a descriptor of unknown kind, and a call with the name of its kind.
    match name == kind || kind == "fd" && name.starts_with("fd ") {
        true => name.to_owned(),
        false => format!("{kind} {name}"),
    }
}

/// Harmful rows first, the costliest first.
pub(crate) fn by_cost(a: &WaitsRow, b: &WaitsRow) -> Ordering {
    let cost = |row: &WaitsRow| (row.harmful, row.idle_blamed_ns, row.wait_total_ns);
    let name = |a: &WaitsRow, b: &WaitsRow| {
        (a.kind, &a.object, a.tid, &a.cgroup).cmp(&(b.kind, &b.object, b.tid, &b.cgroup))
    };
    cost(b).cmp(&cost(a)).then_with(|| name(a, b))
}

/// (kind, usage, name) of an object.
pub(crate) type ObjectWords = (&'static str, Option<&'static str>, String);

/// The row of an object with its objects: for a condition variable, both words.
pub(crate) struct ObjectRow {
    /// The row is named after the first.
    pub(crate) objects: Vec<Object>,
    pub(crate) row: WaitsRow,
    /// The number of its holders, of which the row has the most important. For a condition
    /// variable: of the word with more holders.
    pub(crate) holders_in_all: u64,
}

/// A condition variable of glibc sleeps on two words in turn, four bytes apart: one row.
fn join_condvars(rows: Vec<(&JudgedObject, ObjectRow)>) -> Vec<ObjectRow> {
    let mut out: Vec<ObjectRow> = Vec::with_capacity(rows.len());
    let mut words: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    for (object, other) in rows {
        let word = object.stats.condvar;
        if let Some(&at) = word.and_then(|w| words.get(&w)) {
            let joined = &mut out[at];
            let first = other.row.wait_total_ns <= joined.row.wait_total_ns;
            joined.objects.insert(if first { 1 } else { 0 }, object.stats.object);
            joined.holders_in_all = joined.holders_in_all.max(other.holders_in_all);
            absorb(&mut joined.row, other.row);
            continue;
        }
        if let Some(w) = word {
            words.insert(w, out.len());
        }
        out.push(other);
    }
    out
}

/// Add `b` to `a`; object and judgement are those of the row with the longer waits.
pub(crate) fn absorb(a: &mut WaitsRow, mut b: WaitsRow) {
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
    add_holder_times(&mut a.holders_did, b.holders_did);
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
