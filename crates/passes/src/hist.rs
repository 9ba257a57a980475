//! A logarithmic histogram of spans, for percentiles in constant memory.

use crate::spread::octaves;
use crate::varint::{Reader, Writer};
use holdup_trace::Nanos;
use serde::Serialize;

/// Buckets per doubling. 8 keeps a percentile within 1/16 of the true value.
const SUB: usize = 8;
const SUB_BITS: u32 = SUB.trailing_zeros();
/// Up to 2^45 ns (nine hours); longer spans share the last bucket.
const BUCKETS: usize = 43 * SUB;

/// Counts of spans by magnitude; allocates on the first one.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Option<Box<Buckets>>);

/// One counter for each magnitude.
#[derive(Clone, Debug)]
struct Buckets([u32; BUCKETS]);

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets([0; BUCKETS])
    }
}

fn bucket(ns: Nanos) -> usize {
    if ns < SUB as u64 {
        return ns as usize;
    }
    (octaves::<SUB_BITS>(ns) - octaves::<SUB_BITS>(SUB as Nanos) + SUB).min(BUCKETS - 1)
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
    fn add(&mut self, ns: Nanos) {
        self.count(bucket(ns));
    }

    #[inline]
    fn count(&mut self, bucket: usize) {
        let c = &mut self.0[bucket];
        *c = c.saturating_add(1);
    }

    fn merge(&mut self, other: &Buckets) {
        for (a, b) in self.0.iter_mut().zip(other.0.iter()) {
            *a = a.saturating_add(*b);
        }
    }

    fn percentile(&self, per_cent: u64) -> Option<Nanos> {
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

impl Histogram {
    /// The same counts by powers of two.
    pub(crate) fn octaves(&self) -> Octaves {
        let mut octaves = Octaves::default();
        let buckets = self.0.iter().flat_map(|buckets| buckets.0.iter().enumerate());
        for (i, &count) in buckets.filter(|(_, count)| **count > 0) {
            octaves.add_many(middle(i), count.into());
        }
        octaves
    }
}

/// Up to this many spans are kept one by one.
const FEW: usize = 11;

/// A [`Histogram`] for very many instances that count a handful of spans each: the first spans are
/// kept by their bucket numbers, in the space next to the pointer. The answers are the same.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct SmallHistogram {
    // First, so that it shares a cache line with the other sums of each call.
    /// All counts, once there are many spans.
    many: Option<Box<Buckets>>,
    few: [u16; FEW],
    /// How many of `few` are in use.
    len: u16,
}

impl SmallHistogram {
    /// Count one span.
    #[inline(always)]
    pub(crate) fn add(&mut self, ns: Nanos) {
        match &mut self.many {
            Some(many) => many.add(ns),
            None => self.add_early(bucket(ns)),
        }
    }

    #[inline(never)]
    fn add_early(&mut self, bucket: usize) {
        if (self.len as usize) < FEW {
            self.few[self.len as usize] = bucket as u16;
            self.len += 1;
        } else {
            self.counted().count(bucket);
        }
    }

    /// Switches from single spans to counters.
    fn counted(&mut self) -> &mut Buckets {
        let (few, len) = (std::mem::take(&mut self.few), std::mem::take(&mut self.len));
        let many = self.many.get_or_insert_default();
        few[..len as usize].iter().for_each(|&bucket| many.count(bucket as usize));
        many
    }

    /// Add all of `other`.
    pub(crate) fn merge(&mut self, other: &SmallHistogram) {
        if let Some(theirs) = &other.many {
            self.counted().merge(theirs);
        }
        for &bucket in other.early() {
            match &mut self.many {
                Some(many) => many.count(bucket as usize),
                None => self.add_early(bucket as usize),
            }
        }
    }

    /// Whether it counts exactly one span, of this length.
    pub(crate) fn is_only(&self, ns: Nanos) -> bool {
        self.many.is_none() && self.early() == [bucket(ns) as u16]
    }

    /// Appends it in the format of [`SmallHistogram::unpack`].
    pub(crate) fn pack(&self, out: &mut Writer) {
        let Some(many) = &self.many else {
            out.number(self.len.into());
            return self.early().iter().for_each(|&bucket| out.number(bucket.into()));
        };
        let counts = || many.0.iter().enumerate().filter(|(_, count)| **count > 0);
        out.number((FEW + 1 + counts().count()) as u64);
        for (bucket, &count) in counts() {
            out.number(bucket as u64);
            out.number(count.into());
        }
    }

    /// Reads what [`SmallHistogram::pack`] wrote.
    pub(crate) fn unpack(from: &mut Reader<'_>) -> SmallHistogram {
        let mut hist = SmallHistogram::default();
        let len = from.number() as usize;
        if len <= FEW {
            (0..len).for_each(|_| hist.add_early(from.number() as usize));
        } else {
            let many = hist.many.get_or_insert_default();
            for _ in FEW + 1..len {
                let (bucket, count) = (from.number() as usize, from.number() as u32);
                many.0[bucket.min(BUCKETS - 1)] = count;
            }
        }
        hist
    }

    /// The buckets of the first spans.
    fn early(&self) -> &[u16] {
        &self.few[..self.len as usize]
    }

    /// The span that `per_cent` of all spans do not exceed, within 1/16; `None` without spans.
    pub(crate) fn percentile(&self, per_cent: u64) -> Option<Nanos> {
        if let Some(many) = &self.many {
            return many.percentile(per_cent);
        }
        let mut sorted = self.few;
        let sorted = &mut sorted[..self.len as usize];
        sorted.sort_unstable();
        let rank = (sorted.len() as u64 * per_cent).div_ceil(100).max(1);
        sorted.get(rank as usize - 1).map(|&bucket| middle(bucket as usize))
    }
}

/// Powers of two up to that of the last bucket, preceded by one for length 0.
const OCTAVES: usize = 47;

/// Counts of spans by powers of two: an eighth of the memory of a [`Histogram`], for cases with
/// very many instances and no percentiles. Allocates on the first span.
#[derive(Clone, Debug, Default)]
pub(crate) struct Octaves(Option<Box<[u64; OCTAVES]>>);

/// Spans of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Octave {
    /// The shortest length that counts, ns.
    pub(crate) from_ns: Nanos,
    /// The first length that is too long, ns.
    pub(crate) to_ns: Nanos,
    /// How many.
    pub(crate) count: u64,
}

