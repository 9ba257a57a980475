//! Two independent samples: is the second one the larger?
//!
//! Mann and Whitney, "On a test of whether one of two random variables is stochastically larger
//! than the other", 1947. With few runs the p-value is exact: the fraction of all ways to choose
//! the second sample from the given values that rank it at least as high. That holds for any
//! distribution, and with ties too, because equal values share the mean of their ranks and are
//! chosen as they are. Rank sums are counted by dynamic programming instead of one by one.

use super::distributions::normal_tail;

/// Up to this total number of values the p-value is exact; the counts of 50 values fit 64 bits.
/// Beyond, the normal approximation is conservative: it says 0.0039 for 0.0035 and 0.00014 for
/// 0.00008 with 25 values per side.
pub const EXACT_UP_TO: usize = 50;

/// The result of a rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// The statistic. For two samples: U, the number of pairs (one value of each) in which the
    /// second is the larger, with ties counted half. For pairs: W, the sum of the ranks of those
    /// that grew.
    pub statistic: f64,
    /// The probability of a statistic this large if nothing changed: above 0, at most 1.
    pub p: f64,
    /// Whether `p` is exact, or the normal approximation for many values.
    pub exact: bool,
}

/// Whether `b` tends to be larger than `a`. `None` if one of them is empty. If all values are
/// equal, p is 1.
pub fn greater(a: &[f64], b: &[f64]) -> Option<RankTest> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = doubled_midranks(&all);
    let (n, m) = (a.len(), b.len());
    let sum: usize = ranks[n..].iter().sum();
    let statistic = sum as f64 / 2.0 - (m * (m + 1)) as f64 / 2.0;
    let exact = n + m <= EXACT_UP_TO;
    let p = if exact {
        // Counted for the smaller sample, which is less work: its rank is low if the other is high.
        let total: usize = ranks.iter().sum();
        if m <= n { tail(&ranks, m, sum) } else { tail_below(&ranks, n, total - sum) }
    } else {
        approximate(statistic, n, m, &ranks)
    };
    Some(RankTest { statistic, p: probability(p), exact })
}

/// Twice the rank of each value, 2 for the least; equal values share the mean of their ranks, and
/// doubling keeps that a whole number.
pub(super) fn doubled_midranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|x, y| values[*x].total_cmp(&values[*y]));
    let mut ranks = vec![0; values.len()];
    let mut from = 0;
    for equal in order.chunk_by(|x, y| values[*x] == values[*y]) {
        // Ranks from + 1 to from + len: twice their mean is the sum of the first and the last.
        for at in equal {
            ranks[*at] = 2 * from + equal.len() + 1;
        }
        from += equal.len();
    }
    ranks
}

/// A p-value is never 0, however extreme: something that happened cannot be impossible.
pub(super) fn probability(p: f64) -> f64 {
    p.clamp(f64::MIN_POSITIVE, 1.0)
}

/// How many choices of `size` of the ranks have each sum.
fn sums(ranks: &[usize], size: usize) -> Vec<u64> {
    let mut largest = ranks.to_vec();
    largest.sort_unstable();
    let width = largest.iter().rev().take(size).sum::<usize>() + 1;
    // ways[k][s]: choices of k among the ranks seen so far whose sum is s.
    let mut ways = vec![vec![0u64; width]; size + 1];
    ways[0][0] = 1;
    for rank in ranks {
        // From above, so that no rank is taken twice.
        for k in (1..=size).rev() {
            let (fewer, more) = ways.split_at_mut(k);
            for (s, old) in fewer[k - 1].iter().enumerate().take(width.saturating_sub(*rank)) {
                more[0][s + rank] += old;
            }
        }
    }
    ways.swap_remove(size)
}

fn part(ways: &[u64], within: impl Fn(usize) -> bool) -> f64 {
    let all: u64 = ways.iter().sum();
    let counted: u64 = ways.iter().enumerate().filter(|(s, _)| within(*s)).map(|(_, w)| w).sum();
    counted as f64 / all as f64
}

/// The fraction of all choices of `size` ranks whose sum is at least `sum`.
fn tail(ranks: &[usize], size: usize, sum: usize) -> f64 {
    part(&sums(ranks, size), |s| s >= sum)
}

/// The fraction of all choices of `size` ranks whose sum is at most `sum`.
fn tail_below(ranks: &[usize], size: usize, sum: usize) -> f64 {
    part(&sums(ranks, size), |s| s <= sum)
}

/// The normal approximation, with the correction for ties and for continuity (Lehmann,
/// "Nonparametrics: statistical methods based on ranks", 1975, equation 1.32).
fn approximate(u: f64, n: usize, m: usize, ranks: &[usize]) -> f64 {
    let (n, m, all) = (n as f64, m as f64, ranks.len() as f64);
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let cubes = |group: &[usize]| (group.len() as f64).powi(3) - group.len() as f64;
    let ties: f64 = sorted.chunk_by(|x, y| x == y).map(cubes).sum();
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    // Not exactly 0: for equal values the correction for ties leaves a rounding error.
    if variance <= 1e-9 { 1.0 } else { normal_tail((u - n * m / 2.0 - 0.5) / variance.sqrt()) }
}

