//! perf's rounds, by which it sorts: which events come too late for it.
//!
//! perf record empties the buffers of all CPUs one after another and then writes a FINISHED_ROUND.
//! Whoever reads the file in one go, as perf does, hands on events at each of these records: those
//! up to the latest time of the round before. An event with an earlier time that comes afterwards
//! is *late*.

/// How far perf has come at some place of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// Latest time so far.
    latest: u64,
    /// Latest time before the last FINISHED_ROUND: the next one hands on events up to it.
    due: u64,
    /// Events up to this time are handed on.
    handed_on: u64,
}

/// The rounds and the late events of a segment of the file.
///
/// Segments are walked in any order, so what was before a segment is not known at first. It hardly
/// ever matters: [`Passed::holds_after`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// FINISHED_ROUND records.
    pub(crate) finished: usize,
    /// Late events.
    pub(crate) late: u64,
    at: Rounds,
    /// Earliest time before the first FINISHED_ROUND, before the second, and after that.
    earliest: [u64; 3],
}

impl Passed {
    /// A segment that begins after `before`.
    pub(crate) fn after(before: Rounds) -> Passed {
        Passed { finished: 0, late: 0, at: before, earliest: [u64::MAX; 3] }
    }

    /// Events before this time are late.
    pub(crate) fn handed_on(&self) -> u64 {
        self.at.handed_on
    }

    /// An event, or the first of several events whose times ascend, none but the first late.
    #[inline]
    pub(crate) fn begin(&mut self, time: u64) {
        let earliest = &mut self.earliest[self.finished.min(2)];
        *earliest = time.min(*earliest);
        self.late += (time < self.at.handed_on) as u64;
    }

    /// An event, or the last of several events whose times ascend.
    #[inline]
    pub(crate) fn reach(&mut self, time: u64) {
        self.at.latest = time.max(self.at.latest);
    }

    /// A FINISHED_ROUND.
    pub(crate) fn finish(&mut self) {
        self.finished += 1;
        self.at.handed_on = self.at.due;
        self.at.due = self.at.latest;
    }

    /// Whether the late events were counted rightly if the segment begins after `before`, although
    /// that was not known.
    pub(crate) fn holds_after(&self, before: Rounds) -> bool {
        let limits = [before.handed_on, before.due, before.latest];
        self.earliest.iter().zip(limits).all(|(&earliest, limit)| earliest >= limit)
    }

    /// How far perf has come at the end of the segment, which begins after `before`.
    pub(crate) fn end(&self, before: Rounds) -> Rounds {
        let since = |time: u64| time.max(before.latest);
        let (due, handed_on) = match self.finished {
            0 => (before.due, before.handed_on),
            1 => (since(self.at.due), before.due),
            _ => (since(self.at.due), since(self.at.handed_on)),
        };
        Rounds { latest: since(self.at.latest), due, handed_on }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None` is a FINISHED_ROUND.
    fn passed(before: Rounds, records: &[Option<u64>]) -> Passed {
        let mut passed = Passed::after(before);
        for record in records {
            match *record {
                Some(time) => {
                    passed.begin(time);
                    passed.reach(time);
                }
                None => passed.finish(),
            }
        }
        passed
    }

    #[test]
    fn late_is_what_was_handed_on_two_rounds_ago() {
        let start = Rounds::default();
        let of = |records: &[Option<u64>]| passed(start, records).late;
        assert_eq!(of(&[Some(10), None, Some(5)]), 0, "the first round hands nothing on");
        assert_eq!(of(&[Some(10), None, None, Some(5), Some(10)]), 1, "10 itself is not late");
        assert_eq!(of(&[Some(10), None, Some(30), None, Some(10), Some(9)]), 1);
        assert_eq!(of(&[Some(10), None, Some(30), None, None, Some(29), Some(9)]), 2);
    }

    /// Cut anywhere, and put together without knowing what was before.
    #[test]
    fn segments_put_together_are_the_whole() {
        let records: Vec<Option<u64>> = (1..400_u64)
            .map(|n| (n % 5 != 0).then_some(1000 + n * 10 - n * n % 97 * (n % 3) * 2))
            .collect();
        let whole = passed(Rounds::default(), &records);
        assert!(whole.late > 10, "{whole:?}");
        let (mut held, mut again) = (0, 0);
        for at in 0..records.len() {
            let (front, back) = records.split_at(at);
            let front = passed(Rounds::default(), front);
            let before = front.end(Rounds::default());
            let alone = passed(Rounds::default(), back);
            let known = passed(before, back);
            assert_eq!(front.late + known.late, whole.late);
            assert_eq!(known.end(before), whole.end(Rounds::default()));
            assert_eq!(alone.end(before), whole.end(Rounds::default()));
            match alone.holds_after(before) {
                true => {
                    held += 1;
                    assert_eq!(alone.late, known.late, "cut at {at}");
                }
                false => again += 1,
            }
        }
        assert!(held > 0 && again > 0, "{held} {again}");
    }
}
