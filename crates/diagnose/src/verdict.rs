//! From findings to one verdict and its confidence.

use crate::chosen;
use crate::comparison::Source;
use crate::facts::Facts;
use crate::healthy;
use crate::others::{background, took, unwanted_pct};
use crate::record::again;
use crate::report::{Class, Finding, Step, Verdict};
use crate::too_little::too_little;
use holdup_attribution::limits::{ALONE, MATTERS, NAMED};
use holdup_attribution::{Leaf, Total};
use holdup_passes::{Cause, Outside};
use holdup_trace::{EventDesc, EventKind, Nanos, Quality, QualityCode, shell_word};

/// Decide. `findings` are sorted: those that hold first, then by worth.
pub(crate) fn decide(facts: &Facts<'_>, findings: &[Finding]) -> Verdict {
    let missing = match facts.judged.chosen {
        Some(_) => no_evidence_of_trace(facts).or_else(|| chosen::no_evidence(facts)),
        None => no_evidence(facts, findings),
    };
    if let Some(missing) = missing {
        return verdict(facts, Class::NotEnoughEvidence, 0.0, missing, None);
    }
    let mut holding = findings.iter().filter(|f| f.ruled_out.is_none());
    let best = holding.next();
    let runner_up = holding.next();
    let about_all = facts.judged.chosen.is_none();
    if let Some(what) = unexplained(facts, best).filter(|_| about_all) {
        return verdict(facts, Class::NotEnoughEvidence, 0.0, what, best.map(|b| b.class));
    }
    match best {
        Some(best) => verdict(
            facts,
            best.class,
            how_often_right(best.class, best.worth.low, runner_up.map_or(1.0, |r| r.worth.firm())),
            best.summary.clone(),
            runner_up.map(|r| r.class),
        ),
        None if !about_all => unhindered(facts, findings),
        None if facts.analysis.outside() == Outside::Unknown && !woken(facts) && idles(facts) => {
            let what = "CPUs were idle, and neither wake-ups nor system calls were recorded: what \
                        threads waited for is unknown";
            verdict(facts, Class::NotEnoughEvidence, 0.0, what.to_owned(), None)
        }
        None => match healthy::crowded_out(facts).or_else(|| healthy::unlikely(facts)) {
            Some(what) => verdict(facts, Class::NotEnoughEvidence, 0.0, what, None),
            None => {
                let (right, what) = healthy::claim(facts, findings);
                verdict(facts, Class::Healthy, right, what, None)
            }
        },
    }
}

/// Whether CPUs idle so long that the cause would matter.
fn idles(facts: &Facts<'_>) -> bool {
    facts.at_least(facts.pct(facts.total(Total::Idle)), &MATTERS).holds()
}

/// Whether the trace shows when threads are woken.
fn woken(facts: &Facts<'_>) -> bool {
    facts.caps.wakeups || facts.caps.wakers
}

/// Why there is no verdict if more kernel time is unexplained than the best finding explains.
fn unexplained(facts: &Facts<'_>, best: Option<&Finding>) -> Option<String> {
    // The effect of other threads on calls shows only in calls that are frequent enough.
    let judged = facts.analysis.cpus == 1 || !facts.judged.contended.is_empty();
    let known = [Leaf::ThreadSyncCalls, Leaf::ServiceCalls, Leaf::KernelUnrecorded];
    let explained: Nanos = known.iter().map(|&leaf| facts.leaf(leaf)).sum();
    let kernel =
        if judged { 0.0 } else { facts.wanted_pct(facts.total(Total::Kernel) - explained) };
    if kernel >= facts.too_much() && kernel > best.map_or(0.0, |b| b.wanted_pct) {
        return Some(format!(
            "{kernel:.0} % of the work is in system calls ({}), and this trace does not show why: \
             the calls may need that long, or may spin for locks",
            heaviest_calls(facts).join(", ")
        ));
    }
    // Calls that are made only with siblings on CPUs: their cost without siblings is unknown.
    let unjudged: Vec<_> = facts.judged.contended.iter().filter(|c| c.unjudged_ns > 0).collect();
    let unjudged_pct = facts.pct(unjudged.iter().map(|c| c.unjudged_ns).sum());
    (best.is_none() && unjudged_pct >= facts.too_much()).then(|| {
        let mut calls: Vec<&str> = unjudged.iter().map(|c| c.name.as_str()).collect();
        calls.truncate(3);
        format!(
            "{unjudged_pct:.0} % of capacity is in calls of {} while other threads of the process \
             are on CPUs, and the trace has no such call without them to compare with: the calls \
             may wait for the lock of the address space, or for TLB shootdowns on other CPUs",
            calls.join(", ")
        )
    })
}

