//! Text of ftrace, trace-cmd and perf script: lines are copied unchanged. Lines between an event
//! and the next one, such as its call chain, go with it.
//!
//! Without names only bytes known to be no names stay.

use crate::fields::is_private;
use crate::keep::Keep;
use crate::names::Names;
use crate::{CutError, Written, into_file};
use holdup_ftracetext::{RawLine, Sort, Words, each_line};
use std::io::{self, Write};
use std::path::Path;

/// Cut the file `input`.
pub(crate) fn write(input: &Path, keep: Keep, output: &Path) -> Result<Written, CutError> {
    let mut keep = keep;
    let mut names = keep.cut.anonymous.then(Names::default);
    into_file(output, |out| {
        let failed = |error: io::Error| CutError::Output { path: output.to_owned(), error };
        // The heading stays, with the note at its end.
        let mut stays = true;
        let mut noted = false;
        let mut before: Vec<u8> = Vec::new();
        let mut renamed = Vec::new();
        let note = format!("# {}\n", keep.cut.words());
        let take = &mut |kind: RawLine, line: &[u8], words: &mut Words| -> Result<(), CutError> {
            let line = match &mut names {
                None => line,
                Some(names) => {
                    renamed.clear();
                    nameless(line, words, names, &mut renamed);
                    &renamed
                }
            };
            match kind {
                RawLine::Before => {
                    before.extend_from_slice(line);
                    return Ok(());
                }
                RawLine::Event(time, cpu) => stays = keep.event(time, cpu),
                RawLine::Behind => {}
            }
            if matches!(kind, RawLine::Event(..)) && !std::mem::replace(&mut noted, true) {
                out.write_all(note.as_bytes()).map_err(failed)?;
            }
            if stays {
                out.write_all(&before).and_then(|()| out.write_all(line)).map_err(failed)?;
            }
            before.clear();
            Ok(())
        };
        each_line(input, take)?;
        Ok(keep.written)
    })
}

/// Append `line` with replaced names.
fn nameless(line: &[u8], words: &mut Words, names: &mut Names, out: &mut Vec<u8>) {
    let (text, end) = match line.strip_suffix(b"\n") {
        Some(text) => (text, &b"\n"[..]),
        None => (line, &b""[..]),
    };
    for (range, sort) in words.of(text) {
        let start = out.len();
        out.extend_from_slice(&text[range]);
        match sort {
            Sort::Known => {}
            Sort::Event if is_of_kernel(&out[start..]) => {}
            Sort::Recorder => out.truncate(start),
            Sort::Name | Sort::Event | Sort::Words => names.replace(&mut out[start..]),
        }
    }
    out.extend_from_slice(end);
}

/// Whether an event of this name, which may be preceded by its system, is the kernel's own.
fn is_of_kernel(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let (system, short) = name.split_once(':').unwrap_or(("", name));
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let known = ["kernel_stack", "user_stack", "function", "bprint", "bputs", "raw_data"];
    !is_private(system)
        && system.bytes().all(plain)
        && (holdup_perfetto::is_event(short) || known.contains(&short))
}
