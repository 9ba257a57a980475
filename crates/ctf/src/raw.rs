//! A trace in its raw form, for code that copies a part of it into another: the metadata as text,
//! and the packets of each stream with the positions and times of their events.
//!
//! A part of a packet is a packet again: header and context as they were, with other sizes and
//! times, and consecutive events of the original. Time stamps are widened from the packet's own, so
//! the part may begin with any event aligned like the packet's first one (CTF 1.8, 4.1.2:
//! alignments count from the start of the packet).

use crate::exec::{Regs, Spot, run};
use crate::files::Folder;
use crate::kind::{Meaning, reg};
use crate::lane::{Cursor, Entered, Lane, LaneCursor, Next, Store};
use crate::parse::{Metadata, StreamDecl};
use crate::plan::{Dest, Step};
use crate::reader::{compiled, declarations, share_clock, sort_out};
use crate::schema::{Events, is_kernel};
use crate::types::{Order, Type};
use holdup_trace::{Cpu, EventKind, Names, Nanos, Quality, Result};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::path::Path;

/// A trace, or several of one recording.
pub struct RawCtf {
    /// The traces.
    pub folders: Vec<RawFolder>,
    /// The folder of each file of packets, and its name in that folder.
    pub files: Vec<(usize, String)>,
    /// How the packets of each kind of stream may be divided, by trace and kind.
    layouts: Vec<Vec<Layout>>,
    /// Whether each trace is big-endian.
    big: Vec<bool>,
    store: Store,
    lanes: Vec<Lane>,
}

/// A folder with metadata.
pub struct RawFolder {
    /// Path relative to the folder opened; empty for that folder itself.
    pub name: String,
    /// It is a trace of the kernel, not of user space.
    pub kernel: bool,
    /// The text of the metadata, without packet headers.
    pub text: Vec<u8>,
}

/// What the event means for copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawKind {
    /// A context switch: only switches reveal the threads of the other events.
    Switch,
    /// A thread that existed when recording began.
    Process,
    /// Switches are missing here.
    Lost,
    /// Any other event.
    Other,
}

/// An event.
#[derive(Clone, Debug)]
pub struct RawEvent {
    /// Its time.
    pub time: Nanos,
    /// The CPU it names, which is usually the stream's.
    pub cpu: Cpu,
    /// Its kind.
    pub kind: RawKind,
    /// The bits it occupies in the packet.
    pub bits: Range<u64>,
    /// The clock at the event, in steps.
    clock: u64,
}

/// Events that are missing before a packet.
#[derive(Clone, Copy, Debug)]
pub struct RawGap {
    /// Time at which the packet was begun.
    pub time: Nanos,
    /// The stream's CPU.
    pub cpu: Cpu,
    /// Number of missing events.
    pub events: u64,
    /// Number of missing packets, with an unknown number of events.
    pub packets: u64,
}

/// A packet.
pub struct RawPacket<'a> {
    /// Index of its file.
    pub file: usize,
    /// The whole packet.
    pub bytes: &'a [u8],
    /// Its events.
    pub events: &'a [RawEvent],
    /// What is missing before it.
    pub gap: Option<RawGap>,
    /// Positions of text and bytes of memory, if requested.
    pub spots: &'a [Spot],
    /// Big endian: bits of a byte are counted from its highest.
    pub big: bool,
    first: u64,
    begin: u64,
    align: u64,
    fields: &'a [Place],
}

/// The position of a number in the packet's header or context.
#[derive(Clone, Copy)]
struct Place {
    register: u8,
    at: u64,
    size: u8,
    big: bool,
}

/// How the packets of a kind of stream may be divided.
#[derive(Clone, Copy)]
struct Layout {
    /// Alignment of events, in bits.
    align: u64,
    /// The layout of an event depends only on its start modulo this many bits.
    measure: u64,
}

/// Open what [`crate::open`] opens. `noting` requests the positions of text in the packets.
///
/// # Errors
/// As [`crate::open`].
pub fn open_raw(path: &Path, noting: bool) -> Result<RawCtf> {
    let (name, folders, _) = crate::find(path)?;
    let mut quality = Quality::default();
    let (texts, metadatas) = declarations(&folders, &mut quality)
        .map_err(|(file, kind)| kind.in_file(&name.join(file)))?;
    let mut events = Events::default();
    let since_1970 = !share_clock(&metadatas);
    let traces = compiled(&metadatas, &mut events, &Names::default(), since_1970, noting);
    let layouts = metadatas.iter().zip(&traces).map(|(metadata, class)| {
        class.streams.iter().map(|s| Layout::of(metadata, s.id)).collect()
    });
    let layouts = layouts.collect();
    let in_folder = |(number, folder): (usize, &Folder)| -> Vec<(usize, String)> {
        folder.streams.iter().map(|(name, _)| (number, name.clone())).collect()
    };
    let names = folders.iter().enumerate().flat_map(in_folder).collect();
    let big = metadatas.iter().map(|m| m.order == Some(Order::Big)).collect();
    let kernel = metadatas.iter().map(is_kernel);
    let raw = folders.iter().zip(texts).zip(kernel);
    let raw = raw.map(|((f, text), kernel)| RawFolder { name: f.name.clone(), kernel, text });
    let raw = raw.collect();
    let (files, lanes) = sort_out(folders, &traces, &mut quality);
    let store = Store { traces, files, large: true };
    Ok(RawCtf { folders: raw, files: names, layouts, big, store, lanes })
}

