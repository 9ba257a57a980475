//! Samples of `linux.perf`: one per packet, and the data to which their numbers refer.
//!
//! ```text
//!  PerfSample { cpu, pid, tid, callstack_iid }
//!      └─ Callstack { frame_ids } ─ Frame { function_name_id, mapping_id, rel_pc } ─ names, paths
//! ```
//!
//! A writer of packets writes each name, path, frame and chain once, with a number. The numbers
//! hold until the writer restarts; each restart gets new tables here. The tables are resolved when
//! all packets have been seen, because definitions may come in any order.

use crate::schema::{counter, interned, packet, perf, timebase};
use crate::wire::{Broken, Fields, Packed, Value};
use holdup_trace::{
    Batch, Cpu, Event, EventDesc, EventId, Frame, FrameName, NameId, Names, Nanos, Pid, Presence,
    Result, RunDecoder, StackRef, Tid, What,
};
use rustc_hash::FxHashMap;

/// Most frames of a chain, from the innermost: the recorder itself keeps fewer.
const DEEPEST: usize = 512;
/// Most parts of a path, and most bytes.
const PARTS: usize = 64;
const LONGEST_PATH: usize = 4096;
/// Most bytes of all paths: a few bytes of input can refer to each path.
const MOST_PATHS: usize = 64 << 20;
/// Most events that samples may belong to.
const MOST_EVENTS: usize = 64;

/// Interned data by its number.
type Interned<T> = FxHashMap<u64, T>;

/// The data that one writer interned since it restarted.
#[derive(Default)]
struct Tables {
    functions: Interned<NameId>,
    paths: Interned<Box<[u8]>>,
    mappings: Interned<Box<[u64]>>,
    frames: Interned<RawFrame>,
    chains: Interned<Box<[u64]>>,
}

/// A `Frame` with unresolved numbers.
#[derive(Clone, Copy, Default)]
struct RawFrame {
    function: u64,
    mapping: u64,
    rel_pc: u64,
    kernel: bool,
}

/// A sample.
#[derive(Clone, Copy)]
struct Sample {
    ts: Nanos,
    cpu: Cpu,
    pid: Pid,
    tid: Tid,
    event: u16,
    table: u32,
    chain: u64,
}

/// The event of samples.
#[derive(Clone, PartialEq, Eq)]
struct Timebase {
    name: String,
    /// Weight of each sample: events, or nanoseconds of a clock.
    period: u64,
}

/// Defaults for the packets of a writer.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    /// The clock of their times.
    pub(crate) clock: u64,
    event: u16,
}

/// Samples, collected packet by packet.
#[derive(Default)]
pub(crate) struct Samples {
    /// Samples with their raw times and the positions of their packets.
    met: Vec<(Sample, u64, Key)>,
    tables: Vec<Tables>,
    events: Vec<Timebase>,
    /// Samples lost by the kernel's count, and by the recorder's.
    pub(crate) lost: u64,
    pub(crate) skipped: u64,
    /// Samples without a chain, or with an incomplete one.
    pub(crate) partial: u64,
    /// Samples of unknown clocks.
    pub(crate) untimed: u64,
}

/// Position of a packet: whether in the file itself, and the byte offset.
pub(crate) type Key = (bool, usize);

/// Fields of a sample's packet apart from the sample.
pub(crate) struct Around {
    pub(crate) ts: Option<u64>,
    pub(crate) clock: Option<u64>,
    pub(crate) defaults: Defaults,
    pub(crate) table: u32,
    pub(crate) key: Key,
}

impl Samples {
    /// Index of new tables for a writer that restarts.
    pub(crate) fn table(&mut self) -> Option<u32> {
        let number = u32::try_from(self.tables.len()).ok()?;
        self.tables.push(Tables::default());
        Some(number)
    }

    /// The defaults of a writer that states none.
    pub(crate) fn none(&mut self) -> Defaults {
        let name = counter::NAMES[counter::CPU_CLOCK].to_owned();
        let event = self.event(Timebase { name, period: 1 });
        Defaults { clock: crate::schema::clock::BUILTIN_BOOTTIME, event }
    }

    fn event(&mut self, timebase: Timebase) -> u16 {
        let known = self.events.iter().position(|e| *e == timebase);
        let place = known.unwrap_or_else(|| {
            if self.events.len() < MOST_EVENTS {
                self.events.push(timebase);
            }
            self.events.len() - 1
        });
        place as u16
    }

