//! The metadata compiled: what the bytes of a stream mean.

use crate::compile::{Compiler, NoPlan};
use crate::kind::{self, Meaning, reg};
use crate::parse::{EventDecl, Metadata, StreamDecl};
use crate::plan::{Slot, Step, Want, size};
use crate::states;
use crate::time::TimeMap;
use crate::types::{Int, Order, Type};
use holdup_syscalls::{Arch, entry_number};
use holdup_trace::{EventDesc, EventId, EventKind, NameId, Names, Presence, StateTable};
use rustc_hash::FxHashMap;

/// Steps that compiling the plans of one trace may take. A trace of a whole kernel takes a
/// hundredth.
const BUDGET: u64 = 20_000_000;
/// Event numbers up to here are looked up in a table, larger ones in a map.
const DENSE: u64 = 1 << 16;

/// One trace: a folder with metadata.
pub(crate) struct TraceClass {
    pub(crate) uuid: Option<[u8; 16]>,
    /// What packets carry: the magic number, the trace's uuid, their stream.
    pub(crate) header: PacketHeader,
    pub(crate) streams: Vec<StreamClass>,
}

/// The header of each packet.
pub(crate) struct PacketHeader {
    pub(crate) steps: Box<[Step]>,
    pub(crate) has_magic: bool,
    pub(crate) has_uuid: bool,
    pub(crate) has_stream: bool,
    pub(crate) has_instance: bool,
}

/// One kind of stream: what LTTng calls a channel.
pub(crate) struct StreamClass {
    pub(crate) id: u64,
    /// Plans for the packet's header (read again for values that later plans refer to) and context.
    pub(crate) packet: [Box<[Step]>; 2],
    /// Header of an event.
    pub(crate) header: Box<[Step]>,
    /// The header is LTTng's compact one, little endian: number and time in one word.
    pub(crate) compact: bool,
    /// The context requested with `lttng add-context`.
    pub(crate) context: Box<[Step]>,
    pub(crate) events: Vec<EventClass>,
    ids: Vec<u32>,
    far_ids: FxHashMap<u64, u32>,
    /// Which of thread, process and name are in the context.
    pub(crate) has_tid: bool,
    pub(crate) has_pid: bool,
    pub(crate) has_comm: bool,
    pub(crate) time: TimeMap,
    /// It has switches, which show the thread that a CPU runs.
    pub(crate) switches: bool,
    /// Added to priorities: LTTng writes the kernel's minus 100 (`MAX_RT_PRIO`).
    pub(crate) prio: i16,
    /// What the numbers of threads' states mean: lttng-modules writes the numbers of the kernel's
    /// event.
    pub(crate) states: StateTable,
}

/// One kind of event.
pub(crate) struct EventClass {
    pub(crate) event: EventId,
    pub(crate) meaning: Meaning,
    pub(crate) steps: Result<Box<[Step]>, NoPlan>,
    /// Size in bits of context and fields, after a header that ends with a byte, if it is the same
    /// for all events of the kind.
    pub(crate) size: Option<u64>,
    pub(crate) nr: CallNumber,
    /// The event has the arguments of its system call.
    pub(crate) has_args: bool,
    /// Which of CPU, thread, process and name are among its own fields.
    pub(crate) own: [bool; 4],
    /// Name of the interrupt vector.
    pub(crate) vector: NameId,
    /// Default values of wanted fields that the event does not have.
    pub(crate) absent: Box<[(Slot, u64)]>,
    /// It lacks a field without which it is useless.
    pub(crate) incomplete: bool,
}

/// The number of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallNumber {
    /// By the event's name; `u32::MAX` for a name without a number.
    Known(u32),
    /// In the event, in the register of [`kind::CALL_ID`].
    Field,
}

/// The kinds of events of all traces opened together.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) descs: Vec<EventDesc>,
    by_name: FxHashMap<(String, bool), EventId>,
}

