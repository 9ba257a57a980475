//! All bytes of a file or stream at once, mapped or in memory.

use crate::Map;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::Range;

/// Up to this much of a stream is kept in memory; a longer one goes to an unnamed temporary file.
pub const IN_MEMORY: u64 = 64 << 20;

/// Bytes that a packed trace may unpack to, whatever its size.
pub const ALLOWANCE: u64 = 1 << 30;
/// Bytes that each packed byte may unpack to beyond [`ALLOWANCE`]. Traces compress 5 to 50 times.
pub const RATIO: u64 = 200;

/// The maximal size that `packed` bytes may unpack to: anything larger was made to fill the disk.
pub fn most_unpacked(packed: u64) -> u64 {
    packed.saturating_mul(RATIO).saturating_add(ALLOWANCE)
}

/// A mapped file, or memory.
#[derive(Debug)]
pub enum Bytes {
    /// A file.
    Mapped(Box<Map>),
    /// Memory.
    Memory(Vec<u8>),
}

impl Bytes {
    /// All of a file: mapped, or read if mapping is not possible.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn file(mut file: File) -> io::Result<Bytes> {
        if let Some(map) = Map::new(&file) {
            return Ok(Bytes::Mapped(Box::new(map)));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Bytes::Memory(bytes))
    }

    /// Everything that `input` has.
    ///
    /// # Errors
    /// If it cannot be read, or the disk is full.
    pub fn spool(mut input: impl Read) -> io::Result<Bytes> {
        let mut spool = Spool::default();
        input.by_ref().take(IN_MEMORY).read_to_end(&mut spool.memory)?;
        if spool.memory.len() as u64 == IN_MEMORY {
            io::copy(&mut input, &mut spool)?;
        }
        spool.finish()
    }

    /// The bytes as they were when opened; zeros where the file has been truncated since.
    #[inline]
    pub fn all(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Memory(bytes) => bytes,
        }
    }

    /// Whether bytes of the file have been missing so far. See [`Map::shrank`].
    pub fn shrank(&self) -> bool {
        matches!(self, Bytes::Mapped(map) if map.shrank())
    }

    /// The reader no longer needs these bytes. See [`Map::done_with`].
    pub fn done_with(&self, bytes: Range<usize>) {
        if let Bytes::Mapped(map) = self {
            map.done_with(bytes);
        }
    }
}

/// Collects an unknown number of bytes.
#[derive(Default, Debug)]
pub struct Spool {
    /// Bytes that are not in the file yet.
    memory: Vec<u8>,
    file: Option<File>,
    filed: u64,
}

impl Spool {
    /// How many bytes were written.
    pub fn size(&self) -> u64 {
        self.filed + self.memory.len() as u64
    }

    /// The bytes written.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn finish(mut self) -> io::Result<Bytes> {
        self.put_by()?;
        match self.file {
            None => Ok(Bytes::Memory(self.memory)),
            Some(mut file) => {
                file.write_all(&self.memory)?;
                file.rewind()?;
                Bytes::file(file)
            }
        }
    }

    /// Moves what exceeds the memory limit to the file.
    fn put_by(&mut self) -> io::Result<()> {
        if self.memory.len() as u64 > IN_MEMORY {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(tempfile::tempfile()?),
            };
            file.write_all(&self.memory)?;
            self.filed += self.memory.len() as u64;
            self.memory.clear();
        }
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.memory.extend_from_slice(bytes);
        self.put_by()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_in_memory_goes_to_a_file() {
        for more in [1, 100, IN_MEMORY + 1] {
            let len = IN_MEMORY + more;
            let bytes = Bytes::spool(io::repeat(7).take(len)).unwrap();
            assert!(matches!(bytes, Bytes::Mapped(_)));
            assert_eq!((bytes.all().len() as u64, bytes.all()[len as usize - 1]), (len, 7));
        }
        let whole = Bytes::spool(io::repeat(7).take(IN_MEMORY)).unwrap();
        assert!(matches!(whole, Bytes::Memory(_)));
        assert_eq!(whole.all().len() as u64, IN_MEMORY);
        let short = Bytes::spool(&b"abc"[..]).unwrap();
        assert!(matches!(short, Bytes::Memory(_)));
        assert_eq!(short.all(), b"abc");
    }

    #[test]
    fn a_spool_knows_its_size() {
        let mut spool = Spool::default();
        let block = vec![7; 1 << 20];
        for n in 1..=IN_MEMORY / (1 << 20) + 3 {
            spool.write_all(&block).unwrap();
            assert_eq!(spool.size(), n << 20);
        }
        assert_eq!(spool.finish().unwrap().all().len() as u64, IN_MEMORY + (3 << 20));
    }
}
