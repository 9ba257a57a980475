//! What the statistics must satisfy for any values.

use holdup_gate::change_points::{Options, change_points};
use holdup_gate::stats::{bootstrap, discovery, pairs, ranks, spread};
use proptest::collection::vec;
use proptest::prelude::*;

/// Values with zeros, ties and large steps.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), (1u32..6).prop_map(f64::from), 0.0..1e3f64, 1e9..1e12f64]
}

fn values(most: usize) -> impl Strategy<Value = Vec<f64>> {
    vec(value(), 1..most)
}

fn raised(values: &[f64], by: f64) -> Vec<f64> {
    values.iter().map(|v| v + by).collect()
}

fn backwards(values: &[f64]) -> Vec<f64> {
    values.iter().rev().copied().collect()
}

proptest! {
    #[test]
    fn p_is_above_0_and_never_below_the_least(a in values(12), b in values(12)) {
        let found = ranks::greater(&a, &b).unwrap();
        let least = ranks::least_p(a.len(), b.len());
        let enough = found.p >= least * (1.0 - 1e-12);
        prop_assert!(enough && found.p <= 1.0, "{}, least {least}", found.p);
    }

    #[test]
    fn the_order_of_runs_does_not_matter(a in values(12), b in values(12)) {
        prop_assert_eq!(ranks::greater(&a, &b), ranks::greater(&backwards(&a), &backwards(&b)));
        prop_assert_eq!(spread::spread(&a), spread::spread(&backwards(&a)));
        prop_assert_eq!(
            bootstrap::ratio_of_medians(&a, &b, 0.95),
            bootstrap::ratio_of_medians(&backwards(&a), &backwards(&b), 0.95)
        );
        let n = a.len().min(b.len());
        prop_assert_eq!(
            pairs::greater(&a[..n], &b[..n]),
            pairs::greater(&backwards(&a[..n]), &backwards(&b[..n]))
        );
    }

    /// Exchanging the sides gives the opposite result.
    #[test]
    fn both_sides_see_the_same(a in values(12), b in values(12)) {
        let (up, down) = (ranks::greater(&a, &b).unwrap(), ranks::greater(&b, &a).unwrap());
        prop_assert_eq!(up.statistic + down.statistic, (a.len() * b.len()) as f64);
        // Both tails contain the outcome itself, so together they exceed 1.
        prop_assert!(up.p + down.p > 1.0 - 1e-12);
    }

    #[test]
    fn raising_the_second_side_never_weakens_the_evidence(
        a in values(30), b in values(30), by in 0.0..1e4f64,
    ) {
        let (before, after) = (ranks::greater(&a, &b), ranks::greater(&a, &raised(&b, by)));
        prop_assert!(after.unwrap().p <= before.unwrap().p + 1e-12);
    }

    #[test]
    fn multiplying_the_second_side_never_weakens_the_evidence_of_pairs(
        ab in vec((value(), value()), 1..20), by in 1.0..10.0f64,
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = ab.into_iter().unzip();
        let more: Vec<f64> = b.iter().map(|b| b * by).collect();
        let (before, after) = (pairs::greater(&a, &b).unwrap(), pairs::greater(&a, &more).unwrap());
        prop_assert!(after.p <= before.p + 1e-12, "{} then {}", before.p, after.p);
        prop_assert!(before.p >= pairs::least_p(a.len()) * (1.0 - 1e-12) && before.p <= 1.0);
    }

    #[test]
    fn intervals_hold_no_nan(a in values(8), b in values(8), level in 0.5..0.999f64) {
        for found in [
            bootstrap::ratio_of_medians(&a, &b, level),
            bootstrap::median_ratio_of_pairs(&a, &b, level),
        ].into_iter().flatten() {
            prop_assert!(found.low.is_finite() && found.ratio.is_finite());
            prop_assert!(found.high.is_none_or(|h| h.is_finite() && h >= found.low));
        }
    }

    #[test]
    fn q_is_never_below_p_and_keeps_the_order(p in vec(0.0..=1.0f64, 0..40)) {
        let q = discovery::q_values(&p);
        for i in 0..p.len() {
            prop_assert!(q[i] >= p[i] && q[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || q[i] <= q[j]);
            }
        }
    }

    #[test]
    fn change_points_lie_inside_and_keep_the_limits(
        series in vec(value(), 0..120), window in 0usize..80, max_p in 0.0..1.0f64,
    ) {
        let options = Options { window, max_p, ..Options::default() };
        let found = change_points(&series, &options);
        for point in &found {
            prop_assert!(point.index >= 2 && point.index + 2 <= series.len());
            prop_assert!(point.p <= max_p && point.before.is_finite() && point.after.is_finite());
        }
        prop_assert!(found.windows(2).all(|w| w[0].index + 2 <= w[1].index));
    }

    /// The unit of a metric must not affect the result.
    #[test]
    fn change_points_do_not_depend_on_the_unit(series in vec(1.0..100.0f64, 0..80)) {
        let indices = |s: &[f64]| -> Vec<usize> {
            change_points(s, &Options::default()).iter().map(|p| p.index).collect()
        };
        let scaled: Vec<f64> = series.iter().map(|v| v * 1024.0).collect();
        prop_assert_eq!(indices(&series), indices(&scaled));
    }
}
