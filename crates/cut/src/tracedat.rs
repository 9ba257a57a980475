//! trace.dat, versions 6 and 7, each written in its own version, but without compression.
//!
//! The ring buffers stay in the kernel's own pages: a page is written if one of its events is in
//! the part or needed for the state at its beginning. Its other events become padding, in the form
//! of the kernel's discarded events.
//!
//! ```text
//!  6  head │ descriptions … │ CPUs │ options │ table of CPU data │ clock │ pages …
//!  7  head │ sections of descriptions … │ pages … │ options, which say where all is
//! ```

use crate::keep::Keep;
use crate::names::Names;
use crate::tracing::{self, Order};
use crate::{CutError, Written, fields, into_file};
use holdup_trace::ErrorKind;
use holdup_tracedat::{RawDat, RawEvent, RawLane, RawPage, open_raw};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Options of either version.
const DONE: u16 = 0;
const CPUSTAT: u16 = 2;
const BUFFER: u16 = 3;
const TRACECLOCK: u16 = 4;
const UNAME: u16 = 5;
const HOOK: u16 = 6;
const CPUCOUNT: u16 = 8;
const PROCMAPS: u16 = 10;
const GUEST: u16 = 13;
/// Sections of version 7.
const OPTIONS: u16 = 0;
const FTRACE_EVENTS: u16 = 17;
const EVENT_FORMATS: u16 = 18;
const KALLSYMS: u16 = 19;
const PRINTK: u16 = 20;
const CMDLINES: u16 = 21;

/// Cut the file `input`.
pub(crate) fn write(input: &Path, keep: Keep, output: &Path) -> Result<Written, CutError> {
    let raw = open_raw(input)?;
    into_file(output, |out| {
        let failed = |error: io::Error| CutError::Output { path: output.to_owned(), error };
        let strings = keep.cut.anonymous.then(|| Strings::of(&raw));
        let order = Order { big: raw.big };
        let mut copy = Copy { order, keep, strings, out, at: 0, page: Vec::new() };
        match raw.version {
            6 => copy.version_6(&raw),
            _ => copy.version_7(&raw),
        }
        .map_err(failed)?;
        if copy.keep.written.inside + copy.keep.written.outside == 0 {
            let why = "no event of this trace.dat is in the part";
            return Err(ErrorKind::Io(io::Error::other(why)).in_file(input).into());
        }
        Ok(copy.keep.written)
    })
}

/// Replaces names in events.
struct Strings {
    by_id: FxHashMap<u16, fields::Strings>,
    names: Names,
}

impl Strings {
    fn of(raw: &RawDat) -> Strings {
        let known = raw.formats.iter().filter(|f| !fields::is_private(&f.system));
        let by_id = known.map(|f| (f.id, fields::Strings::of(f))).collect();
        Strings { by_id, names: Names::default() }
    }

    fn event(&mut self, event: &mut [u8], order: Order) {
        let id = order.read_u16(event, 0).unwrap_or(0);
        match self.by_id.get(&id) {
            Some(strings) => strings.replace(event, order.big, &mut self.names),
            // Its content is unknown.
            None if event.len() > 8 => event[8..].fill(0),
            None => {}
        }
    }
}

struct Copy<'a, 'b> {
    order: Order,
    keep: Keep,
    strings: Option<Strings>,
    out: &'a mut BufWriter<&'b File>,
    /// Bytes written.
    at: u64,
    page: Vec<u8>,
}

/// Where the pages of a CPU were written.
struct Place {
    cpu: u16,
    offset: u64,
    size: u64,
}

