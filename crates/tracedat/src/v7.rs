//! Version 7: sections, found through options. Source: trace-cmd.dat.v7(5).

use crate::codec::Codec;
use crate::meta::{Meta, Pointer, section};
use crate::source::{Cursor, Source};
use holdup_trace::ErrorKind;
use std::collections::{BTreeMap, BTreeSet};

/// Bit in the flags of a section.
pub(crate) const COMPRESSED: u16 = 1;
/// trace-cmd writes two or three; a longer chain is damage.
const MOST_OPTION_SECTIONS: usize = 4096;

/// Read everything after the initial format.
pub(crate) fn read(meta: &mut Meta, source: &Source, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
    let at = c.pos();
    let name = c.cstr(64, "compression algorithm")?;
    let version = c.cstr(64, "version of the compression algorithm")?;
    meta.codec = Codec::by_name(&name).ok_or_else(|| {
        let what = format!("trace.dat compressed with {name} {version} (byte {at:#x})");
        ErrorKind::Unsupported {
            what,
            way_out: "rewrite it with `trace-cmd convert --compression zstd -i IN -o OUT`".into(),
        }
    })?;
    let first = c.u64("offset of the options")?;

    // One section of each kind, the last one named, as in trace-cmd.
    let mut sections = BTreeMap::new();
    let mut next = first;
    let mut seen = BTreeSet::new();
    // A chain that returns to a section already read ends there.
    while next != 0 && seen.len() < MOST_OPTION_SECTIONS && seen.insert(next) {
        match options(meta, source, next, &mut sections) {
            Ok(n) => next = n,
            Err(e @ ErrorKind::Io(_)) => return Err(e),
            // Without the first options the file cannot be read at all.
            Err(e) if next == first => return Err(e),
            Err(_) => {
                meta.cut += 1;
                next = 0;
            }
        }
    }
    for (&id, &offset) in &sections {
        match metadata(meta, source, id, offset) {
            Ok(()) => {}
            Err(e @ ErrorKind::Io(_)) => return Err(e),
            Err(e)
                if matches!(
                    id,
                    section::HEADER_INFO | section::FTRACE_EVENTS | section::EVENT_FORMATS
                ) =>
            {
                return Err(e);
            }
            // Names and symbols are not essential.
            Err(_) => meta.cut += 1,
        }
    }
    if meta.buffers.is_empty() && meta.options.texts.is_empty() && meta.cut > 0 {
        return Err(ErrorKind::malformed(
            source.len(),
            Some("options".into()),
            "a BUFFER option telling where the trace data is",
            "the end of the file",
        ));
    }
    // In the order trace-cmd reports them: the top buffer, then the instances as stored.
    meta.buffers.sort_by_key(|b| !b.name.is_empty());
    for buffer in &mut meta.buffers {
        buffer.cpus.sort_by_key(|c| c.cpu);
        buffer.compressed &= meta.codec != Codec::None;
    }
    Ok(())
}

/// Read one options section. Returns where the next one is, 0 for none.
fn options(
    meta: &mut Meta,
    source: &Source,
    offset: u64,
    sections: &mut BTreeMap<u16, u64>,
) -> Result<u64, ErrorKind> {
    let body = open(meta, source, offset, "options", section::OPTIONS)?;
    let mut c = body.cursor(source, meta.big, "options");
    loop {
        let id = c.u16("option number")?;
        let size = c.u32("option size")?;
        let data = c.bytes(size as u64, "option")?;
        let buffers = meta.buffers.len();
        match meta.option(id, &data) {
            Pointer::Next(next) => return Ok(next),
            Pointer::Section(id, offset) => {
                sections.insert(id, offset);
            }
            Pointer::Nothing | Pointer::Instance(..) => {}
        }
        if meta.buffers.len() > buffers {
            let at = if meta.big {
                data.first_chunk().map(|b| u64::from_be_bytes(*b))
            } else {
                data.first_chunk().map(|b| u64::from_le_bytes(*b))
            };
            let compressed = is_compressed(meta, source, at.unwrap_or(0));
            meta.buffers[buffers].compressed = compressed;
        }
    }
}

/// Whether the data of a buffer, whose section header is at `offset`, is compressed. If the header
/// cannot be read, the file's codec decides.
fn is_compressed(meta: &Meta, source: &Source, offset: u64) -> bool {
    let mut c = Cursor::new(source, offset, meta.big, "buffer");
    match (c.u16("section number"), c.u16("section flags")) {
        (Ok(_), Ok(flags)) => flags & COMPRESSED != 0,
        _ => meta.codec != Codec::None,
    }
}

fn metadata(meta: &mut Meta, source: &Source, id: u16, offset: u64) -> Result<(), ErrorKind> {
    type Read = fn(&mut Meta, &mut Cursor<'_>) -> Result<(), ErrorKind>;
    let (name, read): (_, Read) = match id {
        section::HEADER_INFO => ("header info", Meta::header_info),
        section::FTRACE_EVENTS => ("ftrace event formats", Meta::ftrace_events),
        section::EVENT_FORMATS => ("event formats", Meta::event_formats),
        section::KALLSYMS => ("kallsyms", Meta::kallsyms),
        section::PRINTK => ("printk formats", Meta::printk_formats),
        _ => ("saved command lines", Meta::saved_cmdlines),
    };
    let body = open(meta, source, offset, name, id)?;
    let big = meta.big;
    let mut c = body.cursor(source, big, name);
    let from = c.pos();
    read(meta, &mut c)?;
    let place = (from, c.pos());
    drop(c);
    match &body {
        Body::At(_) => meta.keep(id, source, place),
        Body::Unpacked(content) => meta.keep(id, content, place),
    }
}

/// The content of a section: in the file, or decompressed from it.
enum Body {
    At(u64),
    Unpacked(Source),
}

impl Body {
    fn cursor<'a>(&'a self, file: &'a Source, big: bool, name: &str) -> Cursor<'a> {
        match self {
            Body::At(offset) => Cursor::new(file, *offset, big, name),
            Body::Unpacked(source) => Cursor::new(source, 0, big, format!("{name}, decompressed")),
        }
    }
}

fn open(
    meta: &Meta,
    source: &Source,
    offset: u64,
    name: &str,
    expected: u16,
) -> Result<Body, ErrorKind> {
    let mut c = Cursor::new(source, offset, meta.big, name);
    let id = c.u16("section number")?;
    if id != expected {
        return Err(c.error(offset, format!("section {expected}"), format!("section {id}")));
    }
    let flags = c.u16("section flags")?;
    c.u32("section description")?;
    // The size is ignored: recorders disagree on it, and every content states its own.
    c.u64("section size")?;
    if flags & COMPRESSED == 0 {
        return Ok(Body::At(c.pos()));
    }
    let packed = c.u32("compressed size")?;
    let size = c.u32("uncompressed size")?;
    let at = c.pos();
    let packed = c.bytes(packed as u64, "compressed data")?;
    let unpacked = meta
        .codec
        .section(&packed, size)
        .map_err(|e| c.error(at, format!("{:?} data", meta.codec), e.to_string()))?;
    Ok(Body::Unpacked(unpacked))
}
