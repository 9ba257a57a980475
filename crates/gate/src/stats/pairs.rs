//! Pairs of runs, one of each version, recorded one after the other: did the second grow?
//!
//! Interleaved pairs (A B A B …) cancel what the machine did meanwhile, because it affected both
//! runs of a pair. Wilcoxon, "Individual comparisons by ranking methods", 1945, on the logarithms
//! of the ratios b/a: a change is relative, and + 25 % must weigh as much as its reversal. The
//! p-value is exact for few pairs: the fraction of all 2^n choices of signs that gives at least as
//! large a sum of the ranks of the pairs that grew.
//!
//! Pairs that did not change are ranked with the others and then left out (Pratt, "Remarks on
//! zeros and ties in the Wilcoxon signed rank procedures", 1959). If they were dropped before, as
//! Wilcoxon did, raising values could make the evidence that they rose weaker.

use super::distributions::normal_tail;
use super::ranks::{RankTest, doubled_midranks, probability};
use super::spread::ratio;

/// Up to this many pairs the p-value is exact; 2^60 sums of signs fit 64 bits.
pub const EXACT_UP_TO: usize = 60;

/// The change from `a` to `b` as a value that ranks like |ln(b/a)|: the greater divided by the
/// smaller, with the sign of the change, and 0 for none. A quotient is rounded correctly but the
/// difference of two logarithms is not; so 1 to 2 and 16 to 8 have the same size, as they should.
fn change(a: f64, b: f64) -> f64 {
    if a == b {
        0.0
    } else if b > a {
        b / a
    } else {
        -(a / b)
    }
}

/// Whether the values of `b` tend to be larger than those of `a` in the same place.
///
/// A pair in which only one value is 0 counts as the largest change of all. `None` if there are no
/// pairs, if the lengths differ, or if a value is below 0, because then a ratio means nothing. If
/// nothing changed, p is 1.
pub fn greater(a: &[f64], b: &[f64]) -> Option<RankTest> {
    let sound = |v: &f64| *v >= 0.0 && v.is_finite();
    if a.is_empty() || a.len() != b.len() || !a.iter().chain(b).all(sound) {
        return None;
    }
    let changes: Vec<f64> = a.iter().zip(b).map(|(a, b)| change(*a, *b)).collect();
    Some(signed_rank(&changes))
}

/// The signed-rank test of these changes, one-sided: are they above 0?
fn signed_rank(changes: &[f64]) -> RankTest {
    let sizes: Vec<f64> = changes.iter().map(|c| c.abs()).collect();
    let all = doubled_midranks(&sizes);
    let signed = || all.iter().zip(changes).filter(|(_, c)| **c != 0.0);
    let ranks: Vec<usize> = signed().map(|(r, _)| *r).collect();
    let sum: usize = signed().filter(|(_, c)| **c > 0.0).map(|(r, _)| r).sum();
    let exact = ranks.len() <= EXACT_UP_TO;
    let p = if exact {
        let ways = sums(&ranks);
        ways[sum..].iter().sum::<u64>() as f64 / ways.iter().sum::<u64>() as f64
    } else {
        approximate(sum, &ranks)
    };
    RankTest { statistic: sum as f64 / 2.0, p: probability(p), exact }
}

/// How many choices of signs give each sum of the positive ranks.
fn sums(ranks: &[usize]) -> Vec<u64> {
    let mut ways = vec![0u64; ranks.iter().sum::<usize>() + 1];
    ways[0] = 1;
    for rank in ranks {
        // From above, so that no rank is taken twice.
        for s in (*rank..ways.len()).rev() {
            ways[s] += ways[s - rank];
        }
    }
    ways
}

/// The normal approximation with the correction for continuity. Each rank is included or not with
/// equal probability, so the variance is a quarter of the sum of squares, with ties and zeros.
fn approximate(doubled_sum: usize, doubled: &[usize]) -> f64 {
    let mean = doubled.iter().sum::<usize>() as f64 / 4.0;
    let variance = doubled.iter().map(|r| (*r as f64).powi(2)).sum::<f64>() / 16.0;
    normal_tail((doubled_sum as f64 / 2.0 - mean - 0.5) / variance.sqrt())
}

/// The least W of `n` pairs without ties whose p-value is at most `p`; `None` if even the largest
/// does not reach it.
pub(super) fn critical(n: usize, p: f64) -> Option<usize> {
    let ranks: Vec<usize> = (1..=n).collect();
    let most = n * (n + 1) / 2;
    let reaches: Box<dyn FnMut(usize) -> bool> = if n <= EXACT_UP_TO {
        let ways = sums(&ranks);
        let all = 2f64.powi(n as i32);
        let mut above = 0;
        Box::new(move |w| {
            above += ways[w];
            above as f64 / all <= p
        })
    } else {
        let doubled: Vec<usize> = ranks.iter().map(|r| 2 * r).collect();
        Box::new(move |w| approximate(2 * w, &doubled) <= p)
    };
    (0..=most).rev().map(reaches).take_while(|r| *r).count().checked_sub(1).map(|more| most - more)
}

