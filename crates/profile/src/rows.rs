//! The tables.

use crate::chains::Frame;
use crate::collect::{Profile, Sampled, Sum};
use crate::names::Owners;
use holdup_passes::{Analysis, Filter, Group, percent};
use holdup_symbols::{Source, Symbols};
use holdup_trace::{Cpu, GroupName, NameId, Pid, Tid};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::sync::Arc;

/// What each row stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// A function, in one thread.
    Function,
    /// A function in one thread, including its callees; also functions that occur only in chains.
    Children,
    /// A thread.
    Thread,
    /// A process, with the name that its thread had.
    Process,
    /// A file with code, or the kernel.
    Dso,
    /// A source line.
    Line,
    /// A CPU.
    Cpu,
    /// A control group.
    Cgroup,
}

/// CPU samples of one function, thread, process, file, source line, CPU or control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ProfileRow {
    /// Name of the control group: service, container or pod; `null` if the trace does not contain
    /// it.
    pub cgroup: Option<String>,
    /// Name of the thread when it was sampled.
    pub comm: Option<String>,
    /// Id of the process; `null` if the trace does not contain it.
    pub pid: Option<u32>,
    /// Id of the thread.
    pub tid: Option<u32>,
    /// Number of the CPU; `null` if the trace does not contain it.
    pub cpu: Option<u32>,
    /// File of the code without its folders, `[kernel.kallsyms]`, or `[JIT] tid PID`; `null` if no
    /// mapping of the sampled address is known.
    pub dso: Option<String>,
    /// Name of the function; `null` if the file or its symbols are not available.
    pub symbol: Option<String>,
    /// Whether the compiler inlined the function into its caller; the samples then belong to the
    /// caller.
    pub inlined: Option<bool>,
    /// Source file and line, `null` without debug information.
    pub line: Option<String>,
    /// Number of samples; `null` in a trace without samples.
    pub samples: Option<u64>,
    /// Number of these samples that were taken in the kernel.
    pub kernel_samples: Option<u64>,
    /// Time on a CPU, from the switches of a trace without samples.
    pub run_ns: Option<u64>,
    /// Part of all samples in the selected time and on the selected CPUs, in per cent; samples of
    /// all threads count. In a trace without samples: part of CPUs x wall time.
    pub pct: f64,
    /// Number of samples with the function in their call chain, each counted once: samples in the
    /// function itself and in functions that it called.
    pub total_samples: Option<u64>,
    /// `total_samples` as a percentage of the samples that `pct` refers to.
    pub total_pct: Option<f64>,
}

/// The identity of a row.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    cgroup: Option<Arc<str>>,
    comm: Option<Arc<str>>,
    pid: Option<u32>,
    tid: Option<u32>,
    cpu: Option<u32>,
    dso: Option<Arc<str>>,
    symbol: Option<Arc<str>>,
    line: Option<String>,
}

/// Process, thread with its name, CPU, control group, and sampled address.
type Place = (Pid, Tid, Arc<str>, Cpu, NameId, Option<Frame>);

/// A number that names something; the largest stands for none.
pub(crate) fn known(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

impl Profile {
    /// Whether `filter` selects a thread of this name in this control group.
    pub(crate) fn wants(
        &self,
        filter: &Filter,
        (pid, tid, group): (Pid, Tid, NameId),
        comm: &str,
    ) -> bool {
        filter.wants(pid.0, tid.0, comm)
            && (filter.cgroups.is_empty()
                || filter.wants_group(&self.names.get(group), &self.groups))
    }

    /// The samples of the threads that `filter` selects, with their names.
    pub(crate) fn wanted<'a>(
        &'a self,
        filter: &'a Filter,
    ) -> impl Iterator<Item = (&'a Sampled, &'a Sum, Arc<str>)> {
        let mut comms: FxHashMap<(bool, NameId), Arc<str>> = FxHashMap::default();
        self.sums.iter().filter_map(move |(who, sum)| {
            let idle = who.tid == Tid::IDLE;
            let comm = comms.entry((idle, who.comm));
            let comm = comm.or_insert_with(|| self.comm(who.tid, who.comm).into());
            // A thread without a name is named by its id.
            let comm = match who.comm == NameId::NONE && !idle {
                true => self.comm(who.tid, who.comm).into(),
                false => comm.clone(),
            };
            let wanted = self.wants(filter, (who.pid, who.tid, who.group), &comm);
            wanted.then_some((who, sum, comm))
        })
    }

    /// A control group by its human-readable name; `None` if unknown.
    fn group_words(&self, group: NameId) -> Option<Arc<str>> {
        let path = self.names.get(group);
        let words = || GroupName::of(&path).words(&self.groups);
        (group != NameId::NONE).then(|| words().into())
    }

    /// The selected samples by place, so that names are looked up once for many samples.
    fn sampled(&self, filter: &Filter) -> FxHashMap<Place, Sum> {
        let mut sampled: FxHashMap<Place, Sum> = FxHashMap::default();
        for (who, sum, comm) in self.wanted(filter) {
            let frame = self.code.frames(who.chain).first().copied();
            let place = (who.pid, who.tid, comm, who.cpu, who.group, frame);
            sampled.entry(place).or_default().add(*sum);
        }
        sampled
    }
}

