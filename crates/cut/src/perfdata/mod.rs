//! perf.data: file mode and pipe mode, each written in its own mode. Compressed records are written
//! uncompressed, a folder of `perf record --threads` as one file.
//!
//! ```text
//!  file mode   header │ ids │ attrs │ names │ records … │ table of sections │ sections
//!  pipe mode   magic  │ records, those of the tables first …
//! ```
//!
//! Records keep their order, and the FINISHED_ROUND records their meaning: everything that was
//! before one is still before it. Hardware traces (AUX) are left out.

mod strings;
mod tables;

use crate::keep::Keep;
use crate::tracing::{self, Order};
use crate::{CutError, Written, into_file};
use holdup_perfdata::format::{MAGIC, SECTION, feature, header, record};
use holdup_perfdata::{RawFile, RawRecord, open_raw};
use holdup_trace::ErrorKind;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use strings::Strings;

/// Cut the file `input`.
pub(crate) fn write(input: &Path, keep: Keep, output: &Path) -> Result<Written, CutError> {
    let raw = open_raw(input)?;
    if !raw.has_times() {
        let refused = ErrorKind::Unsupported {
            what: "its samples have no time stamps, so no part can be selected".into(),
            way_out: "record with perf record -T".into(),
        };
        return Err(refused.in_file(input).into());
    }
    into_file(output, |out| {
        let order = Order { big: raw.big_endian() };
        let strings = keep.cut.anonymous.then(|| Strings::new(order, &raw));
        let mut copy = Copy {
            order,
            pipe: raw.pipe,
            keep,
            strings,
            stays: false,
            round: false,
            noted: false,
            out,
            at: 0,
            buffer: Vec::new(),
        };
        let failed = |error: io::Error| CutError::Output { path: output.to_owned(), error };
        match raw.pipe {
            true => copy.start_pipe().map_err(failed)?,
            false => copy.start_file(&raw).map_err(failed)?,
        }
        let data = copy.at;
        raw.each(&mut |record: &RawRecord<'_>| copy.record(record).map_err(failed))?;
        if !raw.pipe {
            copy.finish_file(&raw, data).map_err(failed)?;
        }
        Ok(copy.keep.written)
    })
}

struct Copy<'a, 'b> {
    order: Order,
    pipe: bool,
    keep: Keep,
    strings: Option<Strings<'a>>,
    /// Whether the latest event with a time stayed: records without a time share it.
    stays: bool,
    /// Whether something was written since the last FINISHED_ROUND.
    round: bool,
    /// Pipe mode: whether the note that says which part this is was written.
    noted: bool,
    out: &'a mut BufWriter<&'b File>,
    /// Bytes written.
    at: u64,
    /// A record being changed.
    buffer: Vec<u8>,
}

impl Copy<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn magic(&self) -> &'static [u8; 8] {
        MAGIC[usize::from(self.order.big)]
    }

    fn start_pipe(&mut self) -> io::Result<()> {
        self.put(self.magic())?;
        self.put(&self.order.u64(header::PIPE_SIZE))
    }

    /// Write header, ids, attrs and old names of events.
    fn start_file(&mut self, raw: &RawFile) -> io::Result<()> {
        let order = self.order;
        let entry = raw.attrs.iter().map(|a| a.bytes.len()).max().unwrap_or(0) + SECTION;
        let ids: usize = raw.attrs.iter().map(|a| a.ids.len() * 8).sum();
        let attrs_at = header::FULL_SIZE + ids as u64;
        let attrs = (entry * raw.attrs.len()) as u64;
        let names_at = attrs_at + attrs;
        let names = raw.event_types.len() as u64;
        let mut head = Vec::from(*self.magic());
        let data = names_at + names;
        for v in [header::FULL_SIZE, entry as u64, attrs_at, attrs, data, 0, names_at, names] {
            head.extend(order.u64(v));
        }
        head.resize(header::FULL_SIZE as usize, 0);
        self.put(&head)?;
        for id in raw.attrs.iter().flat_map(|a| &a.ids) {
            self.put(&order.u64(*id))?;
        }
        let mut ids_at = header::FULL_SIZE;
        for attr in &raw.attrs {
            let len = attr.ids.len() as u64 * 8;
            let mut bytes = attr.bytes.clone();
            bytes.resize(entry - SECTION, 0);
            self.put(&bytes)?;
            self.put(&order.u64(if len == 0 { 0 } else { ids_at }))?;
            self.put(&order.u64(len))?;
            ids_at += len;
        }
        self.put(&raw.event_types)
    }

    /// Write the feature sections, and all offsets into the header.
    fn finish_file(&mut self, raw: &RawFile, data: u64) -> io::Result<()> {
        let data_end = self.at;
        let sections = tables::sections(self.order, raw, &self.keep.cut, &mut self.strings);
        let mut offset = data_end + (SECTION * sections.len()) as u64;
        let mut bits = [0u64; 4];
        for (number, bytes) in &sections {
            let entry = [self.order.u64(offset), self.order.u64(bytes.len() as u64)].concat();
            self.put(&entry)?;
            offset += bytes.len() as u64;
            bits[*number as usize / 64 % 4] |= 1 << (number % 64);
        }
        for (_, bytes) in &sections {
            self.put(bytes)?;
        }
        self.out.seek(SeekFrom::Start(header::DATA as u64 + 8))?;
        self.out.write_all(&self.order.u64(data_end - data))?;
        self.out.seek(SeekFrom::Start(header::FEATURES as u64))?;
        for word in bits {
            self.out.write_all(&self.order.u64(word))?;
        }
        self.out.seek(SeekFrom::End(0))?;
        Ok(())
    }

    fn record(&mut self, rec: &RawRecord<'_>) -> io::Result<()> {
        if !self.stays(rec) {
            return Ok(());
        }
        if rec.kind == record::FINISHED_ROUND {
            // An empty round is meaningless.
            if !std::mem::take(&mut self.round) {
                return Ok(());
            }
            return self.put(rec.bytes);
        }
        self.round = true;
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        bytes.extend_from_slice(rec.bytes);
        let mut payload = rec.payload.to_vec();
        let written = self.changed(rec, &mut bytes, &mut payload);
        if written {
            self.put(&bytes)?;
            self.put(&payload)?;
        }
        self.buffer = bytes;
        Ok(())
    }

    /// Whether a record stays.
    fn stays(&mut self, rec: &RawRecord<'_>) -> bool {
        let to = self.keep.cut.times().1;
        match rec.kind {
            // Records about threads, mappings and losses stay up to the end of the part.
            record::COMM
            | record::FORK
            | record::EXIT
            | record::MMAP
            | record::MMAP2
            | record::NAMESPACES
            | record::KSYMBOL
            | record::BPF_EVENT
            | record::CGROUP
            | record::LOST
            | record::LOST_SAMPLES
            | record::THROTTLE => rec.time.is_none_or(|t| t <= to),
            ..record::HEADER_ATTR => {
                // The choice of CPUs does not apply to records of switches.
                let cpu = if rec.kind == record::SAMPLE { Some(rec.cpu) } else { None };
                if let Some(time) = rec.time {
                    self.stays = match cpu {
                        Some(cpu) => self.keep.event(time, cpu),
                        None => self.keep.side_band(time, rec.cpu),
                    };
                }
                self.stays
            }
            // Hardware traces, and perf's records about compression.
            record::AUXTRACE_INFO
            | record::AUXTRACE
            | record::AUXTRACE_ERROR
            | record::COMPRESSED
            | record::COMPRESSED2 => false,
            _ => true,
        }
    }

    /// Adapt a record; false if the record is left out.
    fn changed(&mut self, rec: &RawRecord<'_>, bytes: &mut Vec<u8>, payload: &mut Vec<u8>) -> bool {
        if self.pipe && !self.noted && rec.kind < record::HEADER_ATTR {
            self.noted = true;
            let note = tables::command_line(self.order, &[], &self.keep.cut);
            let mut with = self.feature_record(feature::CMDLINE, &note);
            with.append(bytes);
            *bytes = with;
            return self.strings.as_mut().is_none_or(|s| {
                let at = bytes.len() - rec.bytes.len();
                s.record(rec, &mut bytes[at..])
            });
        }
        match rec.kind {
            record::HEADER_FEATURE => {
                let number = self.order.read_u64(bytes, 8).unwrap_or(0) as u32;
                let content = bytes.get(16..).unwrap_or(&[]).to_vec();
                let cut = self.keep.cut.clone();
                let content = tables::section(self.order, number, content, &cut, &mut self.strings);
                self.noted |= number == feature::CMDLINE;
                let Some(content) = content else { return false };
                *bytes = self.feature_record(number, &content);
                true
            }
            record::HEADER_TRACING_DATA => {
                if let Some(strings) = &mut self.strings {
                    *payload = tracing::data(payload, &mut strings.names);
                    payload.resize(payload.len().next_multiple_of(8), 0);
                    bytes.truncate(8);
                    bytes.extend(self.order.u32(payload.len() as u32));
                    bytes.extend(&rec.bytes[12.min(rec.bytes.len())..]);
                }
                true
            }
            _ => self.strings.as_mut().is_none_or(|s| s.record(rec, bytes)),
        }
    }

    fn feature_record(&self, number: u32, content: &[u8]) -> Vec<u8> {
        let size = (16 + content.len()).next_multiple_of(8);
        let mut bytes = Vec::with_capacity(size);
        bytes.extend(self.order.u32(record::HEADER_FEATURE));
        bytes.extend(self.order.u16(0));
        bytes.extend(self.order.u16(u16::try_from(size).unwrap_or(!7)));
        bytes.extend(self.order.u64(number.into()));
        bytes.extend(content);
        bytes.resize(usize::from(u16::try_from(size).unwrap_or(!7)), 0);
        bytes
    }
}
