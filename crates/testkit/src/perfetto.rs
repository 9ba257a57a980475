//! Writes any trace as a Perfetto trace, in each of the forms that Perfetto has for it.
//!
//! Written from Perfetto's descriptors (`perfetto_trace_pb2` of its Python package), not from
//! holdup's reader: a wrong number in one of the two shows as a difference.

use holdup_trace::{Batch, Cpu, Event, EventId, NameId, Pid, Reader, StatKind, What, merge};
use prost::encoding::{WireType, encode_key, encode_varint};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

/// Options of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfettoForm {
    /// Switches and `sched_waking` as lists (`compact_sched`), without the thread switched out.
    pub compact: bool,
    /// How events without a message in Perfetto are written.
    pub generic: Generic,
    /// How packets are compressed.
    pub packing: Packing,
    /// Most events of one bundle.
    pub per_bundle: usize,
    /// Added to every time.
    pub later_by: u64,
}

/// How events without a message in Perfetto are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generic {
    /// `GenericFtraceEvent`: names in every event.
    Named,
    /// A descriptor in the trace, and fields by number.
    Described,
}

/// How packets are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    None,
    /// `compressed_packets`, sixteen packets in each.
    Deflate,
    /// `zstd_compressed_packets`.
    Zstd,
}

/// `common_flags`: interrupts are off, and perhaps one is handled (`TRACE_FLAG_HARDIRQ`).
fn flags(in_irq: bool) -> i64 {
    if in_irq { 0x09 } else { 0x01 }
}

impl Default for PerfettoForm {
    fn default() -> PerfettoForm {
        PerfettoForm {
            compact: false,
            generic: Generic::Named,
            packing: Packing::None,
            per_bundle: 200,
            later_by: 0,
        }
    }
}

/// A protobuf message being written.
#[derive(Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn int(mut self, number: u32, value: impl Into<i128>) -> Message {
        encode_key(number, WireType::Varint, &mut self.0);
        encode_varint(value.into() as u64, &mut self.0);
        self
    }

    fn bytes(mut self, number: u32, value: &[u8]) -> Message {
        encode_key(number, WireType::LengthDelimited, &mut self.0);
        encode_varint(value.len() as u64, &mut self.0);
        self.0.extend_from_slice(value);
        self
    }

    fn message(self, number: u32, value: Message) -> Message {
        self.bytes(number, &value.0)
    }

    /// A packed list, omitted if it is empty.
    fn packed(self, number: u32, values: &[i64]) -> Message {
        let mut list = Vec::new();
        values.iter().for_each(|&v| encode_varint(v as u64, &mut list));
        if list.is_empty() { self } else { self.bytes(number, &list) }
    }
}

/// The content of an event: its number and message, or names for an event that Perfetto does not
/// know.
enum Content {
    Known(u32, Message),
    Generic(&'static str, String, Vec<(&'static str, Field)>),
}

enum Field {
    Int(u64),
    Text(Vec<u8>),
}

/// Events of one CPU, not yet written.
#[derive(Default)]
struct Pending {
    events: Vec<Message>,
    count: usize,
    lost: bool,
    descriptors: Vec<Message>,
    symbols: Vec<Message>,
    switches: [Vec<i64>; 5],
    wakings: [Vec<i64>; 5],
    /// `common_flags` of each waking.
    flags: Vec<i64>,
    comms: Vec<Vec<u8>>,
}

impl Pending {
    fn comm(&mut self, name: Vec<u8>) -> i64 {
        let found = self.comms.iter().position(|known| *known == name);
        found.unwrap_or_else(|| {
            self.comms.push(name);
            self.comms.len() - 1
        }) as i64
    }
}

struct Writer<'a> {
    reader: &'a dyn Reader,
    form: PerfettoForm,
    cpus: BTreeMap<Cpu, Pending>,
    /// Names of events that were described, in the order of their numbers.
    described: Vec<String>,
    functions: Vec<NameId>,
    packets: Vec<Vec<u8>>,
}

