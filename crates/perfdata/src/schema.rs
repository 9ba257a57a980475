//! From a record to the attr it belongs to, and to its time.

use crate::attr::{Attr, flag, kind, sample};
use crate::calls::{Call, Calls, Usual};
use crate::layout::{Layout, Trailer};
use crate::probe::Probe;
use crate::{mapped, record};
use holdup_trace::EventId;
use holdup_tracepoint::{Endian, Plan};
use rustc_hash::FxHashMap;

/// One event of the file, ready for decoding.
#[derive(Debug)]
pub(crate) struct Decodable {
    pub(crate) event: EventId,
    pub(crate) layout: Layout,
    pub(crate) trailer: Trailer,
    /// Period of samples that do not carry one.
    pub(crate) period: u64,
    pub(crate) class: Class,
    /// Its samples carry the values of its group's counters.
    pub(crate) reads_group: bool,
    /// Its samples show the system call ([`Attr::tells_calls`]), and more of the call chain.
    pub(crate) tells_calls: bool,
    pub(crate) has_chains: bool,
    /// What a sample of it proves, as bits of [`Schema::witnesses`].
    pub(crate) witness: u8,
}

/// What a sample of an event becomes.
#[derive(Debug)]
pub(crate) enum Class {
    /// A tracepoint with its plan.
    Tracepoint(Plan),
    /// A tracepoint whose format the file does not describe.
    NoFormat,
    /// A user probe in a runtime.
    Probe(Probe),
    /// Anything else.
    Counter,
}

/// What the samples with each id are; `events[i]` belongs to `attrs[i]`.
fn calls_by_id(attrs: &[Attr], events: &[Decodable]) -> Calls {
    let is_call = |event: &&Decodable| {
        matches!(event.class, Class::Tracepoint(Plan::SysEnter64 { .. } | Plan::SysExit64 { .. }))
    };
    let mut usual = events.iter().filter(is_call).filter_map(|event| Usual::of(&event.layout));
    let usual = usual.next().unwrap_or_default();
    let of = |event: &Decodable| match &event.class {
        Class::Tracepoint(plan) => Call::of(event.event, &event.layout, Some(plan), usual),
        Class::Probe(_) | Class::Counter => Call::of(event.event, &event.layout, None, usual),
        Class::NoFormat => Call::Not,
    };
    let each = |(attr, event): (&Attr, &Decodable)| {
        let call = of(event);
        attr.ids.iter().map(|&id| (id, call)).collect::<Vec<_>>()
    };
    Calls::new(&attrs.iter().zip(events).flat_map(each).collect::<Vec<_>>(), usual)
}

/// How to find the event of a sample.
#[derive(Debug)]
enum Lookup {
    /// There is one event, or the file has no means to distinguish several.
    First,
    /// By the id at this offset from the start of a sample.
    Id(u16),
    /// Old files with several tracepoints and no ids: by `common_type` in the payload.
    CommonType(FxHashMap<u16, u16>),
}

/// Maps event ids to indices. Ids are counted from boot, so they are small and close together and
/// an array is enough; a file with other ids gets a hash map.
#[derive(Debug)]
enum Ids {
    Dense {
        base: u64,
        index: Vec<u16>,
    },
    /// Id to the event's index and the number of ids before it.
    Sparse(FxHashMap<u64, (u16, u32)>),
}

/// Largest array of ids worth having: 512 KiB.
const DENSE_SPAN: u64 = 1 << 18;

impl Ids {
    fn new(attrs: &[Attr]) -> Ids {
        let all = || {
            attrs.iter().enumerate().flat_map(|(i, a)| a.ids.iter().map(move |&id| (id, i as u16)))
        };
        let base = all().map(|(id, _)| id).min().unwrap_or(0);
        let span = all().map(|(id, _)| id - base).max().unwrap_or(0);
        if span < DENSE_SPAN {
            let mut index = vec![u16::MAX; span as usize + 1];
            for (id, i) in all() {
                index[(id - base) as usize] = i;
            }
            Ids::Dense { base, index }
        } else {
            Ids::Sparse(all().zip(0..).map(|((id, event), n)| (id, (event, n))).collect())
        }
    }

