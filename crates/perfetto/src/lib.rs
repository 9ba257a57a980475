//! Reads Perfetto traces (`.pftrace`, `.perfetto-trace`): the ftrace events in them.
//!
//! ```text
//!  file ─ packets ─┬─ packed? unpack ─┐
//!                  └──────────────────┴─► survey: machine, threads, losses
//!                                     └─► bundles ─► index: spans, kinds ─► table of plans
//!                                              └───► decode, one run per CPU
//! ```
//!
//! A trace is a protobuf message, `Trace`, whose packets follow each other, each with its length.
//! One kind of packet holds the events that the recorder read at one time from the ftrace buffer of
//! a CPU, a *bundle*. holdup reads the bundles, the samples of `linux.perf` with their call chains,
//! and the packets about the machine, its threads and losses. Data that programs trace themselves
//! (track events, counters, heap profiles) is skipped.
//!
//! No length is trusted: lengths are checked against the file's size, damage is counted, and
//! everything readable is read.
//!
//! Sources: `protos/perfetto/trace` of Perfetto, by way of the descriptors in its Python package;
//! values that `compact_sched` omits are restored in the same way as in its trace processor.

mod bundle;
mod decode;
mod fields;
mod index;
mod nameless;
mod packets;
mod raw;
mod reader;
mod samples;
mod schema;
mod source;
mod survey;
mod table;
mod unpack;
mod wire;

pub use raw::{RawPacket, each_packet};
pub use reader::Perfetto;

/// Whether the kernel has an event of this name.
pub fn is_event(name: &str) -> bool {
    table::is_known(name)
}

use holdup_map::Bytes;
use holdup_trace::{ErrorKind, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Whether a file that starts with these bytes is a Perfetto trace.
pub fn sniff(head: &[u8]) -> bool {
    packets::sniff(head)
}

/// Open a trace. Scans all of it once, so that [`Perfetto`] knows which events occur and when.
///
/// # Errors
/// The file cannot be read, holds no packets, or is from several machines. Damage is no error; it
/// is counted in the reader's quality.
pub fn open(path: &Path) -> Result<Perfetto> {
    let file =
        File::open(path).and_then(Bytes::file).map_err(|e| ErrorKind::from(e).in_file(path))?;
    Perfetto::from_bytes(path, file)
}

/// Read a trace from a stream. Up to 64 MiB are kept in memory, more in a temporary file. `name`
/// stands for the file in errors and reports.
///
/// # Errors
/// As [`open`].
pub fn open_stream(name: &Path, input: impl Read) -> Result<Perfetto> {
    let bytes = Bytes::spool(input).map_err(|e| ErrorKind::from(e).in_file(name))?;
    Perfetto::from_bytes(name, bytes)
}
