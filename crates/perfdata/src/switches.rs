//! Decodes the switches of a run from their places, which the index noted.

use crate::by_time::ByTime;
use crate::decode::Decoder;
use crate::index::Span;
use crate::marks::Places;
use crate::record::next_record;
use crate::run::{Content, Room};
use crate::schema::{Schema, When};
use holdup_trace::{Batch, Result, RunDecoder};
use holdup_tracepoint::Endian;
use std::marker::PhantomData;

/// The records of one run that may tell which thread runs.
pub(crate) struct SwitchReader<'a, E> {
    content: &'a Content,
    /// `None` only while being dropped.
    decoder: Option<Decoder<'a>>,
    room: Room,
    span: Span,
    bytes: &'a [u8],
    rest: Rest<'a>,
    /// Up to where the pages of the file are released.
    released: u64,
    endian: PhantomData<E>,
}

/// The records that were not decoded yet.
enum Rest<'a> {
    /// Their places in the file, if the run is in order.
    InOrder(Places<'a>),
    /// Those in the order of [`Room`] from this one on, if the run had to be sorted.
    Sorted(usize),
}

impl Rest<'_> {
    /// The place in the run of the next record, whose time the decoder gets to know.
    fn next(&mut self, decoder: &mut Decoder<'_>, room: &Room, start: u64) -> Option<usize> {
        match self {
            Rest::InOrder(places) => places.next().map(|at| (at - start) as usize),
            Rest::Sorted(next) => {
                let (time, at) = room.order.get(*next)?;
                decoder.last = time;
                *next += 1;
                Some(at as usize)
            }
        }
    }

    /// Up to where the file has been read once this place has been.
    fn done(&self, at: u64, before: u64) -> u64 {
        match self {
            Rest::InOrder(_) => at,
            Rest::Sorted(_) => before,
        }
    }
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
        let (decoder, mut room) = content.decoder(true, first_ts);
        let rest = if span.unsorted {
            sort::<E>(&mut room.order, &content.schema, bytes, (span.start, first_ts), places);
            Rest::Sorted(0)
        } else {
            Rest::InOrder(places)
        };
        let decoder = Some(decoder);
        let released = span.start;
        Some(SwitchReader {
            content,
            decoder,
            room,
            span,
            bytes,
            rest,
            released,
            endian: PhantomData,
        })
    }
}

/// Put the records of an unsorted run in order. Those without a time follow their predecessors.
fn sort<E: Endian>(
    order: &mut ByTime,
    schema: &Schema,
    bytes: &[u8],
    (start, first_ts): (u64, u64),
    places: Places<'_>,
) {
    order.clear();
    let mut last = first_ts;
    for at in places {
        // An unsorted run has a few hundred KiB.
        let at = (at - start) as u32;
        if let Some((kind, rec)) = next_record::<E>(bytes, at as usize)
            && let When::At(time) = schema.when::<E>(kind, rec)
        {
            last = time;
        }
        order.add(last, at);
    }
    order.finish();
}

impl<E: Endian> RunDecoder for SwitchReader<'_, E> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        let mut done = self.span.end;
        while let Some(at) = self.rest.next(decoder, &self.room, self.span.start) {
            // If the file has shrunk since, reading all events will notice.
            if let Some((kind, rec)) = next_record::<E>(self.bytes, at) {
                decoder.record::<E>(kind, rec, batch);
            }
            if batch.is_full() {
                done = self.rest.done(self.span.start + at as u64, self.released);
                break;
            }
        }
        // All events are read from here later. But to release a page alone is of no use: the kernel
        // maps its neighbours again when another thread reads next to it.
        self.content.source.done_with(self.released, done);
        self.released = done;
        Ok(done < self.span.end)
    }
}

impl<E> Drop for SwitchReader<'_, E> {
    fn drop(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            self.content.recycle(decoder, std::mem::take(&mut self.room));
        }
    }
}
