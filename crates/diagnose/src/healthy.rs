//! When there is no bottleneck: what is claimed then, and why it may be wrong.

use crate::facts::Facts;
use crate::others::{took, unwanted_pct};
use crate::report::{Class, Finding};
use holdup_attribution::limits::{MATTERS, WELL_MET};
use holdup_attribution::{Leaf, Total};
use holdup_passes::{ObjectKind, percent};

/// How often `healthy` was right if no tried change gains more than the replay's error, and if one
/// does (docs/verdicts.md).
pub(crate) const RIGHT: f64 = 0.95;
const NEAR: f64 = 0.88;

/// No change gains what matters: how often that is right, and in words the largest gain and whether
/// there is work.
pub(crate) fn claim(facts: &Facts<'_>, findings: &[Finding]) -> (f64, String) {
    let busy = facts.busy();
    // A finding that a rule refused for a reason other than its size is no near miss.
    let near = findings
        .iter()
        .filter(|f| f.class != Class::CpuOverload)
        .filter(|f| f.is_too_little || f.worth.times < facts.matters())
        .fold(1.0, |most: f64, f| most.max(f.worth.times));
    let asleep = facts.replays.as_ref().and_then(|of| of.as_ref().ok()?.asleep());
    let what = match asleep {
        _ if busy * 2.0 >= 100.0 => {
            format!("CPUs are {busy:.0} % busy, and there is no bottleneck")
        }
        Some(who) => {
            format!("CPUs are {busy:.0} % busy because the work waits for timers or input ({who})")
        }
        None => format!("CPUs are {busy:.0} % busy because there is no more work to do"),
    };
    let what = match &facts.replays {
        Some(Ok(replays)) => {
            // Threads that hardly ever lack a CPU are no overload, whatever more CPUs would gain.
            let cpus = replays.of_class(Class::CpuOverload);
            let nothing = 1.0 + facts.limit(&WELL_MET) / 100.0;
            let cpus = cpus.filter(|of| of.worth.times > near.max(nothing));
            let but =
                cpus.map(|of| format!(", except more CPUs ({:.2} times as fast)", of.worth.times));
            let but = but.unwrap_or_default();
            format!("{what}: no simulated change makes the work {}{but}", at_most(near))
        }
        _ => format!(
            "{what}: removing one of the costs found does not make the work {}",
            at_most(near)
        ),
    };
    let order = facts.leaf(Leaf::Order);
    let what = if facts.at_least(facts.wanted_pct(order), &MATTERS).holds() {
        format!(
            "{what}; {:.1} CPUs are idle while threads wait for the results of threads that are \
             busy all the time: more of these busy threads would help, finer locks would not",
            order as f64 / facts.wall.max(1) as f64
        )
    } else {
        what
    };
    let what = match in_kernel(facts) {
        Some(who) => format!("{what}; {who}, and more CPUs would not shorten that sleep"),
        None => what,
    };
    let what = match facts.judged.alone.polls.first() {
        Some(&slot) => format!(
            "{what}; {} polls all the time and keeps a CPU busy with that",
            facts.name(slot)
        ),
        None => what,
    };
    // A loss that would matter, but that no replay gains from, is a near miss too.
    let lost = findings.iter().any(|f| f.is_too_little && f.demand >= facts.matters());
    let is_near = lost || near - 1.0 > facts.limit(&WELL_MET) / 100.0;
    (if is_near { NEAR } else { RIGHT }, what)
}

/// How much faster no change makes the work if the best makes it at most this many times as fast.
pub(crate) fn at_most(times: f64) -> String {
    match ((times - 1.0) * 100.0).round() {
        0.0 => "faster".to_owned(),
        most => format!("more than {most:.0} % faster"),
    }
}

/// Why nothing found does not mean that there is nothing: what other programs leave to the work
/// may be too little to show its bottleneck. One that shows nevertheless is one.
pub(crate) fn crowded_out(facts: &Facts<'_>) -> Option<String> {
    let others = unwanted_pct(facts, false);
    let took = || format!("{}: record again without them", took(facts, others));
    (others >= facts.too_much()).then(took)
}

