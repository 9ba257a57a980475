//! The same work on 1, 2, 4 … CPUs: how much each added CPU helped.
//!
//! The ladder itself needs only times ([`holdup_model::Ladder`]). If recordings are given, their
//! ledgers say which leaves took the CPUs that did not help, and their system calls whether the
//! kernel's code path is longer on more CPUs.

use crate::metric::{Figure, Table};
use crate::run::Run;
use crate::stats::bootstrap::ratio_of_medians;
use crate::stats::spread::median;
use crate::work::Work;
use holdup_model::{Ladder, Rung, Usl};
use std::collections::BTreeMap;

/// What is known of the work on one number of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// The time of the work, in seconds.
    Time(f64),
    /// Work per second.
    Throughput(f64),
    /// Its recordings.
    Runs(Vec<Run>),
}

/// A number of CPUs with what is known of the work on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// CPUs.
    pub cpus: u32,
    /// The measurement.
    pub known: Known,
}

/// The result for a ladder.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// A row for each number of CPUs, fewest first.
    pub rows: Vec<Row>,
    /// Amdahl's serial fraction over all rows; `None` with one row, or without a row for one CPU.
    pub amdahl: Option<f64>,
    /// The universal scalability law; `None` with fewer than three rows.
    pub usl: Option<Usl>,
    /// What took the CPUs that did not help: for every row with recordings but the first, the
    /// leaves of the ledger, largest first. Empty if the first row has no recordings.
    pub leaves: Vec<Leaf>,
    /// The kernel's CPU time per system call compared with the first row, the most expensive calls
    /// first. Empty if the recordings have no system calls.
    pub calls: Vec<Call>,
}

/// The work on one number of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// CPUs.
    pub cpus: u32,
    /// Seconds for the work, or for a unit of it; the median of several runs.
    pub seconds: f64,
    /// The speed relative to the first row.
    pub speedup: f64,
    /// The fraction of the CPUs that helped, if all of the first row's did.
    pub efficiency: f64,
    /// CPUs that did not help: CPUs x (1 - efficiency). Below 0 if the work became less.
    pub lost_cpus: f64,
    /// Karp and Flatt's serial fraction.
    pub serial_fraction: Option<f64>,
    /// The speedup that the universal scalability law gives here.
    pub usl_speedup: Option<f64>,
    /// Context switches for the work, or for a unit of it.
    pub switches: Option<f64>,
    /// The speedup without the serial set-up; `None` if no set-up is known.
    pub without_setup: Option<WithoutSetup>,
}

/// The work without its serial set-up, which more CPUs do not shorten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WithoutSetup {
    /// Seconds of the set-up.
    pub setup: f64,
    /// The speed of the rest relative to the rest of the first row.
    pub speedup: f64,
}

/// A leaf of the ledger on one number of CPUs, compared with the first row.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// CPUs.
    pub cpus: u32,
    /// Its path: `idle/thread-sync`.
    pub path: String,
    /// CPUs that it takes beyond the CPU-seconds of the first row. With one recording per row, the
    /// leaves of a row add up to its `lost_cpus`. With several they do so roughly: leaves are
    /// means, because only means add up, and the time of a row is a median.
    pub lost_cpus: f64,
}

/// The kernel's CPU time of a system call on one number of CPUs, compared with the first row.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// CPUs.
    pub cpus: u32,
    /// The call; `None` for all together, each as often as in the first row.
    pub name: Option<String>,
    /// CPU time of one in the first row, in nanoseconds; of all together for `None`.
    pub first_ns: f64,
    /// CPU time of one in this row, in nanoseconds.
    pub here_ns: f64,
    /// 95 % interval of the ratio of the two; `None` with fewer than three runs on either side.
    pub interval: Option<(f64, Option<f64>)>,
}

impl Call {
    /// The CPU time relative to the first row's.
    pub fn ratio(&self) -> f64 {
        self.here_ns / self.first_ns
    }
}

