//! From findings to one verdict and how sure it is.

use crate::facts::Facts;
use crate::record::record_command;
use crate::report::{Class, Finding, Neighbour, Neighbours, Price, Step, Verdict};
use crate::rules::{MATTERS, NAMED};
use crate::slowdown::Source;
use crate::too_little::too_little;
use holdup_attribution::{Leaf, Total, thresholds};
use holdup_passes::{Outside, percent};
use holdup_trace::{EventDesc, EventKind, Quality, QualityCode};

thresholds! {
    pub(crate) UNEXPLAINED_KERNEL = "verdict.unexplained_kernel_pct", 40.0, "% of wanted CPU time",
        meaning: "kernel time of applications outside synchronisation calls that no rule \
                  explains and that is too much to call a system healthy: it may be spinning on \
                  locks",
        source: "AIX cases 1 and 3, both waiting for locks, spend 43 and 60.5 % of capacity in \
                 the kernel";
    UNACCOUNTED = "verdict.unaccounted_pct", 30.0, "% of capacity",
        meaning: "capacity that is not accounted for, beyond which nothing can be said",
        source: "twice what a finding must cost to matter: more than that could hide the largest \
                 finding";
    SHORT = "verdict.short_ms", 200.0, "ms",
        meaning: "shorter traces show a moment, not a behaviour",
        source: "some fifty time slices of a fair scheduler (3 to 4 ms each)";
    NO_WORK = "verdict.no_work_pct", 50.0, "% of capacity",
        meaning: "idle without any known reason, in a trace without system calls: beyond this \
                  nobody can tell what threads waited for",
        source: "more than half of the machine";
    LONE_WORKER = "verdict.lone_worker_pct", 75.0, "% of the wall time",
        meaning: "unless one thread runs for this part of it: then it is what the others lack",
        source: "workload-imbalance.dominant_pct, of the whole recording";
    ONE_AT_A_TIME = "verdict.one_at_a_time_pct", 40.0, "% of the wall time",
        meaning: "a lock that calls hold one at a time, and that would be wanted for this long if \
                  nobody recorded, makes a healthy verdict less sure",
        source: "appends to one file scale to 1.1 and 1.2 on two CPUs where it is 45 and 60 %, \
                 truncation of one file to 1.9 where it is 50 %";
    MOSTLY_BUSY = "verdict.mostly_busy_pct", 50.0, "% of accounted time",
        meaning: "a healthy system with less than this is said to lack work",
        source: "more busy than not";
    GAPS_PART = "verdict.gaps_pct", 1.0, "% of the events",
        meaning: "events that do not fit those before: with more the confidence is lowered",
        source: "sound recordings of the labelled corpus have up to 0.2 %";
    MIN_GAPS = "verdict.min_gaps", 20.0, "events",
        meaning: "and at least so many of them",
        source: "short recordings have a handful at their beginning";
    STOLEN = "verdict.stolen_pct", 10.0, "% of capacity",
        meaning: "capacity that a hypervisor took away, from which on the confidence is lowered \
                  by half of it",
        source: "a choice: the labelled recordings of guests lose up to 75 % of it, and most \
                 verdicts on them are right";
    NEIGHBOURS = "verdict.neighbours_pct", 30.0, "% of capacity",
        meaning: "CPU time of programs that are not the work, the recorder among them, beyond \
                  which nothing can be said about the work",
        source: "twice what a finding must cost to matter, as verdict.unaccounted_pct";
    NEIGHBOURS_DOUBT = "verdict.neighbours_doubt_pct", 10.0, "% of capacity",
        meaning: "the same, from which on the confidence is lowered by it",
        source: "a choice: two thirds of what a finding must cost to matter";
    DOUBT = "verdict.doubt_pct", 5.0, "% of capacity",
        meaning: "capacity that is not accounted for, from which on the confidence is lowered by \
                  it",
        source: "a third of what a finding must cost to matter";
}

