//! Where a series of figures, one a commit, changes for good: E-divisive means.
//!
//! A gate compares a run with a baseline and lets small changes pass. Ten of them in a row are a
//! large one, and only the whole series shows it. The method is that of Matteson and James ("A
//! nonparametric approach for multiple change point analysis of multivariate data", JASA 109, 2014)
//! as Hunter adapted it, now Apache Otava (Fleming et al., "Hunter: Using Change Point Detection to
//! Hunt for Performance Regressions", ICPE 2023):
//!
//! 1. **Split.** In windows that overlap by half, the point that separates its two sides best by
//!    the energy distance (`Energy::best`) divides the series, if a t-test finds the sides
//!    different; then so do the best points of the parts. The test is a weak one, with ten times
//!    the p-value asked for, since a later neighbour can make a change clear.
//! 2. **Merge.** The weakest points are removed, one after the other, until all that are left reach
//!    the p-value and the least relative change. A step that looks small beside its neighbours may
//!    be large when these are gone.
//!
//! The t-test in place of random permutations is Hunter's: it gives the same answer twice. Otava
//! 0.8.0 differs in these points, each of which makes it find more:
//!
//! * It divides by n instead of n - 1 for the deviation, which makes short parts too certain.
//! * It pools the variances of both sides. Two values at the end of which one is an outlier then
//!   look like a change. Here Welch's test must agree, which does not pool them.
//! * It accepts parts of a single value. Here a part has two, as one shows no spread.
//! * It stops at the first best point that is not significant. Here the other parts are still
//!   searched; so an outlier in one part does not hide a change in another.

use crate::stats::distributions::student_two_sided;
use crate::stats::spread::{deviation, mean};

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How many values are looked at together, 4 to 500: time grows with its square. Levels that
    /// last much longer than half a window are told apart as well as they can be.
    pub window: usize,
    /// The greatest p-value of a change point, two-sided. It is that of one test, and the best of
    /// many points is tested: of 1,000 series of 30 normal values 9 have a point at 0.001, and none
    /// at 0.0001.
    pub max_p: f64,
    /// The least relative change between the means of the two sides, 0.05 for 5 %, by the smaller
    /// of the two: so + 25 % and its undoing are of one size.
    pub least_change: f64,
}

impl Default for Options {
    /// A window of 50 values as in Otava; a p-value of 0.0001, not Otava's 0.001, since a history
    /// of many metrics is looked at after every commit; changes of 5 %.
    fn default() -> Options {
        Options { window: 50, max_p: 0.0001, least_change: 0.05 }
    }
}

/// A place where the series changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level, counted from 0.
    pub index: usize,
    /// The mean from the change point before (or the beginning) up to here.
    pub before: f64,
    /// The mean from here to the next change point (or the end).
    pub after: f64,
    /// How likely means so different are if nothing changed: 0 to 1.
    pub p: f64,
}

impl ChangePoint {
    /// The relative change, from the smaller to the larger mean, so never below 0. Infinite from or
    /// to 0.
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
    let weak = split(series, options.window.clamp(4, 500), weak_p(options.max_p));
    merge(series, weak, options)
}

/// The p-value of the first step, as in Otava: ten times as large, but still a p-value.
fn weak_p(p: f64) -> f64 {
    if p < 0.05 { p * 10.0 } else { (p * 2.0).min(1.0) }
}

