//! Removes names from packets, so that confidential traces can be shared.
//!
//! Only fields listed in this file are written: fields that the reader reads and whose meaning is
//! known. Everything else is removed, including fields with a wrong type, because the recorder may
//! be newer than the list. Of events that holdup does not understand, only the fact that they
//! happened remains.

use crate::bundle::Compact;
use crate::fields::{Holds, Plan};
use crate::schema::{event, generic, interned, perf};
use crate::table::{Table, is_known, known_plan};
use crate::wire::{Fields, Packed, Value};
use holdup_trace::{EventKind, NameId, Names};
use prost::encoding::{WireType, encode_key, encode_varint};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// How a field is written.
#[derive(Clone, Copy)]
enum Rule {
    Number,
    /// A list of numbers, packed or not.
    Numbers,
    /// A name, which is replaced.
    Name,
    /// The recorder's own text, which stays.
    Stay,
    /// The name of an event.
    EventName,
    /// The name of an operating system or a machine type.
    System,
    /// A version; only its numbers stay.
    Release,
    /// The name of a function, which stays if it is a function of the kernel.
    Function,
    /// A part of the path of a file.
    Path,
    Inside(&'static [(u32, Rule)]),
    /// `CompactSched`, whose lists of numbers must fit together: text in place of a number would
    /// be copied.
    Lists,
    /// `FtraceEvent`.
    Event,
    /// `GenericEventDescriptor`.
    Descriptor,
}

use Rule::{Descriptor, Event, EventName, Function, Inside, Lists, Name, Number, Numbers, Path};
use Rule::{Release, Stay, System};

/// Names that `uname` prints for systems and machines.
const SYSTEMS: [&[u8]; 9] = [
    b"Linux", b"x86_64", b"aarch64", b"armv8l", b"armv7l", b"i686", b"riscv64", b"ppc64le",
    b"s390x",
];

/// Fields of `TracePacket`.
const PACKET: &[(u32, Rule)] = &[
    (1, Inside(BUNDLE)),
    (2, Inside(&[(1, Inside(PROCESS)), (2, Inside(THREAD)), (3, Number)])),
    (3, Number),
    (6, Inside(&[(1, Inside(&[(1, Number), (2, Number), (3, Number), (4, Number)])), (2, Number)])),
    (8, Number),
    (10, Number),
    (12, Inside(INTERNED)),
    (13, Number),
    (33, Inside(&[(2, Inside(&[(1, Inside(&[(100, Inside(FTRACE_CONFIG))]))]))])),
    (34, Inside(&[(1, Number), (2, Inside(CPU_STATS)), (6, EventName), (7, EventName)])),
    (35, Inside(&[(1, Inside(&[(3, Number), (18, Number)]))])),
    (41, Number),
    (42, Number),
    (45, Inside(SYSTEM)),
    (58, Number),
    (59, Inside(&[(58, Number), (12, Inside(&[(1, Inside(TIMEBASE))]))])),
    (66, Inside(SAMPLE)),
    (79, Number),
    (87, Number),
    (98, Number),
];

/// Fields that mean nothing alone: a packet that has only these is dropped.
const FRAME: [u32; 8] = [3, 8, 10, 13, 58, 79, 87, 98];

const FTRACE_CONFIG: &[(u32, Rule)] = &[(1, EventName), (35, Numbers)];

const BUNDLE: &[(u32, Rule)] = &[
    (1, Number),
    (2, Event),
    (3, Number),
    (4, Lists),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, Inside(&[(1, Number), (2, Number)])),
    (9, Number),
    (10, Number),
    (11, Descriptor),
];

const COMPACT: &[(u32, Rule)] = &[
    (1, Numbers),
    (2, Numbers),
    (3, Numbers),
    (4, Numbers),
    (5, Name),
    (6, Numbers),
    (7, Numbers),
    (8, Numbers),
    (9, Numbers),
    (10, Numbers),
    (11, Numbers),
    (12, Numbers),
];

const PROCESS: &[(u32, Rule)] = &[
    (1, Number),
    (2, Number),
    (3, Name),
    (5, Number),
    (6, Numbers),
    (7, Number),
    (8, Number),
    (9, Number),
];

