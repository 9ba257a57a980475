//! Where the records are that may tell which thread runs: switches, and the kernel's records that
//! are no samples.
//!
//! The index sees the header of every record. It notes the place of these few, so that a look at
//! the switches alone need not walk over all headers once more.

/// The places of such records, in file order.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    segments: Vec<Segment>,
    /// How many places there are.
    len: usize,
    /// Some places are not known, because the data are not contiguous in memory, the ids of samples
    /// do not say what they are, or there were too many places.
    incomplete: bool,
}

/// The places in one segment of the file.
#[derive(Debug)]
struct Segment {
    start: u64,
    /// Distances from `start`. A segment has a few MiB, and at most the payload of a record more.
    at: Vec<u32>,
}

/// At most 256 MiB for all places. A file with more of them has tens of GB.
const MOST: usize = 64 << 20;

impl Marks {
    /// The places noted in the segment that begins at `start`, if all of them are.
    pub(crate) fn add(&mut self, start: u64, at: Option<Vec<u32>>) {
        let Some(at) = at.filter(|at| self.len + at.len() <= MOST && !self.incomplete) else {
            *self = Marks { incomplete: true, ..Marks::default() };
            return;
        };
        self.len += at.len();
        self.segments.push(Segment { start, at });
    }

    /// The places from `start` to `end`, unless some are not known.
    pub(crate) fn within(&self, start: u64, end: u64) -> Option<Places<'_>> {
        let first = self.segments.partition_point(|s| s.start <= start).saturating_sub(1);
        let mut places = Places { segments: &self.segments[first..], next: 0, end };
        let segment = places.segments.first()?;
        places.next = segment.at.partition_point(|&at| segment.start + u64::from(at) < start);
        Some(places)
    }
}

/// Places in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Places<'a> {
    segments: &'a [Segment],
    /// The next place of the first segment.
    next: usize,
    end: u64,
}

impl Iterator for Places<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let segment = self.segments.first()?;
            if let Some(&at) = segment.at.get(self.next) {
                self.next += 1;
                return Some(segment.start + u64::from(at)).filter(|&at| at < self.end);
            }
            (self.segments, self.next) = (&self.segments[1..], 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(marks: &Marks, start: u64, end: u64) -> Option<Vec<u64>> {
        Some(marks.within(start, end)?.collect())
    }

    #[test]
    fn a_span_has_its_places_across_segments() {
        let mut marks = Marks::default();
        marks.add(100, Some(vec![0, 8, 40]));
        marks.add(200, Some(Vec::new()));
        marks.add(300, Some(vec![16, 24]));
        assert_eq!(within(&marks, 100, 400), Some(vec![100, 108, 140, 316, 324]));
        assert_eq!(within(&marks, 101, 324), Some(vec![108, 140, 316]));
        assert_eq!(within(&marks, 141, 316), Some(vec![]));
    }

    #[test]
    fn places_that_are_not_all_known_are_none() {
        let mut marks = Marks::default();
        marks.add(0, Some(vec![8]));
        marks.add(100, None);
        marks.add(200, Some(vec![8]));
        assert_eq!(within(&marks, 0, 300), None);
        assert_eq!(within(&Marks::default(), 0, 300), None);
    }
}
