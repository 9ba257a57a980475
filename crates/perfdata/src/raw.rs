//! A file in its raw form, for code that copies a part of it into another file: the tables as
//! bytes, and the records in file order with what is needed to choose among them.

use crate::cursor::Order;
use crate::header::Header;
use crate::open::{Facts, content, index_all};
use crate::record::{self, next_record, payload};
use crate::schema::{Schema, When};
use crate::source::Source;
use crate::walk::resync;
use crate::window::{READ, Window};
use holdup_trace::{Cpu, ErrorKind, EventDesc, ReadError, Result};
use holdup_tracepoint::{Big, Endian, Format, Little};
use std::path::{Path, PathBuf};

/// Longest section or payload that is read into memory.
const MAX_TABLE: u64 = 256 << 20;

/// An event of the file as its tables describe it.
#[derive(Debug)]
pub struct RawAttr {
    /// `struct perf_event_attr`, with the length it has in the file.
    pub bytes: Vec<u8>,
    /// Ids of its instances.
    pub ids: Vec<u64>,
    /// `sample_type`.
    pub sample_type: u64,
    /// The tracepoint's description, if it is a tracepoint and the file describes it.
    pub format: Option<Format>,
    /// The event's names.
    pub desc: EventDesc,
}

/// A perf.data of any mode, with compressed records replaced by their content.
pub struct RawFile {
    path: PathBuf,
    order: Order,
    source: Source,
    stretches: Vec<(u64, u64)>,
    schema: Schema,
    /// The file is in pipe mode: the tables come as records.
    pub pipe: bool,
    /// The events.
    pub attrs: Vec<RawAttr>,
    /// Names of events in files of perf before Linux 3.4, as bytes.
    pub event_types: Vec<u8>,
    /// Feature sections by number; none in pipe mode.
    pub features: Vec<(u32, Vec<u8>)>,
}

/// One record.
#[derive(Debug)]
pub struct RawRecord<'a> {
    /// Its type.
    pub kind: u32,
    /// The whole record.
    pub bytes: &'a [u8],
    /// Bytes that follow the record without being part of it, e.g. tracing data.
    pub payload: &'a [u8],
    /// Its time, if it has one.
    pub time: Option<u64>,
    /// Its CPU, [`Cpu::UNKNOWN`] if it has none.
    pub cpu: Cpu,
    /// For a sample: index of its event in [`RawFile::attrs`].
    pub event: Option<usize>,
    /// For a record other than a sample: length of its trailer (time, CPU and ids) in bytes.
    pub trailer: usize,
    /// For a sample: offset at which the content of its tracepoint begins.
    pub content: usize,
    /// Offset at which that content ends and registers, copied memory and the like begin.
    pub behind: usize,
}

/// Open `path` for copying.
///
/// # Errors
/// Those of [`crate::open`].
pub fn open_raw(path: &Path) -> Result<RawFile> {
    read(path).map_err(|e| e.in_file(path))
}

fn read(path: &Path) -> Result<RawFile, ErrorKind> {
    let source = content(path)?;
    let (mut facts, first) = Facts::of_tables(path, &source)?;
    let order = facts.order;
    let head = source.read_vec(0, crate::format::header::FULL_SIZE)?;
    let file = Header::parse(&head)?.file;
    let (mut attr_bytes, mut event_types, mut features) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(file) = &file {
        let entry = file.attr_entry as usize;
        let bytes = source.read_vec(file.attrs.offset, file.attrs.size.min(MAX_TABLE))?;
        attr_bytes.extend(bytes.chunks_exact(entry).map(|c| c[..entry - 16].to_vec()));
        let types = file.event_types;
        event_types = source.read_vec(types.offset, types.size.min(MAX_TABLE))?;
        features = sections(&source, order, file)?;
    }
    let parts = source.parts();
    let mut stretches = vec![first];
    stretches.extend(parts.iter().skip(1));
    let mut source = source;
    let schema = facts.schema();
    let mut found = index_all(order, &source, &schema, &stretches)?;
    if found.census[record::COMPRESSED as usize] + found.census[record::COMPRESSED2 as usize] > 0 {
        source = facts.inflate(&source, &stretches)?;
        stretches = vec![(0, source.len())];
        found = index_all(order, &source, &schema, &stretches)?;
    }
    facts.records(&source, &found.meta)?;
    let schema = facts.schema();
    facts.describe(&found.tasks);
    let formats = facts.tracing.iter().flat_map(|t| &t.formats);
    let formats: rustc_hash::FxHashMap<u64, &Format> =
        formats.map(|f| (u64::from(f.id), f)).collect();
    let mut bytes = attr_bytes.into_iter();
    let attrs = facts.attrs.iter().zip(&facts.info.events).map(|(a, desc)| RawAttr {
        bytes: bytes.next().unwrap_or_default(),
        ids: a.ids.clone(),
        sample_type: a.sample_type,
        format: (a.kind == crate::format::kind::TRACEPOINT)
            .then(|| formats.get(&a.config).map(|f| (*f).clone()))
            .flatten(),
        desc: desc.clone(),
    });
    let attrs = attrs.collect();
    let pipe = file.is_none();
    let path = path.to_owned();
    Ok(RawFile { path, order, source, stretches, schema, pipe, attrs, event_types, features })
}