    /// Read `TracePacketDefaults`.
    pub(crate) fn defaults(&mut self, bytes: &[u8]) -> Result<Defaults, Broken> {
        let mut defaults = self.none();
        let mut base = None;
        Fields::of(bytes).each(|number, value| match (number, value) {
            (packet::TIMESTAMP_CLOCK_ID, Value::Int(n)) => defaults.clock = n,
            (perf::SAMPLE_DEFAULTS, Value::Bytes(b)) => base = Some(b),
            _ => {}
        })?;
        let Some(base) = base else { return Ok(defaults) };
        let mut inner = Ok(());
        Fields::of(base).each(|number, value| {
            if let (perf::DEFAULTS_TIMEBASE, Value::Bytes(b)) = (number, value) {
                match timebase_of(b) {
                    Ok(timebase) => defaults.event = self.event(timebase),
                    Err(broken) => inner = Err(broken),
                }
            }
        })?;
        inner.map(|()| defaults)
    }

    /// Read names, frames and chains from `InternedData`.
    pub(crate) fn intern(&mut self, data: &[u8], names: &Names, table: u32) -> Result<(), Broken> {
        let Some(table) = self.tables.get_mut(table as usize) else { return Ok(()) };
        let mut inner = Ok(());
        let read = Fields::of(data).each(|number, value| {
            let Value::Bytes(bytes) = value else { return };
            let read = match number {
                interned::FUNCTION_NAMES => string(bytes).map(|(id, name)| {
                    table.functions.insert(id, names.intern(name));
                }),
                interned::MAPPING_PATHS => string(bytes).map(|(id, name)| {
                    table.paths.insert(id, name.into());
                }),
                interned::MAPPINGS => list(bytes, perf::MAPPING_PATH).map(|(id, parts)| {
                    let parts = &parts[..parts.len().min(PARTS)];
                    table.mappings.insert(id, parts.into());
                }),
                interned::CALLSTACKS => list(bytes, perf::FRAME_IDS).map(|(id, frames)| {
                    let inner = frames.len().saturating_sub(DEEPEST);
                    table.chains.insert(id, frames[inner..].into());
                }),
                interned::FRAMES => frame(bytes).map(|(id, frame)| {
                    table.frames.insert(id, frame);
                }),
                _ => Ok(()),
            };
            inner = inner.and(read);
        });
        read.and(inner)
    }

    /// Read a `PerfSample`.
    pub(crate) fn sample(&mut self, bytes: &[u8], around: &Around) -> Result<(), Broken> {
        let (mut cpu, mut pid, mut tid) = (Cpu::UNKNOWN, Pid::UNKNOWN, Tid::UNKNOWN);
        let (mut chain, mut lost, mut skipped, mut partial) = (0, None, false, false);
        Fields::of(bytes).each(|number, value| match (number, value) {
            (perf::CPU, Value::Int(n)) => cpu = u16::try_from(n).map_or(Cpu::UNKNOWN, Cpu),
            (perf::PID, Value::Int(n)) => pid = Pid(n as u32),
            (perf::TID, Value::Int(n)) => tid = Tid(n as u32),
            (perf::CALLSTACK_IID, Value::Int(n)) => chain = n,
            (perf::UNWIND_ERROR, Value::Int(n)) => partial = n != perf::UNWIND_ERROR_NONE,
            (perf::KERNEL_RECORDS_LOST, Value::Int(n)) => lost = Some(n),
            (perf::SAMPLE_SKIPPED_REASON, Value::Int(_)) => skipped = true,
            _ => {}
        })?;
        if let Some(lost) = lost {
            self.lost = self.lost.saturating_add(lost);
            return Ok(());
        }
        if skipped {
            self.skipped += 1;
            return Ok(());
        }
        let Some(ts) = around.ts else { return Err(Broken) };
        self.partial += (partial || chain == 0) as u64;
        let clock = around.clock.unwrap_or(around.defaults.clock);
        let (event, table) = (around.defaults.event, around.table);
        self.met.push((Sample { ts, cpu, pid, tid, event, table, chain }, clock, around.key));
        Ok(())
    }

    /// Resolve the tables. `shift` is the offset of a clock to the clock of the trace, ns.
    pub(crate) fn finish(&mut self, names: &Names, shift: impl Fn(u64) -> Option<i64>) -> Sampled {
        let mut all = Vec::with_capacity(self.met.len());
        for (mut sample, clock, key) in std::mem::take(&mut self.met) {
            let Some(shift) = shift(clock) else {
                self.untimed += 1;
                continue;
            };
            sample.ts = sample.ts.saturating_add_signed(shift);
            all.push((sample, key));
        }
        // The recorder unwinds chains on several threads, so samples may be written out of order.
        all.sort_by_key(|(sample, _)| sample.ts);
        let mut room = MOST_PATHS;
        let tables = std::mem::take(&mut self.tables);
        let tables = tables.into_iter().map(|t| t.resolved(names, &mut room)).collect();
        let used = |event: usize| all.iter().any(|(s, _)| usize::from(s.event) == event);
        let events = std::mem::take(&mut self.events).into_iter().enumerate();
        let events = events.map(|(n, e)| (e.name, e.period, used(n))).collect();
        Sampled { all, tables, events, first_event: 0 }
    }
}