/// No change would finish the chosen threads earlier.
fn unhindered(facts: &Facts<'_>, findings: &[Finding]) -> Verdict {
    let near = findings.iter().map(|f| f.worth.times).filter(|&times| times < facts.matters());
    let most = healthy::at_most(near.fold(1.0, f64::max));
    let what = format!(
        "nothing delays {}: no simulated change makes the work {most}",
        chosen::chosen_words(facts).0
    );
    verdict(facts, Class::Healthy, healthy::RIGHT, what, None)
}

/// How often a verdict was right whose finding has this worth (a factor): recordings of known
/// workloads, for most of which no rule was made (docs/verdicts.md). Small gains easily have
/// another cause; queues for CPUs come with many other things.
const RIGHT: &[(f64, f64)] = &[(1.15, 0.70), (1.4, 0.88), (2.0, 0.98)];
const RIGHT_OVERLOAD: &[(f64, f64)] = &[(1.15, 0.30), (1.3, 0.60), (1.5, 0.96)];
/// Less sure, because this accuracy was never measured.
const CHOSEN: f64 = 0.9;
/// A rival that gains as much takes away this part of the confidence.
const RIVAL: f64 = 0.3;
/// The cost of a multiprocessor kernel is always small: its worth says nothing.
const RIGHT_MP_UP: f64 = 0.85;

/// How often this was the right class in such verdicts.
fn how_often_right(class: Class, worth: f64, rival: f64) -> f64 {
    let points = match class {
        Class::MpUpOverhead => return RIGHT_MP_UP,
        Class::CpuOverload => RIGHT_OVERLOAD,
        _ => RIGHT,
    };
    let right = match points.iter().position(|p| p.0 > worth) {
        Some(0) => points[0].1,
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
            y0 + (y1 - y0) * (worth - x0) / (x1 - x0)
        }
        None => points[points.len() - 1].1,
    };
    right * (1.0 - RIVAL * ((rival - 1.0) / (worth - 1.0).max(0.01)).clamp(0.0, 1.0))
}

/// What makes any verdict impossible, for all or for chosen threads.
fn no_evidence_of_trace(facts: &Facts<'_>) -> Option<String> {
    if facts.analysis.events == 0 {
        return Some("the trace contains no events".to_owned());
    }
    if !facts.caps.switches {
        let there =
            |e: &EventDesc| EventKind::of(&e.system, e.short_name()) == Some(EventKind::Switch);
        if facts.info.events.iter().any(there)
            && let Some((code, n)) = unusable(&facts.analysis.quality)
        {
            return Some(format!("{n} {}", code.message()));
        }
        return Some(
            "without scheduler events it is unknown which threads ran and which waited".to_owned(),
        );
    }
    if facts.wall == 0 {
        return Some("all events of the trace have the same time stamp".to_owned());
    }
    if facts.capacity == 0 {
        return Some("no event of the trace has a CPU number".to_owned());
    }
    too_little(facts)
}