fn sections(
    source: &Source,
    order: Order,
    file: &crate::header::FileHeader,
) -> Result<Vec<(u32, Vec<u8>)>, ErrorKind> {
    let numbers = file.feature_numbers();
    if file.data.size == 0 {
        return Ok(Vec::new());
    }
    let size = crate::format::SECTION;
    let table = source.read_vec(file.data.end(), (size * numbers.len()) as u64)?;
    let mut sections = Vec::new();
    for (number, entry) in numbers.into_iter().zip(table.chunks_exact(size)) {
        let (offset, len) = (order.u64(entry, 0), order.u64(entry, 8));
        if number != crate::format::feature::RESERVED && len <= MAX_TABLE {
            sections.push((number, source.read_vec(offset, len)?));
        }
    }
    Ok(sections)
}

impl RawFile {
    /// Whether the recorded machine put the most significant byte first.
    pub fn big_endian(&self) -> bool {
        self.order == Order::Big
    }

    /// Whether any of its events has a time.
    pub fn has_times(&self) -> bool {
        self.schema.events.iter().any(|e| e.layout.time != 0)
    }

    /// Call `take` for every record in file order. Bytes that are no records are skipped, as when
    /// reading.
    ///
    /// # Errors
    /// Errors of `take`, and of reading.
    pub fn each<E: From<ReadError>>(
        &self,
        take: &mut dyn FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        for &(start, limit) in &self.stretches {
            let each = &mut |record: &RawRecord<'_>| {
                result = take(record);
                result.is_ok()
            };
            match self.order {
                Order::Little => self.stretch::<Little>(start, limit, each),
                Order::Big => self.stretch::<Big>(start, limit, each),
            }
            .map_err(|e| ErrorKind::Io(e).in_file(&self.path))?;
            if result.is_err() {
                break;
            }
        }
        result
    }

    fn stretch<E: Endian>(
        &self,
        start: u64,
        limit: u64,
        take: &mut dyn FnMut(&RawRecord<'_>) -> bool,
    ) -> std::io::Result<()> {
        let mut window = Window::default();
        let mut at = start;
        while at < limit {
            let next = at + window.bytes().len() as u64;
            let want = READ.min(usize::try_from(limit.saturating_sub(next)).unwrap_or(READ));
            let got = if want > 0 { window.fill(&self.source, next, want)? } else { 0 };
            let mut used = 0;
            let mut behind = 0;
            while let Some((kind, rec)) = next_record::<E>(window.bytes(), used) {
                used += rec.len();
                behind = payload::<E>(kind, rec);
                let rest = at + used as u64;
                let payload = self
                    .source
                    .read_vec(rest, behind.min(limit - rest.min(limit)).min(MAX_TABLE))?;
                if !take(&self.raw::<E>(kind, rec, &payload)) {
                    return Ok(());
                }
                if behind > 0 {
                    break;
                }
            }
            at += used as u64;
            window.consume(used);
            if behind > 0 {
                at = at.saturating_add(behind);
                window.clear();
            } else if used == 0 && got == 0 {
                window.clear();
                // Either the file was cut off here, or the data are damaged.
                match resync::<E>(&self.source, &self.schema, at + 8, limit)? {
                    Some(found) => at = found,
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    fn raw<'a, E: Endian>(&self, kind: u32, bytes: &'a [u8], payload: &'a [u8]) -> RawRecord<'a> {
        let word = |at: usize| (at + 4 <= bytes.len()).then(|| E::u32(bytes, at));
        let long = |at: usize| (at + 8 <= bytes.len()).then(|| E::u64(bytes, at));
        let mut raw = RawRecord {
            kind,
            bytes,
            payload,
            time: None,
            cpu: Cpu::UNKNOWN,
            event: None,
            trailer: 0,
            content: bytes.len(),
            behind: bytes.len(),
        };
        let cpu = |n: Option<u32>| n.and_then(|n| u16::try_from(n).ok()).map_or(Cpu::UNKNOWN, Cpu);
        if kind == record::SAMPLE {
            if let When::At(t) = self.schema.when::<E>(kind, bytes) {
                raw.time = Some(t);
            }
            if let Some(e) = self.schema.of_sample::<E>(bytes) {
                raw.event = Some(e.event.0.into());
                if e.layout.cpu != 0 {
                    raw.cpu = cpu(word(e.layout.cpu.into()));
                }
                if let Some((content, behind)) = e.layout.payload::<E>(bytes) {
                    (raw.content, raw.behind) = (content, behind);
                }
            }
        } else if kind < record::HEADER_ATTR {
            let trailer = self.schema.trailer_of::<E>(bytes);
            let at = |back: u16| bytes.len().checked_sub(back.into()).filter(|_| back != 0);
            raw.trailer = usize::from(trailer.len).min(bytes.len() - record::HEADER);
            raw.time = at(trailer.time).and_then(long);
            if trailer.time == 0 && matches!(kind, record::FORK | record::EXIT) {
                raw.time = long(24);
            }
            raw.time = raw.time.filter(|&t| t != u64::MAX);
            raw.cpu = cpu(at(trailer.cpu).and_then(word));
        }
        raw
    }
}
