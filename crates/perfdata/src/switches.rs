//! Decodes the switches of a run from their places, which the index noted.

use crate::decode::Decoder;
use crate::index::Span;
use crate::marks::Places;
use crate::record::next_record;
use crate::run::{Content, Room};
use crate::schema::When;
use holdup_trace::{Batch, Result, RunDecoder};
use holdup_tracepoint::Endian;
use std::marker::PhantomData;

/// The records of one run that may tell which thread runs.
pub(crate) struct SwitchReader<'a, E> {
    content: &'a Content,
    /// `None` only while being dropped.
    decoder: Option<Decoder<'a>>,
    /// What it leaves to the next decoder.
    room: Room,
    span: Span,
    bytes: &'a [u8],
    rest: Rest<'a>,
    endian: PhantomData<E>,
}

/// The records that were not decoded yet.
enum Rest<'a> {
    /// Their places in the file, if the run is in order.
    InOrder(Places<'a>),
    /// Their times and their places in the run, if the run had to be sorted.
    Sorted(std::vec::IntoIter<(u64, u64)>),
}

impl<'a, E: Endian> SwitchReader<'a, E> {
    /// Decodes what is at `places`; `None` if the run is not contiguous in memory.
    pub(crate) fn new(
        content: &'a Content,
        span: Span,
        first_ts: u64,
        places: Places<'a>,
    ) -> Option<Self> {
        let bytes = content.source.slice(span.start, span.end)?;
        let rest = match span.unsorted {
            true => Rest::Sorted(sorted::<E>(
                content,
                bytes,
                places.map(|at| at - span.start),
                first_ts,
            )),
            false => Rest::InOrder(places),
        };
        let (decoder, room) = content.decoder(true, first_ts);
        Some(SwitchReader {
            content,
            decoder: Some(decoder),
            room,
            span,
            bytes,
            rest,
            endian: PhantomData,
        })
    }
}

/// The records at these places in `bytes` by time; those without a time follow their predecessors.
fn sorted<E: Endian>(
    content: &Content,
    bytes: &[u8],
    places: impl Iterator<Item = u64>,
    first_ts: u64,
) -> std::vec::IntoIter<(u64, u64)> {
    let mut last = first_ts;
    let mut timed: Vec<(u64, u64)> = places
        .map(|at| {
            if let Some((kind, rec)) = next_record::<E>(bytes, at as usize)
                && let When::At(time) = content.schema.when::<E>(kind, rec)
            {
                last = time;
            }
            (last, at)
        })
        .collect();
    timed.sort();
    timed.into_iter()
}

impl<E: Endian> RunDecoder for SwitchReader<'_, E> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        while !batch.is_full() {
            let next = match &mut self.rest {
                Rest::InOrder(places) => places.next().map(|at| at - self.span.start),
                Rest::Sorted(places) => places.next().map(|(time, at)| {
                    decoder.last = time;
                    at
                }),
            };
            let Some(at) = next else {
                // All events will be read from here too.
                self.content.source.release(self.span.start, self.span.end);
                return Ok(false);
            };
            // If the file has shrunk since, reading all events will notice.
            if let Some((kind, rec)) = next_record::<E>(self.bytes, at as usize) {
                decoder.record::<E>(kind, rec, batch);
            }
        }
        Ok(true)
    }
}

impl<E> Drop for SwitchReader<'_, E> {
    fn drop(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            self.content.recycle(decoder, std::mem::take(&mut self.room));
        }
    }
}
