//! Pieces of a thread's time, and how much of them lies between two moments.

use holdup_trace::Nanos;

/// Pieces in order of time that do not overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    /// From, to, how many ns of it count, and how many before it.
    parts: Vec<(Nanos, Nanos, Nanos, Nanos)>,
    all: Nanos,
}

impl Spans {
    /// Of the time from `from` to `to`, `ns` count.
    pub(crate) fn add(&mut self, from: Nanos, to: Nanos, ns: Nanos) {
        if ns > 0 && to > from {
            self.parts.push((from, to, ns, self.all));
            self.all += ns;
        }
    }

    /// The ns that count until a moment.
    pub(crate) fn until(&self, at: Nanos) -> Nanos {
        let after = self.parts.partition_point(|part| part.0 < at);
        let Some(&(from, to, ns, before)) = after.checked_sub(1).and_then(|i| self.parts.get(i))
        else {
            return 0;
        };
        let part = u128::from(ns) * u128::from(at.min(to) - from) / u128::from(to - from);
        before + part as Nanos
    }

    /// The ns that count between two moments.
    pub(crate) fn within(&self, from: Nanos, to: Nanos) -> Nanos {
        self.until(to).saturating_sub(self.until(from)).min(to.saturating_sub(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_pieces_count_by_their_length() {
        let mut spans = Spans::default();
        spans.add(100, 200, 50);
        spans.add(300, 400, 100);
        spans.add(500, 500, 1);
        assert_eq!(
            [0, 100, 150, 250, 350, 900].map(|at| spans.until(at)),
            [0, 0, 25, 50, 100, 150]
        );
        assert_eq!((spans.within(150, 350), spans.within(350, 150)), (75, 0));
    }
}
