//! Changes in words.

use crate::asleep::Asleep;
use crate::change::{Change, LockChange, Part};
use crate::program::{ObjectId, Program};
use holdup_passes::percent;
use holdup_trace::Tid;
use std::cmp::Reverse;
use std::fmt;

/// This many changes are shown in full.
const SHOWN: usize = 3;

/// Changes in the words of the command line; of many, the first ones and the number of the rest.
pub fn shown(program: &Program, changes: &[Change]) -> String {
    let all = by_waiting(program, changes);
    let few = if all.len() > SHOWN { &all[..1] } else { &all };
    let words: Vec<String> = few.iter().map(|c| Shown(program, c).to_string()).collect();
    match all.len() - few.len() {
        0 => words.join(" + "),
        more => format!("{} + {more} more of this kind", words.join(" + ")),
    }
}

/// What changes do, as in "removing the waiting for mutex 0x7f and 3 more like it".
pub fn fixes(program: &Program, changes: &[Change]) -> String {
    let names = || subjects(program, changes);
    match alike(changes) {
        Some(Change::Speed(_, times)) => format!("making {} {times} times as fast", names()),
        Some(Change::Split(_, parts)) => {
            format!("sharing the work of {} among {parts} threads each", names())
        }
        _ => listed(by_waiting(program, changes).into_iter().map(|c| fix(program, c)).collect()),
    }
}

/// The first of several changes, if all do the same to a thread each.
fn alike(changes: &[Change]) -> Option<&Change> {
    let [first, _, ..] = changes else { return None };
    let same = |change: &Change| match (first, change) {
        (Change::Speed(_, a), Change::Speed(_, b)) => a == b,
        (Change::Split(_, a), Change::Split(_, b)) => a == b,
        _ => false,
    };
    changes.iter().all(same).then_some(first)
}

/// As [`fixes`], of changes that the user asked for: each of them is named.
pub fn each(program: &Program, changes: &[Change]) -> String {
    changes.iter().map(|change| fix(program, change)).collect::<Vec<_>>().join(", ")
}

/// Who sleeps, how often and for which part of the time.
pub fn asleep(program: &Program, of: &Asleep) -> String {
    let times = match of.times {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let pct = percent(of.ns, of.of_ns).min(100.0);
    format!("{} sleeps {times}, {pct:.0} % of the time", thread(program, of.thread))
}

/// The bottlenecks that changes are about.
pub fn subjects(program: &Program, changes: &[Change]) -> String {
    listed(by_waiting(program, changes).into_iter().map(|c| subject(program, c)).collect())
}

/// Puts the change of what threads wait for longest first: if not all are named, that one is. All
/// others keep their order.
fn by_waiting<'a>(program: &Program, changes: &'a [Change]) -> Vec<&'a Change> {
    let waited = |change: &Change| match change {
        Change::Lock(id, _) => program.objects.get(id.0 as usize).map_or(0, |o| o.wait_ns),
        _ => 0,
    };
    let mut all: Vec<&Change> = changes.iter().collect();
    if all.iter().all(|change| matches!(change, Change::Lock(..))) {
        all.sort_by_key(|change| Reverse(waited(change)));
    }
    all
}

/// The first two, or the first and the number of the others.
fn listed(all: Vec<String>) -> String {
    match &all[..] {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, rest @ ..] => format!("{one} and {} more of this kind", rest.len()),
    }
}

