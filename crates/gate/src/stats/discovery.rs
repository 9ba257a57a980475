//! Many metrics judged at once: some look significant by chance, and q-values account for that.
//!
//! Benjamini and Hochberg, "Controlling the false discovery rate", 1995. Metrics of one trace are
//! not independent: if threads wait longer for a lock they also sleep longer and run less. For
//! one-sided tests of metrics that grow together the procedure still holds what it promises
//! (Benjamini and Yekutieli, "The control of the false discovery rate in multiple testing under
//! dependency", 2001, theorem 1.2). Their own procedure needs no such condition, but it requires
//! p-values smaller by 1 + 1/2 + … + 1/m, which is a factor of 4 for 30 metrics. A few runs cannot
//! reach such p-values, and a test that cannot fail protects nothing.

/// For each p-value its q-value, in the same order: the rate of false alarms among all metrics
/// whose q-value is at most this one. 0 to 1, never below the p-value; equal p-values have equal
/// q-values. p-values outside 0 to 1, and NaN, count as 1. An empty input gives an empty result.
pub fn q_values(p: &[f64]) -> Vec<f64> {
    let p: Vec<f64> = p.iter().map(|v| if (0.0..=1.0).contains(v) { *v } else { 1.0 }).collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut q = vec![1.0; p.len()];
    // From the greatest down: a q-value is the least p m / rank of its own rank and all above.
    let mut least: f64 = 1.0;
    for (rank, at) in order.iter().enumerate().rev() {
        least = least.min(p[*at] * p.len() as f64 / (rank + 1) as f64);
        q[*at] = least.max(p[*at]);
    }
    q
}

#[cfg(test)]
mod tests {
    use super::super::distributions::normal_tail;
    use super::super::generator::Generator;
    use super::*;

    fn close(ours: &[f64], known: &[f64]) {
        assert_eq!(ours.len(), known.len());
        for (o, k) in ours.iter().zip(known) {
            assert!((o - k).abs() < 1e-12, "{ours:?}, known {known:?}");
        }
    }

    /// `scipy.stats.false_discovery_control(p, method="bh")` of scipy 1.16.3.
    #[test]
    fn q_values_are_those_of_scipy() {
        close(&q_values(&[0.01, 0.02, 0.03, 0.04, 0.05]), &[0.05, 0.05, 0.05, 0.05, 0.05]);
        close(
            &q_values(&[
                0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216, 0.222, 0.251,
                0.269, 0.275, 0.34, 0.341, 0.384, 0.569, 0.594, 0.696, 0.762, 0.94, 0.942, 0.975,
                0.986,
            ]),
            &[
                0.025,
                0.1,
                0.21,
                0.21,
                0.21,
                0.25,
                0.2642857142857,
                0.4910714285714,
                0.4910714285714,
                0.4910714285714,
                0.4910714285714,
                0.4910714285714,
                0.4910714285714,
                0.4910714285714,
                0.5328125,
                0.5328125,
                0.5647058823529,
                0.7815789473684,
                0.7815789473684,
                0.87,
                0.9071428571429,
                0.986,
                0.986,
                0.986,
                0.986,
            ],
        );
        close(&q_values(&[0.9, 0.004, 0.004, 0.5]), &[0.9, 0.008, 0.008, 0.6666666666667]);
        close(&q_values(&[1.0, 1.0]), &[1.0, 1.0]);
        close(&q_values(&[0.04, 0.0001, 0.03]), &[0.04, 0.0003, 0.04]);
    }

    #[test]
    fn a_single_metric_keeps_its_p_and_none_stays_none() {
        assert_eq!(q_values(&[0.004]), [0.004]);
        assert!(q_values(&[]).is_empty());
        assert_eq!(q_values(&[f64::NAN, 7.0]), [1.0, 1.0]);
    }

    /// 20 metrics that share half of their noise, none of them changed: at a rate of 5 % at most 5
    /// % of the comparisons may find anything (the error of the simulation is 0.5 %).
    #[test]
    fn dependent_metrics_without_a_change_are_rarely_discovered() {
        let mut g = Generator::new(7);
        let false_alarms = (0..2000)
            .filter(|_| {
                let shared = g.normal();
                let p: Vec<f64> =
                    (0..20).map(|_| normal_tail((shared + g.normal()) / 2f64.sqrt())).collect();
                q_values(&p).iter().any(|q| *q <= 0.05)
            })
            .count();
        assert!((20..=105).contains(&false_alarms), "{false_alarms} of 2,000");
    }
}
