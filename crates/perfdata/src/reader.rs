//! An opened perf.data.

use crate::cursor::Order;
use crate::index::{Index, Span, index};
use crate::marks::Marks;
use crate::run::{Content, RunReader};
use crate::schema::Schema;
use crate::shown::shown;
use crate::source::Source;
use holdup_trace::{Opened, Quality, Reader, RunDecoder, TraceInfo};
use holdup_tracepoint::{Big, Endian, Little};

/// A perf.data file, opened and indexed. Decode it through [`Reader`].
/// Memory: the index has about 40 bytes per flush of a ring buffer (typically hundreds of records),
/// and four bytes per switch, up to 256 MiB. A decoder holds one read window (128 KiB), or a whole
/// run of at most 256 KiB if it was joined from short flushes and must be sorted in memory.
pub struct PerfData {
    opened: Opened,
    order: Order,
    content: Content,
    spans: Vec<Span>,
    marks: Marks,
}

impl PerfData {
    pub(crate) fn new(
        info: TraceInfo,
        order: Order,
        content: Content,
        mut quality: Quality,
        index: Index,
    ) -> PerfData {
        quality.absorb(&index.quality);
        let opened = Opened { info, quality, runs: index.runs };
        PerfData { opened, order, content, spans: index.spans, marks: index.marks }
    }

    fn decoder_in<E: Endian>(&self, run: usize, only_switches: bool) -> Box<dyn RunDecoder + '_> {
        let nothing = (Span { start: 0, end: 0, unsorted: false }, 0);
        let (span, first) = self
            .spans
            .get(run)
            .zip(self.runs().get(run))
            .map_or(nothing, |(s, r)| (*s, r.first_ts));
        let content = &self.content;
        let places = only_switches.then(|| self.marks.within(span.start, span.end)).flatten();
        Box::new(RunReader::<E>::new(content, span, first, only_switches, places))
    }

    fn decoder_of(&self, run: usize, only_switches: bool) -> Box<dyn RunDecoder + '_> {
        match self.order {
            Order::Little => self.decoder_in::<Little>(run, only_switches),
            Order::Big => self.decoder_in::<Big>(run, only_switches),
        }
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

/// Find out which events the samples prove, with the byte order as a type.
pub(crate) fn shown_in(
    order: Order,
    source: &Source,
    schema: &Schema,
    spans: &[Span],
) -> std::io::Result<u8> {
    match order {
        Order::Little => shown::<Little>(source, schema, spans),
        Order::Big => shown::<Big>(source, schema, spans),
    }
}

impl Reader for PerfData {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    // perf writes all events of a CPU, or of a thread, through one ring.
    fn keeps_cpus_together(&self) -> bool {
        true
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        self.decoder_of(run, false)
    }

    fn decoder_of_switches(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        self.decoder_of(run, true)
    }
}
