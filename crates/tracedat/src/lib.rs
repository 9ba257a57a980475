//! Reads trace-cmd's trace.dat, versions 6 and 7, and folders of raw ring-buffer dumps.
//!
//! ```
//! use holdup_trace::{Reader, What, merge};
//! use std::path::Path;
//!
//! # // The recordings of the repository are packed; a trace.dat is opened with `open(path)`.
//! # let packed = "../../fixtures/tracedat-small/imb_single_c2.trace.dat.zst";
//! # let input = zstd::stream::read::Decoder::new(std::fs::File::open(packed)?)?;
//! let trace = holdup_tracedat::open_stream(Path::new("-"), input)?;
//! assert_eq!(trace.info().format, "trace.dat v7");
//!
//! for event in merge::events(&trace).take(100) {
//!     let event = event?;
//!     if let What::Wakeup { tid, .. } = event.what {
//!         println!("{} ns: thread {} wakes thread {tid}", event.ts, event.tid);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! ```text
//!  file ─ meta (v6 | v7) ─ formats ─► plans
//!              └ buffers ─ CPUs ─ blocks of pages ─► scan at open (ids, span, losses)
//!                                      └──────────► decode, one run per CPU and buffer
//! ```
//!
//! Nothing is mapped and no length is trusted: lengths are checked against the input's size, damage
//! is counted, and everything readable is read.
//!
//! Sources: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5), the kernel's `include/linux/ring_buffer.h`
//! and `kernel/trace/ring_buffer.c`.

mod attach;
mod blocks;
mod codec;
mod decode;
mod describe;
mod format;
mod glance;
mod guest;
mod latency;
mod meta;
mod page;
mod raw;
mod rawdir;
mod reader;
mod scan;
mod source;
mod stacks;
mod time;
mod v6;
mod v7;

pub use glance::glance;
pub use latency::LatencyText;
pub use raw::{RawBuffer, RawDat, RawEvent, RawLane, RawPage, open_raw};
pub use rawdir::open_raw_dir;
pub use reader::TraceDat;

use holdup_trace::{ErrorKind, Result};
use source::Source;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Whether a file that starts with these bytes is a trace.dat of any version.
pub fn sniff(head: &[u8]) -> bool {
    head.starts_with(meta::MAGIC)
}

/// What a trace.dat holds.
pub enum Content {
    /// Events in ring buffers.
    Events(Box<TraceDat>),
    /// The text of a latency tracer.
    Text(Box<LatencyText>),
}

impl Content {
    fn events(self, path: &Path) -> Result<TraceDat> {
        let what = "a trace.dat that holds the text of a latency tracer".to_owned();
        match self {
            Content::Events(dat) => Ok(*dat),
            Content::Text(_) => Err(ErrorKind::Unsupported {
                what,
                way_out: "read it with a reader of text".to_owned(),
            }
            .in_file(path)),
        }
    }
}

/// Open a trace.dat with events.
///
/// Reads the metadata and scans all trace data, so that [`TraceDat`] knows which events occur and
/// when.
///
/// # Errors
/// The file cannot be read, its metadata is cut or damaged, or it is of a kind that is not read
/// (another version, another compression, the text of a latency tracer). Damaged or missing trace
/// data is no error; it is counted in the reader's quality.
pub fn open(path: &Path) -> Result<TraceDat> {
    content(path)?.events(path)
}

/// Open a trace.dat with events or with the text of a latency tracer.
///
/// # Errors
/// Like [`open`], except that the text of a latency tracer is no error here.
pub fn content(path: &Path) -> Result<Content> {
    let source =
        File::open(path).and_then(Source::file).map_err(|e| ErrorKind::from(e).in_file(path))?;
    TraceDat::from_source(path, source)
}

/// Read a trace.dat from a stream. The format needs random access, so up to 64 MiB are kept in
/// memory, more in a temporary file. `name` stands for the file in errors and reports.
///
/// # Errors
/// As [`open`].
pub fn open_stream(name: &Path, input: impl Read) -> Result<TraceDat> {
    content_stream(name, input)?.events(name)
}

/// Like [`content`], from a stream; see [`open_stream`].
///
/// # Errors
/// As [`content`].
pub fn content_stream(name: &Path, input: impl Read) -> Result<Content> {
    let source = Source::spool(input).map_err(|e| ErrorKind::from(e).in_file(name))?;
    TraceDat::from_source(name, source)
}
