//! Plans: which field of an event's message is which field of the kernel's event.
//!
//! A plan is made once per kind of event of a file. It knows for each field number of the message
//! whether the field is wanted and where to store it, so that decoding is one walk over the fields
//! and one `match`. Events that the recorder knows have fixed numbers; for others it writes
//! descriptors, or repeats the names of the fields in every event. All three forms end in the same
//! slots.

use crate::wire::{Fields, Value};
use holdup_trace::{
    ArgsRef, Batch, Cpu, EventKind, LocalNames, NameId, StackRef, StatKind, StateTable, Tid, What,
};
use rustc_hash::FxHashMap;

/// Most fields of one event.
pub(crate) const SLOTS: usize = 7;
/// Field numbers that a plan covers; messages of events have few fields.
const NUMBERS: usize = 32;

/// The kernel's name of a field.
pub(crate) struct Name {
    name: &'static str,
    /// Whether the event cannot be interpreted without it.
    needed: bool,
    holds: Holds,
}

/// The type of a field on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    Number,
    Text,
    /// A list, packed or not.
    Numbers,
}

impl Holds {
    /// Whether `value` has this type.
    #[inline(always)]
    pub(crate) fn fits(self, value: Value<'_>) -> bool {
        match value {
            Value::Int(_) => self != Holds::Text,
            Value::Bytes(_) => self != Holds::Number,
            Value::Fixed => false,
        }
    }
}

const fn int(name: &'static str) -> Name {
    Name { name, needed: true, holds: Holds::Number }
}

/// A missing name or priority never makes an event useless.
const fn maybe(name: &'static str) -> Name {
    Name { name, needed: false, holds: Holds::Number }
}

const fn text(name: &'static str) -> Name {
    Name { name, needed: false, holds: Holds::Text }
}

/// The fields that holdup reads of an event, in the order in which [`what`] takes them. `None` for
/// an event that this format cannot hold in a usable form.
fn names(kind: EventKind) -> Option<&'static [Name]> {
    const WAKE: &[Name] = &[int("pid"), int("target_cpu"), maybe("prio"), text("comm")];
    const DELAY: &[Name] = &[int("pid"), int("delay")];
    const LOCK: &[Name] = &[int("lockdep_addr"), text("name"), maybe("flags")];
    const VEC: &[Name] = &[int("vec")];
    const FAULT: &[Name] = &[int("address"), int("ip")];
    Some(match kind {
        EventKind::Switch => {
            &const {
                [
                    int("prev_pid"),
                    int("next_pid"),
                    int("prev_state"),
                    maybe("prev_prio"),
                    maybe("next_prio"),
                    text("prev_comm"),
                    text("next_comm"),
                ]
            }
        }
        EventKind::Waking | EventKind::Wakeup | EventKind::WakeupNew => WAKE,
        EventKind::Migrate => &const { [int("pid"), int("orig_cpu"), int("dest_cpu")] },
        EventKind::Fork => &const { [int("parent_pid"), int("child_pid"), text("child_comm")] },
        EventKind::Exec => &const { [int("pid"), int("old_pid"), text("filename")] },
        EventKind::Exit => &const { [int("pid"), text("comm")] },
        EventKind::StatRuntime => &const { [int("pid"), int("runtime")] },
        EventKind::StatWait
        | EventKind::StatSleep
        | EventKind::StatIoWait
        | EventKind::StatBlocked => DELAY,
        EventKind::BlockedReason => &const { [int("pid"), int("io_wait"), int("caller")] },
        EventKind::AttachTask => &const { [int("pid"), maybe("dst_root"), text("dst_path")] },
        EventKind::PiSetPrio => &const { [int("pid"), int("oldprio"), int("newprio")] },
        EventKind::SysEnter => {
            &const { [int("id"), Name { name: "args", needed: false, holds: Holds::Numbers }] }
        }
        EventKind::SysExit => &const { [int("id"), int("ret")] },
        // Perfetto records `raw_syscalls` only; arguments by name would need the kernel's formats.
        EventKind::SysEnterNamed | EventKind::SysExitNamed => return None,
        EventKind::IrqEntry => &const { [int("irq"), text("name")] },
        EventKind::IrqExit => &const { [int("irq")] },
        EventKind::SoftirqRaise | EventKind::SoftirqEntry | EventKind::SoftirqExit => VEC,
        EventKind::VectorEntry | EventKind::VectorExit => &const { [int("vector")] },
        EventKind::WorkQueue | EventKind::WorkStart => &const { [int("work"), int("function")] },
        EventKind::WorkEnd => &const { [int("work")] },
        EventKind::PageFaultUser | EventKind::PageFaultKernel => FAULT,
        EventKind::ContentionBegin => &const { [int("lock_addr"), int("flags")] },
        EventKind::ContentionEnd => &const { [int("lock_addr"), int("ret")] },
        EventKind::ContendedRelease => &const { [int("lock_addr")] },
        EventKind::LockAcquire
        | EventKind::LockContended
        | EventKind::LockAcquired
        | EventKind::LockRelease => LOCK,
        EventKind::CpuIdle => &const { [int("state"), int("cpu_id")] },
    })
}

