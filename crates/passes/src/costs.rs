//! What like pieces of work cost: system calls by who else was in the kernel when they began, and
//! the application's stretches between two calls by how many CPUs were busy when they began.
//!
//! Three questions that no single event answers come from comparing a piece of work with its likes:
//!
//! * **Does company make a call dearer?** How many others are in the kernel when a call *begins*
//!   does not depend on how long the call is going to take, so the comparison of calls begun alone
//!   with calls begun in company is fair, where calls differ in size too. (The company *during* a
//!   call, [`crate::crowding`], is not: a long call meets average company, a short one any.)
//! * **Do calls exclude each other?** Under one lock two calls cannot end within the time that
//!   the lock is held. The gaps between ends by different threads show it: none is short, although
//!   longer ones abound. A gap that an end by the same thread closes tells nothing but that no
//!   other thread ended a call meanwhile (it is censored, in the words of survival analysis).
//! * **Does the machine slow the work down?** A hypervisor that takes the CPU away makes some
//!   pieces very long and leaves the typical one as it is: mean over median of the application's
//!   own stretches. A memory bus or a cache line that is fought for makes the typical one longer,
//!   the more CPUs are busy.
//!
//! Stretches are alike if they lead to the same system call. Their time is that on a CPU outside
//! the kernel and interrupts.

use crate::threads::Slot;
use holdup_trace::Nanos;

/// Buckets per doubling.
const SUB_BITS: u32 = 2;
/// Up to 2^32 ns, 4 s: longer pieces share the last bucket.
const BUCKETS: usize = 31 << SUB_BITS;
/// Levels of [`Costs::stretches`]: quarters of the CPUs busy.
pub const QUARTERS: usize = 4;
/// System call numbers beyond this are damage.
const MAX_NR: u32 = 4096;

fn bucket(ns: Nanos) -> usize {
    let ns = ns.max(1 << SUB_BITS);
    let top = 63 - ns.leading_zeros();
    let sub = (ns >> (top - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((((top - SUB_BITS) as usize) << SUB_BITS) + sub).min(BUCKETS - 1)
}

/// Lower bound of a bucket.
fn low(bucket: usize) -> f64 {
    let (octave, sub) = (bucket >> SUB_BITS, bucket & ((1 << SUB_BITS) - 1));
    ((1u64 << octave) * ((1 << SUB_BITS) + sub) as u64) as f64
}

/// Costs of like pieces of work.
#[derive(Clone, Debug)]
pub struct Spread {
    /// Pieces.
    pub count: u64,
    /// Their sum.
    pub total_ns: Nanos,
    buckets: [u32; BUCKETS],
}

impl Default for Spread {
    fn default() -> Self {
        Spread { count: 0, total_ns: 0, buckets: [0; BUCKETS] }
    }
}

impl Spread {
    #[inline]
    pub(crate) fn add(&mut self, ns: Nanos) {
        self.count += 1;
        self.total_ns += ns;
        let b = &mut self.buckets[bucket(ns)];
        *b = b.saturating_add(1);
    }

    /// Both together.
    pub fn with(&self, other: &Spread) -> Spread {
        let mut sum = self.clone();
        sum.count += other.count;
        sum.total_ns += other.total_ns;
        for (a, b) in sum.buckets.iter_mut().zip(&other.buckets) {
            *a = a.saturating_add(*b);
        }
        sum
    }

    /// Arithmetic mean; 0 without pieces.
    pub fn mean_ns(&self) -> Nanos {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }

    /// The cost that this part of the pieces does not exceed, interpolated within a bucket a
    /// quarter of an octave wide; 0 without pieces.
    pub fn quantile_ns(&self, part: f64) -> Nanos {
        let all: u64 = self.buckets.iter().map(|&b| b as u64).sum();
        let rank = all as f64 * part;
        let mut seen = 0.0;
        for (i, &n) in self.buckets.iter().enumerate().filter(|b| *b.1 > 0) {
            if seen + n as f64 >= rank {
                let within = ((rank - seen) / n as f64).clamp(0.0, 1.0);
                return (low(i) + (low(i + 1) - low(i)) * within) as Nanos;
            }
            seen += n as f64;
        }
        0
    }

    /// Mean of the cheapest `part`.
    pub fn mean_below_ns(&self, part: f64) -> f64 {
        let all: u64 = self.buckets.iter().map(|&b| b as u64).sum();
        let (mut left, mut sum) = (all as f64 * part, 0.0);
        let wanted = left;
        for (i, &n) in self.buckets.iter().enumerate().filter(|b| *b.1 > 0) {
            let n = (n as f64).min(left);
            sum += n * (low(i) + low(i + 1)) / 2.0;
            left -= n;
        }
        if wanted > 0.0 { sum / wanted } else { 0.0 }
    }

    /// Sum, and sum of the squares, of the pieces that cost at least this, in ns and ns^2.
    pub fn beyond(&self, ns: Nanos) -> (f64, f64) {
        let from = bucket(ns);
        self.buckets.iter().enumerate().skip(from).filter(|b| *b.1 > 0).fold((0.0, 0.0), |(sum, squares), (i, &n)| {
            let cost = (low(i) + low(i + 1)) / 2.0;
            (sum + n as f64 * cost, squares + n as f64 * cost * cost)
        })
    }

    /// The typical cost.
    pub fn median_ns(&self) -> Nanos {
        self.quantile_ns(0.5)
    }

    /// Pieces from `from` to below `to`, and the time that all pieces together spent at that age.
    fn at_age(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut ended, mut lived) = (0.0, 0.0);
        for (i, &n) in self.buckets.iter().enumerate().filter(|b| *b.1 > 0) {
            let (a, b, n) = (low(i), low(i + 1), n as f64);
            let inside = ((b.min(to) - a.max(from)) / (b - a)).max(0.0);
            ended += n * inside;
            lived += n * (((a + b) / 2.0).min(to) - from).max(0.0);
        }
        (ended, lived)
    }
}

/// How close together calls of different threads end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exclusion {
    /// Calls that ended so soon after another thread's that two could not have done so under one lock.
    pub observed: f64,
    /// As many as there would be if ends were as frequent as at somewhat longer gaps.
    pub expected: f64,
}

