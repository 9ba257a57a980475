//! Where the bytes come from: a file read by position, or memory.
//!
//! Nothing is mapped: a trace file that shrinks or sits on a failing disk must give an error, not
//! a signal. Several decoders read the same file at once, each at its own position.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

/// Up to this much of a stream is kept in memory; a longer one goes to an anonymous file.
const SPOOL_MEMORY: usize = 64 << 20;

/// A piece of a file, or memory.
pub(crate) struct Source {
    bytes: Bytes,
    /// Start of the piece that holds the trace (an HTML page has it in its middle).
    base: u64,
    len: u64,
}

enum Bytes {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// All of a regular file.
    pub(crate) fn file(file: File) -> io::Result<Source> {
        let len = file.metadata()?.len();
        Ok(Source { bytes: Bytes::File(file), base: 0, len })
    }

    /// Memory.
    pub(crate) fn memory(bytes: Vec<u8>) -> Source {
        let len = bytes.len() as u64;
        Source { bytes: Bytes::Memory(bytes), base: 0, len }
    }

    /// Everything `input` has.
    pub(crate) fn spool(input: &mut dyn Read) -> io::Result<Source> {
        let mut head = Vec::new();
        input.take(SPOOL_MEMORY as u64).read_to_end(&mut head)?;
        if head.len() < SPOOL_MEMORY {
            return Ok(Source::memory(head));
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(&head)?;
        drop(head);
        io::copy(input, &mut file)?;
        Source::file(file)
    }

    /// Narrow to the piece `start..end`.
    pub(crate) fn narrow(&mut self, start: u64, end: u64) {
        let end = end.min(self.len);
        let start = start.min(end);
        self.base += start;
        self.len = end - start;
    }

    /// Bytes in the piece.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Where the piece lies in the file.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Fill `buf` from `offset` on as far as there are bytes; how many there were.
    pub(crate) fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let want = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if want == 0 {
            return Ok(0);
        }
        let at = self.base + offset;
        match &self.bytes {
            Bytes::Memory(bytes) => {
                buf[..want].copy_from_slice(&bytes[at as usize..at as usize + want]);
                Ok(want)
            }
            Bytes::File(file) => {
                let mut got = 0;
                while got < want {
                    match file.read_at(&mut buf[got..want], at + got as u64) {
                        Ok(0) => break,
                        Ok(n) => got += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(got)
            }
        }
    }

    /// The first `max` bytes.
    pub(crate) fn head(&self, max: usize) -> io::Result<Vec<u8>> {
        let mut buf = vec![0; max.min(usize::try_from(self.len).unwrap_or(max))];
        let n = self.read_at(0, &mut buf)?;
        buf.truncate(n);
        Ok(buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrowed_source_reads_only_its_piece() {
        let mut s = Source::memory(b"0123456789".to_vec());
        s.narrow(2, 8);
        s.narrow(1, 100);
        let mut buf = [0; 16];
        let n = s.read_at(1, &mut buf).unwrap();
        assert_eq!(&buf[..n], b"4567");
        assert_eq!(s.read_at(50, &mut buf).unwrap(), 0);
        assert_eq!(s.head(2).unwrap(), b"34");
    }

    #[test]
    fn a_long_stream_goes_to_a_file() {
        let mut input = io::repeat(b'x').take(SPOOL_MEMORY as u64 + 10);
        let s = Source::spool(&mut input).unwrap();
        assert_eq!(s.len(), SPOOL_MEMORY as u64 + 10);
        assert!(matches!(s.bytes, Bytes::File(_)));
    }
}
