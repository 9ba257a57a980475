//! CPUs are busy in application code that the hardware slows down.
//!
//! # What it does
//! It determines whether the application's own code gets slower when more CPUs are busy, and adds
//! up the CPU time lost to this slowdown. It has several sources. The first of them that has enough
//! data decides:
//! * **counters** (`cycles` and `instructions`, recorded together with the scheduler's events):
//!   cycles per instruction of each thread in user mode while many CPUs are busy, compared with its
//!   cycles per instruction while few CPUs are busy. This ratio does not depend on the clock rate
//!   or on a hypervisor that takes the CPU away;
//! * **counters of a baseline** (`--baseline`, the same work on fewer CPUs): each thread is
//!   compared with the threads of the same name in the baseline;
//! * **runs of perf stat** (`--counters`), one run with few CPUs busy and one with about as many
//!   CPUs busy as in the trace: the cycles per instruction of the two runs are compared;
//! * **user-mode intervals**: the median CPU time that a thread's own code takes before the same
//!   system call. It is compared with the baseline. Without a baseline, intervals while many CPUs
//!   are busy are compared with intervals while few are busy. This comparison proves nothing, so it
//!   gives only a suspicion, never the verdict.
//!
//! # Why it matters
//! The CPUs are busy but do less work. They wait for a memory bus that is full, for a cache line
//! that another CPU writes (false sharing), for the memory of another node, or for the other
//! hardware thread of their core (SMT). More CPUs make this worse.
//!
//! # What it cannot tell
//! It cannot tell which of these causes it is: for that, use the commands in the advice. It also
//! cannot distinguish slow hardware from a loop that spins for a lock in user mode: such a loop
//! changes the cycles per instruction, and takes longer under concurrency. User-mode intervals also
//! get longer where the clock rate drops with the number of busy CPUs, where pieces of work become
//! larger under concurrency, and where long page faults were not recorded
//! (`exceptions:page_fault_user`). If cycles per instruction are high but do not depend on
//! concurrency, the code itself is slow, for example because it waits for memory. If all CPUs are
//! busy all the time, only a baseline allows a comparison.
//!
//! # What to do
//! Give every thread its own data, in its own cache lines. Let fewer threads use the memory bus at
//! a time. Keep threads on the NUMA node that holds their memory.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Hardware Configuration.

use super::{Explanation, Fixtures, Rule, cost, finding, in_cpus, not_judged};
use crate::comparison::{Slowdown, Source};
use crate::counted;
use crate::facts::Facts;
use crate::measured::concurrencies;
use crate::report::{Class, Culprit, Evidence, Finding, Lead};
use crate::slowdown::counts;
use holdup_attribution::Check;
use holdup_attribution::limits::{MATTERS, SLOWER};

