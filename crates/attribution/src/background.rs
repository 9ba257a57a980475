//! Background load: CPU time of programs that are not the recorded work.
//!
//! The recorder is never the work. The work is the programs that the recorder started
//! (`perf record -- COMMAND`), all that these start, and programs that communicate with them: a
//! thread of one program ended a wait of the other, directly or through further programs. So
//! `make -j`, a client and its long-running server, and a pipeline are one work each. A program of
//! the same name is not: another build's compiler is no part of this build.
//!
//! What the recorder started may be no more than a clock (`-- sleep 10`). If it did too little to
//! be the work, the work is unknown. Then no program is called background load, and only the
//! recorder's time is known. The same holds if the recording does not say which process started
//! which.

use crate::ObjectThreads;
use crate::limits::{ENOUGH, MATTERS, Thresholds};
use crate::object::JudgedObject;
use holdup_passes::{Analysis, Object, ObjectKind, ObjectStats, Slot, Thread};
use holdup_trace::{NameId, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The objects and the threads around them.
type Around<'a> = (&'a BTreeMap<Object, JudgedObject>, &'a ObjectThreads);

/// CPU time of programs that are not the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// By name and service, most CPU time first.
    pub programs: Vec<UnrelatedProgram>,
    /// CPU time of all these programs.
    pub ns: Nanos,
    /// The process that did all of the work that matters, if known.
    pub program: Option<u32>,
    /// Whether it is known which programs are the work; if not, only the recorder is listed.
    pub work_known: bool,
    /// The processes of the work; where it is not known, all but the recorder's.
    pub work: BTreeSet<u32>,
    /// Of those, the ones that the recorder started, and descendants; all, if these only wait.
    pub started: BTreeSet<u32>,
}

impl Background {
    /// CPU time of the recorder.
    pub fn recorder_ns(&self) -> Nanos {
        self.programs.iter().filter(|p| is_recorder(&p.comm)).map(|p| p.ns).sum()
    }
}

/// A program that is not the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrelatedProgram {
    /// Its name.
    pub comm: String,
    /// Its control group, by its well-known name; `None` if the trace does not say, or if it is in
    /// none.
    pub cgroup: Option<String>,
    /// CPU time.
    pub ns: Nanos,
}

impl UnrelatedProgram {
    /// `postgres in postgresql.service`.
    pub fn name(&self) -> String {
        match &self.cgroup {
            Some(cgroup) => format!("{} in {cgroup}", self.comm),
            None => self.comm.clone(),
        }
    }
}

/// Whether a program of this name writes the recording.
pub fn is_recorder(comm: &str) -> bool {
    // holdup's child that closes the buffers is called holdup-closing; a binary may have a version.
    comm.starts_with("holdup")
        || matches!(
            comm,
            "perf" | "trace-cmd"
            // LTTng's and Perfetto's daemons.
            | "lttng-sessiond" | "lttng-consumerd" | "lttng-relayd" | "traced" | "traced_probes"
        )
}

/// One program: a process, all of its threads.
#[derive(Default)]
struct Process {
    comm: Rc<str>,
    group: NameId,
    parent: Option<u32>,
    ns: Nanos,
    /// How often its threads got a CPU.
    stays: u64,
}

/// The work and the background if the user chose threads. The work is the processes of the chosen
/// threads, what these started, and the programs they communicate with. `None` without a choice.
pub(crate) fn chosen(analysis: &Analysis, around: Around<'_>) -> Option<Background> {
    analysis.has_chosen_work().then(|| {
        let chosen = analysis.chosen().map(|(_, t)| analysis.pid(t).unwrap_or(t.tid.0));
        find(analysis, around, analysis.limits(), Some(chosen.collect()))
    })
}

/// Find the work and the background.
pub(crate) fn of(analysis: &Analysis, around: Around<'_>, thresholds: &Thresholds) -> Background {
    find(analysis, around, thresholds, None)
}

