//! Everything a file says about itself before its trace data.
//!
//! Version 6 keeps this in one fixed sequence, version 7 in sections; the parts themselves are
//! the same and are read here. Source: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5).

use crate::codec::Codec;
use crate::format::Descriptions;
use crate::guest::GuestClock;
use crate::page::PageLayout;
use crate::source::{Cursor, Source};
use crate::time::TimeMap;
use holdup_trace::{Cut, ErrorKind};

/// The first bytes of every trace.dat.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// More buffers, CPUs or event systems than any machine has; a guard against hostile counts.
pub(crate) const MANY: u32 = 1 << 16;

/// The content of the header and the metadata sections.
#[derive(Debug)]
pub(crate) struct Meta {
    pub(crate) version: u32,
    pub(crate) big: bool,
    /// Bytes of a `long` in the recorder, which may differ from the kernel's.
    pub(crate) long_size: u8,
    pub(crate) page_size: u32,
    pub(crate) codec: Codec,
    pub(crate) layout: Option<PageLayout>,
    /// (system, `format` text).
    pub(crate) formats: Vec<(String, String)>,
    /// Who chose the formats.
    pub(crate) formats_by: Descriptions,
    pub(crate) kallsyms: Vec<u8>,
    /// (pid, name).
    pub(crate) cmdlines: Vec<(u32, String)>,
    pub(crate) cpus: Option<u32>,
    pub(crate) options: Options,
    pub(crate) buffers: Vec<Buffer>,
    /// Number of parts that could not be read because the file ends or is damaged before them.
    pub(crate) cut: u64,
    /// The parts as bytes, by the number of their section, and the options, for code that copies
    /// them.
    pub(crate) raw: Option<RawMeta>,
}

/// Metadata as bytes.
#[derive(Debug, Default)]
pub(crate) struct RawMeta {
    pub(crate) sections: Vec<(u16, Vec<u8>)>,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
}

/// What the options say, apart from pointing to sections.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) clock: Option<String>,
    pub(crate) uname: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) trace_id: Option<u64>,
    pub(crate) time: TimeMap,
    /// For a guest: the offsets of its CPUs' clocks from the host's.
    pub(crate) time_shift: Vec<GuestClock>,
    pub(crate) guests: Vec<String>,
    /// Events overwritten or dropped by the kernel, over all CPUs and buffers.
    pub(crate) overrun: u64,
    /// Unknown options, by number.
    pub(crate) unknown: Vec<u16>,
    /// Where the text of a latency tracer is.
    pub(crate) texts: Vec<TextExtent>,
    /// Which part of a longer trace this file is.
    pub(crate) cut: Option<Cut>,
}

impl Options {
    /// A word of `uname -srm` with the node name second: 1 the host, 2 the release.
    pub(crate) fn uname_word(&self, n: usize) -> Option<&str> {
        self.uname.as_ref()?.split_whitespace().nth(n)
    }
}

/// Where the text of a latency tracer is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextExtent {
    /// From the offset to the end of the file (version 6).
    ToTheEnd(u64),
    /// In the section at the offset (version 7).
    Section(u64),
}

/// One ring buffer: the top one, or an instance.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Empty for the top buffer.
    pub(crate) name: String,
    pub(crate) clock: String,
    /// 0 if the file does not state the buffer's own page size.
    pub(crate) page_size: u32,
    pub(crate) compressed: bool,
    pub(crate) cpus: Vec<CpuExtent>,
}

/// The position of one CPU's pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuExtent {
    pub(crate) cpu: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// What the reader of the file's version must do next because of an option.
pub(crate) enum Pointer {
    Nothing,
    /// DONE: where the next options section is (version 7).
    Next(u64),
    /// A section of metadata.
    Section(u16, u64),
    /// A buffer whose name is known and whose CPUs are described at the offset (version 6).
    Instance(String, u64),
}