/// Messages of described events begin here, as in Perfetto.
const FIRST_DESCRIBED: u32 = 65_536;
/// The packet sequence of the events.
const SEQUENCE: i32 = 2;

/// Write all events of `reader`.
///
/// # Panics
/// The trace cannot be read.
pub fn perfetto(reader: &dyn Reader, form: &PerfettoForm) -> Vec<u8> {
    let mut writer = Writer {
        reader,
        form: *form,
        cpus: BTreeMap::new(),
        described: Vec::new(),
        functions: Vec::new(),
        packets: Vec::new(),
    };
    writer.head();
    merge::drive(reader, 1, &mut |events: &[Event], batch: &Batch| {
        events.iter().for_each(|e| writer.event(e, batch));
        ControlFlow::Continue(())
    })
    .expect("the trace can be read");
    let cpus: Vec<Cpu> = writer.cpus.keys().copied().collect();
    cpus.into_iter().for_each(|cpu| writer.flush(cpu));
    writer.stats(2);
    writer.file()
}

impl Writer<'_> {
    fn packet(&mut self, message: Message) {
        let mut packet = Vec::new();
        encode_key(1, WireType::LengthDelimited, &mut packet);
        encode_varint(message.0.len() as u64, &mut packet);
        packet.extend_from_slice(&message.0);
        self.packets.push(packet);
    }

    /// Write the machine, its threads, and the kernel's counters.
    fn head(&mut self) {
        let info = self.reader.info();
        let [boot, raw] = [6, 5].map(|id: i32| Message::default().int(1, id).int(2, 1_000));
        let clocks = Message::default().message(1, boot).message(1, raw);
        let frame = || Message::default().int(3, 9999).int(10, 1);
        let text = |t: &Option<String>| t.clone().unwrap_or_default();
        let uts = Message::default()
            .bytes(1, b"Linux")
            .bytes(3, text(&info.os_release).as_bytes())
            .bytes(4, text(&info.arch).as_bytes());
        let mut system = Message::default().message(1, uts);
        if let Some(cpus) = info.cpus_online {
            system = system.int(8, cpus);
        }
        let mut tree = Message::default();
        for task in &info.tasks {
            let mut thread = Message::default().int(1, task.tid.0);
            thread = thread.bytes(2, &info.names.bytes(task.comm));
            if task.pid != Pid::UNKNOWN {
                thread = thread.int(3, task.pid.0);
            }
            tree = tree.message(2, thread);
        }
        let (clocks, system, tree) =
            (frame().message(6, clocks), frame().message(45, system), frame().message(2, tree));
        self.packet(clocks);
        self.packet(system);
        self.packet(tree);
        self.stats(1);
    }

    fn stats(&mut self, phase: i32) {
        let mut stats = Message::default().int(1, phase);
        for cpu in 0..self.reader.info().cpus_online.unwrap_or(0) {
            stats = stats.message(2, Message::default().int(1, cpu).int(3, 0).int(8, 0));
        }
        let mut packet = Message::default().message(34, stats).int(3, 9999).int(10, SEQUENCE);
        if phase == 1 {
            // A writer starts with cleared state, and does not know about packets before it.
            packet = packet.int(13, 1).int(42, 1);
        }
        self.packet(packet);
    }

    fn name(&self, id: NameId) -> Vec<u8> {
        self.reader.info().names.bytes(id).to_vec()
    }

    fn event(&mut self, e: &Event, batch: &Batch) {
        if let What::Lost { .. } = e.what {
            self.flush(e.cpu);
            self.cpus.entry(e.cpu).or_default().lost = true;
            return;
        }
        if e.id == EventId::SIDEBAND {
            return;
        }
        let ts = e.ts + self.form.later_by;
        if !(self.form.compact && self.compact(e, ts)) {
            let content = self.content(e, batch);
            let mut event = Message::default().int(1, ts).int(2, e.tid.0);
            if let What::Waking { in_irq, .. } = e.what {
                event = event.int(5, flags(in_irq));
            }
            let event = self.with_content(e.cpu, event, content);
            self.cpus.entry(e.cpu).or_default().events.push(event);
        }
        let pending = self.cpus.entry(e.cpu).or_default();
        pending.count += 1;
        if pending.count >= self.form.per_bundle {
            self.flush(e.cpu);
        }
    }

    /// Add the event to a list, if its kind has a list.
    fn compact(&mut self, e: &Event, ts: u64) -> bool {
        let row = match e.what {
            What::Switch { next, prev_state, next_comm, next_prio, .. } => {
                let comm = self.name(next_comm);
                let pending = self.cpus.entry(e.cpu).or_default();
                let comm = pending.comm(comm);
                let row = [i64::from(prev_state.0), next.0.into(), next_prio.into(), comm];
                (&mut pending.switches, row)
            }
            What::Waking { tid, comm, prio, target, in_irq } => {
                let comm = self.name(comm);
                let pending = self.cpus.entry(e.cpu).or_default();
                pending.flags.push(flags(in_irq));
                let comm = pending.comm(comm);
                (&mut pending.wakings, [tid.0.into(), target.0.into(), prio.into(), comm])
            }
            _ => return false,
        };
        let (lists, row) = row;
        lists[0].push(ts as i64);
        lists[1..].iter_mut().zip(row).for_each(|(list, value)| list.push(value));
        true
    }

    fn with_content(&mut self, cpu: Cpu, event: Message, content: Content) -> Message {
        let (system, name, fields) = match content {
            Content::Known(number, message) => return event.message(number, message),
            Content::Generic(system, name, fields) => (system, name, fields),
        };
        if self.form.generic == Generic::Named {
            let mut message = Message::default().bytes(1, name.as_bytes());
            for (name, value) in fields {
                let field = Message::default().bytes(1, name.as_bytes());
                message = message.message(
                    2,
                    match value {
                        Field::Int(n) => field.int(5, n),
                        Field::Text(text) => field.bytes(3, &text),
                    },
                );
            }
            return event.message(327, message);
        }
        let known = self.described.iter().position(|known| *known == name);
        let number = FIRST_DESCRIBED + known.unwrap_or(self.described.len()) as u32;
        if known.is_none() {
            let mut described = Message::default().bytes(1, name.as_bytes());
            for (i, (name, _)) in fields.iter().enumerate() {
                let field = Message::default().bytes(1, name.as_bytes()).int(3, i as i32 + 1);
                described = described.message(2, field);
            }
            let descriptor = Message::default()
                .int(1, number)
                .bytes(3, system.as_bytes())
                .bytes(2, &described.0);
            self.cpus.entry(cpu).or_default().descriptors.push(descriptor);
            self.described.push(name);
        }
        let message =
            fields.into_iter().zip(1..).fold(
                Message::default(),
                |m, ((_, value), n)| match value {
                    Field::Int(value) => m.int(n, value),
                    Field::Text(text) => m.bytes(n, &text),
                },
            );
        event.message(number, message)
    }

    /// A function by its address, or by the number assigned to its name.
    fn function(&mut self, cpu: Cpu, function: u64, name: NameId) -> u64 {
        if name == NameId::NONE {
            return function;
        }
        if let Some(known) = self.functions.iter().position(|&f| f == name) {
            return known as u64 + 1;
        }
        self.functions.push(name);
        let id = self.functions.len() as u64;
        let symbol = Message::default().int(1, id).bytes(2, &self.name(name));
        self.cpus.entry(cpu).or_default().symbols.push(symbol);
        id
    }

    fn content(&mut self, e: &Event, batch: &Batch) -> Content {
        let m = Message::default();
        let generic = |system, fields| {
            let info = self.reader.info();
            let name = info.events[e.id.0 as usize].short_name().to_owned();
            Content::Generic(system, name, fields)
        };
        let wake = |number, tid: u32, comm, prio: i16, target: Cpu| {
            let m = Message::default().bytes(1, &self.name(comm)).int(2, tid).int(3, prio);
            Content::Known(number, m.int(4, 1).int(5, target.0))
        };
        use Field::Int;
        match e.what {
            What::Switch { prev, next, prev_state, prev_comm, next_comm, prev_prio, next_prio } => {
                let m = m.bytes(1, &self.name(prev_comm)).int(2, prev.0).int(3, prev_prio);
                let m = m.int(4, prev_state.0).bytes(5, &self.name(next_comm));
                Content::Known(4, m.int(6, next.0).int(7, next_prio))
            }
            What::Waking { tid, comm, prio, target, .. } => wake(20, tid.0, comm, prio, target),
            What::Wakeup { tid, comm, prio, target } => wake(17, tid.0, comm, prio, target),
            What::WakeupNew { tid, comm, prio, target } => wake(114, tid.0, comm, prio, target),
            What::Migrate { tid, from, to } => {
                Content::Known(491, m.int(2, tid.0).int(4, from.0).int(5, to.0))
            }
            What::Fork { parent, child, child_comm } => Content::Known(
                239,
                m.int(2, parent.0).bytes(3, &self.name(child_comm)).int(4, child.0),
            ),
            What::Exec { tid, old, filename } => {
                Content::Known(237, m.bytes(1, &self.name(filename)).int(2, tid.0).int(3, old.0))
            }
            What::Exit { tid, comm } => {
                Content::Known(238, m.bytes(1, &self.name(comm)).int(2, tid.0))
            }
            What::BlockedReason { tid, io_wait, caller, name } => {
                let caller = self.function(e.cpu, caller, name);
                Content::Known(18, m.int(1, tid.0).int(2, caller).int(3, io_wait as u8))
            }
            What::AttachTask { tid, root, path } => {
                Content::Known(67, m.int(1, root).int(3, tid.0).bytes(7, &self.name(path)))
            }
            // User probes, which Perfetto's traces do not have.
            What::TaskParks { .. } | What::Runtime { .. } => generic("go", Vec::new()),
            What::PiSetPrio { tid, old, new } => {
                Content::Known(353, m.int(2, new).int(3, old).int(4, tid.0))
            }
            What::SysEnter { nr, args } => {
                let m = m.int(1, nr);
                let args = batch.args(args).map_or(&[][..], |a| a);
                Content::Known(329, args.iter().fold(m, |m, &a| m.int(2, a)))
            }
            What::SysExit { nr, ret } => Content::Known(330, m.int(1, nr as i32).int(2, ret)),
            What::IrqEntry { irq, name } => {
                Content::Known(36, m.int(1, irq).bytes(2, &self.name(name)))
            }
            What::IrqExit { irq } => Content::Known(37, m.int(1, irq)),
            What::SoftirqEntry { vec } => Content::Known(24, m.int(1, vec)),
            What::SoftirqExit { vec } => Content::Known(25, m.int(1, vec)),
            What::SoftirqRaise { vec } => Content::Known(26, m.int(1, vec)),
            What::VectorEntry { vector, name } if self.name(name) == b"local_timer" => {
                Content::Known(559, m.int(1, vector))
            }
            What::WorkQueue { work, function, name } => {
                let function = self.function(e.cpu, function, name);
                Content::Known(59, m.int(1, work).int(2, function))
            }
            What::WorkStart { work, function, name } => {
                let function = self.function(e.cpu, function, name);
                Content::Known(58, m.int(1, work).int(2, function))
            }
            What::WorkEnd { work } => Content::Known(57, m.int(1, work)),
            What::CpuIdle { state, cpu } => Content::Known(13, m.int(1, state).int(2, cpu.0)),
            What::StatRuntime { tid, runtime } => {
                generic("sched", vec![("pid", Int(tid.0.into())), ("runtime", Int(runtime))])
            }
            What::StatDelay { tid, delay, kind } => {
                let _: StatKind = kind;
                generic("sched", vec![("pid", Int(tid.0.into())), ("delay", Int(delay))])
            }
            What::PageFault { address, ip, .. } => {
                generic("exceptions", vec![("address", Int(address)), ("ip", Int(ip))])
            }
            What::ContentionBegin { lock, flags, .. } => {
                generic("lock", vec![("lock_addr", Int(lock)), ("flags", Int(flags.into()))])
            }
            What::ContentionEnd { lock, ret } => {
                generic("lock", vec![("lock_addr", Int(lock)), ("ret", Int(ret as i64 as u64))])
            }
            What::ContendedRelease { lock } => generic("lock", vec![("lock_addr", Int(lock))]),
            What::LockAcquire { lock, name, flags } => {
                let name = Field::Text(self.name(name));
                let fields = vec![("lockdep_addr", Int(lock)), ("name", name)];
                generic(
                    "lock",
                    [fields, vec![("flags", Int(flags.into()))]].into_iter().flatten().collect(),
                )
            }
            What::LockContended { lock, name }
            | What::LockAcquired { lock, name }
            | What::LockRelease { lock, name } => {
                let name = Field::Text(self.name(name));
                generic("lock", vec![("lockdep_addr", Int(lock)), ("name", name)])
            }
            What::VectorEntry { .. }
            | What::VectorExit { .. }
            | What::Other
            | What::Sample { .. }
            | What::Readings { .. }
            | What::Stack { .. }
            | What::Leaves { .. }
            | What::Mapped { .. }
            | What::InGroup { .. }
            | What::Comm { .. }
            | What::TaskNew { .. }
            | What::TaskEnd { .. }
            | What::ContextSwitch { .. }
            | What::Lost { .. } => generic("", Vec::new()),
        }
    }

    /// Write the pending events of a CPU.
    fn flush(&mut self, cpu: Cpu) {
        let Some(pending) = self.cpus.get_mut(&cpu) else { return };
        let pending = std::mem::take(pending);
        if pending.count == 0 {
            self.cpus.entry(cpu).or_default().lost = pending.lost;
            return;
        }
        let mut bundle = Message::default().int(1, cpu.0);
        bundle = pending.events.into_iter().fold(bundle, |b, e| b.message(2, e));
        if pending.lost {
            bundle = bundle.int(3, 1);
        }
        if self.form.compact {
            let deltas = |list: &[i64]| -> Vec<i64> {
                let before = std::iter::once(&0).chain(list);
                list.iter().zip(before).map(|(now, before)| now - before).collect()
            };
            let (s, w) = (&pending.switches, &pending.wakings);
            let mut lists = pending.comms.iter().fold(Message::default(), |m, c| m.bytes(5, c));
            lists = lists.packed(1, &deltas(&s[0])).packed(2, &s[1]).packed(3, &s[2]);
            lists = lists.packed(4, &s[3]).packed(6, &s[4]).packed(7, &deltas(&w[0]));
            lists = lists.packed(8, &w[1]).packed(9, &w[2]).packed(10, &w[3]).packed(11, &w[4]);
            lists = lists.packed(12, &pending.flags);
            bundle = bundle.message(4, lists);
        }
        bundle = pending.descriptors.into_iter().fold(bundle, |b, d| b.message(11, d));
        let mut packet = Message::default().message(1, bundle).int(3, 9999).int(10, SEQUENCE);
        if !pending.symbols.is_empty() {
            let symbols = pending.symbols.into_iter();
            packet = packet.message(12, symbols.fold(Message::default(), |m, s| m.message(26, s)));
        }
        self.packet(packet);
    }

    fn file(self) -> Vec<u8> {
        let mut file = Vec::new();
        if self.form.packing == Packing::None {
            return self.packets.concat();
        }
        for packets in self.packets.chunks(16) {
            let packets = packets.concat();
            let (number, packed) = match self.form.packing {
                Packing::Zstd => (133, zstd::encode_all(&packets[..], 3).expect("memory")),
                Packing::None | Packing::Deflate => {
                    let level = flate2::Compression::fast();
                    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                    encoder.write_all(&packets).expect("memory");
                    (50, encoder.finish().expect("memory"))
                }
            };
            let message = Message::default().bytes(number, &packed);
            file = Message(file).message(1, message).0;
        }
        file
    }
}