/// The field values of one event. Protobuf omits values that are 0 or empty.
#[derive(Clone, Copy, Default)]
pub(crate) struct Slots<'a> {
    pub(crate) int: [u64; SLOTS],
    pub(crate) text: [&'a [u8]; SLOTS],
    /// Arguments of a system call, as many as there were.
    pub(crate) args: [u64; 6],
    pub(crate) arg_count: usize,
}

impl<'a> Slots<'a> {
    fn tid(&self, i: usize) -> Tid {
        Tid(self.int[i] as u32)
    }
    fn cpu(&self, i: usize) -> Cpu {
        Cpu(u16::try_from(self.int[i] as u32).unwrap_or(u16::MAX))
    }
    fn prio(&self, i: usize) -> i16 {
        self.int[i] as i16
    }
    fn name(&self, i: usize, hint: u32, names: &mut LocalNames) -> NameId {
        names.name(hint, self.text[i])
    }
}

/// How one kind of event is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Not an event holdup interprets.
    Other,
    /// The message lacks a needed field.
    Incomplete,
    /// By field number.
    Numbered {
        kind: EventKind,
        /// The text in place of the `*` of a family's name.
        detail: NameId,
        /// Slot of each field number and what it holds, [`Plan::NOWHERE`] for unwanted fields.
        slots: [u8; NUMBERS],
    },
    /// By name, repeated in every event.
    Named { kind: EventKind },
    /// The new name of a thread.
    Rename,
}

impl Plan {
    const NOWHERE: u8 = u8::MAX;
    /// Shift of the bits that hold the field's type.
    const HOLDS: u32 = 4;

    /// The plan for an event `kind` whose message has these fields.
    pub(crate) fn numbered<'n>(
        kind: EventKind,
        detail: NameId,
        fields: impl Iterator<Item = (&'n str, u32)>,
    ) -> Plan {
        let Some(wanted) = names(kind) else { return Plan::Other };
        let mut slots = [Plan::NOWHERE; NUMBERS];
        let mut found = [false; SLOTS];
        for (name, number) in fields {
            if let Some(slot) = wanted.iter().position(|w| w.name == name)
                && let Some(place) = slots.get_mut(number as usize)
            {
                *place = slot as u8 | (wanted[slot].holds as u8) << Plan::HOLDS;
                found[slot] = true;
            }
        }
        if wanted.iter().zip(found).any(|(w, found)| w.needed && !found) {
            return Plan::Incomplete;
        }
        Plan::Numbered { kind, detail, slots }
    }

    /// The plan for an event that repeats the names of its fields.
    pub(crate) fn named(kind: EventKind) -> Plan {
        if names(kind).is_some() { Plan::Named { kind } } else { Plan::Other }
    }