/// What makes any verdict about the machine impossible.
fn no_evidence(facts: &Facts<'_>, findings: &[Finding]) -> Option<String> {
    if let Some(why) = no_evidence_of_trace(facts) {
        return Some(why);
    }
    let unaccounted = facts.pct(facts.unseen());
    // What was seen of the recorded tasks holds, whatever the others did.
    let is_seen = facts.tasks_only() && findings.iter().any(|f| f.ruled_out.is_none());
    if unaccounted >= facts.too_much() && !is_seen {
        let why = if facts.tasks_only() {
            "only some threads were recorded"
        } else {
            "too many events are missing"
        };
        return Some(format!(
            "the trace does not show where {unaccounted:.0} % of capacity went: {why}"
        ));
    }
    let asleep = asleep_for_unknown(facts);
    if asleep >= facts.too_much() {
        return Some(format!(
            "threads sleep uninterruptibly while CPUs are idle, for {asleep:.0} % of capacity, and \
                the recorded events do not show the reason"
        ));
    }
    let idle = facts.leaf_pct(Leaf::NoWork);
    // If neither calls nor wakers were recorded, sleeping workers of one program may have waited
    // for each other.
    let no_alibi = !facts.caps.wakers
        && have_siblings(facts)
        // Contention also looks like one thread at a time having work.
        && findings.iter().all(|f| f.ruled_out.is_some() || f.story == "serial");
    // While one of them works, the others' idle time may be that of serial work.
    let (idle, limit) = if no_alibi {
        (idle + facts.leaf_pct(Leaf::Serial), facts.limit(&MATTERS))
    } else {
        (idle, 50.0)
    };
    if facts.analysis.outside() == Outside::Unknown
        && idle >= limit
        && !facts
            .workers
            .iter()
            .any(|w| w.1 as f64 * 100.0 >= facts.wall as f64 * facts.limit(&ALONE))
    {
        return Some(format!(
            "CPUs are idle for {idle:.0} % of capacity, and without recorded system calls it is \
             unknown what threads waited for"
        ));
    }
    None
}

/// Idle capacity while threads sleep uninterruptibly for an unknown reason, in per cent.
fn asleep_for_unknown(facts: &Facts<'_>) -> f64 {
    let causes = facts.judged.waits.iter().filter(|w| w.row.cause == Cause::Unknown);
    facts.pct(causes.map(|w| w.row.sum.share_ns()).sum())
}

/// Events that lack what is needed to use them: the most frequent lack.
fn unusable(quality: &Quality) -> Option<(QualityCode, u64)> {
    // Of equal counts the last is taken.
    QualityCode::LACKS
        .into_iter()
        .map(|code| (code, quality.count(code)))
        .filter(|&(_, n)| n > 0)
        .max_by_key(|&(_, n)| n)
}

/// Whether two of the working threads belong to one program.
fn have_siblings(facts: &Facts<'_>) -> bool {
    let pids = || facts.workers.iter().map(|w| facts.analysis.pid(facts.thread(w.0)));
    pids().enumerate().any(|(i, pid)| pid.is_some() && pids().skip(i + 1).any(|p| p == pid))
}

fn heaviest_calls(facts: &Facts<'_>) -> Vec<String> {
    let mut calls: Vec<_> =
        facts.judged.calls.iter().filter(|c| c.cpu_ns.unwrap_or(0) > 0).collect();
    calls.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.nr.cmp(&b.nr)));
    calls
        .iter()
        .take(3)
        .map(|c| format!("{} {:.0} %", c.name, facts.pct(c.cpu_ns.unwrap_or(0))))
        .collect()
}

/// Signs of missing events in the states of threads and CPUs.
const GAPS: &[QualityCode] = &[
    QualityCode::SwitchGap,
    QualityCode::OrphanSysEnter,
    QualityCode::OrphanSysExit,
    QualityCode::MissingWakeup,
    QualityCode::UnmatchedIrq,
];

