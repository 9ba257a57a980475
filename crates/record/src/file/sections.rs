//! The feature sections: what the file says about the machine and the recording.

use super::bytes::Bytes;
use super::host::{self, Roots};
use super::{Clock, Description, Event, Form, build_ids, compress};
use holdup_perfdata::format::{self, feature};
use holdup_trace::Runtimes;
use std::fs;

/// All sections that have content, ascending by number.
pub(crate) fn of(description: &Description, form: Form, roots: &Roots) -> Vec<(u32, Bytes)> {
    let d = description;
    let mut sections = host::sections(roots);
    let mut add = |number, section| sections.push((number, section));
    add(feature::VERSION, text(concat!("holdup ", env!("CARGO_PKG_VERSION"))));
    add(feature::CMDLINE, command(&d.command));
    add(feature::EVENT_DESC, events(&d.events));
    if !d.tracing.is_empty() {
        add(feature::TRACING_DATA, d.tracing.section(form, &d.symbols, page_size(roots)));
    }
    let ids = build_ids::records(&d.running, &roots.proc, &roots.sys);
    if !ids.0.is_empty() {
        add(feature::BUILD_ID, ids);
    }
    if let Some(clock) = &d.clock {
        add(feature::CLOCKID, clock_id(clock));
        add(feature::CLOCK_DATA, clock_data(clock));
    }
    if let Some(level) = d.compression {
        add(feature::COMPRESSED, compressed(level, 1));
    }
    if d.runtimes != Runtimes::default() {
        let mut section = Bytes::default();
        section.put(d.runtimes.text().as_bytes());
        add(feature::RUNTIMES, section);
    }
    if form == Form::File {
        // Overwritten once the times are known.
        add(feature::SAMPLE_TIME, sample_time((0, 0)));
    }
    sections.sort_by_key(|(number, _)| *number);
    sections
}

fn text(text: &str) -> Bytes {
    let mut b = Bytes::default();
    b.string(text);
    b
}

fn command(words: &[String]) -> Bytes {
    let mut b = Bytes::default();
    b.count(words.len());
    words.iter().for_each(|word| {
        b.string(word);
    });
    b
}

fn events(events: &[Event]) -> Bytes {
    let mut b = Bytes::default();
    b.count(events.len()).count(events.first().map_or(0, |e| e.attr.len()));
    for e in events {
        b.put(&e.attr).count(e.ids.len()).string(&e.name);
        e.ids.iter().for_each(|&id| {
            b.u64(id);
        });
    }
    b
}

fn clock_id(clock: &Clock) -> Bytes {
    let mut b = Bytes::default();
    b.u64(clock.resolution);
    b
}

fn clock_data(clock: &Clock) -> Bytes {
    const VERSION: u32 = 1;
    let mut b = Bytes::default();
    b.u32(VERSION).u32(clock.id).u64(clock.wall).u64(clock.time);
    b
}

/// How the data are compressed; `ratio` is the compression ratio.
pub(crate) fn compressed(level: i32, ratio: u32) -> Bytes {
    const VERSION: u32 = 1;
    let mut b = Bytes::default();
    b.u32(VERSION).u32(format::COMPRESSED_ZSTD).u32(level as u32).u32(ratio);
    // perf unpacks each record into a buffer of this size.
    b.count(compress::MOST);
    b
}

/// Times of the first and the last sample.
pub(crate) fn sample_time((first, last): (u64, u64)) -> Bytes {
    let mut b = Bytes::default();
    b.u64(first).u64(last);
    b
}

/// From the values that the kernel passes to every process at its start (`AT_PAGESZ`,
/// `getauxval(3)`).
fn page_size(roots: &Roots) -> u32 {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let auxv = fs::read(roots.proc.join("self/auxv")).unwrap_or_default();
    let word = |b: &[u8]| b.first_chunk().map(|word| usize::from_ne_bytes(*word));
    let mut pairs = auxv.chunks_exact(2 * WORD);
    let size = pairs.find(|p| word(p) == Some(AT_PAGESZ)).and_then(|p| word(&p[WORD..]));
    size.and_then(|size| u32::try_from(size).ok()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_this_machine_is_a_power_of_two() {
        let size = page_size(&Roots::default());
        assert!(size.is_power_of_two() && size >= 4096, "{size}");
    }
}