    /// The slot of field `number` of a message read by number, and what it holds.
    #[inline(always)]
    pub(crate) fn slot(slots: &[u8; NUMBERS], number: u32) -> Option<(usize, Holds)> {
        let place = *slots.get(number as usize)?;
        let slot = (place & ((1 << Plan::HOLDS) - 1)) as usize;
        let holds = match place >> Plan::HOLDS {
            0 => Holds::Number,
            1 => Holds::Text,
            _ => Holds::Numbers,
        };
        (slot < SLOTS).then_some((slot, holds))
    }

    /// Whether the fields of a message that this plan reads have the right types. If not, the
    /// recorder numbers its events differently from Perfetto.
    pub(crate) fn fits(&self, content: &[u8]) -> bool {
        let Plan::Numbered { slots, .. } = self else { return true };
        let mut fits = true;
        let read = Fields::of(content).each(|number, value| {
            if let Some((_, holds)) = Plan::slot(slots, number) {
                fits &= holds.fits(value);
            }
        });
        read.is_ok() && fits
    }

    /// The number of a field in the message whose type is not the required one.
    pub(crate) fn misfit(&self, content: &[u8]) -> Option<u32> {
        let Plan::Numbered { slots, .. } = self else { return None };
        let number = (0..NUMBERS as u32)
            .find(|&n| Plan::slot(slots, n).is_some_and(|s| s.1 == Holds::Number));
        number.filter(|_| !self.fits(content))
    }

    /// The slot of the field `name` of an event `kind`.
    pub(crate) fn slot_of(kind: EventKind, name: &[u8]) -> Option<usize> {
        names(kind)?.iter().position(|w| w.name.as_bytes() == name)
    }
}

/// Functions by their number in the trace, resolved by the recorder.
pub(crate) type Symbols = FxHashMap<u64, NameId>;

/// The meaning of the numbers in events.
#[derive(Clone, Copy)]
pub(crate) struct Meaning<'a> {
    /// The states of the recorded kernel.
    pub(crate) states: &'a StateTable,
    /// The functions that the recorder resolved.
    pub(crate) symbols: Option<&'a Symbols>,
}

