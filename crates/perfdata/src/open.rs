//! Opening: header, attrs, features, and the records perf wrote about the recording itself.

use crate::attr::Attr;
#[cfg(feature = "zstd")]
use crate::compressed;
use crate::cursor::{Cursor, Order, text};
use crate::features::{self, EventName, Features};
use crate::format::header::FULL_SIZE;
use crate::format::{EVENT_UPDATE_NAME, SECTION, feature, sample};
use crate::header::{FileHeader, Header, Section};
use crate::index::Index;
use crate::reader::{PerfData, index_in, shown_in};
use crate::run::Content;
use crate::schema::{Class, Schema};
use crate::source::{Source, Spool};
use crate::tracing_data::{self, TracingData};
use crate::walk::TaskFact;
use crate::{describe, mapped, record};
use holdup_trace::{Cpu, ErrorKind, EventId, Quality, QualityCode, Result, TraceInfo, progress};
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of standard input kept in memory before they go to a temporary file.
const IN_MEMORY: u64 = 64 << 20;
/// Longest metadata section read: a large kernel's event formats are a few MiB.
const MAX_SECTION: u64 = 256 << 20;

/// Events beyond what [`holdup_trace::EventId`] can name are not read.
const MAX_ATTRS: usize = EventId::SIDEBAND.0 as usize;

/// Open a perf.data file, or a directory of `perf record --threads`, and index it.
///
/// # Errors
/// The file cannot be read, is not perf.data, its header or attrs are cut off, or it has version 1,
/// which is not supported. Damage after that is no error: holdup reads what is sound and counts the
/// rest in [`holdup_trace::Reader::quality`].
pub fn open(path: &Path) -> Result<PerfData> {
    open_file(path).map_err(|e| e.in_file(path))
}

/// Read perf.data from `input` to its end and index it. For pipes: up to 64 MiB are kept in memory,
/// more in an unlinked temporary file. `name` is for messages (`-`).
///
/// # Errors
/// As [`open`].
pub fn open_stream(name: &Path, input: impl Read) -> Result<PerfData> {
    let spooled = || {
        let mut spool = Spool::new(IN_MEMORY);
        spool.push_all(input)?;
        spool.finish()
    };
    spooled()
        .map_err(ErrorKind::Io)
        .and_then(|source| open_source(name, source))
        .map_err(|e| e.in_file(name))
}

fn open_file(path: &Path) -> Result<PerfData, ErrorKind> {
    open_source(path, content(path)?)
}

/// The bytes of a file, a folder or a pipe.
pub(crate) fn content(path: &Path) -> Result<Source, ErrorKind> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return directory(path);
    }
    if !meta.is_file() {
        let mut spool = Spool::new(IN_MEMORY);
        spool.push_all(file)?;
        return Ok(spool.finish()?);
    }
    Ok(Source::file(file)?)
}

/// `perf record --threads` makes a directory: `data` is an ordinary file with header and features;
/// `data.0`, `data.1` … hold only records.
fn directory(path: &Path) -> Result<Source, ErrorKind> {
    let head = path.join("data");
    if !head.is_file() {
        return Err(ErrorKind::Unsupported {
            what: "a directory without a file called data".into(),
            way_out: "name a trace file, or a directory made by perf record --threads".into(),
        });
    }
    let mut numbered = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let name = entry?.file_name();
        numbered.extend(
            name.to_str().and_then(|n| n.strip_prefix("data.")).and_then(|n| n.parse::<u32>().ok()),
        );
    }
    numbered.sort_unstable();
    let files = numbered.into_iter().map(|n| path.join(format!("data.{n}")));
    let sources = std::iter::once(head).chain(files).map(|f| Source::file(File::open(f)?));
    Ok(Source::join(sources.collect::<std::io::Result<_>>()?))
}