/// Lower the confidence for defects of the trace, and say so.
fn verdict(
    facts: &Facts<'_>,
    class: Class,
    confidence: f64,
    summary: String,
    runner_up: Option<Class>,
) -> Verdict {
    let mut confidence = confidence;
    let mut reservations = Vec::new();
    let mut steps =
        vec![Step::of("how often such a verdict is right if the trace is undamaged", confidence)];
    let mut doubt = |factor: f64, why: String| {
        confidence *= factor;
        steps.push(Step::of(&why, factor));
        reservations.push(why);
    };
    let q = &facts.analysis.quality;
    let lost = facts.analysis.lost_events;
    if lost > 0 {
        let part = lost as f64 / (lost + facts.analysis.events) as f64;
        doubt(
            1.0 - part.min(0.5),
            format!("the recorder lost {lost} events ({:.1} %)", part * 100.0),
        );
    } else if q.count(QualityCode::LostChunks) > 0 {
        doubt(0.8, "the recorder lost an unknown number of events".to_owned());
    }
    let by = facts.slowdowns.first().map(|s| s.source);
    if class == Class::HardwareBandwidth && by == Some(Source::Measured) {
        doubt(0.8, "the counters come from other runs of the work, not from this trace".to_owned());
    }
    if let Some((_, n)) = unusable(q) {
        let part = n as f64 / facts.analysis.events.max(n) as f64;
        let what = format!(
            "{n} events ({:.1} %) cannot be used, because fields are missing",
            part * 100.0
        );
        doubt(1.0 - part.min(0.5), what);
    }
    let gaps_seen: u64 = GAPS.iter().map(|&code| q.count(code)).sum();
    let gaps = gaps_seen as f64 / facts.analysis.events.max(1) as f64;
    // Short recordings have a few at their beginning.
    if lost == 0 && gaps * 100.0 >= facts.limit(&NAMED) && facts.enough(gaps_seen) {
        let what = format!(
            "{:.0} % of the events contradict earlier events: other events seem to be missing",
            gaps * 100.0
        );
        doubt(1.0 - (gaps * 3.0).min(0.5), what);
    }
    if let Some((first, last)) = facts.info.span
        && last > first
        && facts.wall + facts.left_out_ns < last - first
    {
        let part = (facts.wall + facts.left_out_ns) as f64 / (last - first) as f64;
        doubt(0.5 + part / 2.0, format!("only {:.0} % of the trace was judged", part * 100.0));
    }
    if q.count(QualityCode::Truncated) > 0 {
        doubt(0.9, "the end of the file is missing".to_owned());
    }
    let unaccounted = facts.pct(facts.unseen());
    if unaccounted >= facts.doubtful() {
        doubt(
            1.0 - unaccounted / 100.0,
            format!("the trace does not show where {unaccounted:.0} % of capacity went"),
        );
    }
    let stolen = facts.leaf_pct(Leaf::Stolen);
    if stolen >= 2.0 * facts.doubtful() {
        let what = format!("the hypervisor took {stolen:.0} % of capacity (inferred)");
        doubt(1.0 - stolen / 300.0, what);
    }
    // If the user chose the work, other programs' CPU time is part of the answer.
    if facts.judged.chosen.is_some() && class != Class::NotEnoughEvidence {
        let why = "it was not measured how often verdicts about chosen threads are \
                   right"
            .to_owned();
        doubt(CHOSEN, why);
    }
    let others = unwanted_pct(facts, class == Class::CpuOverload);
    if others >= facts.doubtful() && facts.judged.chosen.is_none() {
        doubt(1.0 - others / 100.0, took(facts, others));
    }
    if class == Class::Healthy && facts.judged.chosen.is_none() {
        healthy::doubts(facts).into_iter().for_each(|(factor, why)| doubt(factor, why));
    }
    if let Some(Err(_)) = &facts.replays {
        doubt(
            0.9,
            "the trace cannot be replayed, so the verdict is based on demand alone".to_owned(),
        );
    }
    let unknown = facts.analysis.outside() == Outside::Unknown;
    let lacking: Vec<&str> = facts
        .caps
        .list()
        .into_iter()
        .filter(|(name, present, _)| {
            let there = *present && !(unknown && *name == "syscalls");
            !there && matches!(*name, "wakeups" | "wakers" | "syscalls" | "contention")
        })
        .map(|(_, _, events)| events)
        .collect();
    // Only the first three distinguish the classes; contention events add certainty about kernel
    // locks.
    if unknown || !woken(facts) {
        doubt(0.8, format!("not recorded: {}", lacking.join(", ")));
    }
    Verdict {
        class,
        confidence: (confidence.clamp(0.0, 0.99) * 100.0).round() / 100.0,
        summary,
        runner_up,
        reservations,
        background: Some(background(facts)),
        steps,
    }
}