impl Copy<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn align(&mut self, to: u64) -> io::Result<()> {
        // No machine has larger pages; a damaged file may claim them.
        const LARGEST: u64 = 1 << 16;
        let gap = self.at.next_multiple_of(to.clamp(1, LARGEST)) - self.at;
        self.put(&vec![0; usize::try_from(gap).unwrap_or(0)])
    }

    /// Write into space that was left free.
    fn patch(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(at))?;
        self.out.write_all(bytes)?;
        self.out.seek(SeekFrom::End(0))?;
        Ok(())
    }

    fn head(&mut self, raw: &RawDat) -> io::Result<()> {
        self.put(MAGIC)?;
        self.put(if raw.version == 6 { b"6\0" } else { b"7\0" })?;
        self.put(&[u8::from(raw.big), raw.long_size])?;
        self.put(&self.order.u32(raw.page_size))
    }

    /// A part of the metadata for the cut.
    fn section(&mut self, id: u16, bytes: &[u8]) -> Vec<u8> {
        let Some(strings) = &mut self.strings else { return bytes.to_vec() };
        let order = self.order;
        let read = match id {
            FTRACE_EVENTS => tracing::formats(bytes, order, false),
            EVENT_FORMATS => tracing::systems(bytes, order),
            KALLSYMS => tracing::symbols(bytes, order),
            PRINTK => Some(order.u32(0).to_vec()),
            CMDLINES => tracing::saved_names(bytes, order, &mut strings.names),
            _ => Some(bytes.to_vec()),
        };
        // A section that cannot be read cannot be written without names, so write an empty one.
        read.unwrap_or_else(|| order.u64(0).to_vec())
    }

    /// The recorder's options for the cut, and the note that says which part this is.
    fn options(&mut self, raw: &RawDat) -> Vec<(u16, Vec<u8>)> {
        let mut options: Vec<(u16, Vec<u8>)> = Vec::new();
        for (id, data) in &raw.options {
            let mut data = data.clone();
            if let Some(strings) = &mut self.strings {
                match *id {
                    // The system's name, the host's, the kernel's version, the machine.
                    UNAME => data = uname(&data, &mut strings.names),
                    HOOK | PROCMAPS | GUEST => continue,
                    _ => {}
                }
            }
            options.push((*id, data));
        }
        let mut note = self.keep.cut.words().into_bytes();
        note.extend(b"\n\0");
        options.push((CPUSTAT, note));
        options
    }

    fn put_option(&mut self, id: u16, data: &[u8]) -> io::Result<()> {
        self.put(&self.order.u16(id))?;
        self.put(&self.order.u32(data.len() as u32))?;
        self.put(data)
    }

    fn version_6(&mut self, raw: &RawDat) -> io::Result<()> {
        self.head(raw)?;
        for (id, bytes) in &raw.sections {
            let bytes = self.section(*id, bytes);
            self.put(&bytes)?;
        }
        self.put(&self.order.u32(raw.cpus))?;
        self.put(b"options  \0")?;
        let options = self.options(raw);
        // The offset of a buffer's table, to be filled in.
        let mut tables = Vec::new();
        for (id, data) in &options {
            self.put_option(*id, data)?;
        }
        for buffer in raw.buffers.iter().skip(1) {
            let name = self.buffer_name(&buffer.name);
            tables.push(self.at + 6);
            let mut data = self.order.u64(0).to_vec();
            data.extend(name.as_bytes());
            data.push(0);
            self.put_option(BUFFER, &data)?;
        }
        self.put(&self.order.u16(DONE))?;
        for (i, buffer) in raw.buffers.iter().enumerate() {
            if let Some(table) = i.checked_sub(1).and_then(|i| tables.get(i)) {
                let here = self.order.u64(self.at);
                self.patch(*table, &here)?;
            }
            self.put(b"flyrecord\0")?;
            let table = self.at;
            self.put(&vec![0; 16 * raw.cpus as usize])?;
            if options.iter().any(|(id, _)| *id == TRACECLOCK) {
                let clock = format!("[{}]", buffer.clock);
                let clock = if buffer.clock.is_empty() { String::new() } else { clock };
                self.put(&self.order.u64(clock.len() as u64))?;
                self.put(clock.as_bytes())?;
            }
            self.align(raw.page_size.into())?;
            for place in self.lanes(raw, &buffer.lanes)? {
                let entry = [self.order.u64(place.offset), self.order.u64(place.size)].concat();
                self.patch(table + 16 * u64::from(place.cpu), &entry)?;
            }
        }
        Ok(())
    }

    fn buffer_name(&mut self, name: &str) -> String {
        let mut bytes = name.as_bytes().to_vec();
        if let Some(strings) = &mut self.strings {
            strings.names.replace(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn version_7(&mut self, raw: &RawDat) -> io::Result<()> {
        self.head(raw)?;
        self.put(b"none\0\0")?;
        let first = self.at;
        self.put(&self.order.u64(0))?;
        let mut options = self.options(raw);
        for (id, bytes) in &raw.sections {
            let bytes = self.section(*id, bytes);
            let at = self.at;
            self.section_head(*id, bytes.len() as u64)?;
            self.put(&bytes)?;
            options.push((*id, self.order.u64(at).to_vec()));
        }
        if !options.iter().any(|(id, _)| *id == CPUCOUNT) {
            options.push((CPUCOUNT, self.order.u32(raw.cpus).to_vec()));
        }
        for buffer in &raw.buffers {
            let at = self.at;
            self.section_head(BUFFER, 0)?;
            self.align(raw.page_size.into())?;
            let places = self.lanes(raw, &buffer.lanes)?;
            let size = self.order.u64(self.at - at - 16);
            self.patch(at + 8, &size)?;
            let mut data = self.order.u64(at).to_vec();
            for text in [self.buffer_name(&buffer.name), buffer.clock.clone()] {
                data.extend(text.as_bytes());
                data.push(0);
            }
            let page = buffer.lanes.first().map_or(raw.page_size as usize, RawLane::page_size);
            data.extend(self.order.u32(page as u32));
            data.extend(self.order.u32(places.len() as u32));
            for place in places {
                data.extend(self.order.u32(place.cpu.into()));
                data.extend(self.order.u64(place.offset));
                data.extend(self.order.u64(place.size));
            }
            options.push((BUFFER, data));
        }
        options.push((DONE, self.order.u64(0).to_vec()));
        let here = self.order.u64(self.at);
        self.patch(first, &here)?;
        let size: usize = options.iter().map(|(_, data)| 6 + data.len()).sum();
        self.section_head(OPTIONS, size as u64)?;
        for (id, data) in options {
            self.put_option(id, &data)?;
        }
        Ok(())
    }

    fn section_head(&mut self, id: u16, size: u64) -> io::Result<()> {
        self.put(&self.order.u16(id))?;
        self.put(&self.order.u16(0))?; // not compressed
        self.put(&self.order.u32(0))?; // no description
        self.put(&self.order.u64(size))
    }

    /// Write the pages of all CPUs of a buffer.
    fn lanes(&mut self, raw: &RawDat, lanes: &[RawLane]) -> io::Result<Vec<Place>> {
        let mut places = Vec::new();
        for lane in lanes {
            let offset = self.at;
            raw.pages(lane, &mut |page: &RawPage<'_>| self.page(page, lane))?;
            places.push(Place { cpu: lane.cpu.0, offset, size: self.at - offset });
            self.align(raw.page_size.into())?;
        }
        Ok(places)
    }

    fn page(&mut self, page: &RawPage<'_>, lane: &RawLane) -> io::Result<()> {
        let stay: Vec<bool> =
            page.events.iter().map(|e| self.keep.event(e.time, lane.cpu)).collect();
        if !stay.contains(&true) {
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.page);
        bytes.clear();
        bytes.extend_from_slice(page.bytes);
        bytes.resize(lane.page_size(), 0);
        if let Some(strings) = &mut self.strings {
            forget_between(&mut bytes, page);
            for e in page.events {
                strings.event(&mut bytes[e.payload.clone()], self.order);
            }
        }
        let mut at = 0;
        while at < stay.len() {
            let mut end = at + 1;
            if !stay[at] {
                // Adjacent records become one.
                let follows = |i: usize| page.events[i].head == page.events[i - 1].payload.end;
                while end < stay.len() && !stay[end] && follows(end) {
                    end += 1;
                }
                if at == 0 {
                    begins_earlier(&mut bytes, &page.events[0], self.order);
                }
                let left = pad(&mut bytes, &page.events[at..end], self.order);
                self.keep.written.outside += left as u64;
            }
            at = end;
        }
        self.put(&bytes)?;
        self.page = bytes;
        Ok(())
    }
}

/// `type_len` of padding, and the bits of a record's first word that hold its time delta.
const PADDING: u32 = 29;
const DELTA_BITS: u32 = 27;

/// A page's time is that of its first record, and padding with delta 0 ends a page: so let the page
/// begin a nanosecond earlier, and its first record have a delta of 1.
fn begins_earlier(bytes: &mut [u8], first: &RawEvent, order: Order) {
    let one = if order.big { 1 } else { 1 << (32 - DELTA_BITS) };
    let Some((word, time)) = order.read_u32(bytes, first.head).zip(order.read_u64(bytes, 0)) else {
        return;
    };
    if delta(word, order) == 0 && time > 0 {
        bytes[..8].copy_from_slice(&order.u64(time - 1));
        bytes[first.head..first.head + 4].copy_from_slice(&order.u32(word + one));
    }
}

/// The time delta in a record's first word.
fn delta(word: u32, order: Order) -> u32 {
    if order.big { word & ((1 << DELTA_BITS) - 1) } else { word >> (32 - DELTA_BITS) }
}

/// Turn adjacent records into padding of the same length and total delta. Returns how many of them
/// had to stay: padding with delta 0 would end the page.
fn pad(bytes: &mut [u8], events: &[RawEvent], order: Order) -> usize {
    let word = |e: &RawEvent| order.read_u32(bytes, e.head).unwrap_or(0);
    let later: u64 = events.iter().map(|e| u64::from(delta(word(e), order))).sum();
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return 0 };
    if later == 0 {
        return events.len();
    }
    if later >> DELTA_BITS != 0 {
        // Each half has a smaller delta; a single record always fits.
        let (one, other) = events.split_at(events.len() / 2);
        return pad(bytes, one, order) + pad(bytes, other, order);
    }
    let later = later as u32;
    let word = if order.big { PADDING << DELTA_BITS | later } else { later << 5 | PADDING };
    let record = &mut bytes[first.head..last.payload.end];
    record.fill(0);
    record[..4].copy_from_slice(&order.u32(word));
    let length = record.len() as u32 - 4;
    record[4..8].copy_from_slice(&order.u32(length));
    0
}

/// Clear the bytes after the last event of a page, which are left over from earlier use.
fn forget_between(bytes: &mut [u8], page: &RawPage<'_>) {
    // Eight bytes with the number of lost events may follow.
    const LOST: usize = 8;
    if let Some(last) = page.events.last() {
        let end = (last.payload.end + LOST).min(bytes.len());
        bytes[end..].fill(0);
    }
}

fn uname(text: &[u8], names: &mut Names) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let words = text.trim_end_matches('\0').split(' ').enumerate().map(|(i, word)| match i {
        1 => {
            let mut host = word.as_bytes().to_vec();
            names.replace(&mut host);
            String::from_utf8_lossy(&host).into_owned()
        }
        2 => word.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect(),
        _ => word.to_owned(),
    });
    let mut line = words.collect::<Vec<_>>().join(" ").into_bytes();
    line.push(0);
    line
}