/// Number and content of an `InternedString`.
fn string(bytes: &[u8]) -> Result<(u64, &[u8]), Broken> {
    let (mut id, mut text): (_, &[u8]) = (0, &[]);
    Fields::of(bytes).each(|number, value| match (number, value) {
        (interned::IID, Value::Int(n)) => id = n,
        (interned::STR, Value::Bytes(b)) => text = b,
        _ => {}
    })?;
    Ok((id, text))
}

/// Number of a message, and the numbers in its list `wanted`, packed or not.
fn list(bytes: &[u8], wanted: u32) -> Result<(u64, Vec<u64>), Broken> {
    let (mut id, mut all, mut inner) = (0, Vec::new(), Ok(()));
    Fields::of(bytes).each(|number, value| match (number, value) {
        (interned::IID, Value::Int(n)) => id = n,
        (number, Value::Int(n)) if number == wanted => all.push(n),
        (number, Value::Bytes(b)) if number == wanted => {
            let mut list = Packed(b);
            while !list.is_empty() {
                match list.next() {
                    Ok(n) => all.push(n),
                    Err(broken) => return inner = Err(broken),
                }
            }
        }
        _ => {}
    })?;
    inner.map(|()| (id, all))
}

fn frame(bytes: &[u8]) -> Result<(u64, RawFrame), Broken> {
    let (mut id, mut frame) = (0, RawFrame::default());
    Fields::of(bytes).each(|number, value| match (number, value) {
        (interned::IID, Value::Int(n)) => id = n,
        (perf::FRAME_FUNCTION, Value::Int(n)) => frame.function = n,
        (perf::FRAME_MAPPING, Value::Int(n)) => frame.mapping = n,
        (perf::FRAME_REL_PC, Value::Int(n)) => frame.rel_pc = n,
        (perf::FRAME_KIND, Value::Int(n)) => frame.kernel = n == perf::KIND_KERNEL,
        _ => {}
    })?;
    Ok((id, frame))
}

fn timebase_of(bytes: &[u8]) -> Result<Timebase, Broken> {
    let (mut frequency, mut period, mut name, mut own) = (None, None, None, None);
    let mut inner = Ok(());
    Fields::of(bytes).each(|number, value| match (number, value) {
        (timebase::FREQUENCY, Value::Int(n)) => frequency = Some(n),
        (timebase::PERIOD, Value::Int(n)) => period = Some(n),
        (timebase::COUNTER, Value::Int(n)) => {
            let known = usize::try_from(n).ok().and_then(|n| counter::NAMES.get(n));
            name = known.map(|known| (*known).to_owned());
        }
        (timebase::TRACEPOINT, Value::Bytes(b)) => {
            inner = Fields::of(b).each(|number, value| {
                if let (timebase::TRACEPOINT_NAME, Some(text)) = (number, value.text()) {
                    // Renamed, because a sample is not the event itself, which has fields.
                    name = Some(format!("samples of {}", text.replace('/', ":")));
                }
            });
        }
        (timebase::RAW_EVENT, Value::Bytes(_)) => name = Some("raw event".to_owned()),
        (timebase::NAME, value) => own = value.text(),
        _ => {}
    })?;
    inner?;
    let name = name.unwrap_or_else(|| counter::NAMES[counter::CPU_CLOCK].to_owned());
    let of_time = [counter::CPU_CLOCK, counter::TASK_CLOCK].map(|n| counter::NAMES[n]);
    // At a frequency each sample of a clock stands for the same amount of time; for other events
    // only the kernel knows how many there were.
    let of_frequency = || match frequency {
        Some(f @ 1..) if of_time.contains(&&*name) => 1_000_000_000 / f,
        _ => 1,
    };
    let period = period.filter(|&p| p > 0).unwrap_or_else(of_frequency).max(1);
    // A name chosen by the user says nothing about which event it is.
    let name = match own {
        Some(own) if !own.is_empty() && own != name => format!("{name}/name={own}/"),
        _ => name,
    };
    Ok(Timebase { name, period })
}

/// The resolved tables of a writer.
struct Resolved {
    frames: Interned<(Frame, FrameName)>,
    chains: Interned<Box<[u64]>>,
}

impl Tables {
    fn resolved(self, names: &Names, room: &mut usize) -> Resolved {
        let mut dsos: Interned<(NameId, bool)> = FxHashMap::default();
        for (&id, parts) in &self.mappings {
            let parts = parts.iter().filter_map(|part| self.paths.get(part));
            let path = path(parts.map(|p| &**p), room);
            // The recorder's names for the kernel, and perf's.
            let kernel = matches!(&*path, b"kernel" | b"/kernel" | b"[kernel.kallsyms]");
            let path = if kernel { b"[kernel.kallsyms]" } else { &*path };
            dsos.insert(id, (names.intern(path), kernel));
        }
        let of = |raw: &RawFrame| {
            let (dso, kernel) = dsos.get(&raw.mapping).copied().unwrap_or_default();
            let function = self.functions.get(&raw.function).copied().unwrap_or(NameId::NONE);
            let frame = Frame { address: raw.rel_pc, kernel: kernel || raw.kernel };
            (frame, FrameName { dso, function })
        };
        let frames = self.frames.iter().map(|(&id, raw)| (id, of(raw))).collect();
        Resolved { frames, chains: self.chains }
    }
}