/// Decide. `findings` are sorted: those that hold first, largest loss first.
pub(crate) fn decide(facts: &Facts<'_>, findings: &[Finding]) -> Verdict {
    if let Some(missing) = no_evidence(facts, findings) {
        return verdict(facts, Class::NotEnoughEvidence, 0.0, missing, None);
    }
    let holding = || findings.iter().filter(|f| f.ruled_out.is_none());
    // The mild ones are the verdict only if nothing else holds.
    let best = [Price::Capacity, Price::Little, Price::Nothing]
        .into_iter()
        .find_map(|price| holding().find(|f| f.class.price() == price));
    // Who is out of quota gains nothing from more threads.
    let best = match best {
        Some(b) if b.class == Class::WorkloadImbalance => {
            holding().find(|f| f.class == Class::CpuQuota).or(best)
        }
        _ => best,
    };
    // Where threads lack CPUs far more than they leave them idle, whoever they wait for lacks one
    // too.
    let queued = holding().find(|f| f.class == Class::CpuOverload);
    let best = match (best, queued) {
        (Some(b), Some(q))
            if b.class == Class::WorkloadImbalance && q.lacked_ns >= b.lost_cpu_ns * 2 =>
        {
            Some(q)
        }
        _ => best,
    };
    let costs = |f: &&Finding| f.class.price() != Price::Nothing;
    let runner_up = best.and_then(|b| holding().find(|f| f.class != b.class));
    // Whether calls cost more because of others shows only where they were made often enough.
    let judged = facts.analysis.cpus == 1 || !facts.judged.contended.is_empty();
    let explained = facts.leaf(Leaf::ThreadTurns) + facts.leaf(Leaf::ServiceTurns);
    let kernel =
        if judged { 0.0 } else { facts.wanted_pct(facts.total(Total::Kernel) - explained) };
    let best_share = best.filter(costs).map_or(0.0, |b| b.wanted_pct);
    if kernel >= facts.limit(&UNEXPLAINED_KERNEL) && kernel > best_share {
        let calls: Vec<String> = heaviest_calls(facts);
        let what = format!(
            "{kernel:.0} % of the work goes into system calls ({}) and this trace does not show \
                why: they may be long, or spin on locks",
            calls.join(", ")
        );
        return verdict(facts, Class::NotEnoughEvidence, 0.0, what, best.map(|b| b.class));
    }
    // Calls that are made with siblings on CPUs only: nobody knows what they cost without.
    let unjudged: Vec<_> = facts.judged.contended.iter().filter(|c| c.unjudged_ns > 0).collect();
    let beside = facts.pct(unjudged.iter().map(|c| c.unjudged_ns).sum());
    if best.is_none() && beside >= facts.limit(&UNEXPLAINED_KERNEL) {
        let mut calls: Vec<&str> = unjudged.iter().map(|c| c.name.as_str()).collect();
        calls.truncate(3);
        let what = format!(
            "{beside:.0} % of capacity goes into {} while other threads of the process are on \
                CPUs, and none is made without them: it may be waiting for the lock of the \
                address space, or for other CPUs to forget what changed",
            calls.join(", ")
        );
        return verdict(facts, Class::NotEnoughEvidence, 0.0, what, None);
    }
    match best {
        Some(best) => {
            // What costs nothing weighs what threads lack.
            let weight = best.wanted_pct.max(facts.pct(best.lacked_ns));
            let rival = runner_up.filter(costs).map_or(0.0, |r| r.wanted_pct);
            verdict(
                facts,
                best.class,
                how_often_right(best.class, weight, rival),
                best.summary.clone(),
                runner_up.map(|r| r.class),
            )
        }
        None => {
            let busy = facts.busy();
            // What a rule refused for another reason than its size is no near miss.
            let small = |f: &&Finding| costs(f) && f.wanted_pct < facts.limit(&MATTERS);
            let near = findings.iter().filter(small).map(|f| f.wanted_pct).fold(0.0, f64::max);
            let largest = findings.iter().filter(small).map(|f| f.share).fold(0.0, f64::max);
            let what = if busy >= facts.limit(&MOSTLY_BUSY) {
                format!(
                    "CPUs are {busy:.0} % busy and nothing holds them up: no cause costs more \
                        than {largest:.0} % of capacity"
                )
            } else {
                format!(
                    "CPUs are {busy:.0} % busy because there is no more work: no cause costs more \
                        than {largest:.0} % of capacity"
                )
            };
            let order = facts.leaf(Leaf::Order);
            let what = if facts.at_least(facts.wanted_pct(order), &MATTERS).holds() {
                format!(
                    "{what}; {:.1} CPUs idle while threads wait for the results of others that \
                     are busy all the time: more of those would help, finer locks would not",
                    order as f64 / facts.wall.max(1) as f64
                )
            } else {
                what
            };
            verdict(
                facts,
                Class::Healthy,
                HEALTHY_RIGHT - near / facts.limit(&MATTERS) * HEALTHY_NEAR,
                what,
                None,
            )
        }
    }
}

