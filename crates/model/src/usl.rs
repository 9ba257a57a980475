//! The Universal Scalability Law (N. Gunther, "Guerrilla Capacity Planning", 2007, chapter 4).
//!
//! ```text
//! X(p) = γ p / (1 + σ (p - 1) + κ p (p - 1))
//! ```
//!
//! γ is the work of one processor, σ the loss to queueing for shared resources, κ the loss to
//! keeping shared data coherent. With κ = 0 it is Amdahl's law; with κ > 0 it has a peak at p =
//! sqrt((1 - σ) / κ), beyond which more processors do less.
//!
//! The fit needs no search. The processor-seconds that the work took, p T(p), are linear in three
//! unknowns a = 1/γ, b = σ/γ, c = κ/γ:
//!
//! ```text
//! p T(p) = a + b (p - 1) + c p (p - 1)
//! ```
//!
//! so least squares of the relative errors have one solution. An unknown that comes out below 0 is
//! set to 0: work that shrinks as processors are added is outside this law.

use crate::ladder::{Ladder, Rung};

/// The range that fits the measurements, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Smallest.
    pub low: f64,
    /// Largest.
    pub high: f64,
}

/// The law, fitted to a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// Work that one processor does per unit of time, γ.
    pub one_cpu: f64,
    /// Contention, σ.
    pub sigma: f64,
    /// Coherency, κ.
    pub kappa: f64,
    /// The interval of σ; `None` if there are no more measurements than unknowns, or if it is set
    /// to 0.
    pub sigma_interval: Option<Interval>,
    /// The interval of κ, likewise.
    pub kappa_interval: Option<Interval>,
}

/// 97.5 % quantiles of Student's t distribution by degrees of freedom, from 1.
const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
/// The 97.5 % quantile of the normal distribution, for more degrees of freedom.
const NORMAL: f64 = 1.960;

/// An equation of the least squares: the coefficients, and the measured value.
type Line = ([f64; 3], f64);

impl Usl {
    /// Fit the law. `None` with fewer than three rungs.
    pub fn fit(ladder: &Ladder) -> Option<Usl> {
        let rungs = ladder.rungs();
        if rungs.len() < 3 {
            return None;
        }
        let lines: Vec<Line> = rungs.iter().map(line).collect();
        // Of the choices of unknowns that leave none below 0, the best fit; a is always included.
        let choices: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
        choices
            .iter()
            .filter_map(|unknowns| Fit::of(&lines, unknowns))
            .filter(|fit| fit.values[0] > 0.0 && fit.values.iter().all(|&v| v >= 0.0))
            .min_by(|a, b| a.error.total_cmp(&b.error))
            .map(|fit| fit.law(rungs.len()))
    }

    /// Work per unit of time on `cpus` processors.
    pub fn throughput(&self, cpus: f64) -> f64 {
        self.one_cpu * self.speedup(cpus)
    }

    /// Work per unit of time relative to one processor.
    pub fn speedup(&self, cpus: f64) -> f64 {
        cpus / (1.0 + self.sigma * (cpus - 1.0) + self.kappa * cpus * (cpus - 1.0))
    }

    /// The number of processors that does most; `None` if the law has no peak.
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
    }
}

/// p T(p) = a + b (p - 1) + c p (p - 1), divided by p T(p): errors are relative.
fn line(rung: &Rung) -> Line {
    let cpus = f64::from(rung.cpus);
    let spent = cpus * rung.time;
    ([1.0 / spent, (cpus - 1.0) / spent, cpus * (cpus - 1.0) / spent], 1.0)
}

/// A solution of the least squares.
struct Fit {
    /// a, b, c; those left out are 0.
    values: [f64; 3],
    /// Sum of the squared errors.
    error: f64,
    /// Inverse of the normal matrix, 0 for unknowns that were left out.
    inverse: [[f64; 3]; 3],
    unknowns: usize,
}

impl Fit {
    fn of(lines: &[Line], unknowns: &[usize]) -> Option<Fit> {
        let mut normal = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        for (known, measured) in lines {
            for &i in unknowns {
                right[i] += known[i] * measured;
                for &j in unknowns {
                    normal[i][j] += known[i] * known[j];
                }
            }
        }
        let inverse = inverted(normal, unknowns)?;
        let mut values = [0.0; 3];
        for &i in unknowns {
            values[i] = unknowns.iter().map(|&j| inverse[i][j] * right[j]).sum();
        }
        let off = |(known, measured): &Line| {
            measured - known.iter().zip(values).map(|(k, v)| k * v).sum::<f64>()
        };
        let error = lines.iter().map(|l| off(l).powi(2)).sum();
        Some(Fit { values, error, inverse, unknowns: unknowns.len() })
    }

    fn law(&self, measurements: usize) -> Usl {
        let [a, b, c] = self.values;
        let freedom = measurements - self.unknowns.min(measurements);
        // The variance of b/a, to first order in the errors of both.
        let interval = |i: usize| {
            let ratio = self.values[i] / a;
            let held = self.inverse[i][i] == 0.0;
            if freedom == 0 || held {
                return None;
            }
            let variance = self.inverse[i][i] - 2.0 * ratio * self.inverse[i][0]
                + ratio * ratio * self.inverse[0][0];
            let scatter = self.error / freedom as f64;
            let half =
                T.get(freedom - 1).unwrap_or(&NORMAL) * (variance.max(0.0) * scatter).sqrt() / a;
            Some(Interval { low: (ratio - half).max(0.0), high: ratio + half })
        };
        Usl {
            one_cpu: 1.0 / a,
            sigma: b / a,
            kappa: c / a,
            sigma_interval: interval(1),
            kappa_interval: interval(2),
        }
    }
}

/// The inverse of the submatrix of `unknowns`, 0 elsewhere; `None` if it has none.
fn inverted(mut m: [[f64; 3]; 3], unknowns: &[usize]) -> Option<[[f64; 3]; 3]> {
    let mut inverse = [[0.0; 3]; 3];
    unknowns.iter().for_each(|&i| inverse[i][i] = 1.0);
    // Gauss-Jordan elimination. The matrix is symmetric and positive, so no rows are exchanged.
    for &i in unknowns {
        let pivot = m[i][i];
        if pivot.is_nan() || pivot.abs() <= 1e-300 {
            return None;
        }
        for &j in unknowns {
            m[i][j] /= pivot;
            inverse[i][j] /= pivot;
        }
        for &r in unknowns.iter().filter(|&&r| r != i) {
            let factor = m[r][i];
            for &j in unknowns {
                m[r][j] -= factor * m[i][j];
                inverse[r][j] -= factor * inverse[i][j];
            }
        }
    }
    Some(inverse)
}
