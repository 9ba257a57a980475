//! The opened trace.

use crate::blocks::CpuData;
use crate::codec::Codec;
use crate::decode::{Decoder, Shared};
use crate::describe::describe;
use crate::format::EventTable;
use crate::meta::{Buffer, Meta, RawMeta};
use crate::page::PageLayout;
use crate::scan::{Found, IdSet, Look, scan};
use crate::source::{Cursor, Source};
use crate::stacks::Recorders;
use crate::time::TimeMap;
use crate::{Content, LatencyText, v6, v7};
use holdup_trace::{
    Capabilities, Cpu, ErrorKind, Extras, Opened, Quality, QualityCode, Reader, Result, Run,
    RunDecoder, SymbolTable, TraceInfo, progress,
};
use holdup_tracepoint::{Abi, Big, Endian, Little};
use std::path::Path;
use std::sync::Arc;

/// An opened trace.dat, or folder of raw ring-buffer dumps.
///
/// Every buffer of the file is read: the top one and the instances. One [`Run`] is one CPU of one
/// buffer, the top buffer first, CPUs ascending; so events with equal times come in the order in
/// which `trace-cmd report` prints them.
pub struct TraceDat {
    opened: Opened,
    cpus: Vec<(Cpu, CpuData, TimeMap)>,
    shared: Shared,
    big: bool,
}

/// The pages of one CPU, before they are known to hold events.
pub(crate) struct Lane {
    /// Index of the buffer.
    pub(crate) buffer: usize,
    pub(crate) cpu: u32,
    pub(crate) data: CpuData,
    pub(crate) cut: bool,
}

impl TraceDat {
    /// Open `source`, which holds a whole trace.dat.
    pub(crate) fn from_source(path: &Path, source: Source) -> Result<Content> {
        let content = match Parsed::new(source).map_err(|kind| kind.in_file(path))? {
            Parsed::Text(text) => Content::Text(text),
            Parsed::Events(parts) => {
                let dat = parts.assemble(path).map_err(|kind| kind.in_file(path))?;
                Content::Events(Box::new(dat))
            }
        };
        Ok(content)
    }

    /// Everything that is known apart from the events.
    pub(crate) fn into_info(self) -> (TraceInfo, Quality) {
        (self.opened.info, self.opened.quality)
    }
}

/// A file whose metadata have been read.
pub(crate) enum Parsed {
    Events(Box<Parts>),
    Text(Box<LatencyText>),
}

/// Everything that is known of a file before its pages are read.
pub(crate) struct Parts {
    pub(crate) format: String,
    pub(crate) meta: Meta,
    pub(crate) layout: PageLayout,
    pub(crate) lanes: Vec<Lane>,
}

/// A file after a first look at its pages.
pub(crate) struct Looked {
    pub(crate) dat: TraceDat,
    /// What the list of events to record would let the trace prove, if there is such a list.
    pub(crate) listed: Option<Capabilities>,
    pub(crate) total: Found,
}

impl Parsed {
    pub(crate) fn new(source: Source) -> Result<Parsed, ErrorKind> {
        Parsed::keeping(source, None)
    }

    /// Parse a file, keeping the metadata as bytes in `raw`.
    pub(crate) fn keeping(source: Source, raw: Option<RawMeta>) -> Result<Parsed, ErrorKind> {
        let mut c = Cursor::new(&source, 0, false, "initial format");
        let mut meta = Meta::initial(&mut c)?;
        meta.raw = raw;
        match meta.version {
            6 => v6::read(&mut meta, &source, &mut c)?,
            _ => v7::read(&mut meta, &source, &mut c)?,
        }
        drop(c);
        if let (Some(&at), true) =
            (meta.options.texts.first(), meta.buffers.iter().all(|b| b.cpus.is_empty()))
        {
            return Ok(Parsed::Text(Box::new(LatencyText::read(meta, at, source)?)));
        }
        let layout = meta.layout.unwrap_or(PageLayout::default_for(meta.long_size as usize));
        let source = Arc::new(source);
        let mut lanes = Vec::new();
        let mut budget = source.len();
        for (number, buffer) in meta.buffers.iter().enumerate() {
            let (more, whole) = lanes_of(&meta, buffer, &source, &layout, &mut budget)?;
            lanes.extend(more.into_iter().map(|lane| Lane { buffer: number, ..lane }));
            meta.cut += !whole as u64;
        }
        let format = format!("trace.dat v{}", meta.version);
        Ok(Parsed::Events(Box::new(Parts { format, meta, layout, lanes })))
    }
}