/// The indices of the points that might be change points, in order.
fn split(series: &[f64], window: usize, max_p: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = series.len().min(start + window);
        let points = divide(&series[start..end], max_p);
        // The next window begins at the last point found, where the level of now began.
        let last = points.iter().max().map_or(0, |p| start + p);
        found.extend(points.into_iter().map(|p| start + p));
        start = last.max(start + window / 2);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The points that divide this window into parts of different level.
fn divide(window: &[f64], max_p: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut parts = vec![(0, window.len())];
    while let Some((from, to)) = parts.pop() {
        let Some(at) = Energy::of(&window[from..to]).best().map(|at| from + at) else { continue };
        if student(&window[from..at], &window[at..to]) <= max_p {
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

    /// How far the values before `at` are from those from `at` to `end` - 1: the energy distance
    /// with exponent 1, scaled (Matteson and James, equation 5).
    fn distance(&self, at: usize, end: usize) -> f64 {
        let (before, after) = (self.within[0][at], self.within[at][end]);
        let between = self.within[0][end] - before - after;
        let (n, m) = (at as f64, (end - at) as f64);
        // The mean distance within a side; a single value has none.
        let inner = |sum: f64, count: f64| if count > 1.0 { sum / (count - 1.0) } else { 0.0 };
        2.0 / (n + m) * (between - m * inner(before, n) - n * inner(after, m))
    }

    /// The point that separates best: the values before it from those up to some end, which need
    /// not be the end of the part, so that a later change back does not hide it (equation 7).
    /// `None` if no two parts of two values each differ.
    fn best(&self) -> Option<usize> {
        let mut best = (None, 0.0);
        for at in 2..self.values.saturating_sub(1) {
            for end in at + 1..=self.values {
                let distance = self.distance(at, end);
                if distance > best.1 {
                    best = (Some(at), distance);
                }
            }
        }
        best.0
    }
}

/// The two-sided p-value of the difference between two means. The larger of two: Student's pools
/// the variances and fails if they differ; Welch's does not, and is misled by a short part whose
/// few values happen to lie close together.
fn student(a: &[f64], b: &[f64]) -> f64 {
    let (Some(mean_a), Some(mean_b)) = (mean(a), mean(b)) else { return 1.0 };
    let (Some(s_a), Some(s_b)) = (deviation(a), deviation(b)) else { return 1.0 };
    let difference = mean_b - mean_a;
    if difference == 0.0 {
        return 1.0;
    }
    let (n, m) = (a.len() as f64, b.len() as f64);
    let pooled = ((n - 1.0) * s_a * s_a + (m - 1.0) * s_b * s_b) / (n + m - 2.0);
    let pooled = student_two_sided(difference / (pooled * (1.0 / n + 1.0 / m)).sqrt(), n + m - 2.0);
    let (v_a, v_b) = (s_a * s_a / n, s_b * s_b / m);
    let freedom = (v_a + v_b).powi(2) / (v_a * v_a / (n - 1.0) + v_b * v_b / (m - 1.0));
    // Both sides constant: the difference is beyond chance, whatever the degrees of freedom.
    if v_a + v_b == 0.0 || !freedom.is_finite() {
        return pooled;
    }
    pooled.max(student_two_sided(difference / (v_a + v_b).sqrt(), freedom))
}

/// The change point at the place `at` of the sorted indices, between its neighbours.
fn measured(series: &[f64], indices: &[usize], at: usize) -> ChangePoint {
    let from = if at == 0 { 0 } else { indices[at - 1] };
    let to = indices.get(at + 1).copied().unwrap_or(series.len());
    let index = indices[at];
    let (a, b) = (&series[from..index], &series[index..to]);
    let level = |part| mean(part).unwrap_or(0.0);
    ChangePoint { index, before: level(a), after: level(b), p: student(a, b) }
}

/// Removes the weakest points until all that are left are strong enough.
fn merge(series: &[f64], mut indices: Vec<usize>, options: &Options) -> Vec<ChangePoint> {
    let mut points: Vec<ChangePoint> =
        (0..indices.len()).map(|at| measured(series, &indices, at)).collect();
    loop {
        let by_p = (0..points.len()).max_by(|x, y| points[*x].p.total_cmp(&points[*y].p));
        let by_size =
            (0..points.len()).min_by(|x, y| points[*x].size().total_cmp(&points[*y].size()));
        let weakest = match (by_p, by_size) {
            (Some(at), _) if !(points[at].p <= options.max_p) => at,
            (_, Some(at)) if !(points[at].size() >= options.least_change) => at,
            _ => return points,
        };
        indices.remove(weakest);
        points.remove(weakest);
        // Its neighbours now have longer sides.
        for at in [weakest.wrapping_sub(1), weakest] {
            if at < indices.len() {
                points[at] = measured(series, &indices, at);
            }
        }
    }
}
