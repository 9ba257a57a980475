//! Recognises formats that holdup does not read, and says how to convert them.

use crate::printed;
use holdup_trace::ErrorKind;

fn unsupported(what: &str, way_out: &str) -> ErrorKind {
    ErrorKind::Unsupported { what: what.to_owned(), way_out: way_out.to_owned() }
}

/// The format that the first bytes look like.
pub(crate) fn name(head: &[u8]) -> ErrorKind {
    let starts = |magic: &[u8]| head.starts_with(magic);
    let contains = |text: &[u8]| head.windows(text.len()).any(|w| w == text);
    if head.is_empty() {
        return unsupported(
            "an empty file",
            "the recording was not finished or was written elsewhere; record again",
        );
    }
    if head.iter().all(|&b| b == 0) {
        return unsupported(
            "nothing but zero bytes",
            "the recording was not finished, or the disk filled up; record again",
        );
    }
    if head.get(..HEADER).is_some_and(|header| header.iter().all(|&b| b == 0)) {
        return unsupported(
            "a recording that was cut off before its header was written",
            "the recorder was killed before it recorded anything; record again",
        );
    }
    for (magic, what, way_out) in PACKED.iter().chain(OTHERS) {
        if starts(magic) {
            return unsupported(what, way_out);
        }
    }
    if CTF_INDEX.iter().any(|m| starts(m)) {
        return unsupported(
            "the index of a CTF trace (LTTng)",
            "name the folder that holds the file metadata",
        );
    }
    if is_ctf2(head) {
        return unsupported(
            "the metadata of a CTF 2 trace",
            "not read yet; record with lttng create --trace-format=ctf-1.8",
        );
    }
    if is_etl(head) {
        return unsupported("a Windows event trace (ETL)", "holdup reads traces of Linux");
    }
    let text = String::from_utf8_lossy(head);
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    if is_text(head) {
        if let Some(refusal) = printed::name(trimmed).or_else(|| holdup_ftracetext::nearly(head)) {
            return refusal;
        }
        if trimmed.starts_with(['{', '[']) {
            if contains(b"traceEvents") || contains(b"\"ph\"") {
                return unsupported(
                    "a Chrome JSON trace",
                    "the file lacks the scheduler's events; record with perf, trace-cmd or ftrace",
                );
            }
            return unsupported(
                "JSON",
                "holdup reads what perf, trace-cmd or ftrace recorded, not files that were made \
                 from a recording",
            );
        }
        if trimmed.starts_with('<') {
            return unsupported(
                "HTML or XML",
                "holdup reads what perf, trace-cmd or ftrace recorded",
            );
        }
        return unsupported(
            "text of an unknown kind",
            "holdup reads the text of perf script (with time and event), the text of trace-cmd \
             report, and the kernel's trace file",
        );
    }
    if is_ring_buffer(head) {
        return unsupported(
            "one CPU's raw ring buffer (trace_pipe_raw)",
            "name the folder that holds the files of all CPUs and formats/, which says what the \
                events are",
        );
    }
    if is_pprof(head) {
        return unsupported(
            "a pprof profile",
            "the file contains sums, not events; record with perf record",
        );
    }
    unsupported(
        "a file of an unknown kind",
        "holdup reads what perf record, trace-cmd record or ftrace wrote",
    )
}

/// Bytes of the header of perf.data, which recorders complete last, after the data.
const HEADER: usize = 104;

/// What a file is if it is certainly no recording, not even a damaged one.
pub(crate) fn other(head: &[u8]) -> Option<String> {
    let begins = |list: &[Magic]| list.iter().any(|(magic, ..)| head.starts_with(magic));
    let is_other = match head.is_empty() || !is_text(head) || begins(PACKED) {
        true => begins(OTHERS),
        // Text that is nearly a trace may be one with missing columns.
        false => holdup_ftracetext::nearly(head).is_none(),
    };
    match name(head) {
        ErrorKind::Unsupported { what, .. } if is_other => Some(what),
        _ => None,
    }
}

