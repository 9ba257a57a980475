//! Location and run-to-run spread of values.

/// The values in ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of values in ascending order, which must not be empty.
pub(super) fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        // Halved first, so that the sum cannot overflow.
        sorted[half - 1] / 2.0 + sorted[half] / 2.0
    }
}

/// The median, in the unit of the values; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| middle(&sorted(values)))
}

/// The arithmetic mean, in the unit of the values; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    // Summed in order, so that the same values in another order give the same bytes.
    (!values.is_empty()).then(|| sorted(values).iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation (n - 1 in the denominator), in the unit of the values; `None` for fewer
/// than two.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = sorted(values).iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The value below which the fraction `q` (0 to 1) of the values lies, between two values by linear
/// interpolation (type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996). The
/// values are not empty and in ascending order.
pub(super) fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    // Equal values separately, because the difference of two infinities is not a number.
    if below == above { below } else { below + (above - below) * at.fract() }
}

/// Location and spread of the values of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// The least one.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The greatest one.
    pub greatest: f64,
    /// The standard deviation relative to the mean (the coefficient of variation), 0.05 for 5 %.
    /// `None` for a single run, or if the mean is not above 0.
    pub plain: Option<f64>,
    /// A robust relative spread, which one outlier hardly moves: the median distance from the
    /// median, times 1.4826, which is the standard deviation of normal values (Hampel, "The
    /// influence curve and its role in robust estimation", 1974), relative to the median. `None` as
    /// for `plain`. It is 0 if more than half of the runs are equal, though the others differ.
    pub robust: Option<f64>,
}

impl Spread {
    /// The spread to print: the robust one if it is meaningful.
    pub fn typical(&self) -> Option<f64> {
        self.robust.or(self.plain)
    }
}

/// The spread of these values; `None` without values.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let sorted = sorted(values);
    let (least, greatest) = (*sorted.first()?, *sorted.last()?);
    let (median, mean) = (middle(&sorted), mean(values)?);
    let relative_to = |center: f64, width: Option<f64>| {
        width.filter(|_| center > 0.0).map(|w| w / center).filter(|r| r.is_finite())
    };
    Some(Spread {
        runs: values.len(),
        least,
        median,
        mean,
        greatest,
        plain: relative_to(mean, deviation(values)),
        robust: relative_to(median, absolute_deviation(values)),
    })
}

/// The median distance from the median times 1.4826, in the unit of the values; `None` for fewer
/// than two.
pub fn absolute_deviation(values: &[f64]) -> Option<f64> {
    let center = median(values).filter(|_| values.len() > 1)?;
    let distances: Vec<f64> = values.iter().map(|v| (v - center).abs()).collect();
    median(&distances).map(|d| d * 1.4826)
}

/// How many times as large `b` is as `a`: 1.25 for a quarter more. Two zeros are equal, ratio 1.
/// `None` if only `a` is 0, or if one of them is below 0.
pub fn ratio(a: f64, b: f64) -> Option<f64> {
    if a == 0.0 && b == 0.0 {
        return Some(1.0);
    }
    (a > 0.0 && b >= 0.0).then(|| b / a).filter(|r| r.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_runs_are_those_worked_out_by_hand() {
        let s = spread(&[4.0, 1.0, 2.0, 3.0, 10.0]).unwrap();
        assert_eq!((s.runs, s.least, s.greatest), (5, 1.0, 10.0));
        assert_eq!((s.median, s.mean), (3.0, 4.0));
        // Squares 0 + 9 + 4 + 1 + 36 = 50; 50 / 4 = 12.5.
        assert!((s.plain.unwrap() - 12.5f64.sqrt() / 4.0).abs() < 1e-15);
        // Distances 1 2 1 0 7: the median is 1.
        assert!((s.robust.unwrap() - 1.4826 / 3.0).abs() < 1e-15);
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(quantile_of_sorted(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile_of_sorted(&[1.0, 2.0, 4.0], 1.0), 4.0);
    }

    #[test]
    fn what_has_no_value_is_none() {
        assert_eq!((median(&[]), mean(&[])), (None, None));
        assert!(spread(&[]).is_none());
        let single = spread(&[3.0]).unwrap();
        assert_eq!((single.plain, single.robust), (None, None));
        let zeros = spread(&[0.0; 4]).unwrap();
        assert_eq!((zeros.median, zeros.plain, zeros.robust), (0.0, None, None));
        // Most runs are 0: there is a mean to relate to, and no median.
        let rare = spread(&[0.0, 0.0, 0.0, 8.0]).unwrap();
        assert_eq!((rare.plain, rare.robust), (Some(2.0), None));
    }

    #[test]
    fn a_ratio_to_zero_is_none_unless_both_are_zero() {
        assert_eq!(ratio(4.0, 5.0), Some(1.25));
        assert_eq!(ratio(4.0, 0.0), Some(0.0));
        assert_eq!(ratio(0.0, 0.0), Some(1.0));
        assert_eq!(ratio(0.0, 5.0), None);
        assert_eq!(ratio(-1.0, 5.0), None);
        assert_eq!(ratio(1e-300, 1e100), None);
    }
}
