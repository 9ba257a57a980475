//! Counts what goes into the file, from the headers of the records alone.

use super::Event;
use super::joined::Joined;
use super::sampled::{SampledCode, same_time};
use holdup_perfdata::format::record;

/// What was written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Samples: one for each event that happened.
    pub samples: u64,
    /// Events that were lost because a ring was full, by the kernel's count (LOST records).
    pub lost: u64,
    /// Earliest and latest time of a sample, in nanoseconds of the recording's clock. `None`
    /// without samples, or if the time is not at the same offset in all events.
    pub span: Option<(u64, u64)>,
}

/// Offset of the time in samples, apart from samples of code; `None` if it is not the same for all
/// events.
pub(crate) fn time_of(events: &[Event]) -> Option<usize> {
    same_time(events.iter().filter(|e| !e.samples_code()))
}

impl Tally {
    /// The sum of both.
    #[must_use]
    pub fn and(self, o: Tally) -> Tally {
        let span = match (self.span, o.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Tally { samples: self.samples + o.samples, lost: self.lost + o.lost, span }
    }

    /// Adds whole records. `time` is the offset of a sample's time. `code` gets what concerns it.
    pub(crate) fn add(&mut self, records: Joined<'_>, time: Option<usize>, code: &mut SampledCode) {
        let mut at = 0;
        let (mut first, mut last) = self.span.unwrap_or((u64::MAX, 0));
        while let Some(head) = records.word(at) {
            let (kind, misc, size) = split(head);
            if size < record::HEADER {
                break;
            }
            match kind {
                record::SAMPLE => {
                    self.samples += 1;
                    // After the header the event's id.
                    let is_code = records.word(at + 8).is_some_and(|id| code.is_of_code(id));
                    if is_code {
                        code.sample(records, at, misc);
                    }
                    let time = if is_code { code.time } else { time };
                    if let Some(t) = time.and_then(|time| records.word(at + time)) {
                        (first, last) = (first.min(t), last.max(t));
                    }
                }
                record::MMAP2 => code.mapped(records, (at, size)),
                // After the header the event's id, then the count.
                record::LOST => self.lost += records.word(at + 16).unwrap_or(0),
                _ => {}
            }
            at += size;
        }
        self.span = (first <= last).then_some((first, last));
    }
}

/// A record's type, its flags, and its size.
fn split(head: u64) -> (u32, u16, usize) {
    let b = head.to_ne_bytes();
    let kind = u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
    (kind, u16::from_ne_bytes([b[4], b[5]]), u16::from_ne_bytes([b[6], b[7]]).into())
}

#[cfg(test)]
mod tests {
    use super::super::bytes::Bytes;
    use super::*;

    #[test]
    fn records_are_counted_wherever_the_ring_turns() {
        let mut b = Bytes::default();
        for t in [7u64, 5, 9] {
            b.record(record::SAMPLE, 0, |b| {
                b.u64(1).u64(t);
            });
            b.record(record::LOST, 0, |b| {
                b.u64(1).u64(10 + t);
            });
        }
        for turn in (0..=b.0.len()).step_by(8) {
            let (front, back) = b.0.split_at(turn);
            let mut tally = Tally::default();
            tally.add(Joined(front, back), Some(16), &mut SampledCode::default());
            assert_eq!(tally, Tally { samples: 3, lost: 51, span: Some((5, 9)) });
        }
        let mut tally = Tally::default();
        tally.add(Joined(&[0; 64], &[]), Some(16), &mut SampledCode::default());
        assert_eq!(tally, Tally::default());
    }
}