/// The least U of `n` against `m` values without ties whose p-value is at most `p`; `None` if even
/// the largest, n m, does not reach it. A test repeated a thousand times needs no p-value, only
/// this comparison.
pub(super) fn critical(n: usize, m: usize, p: f64) -> Option<usize> {
    if n == 0 || m == 0 || p.is_nan() {
        return None;
    }
    if n + m <= EXACT_UP_TO {
        let (few, many) = (n.min(m), n.max(m));
        // U counts from the least rank sum on. Here ranks are whole, not doubled.
        let ways = sums(&(1..=few + many).collect::<Vec<_>>(), few);
        let ways = &ways[few * (few + 1) / 2..];
        let all: u64 = ways.iter().sum();
        let mut above = 0;
        let reached = |w: &u64| {
            above += w;
            above as f64 / all as f64 <= p
        };
        let enough = ways.iter().rev().map(reached).take_while(|r| *r).count();
        return (enough > 0).then(|| n * m + 1 - enough);
    }
    let ranks: Vec<usize> = (1..=n + m).collect();
    let (mut below, mut reaches) = (0, n * m);
    if approximate(reaches as f64, n, m, &ranks) > p {
        return None;
    }
    while below < reaches {
        let half = (below + reaches) / 2;
        if approximate(half as f64, n, m, &ranks) <= p {
            reaches = half;
        } else {
            below = half + 1;
        }
    }
    Some(reaches)
}

/// The smallest p-value that `n` values against `m` can ever give: 1 of all the ways to choose. A
/// limit below it is never met, whatever the values are. 1 if there are no values.
pub fn least_p(n: usize, m: usize) -> f64 {
    let (few, many) = (n.min(m), n.max(m));
    probability((1..=few).map(|i| i as f64 / (many + i) as f64).product())
}

/// The least number of runs per side that can give a p-value of `p` or less; `None` if `p` is not
/// above 0.
pub fn runs_for(p: f64) -> Option<usize> {
    // 520 values per side are already below the least positive number.
    (p > 0.0).then(|| (1..=520).find(|n| least_p(*n, *n) <= p)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_the_mean_of_their_ranks() {
        assert_eq!(doubled_midranks(&[5.0, 1.0, 5.0, 7.0]), [5, 2, 5, 8]);
        assert_eq!(doubled_midranks(&[0.0, -0.0]), [3, 3]);
        assert!(doubled_midranks(&[]).is_empty());
    }

    #[test]
    fn five_runs_above_five_are_one_of_252_choices() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        let found = greater(&a, &b).unwrap();
        assert_eq!((found.statistic, found.p, found.exact), (25.0, 1.0 / 252.0, true));
        assert_eq!(greater(&b, &a).unwrap().p, 1.0);
        assert!((least_p(5, 5) - 1.0 / 252.0).abs() < 1e-15);
        assert_eq!(runs_for(0.01), Some(5));
        assert_eq!(runs_for(1.0 / 252.0 / 3.0), Some(6));
        assert_eq!(runs_for(1.0), Some(1));
        assert_eq!((runs_for(0.0), runs_for(f64::NAN)), (None, None));
        assert_eq!(least_p(0, 5), 1.0);
    }

    #[test]
    fn no_values_give_no_test_and_equal_values_p_1() {
        assert_eq!(greater(&[], &[1.0]), None);
        assert_eq!(greater(&[1.0], &[]), None);
        for n in [1, 5, 40] {
            assert_eq!(greater(&vec![0.0; n], &vec![0.0; n]).unwrap().p, 1.0, "{n} zeros");
        }
    }

    /// The critical value is the least U whose p-value reaches the level.
    #[test]
    fn critical_values_agree_with_the_p_values() {
        for (n, m) in [(3, 3), (5, 5), (4, 9), (9, 4), (25, 25), (30, 40)] {
            // b overtakes a one value at a time: U takes every value from 0 to n m.
            let p_of = |u: usize| {
                let a: Vec<f64> = (0..n).map(|i| i as f64).collect();
                let mut b: Vec<f64> = (0..m).map(|j| -0.5 - 0.001 * j as f64).collect();
                for k in 0..u {
                    b[k % m] += 1.0;
                }
                let found = greater(&a, &b).unwrap();
                assert_eq!(found.statistic, u as f64);
                found.p
            };
            for level in [0.2, 0.05, 0.01, 0.005, 0.0001] {
                match critical(n, m, level) {
                    Some(u) => {
                        assert!(p_of(u) <= level, "{n} {m} {level}: {u}");
                        assert!(p_of(u - 1) > level, "{n} {m} {level}: {u} - 1");
                    }
                    None => assert!(least_p(n, m) > level, "{n} {m} {level}"),
                }
            }
        }
    }

    /// The approximation continues where the exact test ends without a step.
    #[test]
    fn the_approximation_meets_the_exact_test() {
        for (u, too_much) in [(330.0, 0.0), (400.0, 0.0), (450.0, 0.11), (500.0, 0.68)] {
            let ranks: Vec<usize> = (1..=50).map(|r| 2 * r).collect();
            let sum = (2.0 * u) as usize + 25 * 26;
            let (exact, near) = (tail(&ranks, 25, sum), approximate(u, 25, 25, &ranks));
            let off = near / exact - 1.0 - too_much;
            assert!(off.abs() < 0.01, "U {u}: {exact}, approximated {near}");
        }
    }
}