impl Events {
    fn id(&mut self, name: &str, kernel: bool, meaning: Meaning) -> EventId {
        let key = (name.to_owned(), kernel);
        if let Some(&id) = self.by_name.get(&key) {
            return id;
        }
        let Some(id) = u16::try_from(self.descs.len()).ok().filter(|&id| id != u16::MAX) else {
            // Too many kinds: the rest share the last one.
            return EventId(u16::MAX - 1);
        };
        let system = match meaning {
            Meaning::Kernel(kind) => kind.system().to_owned(),
            Meaning::Process => String::from("lttng"),
            // `PROVIDER:EVENT` of user space; the kernel's names start with their system, up to the
            // first `_`.
            Meaning::Other => {
                let end = name.find(if kernel { '_' } else { ':' });
                end.map_or(String::new(), |end| name[..end].to_owned())
            }
        };
        // Set to a stronger presence once the event is seen.
        let presence = Presence::Described;
        self.descs.push(EventDesc { name: name.to_owned(), system, presence });
        self.by_name.insert(key, EventId(id));
        EventId(id)
    }
}

/// Settings for compiling a whole trace.
pub(crate) struct Setting<'a> {
    pub(crate) events: &'a mut Events,
    pub(crate) names: &'a Names,
    pub(crate) arch: Arch,
    pub(crate) since_1970: bool,
    /// Note where text is, wanted or not.
    pub(crate) noting: bool,
}

/// Compile `metadata`.
pub(crate) fn compile(metadata: &Metadata, setting: &mut Setting<'_>) -> TraceClass {
    let big = metadata.order == Some(Order::Big);
    let kernel = is_kernel(metadata);
    let mut budget = BUDGET;
    let mut compiler = Compiler::new(big, budget);
    compiler.noting = setting.noting;
    let of = metadata.packet_header.as_ref();
    // A header without a plan reads as empty; its packets will be refused.
    let _ = compiler.share(of, "trace.packet.header.", PACKET_HEADER, false);
    budget = budget.min(compiler.budget);
    let has = |name: &str| kind::names(of).any(|(n, _)| n == name);
    let header = PacketHeader {
        steps: compiler.finish().into_iter().next().unwrap_or_default(),
        has_magic: has("magic"),
        has_uuid: has("uuid"),
        has_stream: has("stream_id"),
        has_instance: has("stream_instance_id"),
    };
    let shared = Shared {
        metadata,
        big,
        kernel,
        lttng: metadata.env("tracer_name").is_some_and(|t| t.starts_with("lttng")),
        states: states::table(metadata),
    };
    let mut by_stream: FxHashMap<u64, Vec<&EventDecl>> = FxHashMap::default();
    for event in &metadata.events {
        by_stream.entry(event.stream).or_default().push(event);
    }
    let mut seen = Vec::new();
    let mut streams = Vec::new();
    // Without any declaration, a stream of events without a header is implied.
    let implied =
        [StreamDecl { id: 0, packet_context: None, event_header: None, event_context: None }];
    let declared = match &metadata.streams[..] {
        [] if !metadata.events.is_empty() => &implied,
        declared => declared,
    };
    for stream in declared {
        // Declared twice: the first one counts.
        if !seen.contains(&stream.id) && seen.len() < 4096 {
            seen.push(stream.id);
            let events = by_stream.remove(&stream.id).unwrap_or_default();
            streams.push(self::stream(stream, &events, &shared, setting, &mut budget));
        }
    }
    TraceClass { uuid: metadata.uuid, header, streams }
}

/// Whether this is a kernel trace: LTTng states it; for other recorders the events' names decide.
pub(crate) fn is_kernel(metadata: &Metadata) -> bool {
    metadata.env("domain").is_none_or(|d| d == "kernel")
}

struct Shared<'a> {
    metadata: &'a Metadata,
    big: bool,
    kernel: bool,
    lttng: bool,
    states: StateTable,
}

