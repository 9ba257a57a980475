//! `holdup events`: every event of a trace in order, one line each, as in AIX's `trcrpt`.
//!
//! ```text
//!  merge ──► Tracker ──────► Select ──► Writer ──► out
//!            who runs, in    wanted?    text, NDJSON or CSV, into one
//!            which context              buffer that is written when full
//! ```
//!
//! Memory is constant: the tracker keeps a few bytes per thread and CPU, the writer one buffer and
//! the names it has spelled. No event allocates memory.

mod context;
mod describe;
mod fields;
mod names;
mod put;
mod select;
mod word;
mod writer;

pub use context::{Context, Tracker};
pub use select::Select;

use holdup_profile::Backtraces;
use holdup_trace::{Batch, Event, Quality, ReadError, Reader, merge};
use put::Out;
use std::io::{self, Write};
use std::ops::ControlFlow;
use writer::Writer;

/// The format of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Columns for people.
    Text {
        /// Leave out the line that describes the trace.
        quiet: bool,
    },
    /// One JSON object per line.
    Json,
    /// A header and one record per line.
    Csv {
        /// The text between the cells.
        separator: String,
    },
}

/// Why the stream ended early.
#[derive(Debug)]
pub enum StreamError {
    /// Reading the trace failed.
    Read(ReadError),
    /// The output cannot be written. A broken pipe means that the reader has had enough.
    Write(io::Error),
}

/// The result.
#[derive(Debug)]
pub struct Streamed {
    /// Defects that were found while reading.
    pub quality: Quality,
    /// Events that were written.
    pub written: u64,
}

/// Bytes collected before they are written.
const BUFFER: usize = 256 << 10;

/// Write every event of `reader` that `select` wants to `out`, with its call chain if `chains` are
/// given, except in CSV.
///
/// # Errors
/// Reading the trace failed, or the output cannot be written.
pub fn stream(
    reader: &dyn Reader,
    select: &Select,
    form: &Form,
    mut chains: Option<&mut Backtraces<'_>>,
    out: &mut dyn Write,
) -> Result<Streamed, StreamError> {
    let info = reader.info();
    let mut tracker = Tracker::new(info);
    let select = select.for_trace(info);
    let mut writer = Writer::new(info, form);
    let (mut left, mut count) = (select.entries(), 0);
    let mut buf = Out::new(BUFFER + (16 << 10));
    let mut failed = None;
    writer.head(&mut buf);
    let quality = merge::drive(reader, 0, &mut |events: &[Event], batch: &Batch| {
        for e in events {
            if select.is_past(e) {
                return ControlFlow::Break(());
            }
            let context = tracker.step(e, batch);
            if let Some(chains) = &mut chains {
                chains.see(e, batch);
            }
            if !select.wants(e, &tracker) {
                continue;
            }
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            count += 1;
            let chain = chains.as_mut().map(|chains| chains.frames());
            writer.line(&mut buf, e, batch, context, &tracker, chain.as_deref());
            if buf.len() >= BUFFER {
                if let Err(e) = out.write_all(buf.written()) {
                    failed = Some(e);
                    return ControlFlow::Break(());
                }
                buf.clear();
            }
        }
        ControlFlow::Continue(())
    })
    .map_err(StreamError::Read);
    // What was read before an error is as good as a shorter trace.
    let written = match failed {
        Some(e) => Err(e),
        None => out.write_all(buf.written()).and_then(|()| out.flush()),
    };
    let quality = quality?;
    written.map_err(StreamError::Write)?;
    Ok(Streamed { quality, written: count })
}
