//! How long threads run, wait for a CPU and sleep at a time: percentiles, by what they slept for.
//! And how long a unit of work takes, if the user says which event ends one.

use crate::{Attribution, JUDGE, is_recorder};
use holdup_passes::{
    Analysis, Fact, FutexUse, Histogram, Object, Slot, each_fact, each_fact_with, percent,
};
use holdup_trace::{Batch, Event, Nanos, Reader, Result, Tid};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// How threads are grouped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatencyBy {
    /// All threads of a name: a service.
    Command,
    /// All threads of a process.
    Process,
    /// Each thread alone.
    Thread,
}

/// One activity of threads, or one thing that they wait for, and how long each occurrence takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LatencyRow {
    /// Name of the threads.
    pub comm: String,
    /// Process of the threads; `null` if it is unknown, or if there are several processes.
    pub pid: Option<u32>,
    /// Thread of the row; `null` if the row combines several threads.
    pub tid: Option<u32>,
    /// Number of threads in the row.
    pub threads: u64,
    /// What was measured: `running`, `ready` (waiting for a CPU), the kind of object that the
    /// threads slept for, or `unit` (the time from one unit of work to the next unit of the same
    /// thread).
    pub kind: &'static str,
    /// What a futex is used for; `null` for other objects.
    pub usage: Option<&'static str>,
    /// The object that they slept for longest, or the event that ends a unit of work; `null` if
    /// they did not sleep.
    pub object: Option<String>,
    /// Number of different objects that the threads slept for.
    pub objects: Option<u64>,
    /// Number of occurrences.
    pub count: u64,
    /// Total time of all occurrences.
    pub total_ns: u64,
    /// Part of the total time of these threads, in per cent.
    pub pct: f64,
    /// Median: half of the occurrences are no longer, within 1/16.
    pub p50_ns: Option<u64>,
    /// 90th percentile: 90 % of the occurrences are no longer, within 1/16.
    pub p90_ns: Option<u64>,
    /// 99th percentile: 99 % of the occurrences are no longer, within 1/16.
    pub p99_ns: Option<u64>,
    /// Length of the longest occurrence.
    pub max_ns: u64,
    /// `total_ns` per unit of work of these threads; `null` if they did no unit of work, or if no
    /// unit was defined.
    pub per_unit_ns: Option<u64>,
}

/// What ends a unit of work.
pub struct Unit<'a> {
    /// Its name.
    pub name: String,
    /// Whether an event ends a unit.
    pub ends: &'a dyn Fn(&Event) -> bool,
}

/// The kind of the rows of units.
const UNIT: What = ("unit", None);

/// The group: a name and, if grouped so finely, a process and a thread.
type Who = (String, Option<u32>, Option<u32>);
/// The kind of time, and what a futex is used for.
type What = (&'static str, Option<&'static str>);

/// Times of one kind.
#[derive(Default)]
struct Times {
    spans: Histogram,
    count: u64,
    total: Nanos,
    max: Nanos,
    of: BTreeMap<Object, Nanos>,
}

impl Times {
    fn add(&mut self, ns: Nanos, object: Option<Object>) {
        self.spans.add(ns);
        self.count += 1;
        self.total += ns;
        self.max = self.max.max(ns);
        if let Some(object) = object {
            *self.of.entry(object).or_default() += ns;
        }
    }

    /// Capped at the longest time.
    fn percentile(&self, per_cent: u64) -> Option<Nanos> {
        self.spans.percentile(per_cent).map(|ns| ns.min(self.max))
    }
}

