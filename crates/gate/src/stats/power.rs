//! Which change a number of runs can detect: the power of the gate's decision, by simulation.
//!
//! The simulated decision is the gate's: the rank test reaches the level, *and* the median grew by
//! the least change that matters. Runs are drawn from the given values with replacement and
//! smoothed: each gets normal noise of Silverman's bandwidth, after which all are scaled so that
//! their variance is the sample's (Silverman and Young, "The bootstrap: to smooth or not to
//! smooth?", 1987). Without smoothing ten values would have many ties, and too small a variance.
//! Fewer than five values say little about their distribution, so the runs are drawn from a normal
//! distribution with their spread.
//!
//! All draws begin at the same seed, and a larger change only multiplies the same draws. So the
//! curve never falls, and two calls give the same bytes. With 1,000 repetitions a probability of
//! 0.8 has a standard error of 0.013.

use super::generator::Generator;
use super::spread::{deviation, mean, middle, sorted};
use super::{pairs, ranks};

const REPETITIONS: usize = 1000;
const SEED: u64 = 0x50e7;
/// Fewer values are taken to be normal.
const ENOUGH: usize = 5;
/// The largest number of runs per side that is ever proposed.
const MOST_RUNS: usize = 100;
/// The largest change tried, + 1000 %.
const LARGEST: f64 = 10.0;

/// How runs differ although nothing changed, which also determines how they are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise<'a> {
    /// Values of runs of one version: two independent sides are drawn like them, and compared by
    /// [`ranks::greater`].
    Runs(&'a [f64]),
    /// Ratios b/a of interleaved pairs, such as [`pairs::ratios`]: pairs are drawn like them,
    /// centred on no change, and compared by [`pairs::greater`].
    Ratios(&'a [f64]),
    /// Two independent sides of normal values with this spread relative to their mean.
    Normal(f64),
}

/// When the gate says "regressed".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// The largest p-value, one-sided.
    pub alpha: f64,
    /// The least relative growth of the median (of the median ratio of pairs), 0.05 for 5 %.
    pub least: f64,
}

/// The runs of each side. There are as many pairs as the smaller number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// Runs of the baseline.
    pub a: usize,
    /// Runs of the version that is judged.
    pub b: usize,
}

impl Runs {
    /// The same number of runs on both sides.
    pub fn each(n: usize) -> Runs {
        Runs { a: n, b: n }
    }
}

/// The probability that a change of `change` (0.25 for + 25 %, above -1) makes the gate say
/// "regressed": 0 to 1. 0 if the test can never reach `alpha` with this few runs. With a change of
/// 0 it is the rate of false alarms.
///
/// `None` if the values do not show the spread: fewer than two, a mean not above 0, or ratios that
/// are not above 0.
pub fn chance(noise: Noise<'_>, change: f64, runs: Runs, ask: &Ask) -> Option<f64> {
    Some(Simulation::of(noise, runs, ask)?.chance(change))
}

/// The [`chance`] of each of these changes.
pub fn curve(noise: Noise<'_>, changes: &[f64], runs: Runs, ask: &Ask) -> Option<Vec<f64>> {
    let simulation = Simulation::of(noise, runs, ask)?;
    Some(changes.iter().map(|c| simulation.chance(*c)).collect())
}

/// The smallest change that is detected with the probability `power` (such as 0.8), to a
/// thousandth. `None` as for [`chance`], or if even + 1000 % is not detected.
pub fn smallest_change(noise: Noise<'_>, runs: Runs, ask: &Ask, power: f64) -> Option<f64> {
    let simulation = Simulation::of(noise, runs, ask)?;
    let steps = |n: usize| n as f64 / 1000.0;
    let caught = |n: usize| simulation.chance(steps(n)) >= power;
    least_of(0, (LARGEST * 1000.0) as usize, caught).map(steps)
}

/// How many runs per side (or pairs) detect this change with the probability `power`; at least 2.
/// `None` as for [`chance`], or if 100 do not suffice.
///
/// It assumes that more runs detect more, which holds except for the steps in which the p-value of
/// few runs falls: one run less may be enough.
pub fn runs_needed(noise: Noise<'_>, change: f64, ask: &Ask, power: f64) -> Option<usize> {
    let caught =
        |n: usize| chance(noise, change, Runs::each(n), ask).is_some_and(|found| found >= power);
    least_of(2, MOST_RUNS, caught)
}

/// The least number for which this holds, if it holds for all above.
fn least_of(mut from: usize, mut to: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    if !holds(to) {
        return None;
    }
    while from < to {
        let half = (from + to) / 2;
        if holds(half) { to = half } else { from = half + 1 }
    }
    Some(to)
}

/// A distribution to draw from.
enum Source {
    /// The given values, each with noise of this width, then scaled towards the mean.
    Smoothed {
        values: Vec<f64>,
        mean: f64,
        noise: f64,
        scale: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
}

impl Source {
    /// `None` for fewer than two values.
    fn like(values: &[f64]) -> Option<Source> {
        let (mean, deviation) = (mean(values)?, deviation(values)?);
        if values.len() < ENOUGH {
            return Some(Source::Normal { mean, deviation });
        }
        let n = values.len() as f64;
        // Silverman, "Density estimation", 1986, equation 3.31 without the quartiles.
        let noise = 0.9 * deviation * n.powf(-0.2);
        // Drawing with replacement has the variance with n in the denominator; noise adds to it.
        let drawn = (deviation * deviation * (n - 1.0) / n + noise * noise).sqrt();
        let scale = if drawn > 0.0 { deviation / drawn } else { 1.0 };
        Some(Source::Smoothed { values: values.to_vec(), mean, noise, scale })
    }

