//! What threads wait for, as culprits: objects of the threads library, kernel services, pipes and
//! sockets, disks. Names and ids are as in the table of waits.

use super::spins::spinning as loops;
use super::{CULPRITS, most_costly, program_name, syscall, waited_for};
use crate::facts::Facts;
use crate::report::{Class, Culprit, Person, Role};
use holdup_attribution::{
    Blamed, Leaf, Sleeper, Spinning, UserSpinning, WaitRule, WaitsRow, in_words,
};
use holdup_passes::limits::MATTERS;
use holdup_passes::{Object, ObjectKind};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The objects that threads contend for. If a replay tells, those whose removal makes the work
/// faster, the one that delays most first. Otherwise by idle CPU time at the leaf `asleep`; or else
/// the calls that threads waited in, if system calls were recorded. CPU time spent in such calls
/// (`awake`) is charged to the object if there is only one. For threads that yield and do not sleep
/// only the program is known.
pub(crate) fn contention(
    facts: &Facts<'_>,
    class: Class,
    (asleep, awake): (Leaf, Leaf),
    by_call: &[(String, Nanos)],
    (spinning, in_user): (&[&Spinning], &[&UserSpinning]),
) -> Vec<Culprit> {
    let priced = facts.worth_removing(class);
    let priced = priced.map(|objects| freed(facts, objects, |o| o.idle_ns(asleep)));
    let spin = || in_user.iter().map(|s| loops(facts, s));
    if let Some(mut culprits) = priced.filter(|culprits| !culprits.is_empty()) {
        // A lock for which threads also sleep costs what they spin for it.
        let idle_ns = culprits.iter().map(|c| c.ns).max().unwrap_or(0);
        let more = spin().filter(|c| c.ns > idle_ns);
        culprits.splice(0..0, more);
        culprits.truncate(CULPRITS);
        return culprits;
    }
    let mut objects = at_leaf(facts, asleep);
    if let [only] = &mut objects[..] {
        only.ns += facts.leaf(awake);
    }
    objects.extend(spinning.iter().map(|s| yielding(facts, s)));
    objects.extend(spin());
    objects.sort_by_key(|c| Reverse(c.ns));
    match objects.is_empty() {
        false => most_costly(facts, objects),
        true if facts.caps.syscalls.are_any() => calls(facts, by_call),
        true => Vec::new(),
    }
}

/// Threads that yield until others let them continue.
fn yielding(facts: &Facts<'_>, s: &Spinning) -> Culprit {
    let sleepers: Vec<Sleeper> =
        s.threads.iter().map(|t| Sleeper { slot: t.0, wait_ns: t.1.cpu_ns }).collect();
    let who = s.threads.first().map(|t| facts.thread(t.0));
    let pid = who.filter(|_| !s.between_processes).and_then(|t| facts.analysis.pid(t));
    let comm = who.map_or_else(String::new, |t| facts.analysis.comm(t));
    let owner = pid.map_or_else(|| format!(" of {comm}"), |pid| format!(" of {comm} ({pid})"));
    let culprit = Culprit {
        pid,
        role: Role::Spins,
        name: format!("repeated sched_yield{owner}"),
        ..syscall(facts, "sched_yield", s.sum.cpu_ns)
    };
    waited_for(facts, &sleepers, culprit)
}

/// Files and devices on disks, by idle CPU time; or else the calls.
pub(crate) fn devices(facts: &Facts<'_>, by_call: &[(String, Nanos)]) -> Vec<Culprit> {
    let objects = at_leaf(facts, Leaf::Io);
    if objects.is_empty() { calls(facts, by_call) } else { most_costly(facts, objects) }
}

fn calls(facts: &Facts<'_>, by_call: &[(String, Nanos)]) -> Vec<Culprit> {
    most_costly(facts, by_call.iter().map(|(name, ns)| syscall(facts, name, *ns)).collect())
}

/// The first few objects with idle or waiting time at `leaf`, most idle time first.
pub(super) fn at_leaf(facts: &Facts<'_>, leaf: Leaf) -> Vec<Culprit> {
    let mut objects: Vec<&Blamed> =
        facts.objects().iter().filter(|o| o.leaves.contains_key(&leaf)).collect();
    objects.sort_by(|a, b| {
        let size = |o: &Blamed| Reverse((o.idle_ns(leaf), o.row.wait_total_ns));
        (size(a), a.row.kind, &a.row.object).cmp(&(size(b), b.row.kind, &b.row.object))
    });
    objects.into_iter().take(CULPRITS).map(|o| culprit(facts, o, o.idle_ns(leaf))).collect()
}