/// The times of everything that the threads of `whole` did, in one more reading; the largest total
/// first.
///
/// # Errors
/// Whatever makes the rest of the trace unreadable.
pub fn latencies(
    reader: &dyn Reader,
    whole: &Analysis,
    by: LatencyBy,
    unit: Option<&Unit<'_>>,
) -> Result<Vec<LatencyRow>> {
    let groups = groups(whole, by);
    let objects = Attribution::from(whole).objects;
    let what = |object: Object| -> What {
        match objects.get(&object) {
            Some(o) => (whole.kind_name(object, o.kind), o.stats.usage.map(FutexUse::name)),
            None => ("other", None),
        }
    };
    let mut times: BTreeMap<(usize, What), Times> = BTreeMap::new();
    let mut add = |slot: Slot, what: What, ns: Nanos, object: Option<Object>| {
        if let Some(&group) = groups.of.get(&slot) {
            times.entry((group, what)).or_default().add(ns, object);
        }
    };
    let mut take = |fact: &Fact| {
        match fact {
            Fact::Run(run) => {
                add(run.slot, ("running", None), run.end - run.start, None);
                if let Some(delay) = run.delay {
                    add(run.slot, ("ready", None), delay, None);
                }
            }
            Fact::Wait(slept) => {
                let object = whole.final_object(slept.object);
                add(slept.slot, what(object), slept.end - slept.start, Some(object));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let Some(unit) = unit else {
        each_fact(reader, whole, &JUDGE, &mut take)?;
        return Ok(groups.rows(whole, times, None));
    };
    let mut units = Units::new(whole, &groups);
    let mut see = |events: &[Event], _: &Batch| {
        events.iter().filter(|e| (unit.ends)(e)).for_each(|e| units.ends(e));
    };
    each_fact_with(reader, whole, &JUDGE, &mut see, &mut take)?;
    for (group, of) in units.times {
        times.insert((group, UNIT), of);
    }
    Ok(groups.rows(whole, times, Some(&unit.name)))
}

/// Times from one unit of work to the next, thread by thread.
struct Units {
    from: Nanos,
    of: BTreeMap<Tid, usize>,
    last: BTreeMap<Tid, Nanos>,
    times: BTreeMap<usize, Times>,
}

impl Units {
    fn new(whole: &Analysis, groups: &Groups) -> Units {
        // If several threads had a number one after the other, the one that ran longest.
        let mut longest: BTreeMap<Tid, (Nanos, usize)> = BTreeMap::new();
        for (slot, t) in whole.threads() {
            let Some(&group) = groups.of.get(&slot) else { continue };
            let known = longest.entry(t.tid).or_insert((t.running_ns, group));
            *known = (*known).max((t.running_ns, group));
        }
        let of = longest.into_iter().map(|(tid, (_, group))| (tid, group)).collect();
        Units { from: whole.start, of, last: BTreeMap::new(), times: BTreeMap::new() }
    }

    fn ends(&mut self, event: &Event) {
        let Some(&group) = self.of.get(&event.tid) else { return };
        if event.ts < self.from {
            return;
        }
        if let Some(before) = self.last.insert(event.tid, event.ts) {
            self.times.entry(group).or_default().add(event.ts.saturating_sub(before), None);
        }
    }
}

/// Threads by the group they belong to.
struct Groups {
    who: Vec<Who>,
    threads: Vec<u64>,
    of: BTreeMap<Slot, usize>,
}

/// The threads that the tables show, without recorders and kernel threads.
fn groups(whole: &Analysis, by: LatencyBy) -> Groups {
    let mut groups = Groups { who: Vec::new(), threads: Vec::new(), of: BTreeMap::new() };
    let mut known: BTreeMap<Who, usize> = BTreeMap::new();
    // A process has the name of its first thread.
    let mut leaders: BTreeMap<u32, String> = BTreeMap::new();
    for (_, t) in whole.all_threads() {
        if let Some(pid) = whole.pid(t).filter(|&pid| pid == t.tid.0) {
            leaders.insert(pid, whole.comm(t));
        }
    }
    for (slot, t) in whole.threads().filter(|(_, t)| !t.is_kthread()) {
        let (comm, pid) = (whole.comm(t), whole.pid(t));
        if is_recorder(&comm) {
            continue;
        }
        let who = match by {
            LatencyBy::Command => (comm, None, None),
            LatencyBy::Process => {
                let name = pid.and_then(|pid| leaders.get(&pid).cloned());
                (name.unwrap_or(comm), pid, None)
            }
            LatencyBy::Thread => (comm, pid, Some(t.tid.0)),
        };
        let group = *known.entry(who.clone()).or_insert_with(|| {
            groups.who.push(who);
            groups.threads.push(0);
            groups.who.len() - 1
        });
        groups.threads[group] += 1;
        groups.of.insert(slot, group);
    }
    groups
}

impl Groups {
    fn rows(
        &self,
        whole: &Analysis,
        times: BTreeMap<(usize, What), Times>,
        unit: Option<&str>,
    ) -> Vec<LatencyRow> {
        // The units of the others.
        let mut all: BTreeMap<usize, Nanos> = BTreeMap::new();
        for ((group, _), t) in times.iter().filter(|((_, what), _)| *what != UNIT) {
            *all.entry(*group).or_default() += t.total;
        }
        let units: BTreeMap<usize, u64> = times
            .iter()
            .filter(|((_, what), _)| *what == UNIT)
            .map(|((group, _), t)| (*group, t.count))
            .collect();
        let row = |((group, (kind, usage)), t): ((usize, What), Times)| {
            let (comm, pid, tid) = self.who[group].clone();
            let most = t.of.iter().max_by_key(|(object, ns)| (**ns, Reverse(**object)));
            LatencyRow {
                comm,
                pid,
                tid,
                threads: self.threads[group],
                kind,
                usage,
                object: match (kind, usage) == UNIT {
                    true => unit.map(str::to_owned),
                    false => most.map(|(&object, _)| whole.object_name(object)),
                },
                objects: most.map(|_| t.of.len() as u64),
                count: t.count,
                total_ns: t.total,
                pct: percent(t.total, all.get(&group).copied().unwrap_or(0)),
                p50_ns: t.percentile(50),
                p90_ns: t.percentile(90),
                p99_ns: t.percentile(99),
                max_ns: t.max,
                per_unit_ns: units.get(&group).and_then(|&n| t.total.checked_div(n)),
            }
        };
        let mut rows: Vec<LatencyRow> = times.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let name = |r: &LatencyRow| (r.comm.clone(), r.pid, r.tid, r.kind, r.usage);
            b.total_ns.cmp(&a.total_ns).then_with(|| name(a).cmp(&name(b)))
        });
        rows
    }
}