fn find(
    analysis: &Analysis,
    around: Around<'_>,
    thresholds: &Thresholds,
    chosen: Option<BTreeSet<u32>>,
) -> Background {
    let is_chosen = chosen.is_some();
    let pid = |slot: Slot| {
        let t = analysis.thread(slot);
        analysis.pid(t).unwrap_or(t.tid.0)
    };
    let mut by_tid: BTreeMap<u32, u32> = BTreeMap::new();
    let mut all: BTreeMap<u32, Process> = BTreeMap::new();
    // There may be very many processes, which have a handful of names.
    let mut names: BTreeMap<NameId, Rc<str>> = BTreeMap::new();
    for (slot, t) in analysis.all_threads().filter(|(_, t)| !t.is_kthread()) {
        by_tid.insert(t.tid.0, pid(slot));
        let p = all.entry(pid(slot)).or_default();
        p.ns += t.running_ns;
        p.stays += t.stays;
        if p.group == NameId::NONE {
            p.group = analysis.group(t);
        }
        // A process is named after its leader; the parent of another thread is its own process.
        let leads = t.tid.0 == pid(slot);
        if p.comm.is_empty() || leads {
            p.comm = match t.comm {
                NameId::NONE => analysis.comm(t).into(),
                name => names.entry(name).or_insert_with(|| analysis.comm(t).into()).clone(),
            };
        }
        if leads {
            p.parent = t.parent.map(|parent| parent.0).or(p.parent);
        }
    }
    let recorders: BTreeSet<u32> =
        all.iter().filter(|p| is_recorder(&p.1.comm)).map(|p| *p.0).collect();
    let pids: Vec<u32> = all.keys().copied().collect();
    let number = |(slot, t): (Slot, &Thread)| {
        pids.binary_search(&pid(slot)).ok().filter(|_| !t.is_kthread())
    };
    // By slot; the first is the idle task's.
    let numbers: Vec<Option<usize>> =
        std::iter::once(None).chain(analysis.all_threads().map(number)).collect();
    let groups = related(around, |slot| numbers[slot.0 as usize]);
    let (work, mut started) = work(&all, &pids, &by_tid, &recorders, &groups, chosen);
    let ran =
        |of: &BTreeSet<u32>| -> Nanos { of.iter().filter_map(|p| all.get(p)).map(|p| p.ns).sum() };
    let enough = analysis.wall_ns() as f64 * thresholds.get(&MATTERS);
    let stays: u64 = started.iter().filter_map(|p| all.get(p)).map(|p| p.stays).sum();
    let often = thresholds.enough(stays, &ENOUGH);
    let work_known =
        is_chosen || !work.is_empty() && (often || ran(&work) as f64 * 100.0 >= enough);
    if !is_chosen && !often && (ran(&started) as f64) * 100.0 < enough {
        started.clone_from(&work);
    }
    let mut programs: BTreeMap<(&str, &str), (NameId, Nanos)> = BTreeMap::new();
    for (pid, p) in &all {
        if recorders.contains(pid) || work_known && !work.contains(pid) {
            let path = analysis.path_of(p.group);
            programs.entry((&p.comm, path)).or_insert((p.group, 0)).1 += p.ns;
        }
    }
    let unrelated =
        |((comm, path), (group, ns)): ((&str, &str), (NameId, Nanos))| UnrelatedProgram {
            comm: comm.to_owned(),
            cgroup: analysis.group_words(group).filter(|_| path != "/"),
            ns,
        };
    let mut programs: Vec<UnrelatedProgram> =
        programs.into_iter().map(unrelated).filter(|p| p.ns > 0).collect();
    programs.sort_by(|a, b| {
        b.ns.cmp(&a.ns).then_with(|| (&a.comm, &a.cgroup).cmp(&(&b.comm, &b.cgroup)))
    });
    let most = work.iter().max_by_key(|p| all[p].ns).copied();
    let all_work = ran(&work);
    // What the other processes do does not matter.
    let rest = all_work as f64 * thresholds.get(&MATTERS);
    let does_it = |p: &u32| (all_work - all[p].ns) as f64 * 100.0 <= rest;
    let program = most.filter(|p| work_known && does_it(p));
    let ns = programs.iter().map(|p| p.ns).sum();
    let is_work =
        |pid: &u32| if work_known { work.contains(pid) } else { !recorders.contains(pid) };
    let work = all.keys().copied().filter(is_work).collect();
    Background { program, ns, programs, work_known, work, started }
}