impl RawCtf {
    /// CPUs, ascending; the last may be unknown, for streams that do not name theirs.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.lanes.iter().map(|lane| lane.cpu)
    }

    /// Call `each` for all events of the CPU with index `lane`, in order.
    pub fn each_event(&self, lane: usize, each: &mut dyn FnMut(Nanos, Cpu, RawKind)) {
        let Some(lane) = self.lanes.get(lane) else { return };
        let mut quality = Quality::default();
        let mut cursor = LaneCursor::<false>::new(&self.store, lane, &mut quality);
        while let Some(next) = cursor.next(&mut quality) {
            match next {
                Next::Gap(gap) if gap.switches => each(gap.ts, lane.cpu, RawKind::Lost),
                Next::Gap(_) => {}
                Next::Event(e) => {
                    let (cpu, kind) =
                        (own_cpu(e.class.own[0], e.regs, lane.cpu), kind(e.class.meaning));
                    each(e.ts, cpu, kind);
                }
            }
        }
    }

    /// How many streams the CPU with index `lane` has.
    pub fn streams(&self, lane: usize) -> usize {
        self.lanes.get(lane).map_or(0, |lane| lane.channels.len())
    }

    /// The packets of a stream, in order.
    ///
    /// # Errors
    /// Errors of `each`.
    pub fn each_packet<E>(
        &self,
        lane: usize,
        stream: usize,
        each: &mut dyn FnMut(&RawPacket<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Some(lane) = self.lanes.get(lane) else { return Ok(()) };
        let Some(channel) = lane.channels.get(stream) else { return Ok(()) };
        let mut quality = Quality::default();
        let mut cursor = Cursor::new(&self.store, &channel.packets);
        let (mut events, mut spots) = (Vec::new(), Vec::new());
        loop {
            events.clear();
            spots.clear();
            let entered = cursor.packet(&mut quality, |bits, clock, class, regs| {
                let cpu = own_cpu(class.own[0], regs, lane.cpu);
                let kind = kind(class.meaning);
                events.push(RawEvent { time: 0, cpu, kind, bits, clock });
                // Names of lock classes come from the kernel's source.
                if !matches!(class.meaning, Meaning::Kernel(kind) if kind.system() == "lock") {
                    spots.extend_from_slice(&regs.spots);
                }
            });
            let Some(entered) = entered else { return Ok(()) };
            for event in &mut events {
                event.time = entered.stream.time.nanos(event.clock);
            }
            let fields = places(&entered, &mut spots);
            let (trace, class) = entered.packet.class;
            let layout = self.layouts[trace as usize][class as usize];
            for event in &mut events {
                event.bits.start = event.bits.start.next_multiple_of(layout.align);
            }
            each(&RawPacket {
                file: entered.packet.file as usize,
                bytes: entered.data,
                events: &events,
                gap: entered.gap.map(|gap| RawGap {
                    time: gap.ts,
                    cpu: lane.cpu,
                    events: gap.lost,
                    packets: entered.skipped,
                }),
                spots: &spots,
                big: self.big.get(trace as usize).is_some_and(|big| *big),
                first: entered.first.next_multiple_of(layout.align),
                begin: entered.begin,
                align: layout.measure,
                fields: &fields,
            })?;
        }
    }
}

fn own_cpu(own: bool, regs: &Regs, lane: Cpu) -> Cpu {
    let register = || regs.int[usize::from(reg::CPU)] as u32;
    if own { Cpu(u16::try_from(register()).unwrap_or(u16::MAX)) } else { lane }
}

fn kind(meaning: Meaning) -> RawKind {
    match meaning {
        Meaning::Kernel(EventKind::Switch) => RawKind::Switch,
        Meaning::Process => RawKind::Process,
        _ => RawKind::Other,
    }
}

/// Counters that a part of a packet has of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Sequence number of the packet in its stream.
    pub seq: u64,
    /// Events that are missing since the stream began.
    pub discarded: u64,
}