pub(super) const RULE: Rule = Rule {
    id: "hardware-bandwidth",
    class: Class::HardwareBandwidth,
    check,
    file: include_str!("hardware_bandwidth.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS, SLOWER],
    fixtures: Fixtures {
        positive: "figures/bandwidth.toml",
        negative: "host_falseshare_n2/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    let found = &facts.slowdowns;
    let cpi = per_instruction(facts);
    let Some(best) = found.first() else {
        let why = format!("not judged: {}", missing(facts, cpi));
        let mut f = not_judged(facts, &RULE, why);
        f.evidence.extend(cpi.map(|cpi| cpi.evidence()));
        f.evidence.extend(counted::evidence(facts));
        return f;
    };
    let slower = slower(facts, best);
    let explanation =
        Explanation { story: "slowed-down", summary: summary(facts, best), advice: advice() };
    let mut f = finding(facts, &RULE, explanation);
    let (metric, place) = (best.source.metric(), best.source.place());
    f.evidence.push(Evidence::checked(metric, &slower, "% more", place));
    if best.proven_ns().is_some() {
        f.evidence.push(cost(facts, &f));
    }
    let user = facts.application().max(1) as f64;
    f.evidence.push(Evidence::of(
        "work that was compared with similar work",
        (best.covered_ns * 100.0 / user).min(100.0),
        "% of application code",
        best.source.place(),
    ));
    f.evidence.extend(cpi.map(|cpi| cpi.evidence()));
    f.evidence.extend(counted::evidence(facts));
    for other in &found[1..] {
        f.evidence.push(Evidence::of(
            other.source.metric(),
            (other.times() - 1.0) * 100.0,
            "% more",
            other.source.place(),
        ));
    }
    if !slower.holds() {
        f.ruled_out = Some(format!(
            "the same kind of work takes only {:.0} % longer with more CPUs busy",
            slower.value.max(0.0)
        ));
    } else if best.proven_ns().is_none() {
        let why = match best.source {
            Source::MeasuredElsewhere => {
                "no run of perf stat (--counters) kept as many CPUs busy as this trace"
            }
            _ => {
                "without counters or a baseline, a slow machine cannot be distinguished from \
                 longer pieces of work"
            }
        };
        f.ruled_out = Some(format!("only a suspicion: {why}"));
    }
    f.culprits = culprits(facts, best);
    f
}

fn slower(facts: &Facts<'_>, s: &Slowdown) -> Check {
    facts.at_least((s.times() - 1.0) * 100.0, &SLOWER)
}

/// Application code that gets slower under concurrency by enough to matter if the machine were the
/// cause. Counters or a baseline would tell.
pub(crate) fn lead(facts: &Facts<'_>) -> Option<Lead> {
    let best = facts.slowdowns.first().filter(|s| s.proven_ns().is_none())?;
    let lost = best.lost_ns.max(0.0) as u64;
    let matters = facts.at_least(facts.wanted_pct(lost), &MATTERS);
    (matters.holds() && slower(facts, best).holds()).then(|| Lead {
        class: Class::HardwareBandwidth,
        summary: summary(facts, best),
        command: RECORD.to_owned(),
    })
}

/// Cycles per instruction, and their source.
#[derive(Clone, Copy)]
struct PerInstruction {
    cycles: f64,
    metric: &'static str,
    place: &'static str,
}

impl PerInstruction {
    fn evidence(&self) -> Evidence {
        Evidence::of(self.metric, self.cycles, "cycles", self.place)
    }
}

/// From the trace's own counters, else from the perf stat runs with the most CPUs busy.
fn per_instruction(facts: &Facts<'_>) -> Option<PerInstruction> {
    const USER: &str = "cycles per instruction in user mode";
    if let Some(cycles) = counts(facts.analysis).per_instruction(1) {
        return Some(PerInstruction { cycles, metric: USER, place: Source::Counters.place() });
    }
    let runs = concurrencies(facts.measured);
    let most = runs.last()?;
    let metric = if most.user { USER } else { "cycles per instruction, kernel included" };
    let place = Source::Measured.place();
    Some(PerInstruction { cycles: most.per_instruction(), metric, place })
}

fn summary(facts: &Facts<'_>, s: &Slowdown) -> String {
    let against = match s.source {
        Source::Counters | Source::UserIntervals | Source::Measured | Source::MeasuredElsewhere => {
            "when few CPUs are busy"
        }
        Source::BaselineCounters | Source::BaselineUserIntervals => "in the baseline",
    };
    let times = s.times();
    let what = if s.source.counts() {
        format!(
            "application code takes {times:.1} times as many cycles per instruction as {against}"
        )
    } else {
        format!("application code takes {times:.1} times as long between system calls as {against}")
    };
    let lost = in_cpus(facts, s.lost_ns.max(0.0) as u64);
    let cpus = facts.analysis.cpus;
    match s.proven_ns() {
        Some(_) => format!(
            "{what}: {lost:.1} of {cpus} CPUs are lost to memory, caches or the other hardware \
             thread of each core"
        ),
        None => format!(
            "{what}: memory, caches or the other hardware thread of a core may cost {lost:.1} of \
             {cpus} CPUs"
        ),
    }
}

/// Records what this rule needs; the counters need a machine with a PMU.
const RECORD: &str = "holdup record --counters --duration 10s";

/// Why this cannot be judged, and what would help.
fn missing(facts: &Facts<'_>, cpi: Option<PerInstruction>) -> String {
    match cpi {
        Some(cpi) if cpi.place == Source::Measured.place() => format!(
            "perf stat counted {:.1} cycles per instruction on {:.1} CPUs, but there is no run \
             with fewer CPUs busy to compare with: add one (--counters FEWER=FILE)",
            cpi.cycles,
            concurrencies(facts.measured).last().map_or(0.0, |c| c.cpus),
        ),
        None if !facts.measured.is_empty() => {
            "--counters needs cycles and instructions of a run with few CPUs busy and of a run \
             with many; where perf stat does not say how many CPUs were busy, use --counters \
             CPUS=FILE"
                .to_owned()
        }
        Some(cpi) => format!(
            "an instruction takes {:.1} cycles, but no thread ran both with few CPUs busy and with \
             many: add a baseline of the same work on fewer CPUs (--baseline TRACE)",
            cpi.cycles
        ),
        None => format!(
            "no counters were recorded, and too little work of one kind ran both while few CPUs \
             were busy and while many were: {RECORD}"
        ),
    }
}

/// The threads that lose most.
fn culprits(facts: &Facts<'_>, s: &Slowdown) -> Vec<Culprit> {
    let mut by: Vec<_> =
        s.by.iter().filter(|b| *b.1 >= 1.0).map(|(&slot, &ns)| (slot, ns as u64)).collect();
    by.sort_by_key(|&(slot, ns)| (std::cmp::Reverse(ns), slot));
    by.iter().take(3).map(|&(slot, ns)| facts.culprit("thread", slot, ns)).collect()
}

/// Also the advice of [`crate::metrics`].
pub(crate) fn advice() -> Vec<String> {
    vec![
        "give every thread its own data, in its own cache lines; to see contended cache lines: \
         perf c2c record -a -- sleep 5; perf c2c report"
            .to_owned(),
        "let fewer threads use the memory bus, or work on pieces that fit the caches; to see which \
            loads wait: perf mem record -a -- sleep 5; perf mem report"
            .to_owned(),
        "keep threads near their memory (numactl --cpunodebind --membind), and on different cores \
            rather than on hardware threads of one core"
            .to_owned(),
        "to measure cycles per instruction: holdup run --counters -- COMMAND, once with few \
         threads and once with all".to_owned(),
    ]
}