/// Facts about the recording, collected from sections and from records.
pub(crate) struct Facts {
    pub(crate) order: Order,
    pub(crate) info: TraceInfo,
    pub(crate) attrs: Vec<Attr>,
    /// Bodies of the HEADER_ATTR records read so far.
    attr_records: FxHashSet<Box<[u8]>>,
    pub(crate) features: Features,
    pub(crate) tracing: Option<TracingData>,
    /// Names of HEADER_EVENT_TYPE (perf before 3.4): config and name.
    event_types: Vec<(u64, String)>,
    pub(crate) quality: Quality,
}

fn open_source(path: &Path, source: Source) -> Result<PerfData, ErrorKind> {
    let (mut facts, first) = Facts::of_tables(path, &source)?;
    let order = facts.order;
    let parts = source.parts();
    let mut stretches = vec![first];
    if parts.len() > 1 {
        facts.info.format += " (directory)";
        stretches.extend(&parts[1..]);
    }
    let mut source = source;
    let mut schema = facts.schema();
    let mut found = index_all(order, &source, &schema, &stretches)?;
    if found.census[record::COMPRESSED as usize] + found.census[record::COMPRESSED2 as usize] > 0 {
        source = facts.inflate(&source, &stretches)?;
        stretches = vec![(0, source.len())];
        found = index_all(order, &source, &schema, &stretches)?;
    }
    let known = facts.attrs.len();
    facts.records(&source, &found.meta)?;
    // Tracing data or names found among the records change the plans; attrs change the times.
    schema = facts.schema();
    if facts.attrs.len() != known {
        found = index_all(order, &source, &schema, &stretches)?;
    }
    facts.finish(source, schema, found)
}

/// Offsets at which the records of a file of `len` bytes begin and end. If the recorder was killed,
/// they extend to the end of the file: holdup's table of sections is itself a record.
fn data_bounds(len: u64, file: &FileHeader, quality: &mut Quality) -> (u64, u64) {
    let cut = file.unfinished() || file.data.end() > len;
    quality.add(QualityCode::Truncated, cut as u64);
    (file.data.offset, if cut { len } else { file.data.end() })
}

