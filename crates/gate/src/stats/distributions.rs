//! Tails of the normal distribution and of Student's t, for the tests.

use std::f64::consts::{LN_2, PI};

/// The probability that a standard normal value exceeds `z`: 0 to 1.
///
/// A series near the middle (Marsaglia, "Evaluating the normal distribution", 2004), beyond it the
/// continued fraction of Mills' ratio (Abramowitz and Stegun 26.2.14). The relative error is below
/// 1e-12 for |z| up to 30.
pub fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    // Beyond this, 0.5 minus the series would lose digits, and the fraction converges quickly.
    if z > 2.5 {
        let mills = (1..=200).rev().fold(z, |rest, k| z + f64::from(k) / rest);
        return density / mills;
    }
    let (mut term, mut sum) = (z, z);
    for k in 1..100 {
        term *= z * z / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 - density * sum
}

/// The probability that |T| is at least |t| for Student's t with `freedom` degrees of freedom,
/// which need not be whole: 0 to 1. 1 without a degree of freedom.
///
/// The regularised incomplete beta function at freedom / (freedom + t^2) with the parameters
/// freedom / 2 and 1/2 (Abramowitz and Stegun 26.7.1).
pub fn student_two_sided(t: f64, freedom: f64) -> f64 {
    if freedom <= 0.0 || t.is_nan() {
        return 1.0;
    }
    // By the ratio, as t squared may overflow.
    let ratio = t / freedom.sqrt();
    incomplete_beta(1.0 / (1.0 + ratio * ratio), freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// The regularised incomplete beta function I_x(a, b): by its continued fraction (Abramowitz and
/// Stegun 26.5.8), evaluated as Lentz does (1976).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly on this side of the mean; the other side is symmetric.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    // A zero denominator is replaced by something tiny.
    let whole = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / whole(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..1000 {
        let m = f64::from(m);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / whole(1.0 + numerator * d);
            c = whole(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// The logarithm of the gamma function, for arguments above 0: Stirling's series (Abramowitz and
/// Stegun 6.1.41) after the argument has been raised above 15.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 15.0 {
        product *= x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (LN_2 + PI.ln()) + series - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, known: f64, what: &str) {
        assert!((ours / known - 1.0).abs() < 1e-11, "{what}: {ours:e}, known {known:e}");
    }

    /// `scipy.stats.norm.sf` and `2 * scipy.stats.t.sf` of scipy 1.16.3.
    #[test]
    fn tails_are_those_of_scipy() {
        let normal = [
            (-3.0, 0.9986501019683699),
            (-0.7, 0.758036347776927),
            (0.5, 0.3085375387259869),
            (1.0, 0.15865525393145707),
            (1.96, 0.024997895148220435),
            (2.5, 0.006209665325776132),
            (2.6, 0.004661188023718747),
            (4.0, 3.167124183311986e-05),
            (8.0, 6.22096057427174e-16),
            (20.0, 2.7536241186061556e-89),
        ];
        for (z, known) in normal {
            close(normal_tail(z), known, &format!("normal {z}"));
        }
        let student = [
            (0.1, 1.0, 0.9365489651388929),
            (1.0, 1.0, 0.49999999999999956),
            (12.7, 1.0, 0.05002432768934415),
            (0.5, 2.5, 0.6576979198697148),
            (2.0, 4.0, 0.1161165235168155),
            (9.0, 4.0, 0.0008438325176012782),
            (2.2, 10.0, 0.0524410684493531),
            (3.5, 28.0, 0.0015764721412354617),
            (6.0, 28.0, 1.830062454433108e-06),
            (1.0, 58.3, 0.32144310070049387),
            (15.0, 58.0, 1.2703236321381516e-21),
            (4.0, 500.0, 7.291606940371279e-05),
            (0.3, 10000.0, 0.7641833912293322),
        ];
        for (t, freedom, known) in student {
            close(student_two_sided(t, freedom), known, &format!("t {t} at {freedom}"));
        }
    }

    #[test]
    fn tails_stay_within_bounds_at_the_extremes() {
        assert_eq!(normal_tail(0.0), 0.5);
        assert_eq!(normal_tail(-60.0), 1.0);
        assert!(normal_tail(60.0) >= 0.0);
        assert_eq!(student_two_sided(0.0, 5.0), 1.0);
        assert_eq!(student_two_sided(3.0, 0.0), 1.0);
        assert!((0.0..1e-100).contains(&student_two_sided(1e200, 3.0)));
        assert_eq!(student_two_sided(f64::INFINITY, 3.0), 0.0);
    }
}
