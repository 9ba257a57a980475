//! A file in its raw form, for code that copies a part of it into another file: the metadata as
//! bytes, and the pages of the ring buffers with the times of their events.

use crate::blocks::Fetch;
use crate::meta::{RawMeta, option, section};
use crate::page::{Page, PageLayout};
use crate::reader::{Lane, Parsed};
use crate::source::Source;
use crate::time::TimeMap;
use holdup_trace::{Cpu, ErrorKind, Nanos, Quality, Result};
use holdup_tracepoint::{Big, Endian, Format, Little};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// A trace.dat with ring buffers.
pub struct RawDat {
    /// 6 or 7.
    pub version: u32,
    /// The most significant byte comes first.
    pub big: bool,
    /// Bytes of a `long` in the recorder.
    pub long_size: u8,
    /// Bytes of a page of the machine.
    pub page_size: u32,
    /// Header info, formats, symbols, printk formats and names of threads, in this order, by the
    /// numbers that version 7 gives to such sections; not compressed.
    pub sections: Vec<(u16, Vec<u8>)>,
    /// Options that describe the recording, not the file.
    pub options: Vec<(u16, Vec<u8>)>,
    /// Descriptions of events.
    pub formats: Vec<Format>,
    /// How many CPUs the file says there are.
    pub cpus: u32,
    /// The top buffer, then the instances.
    pub buffers: Vec<RawBuffer>,
    layout: PageLayout,
}

/// A ring buffer of all CPUs.
pub struct RawBuffer {
    /// Empty for the top one.
    pub name: String,
    /// The name of its clock.
    pub clock: String,
    /// Its CPUs, ascending.
    pub lanes: Vec<RawLane>,
}

/// A ring buffer of one CPU.
pub struct RawLane {
    /// The CPU's number.
    pub cpu: Cpu,
    lane: Lane,
    time: TimeMap,
}

/// A page.
pub struct RawPage<'a> {
    /// The whole page; less if the file is cut off.
    pub bytes: &'a [u8],
    /// Its events.
    pub events: &'a [RawEvent],
}

/// An event of a page.
pub struct RawEvent {
    /// Its time.
    pub time: Nanos,
    /// Offset in the page at which its record begins.
    pub head: usize,
    /// Range of its payload in the page; the record ends with it.
    pub payload: Range<usize>,
}

/// Open `path` for copying.
///
/// # Errors
/// Those of [`crate::open`].
pub fn open_raw(path: &Path) -> Result<RawDat> {
    read(path).map_err(|e| e.in_file(path))
}

fn read(path: &Path) -> Result<RawDat, ErrorKind> {
    let source = Source::file(File::open(path)?)?;
    let parts = match Parsed::keeping(source, Some(RawMeta::default()))? {
        Parsed::Events(parts) => *parts,
        Parsed::Text(_) => {
            return Err(ErrorKind::Unsupported {
                what: "a trace.dat that holds the text of a latency tracer".into(),
                way_out: "holdup cut takes the text: trace-cmd report FILE > TEXT".into(),
            });
        }
    };
    let meta = parts.meta;
    let raw = meta.raw.unwrap_or_default();
    let mut buffers: Vec<RawBuffer> = meta
        .buffers
        .iter()
        .map(|b| RawBuffer { name: b.name.clone(), clock: b.clock.clone(), lanes: Vec::new() })
        .collect();
    for lane in parts.lanes {
        let guest = meta.options.time_shift.get(lane.cpu as usize).cloned();
        let time = TimeMap { guest, ..meta.options.time.clone() };
        let cpu = Cpu(u16::try_from(lane.cpu).unwrap_or(u16::MAX));
        if let Some(buffer) = buffers.get_mut(lane.buffer) {
            buffer.lanes.push(RawLane { cpu, lane, time });
        }
    }
    let formats = meta.formats.iter().filter_map(|(system, text)| Format::parse(text, system).ok());
    let about_file = [option::DONE, option::BUFFER, section::BUFFER_TEXT];
    let options = raw.options.into_iter().filter(|(id, _)| {
        !about_file.contains(id) && !(section::HEADER_INFO..=section::CMDLINES).contains(id)
    });
    Ok(RawDat {
        version: meta.version,
        big: meta.big,
        long_size: meta.long_size,
        page_size: meta.page_size,
        sections: raw.sections,
        options: options.collect(),
        formats: formats.collect(),
        cpus: meta.cpus.unwrap_or(0),
        buffers,
        layout: parts.layout,
    })
}

impl RawDat {
    /// Call `take` for the pages of a CPU in order. Damaged pages are skipped.
    ///
    /// # Errors
    /// Errors of `take`, and of reading.
    pub fn pages<E: From<std::io::Error>>(
        &self,
        lane: &RawLane,
        take: &mut dyn FnMut(&RawPage<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.big {
            true => self.pages_in::<Big, E>(lane, take),
            false => self.pages_in::<Little, E>(lane, take),
        }
    }

    fn pages_in<B: Endian, E: From<std::io::Error>>(
        &self,
        lane: &RawLane,
        take: &mut dyn FnMut(&RawPage<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let data = &lane.lane.data;
        let mut fetch = Fetch::new(data)?;
        let mut quality = Quality::default();
        let mut events = Vec::new();
        for n in 0..data.blocks() {
            fetch.load(n, &mut quality)?;
            for bytes in fetch.block().chunks(data.page_size) {
                let Some(page) = Page::parse::<B>(&self.layout, bytes, data.page_size) else {
                    continue;
                };
                events.clear();
                let mut records = page.records::<B>();
                while let Some(payload) = records.next_payload() {
                    let at = payload.as_ptr() as usize - bytes.as_ptr() as usize;
                    events.push(RawEvent {
                        time: lane.time.apply(records.time),
                        head: self.layout.data + records.head,
                        payload: at..at + payload.len(),
                    });
                }
                take(&RawPage { bytes, events: &events })?;
            }
        }
        Ok(())
    }
}

impl RawLane {
    /// Bytes of a page of this buffer.
    pub fn page_size(&self) -> usize {
        self.lane.data.page_size
    }
}