/// The first few of these objects, in their order: a replay shows that the work is faster without
/// them. The words of a lock whose holders sleep look as if there were no work; they are named
/// unless threads wait for some time for an object that is a lock by itself.
pub(crate) fn freed(
    facts: &Facts<'_>,
    objects: &[Object],
    cost_ns: impl Fn(&Blamed) -> Nanos,
) -> Vec<Culprit> {
    let place = |o: &&Blamed| objects.iter().position(|object| o.objects.contains(object));
    let all = facts.objects().iter();
    let mut found: Vec<(usize, &Blamed)> = all.filter_map(|o| Some((place(&o)?, o))).collect();
    found.sort_by_key(|of| of.0);
    let longest = found.iter().map(|(_, o)| o.row.wait_total_ns).max().unwrap_or(0);
    let matters = (longest as f64 * facts.limit(&MATTERS) / 100.0) as Nanos;
    let is_lock = |o: &Blamed| o.rule.is_harmful() && o.row.wait_total_ns >= matters;
    if found.iter().any(|(_, o)| is_lock(o)) {
        found.retain(|(_, o)| is_lock(o));
    }
    let found = found.into_iter().take(CULPRITS);
    found.map(|(_, o)| culprit(facts, o, cost_ns(o))).collect()
}

/// The process of the last thread with this id.
fn pid_of(facts: &Facts<'_>, tid: u32) -> Option<u32> {
    let (_, t) = facts.analysis.all_threads().filter(|(_, t)| t.tid.0 == tid).last()?;
    facts.analysis.pid(t)
}

/// An object as a culprit that costs this much CPU time.
pub(super) fn culprit(facts: &Facts<'_>, o: &Blamed, ns: Nanos) -> Culprit {
    let row = &o.row;
    let holders: Vec<Person> = row
        .holders
        .iter()
        .map(|h| Person {
            tid: h.tid,
            pid: pid_of(facts, h.tid),
            comm: h.comm.clone(),
            ns: h.hold_ns,
            // If only the duration of holds is known, and not their times.
            pct: row.pct_explained.map(|_| h.pct_explained),
            inferred: h.inferred,
        })
        .collect();
    let code = facts.code.and_then(|code| code.object(&o.names));
    let mut holders_did = row.holders_did.clone();
    if let Some(around) = &code {
        around.tell_holders(&mut holders_did);
    }
    let culprit = Culprit {
        kind: row.usage.unwrap_or(row.kind),
        id: row.object.clone(),
        code,
        name: name(facts, o),
        pid: row.pid,
        ns,
        holders_in_all: (!holders.is_empty()).then_some(o.holders_in_all),
        holders,
        holders_did,
        holders_worth: facts.holders_worth(&o.objects),
        role: role(o),
        ..Culprit::default()
    };
    waited_for(facts, &o.sleepers, culprit)
}

fn role(o: &Blamed) -> Role {
    match o.rule {
        WaitRule::LockContention | WaitRule::IdleTimeout => Role::Contended,
        WaitRule::OneServer => Role::Served,
        WaitRule::BarrierImbalance => Role::Barrier,
        WaitRule::KernelLock => Role::KernelLock,
        WaitRule::IoDevice | WaitRule::IoPaging => Role::Device,
        WaitRule::HandoverContention
        | WaitRule::IdleTimer
        | WaitRule::IdleChild
        | WaitRule::IdleJoin
        | WaitRule::IdleSignal
        | WaitRule::IdlePoll
        | WaitRule::IdleAccept
        | WaitRule::IdleNoWork
        | WaitRule::IdleKernel
        | WaitRule::IdleUnknown => Role::Handover,
    }
}

