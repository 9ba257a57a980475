//! A profile for pprof: its `profile.proto`, in protobuf's wire format, compressed with gzip.
//!
//! Field numbers are those of <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//! Their order in the file is free: samples come first, so that everything they refer to is known
//! when it is written.

use crate::chains::Frame;
use crate::collect::{Profile, Sampled, Sum};
use crate::names::{FunctionId, Functions};
use crate::rows::known;
use flate2::{Compression, write::GzEncoder};
use holdup_passes::Filter;
use holdup_symbols::Symbols;
use holdup_trace::{Cpu, Pid, TraceInfo};
use prost::encoding::{WireType, encode_key, encode_varint};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// A message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Append a number; 0 is the default of an omitted field.
    fn int(mut self, field: u32, number: u64) -> Message {
        if number != 0 {
            encode_key(field, WireType::Varint, &mut self.0);
            encode_varint(number, &mut self.0);
        }
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Message {
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u32, message: Message) -> Message {
        self.bytes(field, &message.0)
    }

    fn packed(self, field: u32, numbers: impl IntoIterator<Item = u64>) -> Message {
        let mut packed = Vec::new();
        numbers.into_iter().for_each(|number| encode_varint(number, &mut packed));
        self.bytes(field, &packed)
    }
}

/// The string table of a profile.
#[derive(Default)]
struct Strings {
    ids: FxHashMap<Arc<str>, u64>,
    all: Vec<Arc<str>>,
}

impl Strings {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let (id, text) = (self.all.len() as u64, Arc::<str>::from(text));
        self.all.push(text.clone());
        self.ids.insert(text, id);
        id
    }
}

/// The output, and everything referred to so far; ids begin with 1.
struct Writer<'a, 'i, W: Write> {
    profile: &'a Profile,
    functions: Functions<'a, 'i>,
    strings: Strings,
    locations: FxHashMap<(Pid, Frame), u64>,
    places: Vec<(Pid, Frame)>,
    out: GzEncoder<W>,
}

/// Write the samples of the threads that `filter` selects, by thread, CPU and chain: the number of
/// samples, and the count, as nanoseconds of CPU time if it is time. Labels are `comm`, `pid`,
/// `tid` and `cpu`. Memory grows with distinct chains.
///
/// # Errors
/// Errors of `out`.
pub fn pprof(
    profile: &Profile,
    filter: &Filter,
    info: &TraceInfo,
    symbols: &mut Symbols<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = Writer {
        profile,
        functions: Functions::new(profile, symbols),
        strings: Strings::default(),
        locations: FxHashMap::default(),
        places: Vec::new(),
        out: GzEncoder::new(out, Compression::default()),
    };
    // The first string is always the empty one.
    writer.strings.id("");
    writer.head(info)?;
    for (who, sum, comm) in profile.wanted(filter) {
        writer.sample(who, *sum, &comm)?;
    }
    let sourced = writer.locations()?;
    writer.mappings(&sourced)?;
    for text in std::mem::take(&mut writer.strings.all) {
        writer.put(Message::default().bytes(6, text.as_bytes()))?;
    }
    writer.out.finish()?.flush()
}

/// Which kinds of names are known in a mapping's code.
#[derive(Clone, Copy, Default)]
struct Sourced {
    used: bool,
    functions: bool,
    lines: bool,
    inlined: bool,
}

impl<W: Write> Writer<'_, '_, W> {
    fn put(&mut self, message: Message) -> io::Result<()> {
        self.out.write_all(&message.0)
    }

    fn unit(&mut self, kind: &str, unit: &str) -> Message {
        Message::default().int(1, self.strings.id(kind)).int(2, self.strings.id(unit))
    }

    fn head(&mut self, info: &TraceInfo) -> io::Result<()> {
        let name = self.profile.event.as_ref().map_or("", |e| e.name.as_str());
        let (kind, unit) = match self.profile.is_of_time() {
            true => ("cpu", "nanoseconds"),
            false => (name, "count"),
        };
        let whole = self.profile.whole();
        let duration = info.span.map_or(0, |(first, last)| last - first);
        let types = [self.unit("samples", "count"), self.unit(kind, unit)];
        let period_type = self.unit(kind, unit);
        let [samples, counted] = types;
        self.put(
            Message::default()
                .message(1, samples)
                .message(1, counted)
                .int(9, info.recorded_ns.unwrap_or(0))
                .int(10, duration)
                .message(11, period_type)
                .int(12, whole.period.checked_div(whole.samples).unwrap_or(0)),
        )
    }