/// Judge a ladder. `setup` is the serial set-up in each of its times, in seconds, if the user knows
/// it; recordings show it themselves.
///
/// # Errors
/// What is wrong with the ladder, in words.
pub fn scaling(mut steps: Vec<Step>, work: &Work, setup: Option<f64>) -> Result<Scaling, String> {
    steps.sort_by_key(|s| s.cpus);
    let seconds: Vec<f64> = steps.iter().map(|s| s.seconds(work)).collect::<Result<_, _>>()?;
    let rungs = steps.iter().zip(&seconds).map(|(s, &time)| Rung { cpus: s.cpus, time }).collect();
    let ladder = Ladder::new(rungs).ok_or("each number of CPUs must be given only once")?;
    let usl = Usl::fit(&ladder);
    let rests = without_setup(&steps, &seconds, work, setup)?;
    let one = usl.map(|law| law.throughput(f64::from(ladder.rungs()[0].cpus)));
    let rungs = ladder.rungs().iter().zip(&steps).zip(rests);
    let rows = rungs.map(|((&rung, step), without_setup)| {
        let cpus = f64::from(rung.cpus);
        let efficiency = ladder.efficiency(rung);
        Row {
            cpus: rung.cpus,
            seconds: rung.time,
            speedup: ladder.speedup(rung),
            efficiency,
            lost_cpus: cpus * (1.0 - efficiency),
            serial_fraction: ladder.serial_fraction(rung),
            usl_speedup: usl.zip(one).map(|(law, one)| law.throughput(cpus) / one),
            switches: step.switches(work),
            without_setup,
        }
    });
    Ok(Scaling {
        rows: rows.collect(),
        amdahl: ladder.amdahl(),
        usl,
        leaves: leaves(&steps, &seconds, work),
        calls: calls(&steps),
    })
}

impl Step {
    /// The recordings; empty if only a time or a rate is known.
    pub fn runs(&self) -> &[Run] {
        if let Known::Runs(runs) = &self.known { runs } else { &[] }
    }

    /// Seconds for the work, or for a unit of it.
    fn seconds(&self, work: &Work) -> Result<f64, String> {
        let seconds = match &self.known {
            Known::Time(seconds) => *seconds,
            Known::Throughput(rate) => 1.0 / rate,
            Known::Runs(runs) => {
                if let Some(other) = runs.iter().find(|r| r.setting.cpus != self.cpus) {
                    let (name, cpus) = (&other.name, other.setting.cpus);
                    return Err(format!("{}={name}: the recording is of {cpus} CPUs", self.cpus));
                }
                let each = runs.iter().map(|r| Ok(r.wall_ns as f64 * 1e-9 / units(r, work)?));
                median(&each.collect::<Result<Vec<_>, String>>()?).unwrap_or(f64::NAN)
            }
        };
        match seconds > 0.0 && seconds.is_finite() {
            true => Ok(seconds),
            false => Err(format!("on {} CPUs the work took no time", self.cpus)),
        }
    }

    /// Seconds of serial set-up, the median over the recordings; `None` if one does not show it.
    fn setup(&self) -> Option<f64> {
        let each = self.runs().iter().map(|run| Some(run.setup_ns? as f64 * 1e-9));
        median(&each.collect::<Option<Vec<_>>>()?)
    }

    /// Context switches for the work, or for a unit of it: the median over the runs.
    fn switches(&self, work: &Work) -> Option<f64> {
        let each = self.runs().iter().map(|run| {
            let all = run.figures.number(Table::Switches, "", "all")?;
            Some(all as f64 / units(run, work).ok()?)
        });
        median(&each.collect::<Option<Vec<_>>>()?)
    }
}

/// Each step without its serial set-up; all `None` if no set-up is known.
///
/// # Errors
/// The set-up that the user gives takes longer than a step.
fn without_setup(
    steps: &[Step],
    seconds: &[f64],
    work: &Work,
    given: Option<f64>,
) -> Result<Vec<Option<WithoutSetup>>, String> {
    if let Some(setup) = given
        && let Some((step, time)) = steps.iter().zip(seconds).find(|(_, time)| **time <= setup)
    {
        let cpus = step.cpus;
        return Err(format!(
            "on {cpus} CPUs the work with its set-up took {time} s, which is not more than the \
             set-up alone ({setup} s)"
        ));
    }
    let mut setups: Vec<Option<f64>> = match (given, work) {
        (Some(_), _) => vec![given; steps.len()],
        (None, Work::Unknown) => steps.iter().map(Step::setup).collect(),
        // A unit of work has no set-up of its own.
        (None, _) => vec![None; steps.len()],
    };
    // On one CPU a set-up looks like the rest. It is serial, so it takes as long as on more CPUs.
    if let [first @ None, Some(next), ..] = setups.as_mut_slice()
        && steps[0].cpus == 1
        && *next < seconds[0]
    {
        *first = Some(*next);
    }
    let rest = |i: usize| Some(seconds[i] - setups[i]?).filter(|rest| *rest > 0.0);
    let some = setups.iter().flatten().any(|&setup| setup > 0.0);
    let of = |i: usize| {
        let (first, here) = (rest(0)?, rest(i)?);
        some.then_some(WithoutSetup { setup: setups[i]?, speedup: first / here })
    };
    Ok((0..steps.len()).map(of).collect())
}