/// Kind, address and process: `mutex 0x7f71238a0108 of wl (587)`.
fn name(facts: &Facts<'_>, o: &Blamed) -> String {
    if o.others > 0 && matches!(o.kind, ObjectKind::Flock | ObjectKind::PosixLock) {
        let pids = o.users().map(|slot| facts.analysis.pid(facts.thread(slot)));
        let processes = pids.collect::<BTreeSet<_>>().len();
        let program = program_name(facts, o.users());
        return file_lock(o.row.kind, &o.names, processes, &program);
    }
    let object = &o.row.object;
    let what = match o.kind {
        // The reason for a sleep outside calls is known only if page faults are recorded.
        ObjectKind::PageFault if facts.caps.page_faults => format!("page faults in {object}"),
        ObjectKind::PageFault => format!("sleep in D state, in no recorded call, with {object}"),
        ObjectKind::Other => format!("waits in {object}"),
        // The kernel names the function, or nothing is known: "in down+0x4", "not recorded of …".
        ObjectKind::Uninterruptible if object.starts_with("in ") => {
            format!("uninterruptible sleep {object}")
        }
        ObjectKind::Uninterruptible => format!("uninterruptible sleep, reason {object}"),
        ObjectKind::KernelLock => format!("kernel lock {object}"),
        // Known by the call alone if the descriptor is unknown.
        ObjectKind::Disk if object.starts_with("in ") => format!("disk {object}"),
        ObjectKind::Disk => format!("disk behind {object}"),
        _ => in_words(o.row.kind, o.row.usage, object),
    };
    let owner = owner(&o.row);
    let others = match o.others {
        0 => return format!("{what}{owner}"),
        1 => "1 more object".to_owned(),
        n => format!("{n} more objects"),
    };
    let are = match o.rule {
        WaitRule::LockContention => "of one lock",
        _ => "through which the same threads wake each other in turn",
    };
    format!("{what}{owner} and {others} {are}")
}

/// A lock of a file that processes of a program have these descriptors for, each named as in
/// [`in_words`]. The number of one of them would tell nobody which lock it is.
fn file_lock(kind: &str, descriptors: &[String], processes: usize, program: &str) -> String {
    let file = |name| {
        let name = str::strip_prefix(name, kind).unwrap_or(name).trim_start();
        // The recorder saw what some descriptors were, and perhaps several of the same name.
        let file = name.rsplit_once(" (fd ").map_or(name, |(file, _)| file);
        (!file.starts_with("fd ")).then_some(file)
    };
    let files: BTreeSet<&str> = descriptors.iter().filter_map(|name| file(name)).collect();
    let files = match files.len() {
        0 => "one file".to_owned(),
        1 => files.into_iter().collect(),
        n => format!("{n} files"),
    };
    let users = match processes {
        1 => program.to_owned(),
        n => format!("{n} processes of {program}"),
    };
    let through = match descriptors.len() {
        n if n == processes => String::new(),
        n => format!(" through {n} descriptors"),
    };
    format!("{kind} on {files}, shared by {users}{through}")
}

/// Its process, unless the object's own name has it.
fn owner(row: &WaitsRow) -> String {
    match row.pid {
        Some(pid) if row.object.ends_with(&format!(" of pid {pid}")) => format!(" ({})", row.comm),
        // Another process's descriptor.
        Some(_) if row.object.contains(" of pid ") => String::new(),
        Some(pid) => format!(" of {} ({pid})", row.comm),
        // Several processes use it: the row has the name of one of their threads.
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lock_is_named_by_file_and_program_and_by_how_many_share_it() {
        let named = |names: &[&str], processes| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            file_lock("flock", &names, processes, "php")
        };
        let (a, b) = ("flock fd 6 of pid 7", "flock fd 6 of pid 8");
        assert_eq!(named(&[a, b], 2), "flock on one file, shared by 2 processes of php");
        let threads = "flock on one file, shared by php through 2 descriptors";
        assert_eq!(named(&[a, "flock fd 7 of pid 7"], 1), threads);
        let (c, d) = ("flock /run/php (fd 6 of pid 9)", "flock /run/php");
        let seen = "flock on /run/php, shared by 3 processes of php through 4 descriptors";
        assert_eq!(named(&[a, b, c, d], 3), seen);
        // Joined because of how threads try for them; the recorder knew better.
        let two = "flock on 2 files, shared by 2 processes of php";
        assert_eq!(named(&[c, "flock /run/sql"], 2), two);
    }
}
