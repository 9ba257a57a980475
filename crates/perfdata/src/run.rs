//! Decoders of runs.

use crate::by_time::ByTime;
use crate::decode::{Decoder, Memory};
use crate::index::Span;
use crate::lately::Lately;
use crate::marks::Places;
use crate::record::next_record;
use crate::schema::{Schema, When};
use crate::source::Source;
use crate::walk::GroupFact;
use crate::window::{READ, Window};
use holdup_trace::{
    Batch, ErrorKind, LocalNames, NameId, Names, QualityCode, ReadError, Result, RunDecoder,
    TraceInfo,
};
use holdup_tracepoint::Endian;
use rustc_hash::FxHashMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The records of a file, and what is needed to decode any of them.
pub(crate) struct Content {
    /// The file's path, for messages.
    path: PathBuf,
    source: Source,
    schema: Schema,
    names: Arc<Names>,
    /// Which control group an id in samples stands for.
    groups: FxHashMap<u64, NameId>,
    /// Memory of finished decoders, for reuse.
    spare: Mutex<Vec<(Room, Memory)>>,
}

impl Content {
    pub(crate) fn new(
        info: &TraceInfo,
        source: Source,
        schema: Schema,
        groups: &[GroupFact],
    ) -> Content {
        let (path, names) = (info.path.clone(), info.names.clone());
        let groups = groups.iter().map(|g| (g.id, names.intern(&g.path))).collect();
        Content { path, source, schema, names, groups, spare: Mutex::default() }
    }

    fn io_error(&self, e: std::io::Error) -> ReadError {
        ErrorKind::Io(e).in_file(&self.path)
    }

    /// A decoder of all events or only of switches, which begins at this time, and memory for
    /// whoever feeds it.
    fn decoder(&self, only_switches: bool, first_ts: u64) -> (Decoder<'_>, Room) {
        let spare = self.spare.lock().unwrap_or_else(|e| e.into_inner()).pop();
        let (room, memory) = spare.unwrap_or_else(|| {
            (Room::default(), (LocalNames::new(self.names.clone()), Lately::default()))
        });
        let mut decoder = Decoder::new(&self.schema, &self.groups, memory, only_switches);
        decoder.last = first_ts;
        (decoder, room)
    }

    /// Keeps the memory of a finished decoder for the next one.
    fn recycle(&self, decoder: Decoder<'_>, room: Room) {
        let mut spare = self.spare.lock().unwrap_or_else(|e| e.into_inner());
        spare.push((room, decoder.into_memory()));
    }
}

/// Memory for feeding a decoder, which is used again.
#[derive(Default)]
struct Room {
    window: Window,
    order: ByTime,
}

/// Decodes one run, in file order or, if the run is unsorted, all of it at once.
pub(crate) struct RunReader<'a, E> {
    content: &'a Content,
    /// `None` only while being dropped.
    decoder: Option<Decoder<'a>>,
    room: Room,
    /// The run, if it is mapped; what is left of it, if all its records are decoded in file order.
    mapped: Option<&'a [u8]>,
    /// The places of the only records that are wanted, if they are known and the run is mapped.
    places: Option<Places<'a>>,
    /// The offset at which the run begins, the next to read, and the one at which it ends.
    start: u64,
    next: u64,
    end: u64,
    order: Order,
    endian: PhantomData<E>,
}

/// In which order the records are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// That of the file.
    OfFile,
    /// That of their times, which is not known yet.
    Unknown,
    /// That of their times; how many are decoded.
    ByTime(usize),
}

impl<'a, E: Endian> RunReader<'a, E> {
    /// Decodes all events, or only switches and records that are no events; these are at `places`,
    /// if that is known.
    pub(crate) fn new(
        content: &'a Content,
        span: Span,
        first_ts: u64,
        only_switches: bool,
        places: Option<Places<'a>>,
    ) -> Self {
        let (decoder, mut room) = content.decoder(only_switches, first_ts);
        room.window.clear();
        let mapped = content.source.slice(span.start, span.end);
        RunReader {
            content,
            decoder: Some(decoder),
            room,
            mapped,
            places: places.filter(|_| mapped.is_some()),
            start: span.start,
            next: span.start,
            end: span.end,
            order: if span.unsorted { Order::Unknown } else { Order::OfFile },
            endian: PhantomData,
        }
    }

    /// Read at most `want` more bytes. Returns false if there were none.
    fn refill(&mut self, want: usize, batch: &mut Batch) -> Result<bool> {
        let want = want.min(usize::try_from(self.end - self.next).unwrap_or(usize::MAX));
        let got = self
            .room
            .window
            .fill(&self.content.source, self.next, want)
            .map_err(|e| self.content.io_error(e))?;
        self.content.source.done_with(self.next, self.next + got as u64);
        self.next += got as u64;
        if got < want {
            // The file shrank since it was indexed.
            batch.quality.add(QualityCode::Truncated, 1);
            self.end = self.next;
        }
        Ok(got > 0)
    }

