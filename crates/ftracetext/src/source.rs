//! Where the bytes come from: a mapped file, or memory.
//!
//! A text is read twice, for its index and to decode it, by several threads at once. A mapping
//! saves copying it out of the page cache both times. If the file is truncated meanwhile, it reads
//! as zeros from there on ([`holdup_map`]), which are no lines.

use holdup_map::Bytes;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A piece of a file, or memory.
pub(crate) struct Source {
    bytes: Bytes,
    /// Range of the trace (in an HTML page it is in the middle).
    piece: Range<usize>,
    /// Whether it was reported that the file shrank.
    reported: AtomicBool,
}

impl Source {
    fn new(bytes: Bytes) -> Source {
        let piece = 0..bytes.all().len();
        Source { bytes, piece, reported: AtomicBool::new(false) }
    }

    /// A whole regular file: mapped, or read if mapping is not possible.
    pub(crate) fn file(file: File) -> io::Result<Source> {
        Bytes::file(file).map(Source::new)
    }

    /// Memory.
    pub(crate) fn memory(bytes: Vec<u8>) -> Source {
        Source::new(Bytes::Memory(bytes))
    }

    /// Reads `input` to its end.
    pub(crate) fn spool(input: &mut dyn Read) -> io::Result<Source> {
        Bytes::spool(input).map(Source::new)
    }

    /// Narrow to the piece `start..end` of the current bytes.
    pub(crate) fn narrow(&mut self, start: usize, end: usize) {
        let end = self.piece.start.saturating_add(end).min(self.piece.end);
        let start = self.piece.start.saturating_add(start).min(end);
        self.piece = start..end;
    }

    /// Where the piece lies in the file.
    pub(crate) fn base(&self) -> usize {
        self.piece.start
    }

    /// The piece.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes.all()[self.piece.clone()]
    }

    /// The first `max` bytes.
    pub(crate) fn head(&self, max: usize) -> &[u8] {
        let bytes = self.bytes();
        &bytes[..bytes.len().min(max)]
    }

    /// Whether the file has been cut off since it was opened; true only for the first call after
    /// that.
    pub(crate) fn has_shrunk(&self) -> bool {
        self.bytes.shrank() && !self.reported.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_map::IN_MEMORY;
    use std::io::Write;

    #[test]
    fn a_narrowed_source_is_only_its_piece() {
        let mut s = Source::memory(b"0123456789".to_vec());
        s.narrow(2, 8);
        s.narrow(1, 100);
        assert_eq!((s.bytes(), s.base()), (&b"34567"[..], 3));
        assert_eq!(s.head(2), b"34");
        s.narrow(50, 60);
        assert_eq!(s.bytes(), b"");
    }

    #[test]
    fn a_long_stream_goes_to_a_file() {
        let mut input = io::repeat(b'x').take(IN_MEMORY + 10);
        let s = Source::spool(&mut input).unwrap();
        assert_eq!(s.bytes().len() as u64, IN_MEMORY + 10);
        assert!(matches!(s.bytes, Bytes::Mapped(_)));
    }

    #[test]
    fn a_file_that_shrinks_says_so_once() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b'x'; 100_000]).unwrap();
        let s = Source::file(file.try_clone().unwrap()).unwrap();
        assert!(!s.has_shrunk());
        file.set_len(10).unwrap();
        assert_eq!(s.bytes().iter().filter(|&&b| b == b'x').count(), 10);
        assert_eq!((s.has_shrunk(), s.has_shrunk()), (true, false));
    }
}