/// Everything compared about one system call.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// CPU time of calls begun when no other thread was in the kernel.
    pub alone: Spread,
    /// CPU time of those begun when others were: on a CPU, ready to go on, or asleep for a lock.
    pub company: Spread,
    /// CPU time of the application's stretches that led to this call, by the quarter of the CPUs
    /// that were busy when they began.
    pub stretches: [Spread; QUARTERS],
    last_end: Option<(Nanos, Slot)>,
    /// Gaps between ends of calls that never slept: to an end by another thread, and by the same.
    gaps: [Spread; 2],
}

impl Costs {
    /// CPU time of all calls.
    pub fn calls(&self) -> Spread {
        self.alone.with(&self.company)
    }

    /// Ends that followed another thread's, and ends that followed the same thread's.
    pub fn turns(&self) -> (u64, u64) {
        (self.gaps[0].count, self.gaps[1].count)
    }

    /// Whether these calls keep out of each other's way. A tenth of the calls cost no more than c;
    /// gaps below c/2 are compared with those from there to three times the typical cost.
    pub fn exclusion(&self) -> Exclusion {
        let calls = self.calls();
        let cheap = calls.quantile_ns(0.1) as f64;
        let typical = calls.median_ns() as f64;
        let [other, same] = &self.gaps;
        let (observed, lived) = other.at_age(0.0, cheap / 2.0);
        let lived = lived + same.at_age(0.0, cheap / 2.0).1;
        let (later, later_lived) = other.at_age(cheap / 2.0, typical * 3.0);
        let later_lived = later_lived + same.at_age(cheap / 2.0, typical * 3.0).1;
        let expected = if later_lived > 0.0 { later / later_lived * lived } else { 0.0 };
        Exclusion { observed, expected }
    }
}

/// By number of the call.
#[derive(Debug, Default)]
pub(crate) struct CostTable {
    calls: Vec<Option<Box<Costs>>>,
    /// Threads inside a call: on a CPU, ready to go on, or asleep for a lock of the kernel.
    inside: u32,
}

