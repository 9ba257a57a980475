//! Where the bytes come from: a mapped file, positioned reads on one, or memory.
//!
//! A regular file is mapped ([`holdup_map`]); what cannot be mapped is read 128 KiB at a time into
//! a recycled buffer. Either way a file that is truncated meanwhile only ends early.

use holdup_map::Map;
use holdup_trace::progress;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

/// Bytes addressed by offset. Safe to read from many threads.
#[derive(Debug)]
pub(crate) enum Source {
    /// A regular file.
    Mapped(Map),
    /// A file that could not be mapped.
    File { file: File, len: u64 },
    /// Memory, in blocks of [`BLOCK`] bytes (the last may be shorter).
    Memory(Vec<Vec<u8>>),
    /// Concatenated files, each with its offset.
    Parts(Vec<(u64, Source)>),
}

/// Size of a memory block: large enough to make the bookkeeping vanish, small enough that growing
/// never copies much.
const BLOCK: usize = 1 << 20;

/// A file up to this size stays mapped between indexing and decoding, as in perf: to map its pages
/// twice costs a fifth of the time of a summary.
const KEPT_WHOLE: u64 = 1 << 30;
/// Of a larger file, bytes of the front that do.
const KEPT: u64 = 128 << 20;

impl Source {
    pub(crate) fn file(file: File) -> io::Result<Source> {
        let len = file.metadata()?.len();
        Ok(Map::new(&file).map_or(Source::File { file, len }, Source::Mapped))
    }

    /// The number of bytes (of a file: when it was opened).
    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::Mapped(map) => map.bytes().len() as u64,
            Source::File { len, .. } => *len,
            Source::Memory(blocks) => blocks.iter().map(|b| b.len() as u64).sum(),
            Source::Parts(parts) => parts.last().map_or(0, |(offset, part)| offset + part.len()),
        }
    }

    /// Start and end of each file of a directory; of the whole for other sources.
    pub(crate) fn parts(&self) -> Vec<(u64, u64)> {
        match self {
            Source::Parts(parts) => {
                parts.iter().map(|(offset, part)| (*offset, offset + part.len())).collect()
            }
            _ => vec![(0, self.len())],
        }
    }

    /// Concatenate sources.
    pub(crate) fn join(sources: Vec<Source>) -> Source {
        let mut offset = 0;
        let place = |s: Source| {
            let at = offset;
            // Records are found at multiples of 8 from the start of their file.
            offset = (at + s.len()).next_multiple_of(8);
            (at, s)
        };
        Source::Parts(sources.into_iter().map(place).collect())
    }

    /// The bytes from `start` to `end` (or to the end of the source), if they are contiguous in
    /// memory.
    pub(crate) fn slice(&self, start: u64, end: u64) -> Option<&[u8]> {
        let Source::Mapped(map) = self else { return None };
        let bytes = map.bytes();
        let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        bytes.get(clamp(start)..clamp(end))
    }

    /// Release the bytes from `start` to `end`, which will not be read again.
    pub(crate) fn done_with(&self, start: u64, end: u64) {
        progress::advance(end.saturating_sub(start));
        if let Source::Mapped(map) = self {
            let clamp = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(map.bytes().len());
            map.done_with(clamp(start)..clamp(end));
        }
    }

    /// The switches in these bytes have been decoded; all events will be.
    pub(crate) fn looked_at(&self, start: u64, end: u64) {
        if self.len() > KEPT_WHOLE {
            self.done_with(start, end);
        } else {
            progress::advance(end.saturating_sub(start));
        }
    }

    /// Release the bytes from `start` to `end`, which are indexed and not needed for a while.
    pub(crate) fn release(&self, start: u64, end: u64) {
        progress::advance(end.saturating_sub(start));
        if let Source::Mapped(map) = self
            && self.len() > KEPT_WHOLE
            && let (Ok(start), Ok(end)) = (usize::try_from(start.max(KEPT)), usize::try_from(end))
        {
            map.release(start..end);
        }
    }

    /// Fill `buf` from `offset`; returns how many bytes there were.
    pub(crate) fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset.saturating_add(done as u64);
            let n = match self {
                Source::Mapped(map) => {
                    let rest = usize::try_from(at)
                        .ok()
                        .and_then(|at| map.bytes().get(at..))
                        .unwrap_or(&[]);
                    let n = rest.len().min(buf.len() - done);
                    buf[done..done + n].copy_from_slice(&rest[..n]);
                    n
                }
                Source::File { file, .. } => match file.read_at(&mut buf[done..], at) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    n => n?,
                },
                Source::Memory(blocks) => {
                    let block = usize::try_from(at / BLOCK as u64).ok().and_then(|i| blocks.get(i));
                    let rest =
                        block.and_then(|b| b.get((at % BLOCK as u64) as usize..)).unwrap_or(&[]);
                    let n = rest.len().min(buf.len() - done);
                    buf[done..done + n].copy_from_slice(&rest[..n]);
                    n
                }
                Source::Parts(parts) => {
                    let i = parts.partition_point(|(offset, _)| *offset <= at);
                    let Some((offset, part)) = i.checked_sub(1).and_then(|i| parts.get(i)) else {
                        break;
                    };
                    part.read_at(&mut buf[done..], at - offset)?
                }
            };
            if n == 0 {
                break;
            }
            done += n;
        }
        Ok(done)
    }

    /// Up to `len` bytes from `offset`; fewer at the end of the source. Memory is bounded by the
    /// bytes that exist, whatever `len` claims.
    pub(crate) fn read_vec(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let len = len.min(self.len().saturating_sub(offset));
        let mut buf =
            vec![0; usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?];
        let n = self.read_at(&mut buf, offset)?;
        buf.truncate(n);
        Ok(buf)
    }
}

