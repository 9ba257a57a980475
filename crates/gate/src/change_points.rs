//! Where a series of figures, one per commit, changes permanently: E-divisive means.
//!
//! A gate compares a run with a baseline and accepts small changes. Ten of them in a row are a
//! large one, and only the whole series shows it. The method is that of Matteson and James ("A
//! nonparametric approach for multiple change point analysis of multivariate data", JASA 109, 2014)
//! as Hunter adapted it, now Apache Otava (Fleming et al., "Hunter: Using Change Point Detection to
//! Hunt for Performance Regressions", ICPE 2023):
//!
//! 1. **Split.** In windows that overlap by half, the point that separates its two sides best by
//!    the energy distance divides the series, if a t-test finds the sides different; then so do the
//!    best points of the parts. The test is weak, with ten times the requested p-value, because a
//!    change may become clear only when its neighbours are known.
//! 2. **Merge.** The weakest points are removed, one after the other, until all that are left reach
//!    the p-value and the least relative change. A step that looks small next to its neighbours may
//!    be large when the neighbours are removed.
//!
//! The t-test in place of random permutations is Hunter's: its result is reproducible. Otava 0.8.0
//! differs in these points:
//!
//! * It divides by n instead of n - 1 for the deviation, which makes short parts too certain.
//! * It pools the variances of both sides. Two values of which the last is an outlier then look
//!   like a change. Here a test that does not pool them must agree.
//! * It takes every value into the t-test. Here the tenth at either end counts nothing, because one
//!   outlier would hide a change.
//! * It accepts parts of a single value. Here a part has at least two, because one shows no spread.
//!   Even two are rarely enough, so a change at the end is found some runs later.
//! * It tests the best point against the whole rest of its part. A level that lasts for a while and
//!   goes back is then not found. Here the stretch that differs most may also prove it.
//! * It stops at the first best point that is not significant. Here the other parts are still
//!   searched.
//! * It takes the values as independent. Here autocorrelated values count less: if a slow drift of
//!   the machine makes neighbours similar, a hundred values say no more about a level than about
//!   ten, and the drift is no change ([`autocorrelation`]).
//! * When it removes a point it does not measure the previous point again, which may then be
//!   removed for a size that it no longer has. A drift can vanish like this.

use crate::stats::autocorrelation;
use crate::stats::distributions::student_two_sided;
use crate::stats::spread::{deviation, mean, sorted};

/// The parameters of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How many values are examined together: 4 to 500, others are clamped. In a long window short
    /// levels are harder to see, and time grows with its square.
    pub window: usize,
    /// The greatest two-sided p-value of a change point. It is the p-value of one test, but the
    /// best of many points is tested: of 10,000 series of 30 normal values 9 have one at 0.0001.
    pub max_p: f64,
    /// The least relative change between the means of the two sides, 0.05 for 5 %, relative to the
    /// smaller one: so + 25 % and its reversal have the same size.
    pub least_change: f64,
}

impl Default for Options {
    /// A window of 50 values as in Otava; a p-value of 0.0001, not Otava's 0.001, because a history
    /// of many metrics is searched after every commit; changes of 5 %.
    fn default() -> Options {
        Options { window: 50, max_p: 0.0001, least_change: 0.05 }
    }
}

/// A place where the series changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The index of the first value of the new level.
    pub index: usize,
    /// The mean from the previous change point (or the beginning) up to here.
    pub before: f64,
    /// The mean from here to the next change point (or the end).
    pub after: f64,
    /// The probability of means this different if nothing changed, with the series'
    /// autocorrelation: 0 to 1.
    pub p: f64,
}

impl ChangePoint {
    /// The relative change, from the smaller to the larger mean, so never below 0. Infinite if one
    /// of them is 0.
    fn size(&self) -> f64 {
        let (less, more) =
            (self.before.abs().min(self.after.abs()), self.before.abs().max(self.after.abs()));
        if self.before == self.after {
            0.0
        } else if less == 0.0 || self.before.signum() != self.after.signum() {
            f64::INFINITY
        } else {
            more / less - 1.0
        }
    }
}

