//! One CPU's pages, fetched block by block into recycled memory.

use crate::codec::{Chunk, Codec, Inflater, chunk_table};
use crate::source::Source;
use holdup_trace::{ErrorKind, Quality, QualityCode, progress};
use std::io;
use std::sync::Arc;

/// Bytes of uncompressed pages read at once: enough for the system call not to matter, few
/// enough to stay in the second-level cache until they are decoded.
const BLOCK: usize = 256 << 10;

/// The pages of one CPU in one buffer.
#[derive(Debug)]
pub(crate) struct CpuData {
    source: Arc<Source>,
    pub(crate) page_size: usize,
    storage: Storage,
    codec: Codec,
}

#[derive(Debug)]
enum Storage {
    Flat { offset: u64, len: u64 },
    Chunks(Vec<Chunk>),
}

impl CpuData {
    /// Pages as they came from the kernel. A part beyond the end of the input is dropped; returns
    /// whether there was one.
    pub(crate) fn flat(
        source: Arc<Source>,
        offset: u64,
        size: u64,
        page_size: usize,
    ) -> (CpuData, bool) {
        let len = size.min(source.len().saturating_sub(offset));
        (
            CpuData {
                source,
                page_size,
                storage: Storage::Flat { offset, len },
                codec: Codec::None,
            },
            len < size,
        )
    }

    /// Pages in compressed chunks; also returns whether chunks are missing.
    pub(crate) fn chunked(
        source: Arc<Source>,
        offset: u64,
        big: bool,
        codec: Codec,
        page_size: usize,
    ) -> Result<(CpuData, bool), ErrorKind> {
        let (chunks, cut) = chunk_table(&source, offset, big)?;
        Ok((CpuData { source, page_size, storage: Storage::Chunks(chunks), codec }, cut))
    }

    /// How many blocks there are. Each holds whole pages, except at a cut end.
    pub(crate) fn blocks(&self) -> usize {
        match &self.storage {
            Storage::Flat { len, .. } => len.div_ceil(self.block_len() as u64) as usize,
            Storage::Chunks(chunks) => chunks.len(),
        }
    }

    /// Bytes that the pages occupy in the input.
    pub(crate) fn stored(&self) -> u64 {
        match &self.storage {
            Storage::Flat { len, .. } => *len,
            Storage::Chunks(chunks) => chunks.iter().map(|c| c.packed as u64 + 8).sum(),
        }
    }

    /// Uncompressed bytes of the pages, as the file states them.
    pub(crate) fn unpacked(&self) -> u64 {
        match &self.storage {
            Storage::Flat { len, .. } => *len,
            Storage::Chunks(chunks) => {
                chunks.iter().fold(0, |sum: u64, c| sum.saturating_add(c.size as u64))
            }
        }
    }

    fn block_len(&self) -> usize {
        (BLOCK / self.page_size).max(1) * self.page_size
    }
}

/// Fetches blocks of one [`CpuData`].
pub(crate) struct Fetch<'a> {
    data: &'a CpuData,
    inflater: Inflater,
    packed: Vec<u8>,
    block: Vec<u8>,
}

impl<'a> Fetch<'a> {
    pub(crate) fn new(data: &'a CpuData) -> io::Result<Fetch<'a>> {
        Ok(Fetch {
            data,
            inflater: Inflater::new(data.codec)?,
            packed: Vec::new(),
            block: Vec::new(),
        })
    }

    /// Fetch block `n`. Missing or damaged data is counted in `quality`.
    pub(crate) fn load(&mut self, n: usize, quality: &mut Quality) -> io::Result<()> {
        match &self.data.storage {
            Storage::Flat { offset, len } => {
                let size = self.data.block_len();
                let at = n as u64 * size as u64;
                let want = len.saturating_sub(at).min(size as u64) as usize;
                self.block.resize(want, 0);
                let got = self.data.source.read_at(offset.saturating_add(at), &mut self.block)?;
                self.block.truncate(got);
                progress::advance(got as u64);
                // The file was longer when it was opened.
                quality.add(QualityCode::Truncated, (got < want) as u64);
            }
            Storage::Chunks(chunks) => {
                self.block.clear();
                let Some(chunk) = chunks.get(n) else { return Ok(()) };
                self.packed.resize(chunk.packed as usize, 0);
                let got = self.data.source.read_at(chunk.offset, &mut self.packed)?;
                self.packed.truncate(got);
                progress::advance(got as u64);
                quality.add(QualityCode::Truncated, (got < chunk.packed as usize) as u64);
                if !self.inflater.chunk(&self.packed, chunk.size, &mut self.block) {
                    quality.add(
                        QualityCode::SkippedBytes,
                        (chunk.size as u64).saturating_sub(self.block.len() as u64).max(1),
                    );
                }
            }
        }
        Ok(())
    }

    /// The block fetched most recently.
    pub(crate) fn block(&self) -> &[u8] {
        &self.block
    }

    /// Page number `n` of the block fetched most recently; shorter if the data was cut off.
    pub(crate) fn page(&self, n: usize) -> Option<&[u8]> {
        let from = n.checked_mul(self.data.page_size)?;
        let rest = self.block.get(from..)?;
        (!rest.is_empty()).then(|| &rest[..rest.len().min(self.data.page_size)])
    }
}