/// Collects an unknown number of bytes: in memory up to a limit, then in an unlinked temporary
/// file.
#[derive(Default)]
pub(crate) struct Spool {
    blocks: Vec<Vec<u8>>,
    file: Option<io::BufWriter<File>>,
    len: u64,
    limit: u64,
}

impl Spool {
    /// A spool that keeps up to `limit` bytes in memory.
    pub(crate) fn new(limit: u64) -> Spool {
        Spool { limit, ..Spool::default() }
    }

    /// Bytes collected so far.
    #[cfg(feature = "zstd")]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        if self.file.is_none() && self.len > self.limit {
            let mut file = io::BufWriter::with_capacity(BLOCK, tempfile::tempfile()?);
            for block in std::mem::take(&mut self.blocks) {
                file.write_all(&block)?;
            }
            self.file = Some(file);
        }
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        while !bytes.is_empty() {
            match self.blocks.last_mut() {
                Some(last) if last.len() < BLOCK => {
                    let n = bytes.len().min(BLOCK - last.len());
                    last.extend_from_slice(&bytes[..n]);
                    bytes = &bytes[n..];
                }
                _ => self.blocks.push(Vec::new()),
            }
        }
        Ok(())
    }

    /// Read `input` to its end.
    pub(crate) fn push_all(&mut self, mut input: impl Read) -> io::Result<()> {
        let mut buf = vec![0; 128 << 10];
        loop {
            match input.read(&mut buf) {
                Ok(0) => return Ok(()),
                Ok(n) => self.push(&buf[..n])?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    pub(crate) fn finish(self) -> io::Result<Source> {
        match self.file {
            Some(file) => Source::file(file.into_inner().map_err(|e| e.into_error())?),
            None => Ok(Source::Memory(self.blocks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_file_read_alike_across_blocks() {
        let bytes: Vec<u8> = (0..BLOCK as u32 * 2 + 77).map(|i| (i / 7) as u8).collect();
        for limit in [u64::MAX, 1000] {
            let mut spool = Spool::new(limit);
            spool.push_all(&bytes[..]).unwrap();
            let source = spool.finish().unwrap();
            assert_eq!(matches!(source, Source::Mapped(_)), limit == 1000);
            assert_eq!(source.len(), bytes.len() as u64);
            assert!(source.read_vec(BLOCK as u64 - 5, 10).unwrap() == bytes[BLOCK - 5..BLOCK + 5]);
            assert!(source.read_vec(0, u64::MAX).unwrap() == bytes);
            assert!(source.read_vec(u64::MAX, 10).unwrap().is_empty());
        }
    }
}