impl Meta {
    /// Read the initial format, up to where the versions begin to differ.
    pub(crate) fn initial(c: &mut Cursor<'_>) -> Result<Meta, ErrorKind> {
        c.literal(MAGIC)?;
        let at = c.pos();
        let text = c.cstr(8, "file version")?;
        let version = match text.parse() {
            Ok(v @ 6..=7) => v,
            Ok(v) => {
                return Err(ErrorKind::Unsupported {
                    what: format!("trace.dat version {v}"),
                    way_out: "convert it with `trace-cmd convert --file-version 7 -i IN -o OUT`"
                        .into(),
                });
            }
            Err(_) => return Err(c.error(at, "a version number", format!("{text:?}"))),
        };
        let at = c.pos();
        let big = match c.u8("byte order")? {
            0 => false,
            1 => true,
            other => return Err(c.error(at, "byte order 0 or 1", other.to_string())),
        };
        c.set_big_endian(big);
        let at = c.pos();
        let long_size = c.u8("size of a long")?;
        if !matches!(long_size, 4 | 8) {
            return Err(c.error(at, "4 or 8 bytes in a long", long_size.to_string()));
        }
        let page_size = c.u32("page size")?;
        Ok(Meta {
            version,
            big,
            long_size,
            page_size,
            codec: Codec::None,
            layout: None,
            formats: Vec::new(),
            formats_by: Descriptions::TraceCmd,
            kallsyms: Vec::new(),
            cmdlines: Vec::new(),
            cpus: None,
            options: Options::default(),
            buffers: Vec::new(),
            cut: 0,
            raw: None,
        })
    }

    /// Keep the bytes of a part that lie in `source` from `from` to `to`, if the caller asked for
    /// them.
    pub(crate) fn keep(
        &mut self,
        id: u16,
        source: &Source,
        (from, to): (u64, u64),
    ) -> Result<(), ErrorKind> {
        if let Some(raw) = &mut self.raw {
            let mut bytes = vec![0; usize::try_from(to - from).unwrap_or(0)];
            let got = source.read_at(from, &mut bytes)?;
            bytes.truncate(got);
            raw.sections.push((id, bytes));
        }
        Ok(())
    }

    /// `header_page` and `header_event`.
    pub(crate) fn header_info(&mut self, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
        c.literal(b"header_page\0")?;
        let at = c.pos();
        let page = sized(c, "header_page")?;
        if !page.is_empty() {
            let text = String::from_utf8_lossy(&page);
            let layout = PageLayout::parse(&text);
            self.layout = Some(layout.ok_or_else(|| {
                c.error(
                    at + 8,
                    "fields timestamp, commit and data of a ring-buffer page",
                    snippet(&text),
                )
            })?);
        }
        c.literal(b"header_event\0")?;
        sized(c, "header_event")?;
        Ok(())
    }

    /// Formats of the tracers' own events.
    pub(crate) fn ftrace_events(&mut self, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
        let count = c.u32("count of ftrace events")?;
        self.format_texts(c, "ftrace", count)
    }

    /// Formats of the trace events, by system.
    pub(crate) fn event_formats(&mut self, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
        let systems = c.u32("count of event systems")?;
        for _ in 0..systems {
            let system = c.cstr(4096, "name of an event system")?;
            let count = c.u32("count of events")?;
            self.format_texts(c, &system, count)?;
        }
        Ok(())
    }

    fn format_texts(
        &mut self,
        c: &mut Cursor<'_>,
        system: &str,
        count: u32,
    ) -> Result<(), ErrorKind> {
        for _ in 0..count {
            let text = sized(c, "event format")?;
            self.formats.push((system.to_owned(), String::from_utf8_lossy(&text).into_owned()));
        }
        Ok(())
    }

    /// `/proc/kallsyms`.
    pub(crate) fn kallsyms(&mut self, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
        let size = c.u32("size of kallsyms")?;
        self.kallsyms = c.bytes(size as u64, "kallsyms")?;
        Ok(())
    }

    /// `printk_formats`: skipped, because no event that holdup understands needs them.
    pub(crate) fn printk_formats(&mut self, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
        let size = c.u32("size of printk formats")?;
        c.bytes(size as u64, "printk formats").map(drop)
    }