/// Units of work of a run: 1 if they are not counted, so that a recording is the unit.
fn units(run: &Run, work: &Work) -> Result<f64, String> {
    match work {
        Work::Unknown => Ok(1.0),
        work => work.units(run).ok_or(format!("--work: {} contains no unit of {work}", run.name)),
    }
}

/// CPU-seconds of each leaf for the work, or for a unit of it: means over the runs, because only
/// means add up.
fn ledger(step: &Step, work: &Work) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    let runs = step.runs();
    for run in runs {
        let nodes: Vec<(&Figure, u64)> = (run.figures.iter())
            .filter(|(f, _)| f.table == Table::Ledger)
            .filter_map(|(f, v)| Some((f, v?)))
            .collect();
        for (figure, ns) in &nodes {
            let inside = format!("{}.", figure.key);
            if nodes.iter().any(|(f, _)| f.key.starts_with(&inside)) {
                continue;
            }
            let per_run = *ns as f64 * 1e-9 / units(run, work).unwrap_or(1.0);
            *sums.entry(figure.key.replace('.', "/")).or_default() += per_run / runs.len() as f64;
        }
    }
    sums
}

fn leaves(steps: &[Step], seconds: &[f64], work: &Work) -> Vec<Leaf> {
    let first = ledger(&steps[0], work);
    if first.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (step, seconds) in steps.iter().zip(seconds).skip(1) {
        let here = ledger(step, work);
        let mut of_step: Vec<Leaf> = first
            .keys()
            .chain(here.keys().filter(|k| !first.contains_key(*k)))
            .filter(|_| !here.is_empty())
            .map(|path| {
                let spent = |l: &BTreeMap<String, f64>| l.get(path).copied().unwrap_or(0.0);
                let lost_cpus = (spent(&here) - spent(&first)) / seconds;
                Leaf { cpus: step.cpus, path: path.clone(), lost_cpus }
            })
            .collect();
        of_step.sort_by(|a, b| b.lost_cpus.total_cmp(&a.lost_cpus));
        all.append(&mut of_step);
    }
    all
}

/// CPU nanoseconds of one call in each run that made it.
fn each_call(step: &Step, name: &str) -> Vec<f64> {
    let each = step.runs().iter().filter_map(|run| {
        let number = |measure| run.figures.number(Table::Syscalls, name, measure);
        let count = number("count").filter(|n| *n > 0)?;
        Some(number("cpu")? as f64 / count as f64)
    });
    each.filter(|ns| *ns > 0.0).collect()
}

/// How often each call was made in all runs.
fn often(runs: &[Run]) -> BTreeMap<&str, f64> {
    let count = Table::Syscalls.measure("count");
    let mut often: BTreeMap<&str, f64> = BTreeMap::new();
    for (figure, n) in runs.iter().flat_map(|run| run.figures.iter()) {
        if figure.table == Table::Syscalls && Some(figure.measure) == count {
            *often.entry(&figure.key).or_default() += n.unwrap_or(0) as f64;
        }
    }
    often
}

fn calls(steps: &[Step]) -> Vec<Call> {
    let runs = steps[0].runs();
    let of_first: Vec<(&str, f64, Vec<f64>)> = (often(runs).into_iter())
        .map(|(name, times)| (name, times, each_call(&steps[0], name)))
        .collect();
    let mut all = Vec::new();
    for step in &steps[1..] {
        let mut of_step = Vec::new();
        let (mut first_sum, mut here_sum) = (0.0, 0.0);
        for (name, times, first) in &of_first {
            let here = each_call(step, name);
            let (Some(first_ns), Some(here_ns)) = (median(first), median(&here)) else {
                continue;
            };
            first_sum += first_ns * times;
            here_sum += here_ns * times;
            let interval = ratio_of_medians(first, &here, 0.95).map(|i| (i.low, i.high));
            let name = Some((*name).to_owned());
            let call = Call { cpus: step.cpus, name, first_ns, here_ns, interval };
            of_step.push(((here_ns - first_ns) * times, call));
        }
        if of_step.is_empty() {
            continue;
        }
        of_step.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (first_ns, here_ns) = (first_sum / runs.len() as f64, here_sum / runs.len() as f64);
        all.push(Call { cpus: step.cpus, name: None, first_ns, here_ns, interval: None });
        all.extend(of_step.into_iter().map(|(_, call)| call));
    }
    all
}