impl<'a> RawPacket<'a> {
    /// The same packet with other bytes of the same length.
    pub fn with_bytes<'b>(&self, bytes: &'b [u8]) -> RawPacket<'b>
    where
        'a: 'b,
    {
        RawPacket { bytes, ..*self }
    }

    /// Ranges of bytes that hold header, context and events, and nothing else.
    pub fn used(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let head = 0..self.first.div_ceil(8) as usize;
        let bytes = |bits: &Range<u64>| (bits.start / 8) as usize..bits.end.div_ceil(8) as usize;
        std::iter::once(head).chain(self.events.iter().map(move |e| bytes(&e.bits)))
    }

    /// Whether the packet states its own size and begin time; otherwise it cannot be divided.
    pub fn is_divisible(&self) -> bool {
        let has = |r: u8| self.fields.iter().any(|f| f.register == r);
        let said = has(reg::CONTENT) && has(reg::PACKET) && has(reg::BEGIN);
        said && self.first.is_multiple_of(8) && self.align > 0
    }

    /// Whether a part may begin with this event.
    pub fn may_begin(&self, event: usize) -> bool {
        self.events.get(event).is_some_and(|e| {
            let at = e.bits.start;
            at >= self.first && self.align > 0 && (at - self.first).is_multiple_of(self.align)
        })
    }

    /// Append a packet of these events to `out`; without events it only carries the packet's times.
    /// The packet must be divisible, and a part may begin with the first event.
    pub fn part(&self, events: Range<usize>, counts: &Counts, out: &mut Vec<u8>) {
        let start = out.len();
        let head = self.first.div_ceil(8) as usize;
        out.extend_from_slice(self.bytes.get(..head).unwrap_or(self.bytes));
        out.resize(start + head, 0);
        let events = self.events.get(events).unwrap_or(&[]);
        let (mut begin, mut end, mut content) = (self.begin, self.begin, self.first);
        if let (Some(first), Some(last)) = (events.first(), events.last()) {
            (begin, end) = (first.clock, last.clock);
            let (from, to) = (first.bits.start, last.bits.end);
            content += to - from;
            let bytes = self.bytes.get((from / 8) as usize..to.div_ceil(8) as usize);
            out.extend_from_slice(bytes.unwrap_or(&[]));
        }
        let packet = &mut out[start..];
        let size = packet.len() as u64 * 8;
        for field in self.fields {
            let value = match field.register {
                reg::BEGIN => begin,
                reg::END => end,
                reg::CONTENT => content,
                reg::PACKET => size,
                reg::SEQ => counts.seq,
                reg::DISCARDED => counts.discarded,
                _ => continue,
            };
            put(packet, field, value);
        }
    }
}

/// Write a number at its position: little endian counts bits from a byte's lowest, big endian from
/// its highest.
fn put(bytes: &mut [u8], field: &Place, value: u64) {
    let size = u64::from(field.size);
    for n in 0..size {
        let bit = if field.big { size - 1 - n } else { n };
        let at = field.at + n;
        let mask = if field.big { 0x80 >> (at % 8) } else { 1 << (at % 8) };
        if let Some(byte) = bytes.get_mut((at / 8) as usize) {
            *byte = if value >> bit & 1 == 1 { *byte | mask } else { *byte & !mask };
        }
    }
}

/// The positions of the numbers that differ in a part of the packet.
fn places(entered: &Entered<'_>, spots: &mut Vec<Spot>) -> Vec<Place> {
    let mut found = Vec::new();
    let mut regs = Regs::new();
    let (mut at, end) = (0, entered.first);
    for step in entered.stream.packet.iter().flat_map(|steps| steps.iter()) {
        if let Step::Block { plain, loads, .. } = step {
            for load in plain.iter().map(|p| p.load()).chain(loads.iter().copied()) {
                if let Dest::Register(register) = load.dest {
                    let at = at + u64::from(load.offset);
                    found.push(Place { register, at, size: load.size, big: load.big });
                }
            }
        }
        if run(std::slice::from_ref(step), entered.data, &mut at, end, &mut regs).is_err() {
            return Vec::new();
        }
    }
    spots.extend(regs.spots.into_iter().filter(|spot| spot.slot != reg::UUID));
    found
}

impl Layout {
    fn of(metadata: &Metadata, id: u64) -> Layout {
        let decl = metadata.streams.iter().find(|s| s.id == id);
        let of = |get: fn(&StreamDecl) -> &Option<Type>| decl.and_then(|d| get(d).as_ref());
        let header = of(|d| &d.event_header);
        let context = of(|d| &d.event_context);
        let mut seen = FxHashSet::default();
        let mut measure = 8;
        let events = metadata.events.iter().filter(|e| e.stream == id);
        let own = events.flat_map(|e| [e.context.as_ref(), e.fields.as_ref()]);
        for of in own.chain([header, context]).flatten() {
            measure = measure.max(widest(of, &mut seen));
        }
        let align = header.map_or(1, Type::align).max(1);
        Layout { align: align.into(), measure: measure.into() }
    }
}

/// The largest alignment of anything in a type.
fn widest(of: &Type, seen: &mut FxHashSet<usize>) -> u32 {
    let mut fields = |of: &[(Box<str>, Type)], at: usize| match seen.insert(at) {
        true => of.iter().map(|(_, of)| widest(of, seen)).max().unwrap_or(1),
        false => 1,
    };
    let inner = match of {
        Type::Struct(s) => fields(&s.fields, std::sync::Arc::as_ptr(s) as usize),
        Type::Variant { variant, .. } => {
            fields(&variant.options, std::sync::Arc::as_ptr(variant) as usize)
        }
        Type::Array(element, _) | Type::Sequence(element, _) => {
            let at = std::sync::Arc::as_ptr(element) as usize;
            if seen.insert(at) { widest(&element.of, seen) } else { 1 }
        }
        _ => 1,
    };
    inner.max(of.align())
}