    /// `saved_cmdlines`: lines of pid, blank, name. Names may hold blanks.
    pub(crate) fn saved_cmdlines(&mut self, c: &mut Cursor<'_>) -> Result<(), ErrorKind> {
        let text = sized(c, "saved command lines")?;
        self.add_cmdlines(&text);
        Ok(())
    }

    /// Take the content of `saved_cmdlines`.
    pub(crate) fn add_cmdlines(&mut self, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            let Some((pid, name)) = line.trim_start().split_once(' ') else { continue };
            if let Ok(pid) = pid.parse() {
                self.cmdlines.push((pid, name.trim_end_matches('\0').to_owned()));
            }
        }
    }

    /// One option. An option whose content makes no sense counts as unknown.
    pub(crate) fn option(&mut self, id: u16, data: &[u8]) -> Pointer {
        if let Some(raw) = &mut self.raw {
            raw.options.push((id, data.to_vec()));
        }
        let text = || String::from_utf8_lossy(data).trim_end_matches(['\0', '\n']).to_owned();
        let big = self.big;
        let u32_at = |at: usize| {
            data.get(at..)?
                .first_chunk()
                .map(|b| if big { u32::from_be_bytes(*b) } else { u32::from_le_bytes(*b) })
        };
        let u64_at = |at: usize| {
            data.get(at..)?
                .first_chunk()
                .map(|b| if big { u64::from_be_bytes(*b) } else { u64::from_le_bytes(*b) })
        };
        let o = &mut self.options;
        match id {
            option::DONE => return Pointer::Next(u64_at(0).unwrap_or(0)),
            // Microseconds, as text.
            option::DATE => {
                let shift = TimeMap::parse_offset(&text()).unwrap_or(0);
                o.time.offset = o.time.offset.wrapping_add(shift.wrapping_mul(1000));
            }
            option::OFFSET => {
                o.time.offset =
                    o.time.offset.wrapping_add(TimeMap::parse_offset(&text()).unwrap_or(0))
            }
            option::TSC2NSEC => {
                if let (Some(mult), Some(shift), Some(_)) = (u32_at(0), u32_at(4), u64_at(8)) {
                    (o.time.mult, o.time.shift) = (mult, shift);
                }
            }
            option::CPUSTAT => {
                o.overrun = o.overrun.saturating_add(overruns(&text()));
                o.cut = Cut::find(&text()).or(o.cut.take());
            }
            option::BUFFER if self.version == 6 => {
                if let Some(offset) = u64_at(0) {
                    let name: Vec<u8> = data[8..].iter().copied().take_while(|&b| b != 0).collect();
                    return Pointer::Instance(String::from_utf8_lossy(&name).into_owned(), offset);
                }
            }
            option::BUFFER => match buffer(data, big) {
                Some(b) => self.buffers.push(b),
                None => self.cut += 1,
            },
            section::BUFFER_TEXT => o.texts.extend(u64_at(0).map(TextExtent::Section)),
            option::TRACECLOCK => {
                let clock = bracketed(&text());
                o.clock = clock.or(o.clock.take());
            }
            option::UNAME => o.uname = Some(text()),
            option::VERSION => o.version = Some(text()),
            option::CPUCOUNT if data.len() <= 8 => {
                self.cpus = u32_at(0).filter(|&n| n <= MANY).or(self.cpus)
            }
            option::TRACEID => o.trace_id = u64_at(0),
            option::TIME_SHIFT => o.time_shift = GuestClock::parse(data, big),
            option::GUEST => o.guests.push(
                String::from_utf8_lossy(data.split(|&b| b == 0).next().unwrap_or(&[])).into_owned(),
            ),
            option::HOOK | option::PROCMAPS => {}
            section::HEADER_INFO..=section::CMDLINES => {
                if let Some(offset) = u64_at(0) {
                    return Pointer::Section(id, offset);
                }
            }
            unknown => o.unknown.push(unknown),
        }
        Pointer::Nothing
    }
}

