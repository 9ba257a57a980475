//! How much slower the application's own code runs when more CPUs are busy: five estimates.
//!
//! In this order of trust:
//! 1. **counters**: cycles per instruction of a thread when many CPUs are busy, compared with when
//!    few are;
//! 2. **counters of a baseline** with fewer busy CPUs: cycles per instruction, compared with
//!    threads of the same name;
//! 3. **runs of `perf stat`** with few CPUs busy and with many: their cycles per instruction
//!    compared;
//! 4. **user-mode intervals of a baseline**: the typical time between two system calls, compared
//!    with threads of the same name;
//! 5. **user-mode intervals**: the typical time between two system calls of a thread when many CPUs
//!    are busy, compared with when few are. It proves nothing: many things make user-mode intervals
//!    longer.
//!
//! All but `perf stat` compare a thread with itself or with threads of the same name, because
//! different work proves nothing.

use crate::comparison::{Slowdown, Source};
use crate::facts::Facts;
use crate::measured::concurrencies;
use holdup_attribution::limits::{ENOUGH, MATTERS};
use holdup_attribution::{Total, ledger};
use holdup_counters::Counter;
use holdup_passes::{Analysis, Counts, IntervalsOfCall, Lengths, Slot};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Every estimate that has enough data, most trusted first.
pub(crate) fn slowdowns(facts: &Facts<'_>) -> Vec<Slowdown> {
    let mut found = vec![by_counters(facts)];
    let cpus = |busy_ns: u64, wall_ns: u64| busy_ns as f64 / wall_ns.max(1) as f64;
    let busy = cpus(facts.total(Total::Busy), facts.wall);
    let is_fewer = |b: &&Analysis| cpus(ledger::busy_ns(b), b.wall_ns()) <= busy * fewer(facts);
    let base = facts.baseline.filter(is_fewer);
    found.extend(base.map(|base| against_counters(facts, base)));
    found.extend(by_measured(facts, busy));
    // If other calls were recorded, the intervals between them differ.
    let alike = |base: &&Analysis| base.capabilities.syscalls == facts.caps.syscalls;
    found.extend(base.filter(alike).map(|base| against_user_intervals(facts, base)));
    found.push(by_user_intervals(facts));
    found.retain(|s| s.taken_ns > 0.0);
    found
}

/// Cycles, instructions and the other counts of all application code.
pub(crate) fn counts(analysis: &Analysis) -> Counts {
    analysis.counters().flat_map(|(_, levels)| levels).fold(Counts::default(), Counts::with)
}

fn by_counters(facts: &Facts<'_>) -> Slowdown {
    let mut s = Slowdown::of(Source::Counters);
    let samples = facts.limit(&ENOUGH) as u64;
    for (slot, levels) in facts.analysis.counters() {
        let cycles: u64 = levels.iter().map(|c| c.get(Counter::Cycles)).sum();
        let cost = facts.thread(slot).user_ns as f64 / cycles.max(1) as f64;
        let mut known = levels.iter().filter_map(|c| {
            Some((c.per_instruction(samples)?, c.get(Counter::Cycles) as f64 * cost))
        });
        let Some((alone, alone_ns)) = known.next() else { continue };
        let mut more = false;
        for (cpi, ns) in known {
            s.add(slot, ns, ns * (1.0 - alone / cpi));
            more = true;
        }
        s.covered_ns += if more { alone_ns } else { 0.0 };
    }
    s
}

/// The `perf stat` runs with the most CPUs busy compared with those with the fewest. They measure
/// the traced work if they kept about as many busy; then the time lost is the trace's.
fn by_measured(facts: &Facts<'_>, busy: f64) -> Option<Slowdown> {
    let runs = concurrencies(facts.measured);
    let (few, many) = (runs.first()?, runs.last()?);
    let part = fewer(facts);
    if few.cpus > many.cpus * part {
        return None;
    }
    let alike = (busy * part..=busy / part).contains(&many.cpus);
    let source = if alike { Source::Measured } else { Source::MeasuredElsewhere };
    let user = facts.application() as f64;
    let lost_ns = user * (1.0 - few.per_instruction() / many.per_instruction());
    Some(Slowdown { covered_ns: user, taken_ns: user, lost_ns, ..Slowdown::of(source) })
}

