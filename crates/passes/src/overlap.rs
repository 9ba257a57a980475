//! Whether threads do something at the same time: as often as chance has it, or hardly ever.

use crate::rounding::percent;
use crate::slot::Slot;
use holdup_trace::Nanos;
use std::collections::BTreeMap;

/// How long several threads do something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlap {
    /// How long each of them does it.
    of_each: BTreeMap<Slot, Nanos>,
    /// How long at least one of them does it.
    any_ns: Nanos,
    /// From the first beginning to the last end.
    span: Option<(Nanos, Nanos)>,
}

impl Overlap {
    /// A thread does it from one moment to another. It began no earlier than what was added before.
    pub(crate) fn add(&mut self, slot: Slot, from: Nanos, to: Nanos) {
        let (first, last) = self.span.unwrap_or((from, from));
        *self.of_each.entry(slot).or_default() += to.saturating_sub(from);
        self.any_ns += to.saturating_sub(from.max(last));
        self.span = Some((first.min(from), last.max(to)));
    }

    /// For how much of the time at least one of them does it, in per cent.
    pub(crate) fn any_pct(&self) -> f64 {
        self.span.map_or(0.0, |(first, last)| percent(self.any_ns, last - first))
    }

    /// The threads that do it for at least this part of what each does on average.
    pub(crate) fn who_matters(&self, pct: f64) -> Vec<Slot> {
        let all: Nanos = self.of_each.values().sum();
        let least = all as f64 / self.of_each.len().max(1) as f64 * pct / 100.0;
        self.of_each.iter().filter(|of| *of.1 as f64 >= least).map(|of| *of.0).collect()
    }

    /// Whether the threads exclude each other: they would do it at the same time for this part of
    /// the time if they were independent, and do so this many times less.
    pub(crate) fn is_below(&self, matters_pct: f64, times: f64) -> bool {
        let Some((first, last)) = self.span else { return false };
        let span = (last - first) as f64;
        let all: Nanos = self.of_each.values().sum();
        // By chance none of them does it for the product of the parts in which each does not.
        let idle = |&ns: &Nanos| (1.0 - ns as f64 / span.max(1.0)).max(0.0);
        let none: f64 = self.of_each.values().map(idle).product();
        let by_chance = all as f64 - span * (1.0 - none);
        let overlap = all.saturating_sub(self.any_ns) as f64;
        by_chance * 100.0 >= span * matters_pct && overlap * times < by_chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MATTERS, MISSING_ENDS};

    /// Three threads do it 50 times for 10 ns, each 30 ns after its last time began; the second and
    /// the third begin `apart` and twice as much later than the first.
    fn is_missing(apart: Nanos) -> bool {
        let mut overlap = Overlap::default();
        for i in 0..150 {
            let from = i / 3 * 30 + i % 3 * apart;
            overlap.add(Slot(i as u32 % 3), from, from + 10);
        }
        overlap.is_below(MATTERS.default, MISSING_ENDS.default)
    }

    #[test]
    fn one_after_the_other_is_no_chance() {
        assert!(is_missing(10));
        assert!(!is_missing(0), "all at once");
        assert!(!is_missing(5), "half of each, less than by chance");
        assert!(!Overlap::default().is_below(MATTERS.default, MISSING_ENDS.default));
    }

    #[test]
    fn one_alone_excludes_nobody() {
        let mut alone = Overlap::default();
        (0..50).for_each(|i| alone.add(Slot(1), i * 30, i * 30 + 10));
        assert!(!alone.is_below(MATTERS.default, MISSING_ENDS.default));
    }
}