/// Shares of what was counted.
pub(crate) struct Shares(Sum);

impl Shares {
    pub(crate) fn of(profile: &Profile) -> Shares {
        Shares(profile.whole())
    }

    pub(crate) fn pct(&self, of: Sum) -> f64 {
        // Not every event has a period.
        match self.0.period {
            0 => percent(of.samples, self.0.samples),
            period => percent(of.period, period),
        }
    }
}

/// The rows of the sampled code, most samples first.
pub(crate) fn hit(
    profile: &Profile,
    filter: &Filter,
    by: By,
    symbols: &mut Symbols<'_>,
) -> Vec<ProfileRow> {
    // A hash map, because names have common prefixes, which makes comparing them slow.
    let mut rows: FxHashMap<Key, (Sum, u64)> = FxHashMap::default();
    let owners = Owners::new(profile, symbols);
    let mut groups: FxHashMap<NameId, Option<Arc<str>>> = FxHashMap::default();
    for ((pid, tid, comm, cpu, group, frame), sum) in profile.sampled(filter) {
        if by == By::Cgroup {
            let kernel = frame.is_some_and(|frame| frame.kernel);
            let group = groups.entry(group).or_insert_with(|| profile.group_words(group));
            let row = rows.entry(Key { cgroup: group.clone(), ..Key::default() }).or_default();
            row.0.add(sum);
            row.1 += if kernel { sum.samples } else { 0 };
            continue;
        }
        let code = frame.map(|frame| profile.code.code(owners.owner(pid, &frame), &frame));
        let key = key((pid, tid, cpu), &comm, by, |line| {
            let Some(code) = &code else { return Default::default() };
            let named = symbols.name(code);
            let line = if line { symbols.line(code).as_ref().map(Source::to_string) } else { None };
            (named.dso, named.function, line)
        });
        let row = rows.entry(key).or_default();
        row.0.add(sum);
        row.1 += if code.is_some_and(|c| c.kernel) { sum.samples } else { 0 };
    }
    let shares = Shares::of(profile);
    let mut rows: Vec<(Key, (Sum, u64))> = rows.into_iter().collect();
    rows.sort_unstable_by(|(a, of_a), (b, of_b)| {
        of_b.0.samples.cmp(&of_a.0.samples).then_with(|| a.cmp(b))
    });
    rows.into_iter()
        .map(|(key, (sum, kernel))| ProfileRow {
            samples: Some(sum.samples),
            kernel_samples: Some(kernel),
            pct: shares.pct(sum),
            ..key.row()
        })
        .collect()
}

impl Key {
    fn row(self) -> ProfileRow {
        let text = |name: Option<Arc<str>>| name.map(|name| name.to_string());
        ProfileRow {
            cgroup: text(self.cgroup),
            comm: text(self.comm),
            pid: self.pid,
            tid: self.tid,
            cpu: self.cpu,
            dso: text(self.dso),
            symbol: text(self.symbol),
            line: self.line,
            ..ProfileRow::default()
        }
    }
}

/// The key of a sample's row. `names` gives file and function, and the line if requested.
fn key(
    (pid, tid, cpu): (Pid, Tid, Cpu),
    comm: &Arc<str>,
    by: By,
    names: impl FnOnce(bool) -> (Option<Arc<str>>, Option<Arc<str>>, Option<String>),
) -> Key {
    let (pid, tid) = (known(pid.0), known(tid.0));
    let comm = Some(comm.clone());
    match by {
        By::Function | By::Children => {
            let (dso, symbol, _) = names(false);
            Key { comm, pid, tid, dso, symbol, ..Key::default() }
        }
        By::Thread => Key { comm, pid, tid, ..Key::default() },
        By::Process => Key { comm, pid, ..Key::default() },
        By::Dso => Key { dso: names(false).0, ..Key::default() },
        By::Line => {
            let (dso, symbol, line) = names(true);
            Key { dso, symbol, line, ..Key::default() }
        }
        By::Cgroup => Key::default(),
        By::Cpu => {
            let cpu = (cpu != Cpu::UNKNOWN).then_some(cpu.0.into());
            Key { cpu, ..Key::default() }
        }
    }
}

/// Rows from switches, for a trace without samples: the CPU time of each thread or process, the
/// most first. Switches do not show which code ran, so there are no rows of files and lines.
pub fn stays(analysis: &Analysis, by: By) -> Vec<ProfileRow> {
    let group = match by {
        By::Function | By::Children | By::Thread => Group::Thread,
        By::Process => Group::Process,
        By::Cgroup => Group::Cgroup,
        By::Dso | By::Line | By::Cpu => return Vec::new(),
    };
    let mut rows: Vec<ProfileRow> = analysis
        .procs(group)
        .into_iter()
        .filter(|row| row.combined_ns > 0)
        .map(|row| ProfileRow {
            cgroup: row.cgroup.flatten().filter(|_| by == By::Cgroup),
            comm: Some(row.comm).filter(|_| by != By::Cgroup),
            pid: row.pid.flatten(),
            tid: row.tid,
            run_ns: Some(row.combined_ns),
            pct: row.pct_capacity,
            ..ProfileRow::default()
        })
        .collect();
    rows.sort_by_key(|r| std::cmp::Reverse(r.run_ns));
    rows
}
