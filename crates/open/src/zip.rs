//! A zip archive with one trace in it.
//!
//! Only the necessary parts are read: the directory at the end of the archive, ZIP64 included, and
//! one entry, stored or compressed with deflate, zstd or xz. An archive whose end is missing is
//! read from its first entry on.

use crate::Stream;
use crate::meter::Meter;
use holdup_trace::ErrorKind;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The end record and the longest comment after it.
const TAIL: u64 = 22 + 0xffff;
/// Longest directory read.
const DIRECTORY: u64 = 16 << 20;
/// Most names shown for an archive with several entries.
const SHOWN: usize = 8;

/// An entry of the directory.
struct Entry {
    name: String,
    encrypted: bool,
    method: u16,
    compressed: u64,
    header: u64,
}

/// Unpack the one file in the archive.
pub(crate) fn open(file: File, meter: &Arc<Meter>) -> Result<Stream, ErrorKind> {
    let len = file.metadata()?.len();
    let entry = match directory(&file, len)? {
        Some(mut entries) => {
            entries.retain(|e| !e.name.ends_with('/') && !e.name.starts_with("__MACOSX/"));
            match entries.len() {
                1 => entries.swap_remove(0),
                n => return Err(not_one(n, &entries)),
            }
        }
        None => {
            meter.note_damage(
                "the end of the archive, which holds its directory, is missing".into(),
            );
            first_entry(&file, len)?
        }
    };
    let unsupported = |what: String| ErrorKind::Unsupported {
        what,
        way_out: "unpack it: unzip FILE, or 7z x FILE".into(),
    };
    if entry.encrypted {
        return Err(unsupported(format!("a zip archive whose entry {} is encrypted", entry.name)));
    }
    let header = read_at(&file, entry.header, 30)?;
    if !header.starts_with(b"PK\x03\x04") || header.len() < 30 {
        return Err(ErrorKind::malformed(
            entry.header,
            Some("zip".into()),
            "the header of an entry (PK\\x03\\x04)",
            "something else",
        ));
    }
    let start = entry.header + 30 + u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
    let mut file = file;
    file.seek(SeekFrom::Start(start))?;
    let data =
        BufReader::with_capacity(64 << 10, meter.metered(Box::new(file.take(entry.compressed))));
    Ok(match entry.method {
        0 => Box::new(data),
        8 => Box::new(flate2::bufread::DeflateDecoder::new(data)),
        93 => Box::new(zstd::stream::read::Decoder::with_buffer(data)?),
        95 => Box::new(liblzma::bufread::XzDecoder::new(data)),
        other => {
            return Err(unsupported(format!(
                "a zip archive whose entry {} is compressed by method {other}",
                entry.name
            )));
        }
    })
}

fn not_one(n: usize, entries: &[Entry]) -> ErrorKind {
    if n == 0 {
        return ErrorKind::Unsupported {
            what: "a zip archive without files".into(),
            way_out: "name a trace, or an archive with one".into(),
        };
    }
    let names: Vec<&str> = entries.iter().take(SHOWN).map(|e| e.name.as_str()).collect();
    let more = if n > SHOWN { ", …" } else { "" };
    ErrorKind::Unsupported {
        what: format!("a zip archive of {n} files ({}{more})", names.join(", ")),
        way_out: "unpack the file that is the trace: unzip -p FILE NAME | holdup ... -".into(),
    }
}

/// The directory, `None` if the archive has no end.
fn directory(file: &File, len: u64) -> Result<Option<Vec<Entry>>, ErrorKind> {
    let tail_at = len.saturating_sub(TAIL);
    let tail = read_at(file, tail_at, TAIL)?;
    let is_end = |at: usize| {
        tail[at..].starts_with(b"PK\x05\x06")
            && tail.len() - at == 22 + usize::from(u16_at(&tail[at..], 20))
    };
    let Some(at) = (0..tail.len().saturating_sub(21)).rev().find(|&at| is_end(at)) else {
        return Ok(None);
    };
    let end = &tail[at..];
    let (mut size, mut offset) = (u64::from(u32_at(end, 12)), u64::from(u32_at(end, 16)));
    if size == 0xffff_ffff || offset == 0xffff_ffff || u16_at(end, 10) == 0xffff {
        let locator = read_at(file, (tail_at + at as u64).saturating_sub(20), 20)?;
        if locator.len() == 20 && locator.starts_with(b"PK\x06\x07") {
            let end64 = read_at(file, u64_at(&locator, 8), 56)?;
            if end64.len() == 56 && end64.starts_with(b"PK\x06\x06") {
                (size, offset) = (u64_at(&end64, 40), u64_at(&end64, 48));
            }
        }
    }
    let list = read_at(file, offset, size.min(DIRECTORY))?;
    let mut rest = &list[..];
    let mut entries = Vec::new();
    while rest.len() >= 46 && rest.starts_with(b"PK\x01\x02") {
        let lengths = [28, 30, 32].map(|o| usize::from(u16_at(rest, o)));
        let Some(after) = rest.get(46 + lengths.iter().sum::<usize>()..) else { break };
        let (name, extra) =
            (&rest[46..46 + lengths[0]], &rest[46 + lengths[0]..46 + lengths[0] + lengths[1]]);
        let mut entry = Entry {
            name: String::from_utf8_lossy(name).into_owned(),
            encrypted: u16_at(rest, 8) & 1 != 0,
            method: u16_at(rest, 10),
            compressed: u64::from(u32_at(rest, 20)),
            header: u64::from(u32_at(rest, 42)),
        };
        large(&mut entry, u32_at(rest, 24), extra);
        entries.push(entry);
        rest = after;
    }
    Ok(Some(entries))
}

/// ZIP64: values that do not fit are in an extra field, in a fixed order.
fn large(entry: &mut Entry, uncompressed: u32, mut extra: &[u8]) {
    while extra.len() >= 4 {
        let len = usize::from(u16_at(extra, 2));
        let Some(body) = extra.get(4..4 + len) else { return };
        if u16_at(extra, 0) == 1 {
            let mut values = body.chunks_exact(8).map(|c| u64_at(c, 0));
            if uncompressed == u32::MAX {
                values.next();
            }
            for value in [&mut entry.compressed, &mut entry.header] {
                if *value == u64::from(u32::MAX)
                    && let Some(v) = values.next()
                {
                    *value = v;
                }
            }
            return;
        }
        extra = &extra[4 + len..];
    }
}

/// The first entry of an archive that is cut off.
fn first_entry(file: &File, len: u64) -> Result<Entry, ErrorKind> {
    let header = read_at(file, 0, 30)?;
    if header.len() < 30 {
        return Err(ErrorKind::malformed(
            0,
            Some("zip".into()),
            "the header of an entry",
            format!("{len} bytes"),
        ));
    }
    let name = read_at(file, 30, u64::from(u16_at(&header, 26)))?;
    // Bit 3: the sizes come after the data.
    let known = u16_at(&header, 6) & 8 == 0 && u32_at(&header, 18) != u32::MAX;
    Ok(Entry {
        name: String::from_utf8_lossy(&name).into_owned(),
        encrypted: u16_at(&header, 6) & 1 != 0,
        method: u16_at(&header, 8),
        compressed: if known { u64::from(u32_at(&header, 18)) } else { len },
        header: 0,
    })
}

/// Up to `len` bytes from `offset`; fewer where the file ends.
fn read_at(file: &File, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let there = file.metadata()?.len().saturating_sub(offset);
    let mut buf = vec![0; len.min(there) as usize];
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    buf.truncate(done);
    Ok(buf)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