/// The processes of the work: those that the recorders started, with all that belongs to them.
/// Second, the part of them that the recorders started, with their descendants.
///
/// Each process and group is visited once, however many processes share it. The members of groups
/// are given by their places in `pids`, which has all processes in order.
fn work(
    all: &BTreeMap<u32, Process>,
    pids: &[u32],
    by_tid: &BTreeMap<u32, u32>,
    recorders: &BTreeSet<u32>,
    groups: &[Vec<usize>],
    chosen: Option<BTreeSet<u32>>,
) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&pid, p) in all {
        if let Some(&parent) = p.parent.and_then(|parent| by_tid.get(&parent))
            && parent != pid
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut groups_of: Vec<Vec<usize>> = vec![Vec::new(); pids.len()];
    for (group, members) in groups.iter().enumerate() {
        members.iter().for_each(|&number| groups_of[number].push(group));
    }
    let started = chosen.unwrap_or_else(|| {
        let of_recorders = recorders.iter().filter_map(|pid| children.get(pid)).flatten();
        let mut found: Vec<u32> = of_recorders.copied().collect();
        let mut started = BTreeSet::new();
        while let Some(pid) = found.pop() {
            if !recorders.contains(&pid) && started.insert(pid) {
                found.extend(children.get(&pid).into_iter().flatten());
            }
        }
        started
    });
    let mut heard = vec![false; groups.len()];
    let mut is_work = vec![false; pids.len()];
    let number = |pid: &u32| pids.binary_search(pid).ok();
    let mut found: Vec<usize> = started.iter().filter_map(number).collect();
    while let Some(at) = found.pop() {
        if is_work[at] || recorders.contains(&pids[at]) {
            continue;
        }
        is_work[at] = true;
        found.extend(children.get(&pids[at]).into_iter().flatten().filter_map(number));
        for &group in &groups_of[at] {
            if !std::mem::replace(&mut heard[group], true) {
                found.extend(&groups[group]);
            }
        }
    }
    let work = pids.iter().zip(is_work).filter(|of| of.1).map(|of| *of.0);
    (work.collect(), started)
}

/// Numbers of processes related by an object: those that waited for it, and those that ended the
/// waits. Objects at which any two programs may meet by chance, such as a disk or a kernel lock,
/// relate none. Nor does a private futex: a thread of another process that seems to end such a wait
/// was only on the CPU, in the kernel, when the interrupt of the sleeper's timer came.
fn related(
    (objects, by_object): Around<'_>,
    number: impl Fn(Slot) -> Option<usize>,
) -> Vec<Vec<usize>> {
    let by_chance = |o: &ObjectStats| {
        use ObjectKind::{Disk, File, KernelLock, PageFault, Timer, Uninterruptible};
        o.private
            || matches!(o.kind, File | Timer | Disk | PageFault | KernelLock | Uninterruptible)
    };
    let members = |o: &ObjectStats| -> Vec<usize> {
        let mut members: Vec<usize> = by_object.around(o.object).filter_map(&number).collect();
        members.sort_unstable();
        members.dedup();
        members
    };
    let objects = objects.values().map(|o| &o.stats);
    let meet = objects.filter(|o| o.object != Object::OTHER && !by_chance(o));
    meet.map(members).filter(|members| members.len() > 1).collect()
}
