//! Where the bytes come from: the file, mapped or in memory, and what was packed in it.
//!
//! Packets may be compressed, many in one. They are unpacked once, when the trace is opened, into
//! memory and beyond that into a temporary file: every CPU's events lie in every block, so that
//! unpacking a block when its events are due would mean to do it once for each CPU.

use holdup_map::Map;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Up to this much of a stream, or of what is unpacked, is kept in memory.
const SPOOL_MEMORY: usize = 64 << 20;

/// A mapped file, or memory.
pub(crate) enum Bytes {
    Mapped(Map),
    Memory(Vec<u8>),
}

impl Bytes {
    /// All of a regular file: mapped, or read where that is not possible.
    pub(crate) fn file(mut file: File) -> io::Result<Bytes> {
        if let Some(map) = Map::new(&file) {
            return Ok(Bytes::Mapped(map));
        }
        let mut bytes = Vec::new();
        io::Seek::rewind(&mut file)?;
        file.read_to_end(&mut bytes)?;
        Ok(Bytes::Memory(bytes))
    }

    /// Everything `input` has.
    pub(crate) fn spool(mut input: impl Read) -> io::Result<Bytes> {
        let mut spool = Spool::default();
        io::copy(&mut input, &mut spool)?;
        spool.finish()
    }

    #[inline]
    pub(crate) fn all(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Memory(bytes) => bytes,
        }
    }
}

/// Collects bytes of unknown number.
#[derive(Default)]
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    len: u64,
}

impl Spool {
    /// How many bytes were written.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn finish(mut self) -> io::Result<Bytes> {
        match self.file.take() {
            None => Ok(Bytes::Memory(self.memory)),
            Some(mut file) => {
                file.write_all(&self.memory)?;
                Bytes::file(file)
            }
        }
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.memory.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
        if self.memory.len() > SPOOL_MEMORY {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(tempfile::tempfile()?),
            };
            file.write_all(&self.memory)?;
            self.memory.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Which bytes a place lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The trace file itself.
    File,
    /// What was compressed in it.
    Unpacked,
}

/// A stretch of bytes of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) part: Part,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Place {
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

/// All bytes of a trace.
pub(crate) struct Source {
    pub(crate) file: Bytes,
    pub(crate) unpacked: Bytes,
    /// Somebody was told that the file shrank.
    told: AtomicBool,
}

impl Source {
    pub(crate) fn new(file: Bytes, unpacked: Bytes) -> Source {
        Source { file, unpacked, told: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> &[u8] {
        let bytes = match place.part {
            Part::File => self.file.all(),
            Part::Unpacked => self.unpacked.all(),
        };
        bytes.get(place.start..place.end).unwrap_or(&[])
    }

    /// Whether the file has been cut off since it was opened; true for the first who asks then.
    pub(crate) fn has_shrunk(&self) -> bool {
        matches!(&self.file, Bytes::Mapped(map) if map.shrank())
            && !self.told.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_in_memory_goes_to_a_file() {
        let len = SPOOL_MEMORY as u64 + 100;
        let bytes = Bytes::spool(io::repeat(7).take(len)).unwrap();
        assert!(matches!(bytes, Bytes::Mapped(_)));
        assert_eq!((bytes.all().len() as u64, bytes.all()[SPOOL_MEMORY + 99]), (len, 7));
        let short = Bytes::spool(&b"abc"[..]).unwrap();
        assert!(matches!(short, Bytes::Memory(_)));
        assert_eq!(short.all(), b"abc");
    }
}