const THREAD: &[(u32, Rule)] = &[(1, Number), (2, Name), (3, Number), (4, Numbers)];

const CPU_STATS: &[(u32, Rule)] =
    &[(1, Number), (2, Number), (3, Number), (4, Number), (5, Number), (8, Number), (9, Number)];

const SYSTEM: &[(u32, Rule)] = &[
    (1, Inside(&[(1, System), (3, Release), (4, System)])),
    (3, Number),
    (4, Release),
    (5, Number),
    (6, Number),
    (8, Number),
    (16, Number),
];

/// Fields of `InternedData` for samples and kernel functions.
const INTERNED: &[(u32, Rule)] = &[
    (interned::FUNCTION_NAMES, Inside(&[(1, Number), (2, Function)])),
    (interned::FRAMES, Inside(&[(1, Number), (2, Number), (3, Number), (4, Number), (7, Number)])),
    (interned::CALLSTACKS, Inside(&[(1, Number), (2, Numbers)])),
    (interned::MAPPING_PATHS, Inside(&[(1, Number), (2, Path)])),
    (
        interned::MAPPINGS,
        Inside(&[(1, Number), (3, Number), (4, Number), (5, Number), (7, Numbers), (8, Number)]),
    ),
    // Perfetto resolves addresses of the kernel only.
    (interned::KERNEL_SYMBOLS, Inside(&[(1, Number), (2, Stay)])),
];

const SAMPLE: &[(u32, Rule)] = &[
    (perf::CPU, Number),
    (perf::PID, Number),
    (perf::TID, Number),
    (perf::CALLSTACK_IID, Number),
    (5, Number),
    (6, Number),
    (perf::UNWIND_ERROR, Number),
    (perf::KERNEL_RECORDS_LOST, Number),
    (perf::SAMPLE_SKIPPED_REASON, Number),
];

const TIMEBASE: &[(u32, Rule)] = &[
    (1, Number),
    (2, Number),
    (3, Inside(&[(1, EventName)])),
    (4, Number),
    (5, Inside(&[(1, Number), (2, Number), (3, Number), (4, Number)])),
    (6, Number),
    (11, Number),
];

/// Facts about a trace that are needed to write its packets without names.
pub(crate) struct Known {
    pub(crate) table: Table,
    pub(crate) names: Arc<Names>,
    /// Functions of the kernel in call chains.
    pub(crate) kernel: FxHashSet<NameId>,
}

/// Replaces a name in place.
pub(crate) type Rename<'a> = dyn FnMut(&mut [u8]) + 'a;

/// The packet `content` without names; `None` if nothing is left of it.
pub(crate) fn packet(known: &Known, rename: &mut Rename<'_>, content: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(content.len());
    let mut kept = false;
    let mut writer = Writer { known, rename };
    let _ = Fields::of(content).each(|number, value| {
        let before = out.len();
        writer.field(PACKET, number, value, &mut out);
        // Readers must know that a writer restarted, or that packets are missing.
        kept |= out.len() > before && (!FRAME.contains(&number) || number == 13);
    });
    kept.then_some(out)
}

struct Writer<'a, 'b> {
    known: &'a Known,
    rename: &'a mut Rename<'b>,
}

impl Writer<'_, '_> {
    fn message(&mut self, rules: &'static [(u32, Rule)], message: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(message.len());
        let _ =
            Fields::of(message).each(|number, value| self.field(rules, number, value, &mut out));
        out
    }

    fn field(
        &mut self,
        rules: &'static [(u32, Rule)],
        number: u32,
        value: Value<'_>,
        out: &mut Vec<u8>,
    ) {
        let Some((_, rule)) = rules.iter().find(|(n, _)| *n == number) else { return };
        let bytes = match (rule, value) {
            (Number | Numbers, Value::Int(n)) => return put_int(out, number, n),
            (_, Value::Bytes(bytes)) => bytes,
            _ => return,
        };
        let words = match rule {
            Number => return,
            Numbers => numbers(bytes),
            Name => self.renamed(bytes),
            Stay => bytes.to_vec(),
            EventName => self.event_name(bytes),
            System if SYSTEMS.contains(&bytes) => bytes.to_vec(),
            System => self.renamed(bytes),
            Release => release(bytes),
            Function => match self.known.kernel.contains(&self.known.names.intern(bytes)) {
                true => bytes.to_vec(),
                false => self.renamed(bytes),
            },
            Path => match bytes {
                b"kernel" | b"ERROR" => bytes.to_vec(),
                _ => self.renamed(bytes),
            },
            Inside(rules) => self.message(rules, bytes),
            Lists if Compact::is_sound(bytes) => self.message(COMPACT, bytes),
            Lists => return,
            Event => self.event(bytes),
            Descriptor => self.descriptor(bytes),
        };
        put_bytes(out, number, &words);
    }