    /// Read all of an unsorted run and find its order.
    fn sort(&mut self, batch: &mut Batch) -> Result<()> {
        if self.mapped.is_none() {
            self.refill(usize::MAX, batch)?;
        }
        let Room { window, order } = &mut self.room;
        let bytes = self.mapped.unwrap_or_else(|| window.bytes());
        order.clear();
        let mut last = self.decoder.as_ref().map_or(0, |d| d.last);
        let mut add = |at: usize, kind: u32, rec: &[u8]| {
            if let When::At(t) = self.content.schema.when::<E>(kind, rec) {
                last = t;
            }
            // A record that yields no event stays after its predecessor, because the decoder may
            // count it.
            order.add(last, at as u32);
        };
        if let Some(places) = &mut self.places {
            for at in places.map(|place| (place - self.start) as usize) {
                if let Some((kind, rec)) = next_record::<E>(bytes, at) {
                    add(at, kind, rec);
                }
            }
        } else {
            let mut at = 0;
            while let Some((kind, rec)) = next_record::<E>(bytes, at) {
                add(at, kind, rec);
                at += rec.len();
            }
            batch.quality.add(QualityCode::Truncated, (at < bytes.len()) as u64);
        }
        order.finish();
        self.order = Order::ByTime(0);
        Ok(())
    }

    /// Decode the records of an unsorted run from number `next` on.
    fn fill_sorted(&mut self, mut next: usize, batch: &mut Batch) -> Result<bool> {
        let Room { window, order } = &self.room;
        let bytes = self.mapped.unwrap_or_else(|| window.bytes());
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        while let Some((time, at)) = order.get(next) {
            if batch.is_full() {
                self.order = Order::ByTime(next);
                return Ok(true);
            }
            let at = at as usize;
            decoder.last = time;
            if !decoder.call::<E>(bytes.get(at..).unwrap_or_default(), batch)
                && let Some((kind, rec)) = next_record::<E>(bytes, at)
            {
                decoder.record::<E>(kind, rec, batch);
            }
            next += 1;
        }
        self.order = Order::ByTime(next);
        self.read_to(self.end);
        Ok(false)
    }

    /// Decode the records at the places, in file order. If the file has shrunk since they were
    /// noted, reading all events will notice. Returns whether some may be left.
    fn fill_places(&mut self, batch: &mut Batch) -> bool {
        let (Some(places), Some(bytes), Some(decoder)) =
            (&mut self.places, self.mapped, &mut self.decoder)
        else {
            return false;
        };
        let mut done = self.end;
        for place in places {
            if let Some((kind, rec)) = next_record::<E>(bytes, (place - self.start) as usize) {
                decoder.record::<E>(kind, rec, batch);
            }
            if batch.is_full() {
                done = place;
                break;
            }
        }
        self.read_to(done);
        done < self.end
    }

    /// What is before this offset has been decoded.
    fn read_to(&mut self, done: u64) {
        match self.places {
            Some(_) => self.content.source.looked_at(self.next, done),
            None => self.content.source.done_with(self.next, done),
        }
        self.next = done;
    }
}

/// Decode records from `bytes` until the batch is full or none is complete; returns the bytes used.
#[inline]
fn decode<E: Endian>(decoder: &mut Decoder<'_>, bytes: &[u8], batch: &mut Batch) -> usize {
    let mut at = 0;
    loop {
        at += decoder.calls::<E>(&bytes[at..], batch);
        if batch.is_full() {
            return at;
        }
        let Some((kind, rec)) = next_record::<E>(bytes, at) else { return at };
        at += rec.len();
        decoder.record::<E>(kind, rec, batch);
    }
}

impl<E: Endian> RunDecoder for RunReader<'_, E> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        if self.order == Order::Unknown {
            self.sort(batch)?;
        }
        if let Order::ByTime(next) = self.order {
            return self.fill_sorted(next, batch);
        }
        if self.places.is_some() {
            return Ok(self.fill_places(batch));
        }
        if let (Some(bytes), Some(decoder)) = (self.mapped, &mut self.decoder) {
            let at = decode::<E>(decoder, bytes, batch);
            let more = batch.is_full();
            // The index saw records to the end: if they are missing now, the file has shrunk.
            batch.quality.add(QualityCode::Truncated, (!more && at < bytes.len()) as u64);
            self.mapped = Some(&bytes[at..]);
            self.read_to(if more { self.next + at as u64 } else { self.end });
            return Ok(more);
        }
        loop {
            let Some(decoder) = &mut self.decoder else { return Ok(false) };
            let at = decode::<E>(decoder, self.room.window.bytes(), batch);
            self.room.window.consume(at);
            if batch.is_full() {
                return Ok(true);
            }
            if self.next >= self.end {
                return Ok(false);
            }
            if !self.refill(READ, batch)? {
                return Ok(false);
            }
        }
    }
}

impl<E> Drop for RunReader<'_, E> {
    fn drop(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            self.content.recycle(decoder, std::mem::take(&mut self.room));
        }
    }
}