const fn want<'a>(names: &'a [&'a str], register: u8) -> Want<'a> {
    Want { names, to: Slot::Register(register) }
}

const PACKET_HEADER: &[Want<'_>] = &[
    want(&["magic"], reg::MAGIC),
    want(&["stream_id"], reg::STREAM),
    want(&["stream_instance_id"], reg::INSTANCE),
    Want { names: &["uuid"], to: Slot::Text(reg::UUID) },
];

const PACKET_CONTEXT: &[Want<'_>] = &[
    want(&["timestamp_begin"], reg::BEGIN),
    want(&["timestamp_end"], reg::END),
    want(&["content_size"], reg::CONTENT),
    want(&["packet_size"], reg::PACKET),
    want(&["packet_seq_num"], reg::SEQ),
    want(&["events_discarded"], reg::DISCARDED),
    want(&["cpu_id"], reg::CPU),
];

const EVENT_HEADER: &[Want<'_>] = &[want(&["id"], reg::ID)];

/// In the kernel, `vtid` is the number inside the thread's namespace, which nothing else uses. User
/// space knows only this number.
const KERNEL_CONTEXT: &[Want<'_>] = &[
    want(&["tid", "perf_tid"], reg::TID),
    want(&["pid", "perf_pid"], reg::PID),
    Want { names: &["procname", "perf_comm"], to: Slot::Text(reg::COMM) },
];
const USER_CONTEXT: &[Want<'_>] = &[
    want(&["vtid"], reg::TID),
    want(&["vpid"], reg::PID),
    Want { names: &["procname"], to: Slot::Text(reg::COMM) },
];

fn stream(
    decl: &StreamDecl,
    events: &[&EventDecl],
    shared: &Shared<'_>,
    setting: &mut Setting<'_>,
    budget: &mut u64,
) -> StreamClass {
    let metadata = shared.metadata;
    let mut compiler = Compiler::new(shared.big, *budget);
    compiler.noting = setting.noting;
    let context = if shared.kernel { KERNEL_CONTEXT } else { USER_CONTEXT };
    let header = decl.event_header.as_ref();
    let event_context = decl.event_context.as_ref();
    let mut whole = true;
    for (of, prefix, wants, timed) in [
        (metadata.packet_header.as_ref(), "trace.packet.header.", PACKET_HEADER, false),
        (decl.packet_context.as_ref(), "stream.packet.context.", PACKET_CONTEXT, false),
        (header, "stream.event.header.", EVENT_HEADER, true),
        (event_context, "stream.event.context.", context, false),
    ] {
        whole &= compiler.share(of, prefix, wants, timed).is_ok();
    }
    let mut class = StreamClass {
        id: decl.id,
        packet: Default::default(),
        header: Box::default(),
        compact: !shared.big && header.is_some_and(is_compact),
        context: Box::default(),
        events: Vec::new(),
        ids: Vec::new(),
        far_ids: FxHashMap::default(),
        has_tid: has(event_context, context[0].names),
        has_pid: has(event_context, context[1].names),
        has_comm: has(event_context, context[2].names),
        time: clock_of(header, decl.packet_context.as_ref(), metadata, setting.since_1970),
        switches: false,
        prio: if shared.kernel && shared.lttng { 100 } else { 0 },
        states: shared.states.clone(),
    };
    // Data that a call returns by pointer is in its exit event.
    let exits: FxHashMap<&str, &EventDecl> =
        events.iter().filter_map(|e| Some((e.name.strip_prefix("syscall_exit_")?, *e))).collect();
    let old = shared.kernel && events.iter().any(|e| e.name == kind::OLD_EXIT);
    let in_context = [false, class.has_tid, class.has_pid, class.has_comm];
    // Without plans for header and context no event can be read.
    for decl in events.iter().filter(|_| whole) {
        let (meaning, name) = match kind::old_call(&decl.name).filter(|_| old) {
            Some(call) => call,
            None if shared.kernel => kind::kernel(&decl.name),
            None => (Meaning::Other, decl.name.clone()),
        };
        let number = u32::try_from(class.events.len()).unwrap_or(u32::MAX);
        let exits = (!old).then_some(&exits);
        let built =
            event(decl, (meaning, &name), exits, in_context, &mut compiler, shared, setting);
        class.switches |= meaning == Meaning::Kernel(EventKind::Switch) && !built.incomplete;
        class.events.push(built);
        if decl.id < DENSE {
            let at = decl.id as usize;
            if class.ids.len() <= at {
                class.ids.resize(at + 1, u32::MAX);
            }
            class.ids[at] = number;
        } else {
            class.far_ids.insert(decl.id, number);
        }
    }
    *budget = (*budget).min(compiler.budget);
    let mut plans = compiler.finish().into_iter();
    class.packet = [plans.next().unwrap_or_default(), plans.next().unwrap_or_default()];
    class.header = plans.next().unwrap_or_default();
    class.context = plans.next().unwrap_or_default();
    let context = size(0, &class.context);
    for event in &mut class.events {
        event.size = context.zip(event.steps.as_ref().ok()).and_then(|(c, steps)| size(c, steps));
    }
    class
}

/// Whether this is LTTng's header `event_header_compact`: a number of 5 bits, where 31 means that a
/// larger number follows, and a time of 27 bits.
fn is_compact(header: &Type) -> bool {
    let packed = |int: &Int, size| {
        int.size == size && int.align == 1 && !int.signed && int.order != Some(Order::Big)
    };
    let Type::Struct(header) = header else { return false };
    let [(id, Type::Enum(number)), (_, Type::Variant { variant, tag })] = &header.fields[..] else {
        return false;
    };
    let short = variant.options.iter().find(|(name, _)| &**name == "compact");
    let Some((_, Type::Struct(short))) = short else { return false };
    let [(time, Type::Int(int))] = &short.fields[..] else { return false };
    let ranges = number.ranges.iter().map(|(name, low, high)| (&**name, *low, *high));
    &**id == "id"
        && tag.as_deref() == Some("id")
        && &**time == "timestamp"
        && (header.align, short.align) == (8, 1)
        && packed(&number.int, 5)
        && packed(int, 27)
        && ranges.eq([("compact", 0, 30), ("extended", 31, 31)])
}

fn has(of: Option<&Type>, wanted: &[&str]) -> bool {
    kind::names(of).any(|(name, _)| wanted.contains(&name))
}

impl StreamClass {
    /// The kind of events with this number.
    #[inline(always)]
    pub(crate) fn event(&self, id: u64) -> Option<&EventClass> {
        let number = match self.ids.get(usize::try_from(id).ok()?) {
            Some(&number) => number,
            None => *self.far_ids.get(&id)?,
        };
        self.events.get(number as usize)
    }
}

/// The clock that time stamps are values of: the one they are mapped to, else the only one.
fn clock_of(
    header: Option<&Type>,
    context: Option<&Type>,
    metadata: &Metadata,
    since_1970: bool,
) -> TimeMap {
    let name = header.and_then(clock_name).or_else(|| context.and_then(clock_name));
    let clock = match name {
        Some(name) => metadata.clocks.iter().find(|c| c.name == name),
        None => metadata.clocks.first(),
    };
    clock.map_or(TimeMap::STEPS, |c| TimeMap::of(c, since_1970))
}

/// The name of the clock that a field of the type is mapped to.
fn clock_name(of: &Type) -> Option<&str> {
    match of {
        Type::Int(int) => int.clock.as_deref(),
        Type::Enum(e) => e.int.clock.as_deref(),
        Type::Struct(s) => s.fields.iter().find_map(|(_, of)| clock_name(of)),
        Type::Variant { variant, .. } => variant.options.iter().find_map(|(_, of)| clock_name(of)),
        Type::Float { .. } | Type::Str | Type::Array(..) | Type::Sequence(..) => None,
    }
}

fn event(
    decl: &EventDecl,
    (meaning, name): (Meaning, &str),
    exits: Option<&FxHashMap<&str, &EventDecl>>,
    in_context: [bool; 4],
    compiler: &mut Compiler,
    shared: &Shared<'_>,
    setting: &mut Setting<'_>,
) -> EventClass {
    let of = decl.fields.as_ref();
    // The part of the name that varies within a family of events.
    let detail = match meaning {
        Meaning::Kernel(kind) => kind.detail(name).filter(|d| !d.is_empty()),
        Meaning::Process | Meaning::Other => None,
    };
    let listed = match (exits, meaning) {
        // One event for all calls, as in the kernel.
        (None, Meaning::Kernel(EventKind::SysEnterNamed)) => Some(EventKind::SysEnter),
        (None, Meaning::Kernel(EventKind::SysExitNamed)) => Some(EventKind::SysExit),
        _ => None,
    };
    let mut class = EventClass {
        event: match listed {
            Some(kind) => setting.events.id(kind.kernel_name(), true, Meaning::Kernel(kind)),
            None => setting.events.id(name, shared.kernel, meaning),
        },
        meaning,
        steps: Err(NoPlan::TooLarge),
        size: None,
        nr: CallNumber::Known(
            detail.and_then(|name| entry_number(setting.arch, name)).unwrap_or(u32::MAX),
        ),
        has_args: false,
        own: [false; 4],
        vector: detail.map_or(NameId::NONE, |name| setting.names.intern(name.as_bytes())),
        absent: Box::default(),
        incomplete: false,
    };
    let mut absent = Vec::new();
    let mut wants: Vec<Want<'_>> = Vec::new();
    for field in kind::fields(meaning) {
        // The first of several names found wins: LTTng's events often have `pid`, the process, next
        // to `tid`, the thread, which other tracers call `pid`.
        let names = field.want.names;
        match (0..names.len()).map(|n| &names[n..n + 1]).find(|&name| has(of, name)) {
            Some(names) => wants.push(Want { names, to: field.want.to }),
            None => {
                class.incomplete |= field.needed;
                absent.push((field.want.to, field.default));
            }
        }
    }
    if shared.kernel {
        for ((own, want), elsewhere) in class.own.iter_mut().zip(kind::PERF).zip(in_context) {
            *own = !elsewhere && has(of, want.names);
            wants.extend(own.then_some(want));
        }
    }
    // Not for a 32-bit program, whose call numbers differ.
    let unknown = detail == Some(kind::UNKNOWN_CALL)
        && (decl.name.starts_with("syscall_") || decl.name.starts_with("sys_"))
        && has(of, kind::CALL_ID.want.names);
    if unknown {
        class.nr = CallNumber::Field;
        wants.push(kind::CALL_ID.want);
    }
    let args = match meaning {
        Meaning::Kernel(EventKind::SysEnterNamed) if unknown => kind::RAW_ARGS.map(Some),
        Meaning::Kernel(EventKind::SysEnterNamed) => {
            let exit = detail.zip(exits).and_then(|(name, exits)| exits.get(name));
            let exit = exit.map(|e| e.fields.as_ref());
            let back = |of: Option<&Type>| {
                kind::names(of).any(|(name, _)| match name {
                    "ret" => false,
                    length if length.starts_with('_') => false,
                    name => !has(decl.fields.as_ref(), &[name]),
                })
            };
            // Up to 2.5 all arguments came with the entry.
            let outs = exits.is_some() && exit.is_none_or(back);
            kind::arguments(of, outs)
        }
        _ => [None; 6],
    };
    class.has_args = args.iter().any(Option::is_some);
    let named: Vec<[&str; 1]> = args.iter().map(|arg| [arg.unwrap_or("")]).collect();
    for ((n, arg), name) in (0u8..).zip(&args).zip(&named) {
        let to = Slot::Register(reg::OWN + n);
        match arg {
            Some(_) => wants.push(Want { names: name, to }),
            None if class.has_args => absent.push((to, 0)),
            None => {}
        }
    }
    class.absent = absent.into();
    if class.incomplete {
        wants.clear();
    }
    class.steps = compiler.event(decl.context.as_ref(), of, &wants);
    class
}