/// How often `healthy` was right, and how much less often where a cause nearly mattered
/// (docs/verdicts.md).
const HEALTHY_RIGHT: f64 = 0.97;
const HEALTHY_NEAR: f64 = 0.07;
/// How often a verdict was right whose finding costs this much, in per cent of the CPU time that
/// the work used or lacked (of capacity where threads lacked CPUs): recordings
/// of known workloads, most of which no rule was made on (docs/verdicts.md). Small losses are
/// easily something else's; queues for CPUs come with many other things.
const RIGHT: &[(f64, f64)] = &[(15.0, 0.70), (30.0, 0.88), (50.0, 0.98)];
const RIGHT_OVERLOAD: &[(f64, f64)] = &[(15.0, 0.30), (30.0, 0.60), (50.0, 0.96)];
/// A rival that costs as much takes this part of the confidence away.
const RIVAL: f64 = 0.3;
/// The price of a multiprocessor kernel is small by nature: its share of capacity says nothing.
const RIGHT_MP_UP: f64 = 0.85;

/// In which part of such verdicts this was the right class.
fn how_often_right(class: Class, share: f64, rival: f64) -> f64 {
    let points = match class {
        Class::MpUpOverhead => return RIGHT_MP_UP,
        Class::CpuOverload => RIGHT_OVERLOAD,
        _ => RIGHT,
    };
    let right = match points.iter().position(|p| p.0 > share) {
        Some(0) => points[0].1,
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
            y0 + (y1 - y0) * (share - x0) / (x1 - x0)
        }
        None => points[points.len() - 1].1,
    };
    right * (1.0 - RIVAL * (rival / share.max(1.0)).min(1.0))
}

/// What makes any verdict impossible.
fn no_evidence(facts: &Facts<'_>, findings: &[Finding]) -> Option<String> {
    if facts.analysis.events == 0 {
        return Some("the trace holds no events".to_owned());
    }
    if !facts.caps.switches {
        let there =
            |e: &EventDesc| EventKind::of(&e.system, e.short_name()) == Some(EventKind::Switch);
        if facts.info.events.iter().any(there)
            && let Some((code, n)) = unusable(&facts.analysis.quality)
        {
            return Some(format!("{n} {}", code.message()));
        }
        return Some("without scheduler events nobody can tell who ran and who waited".to_owned());
    }
    if facts.wall == 0 {
        return Some("all events of the trace have the same time stamp".to_owned());
    }
    if facts.capacity == 0 {
        return Some("no event of the trace says on which CPU it happened".to_owned());
    }
    if let Some(why) = too_little(facts) {
        return Some(why);
    }
    let unaccounted = facts.pct(facts.unseen());
    let one_program = facts.tasks_only()
        && findings.iter().any(|f| f.class == Class::WorkloadImbalance && f.ruled_out.is_none());
    if unaccounted >= facts.limit(&UNACCOUNTED) && !one_program {
        let why = if facts.tasks_only() {
            "it was recorded for some tasks only"
        } else {
            "too many events are missing"
        };
        return Some(format!("{unaccounted:.0} % of capacity is unaccounted for: {why}"));
    }
    let others = facts.pct(facts.judged.neighbours.ns);
    if others >= facts.limit(&NEIGHBOURS) {
        return Some(format!(
            "programs that are not the work took {others:.0} % of capacity ({}): record it again \
             without them",
            neighbours(facts).listed()
        ));
    }
    let idle = facts.leaf_pct(Leaf::NoWork);
    // Where neither calls nor wakers were recorded, sleeping workers of one program have no alibi:
    // they may have waited for each other.
    let no_alibi = !facts.caps.wakers
        && have_siblings(facts)
        // That one thread at a time has work is what it looks like, too, where they take turns.
        && findings.iter().all(|f| f.ruled_out.is_some() || f.story == "serial");
    // While one of them works the others' idle time is that of serial work, for all one knows.
    let (idle, limit) = if no_alibi {
        (idle + facts.leaf_pct(Leaf::Serial), facts.limit(&MATTERS))
    } else {
        (idle, facts.limit(&NO_WORK))
    };
    if facts.analysis.outside() == Outside::Unknown
        && idle >= limit
        && !facts
            .workers
            .iter()
            .any(|w| w.1 as f64 * 100.0 >= facts.wall as f64 * facts.limit(&LONE_WORKER))
    {
        return Some(format!(
            "CPUs are idle for {idle:.0} % of capacity, and without system calls nobody can tell \
                what threads waited for"
        ));
    }
    None
}

/// Events that are there and lack what is needed to use them: the most frequent lack.
fn unusable(quality: &Quality) -> Option<(QualityCode, u64)> {
    // Of equal counts the last is taken.
    QualityCode::LACKS
        .into_iter()
        .map(|code| (code, quality.count(code)))
        .filter(|&(_, n)| n > 0)
        .max_by_key(|&(_, n)| n)
}

/// Two of the threads that worked belong to one program.
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

/// What shows in the states of threads and CPUs where events are missing.
const GAPS: &[QualityCode] = &[
    QualityCode::SwitchGap,
    QualityCode::OrphanSysEnter,
    QualityCode::OrphanSysExit,
    QualityCode::MissingWakeup,
    QualityCode::UnmatchedIrq,
];