fn fix(program: &Program, change: &Change) -> String {
    let name = subject(program, change);
    match change {
        Change::Split(_, parts) => format!("sharing the work of {name} among {parts} threads"),
        Change::Cpus(n) => format!("{n} CPUs instead of {}", program.cpus),
        Change::SpreadIrqs => "spreading interrupts over all CPUs".to_owned(),
        Change::NoDevices => "devices that answer at once".to_owned(),
        Change::AnyCpu => "letting all threads run on any CPU".to_owned(),
        Change::NoQuota => "lifting the CPU quota".to_owned(),
        Change::Deal => {
            "dividing the work of each round evenly among the threads that wait for each \
             other"
                .to_owned()
        }
        Change::Speed(_, times) => format!("making {name} {times} times as fast"),
        Change::Lock(_, LockChange::None) => format!("removing the waiting for {name}"),
        Change::Lock(_, LockChange::Hold(by)) => format!("holding {name} {by} times as long"),
        Change::Lock(_, LockChange::Split(n)) => format!("{n} locks instead of {name}"),
        Change::Lock(_, LockChange::Awake) => format!("never sleeping while holding {name}"),
        Change::Lock(_, LockChange::First) => {
            format!("giving the holder of {name} a CPU at any time")
        }
        Change::Scale { part, .. } => match part {
            Part::Call(call, by) => {
                format!("changing the CPU time of {call} to {by} times the traced time")
            }
            Part::Contention | Part::Stolen | Part::Spinning => format!("removing {name}"),
            Part::MoreContention | Part::AllWork | Part::Team { .. } | Part::Shared { .. } => name,
        },
    }
}

fn thread(program: &Program, i: usize) -> String {
    match program.threads.get(i) {
        Some(t) => format!("{} ({})", t.comm, Tid(t.tid).words()),
        None => "a thread".to_owned(),
    }
}

/// The bottleneck that a change is about.
fn subject(program: &Program, change: &Change) -> String {
    match change {
        Change::Lock(id, _) => match program.objects.get(id.0 as usize) {
            // The names of the command line have no space in the kind.
            Some(object) => object.name.replacen("kernel-lock ", "kernel lock ", 1),
            None => "an object".to_owned(),
        },
        Change::Split(i, _) | Change::Speed(i, _) => thread(program, *i),
        Change::Cpus(_) => "too few CPUs".to_owned(),
        Change::SpreadIrqs => "interrupts that few CPUs take".to_owned(),
        Change::NoDevices => "devices".to_owned(),
        Change::AnyCpu => "threads that are bound to some CPUs".to_owned(),
        Change::NoQuota => "a CPU quota".to_owned(),
        Change::Deal => "threads that have more work in a round than the threads that wait for \
                         them"
            .to_owned(),
        Change::Scale { part, .. } => scaled(part),
    }
}

fn scaled(part: &Part) -> String {
    match part {
        Part::Call(call, by) => format!("syscall {call}*{by}"),
        Part::Contention => "the additional cost of contended calls".to_owned(),
        Part::MoreContention => "more contention for locks".to_owned(),
        Part::Stolen => "the stolen CPU time".to_owned(),
        Part::Spinning => "spinning in user mode".to_owned(),
        Part::Shared { comm } => {
            format!("dividing the work of {comm} among the threads that spin until it is done")
        }
        Part::AllWork => "dividing all work over all CPUs".to_owned(),
        Part::Team { comm, threads } => {
            format!("dividing the work of {comm} evenly among the {threads} threads of its kind")
        }
    }
}

/// A change in the words of the command line.
struct Shown<'a>(&'a Program, &'a Change);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(program, change) = self;
        let name = |o: &ObjectId| &program.objects[o.0 as usize].name;
        let thread = |i: &usize| &program.threads[*i];
        match change {
            Change::Cpus(n) => write!(f, "cpus {n}"),
            Change::Lock(o, LockChange::Hold(by)) => write!(f, "lock {}=hold*{by}", name(o)),
            Change::Lock(o, LockChange::Split(n)) => write!(f, "lock {}=split:{n}", name(o)),
            Change::Lock(o, LockChange::Awake) => write!(f, "lock {}=awake", name(o)),
            Change::Lock(o, LockChange::First) => write!(f, "lock {}=first", name(o)),
            Change::Lock(o, LockChange::None) => write!(f, "lock {}=none", name(o)),
            Change::Split(t, n) => {
                write!(f, "server {} ({})=split:{n}", thread(t).tid, thread(t).comm)
            }
            Change::SpreadIrqs => f.write_str("irq spread"),
            Change::Speed(t, by) => write!(f, "speed {} ({})*{by}", thread(t).tid, thread(t).comm),
            Change::Scale { part, .. } => f.write_str(&scaled(part)),
            Change::NoDevices => f.write_str("devices none"),
            Change::AnyCpu => f.write_str("affinity none"),
            Change::NoQuota => f.write_str("quota none"),
            Change::Deal => f.write_str("work even"),
        }
    }
}