/// The ratios b/a of the pairs, 1.25 for a quarter more. Two zeros give 1. A pair from 0 to
/// something has no ratio and is left out; so are values below 0.
pub fn ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).filter_map(|(a, b)| ratio(*a, *b)).collect()
}

/// The smallest p-value that `n` pairs can ever give: 2^-n. 1 if there are none.
pub fn least_p(n: usize) -> f64 {
    probability(0.5f64.powi(n.min(2000) as i32))
}

/// The least number of pairs that can give a p-value of `p` or less; `None` if `p` is not above 0.
pub fn runs_for(p: f64) -> Option<usize> {
    (p > 0.0).then(|| (1..=1100).find(|n| least_p(*n) <= p)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_all_grew_are_one_of_two_to_the_n() {
        let found = greater(&[1.0, 2.0, 3.0, 4.0], &[2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((found.statistic, found.p, found.exact), (10.0, 1.0 / 16.0, true));
        assert_eq!(least_p(4), 1.0 / 16.0);
        assert_eq!((runs_for(0.01), runs_for(0.5), runs_for(1.0)), (Some(7), Some(1), Some(1)));
        assert_eq!((runs_for(0.0), runs_for(f64::NAN)), (None, None));
        assert_eq!(least_p(0), 1.0);
    }

    #[test]
    fn zeros_are_equal_to_zeros_and_far_from_everything_else() {
        assert_eq!(greater(&[0.0; 6], &[0.0; 6]).unwrap().p, 1.0);
        // From 0 to something is the largest change: rank 3 of 3.
        let found = greater(&[0.0, 4.0, 1.0], &[1e-9, 1.0, 2.0]).unwrap();
        assert_eq!(found.statistic, 3.0 + 1.0);
        assert_eq!(greater(&[1.0, 2.0], &[0.0, 0.0]).unwrap().p, 1.0);
    }

    #[test]
    fn what_makes_no_pairs_gives_no_test() {
        assert_eq!(greater(&[], &[]), None);
        assert_eq!(greater(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(greater(&[-1.0], &[1.0]), None);
    }

    /// A change counts as much as its reversal, and ties by size are recognised.
    #[test]
    fn swapping_the_sides_only_swaps_the_signs() {
        let (a, b) = ([1.0, 3.0, 8.0, 10.0], [2.0, 1.5, 16.0, 30.0]);
        let (up, down) = (greater(&a, &b).unwrap(), greater(&b, &a).unwrap());
        assert_eq!(up.statistic + down.statistic, 10.0);
        assert_eq!(up.statistic, 2.0 + 2.0 + 4.0);
    }

    /// Pratt's argument: with zeros dropped first, W would fall from 5 of 6 to 3 of 3.
    #[test]
    fn an_unchanged_pair_keeps_its_rank() {
        let found = greater(&[1.0, 1.0, 1.0], &[1.0, 1.1, 1.2]).unwrap();
        assert_eq!((found.statistic, found.p), (5.0, 0.25));
    }

    #[test]
    fn critical_values_agree_with_the_p_values() {
        for n in [1, 4, 7, 10, 30, 80] {
            let changes = |w: usize| {
                // The greatest ranks first: every sum can be made that way.
                let mut left = w;
                let signed = |rank: usize| {
                    let plus = rank <= left;
                    left -= if plus { rank } else { 0 };
                    if plus { rank as f64 } else { -(rank as f64) }
                };
                (1..=n).rev().map(signed).collect::<Vec<_>>()
            };
            for level in [0.5, 0.05, 0.01, 0.001] {
                let p_of = |w: usize| {
                    let found = signed_rank(&changes(w));
                    assert_eq!(found.statistic, w as f64);
                    found.p
                };
                match critical(n, level) {
                    Some(w) => {
                        assert!(p_of(w) <= level, "{n} {level}: {w}");
                        assert!(p_of(w - 1) > level, "{n} {level}: {w} - 1");
                    }
                    None => assert!(least_p(n) > level, "{n} {level}"),
                }
            }
        }
        assert_eq!(critical(0, 0.5), None);
    }

    #[test]
    fn a_pair_from_0_to_something_has_no_ratio() {
        assert_eq!(ratios(&[2.0, 0.0], &[3.0, 1.0]), [1.5]);
        assert_eq!(ratios(&[4.0, 0.0], &[5.0, 0.0]), [1.25, 1.0]);
    }
}
