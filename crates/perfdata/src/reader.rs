//! An opened perf.data.

use crate::cursor::Order;
use crate::index::{Index, Span, index};
use crate::open::Opened;
use crate::run::{RunReader, Scratch};
use crate::schema::Schema;
use crate::source::Source;
use holdup_trace::{ErrorKind, LocalNames, Quality, ReadError, Reader, Run, RunDecoder, TraceInfo};
use holdup_tracepoint::{Big, Little};
use std::sync::Mutex;

/// A perf.data file, opened and indexed. Decode it through [`Reader`].
///
/// Memory: the index has about 40 bytes for each flush of a ring buffer (typically hundreds of
/// records); nothing grows with the number of events. A decoder holds one read window (128 KiB, or
/// the whole run of at most 256 KiB where short flushes were put together and are sorted in
/// memory).
pub struct PerfData {
    pub(crate) info: TraceInfo,
    pub(crate) quality: Quality,
    pub(crate) order: Order,
    pub(crate) source: Source,
    pub(crate) schema: Schema,
    pub(crate) runs: Vec<Run>,
    pub(crate) spans: Vec<Span>,
    /// Memory of decoders that ended.
    spare: Mutex<Vec<Scratch>>,
}

impl PerfData {
    pub(crate) fn new(opened: Opened, mut quality: Quality, index: Index) -> PerfData {
        quality.absorb(&index.quality);
        PerfData {
            info: opened.info,
            quality,
            order: opened.order,
            source: opened.source,
            schema: opened.schema,
            runs: index.runs,
            spans: index.spans,
            spare: Mutex::default(),
        }
    }

    pub(crate) fn io_error(&self, e: std::io::Error) -> ReadError {
        ErrorKind::Io(e).in_file(&self.info.path)
    }

    pub(crate) fn recycle(&self, scratch: Scratch) {
        self.spare.lock().unwrap_or_else(|e| e.into_inner()).push(scratch);
    }
}

/// Index with the byte order as a type.
pub(crate) fn index_in(
    order: Order,
    source: &Source,
    schema: &Schema,
    start: u64,
    limit: u64,
) -> std::io::Result<Index> {
    match order {
        Order::Little => index::<Little>(source, schema, start, limit),
        Order::Big => index::<Big>(source, schema, start, limit),
    }
}

impl Reader for PerfData {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn quality(&self) -> &Quality {
        &self.quality
    }

    fn amend(&mut self) -> (&mut TraceInfo, &mut Quality) {
        (&mut self.info, &mut self.quality)
    }

    fn runs(&self) -> &[Run] {
        &self.runs
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        let nothing = (Span { start: 0, end: 0, unsorted: false }, 0);
        let (span, first_ts) =
            self.spans.get(run).zip(self.runs.get(run)).map_or(nothing, |(s, r)| (*s, r.first_ts));
        let spare = self.spare.lock().unwrap_or_else(|e| e.into_inner()).pop();
        let scratch =
            spare.unwrap_or_else(|| Scratch::new(LocalNames::new(self.info.names.clone())));
        match self.order {
            Order::Little => Box::new(RunReader::<Little>::new(self, span, first_ts, scratch)),
            Order::Big => Box::new(RunReader::<Big>::new(self, span, first_ts, scratch)),
        }
    }
}
