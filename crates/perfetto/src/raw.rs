//! A trace in its raw form, for code that copies a part of it into another: packet by packet, with
//! the times of the events in each.

use crate::bundle::{Compact, Head, Raw};
use crate::index::{Bundle, index};
use crate::nameless::{self, Known};
use crate::packets::{Packets, Step};
use crate::schema::packet;
use crate::source::{Part, Source};
use crate::survey::Survey;
use crate::table::Table;
use crate::unpack::unpack;
use crate::wire::{Fields, Value};
use holdup_map::Bytes;
use holdup_trace::{Cpu, ErrorKind, Names, Nanos, Quality, ReadError, Result};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;

/// A packet, unpacked if it was compressed together with other packets.
pub struct RawPacket<'a> {
    /// Its content, without key and length.
    pub content: &'a [u8],
    /// The CPU of its events; [`Cpu::UNKNOWN`] if it has none.
    pub cpu: Cpu,
    /// The times of its events.
    pub times: &'a [Nanos],
    known: &'a Known,
}

impl RawPacket<'_> {
    /// The packet with only the data known to contain no names, and with names replaced by
    /// `rename`; `None` if nothing is left.
    pub fn nameless(&self, rename: &mut dyn FnMut(&mut [u8])) -> Option<Vec<u8>> {
        nameless::packet(self.known, rename, self.content)
    }
}

/// Call `take` for the packets of the trace in `path` in the order they were written.
///
/// # Errors
/// Those of [`crate::open`] and of `take`.
pub fn each_packet<E: From<ReadError>>(
    path: &Path,
    take: &mut dyn FnMut(&RawPacket<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let opened = open(path).map_err(|kind| kind.in_file(path))?;
    let mut times = Vec::new();
    for stretch in &opened.stretches {
        for step in Packets::of(opened.source.get(*stretch)) {
            let Step::Packet { start, end, .. } = step else { continue };
            let content = &opened.source.get(*stretch)[start..end];
            times.clear();
            let bundle = bundle_in(content).and_then(|bundle| {
                let at = bundle.as_ptr() as usize - content.as_ptr() as usize;
                let place = (stretch.part == Part::File, stretch.start + start + at);
                let known = opened.bundles.get(&place)?;
                times_of(bundle, known, &mut times);
                Some(known.cpu)
            });
            let place = (stretch.part == Part::File, stretch.start + start);
            let sample = opened.samples.get(&place).map(|&(time, cpu)| {
                times.push(time);
                cpu
            });
            let cpu = bundle.or(sample).unwrap_or(Cpu::UNKNOWN);
            take(&RawPacket { content, cpu, times: &times, known: &opened.known })?;
        }
    }
    Ok(())
}

struct Opened {
    source: Source,
    stretches: Vec<crate::source::Place>,
    /// By position: whether in the file itself, and the byte offset.
    bundles: FxHashMap<(bool, usize), Bundle>,
    /// Packets of samples, by position.
    samples: FxHashMap<(bool, usize), (Nanos, Cpu)>,
    known: Known,
}

fn open(path: &Path) -> Result<Opened, ErrorKind> {
    let file = File::open(path).and_then(Bytes::file)?;
    let mut quality = Quality::default();
    let unpacked = unpack(file.all(), &mut quality)?;
    let source = Source::new(file, unpacked.bytes);
    let names = Names::new();
    let mut survey = Survey::new(names.clone());
    for stretch in &unpacked.stretches {
        for step in Packets::of(source.get(*stretch)) {
            if let Step::Packet { start, end, .. } = step {
                let content = &source.get(*stretch)[start..end];
                survey.packet(stretch.part, stretch.start + start, content);
            }
        }
    }
    let found = index(&source, &survey.bundles, survey.raw_to_boot())?;
    let of = |b: Bundle| ((b.place.part == Part::File, b.place.start), b);
    let (runs, seen) = (found.runs, found.seen);
    let bundles = runs.into_iter().flat_map(|run| run.bundles).map(of).collect();
    let mut samples = std::mem::take(&mut survey.samples);
    let sampled = samples.finish(&names, |clock| survey.to_boot(clock));
    let samples = sampled.places().map(|(key, time, cpu)| (key, (time, cpu))).collect();
    let table = Table::new(&seen, &names);
    let known = Known { table, kernel: sampled.kernel_functions().collect(), names };
    Ok(Opened { source, stretches: unpacked.stretches, bundles, samples, known })
}

fn bundle_in(content: &[u8]) -> Option<&[u8]> {
    let mut bundle = None;
    let _ = Fields::of(content).each(|number, value| {
        if let (packet::FTRACE_EVENTS, Value::Bytes(bytes)) = (number, value) {
            bundle = Some(bytes);
        }
    });
    bundle
}

fn times_of(message: &[u8], bundle: &Bundle, times: &mut Vec<Nanos>) {
    let event = |event: &[u8]| {
        if let Ok(raw) = Raw::read(event) {
            times.push(bundle.time(raw.ts));
        }
    };
    let head = Head::read(message, event, |_| {});
    if let Some(lists) = head.compact.and_then(|lists| Compact::read(lists, |_| {}).ok()) {
        for mut lane in [lists.switches, lists.wakings] {
            while let Ok(Some((ts, _))) = lane.next() {
                times.push(bundle.time(ts));
            }
        }
    }
}
