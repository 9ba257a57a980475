//! Compression of version 7: whole sections, and chunks of trace data.

use crate::source::Source;
use flate2::{Decompress, FlushDecompress};
use holdup_trace::ErrorKind;
use std::io::{self, Read};

/// Upper bound on the size of a section or chunk, whatever its header claims. kallsyms of a kernel
/// with many modules is about 20 MiB; trace-cmd's chunks are ten pages.
const LARGEST: usize = 256 << 20;
const LARGEST_CHUNK: usize = 64 << 20;
/// Pages of a ring buffer, even empty ones, do not compress better than this; a chunk that claims
/// to is damaged, unless it is small anyway.
const BEST_RATIO: usize = 4096;
const SMALL_CHUNK: usize = 1 << 20;

/// The compression named in the file's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Codec {
    None,
    Zstd,
    Zlib,
}

impl Codec {
    /// The codec with this name, as trace-cmd spells it.
    pub(crate) fn by_name(name: &str) -> Option<Codec> {
        match name {
            "none" | "" => Some(Codec::None),
            "zstd" => Some(Codec::Zstd),
            "zlib" => Some(Codec::Zlib),
            _ => None,
        }
    }

    /// Decompress a section. The output grows with the bytes that come out, and stops at `claimed`;
    /// memory is not reserved by `claimed`.
    pub(crate) fn section(self, packed: &[u8], claimed: u32) -> io::Result<Source> {
        let limit = (claimed as usize).min(LARGEST) as u64;
        let mut out = Vec::new();
        match self {
            Codec::None => out.extend_from_slice(packed),
            Codec::Zstd => {
                zstd::stream::read::Decoder::new(packed)?.take(limit).read_to_end(&mut out)?;
            }
            Codec::Zlib => {
                flate2::read::ZlibDecoder::new(packed).take(limit).read_to_end(&mut out)?;
            }
        }
        Ok(Source::Memory(out))
    }
}

/// One independently compressed piece of a CPU's pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// File offset of the compressed bytes.
    pub(crate) offset: u64,
    /// Compressed bytes.
    pub(crate) packed: u32,
    /// Bytes when decompressed.
    pub(crate) size: u32,
}

/// Walk the chunk headers of one CPU's data at `offset`. The number of chunks is authoritative: for
/// a while trace-cmd wrote the size in the BUFFER option four bytes short. Returns the chunks
/// inside the file, and whether some lie beyond its end.
pub(crate) fn chunk_table(
    source: &Source,
    offset: u64,
    big: bool,
) -> Result<(Vec<Chunk>, bool), ErrorKind> {
    let words = |at: u64, out: &mut [u8]| -> Result<bool, ErrorKind> {
        Ok(source.read_at(at, out)? == out.len())
    };
    let word = |b: [u8; 4]| if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) };
    let mut count = [0; 4];
    if !words(offset, &mut count)? {
        return Ok((Vec::new(), true));
    }
    let mut at = offset.saturating_add(4);
    let mut chunks = Vec::new();
    for _ in 0..word(count) {
        let mut sizes = [0; 8];
        if !words(at, &mut sizes)? {
            return Ok((chunks, true));
        }
        let [a, b, c, d, e, f, g, h] = sizes;
        let (packed, size) = (word([a, b, c, d]), word([e, f, g, h]));
        at += 8;
        if at + packed as u64 > source.len() {
            return Ok((chunks, true));
        }
        chunks.push(Chunk { offset: at, packed, size });
        at += packed as u64;
    }
    Ok((chunks, false))
}

/// Decompresses chunk after chunk with recycled state.
pub(crate) enum Inflater {
    None,
    Zstd(zstd::bulk::Decompressor<'static>),
    Zlib(Decompress),
}

impl Inflater {
    /// An inflater for chunks compressed with `codec`.
    pub(crate) fn new(codec: Codec) -> io::Result<Inflater> {
        Ok(match codec {
            Codec::None => Inflater::None,
            Codec::Zstd => Inflater::Zstd(zstd::bulk::Decompressor::new()?),
            Codec::Zlib => Inflater::Zlib(Decompress::new(true)),
        })
    }

    /// Decompress `packed` into `out`. False if the bytes are damaged; `out` then holds the bytes
    /// before the damage.
    pub(crate) fn chunk(&mut self, packed: &[u8], size: u32, out: &mut Vec<u8>) -> bool {
        out.clear();
        let size = size as usize;
        if size > LARGEST_CHUNK || size > SMALL_CHUNK.max(packed.len() * BEST_RATIO) {
            return false;
        }
        out.reserve(size);
        match self {
            Inflater::None => {
                out.extend_from_slice(packed);
                true
            }
            Inflater::Zstd(z) => z.decompress_to_buffer(packed, out).is_ok(),
            Inflater::Zlib(z) => {
                z.reset(true);
                z.decompress_vec(packed, out, FlushDecompress::Finish).is_ok()
            }
        }
    }
}
