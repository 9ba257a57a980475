//! Counts of `perf stat`, supplied with a trace or alone (`--counters`).

use holdup_counters::{Counter, Measurement, Mode, stat::Stat};
use std::collections::BTreeMap;

/// One file of `perf stat`.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Its path.
    pub path: String,
    /// How many CPUs the work kept busy, if the user says so; otherwise perf stat's figure is used.
    pub cpus: Option<f64>,
    /// Its content.
    pub stat: Stat,
}

/// Counts while about this many CPUs were busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Concurrency {
    /// CPUs busy, on average.
    pub cpus: f64,
    /// Cycles of the processors.
    pub cycles: f64,
    /// Instructions completed.
    pub instructions: f64,
    /// Only application code was counted.
    pub user: bool,
}

impl Concurrency {
    /// Cycles per instruction.
    pub fn per_instruction(&self) -> f64 {
        self.cycles / self.instructions
    }
}

/// Every run and interval.
pub(crate) fn measurements(measured: &[Measured]) -> impl Iterator<Item = &Measurement> {
    measured.iter().flat_map(|m| &m.stat.measurements)
}

/// Cycles and instructions by the rounded number of busy CPUs, fewest first: of application code if
/// that was counted, else of all code. Runs with an unknown number of busy CPUs are left out.
pub fn concurrencies(measured: &[Measured]) -> Vec<Concurrency> {
    let of = |mode| by_concurrency(measured, mode);
    let (user, both) = (of(Mode::User), of(Mode::Both));
    if user.len() >= both.len() { user } else { both }
}

fn by_concurrency(measured: &[Measured], mode: Mode) -> Vec<Concurrency> {
    let mut by: BTreeMap<u64, (Concurrency, u32)> = BTreeMap::new();
    for file in measured {
        for m in &file.stat.measurements {
            let counts =
                (m.count_in(Counter::Cycles, mode), m.count_in(Counter::Instructions, mode));
            let (Some(cpus), (Some(cycles), Some(instructions))) =
                (file.cpus.or(m.cpus_busy), counts)
            else {
                continue;
            };
            if cycles <= 0.0 || instructions <= 0.0 {
                continue;
            }
            let user = mode == Mode::User;
            let empty = (Concurrency { cpus: 0.0, cycles: 0.0, instructions: 0.0, user }, 0);
            let (sum, n) = by.entry(cpus.round().max(1.0) as u64).or_insert(empty);
            sum.cpus += cpus;
            sum.cycles += cycles;
            sum.instructions += instructions;
            *n += 1;
        }
    }
    by.into_values().map(|(c, n)| Concurrency { cpus: c.cpus / f64::from(n), ..c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_counters::stat;

    fn file(cpus: Option<f64>, text: &str) -> Measured {
        Measured { path: "f".into(), cpus, stat: stat::parse(text.as_bytes()).unwrap() }
    }

    #[test]
    fn runs_with_as_many_cpus_busy_are_one() {
        let one = "100.0,msec,task-clock,1,100.00,0.98,CPUs utilized\n20,,cycles:u,1,100.00,,\n\
            10,,instructions:u,1,100.00,,\n";
        let four = "60,,cycles:u,1,100.00,,\n10,,instructions:u,1,100.00,,\n";
        let found = concurrencies(&[file(None, one), file(None, one), file(Some(4.0), four)]);
        let figures: Vec<_> = found.iter().map(|c| (c.cpus, c.per_instruction())).collect();
        assert_eq!(figures, [(0.98, 2.0), (4.0, 6.0)]);
        assert!(concurrencies(&[file(None, four)]).is_empty(), "nobody says how many were busy");
    }
}