/// Numbers of the options that are not sections.
pub(crate) mod option {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const DATE: u16 = 1;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const HOOK: u16 = 6;
    pub(crate) const OFFSET: u16 = 7;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const VERSION: u16 = 9;
    pub(crate) const PROCMAPS: u16 = 10;
    pub(crate) const TRACEID: u16 = 11;
    pub(crate) const TIME_SHIFT: u16 = 12;
    pub(crate) const GUEST: u16 = 13;
    pub(crate) const TSC2NSEC: u16 = 14;
}

/// Numbers of sections, and of the options that point to them.
pub(crate) mod section {
    pub(crate) const OPTIONS: u16 = 0;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const KALLSYMS: u16 = 19;
    pub(crate) const PRINTK: u16 = 20;
    pub(crate) const CMDLINES: u16 = 21;
    pub(crate) const BUFFER_TEXT: u16 = 22;
}

/// A 64-bit size and that many bytes.
pub(crate) fn sized(c: &mut Cursor<'_>, what: &str) -> Result<Vec<u8>, ErrorKind> {
    let size = c.u64(&format!("size of {what}"))?;
    c.bytes(size, what)
}

/// The clock in use: `local global [mono] boot`.
pub(crate) fn bracketed(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Parse the BUFFER option of version 7.
fn buffer(data: &[u8], big: bool) -> Option<Buffer> {
    let mut rest = data;
    let mut take = |n: usize| -> Option<u64> {
        let (head, tail) = rest.split_at_checked(n)?;
        rest = tail;
        let fold = |acc: u64, &b: &u8| acc << 8 | b as u64;
        Some(if big { head.iter().fold(0, fold) } else { head.iter().rev().fold(0, fold) })
    };
    take(8)?; // the section's own header; the CPUs' data are found without it
    let mut string = || -> Option<String> {
        let mut out = Vec::new();
        loop {
            match take(1)? as u8 {
                0 => return Some(String::from_utf8_lossy(&out).into_owned()),
                b => out.push(b),
            }
        }
    };
    let (name, clock) = (string()?, string()?);
    let page_size = take(4)? as u32;
    let count = take(4)?;
    // A count that is too large is reduced to the CPUs that the option holds.
    let cpus = (0..count)
        .map_while(|_| Some(CpuExtent { cpu: take(4)? as u32, offset: take(8)?, size: take(8)? }))
        .collect();
    Some(Buffer { name, clock, page_size, compressed: false, cpus })
}

/// Events lost according to one CPU's `stats`.
fn overruns(text: &str) -> u64 {
    let lost = |line: &str| -> Option<u64> {
        let (key, value) = line.split_once(':')?;
        matches!(key.trim(), "overrun" | "commit overrun" | "dropped events")
            .then(|| value.trim().parse().ok())?
    };
    text.lines().filter_map(lost).fold(0, u64::saturating_add)
}

fn snippet(text: &str) -> String {
    format!("{:?}", text.chars().take(60).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_count_every_kind_of_loss() {
        assert_eq!(
            overruns(
                "CPU: 0\nentries: 60\noverrun: 5967\ncommit overrun: 1\nbytes: 2\n\
                    dropped events: 30\nread events: 7\n"
            ),
            5998
        );
        assert_eq!(overruns("junk"), 0);
    }

    #[test]
    fn clocks() {
        assert_eq!(bracketed("local [x86-tsc] boot").as_deref(), Some("x86-tsc"));
        assert_eq!(bracketed("local"), None);
    }

    #[test]
    fn a_buffer_claiming_many_cpus_yields_those_present() {
        let mut data = vec![0; 8];
        data.extend(b"foo\0mono\0");
        data.extend(4096u32.to_be_bytes());
        data.extend(u32::MAX.to_be_bytes());
        data.extend(3u32.to_be_bytes());
        data.extend(8192u64.to_be_bytes());
        data.extend(4096u64.to_be_bytes());
        data.extend([1, 2, 3]);
        let b = buffer(&data, true).unwrap();
        assert_eq!(
            (b.name.as_str(), b.clock.as_str(), b.page_size, b.cpus.len()),
            ("foo", "mono", 4096, 1)
        );
        assert_eq!((b.cpus[0].cpu, b.cpus[0].offset, b.cpus[0].size), (3, 8192, 4096));
    }
}
