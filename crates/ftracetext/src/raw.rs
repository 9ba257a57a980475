//! A text as it lies there, for who writes a part of it into another: line by line, with what it
//! takes to choose among them.

use crate::line::{Other, other, parse};
use crate::lines::lines;
use crate::sniff::{DialectKind, sniff};
use crate::words::Words;
use holdup_map::Bytes;
use holdup_trace::{Cpu, ErrorKind, Nanos, Result};
use std::fs::File;
use std::path::Path;

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawLine {
    /// An event or record of this time and CPU.
    Event(Nanos, Cpu),
    /// It belongs to the event that follows: what was lost before it.
    Before,
    /// It belongs to the event before, as the frames of its call chain do; or to none.
    Behind,
}

/// What takes a line, its bytes, and what tells which of them are names.
pub type Take<'a, E> = dyn FnMut(RawLine, &[u8], &mut Words) -> std::result::Result<(), E> + 'a;

/// Hand out the lines of the text in `path`, each with its end.
///
/// # Errors
/// The file cannot be read, is not text of events, or is a page for a browser with one in it. And
/// those of `take`.
pub fn each_line<E: From<holdup_trace::ReadError>>(
    path: &Path,
    take: &mut Take<'_, E>,
) -> Result<(), E> {
    let failed = |kind: ErrorKind| E::from(kind.in_file(path));
    let file = File::open(path).map_err(|e| failed(e.into()))?;
    let bytes = Bytes::file(file).map_err(|e| failed(e.into()))?;
    let text = bytes.all();
    let dialect = sniff(&text[..text.len().min(64 << 10)]).ok_or_else(|| {
        let expected = "lines of events, as perf script or ftrace print them";
        failed(ErrorKind::malformed(0, None, expected, "other text"))
    })?;
    if dialect.kind == DialectKind::Html {
        return Err(failed(ErrorKind::Unsupported {
            what: "an HTML page with a trace in it".into(),
            way_out: "extract the lines of events: sed -n '/^# tracer/,/<.script>/p'".into(),
        }));
    }
    let syntax = dialect.kind.syntax();
    let mut words = Words::new(syntax);
    let mut result = Ok(());
    lines(text, 0..text.len(), |at, line| {
        if result.is_err() {
            return;
        }
        let frame = line.first() == Some(&b'\t');
        let kind = match parse(syntax, line).filter(|_| !frame) {
            Some(l) => RawLine::Event(l.stamp.ts, l.cpu),
            None if matches!(other(syntax, line), Other::Lost(..) | Other::Started(_)) => {
                RawLine::Before
            }
            None => RawLine::Behind,
        };
        let end = (at + line.len() + 1).min(text.len());
        result = take(kind, &text[at..end], &mut words);
    });
    result
}
