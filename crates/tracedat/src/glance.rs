//! A quick look at a file: the metadata, and some blocks of pages of each CPU, including the first
//! and the last. A CPU's pages are in time order, so those two have its earliest and latest event.

use crate::reader::Parsed;
use crate::scan::Look;
use crate::source::Source;
use holdup_trace::{ErrorKind, Glance, Result};
use std::fs::File;
use std::path::Path;

/// Look at a trace.dat without reading all of it. `None` if it holds the text of a latency tracer,
/// which is short: the tracers keep at most one buffer of it.
///
/// # Errors
/// Those of [`crate::open`].
pub fn glance(path: &Path) -> Result<Option<Glance>> {
    look(path).map_err(|kind| kind.in_file(path))
}

fn look(path: &Path) -> Result<Option<Glance>, ErrorKind> {
    let source = Source::file(File::open(path)?)?;
    let size = source.len();
    let Parsed::Events(parts) = Parsed::new(source)? else { return Ok(None) };
    // Compressed pages may unpack to more bytes than the file has.
    let unpacked = parts.lanes.iter().map(|lane| lane.data.unpacked());
    let pages = unpacked.fold(0, u64::saturating_add);
    let looked = parts.look(path, Look::Samples)?;
    let estimated_events = Glance::estimate(looked.total.events, looked.total.bytes, pages);
    let (info, quality) = looked.dat.into_info();
    Ok(Some(Glance {
        info,
        quality,
        listed: looked.listed,
        all_kinds: true,
        all_tasks: true,
        estimated_events,
        size,
        looked_at: looked.total.bytes.min(size),
    }))
}