    #[inline(always)]
    fn get(&self, id: u64) -> Option<usize> {
        match self {
            Ids::Dense { base, index } => {
                index.get(usize::try_from(id.wrapping_sub(*base)).ok()?).map(|&i| i as usize)
            }
            Ids::Sparse(map) => map.get(&id).map(|&(i, _)| i as usize),
        }
    }

    /// A small number that is unique to the id.
    fn instance(&self, id: u64) -> Option<u32> {
        match self {
            Ids::Dense { base, .. } => u32::try_from(id.wrapping_sub(*base)).ok(),
            Ids::Sparse(map) => map.get(&id).map(|&(_, n)| n),
        }
    }
}

/// When a record happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    At(u64),
    /// The record has no time; it counts as simultaneous with its predecessor in the file.
    Unsaid,
    /// The record yields no event.
    Never,
}

impl When {
    /// The time field's value.
    #[inline(always)]
    fn stamp(time: u64) -> When {
        if time == u64::MAX { When::Unsaid } else { When::At(time) }
    }
}

/// Where samples have their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleTime {
    /// All at the same offset; 0 if they have none.
    At(u16),
    /// It depends on the event. The time, and the id that tells the event, are in the first so many
    /// bytes; 0 if they are not at fixed offsets.
    ByEvent { within: u16 },
}

/// All events of a file, and how to find the event of a record.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) events: Vec<Decodable>,
    lookup: Lookup,
    ids: Ids,
    /// System calls by id, if samples are found by it.
    pub(crate) calls: Calls,
    pub(crate) sample_time: SampleTime,
    /// The trailer of other records if it is the same for all events.
    trailer: Option<Trailer>,
    /// Distance of the id from the end of other records if trailers differ.
    trailer_id: u16,
    /// Everything that samples of this file can prove.
    pub(crate) witnesses: u8,
    /// Whether mappings matter: samples have code addresses, or each mapping carries its file's
    /// build id, so that variables can be named.
    pub(crate) maps: bool,
}

/// Bits for what the index looks for: whether a hardware counter counted, and which events that
/// always happen were seen, in the order of [`EventKind::ALWAYS_HAPPEN`] from bit 1 on.
pub(crate) mod witness {
    use crate::attr::Attr;
    use holdup_trace::EventKind;

    /// A hardware counter.
    pub(crate) const COUNTER: u8 = 1;

    const _: () = assert!(EventKind::ALWAYS_HAPPEN.len() < u8::BITS as usize);

    /// What a sample of `attr`, whose event is `of`, proves. With `groups`, samples that read a
    /// group prove counters.
    pub(crate) fn of(attr: &Attr, of: Option<EventKind>, groups: bool) -> u8 {
        if attr.counts_hardware() {
            return COUNTER;
        }
        let counters = if groups && attr.reads_group() { COUNTER } else { 0 };
        counters
            | EventKind::ALWAYS_HAPPEN
                .iter()
                .position(|&kind| Some(kind) == of)
                .map_or(0, |bit| 2 << bit)
    }
}

