//! How many spans there were of every length, in buckets that grow with it.
//!
//! Unlike [`crate::hist`], whose percentiles are printed, these are compared with each other: so
//! quantiles are interpolated within a bucket, and do not jump from one to the next.

use holdup_trace::Nanos;

/// Spans from 2^`FLOOR` ns on, 2^`SUB` buckets per doubling (`SUB` <= `FLOOR`), `N` buckets in
/// total; shorter spans share the first bucket, longer ones the last.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Spread<const FLOOR: u32, const SUB: u32, const N: usize> {
    /// Number of spans.
    pub count: u64,
    // Between two sums, which the compiler would else add to with vectors, at three times the cost.
    buckets: [u32; N],
    /// Their sum.
    pub total_ns: Nanos,
}

/// How many 2^`SUB`th parts of an octave a length is above 0.5^1023, rounded down: the highest bits
/// of a floating-point number are its logarithm. (A length from 2^63 on is negative here, and so
/// above all others.)
#[inline(always)]
pub(crate) fn octaves<const SUB: u32>(ns: Nanos) -> usize {
    ((ns as i64 as f64).to_bits() >> (f64::MANTISSA_DIGITS - 1 - SUB)) as usize
}

impl<const FLOOR: u32, const SUB: u32, const N: usize> Default for Spread<FLOOR, SUB, N> {
    fn default() -> Self {
        Spread { count: 0, total_ns: 0, buckets: [0; N] }
    }
}

impl<const FLOOR: u32, const SUB: u32, const N: usize> Spread<FLOOR, SUB, N> {
    #[inline(always)]
    fn bucket(ns: Nanos) -> usize {
        let ns = ns.max(1 << FLOOR);
        (octaves::<SUB>(ns) - octaves::<SUB>(1 << FLOOR)).min(N - 1)
    }

    /// Lower bound of a bucket.
    fn low(bucket: usize) -> f64 {
        let (octave, sub) = (bucket >> SUB, bucket & ((1 << SUB) - 1));
        (1u64 << (octave + FLOOR as usize)) as f64 * (1.0 + sub as f64 / (1 << SUB) as f64)
    }

    /// Buckets with spans in them: bounds, and how many spans.
    fn filled(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        self.buckets
            .iter()
            .enumerate()
            .filter(|b| *b.1 > 0)
            .map(|(i, &n)| (Self::low(i), Self::low(i + 1), n as f64))
    }

    #[inline]
    pub(crate) fn add(&mut self, ns: Nanos) {
        self.count += 1;
        self.total_ns += ns;
        let b = &mut self.buckets[Self::bucket(ns)];
        *b = b.saturating_add(1);
    }

    /// Add all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
        for (a, b) in self.buckets.iter_mut().zip(&other.buckets) {
            *a = a.saturating_add(*b);
        }
    }

    /// Arithmetic mean; 0 without spans.
    pub fn mean_ns(&self) -> Nanos {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }

    /// The length in ns that this part of the spans does not exceed; 0 without spans.
    pub fn quantile(&self, part: f64) -> f64 {
        let rank = self.filled().map(|(_, _, n)| n).sum::<f64>() * part;
        let mut seen = 0.0;
        for (low, high, n) in self.filled() {
            if seen + n >= rank {
                return low + (high - low) * ((rank - seen) / n).clamp(0.0, 1.0);
            }
            seen += n;
        }
        0.0
    }

    /// [`Self::quantile`] in whole ns.
    pub fn quantile_ns(&self, part: f64) -> Nanos {
        self.quantile(part) as Nanos
    }

    /// The typical length.
    pub fn median_ns(&self) -> Nanos {
        self.quantile_ns(0.5)
    }

    /// Mean of the shortest spans, `part` of all.
    pub fn mean_below_ns(&self, part: f64) -> f64 {
        let wanted = self.filled().map(|(_, _, n)| n).sum::<f64>() * part;
        let (mut left, mut sum) = (wanted, 0.0);
        for (low, high, n) in self.filled() {
            let n = n.min(left);
            sum += n * (low + high) / 2.0;
            left -= n;
        }
        if wanted > 0.0 { sum / wanted } else { 0.0 }
    }

    /// Sum, and sum of the squares, of the spans in the buckets from `ns` on, in ns and ns^2.
    pub fn beyond(&self, ns: Nanos) -> (f64, f64) {
        let from = Self::low(Self::bucket(ns));
        self.filled().filter(|b| b.0 >= from).fold((0.0, 0.0), |(sum, squares), (low, high, n)| {
            let length = (low + high) / 2.0;
            (sum + n * length, squares + n * length * length)
        })
    }

    /// Spans from `from` to below `to`, and the time that all spans together spent at that age.
    pub fn at_age(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut ended, mut lived) = (0.0, 0.0);
        for (low, high, n) in self.filled() {
            let inside = ((high.min(to) - low.max(from)) / (high - low)).max(0.0);
            ended += n * inside;
            lived += n * (((low + high) / 2.0).min(to) - from).max(0.0);
        }
        (ended, lived)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Costing, Lengths};

    #[test]
    fn buckets_hold_what_they_say() {
        for ns in [4, 5, 7, 8, 9, 100, 1000, 12_345, 1 << 20, (1 << 31) + 5] {
            let b = Costing::bucket(ns);
            assert!(
                Costing::low(b) <= ns as f64 && (ns as f64) < Costing::low(b + 1),
                "{ns} in {b}: {} to {}",
                Costing::low(b),
                Costing::low(b + 1)
            );
        }
        assert_eq!(Costing::bucket(0), 0);
        assert_eq!(Costing::bucket(u64::MAX), (31 << 2) - 1);
    }

    #[test]
    fn quantiles_are_within_a_quarter_octave() {
        let mut s = Costing::default();
        (1..=1000u64).for_each(|i| s.add(i * 1000));
        for part in [0.1, 0.5, 0.9] {
            let (is, truth) = (s.quantile_ns(part) as f64, part * 1e6);
            assert!((is / truth - 1.0).abs() < 0.05, "{part}: {is}");
        }
        assert_eq!(Costing::default().median_ns(), 0);
        assert_eq!(Costing::default().mean_ns(), 0);
    }

    #[test]
    fn medians_are_within_a_sixteenth() {
        for ns in [4_096, 5_000, 20_400, 20_500, 123_456, 7_000_000] {
            let mut l = Lengths::default();
            (0..100).for_each(|_| l.add(ns));
            let median = l.quantile(0.5);
            assert!((median / ns as f64 - 1.0).abs() < 1.0 / 16.0, "{ns}: {median}");
            assert!(
                Lengths::low(Lengths::bucket(ns)) <= ns as f64
                    && (ns as f64) < Lengths::low(Lengths::bucket(ns) + 1),
                "{ns}"
            );
        }
        assert_eq!(Lengths::bucket(u64::MAX), (20 << 4) - 1);
        assert_eq!(Lengths::default().quantile(0.5), 0.0);
    }
}