    fn renamed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        (self.rename)(&mut bytes);
        bytes
    }

    /// The name of an event, alone or after its system; replaced if it may be a private name.
    fn event_name(&mut self, name: &[u8]) -> Vec<u8> {
        let short = name.rsplit(|b| matches!(b, b'/' | b':')).next().unwrap_or(name);
        match std::str::from_utf8(short) {
            Ok(text) if is_known(text) || text == "*" => {
                let system = &name[..name.len() - short.len()];
                let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/' | b':');
                if system.iter().all(plain) { name.to_vec() } else { self.renamed(name) }
            }
            _ => self.renamed(name),
        }
    }

    fn event(&mut self, message: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(message.len());
        let mut found = false;
        let _ = Fields::of(message).each(|number, value| match (number, value) {
            (event::TIMESTAMP | event::PID | event::COMMON_FLAGS, Value::Int(n)) => {
                put_int(&mut out, number, n);
            }
            (number, Value::Bytes(content)) if !std::mem::replace(&mut found, true) => {
                let content = self.content(number, content);
                put_bytes(&mut out, number, &content);
            }
            _ => {}
        });
        out
    }

    /// The content of an event as far as holdup understands it.
    fn content(&mut self, number: u32, content: &[u8]) -> Vec<u8> {
        if number == event::GENERIC {
            return self.generic(content);
        }
        // Perfetto's own meaning of the number comes first; it decides how other tools read the
        // event.
        if let Some(plan) = known_plan(number)
            && let Some(misfit) = plan.misfit(content)
        {
            let mut out = Vec::new();
            put_bytes(&mut out, misfit, b"");
            return out;
        }
        let mut out = Vec::with_capacity(content.len());
        match self.known.table.plan(number) {
            Some(Plan::Numbered { kind, slots, .. }) => {
                let (kind, slots) = (*kind, *slots);
                let _ = Fields::of(content).each(|n, value| {
                    match (Plan::slot(&slots, n).map(|s| s.1), value) {
                        (Some(Holds::Number | Holds::Numbers), Value::Int(v)) => {
                            put_int(&mut out, n, v);
                        }
                        (Some(Holds::Numbers), Value::Bytes(b)) => {
                            put_bytes(&mut out, n, &numbers(b));
                        }
                        (Some(Holds::Text), Value::Bytes(b)) => {
                            let text = self.text(kind, b);
                            put_bytes(&mut out, n, &text);
                        }
                        _ => {}
                    }
                });
            }
            Some(Plan::Rename) => {
                const RENAME: &[(u32, Rule)] = &[(1, Number), (2, Name), (3, Name), (4, Number)];
                out = self.message(RENAME, content);
            }
            _ => {}
        }
        out
    }

    fn text(&mut self, kind: EventKind, text: &[u8]) -> Vec<u8> {
        // Names of lock classes come from the kernel's source.
        if kind.system() == "lock" { text.to_vec() } else { self.renamed(text) }
    }

    /// An event whose message repeats the names of its fields.
    fn generic(&mut self, content: &[u8]) -> Vec<u8> {
        let name = crate::table::generic_name(content);
        let kind = match self.known.table.named_plan(name) {
            Some(Plan::Named { kind }) => Some(*kind),
            _ => None,
        };
        let mut out = Vec::with_capacity(content.len());
        let _ = Fields::of(content).each(|number, value| match (number, value) {
            (generic::EVENT_NAME, Value::Bytes(name)) => {
                let name = if kind.is_some() { name.to_vec() } else { self.event_name(name) };
                put_bytes(&mut out, number, &name);
            }
            (generic::FIELD, Value::Bytes(field)) => {
                let Some(kind) = kind else { return };
                let (mut inner, mut known) = (Vec::new(), false);
                let _ = Fields::of(field).each(|number, value| match (number, value) {
                    (generic::NAME, Value::Bytes(name)) => {
                        known = Plan::slot_of(kind, name).is_some();
                        put_bytes(&mut inner, number, name);
                    }
                    (generic::STR_VALUE, Value::Bytes(text)) => {
                        let text = self.text(kind, text);
                        put_bytes(&mut inner, number, &text);
                    }
                    (generic::INT_VALUE | generic::UINT_VALUE, Value::Int(n)) => {
                        put_int(&mut inner, number, n);
                    }
                    _ => {}
                });
                if known {
                    put_bytes(&mut out, number, &inner);
                }
            }
            _ => {}
        });
        out
    }

    /// An event described in the trace: unchanged if holdup understands the event, else only its
    /// name.
    fn descriptor(&mut self, message: &[u8]) -> Vec<u8> {
        use crate::schema::descriptor;
        let (mut number, mut out) = (0, Vec::new());
        let _ = Fields::of(message).each(|n, value| {
            if let (descriptor::FIELD_ID, Value::Int(v)) = (n, value) {
                number = v as u32;
            }
        });
        let understood = matches!(self.known.table.plan(number), Some(Plan::Numbered { .. }));
        let _ = Fields::of(message).each(|n, value| match (n, value) {
            (descriptor::FIELD_ID, Value::Int(v)) => put_int(&mut out, n, v),
            (descriptor::GROUP_NAME, Value::Bytes(group)) => {
                let group = if understood { group.to_vec() } else { self.renamed(group) };
                put_bytes(&mut out, n, &group);
            }
            (descriptor::EVENT_DESCRIPTOR, Value::Bytes(b)) => {
                let inner = self.described(b, understood.then_some(number));
                put_bytes(&mut out, n, &inner);
            }
            _ => {}
        });
        out
    }

    fn described(&mut self, message: &[u8], understood: Option<u32>) -> Vec<u8> {
        use crate::schema::descriptor;
        let mut out = Vec::new();
        let slots = match understood.and_then(|number| self.known.table.plan(number)) {
            Some(Plan::Numbered { slots, .. }) => Some(*slots),
            _ => None,
        };
        let _ = Fields::of(message).each(|n, value| match (n, value) {
            (descriptor::NAME, Value::Bytes(name)) => {
                let name = if slots.is_some() { name.to_vec() } else { self.renamed(name) };
                put_bytes(&mut out, n, &name);
            }
            (descriptor::FIELD, Value::Bytes(field)) => {
                let Some(slots) = &slots else { return };
                const FIELD: &[(u32, Rule)] = &[
                    (descriptor::FIELD_NAME, Stay),
                    (descriptor::FIELD_NUMBER, Number),
                    (4, Number),
                    (5, Number),
                ];
                let place = Fields::of(field).find_int(descriptor::FIELD_NUMBER);
                // Keep only the fields that holdup reads: others may be private text.
                if place.is_some_and(|place| Plan::slot(slots, place as u32).is_some()) {
                    let inner = self.message(FIELD, field);
                    put_bytes(&mut out, n, &inner);
                }
            }
            _ => {}
        });
        out
    }
}

/// The numbers of a packed list, without anything after them.
fn numbers(bytes: &[u8]) -> Vec<u8> {
    let (mut list, mut out) = (Packed(bytes), Vec::with_capacity(bytes.len()));
    while !list.is_empty() {
        let Ok(n) = list.next() else { break };
        encode_varint(n, &mut out);
    }
    out
}

/// `6.1.57` of `6.1.57-acme-g1234`, `Perfetto v28.0` of `Perfetto v28.0 (1234)`.
fn release(text: &[u8]) -> Vec<u8> {
    let known = [&b"Perfetto v"[..], b"v"].into_iter().find(|name| text.starts_with(name));
    let start = known.map_or(0, <[u8]>::len);
    let is_number = |b: &&u8| b.is_ascii_digit() || **b == b'.';
    let len = text[start..].iter().take_while(is_number).count();
    text[..start + len].to_vec()
}

fn put_int(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
