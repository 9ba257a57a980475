//! A text in its raw form, for code that copies a part of it into another: line by line, with what
//! is needed to choose among the lines.

use crate::line::{Other, other, parse};
use crate::lines::lines;
use crate::sniff::{DialectKind, sniff};
use crate::words::Words;
use holdup_map::Bytes;
use holdup_trace::{Cpu, ErrorKind, Nanos, Result};
use std::fs::File;
use std::path::Path;

/// How a line belongs to the events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawLine {
    /// An event or record of this time and CPU.
    Event(Nanos, Cpu),
    /// A loss: the line belongs to the event that follows.
    Before,
    /// The line belongs to the event before it, like the frames of its call chain, or to no event.
    Behind,
}

/// Callback that receives a line's kind, its bytes, and a classifier that finds the names in them.
pub type Take<'a, E> = dyn FnMut(RawLine, &[u8], &mut Words) -> std::result::Result<(), E> + 'a;

/// Call `take` for the lines of the text in `path`, each with its line end.
///
/// # Errors
/// The file cannot be read, is not text of events, or is an HTML page with a trace in it. In
/// addition, errors of `take`.
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
