//! The part of the file being looked at.

use crate::source::Source;
use std::io;

/// A recycled buffer over which records are read in file order.
///
/// Reads always go to the same cache-line aligned address; the beginning of a record left over from
/// the previous read is moved in front of it. Copying out of the page cache is the largest single
/// cost of reading a trace, and a copy to an unaligned address takes a quarter longer.
///
/// ```text
///            base (aligned)
///   ┌─────────┬──┬──────────────────────────┐
///   │ room    │##│######### read ###########│
///   └─────────┴──┴──────────────────────────┘
///              └ left over
/// ```
#[derive(Default)]
pub(crate) struct Window {
    buf: Vec<u8>,
    base: usize,
    at: usize,
    end: usize,
}

/// Bytes read at once: few enough to stay in the second-level cache.
pub(crate) const READ: usize = 128 << 10;
/// Room for what is left over: a record has at most 65,535 bytes.
const ROOM: usize = 64 << 10;
const ALIGN: usize = 64;

impl Window {
    /// Forget the content, keep the memory.
    pub(crate) fn clear(&mut self) {
        (self.at, self.end) = (self.base, self.base);
    }

    /// The bytes read and not yet used.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf[self.at..self.end]
    }

    /// Mark `n` bytes, or all there are, as used.
    pub(crate) fn consume(&mut self, n: usize) {
        self.at = (self.at + n).min(self.end);
    }

    /// Append up to `want` bytes from `offset` of the source. Returns how many were read: 0 at the
    /// end of the source, or if the leftover is too long to be the beginning of a record.
    pub(crate) fn fill(&mut self, source: &Source, offset: u64, want: usize) -> io::Result<usize> {
        let left = self.end - self.at;
        if left > ROOM {
            return Ok(0);
        }
        if self.buf.len() < self.base + want || self.base < ROOM {
            let mut grown = vec![0; ROOM + ALIGN + want.max(READ)];
            let base = ROOM + (grown.as_ptr() as usize + ROOM).wrapping_neg() % ALIGN;
            grown[base - left..base].copy_from_slice(&self.buf[self.at..self.end]);
            (self.buf, self.base) = (grown, base);
        } else {
            self.buf.copy_within(self.at..self.end, self.base - left);
        }
        self.at = self.base - left;
        self.end = self.base;
        let n = source.read_at(&mut self.buf[self.base..self.base + want], offset)?;
        self.end += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Spool;

    #[test]
    fn left_over_bytes_stay_in_front() {
        let bytes: Vec<u8> = (0..500_000u32).map(|i| (i * 7 / 3) as u8).collect();
        let mut spool = Spool::new(u64::MAX);
        spool.push(&bytes).unwrap();
        let source = spool.finish().unwrap();
        let mut w = Window::default();
        let mut at = 0;
        loop {
            let next = at + w.bytes().len();
            // Growing in the middle must not lose anything either.
            let n =
                w.fill(&source, next as u64, if at > 200_000 { 2 * READ } else { READ }).unwrap();
            assert!(w.bytes() == &bytes[at..next + n]);
            if n == 0 {
                break;
            }
            let used = w.bytes().len() - 1234.min(w.bytes().len() - 1);
            w.consume(used);
            at += used;
        }
        assert_eq!(at + w.bytes().len(), bytes.len());
        w.clear();
        assert!(w.bytes().is_empty());
    }
}