/// The event's meaning, from its fields.
#[inline(always)]
pub(crate) fn what(
    kind: EventKind,
    detail: NameId,
    s: &Slots<'_>,
    meaning: Meaning<'_>,
    names: &mut LocalNames,
    batch: &mut Batch,
) -> What {
    let function = |at: u64| match meaning.symbols.and_then(|s| s.get(&at)) {
        Some(&name) => (0, name),
        None => (at, NameId::NONE),
    };
    let delay = |kind| What::StatDelay { kind, tid: s.tid(0), delay: s.int[1] };
    let (lock, vec) = (s.int[0], s.int[0] as u32);
    match kind {
        EventKind::Switch => {
            let (prev, next) = (s.tid(0), s.tid(1));
            What::Switch {
                prev,
                next,
                prev_state: meaning.states.state(s.int[2]),
                prev_comm: s.name(5, prev.0, names),
                next_comm: s.name(6, next.0, names),
                prev_prio: s.prio(3),
                next_prio: s.prio(4),
            }
        }
        EventKind::Waking | EventKind::Wakeup | EventKind::WakeupNew => {
            let (tid, target, prio) = (s.tid(0), s.cpu(1), s.prio(2));
            let comm = s.name(3, tid.0, names);
            match kind {
                EventKind::Waking => What::Waking { tid, comm, prio, target, in_irq: false },
                EventKind::Wakeup => What::Wakeup { tid, comm, prio, target },
                _ => What::WakeupNew { tid, comm, prio, target },
            }
        }
        EventKind::Migrate => What::Migrate { tid: s.tid(0), from: s.cpu(1), to: s.cpu(2) },
        EventKind::Fork => What::Fork {
            parent: s.tid(0),
            child: s.tid(1),
            child_comm: s.name(2, s.int[1] as u32, names),
        },
        EventKind::Exec => {
            What::Exec { tid: s.tid(0), old: s.tid(1), filename: s.name(2, s.int[0] as u32, names) }
        }
        EventKind::Exit => What::Exit { tid: s.tid(0), comm: s.name(1, s.int[0] as u32, names) },
        EventKind::StatRuntime => What::StatRuntime { tid: s.tid(0), runtime: s.int[1] },
        EventKind::StatWait => delay(StatKind::Wait),
        EventKind::StatSleep => delay(StatKind::Sleep),
        EventKind::StatIoWait => delay(StatKind::IoWait),
        EventKind::StatBlocked => delay(StatKind::Blocked),
        EventKind::BlockedReason => {
            let (caller, name) = function(s.int[2]);
            What::BlockedReason { tid: s.tid(0), io_wait: s.int[1] != 0, caller, name }
        }
        EventKind::AttachTask => What::AttachTask {
            tid: s.tid(0),
            root: s.int[1] as u32,
            path: s.name(2, s.int[0] as u32, names),
        },
        EventKind::PiSetPrio => What::PiSetPrio { tid: s.tid(0), old: s.prio(1), new: s.prio(2) },
        EventKind::SysEnter => {
            let args = if s.arg_count > 0 { batch.push_args(s.args) } else { ArgsRef::NONE };
            What::SysEnter { nr: s.int[0] as u32, args }
        }
        EventKind::SysExit => What::SysExit { nr: s.int[0] as u32, ret: s.int[1] as i64 },
        EventKind::SysEnterNamed | EventKind::SysExitNamed => What::Other,
        EventKind::IrqEntry => {
            let irq = s.int[0] as u32;
            What::IrqEntry { irq, name: s.name(1, irq, names) }
        }
        EventKind::IrqExit => What::IrqExit { irq: s.int[0] as u32 },
        EventKind::SoftirqRaise => What::SoftirqRaise { vec },
        EventKind::SoftirqEntry => What::SoftirqEntry { vec },
        EventKind::SoftirqExit => What::SoftirqExit { vec },
        EventKind::VectorEntry => What::VectorEntry { vector: vec, name: detail },
        EventKind::VectorExit => What::VectorExit { vector: vec },
        EventKind::WorkQueue => {
            let (function, name) = function(s.int[1]);
            What::WorkQueue { work: s.int[0], function, name }
        }
        EventKind::WorkStart => {
            let (function, name) = function(s.int[1]);
            What::WorkStart { work: s.int[0], function, name }
        }
        EventKind::WorkEnd => What::WorkEnd { work: s.int[0] },
        EventKind::PageFaultUser | EventKind::PageFaultKernel => What::PageFault {
            user: kind == EventKind::PageFaultUser,
            address: s.int[0],
            ip: s.int[1],
        },
        EventKind::ContentionBegin => {
            What::ContentionBegin { lock, flags: s.int[1] as u32, stack: StackRef::NONE }
        }
        EventKind::ContentionEnd => What::ContentionEnd { lock, ret: s.int[1] as i32 },
        EventKind::ContendedRelease => What::ContendedRelease { lock },
        EventKind::LockAcquire => What::LockAcquire {
            lock,
            name: s.name(1, (lock >> 4) as u32, names),
            flags: s.int[2] as u32,
        },
        EventKind::LockContended => {
            What::LockContended { lock, name: s.name(1, (lock >> 4) as u32, names) }
        }
        EventKind::LockAcquired => {
            What::LockAcquired { lock, name: s.name(1, (lock >> 4) as u32, names) }
        }
        EventKind::LockRelease => {
            What::LockRelease { lock, name: s.name(1, (lock >> 4) as u32, names) }
        }
        EventKind::CpuIdle => What::CpuIdle { state: s.int[0] as u32, cpu: s.cpu(1) },
    }
}