    fn draw(&self, g: &mut Generator) -> f64 {
        match self {
            Source::Normal { mean, deviation } => mean + deviation * g.normal(),
            Source::Smoothed { values, mean, noise, scale } => {
                let picked = values[g.below(values.len())];
                mean + scale * (picked - mean + noise * g.normal())
            }
        }
    }

    /// This many draws in ascending order.
    fn sorted(&self, n: usize, g: &mut Generator) -> Vec<f64> {
        let mut drawn: Vec<f64> = (0..n).map(|_| self.draw(g)).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }
}

/// Comparisons without a change, drawn once; a change is applied to all of them.
struct Simulation {
    drawn: Drawn,
    least: f64,
}

enum Drawn {
    /// The statistic can never be large enough.
    Hopeless,
    /// Two sides in ascending order, and the least U.
    Sides { sides: Vec<(Vec<f64>, Vec<f64>)>, critical: usize },
    /// Logarithms of ratios in ascending order, and the least W.
    Pairs { pairs: Vec<Vec<f64>>, critical: usize },
}

impl Drawn {
    fn sides(source: &Source, runs: Runs, ask: &Ask, g: &mut Generator) -> Drawn {
        let Some(critical) = ranks::critical(runs.a, runs.b, ask.alpha) else {
            return Drawn::Hopeless;
        };
        let mut side = |n| {
            let mut values = source.sorted(n, g);
            // No figure of a run is below 0, but a normal value of wide spread can be.
            values.iter_mut().for_each(|v| *v = v.max(0.0));
            values
        };
        let sides = (0..REPETITIONS).map(|_| (side(runs.a), side(runs.b))).collect();
        Drawn::Sides { sides, critical }
    }

    fn pairs(source: &Source, n: usize, ask: &Ask, g: &mut Generator) -> Drawn {
        pairs::critical(n, ask.alpha).map_or(Drawn::Hopeless, |critical| {
            let pairs = (0..REPETITIONS).map(|_| source.sorted(n, g)).collect();
            Drawn::Pairs { pairs, critical }
        })
    }
}

impl Simulation {
    fn of(noise: Noise<'_>, runs: Runs, ask: &Ask) -> Option<Simulation> {
        let mut g = Generator::new(SEED);
        let drawn = match noise {
            Noise::Runs(values) => {
                mean(values).filter(|m| *m > 0.0)?;
                // Sorted, so that the order of the runs does not matter.
                Drawn::sides(&Source::like(&sorted(values))?, runs, ask, &mut g)
            }
            Noise::Normal(spread) if spread >= 0.0 => {
                let source = Source::Normal { mean: 1.0, deviation: spread };
                Drawn::sides(&source, runs, ask, &mut g)
            }
            Noise::Normal(_) => return None,
            Noise::Ratios(ratios) => {
                let mut logs: Vec<f64> = sorted(ratios).iter().map(|r| r.ln()).collect();
                if logs.iter().any(|l| !l.is_finite()) {
                    return None;
                }
                // What the given ratios have in common is a change, not noise.
                let center = mean(&logs)?;
                logs.iter_mut().for_each(|l| *l -= center);
                Drawn::pairs(&Source::like(&logs)?, runs.a.min(runs.b), ask, &mut g)
            }
        };
        Some(Simulation { drawn, least: ask.least })
    }

    fn chance(&self, change: f64) -> f64 {
        let (by, least) = (1.0 + change, 1.0 + self.least);
        let caught = match &self.drawn {
            Drawn::Hopeless => 0,
            Drawn::Sides { sides, critical } => sides
                .iter()
                .filter(|(a, b)| {
                    middle(b) * by >= least * middle(a) && twice_u(a, b, by) >= 2 * critical
                })
                .count(),
            Drawn::Pairs { pairs, critical } => {
                let (by, least) = (by.ln(), least.ln());
                let caught = |logs: &&Vec<f64>| {
                    middle(logs) + by >= least && signed_ranks(logs, by) >= *critical
                };
                pairs.iter().filter(caught).count()
            }
        };
        caught as f64 / REPETITIONS as f64
    }
}

/// Twice the U of the second side times `by` against the first, both in ascending order.
fn twice_u(a: &[f64], b: &[f64], by: f64) -> usize {
    let (mut below, mut up_to) = (0, 0);
    let of_one = |b: &f64| {
        let value = b * by;
        below += a[below..].iter().take_while(|a| **a < value).count();
        up_to = up_to.max(below);
        up_to += a[up_to..].iter().take_while(|a| **a <= value).count();
        below + up_to
    };
    b.iter().map(of_one).sum()
}

/// W of these values plus `by`; they are in ascending order, and zeros do not count.
fn signed_ranks(sorted: &[f64], by: f64) -> usize {
    // The sizes of the values that shrank, from the middle down, and of those that grew, from the
    // middle up, are two ascending lists: merged they are the ranks. Ties only occur among zeros.
    let from = sorted.partition_point(|v| v + by <= 0.0);
    let mut shrank = sorted[..from].iter().rev().map(|v| -(v + by)).peekable();
    let (mut rank, mut sum) = (0, 0);
    for grew in sorted[from..].iter().map(|v| v + by) {
        while shrank.next_if(|s| *s <= grew).is_some() {
            rank += 1;
        }
        rank += 1;
        sum += rank;
    }
    sum
}

#[cfg(test)]
mod tests;