/// The thread that sleeps most while the kernel waits for neither a device nor a lock, for example
/// for a grace period or a driver's answer.
fn in_kernel(facts: &Facts<'_>) -> Option<String> {
    let a = facts.analysis;
    let objects = facts.judged.objects.values().map(|o| &o.stats);
    let most = objects
        .filter(|o| o.kind == ObjectKind::Uninterruptible && o.wait_ns * 2 >= facts.wall)
        .max_by_key(|o| o.wait_ns)?;
    let name = a.object_name(most.object);
    let function = name.strip_prefix("in ")?.split([' ', '+']).next()?;
    let comm = a.comm(a.thread(most.first?));
    let part = percent(most.wait_ns.min(facts.wall), facts.wall);
    Some(format!("{comm} sleeps in the kernel function {function} for {part:.0} % of the time"))
}

/// How much of capacity is idle although there is work, in per cent, and that in words; `None` if
/// it does not matter. No change that was tried gains it back.
fn unexplained(facts: &Facts<'_>) -> Option<(f64, String)> {
    let no_work = facts.leaf(Leaf::NoWork);
    let pct = facts.pct(facts.total(Total::Idle).saturating_sub(no_work));
    let replayed = match &facts.replays {
        Some(Ok(_)) => "no change makes a replay of the trace faster",
        _ => "it was not simulated whether a change would make the work faster",
    };
    let why = format!(
        "CPUs are idle for {pct:.0} % of capacity although threads run, or wait for locks, devices \
         or each other, and {replayed}"
    );
    (pct >= facts.limit(&MATTERS)).then_some((pct, why))
}

/// Why nothing found does not mean that there is nothing: there is work nearly all the time, too
/// much time is lost, and replays gain none of it.
pub(crate) fn unlikely(facts: &Facts<'_>) -> Option<String> {
    facts.replays.as_ref()?.as_ref().ok()?;
    let paused = facts.at_least(facts.leaf_pct(Leaf::NoWork), &MATTERS).holds();
    let (_, why) = unexplained(facts).filter(|of| !paused && of.0 >= facts.too_much())?;
    Some(format!("{why}: the trace does not show what delays these threads"))
}

/// What makes the claim less sure: a factor for its confidence, and why.
pub(crate) fn doubts(facts: &Facts<'_>) -> Vec<(f64, String)> {
    let mut doubts = Vec::new();
    doubts.extend(unexplained(facts).map(|(pct, why)| (1.0 - pct / 100.0, why)));
    // Of nine such verdicts on programs that ran untraced too (benches/pairs.tsv), four were wrong.
    let slept = facts.leaf_pct(Leaf::NoWork);
    if slept * 2.0 >= 100.0 {
        let why = format!(
            "CPUs are idle for {slept:.0} % of capacity while threads sleep for a set time or wait \
             for input: a trace does not show queues of tasks or requests inside a program"
        );
        doubts.push((1.0 - slept / 200.0, why));
    }
    let unrecorded = facts.leaf(Leaf::KernelUnrecorded);
    let outside = facts.pct(facts.application() + unrecorded);
    if outside * 2.0 >= 100.0 {
        doubts.push(outside_calls(facts, outside));
    }
    doubts
}

/// How sure it is that CPUs work which are outside recorded calls for `outside` per cent of
/// capacity, and why it is not certain. Of nine such verdicts on programs that ran untraced too,
/// five were wrong (docs/models.md), three of them because threads spun.
fn outside_calls(facts: &Facts<'_>, outside: f64) -> (f64, String) {
    let sampled = facts.analysis.sampled_in_all();
    let unknown = sampled.unknown as f64 * 100.0 / sampled.all.max(1) as f64;
    let is_sampled = facts.enough(sampled.all);
    // Some samples are always at code of no file, such as the kernel's own in a process.
    let shows_spinning = is_sampled && unknown < facts.limit(&MATTERS);
    let (part, spins) = if shows_spinning { (1_200.0, "") } else { (600.0, ", spins for a lock") };
    let own = facts.pct(facts.application());
    let mut why = format!(
        "CPUs run application code for {own:.0} % of capacity, and the trace does not show whether \
         the code works{spins} or copies data"
    );
    if is_sampled && !shows_spinning {
        why += &format!(": for {unknown:.0} % of the samples the file of the code is not known");
    }
    let unrecorded = facts.leaf_pct(Leaf::KernelUnrecorded);
    if unrecorded >= facts.limit(&MATTERS) {
        why += &format!(
            "; for another {unrecorded:.0} % CPUs are in page faults or in system calls that were \
             not recorded"
        );
    }
    (1.0 - outside / part, why)
}
