//! Whether neighbouring values of a series are similar: how much less the series then says.

use crate::stats::spread::median;

/// The largest autocorrelation used: a series that wanders without end says nothing of levels.
const MOST: f64 = 0.95;

/// White noise of n values shows more than this divided by the square root of n in one case of
/// twenty (simulated, for 30 to 500 values).
const BY_CHANCE: f64 = 5.0;

/// The autocorrelation from value to value beyond chance: 0 to 0.95.
///
/// The estimate is that of Chakar, Lebarbier, Lévy-Leduc and Robin ("A robust approach for
/// estimating change-points in the mean of an AR(1) process", Bernoulli 23, 2017): from the medians
/// of the differences between neighbours and between next but one neighbours. The few differences
/// across a change of level do not move a median, so levels need not be known. What chance alone
/// may show is subtracted, so a short series keeps its power.
pub fn beyond_chance(series: &[f64]) -> f64 {
    let apart = |by: usize| -> Option<f64> {
        let pairs = series.iter().zip(series.get(by..)?);
        median(&pairs.map(|(a, b)| (b - a).abs()).collect::<Vec<f64>>())
    };
    let (Some(one), Some(two)) = (apart(1), apart(2)) else { return 0.0 };
    let estimate = (two / one).powi(2) - 1.0;
    // No neighbours differ, or it is not a number: nothing is known.
    if one == 0.0 || !estimate.is_finite() {
        return 0.0;
    }
    (estimate.min(1.0) - BY_CHANCE / (series.len() as f64).sqrt()).clamp(0.0, MOST)
}

/// How many values of such a series say as much about its mean as one independent value.
pub fn values_for_one(autocorrelation: f64) -> f64 {
    (1.0 + autocorrelation) / (1.0 - autocorrelation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::generator::Generator;

    /// A series with this autocorrelation.
    fn wandering(seed: u64, n: usize, autocorrelation: f64) -> Vec<f64> {
        let mut g = Generator::new(seed);
        let mut value = 0.0;
        let mut next = || {
            value = autocorrelation * value + g.normal();
            value
        };
        (0..n + 50).map(|_| next()).skip(50).collect()
    }

    #[test]
    fn independent_values_show_none_and_dependent_ones_most_of_theirs() {
        let of = |n, autocorrelation| {
            let mut all: Vec<f64> =
                (0..200).map(|seed| beyond_chance(&wandering(seed, n, autocorrelation))).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let none = of(100, 0.0);
        let shown = none.iter().filter(|a| **a > 0.0).count();
        assert!(shown <= 20, "{shown} of 200 series of independent values");
        let middle = of(2000, 0.7)[100];
        assert!((0.5..0.7).contains(&middle), "{middle}");
    }

    #[test]
    fn a_step_is_no_autocorrelation() {
        for seed in 0..50 {
            let flat = wandering(seed, 400, 0.0);
            let step: Vec<f64> = flat
                .iter()
                .enumerate()
                .map(|(i, v)| v + if i < 200 { 0.0 } else { 50.0 })
                .collect();
            let (flat, step) = (beyond_chance(&flat), beyond_chance(&step));
            assert!((flat - step).abs() < 0.05, "{seed}: {flat} {step}");
        }
    }

    #[test]
    fn short_constant_and_broken_series_show_none() {
        for series in [vec![], vec![1.0], vec![1.0, 2.0], vec![5.0; 90], vec![f64::NAN; 90]] {
            assert_eq!(beyond_chance(&series), 0.0, "{series:?}");
        }
        assert_eq!(beyond_chance(&[1.0, f64::INFINITY, 2.0, 3.0]), 0.0);
        assert_eq!(values_for_one(0.0), 1.0);
    }
}
