//! Compressing the data: one stream of zstd, cut into COMPRESSED records.

use super::bytes::Bytes;
use holdup_perfdata::format::record;
use std::io;
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

/// Maximal size that one record unpacks to. Data that zstd cannot compress grow by less than 1 %,
/// and must fit into a record's 65,535 bytes.
pub(crate) const MOST: usize = 60 << 10;

pub(crate) struct Compressor {
    encoder: Encoder<'static>,
    /// Buffer for the current record; kept for reuse.
    out: Vec<u8>,
    /// Bytes before and after compression.
    plain: u64,
    packed: u64,
    pub(crate) level: i32,
}

impl Compressor {
    pub(crate) fn new(level: i32) -> io::Result<Compressor> {
        let encoder = Encoder::new(level)?;
        Ok(Compressor { encoder, out: vec![0; u16::MAX as usize], plain: 0, packed: 0, level })
    }

    /// Appends records to `records` that unpack to `data`.
    pub(crate) fn push(&mut self, data: &[u8], records: &mut Bytes) -> io::Result<()> {
        for chunk in data.chunks(MOST) {
            let mut input = InBuffer::around(chunk);
            let mut output = OutBuffer::around(&mut self.out[record::HEADER..]);
            while input.pos() < chunk.len() {
                self.encoder.run(&mut input, &mut output)?;
            }
            // Flushed, so that a reader of the file up to here gets all data written up to here.
            while self.encoder.flush(&mut output)? > 0 {}
            let n = output.pos();
            records.record(record::COMPRESSED, 0, |b| {
                b.put(&self.out[record::HEADER..][..n]);
            });
            self.plain += chunk.len() as u64;
            self.packed += n as u64;
        }
        Ok(())
    }

    /// The compression ratio, rounded.
    pub(crate) fn ratio(&self) -> u32 {
        let ratio = (self.plain + self.packed / 2).checked_div(self.packed).unwrap_or(1);
        u32::try_from(ratio).unwrap_or(u32::MAX)
    }
}