impl Parts {
    /// Scan all pages, and prepare to decode them.
    pub(crate) fn assemble(self, path: &Path) -> Result<TraceDat, ErrorKind> {
        Ok(self.look(path, Look::Whole)?.dat)
    }

    /// Look at the pages, and collect what is known then. After [`Look::Samples`] everything that
    /// needs a count is left out.
    pub(crate) fn look(self, path: &Path, look: Look) -> Result<Looked, ErrorKind> {
        let Parts { format, mut meta, layout, lanes } = self;
        let mut quality = Quality::default();
        quality
            .add(QualityCode::Truncated, meta.cut + lanes.iter().filter(|l| l.cut).count() as u64);
        let buffers: Vec<usize> = lanes.iter().map(|l| l.buffer).collect();
        let (numbers, data): (Vec<u32>, Vec<CpuData>) =
            lanes.into_iter().map(|l| (l.cpu, l.data)).unzip();
        let formats = std::mem::take(&mut meta.formats);
        let kallsyms = std::mem::take(&mut meta.kallsyms);
        // Each CPU of a guest has its own offset from the host's time.
        let guests = std::mem::take(&mut meta.options.time_shift);
        let time = |cpu: &u32| TimeMap {
            guest: guests.get(*cpu as usize).cloned(),
            ..meta.options.time.clone()
        };
        let times: Vec<TimeMap> = numbers.iter().map(time).collect();
        let abi = Abi { long_size: layout.long as u8 };
        progress::indexing(data.iter().map(CpuData::stored).fold(0, u64::saturating_add));
        // Symbols and formats take a few milliseconds each, so they are read while the scan runs.
        let (scanned, symbols, table) = std::thread::scope(|scope| {
            let symbols = scope.spawn(|| SymbolTable::from_kallsyms(&kallsyms));
            let release = meta.options.uname_word(2);
            let chosen_by = meta.formats_by;
            let table = scope.spawn(move || EventTable::compile(&formats, chosen_by, abi, release));
            let scanned = if meta.big {
                scan::<Big>(&data, &layout, &times, &buffers, look)
            } else {
                scan::<Little>(&data, &layout, &times, &buffers, look)
            };
            (scanned, symbols.join(), table.join())
        });
        let died = |_| ErrorKind::Io(std::io::Error::other("a thread of the reader ended early"));
        let symbols = symbols.map_err(died)?;
        let mut table = table.map_err(died)?;
        let (found, ids): (Vec<Found>, Vec<IdSet>) = scanned?;

        let (ids, repeated) = IdSet::join(&ids);
        // Two records of the same event differ in their time stamps, and an instance may have a
        // filter of its own, so duplicates cannot be recognised: both are kept, as in
        // `trace-cmd report`, and the user is told.
        let whole = look == Look::Whole;
        quality.add(QualityCode::RepeatedEvents, if whole { repeated } else { 0 });
        let ids = ids.ids();
        let unknown: Vec<u16> =
            ids.iter().copied().filter(|&id| table.lookup(id).is_none()).collect();
        table.settle(&ids);
        if table.last_stack.is_some() {
            table.recorders = Recorders::new(&symbols);
        }
        let listed = table.listed();
        for &id in &unknown {
            table.add_unknown(id);
        }
        let mut total = Found::default();
        found.iter().for_each(|f| total.absorb(f));
        // Losses marked on pages are counted when these are decoded. The kernel's own counters may
        // show more: losses after the last page, and events dropped from a full buffer, which leave
        // no mark. A file cut to a time window carries the counters of the whole recording.
        let part = meta.options.cut.as_ref().is_some_and(|cut| cut.time.is_some());
        if whole && !part && total.lost_unknown == 0 {
            quality.add(QualityCode::LostEvents, meta.options.overrun.saturating_sub(total.lost));
        }

        let mut info = TraceInfo::new(path.to_owned(), format);
        info.events = table.descs.clone();
        let proven = if whole { Capabilities::of } else { Capabilities::seen };
        info.capabilities = {
            let stacks = table.last_stack.is_some();
            proven(&info.events, Extras { stacks, ..Extras::default() })
        };
        let span_known = total.events > 0 && total.blank == 0;
        info.span = span_known.then_some((total.first, total.last));
        info.symbols = symbols;
        info.extra.extend(table.notes(&ids));
        describe(&mut info, &meta, &layout, &table, whole.then_some(total.events));
        if is_in_ticks(&info, &meta) {
            info.extra.push(("unit of time".into(), "ticks of the clock, not nanoseconds".into()));
            quality.add(QualityCode::TickClock, 1);
        }
        if !guests.is_empty() {
            info.extra.push(("guest".into(), "times are shifted to the host's clock".into()));
        }

        let mut runs = Vec::new();
        let mut cpus = Vec::new();
        for (((number, data), time), found) in numbers.into_iter().zip(data).zip(times).zip(&found)
        {
            if found.events == 0 && found.lost == 0 && found.lost_unknown == 0 {
                continue;
            }
            runs.push(Run { first_ts: found.start });
            cpus.push((Cpu(u16::try_from(number).unwrap_or(u16::MAX)), data, time));
        }
        let shared = Shared { layout, table, names: info.names.clone() };
        let dat = TraceDat { opened: Opened { info, quality, runs }, cpus, shared, big: meta.big };
        Ok(Looked { dat, listed, total })
    }
}

