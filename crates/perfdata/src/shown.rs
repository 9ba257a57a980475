//! Finds out which of the events that always happen were in fact recorded.
//!
//! An attr proves that perf opened an event, not that one arrived. Most events may rightly be
//! absent; for the few that always happen, and for hardware counters, this looks for one sample.
//! Usually the first few hundred records have them all and the search ends; if one is missing, the
//! search reads the file to its end.

use crate::index::Span;
use crate::record::{self, next_record};
use crate::schema::Schema;
use crate::source::Source;
use crate::window::{READ, Window};
use holdup_tracepoint::Endian;
use std::io;

/// The bits of [`Schema::witnesses`] for which `spans` hold a sample.
pub(crate) fn shown<E: Endian>(source: &Source, schema: &Schema, spans: &[Span]) -> io::Result<u8> {
    let mut shown = 0;
    let mut window = Window::default();
    for span in spans {
        let mut next = span.start;
        window.clear();
        while shown != schema.witnesses {
            let left = usize::try_from(span.end - next).unwrap_or(READ);
            let got = window.fill(source, next, left.min(READ))?;
            if got == 0 {
                break;
            }
            next += got as u64;
            let mut used = 0;
            while let Some((kind, rec)) = next_record::<E>(window.bytes(), used) {
                used += rec.len();
                if kind == record::SAMPLE {
                    shown |= schema.of_sample::<E>(rec).map_or(0, |event| event.witness);
                }
            }
            window.consume(used);
        }
    }
    Ok(shown)
}