impl Schema {
    /// `classes[i]` belongs to `attrs[i]`, with what its samples prove. Only the first 65,534
    /// events are kept: [`EventId`] cannot name more.
    pub(crate) fn new(attrs: &[Attr], classes: Vec<(Class, u8)>) -> Schema {
        let attrs = &attrs[..attrs.len().min(EventId::SIDEBAND.0 as usize)];
        let events: Vec<Decodable> = attrs
            .iter()
            .zip(classes)
            .enumerate()
            .map(|(i, (a, (class, witness)))| Decodable {
                event: EventId(i as u16),
                layout: Layout::new(a),
                trailer: Trailer::new(a),
                period: a.default_period(),
                reads_group: a.reads_group(),
                tells_calls: a.tells_calls(),
                has_chains: a.has_chains(),
                class,
                witness,
            })
            .collect();
        let same = |f: &dyn Fn(&Decodable) -> u16| {
            events.first().map(f).filter(|v| events.iter().all(|e| f(e) == *v))
        };
        let id = same(&|e| e.layout.id).unwrap_or(0);
        let any_ids = attrs.iter().any(|a| !a.ids.is_empty());
        let lookup = if events.len() > 1 && id != 0 && any_ids {
            Lookup::Id(id)
        } else if events.len() > 1 && attrs.iter().any(|a| a.kind == kind::TRACEPOINT) {
            let tracepoints = attrs.iter().enumerate().filter(|(_, a)| a.kind == kind::TRACEPOINT);
            Lookup::CommonType(tracepoints.map(|(i, a)| (a.config as u16, i as u16)).collect())
        } else {
            Lookup::First
        };
        let by_id = matches!(lookup, Lookup::Id(_));
        // With several events this must hold for all: to whichever a sample turns out to belong,
        // the decoder must read the time where the index did.
        let at = match lookup {
            Lookup::First => events.first().map(|e| e.layout.time),
            _ => same(&|e| e.layout.time),
        };
        let sample_time = match (at, &lookup) {
            (Some(at), _) => SampleTime::At(at),
            (None, Lookup::CommonType(_)) => SampleTime::ByEvent { within: 0 },
            (None, Lookup::Id(_) | Lookup::First) => {
                let last = events.iter().map(|e| e.layout.time).max().unwrap_or(0).max(id);
                SampleTime::ByEvent { within: last + 8 }
            }
        };
        let first = events.first().map(|e| e.trailer);
        let trailer = first.filter(|t| !by_id || events.iter().all(|e| e.trailer == *t));
        let trailer_id = same(&|e| e.trailer.id).unwrap_or(0);
        let witnesses = events.iter().fold(0, |all, e| all | e.witness);
        let ids = Ids::new(attrs);
        let maps = attrs.iter().any(|attr| shows_code(attr) || attr.has(flag::BUILD_ID));
        let calls = match lookup {
            Lookup::Id(_) => calls_by_id(attrs, &events),
            _ => Calls::default(),
        };
        Schema { maps, ids, calls, events, lookup, sample_time, trailer, trailer_id, witnesses }
    }

    /// The event a sample belongs to.
    #[inline(always)]
    pub(crate) fn of_sample<E: Endian>(&self, rec: &[u8]) -> Option<&Decodable> {
        match &self.lookup {
            Lookup::Id(at) => match E::u64(rec, *at as usize) {
                // perf attributes a sample without an id to the first event.
                0 => self.events.first(),
                id => self.events.get(self.ids.get(id)?),
            },
            Lookup::First => self.events.first(),
            Lookup::CommonType(map) => self.of_common_type::<E>(map, rec),
        }
    }

    #[cold]
    fn of_common_type<E: Endian>(
        &self,
        map: &FxHashMap<u16, u16>,
        rec: &[u8],
    ) -> Option<&Decodable> {
        let first = self.events.first()?;
        let raw = match first.layout.variable {
            true => first.layout.walk::<E>(rec)?.raw,
            false => rec.get(first.layout.raw as usize + 4..)?,
        };
        match map.get(&E::u16(raw, 0)) {
            Some(&i) => self.events.get(i as usize),
            None => Some(first),
        }
    }

    /// The event of a group's member, and the number of this counter instance.
    pub(crate) fn member(&self, id: u64) -> Option<(&Decodable, u32)> {
        Some((self.events.get(self.ids.get(id)?)?, self.ids.instance(id)?))
    }

    /// Whether a sample's id is one of the file's; true if ids do not distinguish events.
    pub(crate) fn knows<E: Endian>(&self, rec: &[u8]) -> bool {
        match self.lookup {
            Lookup::Id(at) => {
                self.ids.get(E::u64(rec, at as usize)).is_some_and(|i| i < self.events.len())
            }
            _ => true,
        }
    }

