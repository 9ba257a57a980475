//! Evidence from hardware counters: what was counted, how well, and what could not be.

use crate::facts::Facts;
use crate::measured::{Measured, concurrencies, measurements};
use crate::report::Evidence;
use holdup_attribution::limits::ENOUGH;
use holdup_counters::{Bandwidth, Counter, Mode, Tally};

/// The source name of a trace's own counters.
const TRACE: &str = "counters";
/// The source name of `--counters`.
const STAT: &str = "perf stat";

/// What the trace's own counters show, then what was measured in other runs.
pub(crate) fn evidence(facts: &Facts<'_>) -> Vec<Evidence> {
    let mut found = of_trace(facts);
    found.extend(of_measured(facts.measured));
    found
}

fn of_trace(facts: &Facts<'_>) -> Vec<Evidence> {
    let user = facts.analysis.counted(Mode::User);
    let both = facts.analysis.counted(Mode::Both);
    let kernel = facts.analysis.counted(Mode::Kernel);
    let mut found = Vec::new();
    match (user.cycles_per_instruction(), both.cycles_per_instruction()) {
        (Some(cpi), _) => found.push(per_cycle(whose(true), cpi, TRACE)),
        (None, Some(cpi)) => found.push(per_cycle(whose(false), cpi, TRACE)),
        (None, None) => {}
    }
    found.extend(under_concurrency(facts));
    let own = if user.cycles_per_instruction().is_some() { user } else { both };
    found.extend(own.misses_per_1000().map(|n| misses(n, TRACE)));
    found.extend(own.stalled_pct().map(|pct| stalled(pct, TRACE)));
    // Memory traffic includes the kernel's.
    let all = user.with(&kernel);
    let carried = both.bandwidth(facts.wall).or_else(|| all.bandwidth(facts.wall));
    found.extend(carried.map(|b| traffic(b, TRACE)));
    if let Some(ran) = facts.analysis.counters_ran() {
        let pct = ran.running_ns as f64 * 100.0 / ran.enabled_ns as f64;
        found.extend(multiplexed(pct, TRACE));
    }
    found
}

/// Instructions per cycle and the share of cycles lost to waiting, by number of busy CPUs; only if
/// that varies.
fn under_concurrency(facts: &Facts<'_>) -> Vec<Evidence> {
    let levels = facts.analysis.counted_by_concurrency(Mode::User);
    let samples = facts.limit(&ENOUGH) as u64;
    let mut found = Vec::new();
    let mut known = 0;
    for (level, upto) in levels.iter().zip(["a quarter", "half", "three quarters", "all"]) {
        let Some(cpi) = level.per_instruction(samples) else { continue };
        known += 1;
        let concurrency = format!("with up to {upto} of the other CPUs busy");
        found.push(per_cycle(&concurrency, cpi, TRACE));
        found.extend(level.stalled_pct().map(|pct| {
            Evidence::of(
                format!("cycles in which execution stalled, {concurrency}"),
                pct,
                "%",
                TRACE,
            )
        }));
    }
    if known > 1 { found } else { Vec::new() }
}

/// What `perf stat` counted with the most CPUs busy, its figures by concurrency, and what it could
/// not count.
pub(crate) fn of_measured(measured: &[Measured]) -> Vec<Evidence> {
    let mut found: Vec<Evidence> = concurrencies(measured)
        .iter()
        .map(|c| {
            let whose = whose(c.user);
            per_cycle(&format!("{:.1} CPUs busy, {whose}", c.cpus), c.per_instruction(), STAT)
        })
        .collect();
    let busiest = |a: &(Option<f64>, _), b: &(Option<f64>, _)| {
        a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0))
    };
    let runs = measured
        .iter()
        .flat_map(|f| f.stat.measurements.iter().map(|m| (f.cpus.or(m.cpus_busy), m)));
    if let Some((_, m)) = runs.max_by(busiest) {
        if found.is_empty() {
            let whose = whose(m.is_of_application());
            found.extend(m.cycles_per_instruction().map(|cpi| per_cycle(whose, cpi, STAT)));
        }
        found.extend(m.misses_per_1000().map(|n| misses(n, STAT)));
        found.extend(m.stalled_pct().map(|pct| stalled(pct, STAT)));
        found.extend(m.bandwidth().map(|b| traffic(b, STAT)));
    }
    let least = measurements(measured).filter_map(|m| m.running_pct()).reduce(f64::min);
    found.extend(least.and_then(|pct| multiplexed(pct, STAT)));
    for &counter in Counter::ALL {
        let why = measurements(measured).find_map(|m| m.missing(counter));
        let never = !measurements(measured).any(|m| m.count(counter).is_some());
        if let Some(why) = why.filter(|_| never) {
            let row = Evidence::of(format!("{counter}: {why}"), 0.0, "", STAT);
            found.push(Evidence { value: None, ..row });
        }
    }
    found
}

fn whose(user: bool) -> &'static str {
    if user { "in user mode" } else { "kernel included" }
}

fn per_cycle(which: &str, cycles_per_instruction: f64, source: &'static str) -> Evidence {
    let metric = format!("instructions per cycle, {which}");
    Evidence::of(metric, 1.0 / cycles_per_instruction, "instructions", source)
}

fn misses(per_1000: f64, source: &'static str) -> Evidence {
    Evidence::of("cache misses per 1000 instructions", per_1000, "misses", source)
}

fn stalled(pct: f64, source: &'static str) -> Evidence {
    Evidence::of("cycles with stalled execution", pct, "% of cycles", source)
}

fn traffic(b: Bandwidth, source: &'static str) -> Evidence {
    let metric = if b.estimated {
        "memory traffic, estimated as 64 bytes per cache miss"
    } else {
        "memory traffic, as the memory controllers counted it"
    };
    Evidence::of(metric, b.bytes_per_s / 1e9, "GB/s", source)
}

/// Counter multiplexing; `None` if the counters ran all the time.
fn multiplexed(running_pct: f64, source: &'static str) -> Option<Evidence> {
    let metric = "part of the time in which the counters counted; the rest is estimated, because \
                  the counters were multiplexed";
    (running_pct < 100.0).then(|| Evidence::of(metric, running_pct, "% of time", source))
}