impl Octaves {
    #[inline]
    pub(crate) fn add(&mut self, ns: Nanos) {
        self.add_many(ns, 1);
    }

    fn add_many(&mut self, ns: Nanos, count: u64) {
        let octave = (Nanos::BITS - ns.leading_zeros()) as usize;
        let counts = self.0.get_or_insert_with(|| Box::new([0; OCTAVES]));
        counts[octave.min(OCTAVES - 1)] += count;
    }

    pub(crate) fn merge(&mut self, other: &Octaves) {
        let Some(theirs) = &other.0 else { return };
        let ours = self.0.get_or_insert_with(|| Box::new([0; OCTAVES]));
        for (a, b) in ours.iter_mut().zip(theirs.iter()) {
            *a += b;
        }
    }

    /// From the shortest spans to the longest, with empty octaves in between.
    pub(crate) fn list(&self) -> Vec<Octave> {
        let counts = self.0.as_deref().map_or(&[][..], |counts| counts);
        let filled = || counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, _)| i);
        let (Some(first), Some(last)) = (filled().next(), filled().next_back()) else {
            return Vec::new();
        };
        let octave = |i: usize| Octave {
            from_ns: if i == 0 { 0 } else { 1 << (i - 1) },
            to_ns: 1 << i,
            count: counts[i],
        };
        (first..=last).map(octave).collect()
    }
}

/// How many waits for one object, or holds of one object, had a length in this range.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct HistRow {
    /// What was measured: `wait` or `hold`.
    pub spans: &'static str,
    /// Kind of the object: `mutex`, `condvar`, `semop`, `rwsem:R` …; `null` if it is unknown.
    pub kind: Option<String>,
    /// The object, as in the table of the verb.
    pub object: String,
    /// Lower end of the range, included in it.
    pub from_ns: u64,
    /// Upper end of the range, not included in it.
    pub to_ns: u64,
    /// Number of waits or holds in the range.
    pub count: u64,
    /// Part of all waits or holds of this object, in per cent.
    pub pct: f64,
}

impl HistRow {
    /// The rows of one object.
    pub(crate) fn of(
        spans: &'static str,
        kind: Option<String>,
        object: &str,
        octaves: &Octaves,
    ) -> Vec<HistRow> {
        let list = octaves.list();
        let all = list.iter().map(|octave| octave.count).sum();
        let row = |octave: &Octave| HistRow {
            spans,
            kind: kind.clone(),
            object: object.to_owned(),
            from_ns: octave.from_ns,
            to_ns: octave.to_ns,
            count: octave.count,
            pct: crate::rounding::percent(octave.count, all),
        };
        list.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octaves_hold_what_the_histogram_holds() {
        let (mut hist, mut direct) = (Histogram::default(), Octaves::default());
        for ns in [0, 1, 2, 3, 4, 7, 8, 1000, 1023, 1024, 1 << 40] {
            hist.add(ns);
            direct.add(ns);
        }
        assert_eq!(hist.octaves().list(), direct.list());
        let list = direct.list();
        assert_eq!(list.len(), 42, "from no time to 2^40, gaps between them too");
        let at = |from_ns| list.iter().find(|o| o.from_ns == from_ns).map(|o| (o.to_ns, o.count));
        assert_eq!(at(0), Some((1, 1)));
        assert_eq!(at(4), Some((8, 2)));
        assert_eq!(
            (at(512), at(1024), at(2048)),
            (Some((1024, 2)), Some((2048, 1)), Some((4096, 0)))
        );
        assert_eq!(Octaves::default().list(), []);
        let mut far = Octaves::default();
        far.add(Nanos::MAX);
        assert_eq!(far.list().len(), 1, "what is longer than all counts as the longest");
    }

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
    fn few_spans_are_answered_for_as_many_are() {
        for n in 0..3 * FEW as u64 {
            let (mut plain, mut small) = (Histogram::default(), SmallHistogram::default());
            let (mut left, mut right) = (SmallHistogram::default(), SmallHistogram::default());
            for i in 0..n {
                let ns = (i * 7919) % 1000 * (i + 1);
                plain.add(ns);
                small.add(ns);
                if i % 3 == 0 { left.add(ns) } else { right.add(ns) }
            }
            left.merge(&right);
            for p in [0, 1, 50, 51, 99, 100] {
                let expected = plain.percentile(p);
                assert_eq!(small.percentile(p), expected, "p{p} of {n}");
                assert_eq!(left.percentile(p), expected, "p{p} of {n}, merged");
            }
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