impl CostTable {
    #[inline(always)]
    fn entry(&mut self, nr: u32) -> Option<&mut Costs> {
        if !matches!(self.calls.get(nr as usize), Some(Some(_))) {
            self.add(nr)?;
        }
        self.calls.get_mut(nr as usize)?.as_deref_mut()
    }

    #[cold]
    fn add(&mut self, nr: u32) -> Option<()> {
        if nr >= MAX_NR {
            return None;
        }
        if nr as usize >= self.calls.len() {
            self.calls.resize_with(nr as usize + 1, || None);
        }
        self.calls[nr as usize] = Some(Box::default());
        Some(())
    }

    /// One more thread inside; says whether it is the only one.
    #[inline]
    pub(crate) fn enter(&mut self) -> bool {
        self.inside += 1;
        self.inside == 1
    }

    /// One less.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.inside = self.inside.saturating_sub(1);
    }

    /// A stretch of application code led to this call.
    #[inline]
    pub(crate) fn stretch(&mut self, nr: u32, ns: Nanos, quarter: u8) {
        if let Some(c) = self.entry(nr) {
            c.stretches[quarter as usize % QUARTERS].add(ns);
        }
    }

    /// A call that took `cpu_ns` ended. Who `slept` was woken by others, in whatever order they do that.
    #[inline]
    pub(crate) fn call(&mut self, nr: u32, now: Nanos, slot: Slot, cpu_ns: Nanos, alone: bool, slept: bool) {
        let Some(c) = self.entry(nr) else { return };
        if alone { &mut c.alone } else { &mut c.company }.add(cpu_ns);
        if !slept && let Some((end, by)) = c.last_end.replace((now, slot)) {
            c.gaps[(by == slot) as usize].add(now.saturating_sub(end));
        }
    }

    pub(crate) fn get(&self, nr: u32) -> Option<&Costs> {
        self.calls.get(nr as usize)?.as_deref()
    }

    /// Forget the sums, keep who is inside.
    pub(crate) fn restart(&mut self) {
        self.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_what_they_say() {
        for ns in [4, 5, 7, 8, 9, 100, 1000, 12_345, 1 << 20, (1 << 31) + 5] {
            let b = bucket(ns);
            assert!(low(b) <= ns as f64 && (ns as f64) < low(b + 1), "{ns} in {b}: {} to {}", low(b), low(b + 1));
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_a_quarter_octave() {
        let mut s = Spread::default();
        (1..=1000u64).for_each(|i| s.add(i * 1000));
        for part in [0.1, 0.5, 0.9] {
            let (is, truth) = (s.quantile_ns(part) as f64, part * 1e6);
            assert!((is / truth - 1.0).abs() < 0.05, "{part}: {is}");
        }
        assert_eq!(Spread::default().median_ns(), 0);
        assert_eq!(Spread::default().mean_ns(), 0);
    }

    /// Calls of 10 us, of which 8 us under a lock, by two threads that always want it.
    #[test]
    fn calls_under_one_lock_exclude_each_other() {
        let mut table = CostTable::default();
        for i in 0..1000u64 {
            table.call(1, i * 8_000, Slot(1 + (i % 2) as u32), 10_000, false, false);
        }
        let e = table.get(1).unwrap().exclusion();
        assert!(e.observed < 1.0 && e.expected > 0.0, "{e:?}");
    }

    /// Calls of 10 us by two threads at times that have nothing to do with each other.
    #[test]
    fn independent_calls_do_not() {
        let mut table = CostTable::default();
        let (mut ts, mut random) = (0u64, 1u64);
        for _ in 0..4000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((random >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
            ts += (-uniform.ln() * 20_000.0) as u64;
            table.call(1, ts, Slot(1 + (random >> 7) as u32 % 2), 10_000, true, false);
        }
        let e = table.get(1).unwrap().exclusion();
        assert!(e.observed > 100.0 && (0.8..1.25).contains(&(e.observed / e.expected)), "{e:?}");
    }
}