/// Commands that continue from a verdict; `TRACE` stands for the file.
pub(crate) fn next_commands(facts: &Facts<'_>, class: Class) -> Vec<String> {
    let trace = shell_word(&facts.info.path.to_string_lossy());
    let verbs: &[&str] = match class {
        Class::WorkloadImbalance if facts.caps.stacks => &["waits", "path", "profile"],
        Class::WorkloadImbalance => &["waits", "path", "procs"],
        Class::ApplicationSerialization | Class::ThreadSerialization if facts.caps.stacks => {
            &["waits", "waits --by caller", "path"]
        }
        Class::ApplicationSerialization | Class::ThreadSerialization => &["waits", "path"],
        // Without lock events the table of locks is empty.
        Class::KernelLockConflict if facts.analysis.sees_locks() && facts.caps.stacks => {
            &["locks", "locks --by task", "locks --by caller", "syscalls --by caller"]
        }
        Class::KernelLockConflict if facts.analysis.sees_locks() => &["locks", "locks --by task"],
        Class::KernelLockConflict => &["waits", "syscalls --by thread"],
        Class::IoBound => &["waits", "irqs"],
        Class::FunneledDriver => &["irqs", "cpus"],
        Class::MpUpOverhead => &["syscalls"],
        Class::HardwareBandwidth => &["procs", "syscalls --by thread"],
        Class::CpuOverload | Class::CpuQuota => &["switches", "procs"],
        Class::Healthy if facts.busy() * 2.0 < 100.0 => &["waits", "summary"],
        Class::Healthy
            if facts.caps.stacks || facts.enough(facts.analysis.sampled_in_all().all) =>
        {
            &["profile", "summary"]
        }
        Class::Healthy => &["summary"],
        Class::NotEnoughEvidence => &["info", "summary"],
    };
    let mut next: Vec<String> = verbs.iter().map(|v| format!("holdup {v} {trace}")).collect();
    if class == Class::NotEnoughEvidence {
        next.insert(0, fixing(facts, &trace));
    }
    next
}

/// The command that records what is missing.
fn fixing(facts: &Facts<'_>, trace: &str) -> String {
    let others = facts.pct(facts.judged.background.ns);
    let lost = facts.analysis.lost_events;
    if let Some(work) = work(facts).filter(|_| others >= facts.too_much()) {
        return format!("holdup diagnose --comm {} {trace}", shell_word(&work));
    }
    if facts.judged.chosen.is_some() && facts.replays.is_none() {
        return format!("holdup diagnose --gain {trace}");
    }
    // The call chain at the switch tells it, in a recording of chosen calls on a system that shows
    // function names: doctor says whether it does.
    if lost == 0 && asleep_for_unknown(facts) >= facts.too_much() {
        let chosen = facts.info.capabilities.syscalls.chosen().is_some();
        return if chosen { "holdup doctor".to_owned() } else { again(facts.info, 0, false) };
    }
    again(facts.info, lost, too_little(facts).is_none())
}

/// The busiest program of the work.
fn work(facts: &Facts<'_>) -> Option<String> {
    let a = facts.analysis;
    let is_work =
        |pid: Option<u32>| pid.is_some_and(|pid| facts.judged.background.work.contains(&pid));
    let threads = a.all_threads().filter(|(_, t)| !t.is_kthread() && is_work(a.pid(t)));
    threads.max_by_key(|(_, t)| t.running_ns).map(|(_, t)| a.comm(t))
}
