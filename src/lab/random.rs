//! `holdup lab prove --random`: many short runs of random strength, to see from which strength on
//! the bottleneck becomes the verdict.

use super::say::{say, table, times};
use super::trial::{Trial, Tried};
use crate::exit::Result;
use holdup_lab::{HEALTHY, Unit, Workload};
use std::io::{self, Write};
use std::path::Path;

/// How often each variant runs untraced, and for how long; and how long it is recorded.
const RUNS: usize = 3;
const UNTRACED: &str = "200ms";
const RECORDED: &str = "400ms";

/// Random numbers that start from a seed: `xorshift64*`.
struct Dice(u64);

impl Dice {
    /// A random number from 0 to 1.
    fn throw(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The parameter that makes a workload's bottleneck strong, and the range of its random values.
///
/// Other times of work stay unchanged, so that only the strength differs.
const STRENGTH: &[(&str, Unit, f64, f64)] = &[
    ("hold", Unit::Time, 5e3, 1e6),
    ("service", Unit::Time, 5e3, 5e5),
    ("serial", Unit::Time, 5e4, 5e6),
    ("skew", Unit::Percent, 2.0, 400.0),
    ("share", Unit::Percent, 30.0, 120.0),
    ("each", Unit::Count, 1.0, 300.0),
];

/// Settings of random strength; `None` for a workload without a strength or a fixed variant.
fn strength(workload: &Workload, dice: &mut Dice) -> Option<Vec<String>> {
    if !workload.has_twin() {
        return None;
    }
    let known = |key: &str| workload.params.iter().any(|param| param.key == key);
    let &(key, unit, least, most) = STRENGTH.iter().find(|(key, ..)| known(key))?;
    let value = least * (most / least).powf(dice.throw());
    let mut set = vec![format!("{key}={}", value.round())];
    if unit == Unit::Time && known("think") {
        // Between a tenth of the strength and ten times as much.
        let think = value * 10_f64.powf(2.0 * dice.throw() - 1.0);
        set.push(format!("think={}", think.round()));
    }
    Some(set)
}

/// Run the workloads, each equally often.
pub(super) fn run(
    workloads: &[&'static Workload],
    number: u32,
    seed: u64,
    folder: &Path,
    quiet: bool,
) -> Result<Vec<Tried>> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let able: Vec<_> =
        workloads.iter().filter(|w| strength(w, &mut Dice(1)).is_some()).copied().collect();
    let mut rows = Vec::new();
    for i in 0..number {
        if able.is_empty() {
            break;
        }
        let workload = able[(dice.throw() * able.len() as f64) as usize % able.len()];
        let Some(set) = strength(workload, &mut dice) else { continue };
        say(&format!("{} of {number}: {} {}", i + 1, workload.name, set.join(" ")), quiet);
        let trial = Trial {
            workload,
            set,
            runs: RUNS,
            untraced: UNTRACED,
            recorded: RECORDED,
            folder,
            stem: format!("random-{seed}-{i}"),
            fixed_too: false,
        };
        rows.push(trial.run()?);
    }
    Ok(rows)
}

/// Steps of what the fixed variants gained; each step begins where the previous one ends.
const STEPS: [f64; 9] = [1.02, 1.05, 1.08, 1.12, 1.15, 1.2, 1.3, 1.6, f64::INFINITY];

/// How often the bottleneck was the verdict, by what the fixed variant gained.
pub(super) fn write_text(out: &mut dyn Write, rows: &[Tried]) -> io::Result<()> {
    let head = ["variant gained", "runs", "the class caused", "healthy", "another"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let mut from = f64::NEG_INFINITY;
    for to in STEPS {
        let within = |row: &&Tried| row.gained.is_some_and(|gained| gained >= from && gained < to);
        let rows: Vec<_> = rows.iter().filter(within).collect();
        let made = rows.iter().filter(|row| row.is_found()).count();
        let healthy = rows.iter().filter(|row| row.verdict.class == HEALTHY).count();
        let name = match (from.is_finite(), to.is_finite()) {
            (false, _) => format!("below {}", times(to)),
            (true, true) => format!("{} to {}", times(from), times(to)),
            (true, false) => format!("from {}", times(from)),
        };
        let other = rows.len() - made - healthy;
        let numbers = [rows.len(), made, healthy, other].map(|n| n.to_string());
        lines.push(std::iter::once(name).chain(numbers).collect());
        from = to;
    }
    table(out, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_lab::WORKLOADS;

    #[test]
    fn random_settings_are_ones_that_workloads_understand() {
        let mut dice = Dice(1);
        let able = WORKLOADS.iter().filter_map(|w| Some((w, strength(w, &mut dice)?)));
        let mut number = 0;
        for (workload, set) in able {
            let changes: Vec<_> = set.iter().map(|s| holdup_lab::halves(s).unwrap()).collect();
            let settings = workload.settings(true, changes);
            assert!(settings.is_ok(), "{}: {settings:?}", workload.name);
            number += 1;
        }
        assert!(number > 12);
    }

    #[test]
    fn one_seed_throws_the_same_numbers_each_time_and_another_other_ones() {
        let throw = |seed| {
            let mut dice = Dice(seed);
            [0; 4].map(|_| dice.throw().to_bits())
        };
        assert_eq!(throw(3), throw(3));
        assert_ne!(throw(3), throw(4));
    }
}