fn by_user_intervals(facts: &Facts<'_>) -> Slowdown {
    let mut s = Slowdown::of(Source::UserIntervals);
    for (slot, _, user_intervals) in alike(facts.analysis) {
        let mut levels = user_intervals
            .levels()
            .map(|(_, l)| l)
            .filter(|l| facts.judged.thresholds.enough(l.count, &ENOUGH));
        let Some(few) = levels.next().filter(|l| comparable(facts, l)) else { continue };
        let mut more = false;
        for many in levels.filter(|l| comparable(facts, l)) {
            s.add(slot, typical_ns(many), typical_ns(many) * beyond(few, many));
            more = true;
        }
        s.covered_ns += if more { typical_ns(few) } else { 0.0 };
    }
    s
}

fn against_counters(facts: &Facts<'_>, base: &Analysis) -> Slowdown {
    let mut namesakes: BTreeMap<Vec<u8>, Counts> = BTreeMap::new();
    for (slot, levels) in base.counters() {
        let sum = namesakes.entry(role_of(base, slot)).or_default();
        *sum = levels.iter().fold(*sum, Counts::with);
    }
    let mut s = Slowdown::of(Source::BaselineCounters);
    let samples = facts.limit(&ENOUGH) as u64;
    for (slot, levels) in facts.analysis.counters() {
        let here = levels.iter().fold(Counts::default(), Counts::with).per_instruction(samples);
        let there =
            namesakes.get(&role_of(facts.analysis, slot)).and_then(|c| c.per_instruction(samples));
        if let (Some(here), Some(there)) = (here, there) {
            let ns = facts.thread(slot).user_ns as f64;
            s.add(slot, ns, ns * (1.0 - there / here));
        }
    }
    s
}

fn against_user_intervals(facts: &Facts<'_>, base: &Analysis) -> Slowdown {
    let mut namesakes: BTreeMap<(Vec<u8>, u32), Lengths> = BTreeMap::new();
    for (slot, nr, user_intervals) in alike(base) {
        let all = namesakes.entry((role_of(base, slot), nr)).or_default();
        user_intervals.levels().for_each(|(_, l)| all.merge(l));
    }
    let mut s = Slowdown::of(Source::BaselineUserIntervals);
    for (slot, nr, user_intervals) in alike(facts.analysis) {
        let Some(there) =
            namesakes.get(&(role_of(facts.analysis, slot), nr)).filter(|l| comparable(facts, l))
        else {
            continue;
        };
        let mut here = Lengths::default();
        user_intervals.levels().for_each(|(_, l)| here.merge(l));
        if comparable(facts, &here) {
            s.add(slot, typical_ns(&here), typical_ns(&here) * beyond(there, &here));
        }
    }
    s
}

/// User-mode intervals that are the same piece of work each time. Those that lead to a futex are
/// not: only a thread that finds a mutex taken calls it, so under concurrency a thread gets less
/// far between two such calls.
fn alike(analysis: &Analysis) -> impl Iterator<Item = (Slot, u32, &IntervalsOfCall)> {
    let futex = |nr: u32| analysis.call_kind(nr).is_library();
    analysis.user_intervals().into_iter().filter(move |s| !futex(s.1))
}

fn role_of(analysis: &Analysis, slot: Slot) -> Vec<u8> {
    analysis.role(analysis.thread(slot))
}

/// In shorter intervals the recorder's overhead is a large part: 0.2 to 1 us per event. In longer
/// ones a hypervisor takes the CPU away, 0.75 to 4 ms at a time, from the typical one too.
const COMPARABLE_US: RangeInclusive<f64> = 10.0..=1000.0;

/// With nearly as many CPUs busy there is no other concurrency to compare with.
fn fewer(facts: &Facts<'_>) -> f64 {
    1.0 - facts.limit(&MATTERS) / 100.0
}

fn comparable(facts: &Facts<'_>, l: &Lengths) -> bool {
    let us = l.quantile(0.5) / 1000.0;
    facts.judged.thresholds.enough(l.count, &ENOUGH) && COMPARABLE_US.contains(&us)
}

/// Time of the user-mode intervals if each were typical: what changes only the mean is not caused
/// by the machine.
fn typical_ns(l: &Lengths) -> f64 {
    l.quantile(0.5) * l.count as f64
}

/// The part of the typical user-mode interval of `many` that exceeds the one of `few`. A slow
/// machine slows every interval down, so the shorter ones (the first quarter) must be longer in
/// proportion; with another mixture of long and short pieces they are not.
fn beyond(few: &Lengths, many: &Lengths) -> f64 {
    let times = |part| many.quantile(part) / few.quantile(part).max(1.0);
    let (typical, shorter) = (times(0.5), times(0.25));
    let times =
        if typical > 1.0 { typical.min(shorter.max(1.0)) } else { typical.max(shorter.min(1.0)) };
    1.0 - 1.0 / times
}
