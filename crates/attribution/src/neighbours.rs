//! Who else was there: CPU time that programs took which are not the work recorded.
//!
//! The recorder is never the work. Of the other programs those are the work that the recorder
//! started (`perf record -- COMMAND`), all that these start, and whoever is one of them by name or
//! by talk: a thread of one program ended a wait of the other, directly or over further programs.
//! So `make -j`, a client and a server started long before it, and a pipeline are one work each.
//!
//! What the recorder started may be no more than a clock (`-- sleep 10`). If it did too little to
//! be the work, nobody knows which of the programs is: then none of them is called a neighbour, and
//! only the recorder's time is known. It is so too where the recording does not say who started
//! whom.

use crate::People;
use crate::threshold::Thresholds;
use crate::thresholds;
use holdup_passes::{Analysis, Object, ObjectKind, Slot, role};
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

thresholds! {
    WORK = "neighbours.work_pct", 20.0, "% of one CPU",
        meaning: "what the recorder started, with all that belongs to it, must run for this part \
                  of the time to be known as the work",
        source: "a choice: a command that only waits for the end of the recording runs for less \
                 than 1 %";
    PROGRAM = "neighbours.program_pct", 90.0, "% of the work's CPU time",
        meaning: "the process that takes this part of it is judged for the whole work, beside \
                  whatever else runs",
        source: "a choice: the rest is a shell, or a client that only asks";
}

/// CPU time of programs that are not the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// By name, most CPU time first.
    pub programs: Vec<(String, Nanos)>,
    /// Of them all.
    pub ns: Nanos,
    /// The process that did nearly all of the work, if that is known.
    pub program: Option<u32>,
    /// Which programs are the work is known: else only the recorder is listed.
    pub work_known: bool,
    /// The processes of the work; where it is not known, all but the recorder's.
    pub work: BTreeSet<u32>,
}

/// Whether a program of this name writes the recording.
pub fn is_recorder(comm: &str) -> bool {
    matches!(comm, "perf" | "trace-cmd" | "holdup")
}

/// One program: a process, all of its threads.
#[derive(Default)]
struct Process {
    comm: String,
    parent: Option<u32>,
    ns: Nanos,
}

/// Find them.
pub(crate) fn of(analysis: &Analysis, people: &People, thresholds: &Thresholds) -> Neighbours {
    let pid = |slot: Slot| {
        let t = analysis.thread(slot);
        analysis.pid(t).unwrap_or(t.tid.0)
    };
    let mut by_tid: BTreeMap<u32, u32> = BTreeMap::new();
    let mut all: BTreeMap<u32, Process> = BTreeMap::new();
    for (slot, t) in analysis.all_threads().filter(|(_, t)| !t.is_kthread()) {
        by_tid.insert(t.tid.0, pid(slot));
        let p = all.entry(pid(slot)).or_default();
        p.ns += t.running_ns;
        // A process is named after its leader; the parent of another thread is its own process.
        let leads = t.tid.0 == pid(slot);
        if p.comm.is_empty() || leads {
            p.comm = analysis.comm(t);
        }
        if leads {
            p.parent = t.parent.map(|parent| parent.0).or(p.parent);
        }
    }
    let recorders: BTreeSet<u32> =
        all.iter().filter(|p| is_recorder(&p.1.comm)).map(|p| *p.0).collect();
    let parents: Vec<(u32, u32)> = all
        .iter()
        .filter_map(|(&child, p)| Some((child, *by_tid.get(&p.parent?)?)))
        .filter(|(child, parent)| child != parent)
        .collect();
    let children = |of: &BTreeSet<u32>| -> BTreeSet<u32> {
        parents.iter().filter(|p| of.contains(&p.1)).map(|p| p.0).collect()
    };
    let groups = related(analysis, people, pid);
    let mut names: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
    for (&pid, p) in &all {
        names.entry(role(p.comm.as_bytes())).or_default().push(pid);
    }
    let mut work: BTreeSet<u32> = BTreeSet::new();
    let mut new: BTreeSet<u32> = children(&recorders).difference(&recorders).copied().collect();
    while !new.is_empty() {
        work.extend(&new);
        let talk = groups.iter().filter(|g| !g.is_disjoint(&new)).flatten();
        let namesakes = new
            .iter()
            .filter_map(|pid| all.get(pid))
            .filter_map(|p| names.get(role(p.comm.as_bytes())))
            .flatten();
        let more: BTreeSet<u32> =
            children(&new).iter().chain(talk).chain(namesakes).copied().collect();
        new = more.into_iter().filter(|p| !work.contains(p) && !recorders.contains(p)).collect();
    }
    let ran = |of: &BTreeSet<u32>| -> Nanos { of.iter().map(|p| all[p].ns).sum() };
    let enough = analysis.wall_ns() as f64 * thresholds.get(&WORK);
    let work_known = !work.is_empty() && ran(&work) as f64 * 100.0 >= enough;
    let mut programs: BTreeMap<&str, Nanos> = BTreeMap::new();
    for (pid, p) in &all {
        if recorders.contains(pid) || work_known && !work.contains(pid) {
            *programs.entry(&p.comm).or_default() += p.ns;
        }
    }
    let mut programs: Vec<(String, Nanos)> =
        programs.into_iter().filter(|p| p.1 > 0).map(|(name, ns)| (name.to_owned(), ns)).collect();
    programs.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let most = work.iter().max_by_key(|p| all[p].ns).copied();
    let all_work = ran(&work) as f64;
    let does_it = |p: &u32| all[p].ns as f64 * 100.0 >= all_work * thresholds.get(&PROGRAM);
    let program = most.filter(|p| work_known && does_it(p));
    let ns = programs.iter().map(|p| p.1).sum();
    let is_work =
        |pid: &u32| if work_known { work.contains(pid) } else { !recorders.contains(pid) };
    let work = all.keys().copied().filter(is_work).collect();
    Neighbours { program, ns, programs, work_known, work }
}

/// Processes around one object: those that waited for it, and those that ended the waits. What any
/// two programs may meet at by chance, such as a disk or a lock of the kernel, relates nobody. Nor
/// does a private futex: whoever of another process seems to end such a wait was only on the CPU,
/// in the kernel, when the interrupt of the sleeper's timer came.
fn related(analysis: &Analysis, people: &People, pid: impl Fn(Slot) -> u32) -> Vec<BTreeSet<u32>> {
    let by_chance: BTreeSet<Object> = analysis
        .objects()
        .filter(|o| {
            o.private
                || matches!(
                    o.kind,
                    ObjectKind::File
                        | ObjectKind::Timer
                        | ObjectKind::Disk
                        | ObjectKind::PageFault
                        | ObjectKind::KernelLock
                        | ObjectKind::Uninterruptible
                )
        })
        .map(|o| o.object)
        .collect();
    let mut around: BTreeMap<Object, BTreeSet<u32>> = BTreeMap::new();
    for (object, threads) in people.around() {
        if object != Object::OTHER && !by_chance.contains(&object) {
            let threads = threads.filter(|&s| !analysis.thread(s).is_kthread());
            around.entry(object).or_default().extend(threads.map(&pid));
        }
    }
    around.into_values().filter(|g| g.len() > 1).collect()
}