    /// The trailer of a record that is not a sample.
    #[inline]
    pub(crate) fn trailer_of<E: Endian>(&self, rec: &[u8]) -> Trailer {
        if let Some(t) = self.trailer {
            return t;
        }
        let by_id = || {
            let at = rec.len().checked_sub(self.trailer_id as usize)?;
            let id = if self.trailer_id == 0 { 0 } else { E::u64(rec, at) };
            self.events.get(self.ids.get(id)?)
        };
        by_id().or(self.events.first()).map_or(Trailer::default(), |e| e.trailer)
    }

    /// The time of a record of any type. Index and decoder both use this, so that a run's events
    /// are in the order that the index found.
    #[inline(always)]
    pub(crate) fn when<E: Endian>(&self, kind: u32, rec: &[u8]) -> When {
        if kind != record::SAMPLE {
            return self.when_else::<E>(kind, rec);
        }
        match self.time_at::<E>(rec) {
            None => When::Never,
            Some(0) => When::Unsaid,
            Some(at) => rec
                .get(at..)
                .and_then(|rest| rest.first_chunk::<8>())
                .map_or(When::Never, |time| When::stamp(E::u64(time, 0))),
        }
    }

    /// The time of a sample in a file whose events have it at different offsets; `u64::MAX` if it
    /// has none.
    #[inline(never)]
    pub(crate) fn time_by_id<E: Endian>(&self, sample: &[u8]) -> u64 {
        match self.when::<E>(record::SAMPLE, sample) {
            When::At(time) => time,
            When::Unsaid | When::Never => u64::MAX,
        }
    }

    /// Where a sample has its time: 0 if it has none, `None` if it belongs to no event.
    #[inline(always)]
    fn time_at<E: Endian>(&self, sample: &[u8]) -> Option<usize> {
        match self.sample_time {
            SampleTime::At(at) => Some(at.into()),
            SampleTime::ByEvent { .. } => Some(self.of_sample::<E>(sample)?.layout.time.into()),
        }
    }

    #[inline(never)]
    fn when_else<E: Endian>(&self, kind: u32, rec: &[u8]) -> When {
        let stamp = |at: usize| When::stamp(E::u64(rec, at));
        match kind {
            record::MMAP | record::MMAP2 | record::KSYMBOL if !self.maps => When::Never,
            record::COMM
            | record::FORK
            | record::EXIT
            | record::LOST
            | record::SWITCH
            | record::SWITCH_CPU_WIDE
            | record::MMAP
            | record::MMAP2
            | record::KSYMBOL => {
                let t = self.trailer_of::<E>(rec);
                if rec.len() < record::HEADER + side_band_body(kind) + t.len as usize {
                    return When::Never;
                }
                match t.time as usize {
                    // FORK and EXIT carry the time in their body as well.
                    0 if matches!(kind, record::FORK | record::EXIT) && rec.len() >= 32 => {
                        stamp(24)
                    }
                    0 => When::Unsaid,
                    back => stamp(rec.len() - back),
                }
            }
            _ => When::Never,
        }
    }
}

/// Whether samples of `attr` show which code ran: they have call chains, or an address of an event
/// that is no tracepoint (a tracepoint's address is always the same).
fn shows_code(attr: &Attr) -> bool {
    let has = |bit| attr.sample_type & bit != 0;
    let counts = attr.kind != kind::SOFTWARE || attr.config != kind::DUMMY;
    attr.has_chains() || attr.kind != kind::TRACEPOINT && counts && has(sample::IP)
}

/// Fewest bytes between header and trailer of a record that becomes a side-band event.
fn side_band_body(kind: u32) -> usize {
    match kind {
        record::FORK | record::EXIT => 24,
        record::LOST => 16,
        record::COMM | record::SWITCH_CPU_WIDE => 8,
        record::MMAP | record::MMAP2 | record::KSYMBOL => mapped::least_body(kind),
        _ => 0,
    }
}