pub(crate) fn index_all(
    order: Order,
    source: &Source,
    schema: &Schema,
    stretches: &[(u64, u64)],
) -> std::io::Result<Index> {
    let mut all: Option<Index> = None;
    progress::indexing(stretches.iter().map(|(start, limit)| limit.saturating_sub(*start)).sum());
    for &(start, limit) in stretches {
        let index = index_in(order, source, schema, start, limit)?;
        match &mut all {
            Some(all) => all.append(index),
            None => all = Some(index),
        }
    }
    all.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

impl Facts {
    /// What header, attrs and feature sections say, and where the records are.
    pub(crate) fn of_tables(
        path: &Path,
        source: &Source,
    ) -> Result<(Facts, (u64, u64)), ErrorKind> {
        let header = Header::parse(&source.read_vec(0, FULL_SIZE)?)?;
        let mut facts = Facts {
            order: header.order,
            info: TraceInfo::new(path.to_owned(), "perf.data"),
            attrs: Vec::new(),
            attr_records: FxHashSet::default(),
            features: Features::default(),
            tracing: None,
            event_types: Vec::new(),
            quality: Quality::default(),
        };
        let end = source.parts()[0].1;
        let records = match &header.file {
            Some(file) => {
                if file.unfinished() {
                    let what = "was not finished: the recorder was killed, or could not write any \
                        more";
                    facts.info.extra.push(("recording".into(), what.into()));
                }
                facts.attrs(source, file)?;
                facts.sections(source, file)?;
                data_bounds(end, file, &mut facts.quality)
            }
            None => {
                facts.info.format = "perf.data (pipe)".into();
                facts.leading_records(source, header.size)?;
                (header.size, end)
            }
        };
        Ok((facts, records))
    }

    /// The attrs section: each entry is an attr and the section of its ids.
    fn attrs(&mut self, source: &Source, file: &FileHeader) -> Result<(), ErrorKind> {
        let entry = file.attr_entry;
        let malformed = |at, expected: &str, found: String| {
            ErrorKind::malformed(at, "attrs section".to_owned(), expected, found)
        };
        if entry < 80 || entry > u16::MAX as u64 {
            return Err(malformed(
                16,
                "the size of an attr with its ids, at least 80",
                entry.to_string(),
            ));
        }
        let bytes = source.read_vec(file.attrs.offset, file.attrs.size.min(MAX_SECTION))?;
        if (bytes.len() as u64) < file.attrs.size {
            let at = file.attrs.offset.saturating_add(bytes.len() as u64);
            return Err(malformed(
                at,
                &format!("{} bytes of attrs", file.attrs.size),
                "the end of the file".into(),
            ));
        }
        let mut budget = source.len();
        for chunk in bytes.chunks_exact(entry as usize).take(MAX_ATTRS) {
            let (attr, ids) = chunk.split_at(entry as usize - 16);
            let Some(mut attr) = Attr::parse(attr, self.order) else { continue };
            let ids = Section { offset: self.order.u64(ids, 0), size: self.order.u64(ids, 8) };
            // Sections of a damaged file may all claim the same bytes; sound ones fit in the file.
            let ids = source.read_vec(ids.offset, ids.size.min(budget))?;
            budget -= ids.len() as u64;
            attr.ids = ids.chunks_exact(8).map(|id| self.order.u64(id, 0)).collect();
            self.attrs.push(attr);
        }
        if self.attrs.is_empty() {
            return Err(malformed(
                file.attrs.offset,
                "at least one attr",
                format!("{} bytes", file.attrs.size),
            ));
        }
        let names =
            source.read_vec(file.event_types.offset, file.event_types.size.min(MAX_SECTION))?;
        self.event_types
            .extend(names.chunks_exact(72).map(|t| (self.order.u64(t, 0), text(&t[8..]))));
        Ok(())
    }

    /// The feature sections after the data: a table of sections, then their content.
    fn sections(&mut self, source: &Source, file: &FileHeader) -> Result<(), ErrorKind> {
        let numbers = file.feature_numbers();
        if file.data.size == 0 || numbers.is_empty() {
            return Ok(());
        }
        let table = source.read_vec(file.data.end(), (SECTION * numbers.len()) as u64)?;
        for (i, number) in numbers.into_iter().enumerate() {
            let section = Section {
                offset: self.order.u64(&table, SECTION * i),
                size: self.order.u64(&table, SECTION * i + 8),
            };
            if section.size == 0 || section.size > MAX_SECTION {
                continue;
            }
            let bytes = source.read_vec(section.offset, section.size)?;
            self.feature(number, &bytes);
        }
        Ok(())
    }

    fn feature(&mut self, number: u32, bytes: &[u8]) {
        if number == feature::TRACING_DATA {
            self.tracing_data(bytes);
        } else if !self.features.take(number, bytes, self.order, &mut self.info) {
            self.quality.add(QualityCode::BadRecords, 1);
        }
    }

    fn tracing_data(&mut self, bytes: &[u8]) {
        match tracing_data::parse(bytes) {
            Some(data) => {
                self.quality.add(QualityCode::Truncated, data.truncated as u64);
                self.quality.add(QualityCode::BadRecords, data.bad_formats);
                self.tracing = Some(data);
            }
            None => self.quality.add(QualityCode::BadRecords, 1),
        }
    }

    /// Pipe mode: the attrs come as records before the first sample.
    fn leading_records(&mut self, source: &Source, start: u64) -> Result<(), ErrorKind> {
        let mut at = start;
        while at < source.len() {
            let head = source.read_vec(at, 16)?;
            let (kind, size) = (self.order.u32(&head, 0), self.order.u16(&head, 6) as u64);
            if size < 8 || kind < record::HEADER_ATTR {
                return Ok(());
            }
            let trailing = match kind {
                record::HEADER_TRACING_DATA => self.order.u32(&head, 8) as u64,
                record::AUXTRACE if size.is_multiple_of(8) => self.order.u64(&head, 8),
                _ => 0,
            };
            if kind == record::HEADER_ATTR {
                self.record(source, at)?;
            }
            at = at.saturating_add(size).saturating_add(trailing);
        }
        Ok(())
    }

    pub(crate) fn records(&mut self, source: &Source, offsets: &[u64]) -> Result<(), ErrorKind> {
        offsets.iter().try_for_each(|&at| self.record(source, at))
    }

    /// Read one record about the recording. Reading the same one twice does no harm.
    fn record(&mut self, source: &Source, at: u64) -> Result<(), ErrorKind> {
        let head = source.read_vec(at, 16)?;
        let (kind, size) = (self.order.u32(&head, 0), self.order.u16(&head, 6) as u64);
        let rec = source.read_vec(at, size)?;
        let mut c = Cursor::new(rec.get(record::HEADER..).unwrap_or(&[]), self.order);
        let sound = match kind {
            record::HEADER_ATTR => self.attr_record(&rec[record::HEADER.min(rec.len())..]),
            // The name has 64 bytes in perf's struct, but perf writes only as many as it needs.
            record::HEADER_EVENT_TYPE => {
                c.u64().map(|config| self.event_types.push((config, text(c.rest()))))
            }
            record::HEADER_TRACING_DATA => c.u32().map(|n| n as u64).and_then(|n| {
                let bytes = source.read_vec(at + size, n.min(MAX_SECTION)).ok()?;
                self.tracing_data(&bytes);
                Some(())
            }),
            record::HEADER_BUILD_ID => {
                self.info.built.extend(mapped::build(&rec, self.order));
                Some(())
            }
            record::HEADER_FEATURE => c.u64().map(|number| self.feature(number as u32, &rec[16..])),
            record::EVENT_UPDATE => self.event_update(&mut c),
            record::ID_INDEX => self.id_index(&mut c),
            record::THREAD_MAP => self.thread_map(&mut c),
            _ => Some(()),
        };
        self.quality.add(QualityCode::BadRecords, sound.is_none() as u64);
        Ok(())
    }

    fn attr_record(&mut self, body: &[u8]) -> Option<()> {
        let mut attr = Attr::parse(body, self.order)?;
        let ids = body.get(Attr::size(body, self.order)..)?;
        attr.ids = ids.chunks_exact(8).map(|id| self.order.u64(id, 0)).collect();
        if self.attrs.len() < MAX_ATTRS && self.attr_records.insert(body.into()) {
            self.attrs.push(attr);
        }
        Some(())
    }

    fn event_update(&mut self, c: &mut Cursor<'_>) -> Option<()> {
        let (what, id) = (c.u64()?, c.u64()?);
        if what == EVENT_UPDATE_NAME {
            self.features.names.push(EventName { name: text(c.rest()), ids: vec![id] });
        }
        Some(())
    }

    fn id_index(&mut self, c: &mut Cursor<'_>) -> Option<()> {
        let n = c.u64()?;
        let mut all_threads = n > 0;
        // One record has no room for all CPUs of a large machine.
        let mut cpus = self.info.cpus_recorded.take().unwrap_or_default();
        for _ in 0..n {
            c.bytes(16)?; // id, index
            let cpu = c.u64()?;
            all_threads &= c.u64()? == u64::MAX;
            if let Ok(cpu) = u16::try_from(cpu).map(Cpu)
                && !cpus.contains(&cpu)
            {
                cpus.push(cpu);
            }
        }
        self.info.system_wide.get_or_insert(all_threads);
        self.info.cpus_recorded = Some(cpus).filter(|cpus| all_threads && !cpus.is_empty());
        Some(())
    }

    fn thread_map(&mut self, c: &mut Cursor<'_>) -> Option<()> {
        let n = c.u64()?;
        let mut pids = (0..n).map_while(|_| c.u64().zip(c.bytes(16)).map(|(pid, _)| pid));
        let everything = pids.next()? as u32 == u32::MAX && pids.next().is_none();
        self.info.system_wide = Some(everything);
        Some(())
    }

    /// Replace compressed records by their content.
    #[cfg(feature = "zstd")]
    pub(crate) fn inflate(
        &mut self,
        source: &Source,
        stretches: &[(u64, u64)],
    ) -> Result<Source, ErrorKind> {
        let mut inflater = compressed::Inflater::new();
        progress::unpacking(Some(source.len()));
        for &(start, limit) in stretches {
            inflater.copy_in(self.order, source, start, limit)?;
        }
        self.info.format += " (compressed)";
        self.quality.add(QualityCode::Truncated, inflater.truncated as u64);
        self.quality.add(QualityCode::SkippedBytes, inflater.lost);
        if let Some((at, why)) = inflater.damage.take() {
            self.info
                .extra
                .push(("damaged".into(), format!("compressed stream from byte {at:#x}: {why}")));
        }
        Ok(inflater.finish()?)
    }

    #[cfg(not(feature = "zstd"))]
    pub(crate) fn inflate(&mut self, _: &Source, _: &[(u64, u64)]) -> Result<Source, ErrorKind> {
        Err(ErrorKind::Unsupported {
            what: "a recording of perf record -z, in a program built without zstd".into(),
            way_out: "build holdup-perfdata with its feature zstd, or record without -z".into(),
        })
    }

    /// Plans for all attrs, as far as the facts are known.
    pub(crate) fn schema(&mut self) -> Schema {
        self.features.name(&mut self.attrs);
        let classes = describe::classes(&self.attrs, self.tracing.as_ref(), &self.info);
        Schema::new(&self.attrs, classes)
    }

    fn finish(
        mut self,
        source: Source,
        schema: Schema,
        found: Index,
    ) -> Result<PerfData, ErrorKind> {
        self.quality.add(QualityCode::AuxErrors, found.census[record::AUXTRACE_ERROR as usize]);
        let copied = self.attrs.iter().filter(|attr| attr.sample_type & sample::STACK_USER != 0);
        self.quality.add(QualityCode::CopiedStacks, copied.count() as u64);
        let unprobed = self.info.runtimes.unprobed.len() as u64;
        self.quality.add(QualityCode::UnseenTasks, unprobed);
        self.info.span = found.span;
        self.describe(&found.tasks);
        let shown = shown_in(self.order, &source, &schema, &found.spans)?;
        describe::settle(&mut self.info, &self.attrs, &schema, &found, shown);
        describe::extra(&mut self.info, &found);
        self.info.extra.extend(schema.events.iter().filter_map(|e| match &e.class {
            Class::Tracepoint(plan) => plan.note(),
            Class::NoFormat | Class::Probe(_) | Class::Counter => None,
        }));
        let content = Content::new(&self.info, source, schema, &found.groups);
        Ok(PerfData::new(self.info, self.order, content, self.quality, found))
    }

    /// Names of events, clock, threads and symbols, once all facts are known.
    pub(crate) fn describe(&mut self, tasks: &[TaskFact]) {
        self.info.events = describe::events(&self.attrs, self.tracing.as_ref(), &self.event_types);
        let from_attr = self
            .attrs
            .iter()
            .find(|a| a.has(crate::attr::flag::USE_CLOCKID))
            .map(|a| features::clock_name(a.clockid));
        self.info.clock.name =
            self.features.clock.take().or(from_attr).unwrap_or_else(|| "local".into());
        describe::tasks(&mut self.info, self.tracing.as_ref(), tasks);
        if let Some(t) = &self.tracing {
            self.info.symbols = holdup_trace::SymbolTable::from_kallsyms(&t.kallsyms);
        }
    }
}
