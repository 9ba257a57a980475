//! Files recorded with `perf record -z`: ring-buffer content arrives as zstd in COMPRESSED records.
//! One zstd stream runs through all of them, so a record may begin in one chunk and end in the
//! next. Records that perf wrote itself lie uncompressed between the chunks.

use crate::cursor::Order;
use crate::record;
use crate::source::{Source, Spool};
use holdup_trace::progress;
use holdup_tracepoint::{Big, Endian, Little};
use std::io;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Inflated bytes kept in memory before they go to a temporary file.
const IN_MEMORY: u64 = 64 << 20;

/// zstd compresses traces by a factor below 50. A file that claims more would fill the disk.
const MAX_RATIO: u64 = 1000;

/// Copies records, with compressed records replaced by their content.
pub(crate) struct Inflater {
    spool: Spool,
    /// Where a stream was first found damaged, and how.
    pub(crate) damage: Option<(u64, String)>,
    /// Compressed bytes lost to damage.
    pub(crate) lost: u64,
    /// Compressed bytes read.
    compressed: u64,
    /// Whether the data end inside a record.
    pub(crate) truncated: bool,
}

impl Inflater {
    pub(crate) fn new() -> Inflater {
        Inflater {
            spool: Spool::new(IN_MEMORY),
            damage: None,
            lost: 0,
            compressed: 0,
            truncated: false,
        }
    }

    /// The inflated records.
    pub(crate) fn finish(self) -> io::Result<Source> {
        self.spool.finish()
    }

    /// Copy the records in `start..limit`, which are one stream.
    pub(crate) fn copy_in(
        &mut self,
        order: Order,
        source: &Source,
        start: u64,
        limit: u64,
    ) -> io::Result<()> {
        match order {
            Order::Little => self.copy::<Little>(source, start, limit),
            Order::Big => self.copy::<Big>(source, start, limit),
        }
    }

    /// [`Inflater::copy_in`] with the byte order as a type.
    fn copy<E: Endian>(&mut self, source: &Source, start: u64, limit: u64) -> io::Result<()> {
        let mut stream =
            Stream { decoder: Decoder::new()?, out: vec![0; 128 << 10], tail: Vec::new() };
        let mut broken = false;
        let mut buf = vec![0; 256 << 10];
        let mut at = start;
        'read: while at < limit {
            let want = buf.len().min(usize::try_from(limit - at).unwrap_or(usize::MAX));
            let got = source.read_at(&mut buf[..want], at)?;
            let mut used = 0;
            let before = at;
            while let Some((kind, rec)) = record::next_record::<E>(&buf[..got], used) {
                // COMPRESSED2 says how many of its bytes are data; the rest is padding to 8 bytes.
                let data = match kind {
                    record::COMPRESSED => Some(&rec[record::HEADER..]),
                    record::COMPRESSED2 if rec.len() >= 16 => {
                        let n = usize::try_from(E::u64(rec, 8)).unwrap_or(usize::MAX);
                        Some(&rec[16..][..n.min(rec.len() - 16)])
                    }
                    _ => None,
                };
                match data {
                    // Nothing after the damage can be read, because the stream refers back to it.
                    Some(data) if broken => self.lost += data.len() as u64,
                    Some(data) => {
                        self.compressed += data.len() as u64;
                        let room = (self.compressed.saturating_mul(MAX_RATIO) + IN_MEMORY)
                            .saturating_sub(self.spool.len());
                        if let Err(why) = stream.push::<E>(data, room, &mut self.spool)? {
                            broken = true;
                            self.lost += data.len() as u64;
                            self.damage.get_or_insert((at + used as u64, why));
                        }
                    }
                    None => self.spool.push(rec)?,
                }
                used += rec.len();
                let mut payload = record::payload::<E>(kind, rec);
                if payload > 0 {
                    at = at.saturating_add(used as u64);
                    while payload > 0 && at < limit {
                        let want = buf
                            .len()
                            .min(usize::try_from(payload.min(limit - at)).unwrap_or(usize::MAX));
                        let got = source.read_at(&mut buf[..want], at)?;
                        if got == 0 {
                            break;
                        }
                        self.spool.push(&buf[..got])?;
                        at += got as u64;
                        payload -= got as u64;
                    }
                    if payload > 0 {
                        self.truncated = true;
                        break 'read;
                    }
                    progress::advance(at - before);
                    continue 'read;
                }
            }
            if used == 0 {
                // The walk over the records reports this.
                if crate::walk::is_no_record(&buf[..got]) {
                    self.spool.push(&buf[..got])?;
                } else {
                    self.truncated = true;
                }
                break;
            }
            at += used as u64;
            progress::advance(at - before);
        }
        self.truncated |= !stream.tail.is_empty();
        Ok(())
    }
}

struct Stream {
    decoder: Decoder<'static>,
    out: Vec<u8>,
    /// The beginning of a record whose rest is in the next chunk.
    tail: Vec<u8>,
}

impl Stream {
    /// Inflate one chunk to at most `room` bytes. The inner error says why inflating failed.
    fn push<E: Endian>(
        &mut self,
        data: &[u8],
        mut room: u64,
        spool: &mut Spool,
    ) -> io::Result<Result<(), String>> {
        let mut input = InBuffer::around(data);
        loop {
            let mut output = OutBuffer::around(&mut self.out[..]);
            if let Err(e) = self.decoder.run(&mut input, &mut output) {
                return Ok(Err(e.to_string()));
            }
            let n = output.pos();
            room = match room.checked_sub(n as u64) {
                Some(room) => room,
                None => return Ok(Err(format!("it expands more than {MAX_RATIO} times"))),
            };
            self.tail.extend_from_slice(&self.out[..n]);
            let mut used = 0;
            while let Some((_, rec)) = record::next_record::<E>(&self.tail, used) {
                used += rec.len();
            }
            spool.push(&self.tail[..used])?;
            self.tail.drain(..used);
            if self.tail.len() > u16::MAX as usize {
                // No record is that long: an impossible size. Leave it to the index to skip.
                spool.push(&std::mem::take(&mut self.tail))?;
            }
            // zstd holds back no output when the buffer has room left.
            if input.pos() >= data.len() && n < self.out.len() {
                return Ok(Ok(()));
            }
        }
    }
}
