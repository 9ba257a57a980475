//! Unpacks packets that contain compressed packets.

use crate::packets::{Packets, Step, compressed};
use crate::schema::packet;
use crate::source::{Part, Place};
use holdup_map::{ALLOWANCE, Bytes, RATIO, Spool, most_unpacked};
use holdup_trace::{ErrorKind, Quality, QualityCode};
use std::io::{self, Read, Write};

/// Window of the zstd decoder, as for wrapped files.
const ZSTD_WINDOW: u32 = 27;

/// The positions of the packets in the order they were written, and the unpacked data.
pub(crate) struct Unpacked {
    pub(crate) stretches: Vec<Place>,
    pub(crate) bytes: Bytes,
    /// Bytes of the file that were compressed.
    pub(crate) packed: u64,
}

/// Walk the packets of `file`, and unpack those that hold packets.
///
/// # Errors
/// They unpack to more bytes than allowed, or the disk is full.
pub(crate) fn unpack(file: &[u8], quality: &mut Quality) -> Result<Unpacked, ErrorKind> {
    unpack_within(&most_unpacked, file, quality)
}

fn unpack_within(
    most: &dyn Fn(u64) -> u64,
    file: &[u8],
    quality: &mut Quality,
) -> Result<Unpacked, ErrorKind> {
    let mut stretches: Vec<Place> = Vec::new();
    let mut spool = Spool::default();
    let mut packed = 0;
    for step in Packets::of(file) {
        let (key, start, end) = match step {
            Step::Packet { key, start, end } => (key, start, end),
            Step::Skipped(n) => {
                quality.add(QualityCode::SkippedBytes, n as u64);
                continue;
            }
            Step::Cut(_) => {
                quality.add(QualityCode::Truncated, 1);
                continue;
            }
        };
        let Some((number, bytes)) = compressed(&file[start..end]) else {
            match stretches.last_mut() {
                Some(last) if last.part == Part::File && last.end == key => last.end = end,
                _ => stretches.push(Place { part: Part::File, start: key, end }),
            }
            continue;
        };
        packed += bytes.len() as u64;
        let limit = most(packed);
        let from = spool.size();
        let whole = inflate(number, bytes, limit - from.min(limit), &mut spool)?;
        if spool.size() >= limit {
            return Err(ErrorKind::Unsupported {
                what: format!(
                    "a Perfetto trace with {packed} packed bytes that unpack to more than {RATIO} \
                     times as much and {} GiB",
                    ALLOWANCE >> 30
                ),
                way_out: "record without compression".to_owned(),
            });
        }
        quality.add(QualityCode::BadRecords, !whole as u64);
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let (start, end) = (place(from), place(spool.size()));
        stretches.push(Place { part: Part::Unpacked, start, end });
    }
    let bytes = spool.finish()?;
    Ok(Unpacked { stretches, bytes, packed })
}

/// Unpack into `spool`, at most `limit` bytes. False if the data ends early or is damaged: the
/// bytes before that are kept.
fn inflate(number: u32, bytes: &[u8], limit: u64, spool: &mut Spool) -> io::Result<bool> {
    if number == packet::ZSTD_COMPRESSED_PACKETS {
        let mut decoder = zstd::stream::read::Decoder::new(bytes)?;
        decoder.window_log_max(ZSTD_WINDOW)?;
        copy(decoder, limit, spool)
    } else {
        copy(flate2::read::ZlibDecoder::new(bytes), limit, spool)
    }
}

fn copy(mut from: impl Read, limit: u64, to: &mut Spool) -> io::Result<bool> {
    let mut block = [0; 16 << 10];
    let mut left = limit;
    while left > 0 {
        // The input is in memory, so an error means damaged data.
        let Ok(n) = from.read(&mut block) else { return Ok(false) };
        if n == 0 {
            return Ok(true);
        }
        to.write_all(&block[..n])?;
        left = left.saturating_sub(n as u64);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::ZlibEncoder};
    use prost::encoding::{WireType, encode_key, encode_varint};

    /// A packet that unpacks to `len` zeros.
    fn bomb(len: u64) -> Vec<u8> {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        io::copy(&mut io::repeat(0).take(len), &mut packed).unwrap();
        [packet::COMPRESSED_PACKETS, 1].iter().fold(packed.finish().unwrap(), |content, &number| {
            let mut message = Vec::new();
            encode_key(number, WireType::LengthDelimited, &mut message);
            encode_varint(content.len() as u64, &mut message);
            [message, content].concat()
        })
    }

    #[test]
    fn a_bomb_is_refused() {
        let unpack = |len| unpack_within(&|_| 1 << 20, &bomb(len), &mut Quality::default());
        assert_eq!(unpack((1 << 20) - 1).unwrap().bytes.all().len(), (1 << 20) - 1);
        let Err(ErrorKind::Unsupported { what, .. }) = unpack(4 << 20) else { panic!("taken") };
        assert!(what.contains("unpack to more than 200 times as much"), "{what}");
    }
}