/// Lower the confidence by what is wrong with the trace, and say so.
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
        vec![Step::of("how often such a verdict was right, in a sound trace", confidence)];
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
        doubt(0.8, "the counters are those of other runs than this trace".to_owned());
    }
    if let Some((_, n)) = unusable(q) {
        let part = n as f64 / facts.analysis.events.max(n) as f64;
        let what = format!("{n} events ({:.1} %) lack what is needed to use them", part * 100.0);
        doubt(1.0 - part.min(0.5), what);
    }
    let gaps_seen: u64 = GAPS.iter().map(|&code| q.count(code)).sum();
    let gaps = gaps_seen as f64 / facts.analysis.events.max(1) as f64;
    if lost == 0
        && gaps * 100.0 >= facts.limit(&GAPS_PART)
        && facts.judged.thresholds.enough(gaps_seen, &MIN_GAPS)
    {
        let what = format!(
            "{:.0} % of the events do not fit those before: events seem to be missing",
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
        doubt(0.9, "the file is cut off".to_owned());
    }
    let unaccounted = facts.pct(facts.unseen());
    if unaccounted >= facts.limit(&DOUBT) {
        doubt(
            1.0 - unaccounted / 100.0,
            format!("{unaccounted:.0} % of capacity is unaccounted for"),
        );
    }
    let stolen = facts.leaf_pct(Leaf::Stolen);
    if stolen >= facts.limit(&STOLEN) {
        let what = format!("{stolen:.0} % of capacity was taken away by the hypervisor (inferred)");
        doubt(1.0 - stolen / 200.0, what);
    }
    let others = facts.pct(facts.judged.neighbours.ns);
    if others >= facts.limit(&NEIGHBOURS_DOUBT) {
        let why = format!(
            "programs that are not the work took {others:.0} % of capacity ({})",
            neighbours(facts).listed()
        );
        doubt(1.0 - others / 100.0, why);
    }
    if !facts.at_least(facts.wall as f64 / 1e6, &SHORT).holds() {
        doubt(0.8, format!("the trace is only {} ms long", facts.wall / 1_000_000));
    }
    if class == Class::Healthy
        && let Some((name, s)) = facts.judged.fullest_section()
        && s.wanted_pct >= facts.limit(&ONE_AT_A_TIME)
    {
        let why = format!(
            "calls of {name} pass one at a time, and the recorder's own time may hide what that \
                costs: CPU samples without system call events would show it"
        );
        doubt(0.8, why);
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
    // Only the first three decide between the classes; contention adds certainty about kernel
    // locks.
    if unknown || !(facts.caps.wakeups || facts.caps.wakers) {
        doubt(0.7, format!("not recorded: {}", lacking.join(", ")));
    }
    Verdict {
        class,
        confidence: (confidence.clamp(0.0, 0.99) * 100.0).round() / 100.0,
        summary,
        runner_up,
        reservations,
        neighbours: Some(neighbours(facts)),
        steps,
        gain: None,
    }
}

/// Who else was there, as the report shows it.
fn neighbours(facts: &Facts<'_>) -> Neighbours {
    let found = &facts.judged.neighbours;
    let of_capacity = |ns: u64| percent(ns, facts.capacity);
    let named = found.programs.iter().filter(|p| facts.pct(p.1) >= facts.limit(&NAMED));
    Neighbours {
        ns: found.ns,
        pct: of_capacity(found.ns),
        work_known: found.work_known,
        programs: named
            .map(|(comm, ns)| Neighbour { comm: comm.clone(), ns: *ns, pct: of_capacity(*ns) })
            .collect(),
    }
}

/// Commands that lead on from a verdict; `TRACE` stands for the file.
pub(crate) fn next_commands(facts: &Facts<'_>, class: Class) -> Vec<String> {
    let trace = facts.info.path.display();
    let verbs: &[&str] = match class {
        Class::WorkloadImbalance if facts.caps.stacks => &["waits", "path", "profile"],
        Class::WorkloadImbalance => &["waits", "path", "procs"],
        Class::ApplicationSerialization | Class::ThreadSerialization if facts.caps.stacks => {
            &["waits", "waits --by caller", "path"]
        }
        Class::ApplicationSerialization | Class::ThreadSerialization => &["waits", "path"],
        // Without events of locks the table of locks has nothing to say.
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
        Class::Healthy => &["summary"],
        Class::NotEnoughEvidence => &["info", "summary"],
    };
    let mut next: Vec<String> = verbs.iter().map(|v| format!("holdup {v} {trace}")).collect();
    if class == Class::NotEnoughEvidence {
        next.insert(0, record_command(facts.info));
    }
    next
}