/// The change points of the series, in order. Empty for fewer than 4 values, for a constant series,
/// and for options that nothing can meet.
pub fn change_points(series: &[f64], options: &Options) -> Vec<ChangePoint> {
    let test = Test { values_for_one: values_for_one(series) };
    let weak = split(series, options.window.clamp(4, 500), weak_p(options.max_p), test);
    merge(series, weak, options, test)
}

/// How many values of the series say as much as one independent value.
fn values_for_one(series: &[f64]) -> f64 {
    autocorrelation::values_for_one(autocorrelation::beyond_chance(series))
}

/// The p-value of the first step, as in Otava: ten times as large, but still a p-value.
fn weak_p(p: f64) -> f64 {
    if p < 0.05 { p * 10.0 } else { (p * 2.0).min(1.0) }
}

/// The indices of the points that might be change points, in order.
fn split(series: &[f64], window: usize, max_p: f64, test: Test) -> Vec<usize> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = series.len().min(start + window);
        let points = divide(&series[start..end], max_p, test);
        // The next window begins at the last point found, where the current level began.
        let last = points.iter().max().map_or(0, |p| start + p);
        found.extend(points.into_iter().map(|p| start + p));
        start = last.max(start + window / 2);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The points that divide this window into parts of different level.
fn divide(window: &[f64], max_p: f64, test: Test) -> Vec<usize> {
    let mut found = Vec::new();
    let mut parts = vec![(0, window.len())];
    while let Some((from, to)) = parts.pop() {
        let Some((at, end)) = Energy::of(&window[from..to]).best() else { continue };
        let (at, end) = (from + at, from + end);
        // A level that lasts only for a while differs little from the whole rest.
        let differs = |to| test.p(&window[from..at], &window[at..to]) <= max_p;
        if differs(to) || differs(end) {
            found.push(at);
            parts.extend([(from, at), (at, to)]);
        }
    }
    found
}

/// The distances between the values of a part, summed.
struct Energy {
    values: usize,
    /// `within[i][j]`: the sum of the distances between all pairs of values from i to j - 1.
    within: Vec<Vec<f64>>,
}

impl Energy {
    fn of(part: &[f64]) -> Energy {
        let n = part.len();
        let mut within = vec![vec![0.0; n + 1]; n + 1];
        for j in 1..=n {
            let mut to_last = 0.0;
            for i in (0..j).rev() {
                to_last += (part[i] - part[j - 1]).abs();
                within[i][j] = within[i][j - 1] + to_last;
            }
        }
        Energy { values: n, within }
    }

    /// The energy distance with exponent 1, scaled, between the values before `at` and those from
    /// `at` to `end` - 1 (Matteson and James, equation 5).
    fn distance(&self, at: usize, end: usize) -> f64 {
        let (before, after) = (self.within[0][at], self.within[at][end]);
        let between = self.within[0][end] - before - after;
        let (n, m) = (at as f64, (end - at) as f64);
        2.0 / (n + m) * (between - m * before / (n - 1.0) - n * after / (m - 1.0))
    }

    /// The point that separates best, and the end of the values after it: the values before it are
    /// compared with those up to some end, which need not be the end of the part, so that a later
    /// change back does not hide it (equation 7). `None` if no two parts of two values each differ.
    fn best(&self) -> Option<(usize, usize)> {
        let mut best = (None, 0.0);
        for at in 2..self.values.saturating_sub(1) {
            for end in at + 2..=self.values {
                let distance = self.distance(at, end);
                if distance > best.1 {
                    best = (Some((at, end)), distance);
                }
            }
        }
        best.0
    }
}

/// One side of a t-test: the mean without the tenth at either end, so that a single outlier among
/// ten values counts nothing, and the matching spread.
struct Side {
    mean: f64,
    /// The sum of the squared distances from the mean, with the values at the ends replaced by the
    /// nearest ones that count.
    squares: f64,
    /// How many values count.
    count: f64,
}

impl Side {
    /// `None` for fewer than two values, which show no spread.
    fn of(values: &[f64]) -> Option<Side> {
        let mut values = sorted(values);
        let cut = values.len() / 10;
        let (from, to) = (cut, values.len() - cut);
        let mean = mean(&values[from..to]).filter(|_| values.len() > 1)?;
        let (least, greatest) = (values[from], values[to - 1]);
        values.iter_mut().for_each(|v| *v = v.clamp(least, greatest));
        let squares = deviation(&values)?.powi(2) * (values.len() - 1) as f64;
        Some(Side { mean, squares, count: (to - from) as f64 })
    }

