//! The same work on 1, 2, 4 … CPUs in repeated rounds: one run per round, which a gate can compare.
//!
//! A round has one recording for each number of CPUs (or threads). Scaling is a ratio within the
//! round: its time on the fewest CPUs to its time on more CPUs. What makes the whole round slower,
//! such as a colder machine or another host, is in both times and cancels out.
//!
//! The round's run is the one on the most CPUs, with the rows of [`Table::Scaling`] added: its
//! waits, locks and ledger say what took the CPUs that did not help.

use crate::metric::{Figure, Metric, Per, Table};
use crate::policy::{Limit, Policy};
use crate::run::Run;
use crate::work::Work;
use std::collections::BTreeMap;

/// Recordings of a side in the order in which they were made, each with its number of CPUs.
pub type Numbered = Vec<(u32, Run)>;

/// Rounds of recordings: the first of each number of CPUs is the first round, and so on.
///
/// # Errors
/// Why they do not form rounds, in words.
pub fn rounds(recordings: Numbered, work: &Work) -> Result<Vec<Run>, String> {
    let mut by_number: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
    for (number, run) in recordings {
        by_number.entry(number).or_default().push(run);
    }
    let each: Vec<(u32, usize)> = by_number.iter().map(|(n, runs)| (*n, runs.len())).collect();
    let [(first, times), .., _] = each[..] else {
        let on =
            each.first().map_or(String::new(), |(n, _)| format!("; all recordings are on {n}"));
        return Err(format!("scaling needs recordings on two or more numbers of CPUs{on}"));
    };
    if let Some((number, other)) = each.iter().find(|(_, n)| *n != times) {
        return Err(format!(
            "--scaling needs equally many recordings on each number of CPUs, but there are {times} \
             on {first} CPUs and {other} on {number} CPUs"
        ));
    }
    let mut folded = Vec::with_capacity(times);
    for round in 0..times {
        let of_round: Vec<(u32, &Run)> =
            by_number.iter().map(|(n, runs)| (*n, &runs[round])).collect();
        folded.push(fold(&of_round, work)?);
    }
    Ok(folded)
}

/// Combine a round into one run.
fn fold(round: &[(u32, &Run)], work: &Work) -> Result<Run, String> {
    let seconds = |run: &Run| match unit(run, work) {
        Some(ns) if ns >= 1.0 => Ok(ns),
        Some(_) => Err(format!("{}: a unit of the work takes less than a nanosecond", run.name)),
        None => Err(format!("--work: {} contains no unit of {work}", run.name)),
    };
    let (fewest, alone) = round[0];
    let alone = seconds(alone)?;
    let mut run = round[round.len() - 1].1.clone();
    for (number, one) in round {
        let time = seconds(one)?;
        let set = |run: &mut Run, measure, value: f64| {
            let measure = Table::Scaling.measures()[measure];
            let figure = Figure { table: Table::Scaling, key: number.to_string(), measure };
            run.figures.set(figure, Some(value.round() as u64));
        };
        set(&mut run, 1, time);
        if *number > fewest {
            let added = f64::from(*number) / f64::from(fewest);
            set(&mut run, 0, alone / time / added * 1e9);
        }
    }
    // What disturbed one recording of a round disturbed the round.
    let worst = round.iter().map(|(_, r)| *r).max_by(|a, b| {
        let pct = |r: &Run| r.others_pct();
        pct(a).total_cmp(&pct(b))
    });
    if let Some(worst) = worst {
        let capacity = run.capacity_ns() as f64;
        run.others = worst.others.clone();
        run.others.ns = (worst.others_pct() / 100.0 * capacity).round() as u64;
    }
    let others = &round[..round.len() - 1];
    for (_, other) in others {
        run.lost_events = run.lost_events.saturating_add(other.lost_events);
        run.lost_chunks = run.lost_chunks.saturating_add(other.lost_chunks);
        run.events = run.events.saturating_add(other.events);
    }
    Ok(run)
}

/// Nanoseconds per unit of work; if none are counted, a recording is the unit.
fn unit(run: &Run, work: &Work) -> Option<f64> {
    let units = if *work == Work::Unknown { 1.0 } else { work.units(run)? };
    Some(run.wall_ns as f64 / units)
}

/// The numbers of CPUs that both sides have, fewest first.
///
/// # Errors
/// Where the sides differ.
pub fn numbers(a: &[(u32, Run)], b: &[(u32, Run)]) -> Result<Vec<u32>, String> {
    let of = |side: &[(u32, Run)]| -> Vec<u32> {
        let mut all: Vec<u32> = side.iter().map(|(n, _)| *n).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (a, b) = (of(a), of(b));
    let words = |n: &[u32]| n.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match a == b {
        true => Ok(a),
        false => Err(format!(
            "both sides need the same numbers of CPUs, but these are {} before and {} after",
            words(&a),
            words(&b)
        )),
    }
}

/// The default policy: the efficiency of the most CPUs decides, by the default limits. It is shown
/// with the efficiency of the other numbers, and the time of the work on each.
pub fn policy(numbers: &[u32]) -> Policy {
    let metric = |number: &u32, measure: usize| Metric::Number {
        figure: Figure {
            table: Table::Scaling,
            key: number.to_string(),
            measure: Table::Scaling.measures()[measure],
        },
        per: Per::Recording,
    };
    let (first, added) = numbers.split_first().unwrap_or((&1, &[]));
    let mut policy = Policy::of(metric(added.last().unwrap_or(first), 0));
    let between = added.iter().rev().skip(1).map(|n| metric(n, 0));
    let times = numbers.iter().map(|n| metric(n, 1));
    let own: Vec<Limit> = between.chain(times).map(Limit::of).collect();
    policy.inform.splice(0..0, own);
    policy
}

/// The metrics of the time on the fewest CPUs and on those whose efficiency this is. `None` for any
/// other metric.
pub(crate) fn times_of(metric: &Metric, round: &Run) -> Option<(Metric, Metric)> {
    let Metric::Number { figure, .. } = metric else { return None };
    let [efficiency, time] = Table::Scaling.measures() else { return None };
    if figure.table != Table::Scaling || figure.measure != *efficiency {
        return None;
    }
    let of_time = round.figures.iter().filter(|(f, _)| f.table == Table::Scaling);
    let numbers = of_time.filter_map(|(f, _)| f.key.parse::<u32>().ok());
    let metric = |key: String| Metric::Number {
        figure: Figure { table: Table::Scaling, key, measure: *time },
        per: Per::Recording,
    };
    Some((metric(numbers.min()?.to_string()), metric(figure.key.clone())))
}