impl Reader for TraceDat {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        let (cpu, data, time) = &self.cpus[run];
        if self.big {
            Box::new(Decoder::<Big>::new(&self.info().path, &self.shared, data, time, *cpu))
        } else {
            Box::new(Decoder::<Little>::new(&self.info().path, &self.shared, data, time, *cpu))
        }
    }
}

/// The CPUs of one buffer that have data, and whether all were accepted.
///
/// Every byte of a file belongs to one CPU. If the tables say otherwise they are damaged, and
/// following them could mean reading the same data thousands of times: `budget` is how many bytes
/// of the file are left.
fn lanes_of(
    meta: &Meta,
    buffer: &Buffer,
    source: &Arc<Source>,
    layout: &PageLayout,
    budget: &mut u64,
) -> Result<(Vec<Lane>, bool), ErrorKind> {
    let stated = if buffer.page_size > 0 { buffer.page_size } else { meta.page_size } as usize;
    let codec = if buffer.compressed { meta.codec } else { Codec::None };
    let build = |page_size: usize, budget: &mut u64| -> Result<(Vec<Lane>, bool), ErrorKind> {
        let mut lanes = Vec::new();
        for extent in buffer.cpus.iter().filter(|e| e.size > 0) {
            let (data, cut) = match codec {
                Codec::None => CpuData::flat(source.clone(), extent.offset, extent.size, page_size),
                codec => {
                    CpuData::chunked(source.clone(), extent.offset, meta.big, codec, page_size)?
                }
            };
            let Some(left) = budget.checked_sub(data.stored()) else { return Ok((lanes, false)) };
            *budget = left;
            lanes.push(Lane { buffer: 0, cpu: extent.cpu, data, cut });
        }
        Ok((lanes, true))
    };
    let page_size = usable(stated, layout).unwrap_or(4096);
    let before = *budget;
    let (lanes, whole) = build(page_size, budget)?;
    // Since Linux 6.8 a buffer's pages can be larger than the machine's (buffer_subbuf_size_kb).
    // Then header_page is right, and recorders that do not know this write the machine's page size.
    match usable(layout.page, layout) {
        Some(other) if other != page_size && !fits(meta.big, &lanes, layout) => {
            let (others, _) = build(other, &mut before.clone())?;
            Ok((if fits(meta.big, &others, layout) { others } else { lanes }, whole))
        }
        _ => Ok((lanes, whole)),
    }
}

fn usable(size: usize, layout: &PageLayout) -> Option<usize> {
    (size > layout.header() && size <= 1 << 30).then_some(size)
}

/// Whether the first pages of every CPU look like pages of this size.
fn fits(big: bool, lanes: &[Lane], layout: &PageLayout) -> bool {
    if big { fits_in::<Big>(lanes, layout) } else { fits_in::<Little>(lanes, layout) }
}

fn fits_in<E: Endian>(lanes: &[Lane], layout: &PageLayout) -> bool {
    lanes.iter().all(|lane| {
        let Ok(mut fetch) = crate::blocks::Fetch::new(&lane.data) else { return true };
        if lane.data.blocks() == 0 || fetch.load(0, &mut Quality::default()).is_err() {
            return true;
        }
        let mut before = 0;
        fetch.block().chunks_exact(lane.data.page_size).take(16).all(|page| {
            let time =
                layout.plausible::<E>(page, lane.data.page_size).filter(|&t| t >= before || t == 0);
            before = time.unwrap_or(0);
            time.is_some()
        })
    })
}

/// Whether the clock counts something other than nanoseconds (`x86-tsc`, `counter`) and the file
/// does not state its rate.
fn is_in_ticks(info: &TraceInfo, meta: &Meta) -> bool {
    let ns = ["local", "global", "uptime", "perf", "tai", "boot", "tsc2nsec", ""];
    meta.options.time.mult == 0
        && !ns.contains(&info.clock.name.as_str())
        && !info.clock.name.starts_with("mono")
}