    /// The variance of a value.
    fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0)
    }
}

/// The test of two parts of one series.
#[derive(Clone, Copy)]
struct Test {
    /// How many values say as much as one independent value: 1 or more.
    values_for_one: f64,
}

impl Test {
    /// The two-sided p-value of the difference between two means, trimmed by a tenth. The larger of
    /// two: the test of Yuen and Dixon ("The approximate behaviour and performance of the
    /// two-sample trimmed t", 1973; Student's where nothing is trimmed) pools the variances and
    /// fails if they differ. That of Yuen ("The two-sample trimmed t for unequal population
    /// variances", 1974; Welch's) does not, and is misled by a short part whose few values happen
    /// to lie close together.
    fn p(self, a: &[f64], b: &[f64]) -> f64 {
        let (Some(a), Some(b)) = (Side::of(a), Side::of(b)) else { return 1.0 };
        let difference = b.mean - a.mean;
        if difference == 0.0 {
            return 1.0;
        }
        let (n, m) = (self.independent(&a), self.independent(&b));
        let variance = (a.squares + b.squares) / (a.count + b.count - 2.0);
        let pooled = variance * (1.0 / n + 1.0 / m);
        let pooled = student_two_sided(difference / pooled.sqrt(), (n + m - 2.0).max(1.0));
        let (v_a, v_b) = (a.variance() / n, b.variance() / m);
        // With fewer than 2 values a side has hardly a degree of freedom.
        let (f_a, f_b) = ((n - 1.0).max(0.5), (m - 1.0).max(0.5));
        let freedom = (v_a + v_b).powi(2) / (v_a * v_a / f_a + v_b * v_b / f_b);
        // Both sides are constant: the difference is no chance, whatever the degrees of freedom.
        if !freedom.is_finite() {
            return pooled;
        }
        pooled.max(student_two_sided(difference / (v_a + v_b).sqrt(), freedom.max(1.0)))
    }

    /// How many independent values a side counts as.
    fn independent(self, side: &Side) -> f64 {
        (side.count / self.values_for_one).max(1.5)
    }
}

/// The change point at index `at` of the sorted indices, between its neighbours.
fn measured(series: &[f64], indices: &[usize], at: usize, test: Test) -> ChangePoint {
    let from = if at == 0 { 0 } else { indices[at - 1] };
    let to = indices.get(at + 1).copied().unwrap_or(series.len());
    let index = indices[at];
    let (a, b) = (&series[from..index], &series[index..to]);
    let level = |part| mean(part).unwrap_or(0.0);
    ChangePoint { index, before: level(a), after: level(b), p: test.p(a, b) }
}

/// Removes the weakest points until all that are left are strong enough.
fn merge(
    series: &[f64],
    mut indices: Vec<usize>,
    options: &Options,
    test: Test,
) -> Vec<ChangePoint> {
    let mut points: Vec<ChangePoint> =
        (0..indices.len()).map(|at| measured(series, &indices, at, test)).collect();
    // Written like this, a limit that is not a number accepts nothing.
    let sure = |point: &ChangePoint| point.p <= options.max_p;
    let large = |point: &ChangePoint| point.size() >= options.least_change;
    loop {
        let by_p = (0..points.len()).max_by(|x, y| points[*x].p.total_cmp(&points[*y].p));
        let by_size =
            (0..points.len()).min_by(|x, y| points[*x].size().total_cmp(&points[*y].size()));
        let weakest = match (by_p, by_size) {
            (Some(at), _) if !sure(&points[at]) => at,
            (_, Some(at)) if !large(&points[at]) => at,
            _ => return points,
        };
        indices.remove(weakest);
        points.remove(weakest);
        // Its neighbours have longer sides now.
        for at in [weakest.wrapping_sub(1), weakest] {
            if at < indices.len() {
                points[at] = measured(series, &indices, at, test);
            }
        }
    }
}