/// Magic bytes, the format they identify, and the remedy.
type Magic = (&'static [u8], &'static str, &'static str);

/// Formats that may contain a recording.
const PACKED: &[Magic] = &[
    (b"BZh", "bzip2-compressed data", "unpack it on the fly: bzip2 -dc FILE | holdup ... -"),
    (
        b"\x04\x22\x4d\x18",
        "lz4-compressed data",
        "unpack it on the fly: lz4 -dc FILE | holdup ... -",
    ),
    (
        b"\x5d\0\0",
        "lzma-compressed data",
        "unpack it on the fly: xz -dc --format=lzma FILE | holdup ... -",
    ),
    (b"PK\x05\x06", "an empty zip archive", "name a trace, or an archive with one"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-zip archive", "unpack it: 7z x FILE"),
];

/// Formats that are no recording.
const OTHERS: &[Magic] = &[
    (b"\x7fELF", "an ELF program, library or core dump", "name the trace, not the program"),
    (
        b"\xd4\xc3\xb2\xa1",
        "a packet capture (pcap)",
        "holdup reads what perf, trace-cmd or ftrace recorded",
    ),
    (
        b"\x0a\x0d\x0d\x0a",
        "a packet capture (pcapng)",
        "holdup reads what perf, trace-cmd or ftrace recorded",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "give holdup the perf.data from which this file was made",
    ),
    (b"\x89PNG", "a picture (PNG)", "holdup reads what perf, trace-cmd or ftrace recorded"),
    (b"%PDF", "a PDF document", "holdup reads what perf, trace-cmd or ftrace recorded"),
    (b"PAR1", "a Parquet file", "give holdup the trace from which this file was made"),
    (
        b"SIMPLEPERF",
        "a simpleperf report",
        "give holdup the perf.data from which this file was made",
    ),
];

/// The index of a stream of CTF 1.8, in both byte orders.
const CTF_INDEX: &[[u8; 4]] = &[[0xc1, 0xf1, 0xdc, 0xc1], [0xc1, 0xdc, 0xf1, 0xc1]];

/// Two pages of the kernel's ring buffer: each begins with a time and the number of bytes used (in
/// four or eight bytes, with flags in the topmost).
fn is_ring_buffer(head: &[u8]) -> bool {
    let page = |at: usize| -> Option<(u64, u32)> {
        let time = u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?);
        let used = u32::from_le_bytes(head.get(at + 8..at + 12)?.try_into().ok()?) & 0x00ff_ffff;
        Some((time, used))
    };
    let Some((a, used)) = page(0) else { return false };
    // A file may consist of one page.
    let (b, used_b) = if head.len() == 4096 { (a, used) } else { page(4096).unwrap_or((0, 0)) };
    // Two pages of one recording are at most an hour apart.
    let plausible = |used: u32| (1..=4084).contains(&used);
    a > 0
        && a <= b
        && b - a < 3_600_000_000_000
        && plausible(used)
        && (plausible(used_b) || used_b == 0)
}

/// CTF 2: a JSON text sequence.
fn is_ctf2(head: &[u8]) -> bool {
    head.first() == Some(&0x1e) && head.windows(9).any(|w| w == b"\"preamble")
}

/// A WMI buffer header (its size first) and, 72 bytes on, a system trace header.
fn is_etl(head: &[u8]) -> bool {
    let Some((size, event)) = head.get(0..4).zip(head.get(72..76)) else { return false };
    let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
    size % 1024 == 0
        && (1024..=16 << 20).contains(&size)
        && matches!(event[2], 1 | 2 | 10 | 11)
        && event[3] == 0xc0
}

fn is_text(head: &[u8]) -> bool {
    !head.iter().any(|&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
}

/// `Profile { repeated ValueType sample_type = 1 }`: a short message of two small numbers, and more
/// such messages or samples (field 2).
fn is_pprof(head: &[u8]) -> bool {
    match head {
        [0x0a, length @ 2..=12, 0x08, rest @ ..] => {
            let length = usize::from(*length);
            rest.get(..length - 1).is_some_and(|body| body.contains(&0x10))
                && matches!(rest.get(length - 1), Some(0x0a | 0x12))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stranger_is_called_by_its_name() {
        let mut etl = vec![0u8; 128];
        etl[..4].copy_from_slice(&0x1_0000u32.to_le_bytes());
        etl[72..76].copy_from_slice(&[2, 0, 2, 0xc0]);
        let mut ring = vec![1u8; 8192];
        for (at, time) in [(0, 5_000_000u64), (4096, 6_000_000)] {
            ring[at..at + 8].copy_from_slice(&time.to_le_bytes());
            ring[at + 8..at + 16].copy_from_slice(&4000u64.to_le_bytes());
        }
        for (head, what) in [
            (&b""[..], "an empty file"),
            (&[0; 64], "zero bytes"),
            (&[&[0; 104][..], &[7; 8]].concat(), "cut off before its header was written"),
            (b"\x7fELF\x02\x01", "ELF"),
            (&ring, "trace_pipe_raw"),
            (b"\x1e{\"type\":\"preamble\"}", "CTF"),
            (&[0xc1, 0xf1, 0xdc, 0xc1, 0], "CTF"),
            (&etl, "ETL"),
            (b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04", "pprof"),
            (b"BZh91AY", "bzip2"),
            (b"PK\x05\x06\0", "empty zip"),
            (b"{\"traceEvents\":[", "Chrome"),
            (b"  {\"a\": 1}", "JSON"),
            (b"<!DOCTYPE html>", "HTML"),
            (b"hello, world\n", "text of an unknown kind"),
            (b"\x01\x02\x03\x04", "unknown kind"),
        ] {
            let message = name(head).to_string();
            assert!(message.contains(what), "{message}: {what}");
            assert!(message.contains(": "), "no way out: {message}");
        }
    }
}