    fn sample(&mut self, who: &Sampled, sum: Sum, comm: &str) -> io::Result<()> {
        let mut locations = Vec::new();
        for frame in self.profile.code.frames(who.chain) {
            let place = (self.functions.owner(who.pid, frame), *frame);
            let next = self.places.len() as u64 + 1;
            let id = *self.locations.entry(place).or_insert(next);
            if id == next {
                self.places.push(place);
            }
            locations.push(id);
        }
        let cpu = (who.cpu != Cpu::UNKNOWN).then_some(who.cpu.0.into());
        let (name, comm) = (self.strings.id("comm"), self.strings.id(comm));
        let mut sample = Message::default()
            .packed(1, locations)
            .packed(2, [sum.samples, sum.period])
            .message(3, Message::default().int(1, name).int(2, comm));
        for (name, id) in [("pid", known(who.pid.0)), ("tid", known(who.tid.0)), ("cpu", cpu)] {
            if let Some(id) = id {
                let name = self.strings.id(name);
                sample = sample.message(3, Message::default().int(1, name).int(3, id.into()));
            }
        }
        self.put(Message::default().message(2, sample))
    }

    /// Write the places in the code that were sampled, and their functions.
    fn locations(&mut self) -> io::Result<Vec<Sourced>> {
        let mut sourced = vec![Sourced::default(); self.profile.code.origins().len()];
        let mut functions: FxHashMap<(FunctionId, Option<Arc<str>>), u64> = FxHashMap::default();
        for (i, (pid, frame)) in std::mem::take(&mut self.places).into_iter().enumerate() {
            let mut location = Message::default().int(1, i as u64 + 1).int(3, frame.address);
            let sites = self.functions.sites(pid, &frame);
            let mut known = Sourced { used: true, inlined: sites.len() > 1, ..Sourced::default() };
            for site in sites.iter() {
                let function = self.functions.get(site.function);
                let Some(name) = function.name.clone() else { continue };
                known.functions = true;
                known.lines |= site.source.is_some();
                let file = site.source.as_ref().map(|source| source.file.clone());
                let next = functions.len() as u64 + 1;
                let id = *functions.entry((site.function, file.clone())).or_insert(next);
                if id == next {
                    let name = self.strings.id(&name);
                    let file = file.map_or(0, |file| self.strings.id(&file));
                    let function = Message::default().int(1, id).int(2, name).int(3, name);
                    self.put(Message::default().message(5, function.int(4, file)))?;
                }
                let line = site.source.as_ref().map_or(0, |source| source.line.into());
                location = location.message(4, Message::default().int(1, id).int(2, line));
            }
            let is_mapped = self.profile.code.mapping(&frame).is_some();
            if let Some(mapping) = sourced.get_mut(frame.origin as usize).filter(|_| is_mapped) {
                location = location.int(2, u64::from(frame.origin) + 1);
                mapping.used |= known.used;
                mapping.functions |= known.functions;
                mapping.lines |= known.lines;
                mapping.inlined |= known.inlined;
            }
            self.put(Message::default().message(4, location))?;
        }
        Ok(sourced)
    }

    fn mappings(&mut self, sourced: &[Sourced]) -> io::Result<()> {
        for (id, (origin, known)) in (1..).zip(self.profile.code.origins().iter().zip(sourced)) {
            let Some(mapping) = origin.mapping().filter(|_| known.used) else { continue };
            let build = self.functions.build_of(mapping).map(|id| id.to_string());
            let file = self.strings.id(&self.profile.names.get(mapping.file));
            let build = build.map_or(0, |build| self.strings.id(&build));
            let mapping = Message::default()
                .int(1, id)
                .int(2, mapping.start)
                .int(3, mapping.start.saturating_add(mapping.len))
                .int(4, mapping.offset)
                .int(5, file)
                .int(6, build)
                .int(7, known.functions.into())
                .int(8, known.lines.into())
                .int(9, known.lines.into())
                .int(10, known.inlined.into());
            self.put(Message::default().message(3, mapping))?;
        }
        Ok(())
    }
}
