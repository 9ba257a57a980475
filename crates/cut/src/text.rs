//! Text of ftrace, trace-cmd and perf script: lines are copied as they are. What stands between an
//! event and the next, as its call chain does, goes with it.

use crate::keep::Keep;
use crate::{CutError, Written, into_file};
use holdup_ftracetext::{RawLine, each_line};
use std::io::{self, Write};
use std::path::Path;

/// The cut of the file `input`.
pub(crate) fn write(input: &Path, keep: Keep, output: &Path) -> Result<Written, CutError> {
    let mut keep = keep;
    into_file(output, |out| {
        let failed = |error: io::Error| CutError::Output { path: output.to_owned(), error };
        // The heading stays, and the note stands at its end.
        let mut stays = true;
        let mut told = false;
        let mut before: Vec<u8> = Vec::new();
        let note = format!("# {}\n", keep.cut.words());
        each_line(input, &mut |kind: RawLine, line: &[u8]| -> Result<(), CutError> {
            match kind {
                RawLine::Before => {
                    before.extend_from_slice(line);
                    return Ok(());
                }
                RawLine::Event(time, cpu) => stays = keep.event(time, cpu),
                RawLine::Behind => {}
            }
            if matches!(kind, RawLine::Event(..)) && !std::mem::replace(&mut told, true) {
                out.write_all(note.as_bytes()).map_err(failed)?;
            }
            if stays {
                out.write_all(&before).and_then(|()| out.write_all(line)).map_err(failed)?;
            }
            before.clear();
            Ok(())
        })?;
        Ok(keep.written)
    })
}