/// A path from its parts; a single part without a slash is a plain name.
fn path<'a>(parts: impl Iterator<Item = &'a [u8]>, room: &mut usize) -> Vec<u8> {
    let mut path = Vec::new();
    let mut count = 0;
    for part in parts {
        let most = LONGEST_PATH.min(*room).saturating_sub(path.len() + 1);
        path.push(b'/');
        path.extend_from_slice(&part[..part.len().min(most)]);
        count += 1;
    }
    *room = room.saturating_sub(path.len());
    let is_whole = path.starts_with(b"//") || path.starts_with(b"/[");
    if count == 1 && (is_whole || matches!(&*path, b"/kernel" | b"/ERROR")) {
        path.remove(0);
    }
    path
}

/// All samples of a trace, in order of time.
pub(crate) struct Sampled {
    all: Vec<(Sample, Key)>,
    tables: Vec<Resolved>,
    /// Name and period, and whether it has samples.
    events: Vec<(String, u64, bool)>,
    first_event: u16,
}

impl Sampled {
    /// The number of samples.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Times of the first and the last sample.
    pub(crate) fn span(&self) -> Option<(Nanos, Nanos)> {
        Some((self.all.first()?.0.ts, self.all.last()?.0.ts))
    }

    /// Whether any sample has a call chain.
    pub(crate) fn has_chains(&self) -> bool {
        self.all.iter().any(|(s, _)| s.chain != 0)
    }

    /// Whether any sample belongs to a hardware counter.
    pub(crate) fn has_counters(&self) -> bool {
        let hardware = &counter::NAMES[counter::FIRST_HARDWARE..];
        self.events.iter().any(|(name, _, used)| {
            let word = name.split('/').next().unwrap_or("");
            *used && hardware.contains(&word)
        })
    }

    /// The events of the samples; `before` is the number of events listed before them.
    pub(crate) fn describe(&mut self, before: usize) -> Vec<EventDesc> {
        self.first_event = u16::try_from(before).unwrap_or(u16::MAX - MOST_EVENTS as u16);
        let desc = |(name, _, used): &(String, u64, bool)| EventDesc {
            name: name.clone(),
            system: String::new(),
            presence: if *used { Presence::Seen } else { Presence::Described },
        };
        if self.all.is_empty() { Vec::new() } else { self.events.iter().map(desc).collect() }
    }

    /// The packets of the samples, with the time and CPU of each.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Key, Nanos, Cpu)> + '_ {
        self.all.iter().map(|(s, key)| (*key, s.ts, s.cpu))
    }

    /// Functions of the kernel in the chains.
    pub(crate) fn kernel_functions(&self) -> impl Iterator<Item = NameId> + '_ {
        let frames = self.tables.iter().flat_map(|t| t.frames.values());
        frames.filter(|(frame, _)| frame.kernel).map(|(_, name)| name.function)
    }

    /// A decoder of the samples.
    pub(crate) fn decoder(&self) -> Box<dyn RunDecoder + '_> {
        Box::new(Decoder { sampled: self, next: 0 })
    }

    fn chain(&self, sample: &Sample, batch: &mut Batch) -> StackRef {
        let Some(table) = self.tables.get(sample.table as usize) else { return StackRef::NONE };
        let Some(chain) = table.chains.get(&sample.chain) else { return StackRef::NONE };
        // The outermost comes first.
        let frames = chain.iter().rev().filter_map(|id| table.frames.get(id).copied());
        batch.push_named_stack(frames)
    }
}

struct Decoder<'a> {
    sampled: &'a Sampled,
    next: usize,
}

impl RunDecoder for Decoder<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        while let Some((sample, _)) = self.sampled.all.get(self.next) {
            if batch.is_full() {
                return Ok(true);
            }
            self.next += 1;
            let stack = self.sampled.chain(sample, batch);
            let period = self.sampled.events.get(usize::from(sample.event)).map_or(1, |e| e.1);
            batch.events.push(Event {
                ts: sample.ts,
                tid: sample.tid,
                pid: sample.pid,
                comm: NameId::NONE,
                cpu: sample.cpu,
                id: EventId(self.sampled.first_event.saturating_add(sample.event)),
                what: What::Sample { period, stack },
            });
        }
        Ok(false)
    }
}
