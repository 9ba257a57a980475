//! A logarithmic histogram of spans, for percentiles in constant memory.

use holdup_trace::Nanos;

/// Buckets per doubling. 8 keeps a percentile within 1/16 of the true value.
const SUB: usize = 8;
const SUB_BITS: u32 = SUB.trailing_zeros();
/// Up to 2^45 ns (nine hours); longer spans share the last bucket.
const BUCKETS: usize = 43 * SUB;

/// Counts of spans by magnitude.
#[derive(Clone, Debug)]
pub(crate) struct Buckets([u32; BUCKETS]);

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets([0; BUCKETS])
    }
}

/// Counts of spans by magnitude; allocates on the first one.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Option<Box<Buckets>>);

fn bucket(ns: Nanos) -> usize {
    if ns < SUB as u64 {
        return ns as usize;
    }
    let top = 63 - ns.leading_zeros();
    let sub = (ns >> (top - SUB_BITS)) as usize & (SUB - 1);
    (((top - SUB_BITS + 1) as usize) * SUB + sub).min(BUCKETS - 1)
}

/// Middle of a bucket.
fn middle(bucket: usize) -> Nanos {
    if bucket < SUB {
        return bucket as u64;
    }
    let shift = (bucket / SUB - 1) as u32;
    let low = ((SUB + bucket % SUB) as u64) << shift;
    low + ((1u64 << shift) >> 1)
}

impl Buckets {
    #[inline]
    pub(crate) fn add(&mut self, ns: Nanos) {
        let c = &mut self.0[bucket(ns)];
        *c = c.saturating_add(1);
    }

    pub(crate) fn merge(&mut self, other: &Buckets) {
        for (a, b) in self.0.iter_mut().zip(other.0.iter()) {
            *a = a.saturating_add(*b);
        }
    }

    pub(crate) fn percentile(&self, per_cent: u64) -> Option<Nanos> {
        let total: u64 = self.0.iter().map(|&c| c as u64).sum();
        let rank = (total * per_cent).div_ceil(100).max(1);
        let mut seen = 0;
        for (i, &c) in self.0.iter().enumerate() {
            seen += c as u64;
            if seen >= rank {
                return Some(middle(i));
            }
        }
        None
    }
}

impl Histogram {
    /// Count one span.
    #[inline]
    pub fn add(&mut self, ns: Nanos) {
        self.0.get_or_insert_default().add(ns);
    }

    /// Add all of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if let Some(theirs) = &other.0 {
            self.0.get_or_insert_default().merge(theirs);
        }
    }

    /// The span that `per_cent` of all spans do not exceed, within 1/16; `None` without spans.
    pub fn percentile(&self, per_cent: u64) -> Option<Nanos> {
        self.0.as_ref()?.percentile(per_cent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_sixteenth() {
        let mut h = Histogram::default();
        assert_eq!(h.percentile(50), None);
        for ns in 1..=100_000u64 {
            h.add(ns);
        }
        for p in [1u64, 10, 50, 90, 99, 100] {
            let exact = p * 1000;
            let got = h.percentile(p).unwrap();
            assert!(got.abs_diff(exact) * 16 <= exact, "p{p}: {got} for {exact}");
        }
    }

    #[test]
    fn every_span_falls_into_a_bucket_around_it() {
        for ns in (0..64).flat_map(|s| [1u64 << s, (1u64 << s) + 1, (1u64 << s).wrapping_sub(1)]) {
            let m = middle(bucket(ns));
            if ns < 1 << 45 {
                assert!(m.abs_diff(ns) * 16 <= ns, "{ns} -> {m}");
            }
        }
    }
}
