//! Plans: an event's format compiled to loads at fixed offsets.
//!
//! A plan is made once per event of a file. It knows the offset and width of each field holdup
//! needs and the shortest record that holds them all, so decoding costs one length check and a
//! few loads. Events holdup draws no conclusion from get [`Plan::Other`], a known event that
//! lacks a needed field gets [`Plan::Incomplete`]; both decode to [`What::Other`].

use crate::{Endian, Field, Format, states};
use holdup_trace::{
    ArgsRef, Batch, Cpu, EventKind, LocalNames, NameId, StackRef, StatKind, StateTable, Tid, What,
};

/// Properties of the recorded machine that change how a payload is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abi {
    /// Bytes of a C `long`: 4 or 8.
    pub long_size: u8,
}

/// An integer field: where it is and how wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    offset: u16,
    size: u8,
    signed: bool,
}

impl Int {
    #[inline(always)]
    fn get<E: Endian>(self, raw: &[u8]) -> u64 {
        let at = self.offset as usize;
        match (self.size, self.signed) {
            (8, _) => E::u64(raw, at),
            (4, false) => E::u32(raw, at) as u64,
            (4, true) => E::u32(raw, at) as i32 as u64,
            (2, false) => E::u16(raw, at) as u64,
            (2, true) => E::u16(raw, at) as i16 as u64,
            (_, false) => raw.get(at).copied().unwrap_or(0) as u64,
            (_, true) => raw.get(at).copied().unwrap_or(0) as i8 as u64,
        }
    }
    #[inline(always)]
    fn u32<E: Endian>(self, raw: &[u8]) -> u32 {
        self.get::<E>(raw) as u32
    }
    #[inline(always)]
    fn tid<E: Endian>(self, raw: &[u8]) -> Tid {
        Tid(self.u32::<E>(raw))
    }
    #[inline(always)]
    fn cpu<E: Endian>(self, raw: &[u8]) -> Cpu {
        Cpu(u16::try_from(self.u32::<E>(raw)).unwrap_or(u16::MAX))
    }
    #[inline(always)]
    fn prio<E: Endian>(self, raw: &[u8]) -> i16 {
        self.get::<E>(raw) as i16
    }
}

/// A string field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Str {
    /// `char[n]`, n >= 16: the first 16 bytes are read.
    Comm(u16),
    /// `char[n]` of any length.
    Fixed(u16, u16),
    /// `__data_loc`: offset of the locator.
    DataLoc(u16),
    /// `__rel_loc`: offset of the locator.
    RelLoc(u16),
    /// The event does not have it.
    Absent,
}

impl Str {
    #[inline]
    fn bytes<E: Endian>(self, raw: &[u8]) -> &[u8] {
        let (at, len) = match self {
            Str::Comm(at) => (at as usize, 16),
            Str::Fixed(at, len) => (at as usize, len as usize),
            Str::DataLoc(at) => {
                let loc = E::u32(raw, at as usize);
                ((loc & 0xffff) as usize, (loc >> 16) as usize)
            }
            Str::RelLoc(at) => {
                let loc = E::u32(raw, at as usize);
                (at as usize + 4 + (loc & 0xffff) as usize, (loc >> 16) as usize)
            }
            Str::Absent => return &[],
        };
        raw.get(at..(at + len).min(raw.len())).unwrap_or(&[])
    }

    #[inline]
    fn name<E: Endian>(self, raw: &[u8], hint: u32, names: &mut LocalNames) -> NameId {
        if let Str::Comm(at) = self
            && let Some(comm) = raw.get(at as usize..).and_then(|b| b.first_chunk::<16>())
        {
            return names.comm(hint, *comm);
        }
        names.name(hint, self.bytes::<E>(raw))
    }
}

/// Where an event's fields are. See the module's description.
#[allow(missing_docs, reason = "fields are named after the tracepoint fields they locate")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Not an event holdup interprets.
    Other,
    /// An event holdup would interpret, but this field is missing.
    Incomplete(&'static str),
    Switch {
        min: u16,
        prev_comm: Str,
        prev_pid: Int,
        prev_prio: Int,
        prev_state: Int,
        /// What its numbers mean on the recorded kernel.
        states: StateTable,
        next_comm: Str,
        next_pid: Int,
        next_prio: Int,
    },
    /// The three wake-ups share a layout; `kind` says which.
    Wake {
        min: u16,
        kind: WakeKind,
        comm: Str,
        pid: Int,
        prio: Int,
        target_cpu: Int,
    },
    Migrate {
        min: u16,
        pid: Int,
        orig_cpu: Int,
        dest_cpu: Int,
    },
    Fork {
        min: u16,
        parent_pid: Int,
        child_pid: Int,
        child_comm: Str,
    },
    Exec {
        min: u16,
        pid: Int,
        old_pid: Int,
        filename: Str,
    },
    Exit {
        min: u16,
        pid: Int,
        comm: Str,
    },
    StatRuntime {
        min: u16,
        pid: Int,
        runtime: Int,
    },
    StatDelay {
        min: u16,
        kind: StatKind,
        pid: Int,
        delay: Int,
    },
    BlockedReason {
        min: u16,
        pid: Int,
        io_wait: Int,
        caller: Int,
    },
    PiSetPrio {
        min: u16,
        pid: Int,
        oldprio: Int,
        newprio: Int,
    },
    /// `raw_syscalls:sys_enter` as 64-bit kernels write it: number at 8, six arguments of 8 bytes
    /// from 16.
    SysEnter64,
    /// `raw_syscalls:sys_exit` as 64-bit kernels write it: number at 8, result at 16.
    SysExit64,
    /// `raw_syscalls:sys_enter`: six longs.
    SysEnter {
        min: u16,
        id: Int,
        args: u16,
        arg_size: u8,
    },
    /// `syscalls:sys_enter_NAME`: a field per argument.
    SysEnterNamed {
        min: u16,
        nr: Int,
        args: [Option<Int>; 6],
    },
    SysExit {
        min: u16,
        id: Int,
        ret: Int,
    },
    IrqEntry {
        min: u16,
        irq: Int,
        name: Str,
    },
    IrqExit {
        min: u16,
        irq: Int,
    },
    VectorEntry {
        min: u16,
        vector: Int,
        name: Box<str>,
    },
    VectorExit {
        min: u16,
        vector: Int,
    },
    Softirq {
        min: u16,
        kind: SoftirqKind,
        vec: Int,
    },
    WorkQueue {
        min: u16,
        work: Int,
        function: Int,
    },
    WorkStart {
        min: u16,
        work: Int,
        function: Int,
    },
    WorkEnd {
        min: u16,
        work: Int,
    },
    PageFault {
        min: u16,
        user: bool,
        address: Int,
        ip: Int,
    },
    ContentionBegin {
        min: u16,
        lock_addr: Int,
        flags: Int,
    },
    ContentionEnd {
        min: u16,
        lock_addr: Int,
        ret: Int,
    },
    /// The four lockdep events; `kind` says which.
    Lockdep {
        min: u16,
        kind: LockdepKind,
        lock: Int,
        name: Str,
        flags: Option<Int>,
    },
    CpuIdle {
        min: u16,
        state: Int,
        cpu_id: Int,
    },
}

/// Which wake-up.
#[allow(missing_docs, reason = "named after their events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeKind {
    Waking,
    Wakeup,
    WakeupNew,
}

/// Which softirq event.
#[allow(missing_docs, reason = "named after their events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftirqKind {
    Raise,
    Entry,
    Exit,
}

/// Which lockdep event.
#[allow(missing_docs, reason = "named after their events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockdepKind {
    Acquire,
    Contended,
    Acquired,
    Release,
}

/// Bytes of a [`Plan::SysEnter64`].
const SYS_ENTER_64: usize = 64;
/// Bytes of a [`Plan::SysExit64`].
const SYS_EXIT_64: usize = 24;

/// Decode a [`Plan::SysEnter64`] of its own: number and arguments.
#[inline(always)]
pub fn sys_enter_64<E: Endian>(raw: &[u8], batch: &mut Batch) -> Option<(u32, ArgsRef)> {
    let raw = raw.first_chunk::<SYS_ENTER_64>()?;
    // Not by way of this function's result: see the reader of perf.data on copies of what was just
    // stored.
    let args = batch.push_args(std::array::from_fn(|i| E::u64(raw, 16 + 8 * i)));
    Some((E::u64(raw, 8) as u32, args))
}

/// Decode a [`Plan::SysExit64`] of its own: number and result.
#[inline(always)]
pub fn sys_exit_64<E: Endian>(raw: &[u8]) -> Option<(u32, i64)> {
    let raw = raw.first_chunk::<SYS_EXIT_64>()?;
    Some((E::u64(raw, 8) as u32, E::u64(raw, 16) as i64))
}

/// Collects the fields of one format and the length that holds them all.
struct Fields<'a> {
    format: &'a Format,
    min: u32,
    missing: Option<&'static str>,
}

impl<'a> Fields<'a> {
    fn find(&mut self, names: &'static [&'static str]) -> Option<&'a Field> {
        let field = names.iter().find_map(|n| self.format.field(n));
        // An offset beyond 64 KiB cannot be in a record: tracepoint records are at most a page.
        let field = field.filter(|f| f.offset.saturating_add(f.size) <= u16::MAX as u32);
        if let Some(f) = field {
            self.min = self.min.max(f.offset + f.size);
        }
        field
    }

    fn int(&mut self, names: &'static [&'static str]) -> Int {
        match self.find(names).and_then(int_of) {
            Some(int) => int,
            None => {
                self.missing.get_or_insert(names[0]);
                Int { offset: 0, size: 1, signed: false }
            }
        }
    }

    fn optional_int(&mut self, names: &'static [&'static str]) -> Option<Int> {
        self.find(names).and_then(int_of)
    }

    /// Strings are never worth refusing an event for.
    fn str(&mut self, names: &'static [&'static str]) -> Str {
        match self.find(names) {
            Some(f) if f.data_loc => Str::DataLoc(f.offset as u16),
            Some(f) if f.rel_loc => Str::RelLoc(f.offset as u16),
            Some(f) if f.array.is_some() && f.size == 16 => Str::Comm(f.offset as u16),
            Some(f) if f.array.is_some() => Str::Fixed(f.offset as u16, f.size as u16),
            _ => Str::Absent,
        }
    }

    fn min(&self) -> u16 {
        self.min as u16
    }
}

fn int_of(f: &Field) -> Option<Int> {
    (matches!(f.size, 1 | 2 | 4 | 8) && !f.data_loc && !f.rel_loc).then_some(Int {
        offset: f.offset as u16,
        size: f.size as u8,
        signed: f.signed,
    })
}

impl Plan {
    /// How the states of a [`Plan::Switch`] are read, unless its own format says it: a label and
    /// words for `info`.
    pub fn note(&self) -> Option<(String, String)> {
        match self {
            Plan::Switch { states, .. } => states.note(),
            _ => None,
        }
    }

    /// Compile a format. Never fails: what cannot be interpreted becomes [`Plan::Other`] or
    /// [`Plan::Incomplete`].
    pub fn compile(format: &Format, abi: Abi) -> Plan {
        Plan::compile_for(format, abi, None)
    }

    /// The same for a kernel of which the file says the release (`uname -r`): what the format
    /// leaves open, the meaning of `prev_state` where its print format is missing, is read as that
    /// kernel wrote it.
    pub fn compile_for(format: &Format, abi: Abi, release: Option<&str>) -> Plan {
        let Some(event) = EventKind::of(&format.system, &format.name) else { return Plan::Other };
        let mut f = Fields { format, min: 0, missing: None };
        let wake = |f: &mut Fields, kind| Plan::Wake {
            kind,
            comm: f.str(&["comm"]),
            pid: f.int(&["pid"]),
            prio: f.int(&["prio"]),
            target_cpu: f.int(&["target_cpu", "cpu"]),
            min: f.min(),
        };
        let stat = |f: &mut Fields, kind| Plan::StatDelay {
            kind,
            pid: f.int(&["pid"]),
            delay: f.int(&["delay"]),
            min: f.min(),
        };
        let softirq =
            |f: &mut Fields, kind| Plan::Softirq { kind, vec: f.int(&["vec"]), min: f.min() };
        let lockdep = |f: &mut Fields, kind, flags| Plan::Lockdep {
            kind,
            lock: f.int(&["lockdep_addr"]),
            name: f.str(&["name"]),
            flags: if flags { f.optional_int(&["flags"]) } else { None },
            min: f.min(),
        };
        let plan = match event {
            EventKind::Switch => Plan::Switch {
                prev_comm: f.str(&["prev_comm"]),
                prev_pid: f.int(&["prev_pid"]),
                prev_prio: f.int(&["prev_prio"]),
                prev_state: f.int(&["prev_state"]),
                states: states(format).unwrap_or_else(|| StateTable::of_kernel(release)),
                next_comm: f.str(&["next_comm"]),
                next_pid: f.int(&["next_pid"]),
                next_prio: f.int(&["next_prio"]),
                min: f.min(),
            },
            EventKind::Waking => wake(&mut f, WakeKind::Waking),
            EventKind::Wakeup => wake(&mut f, WakeKind::Wakeup),
            EventKind::WakeupNew => wake(&mut f, WakeKind::WakeupNew),
            EventKind::Migrate => Plan::Migrate {
                pid: f.int(&["pid"]),
                orig_cpu: f.int(&["orig_cpu"]),
                dest_cpu: f.int(&["dest_cpu"]),
                min: f.min(),
            },
            EventKind::Fork => Plan::Fork {
                parent_pid: f.int(&["parent_pid"]),
                child_pid: f.int(&["child_pid"]),
                child_comm: f.str(&["child_comm"]),
                min: f.min(),
            },
            EventKind::Exec => Plan::Exec {
                pid: f.int(&["pid"]),
                old_pid: f.int(&["old_pid"]),
                filename: f.str(&["filename"]),
                min: f.min(),
            },
            EventKind::Exit => {
                Plan::Exit { pid: f.int(&["pid"]), comm: f.str(&["comm"]), min: f.min() }
            }
            EventKind::StatRuntime => Plan::StatRuntime {
                pid: f.int(&["pid"]),
                runtime: f.int(&["runtime"]),
                min: f.min(),
            },
            EventKind::StatWait => stat(&mut f, StatKind::Wait),
            EventKind::StatSleep => stat(&mut f, StatKind::Sleep),
            EventKind::StatIoWait => stat(&mut f, StatKind::IoWait),
            EventKind::StatBlocked => stat(&mut f, StatKind::Blocked),
            EventKind::BlockedReason => Plan::BlockedReason {
                pid: f.int(&["pid"]),
                io_wait: f.int(&["io_wait"]),
                caller: f.int(&["caller"]),
                min: f.min(),
            },
            EventKind::PiSetPrio => Plan::PiSetPrio {
                pid: f.int(&["pid"]),
                oldprio: f.int(&["oldprio"]),
                newprio: f.int(&["newprio"]),
                min: f.min(),
            },
            EventKind::SysEnter => {
                let id = f.int(&["id"]);
                let args = f.find(&["args"]).filter(|a| a.size == 6 * abi.long_size as u32);
                if args.is_none() {
                    f.missing.get_or_insert("args");
                }
                Plan::SysEnter {
                    id,
                    args: args.map_or(0, |a| a.offset as u16),
                    arg_size: abi.long_size,
                    min: f.min(),
                }
            }
            EventKind::SysExit => {
                Plan::SysExit { id: f.int(&["id"]), ret: f.int(&["ret"]), min: f.min() }
            }
            EventKind::SysEnterNamed => {
                // Older kernels call the number `nr`, which may also be an argument's name.
                let nr = f.int(&["__syscall_nr", "nr"]);
                let nr_offset = nr.offset as u32;
                let mut args = [None; 6];
                let named = format
                    .fields
                    .iter()
                    .filter(|x| !x.name.starts_with("common_") && x.offset != nr_offset);
                for (slot, field) in args.iter_mut().zip(named) {
                    *slot = int_of(field).filter(|_| field.offset + field.size <= u16::MAX as u32);
                    f.min = f.min.max(field.offset + field.size).min(u16::MAX as u32);
                }
                Plan::SysEnterNamed { nr, args, min: f.min() }
            }
            EventKind::SysExitNamed => Plan::SysExit {
                id: f.int(&["__syscall_nr", "nr"]),
                ret: f.int(&["ret"]),
                min: f.min(),
            },
            EventKind::IrqEntry => {
                Plan::IrqEntry { irq: f.int(&["irq"]), name: f.str(&["name"]), min: f.min() }
            }
            EventKind::IrqExit => Plan::IrqExit { irq: f.int(&["irq"]), min: f.min() },
            EventKind::SoftirqRaise => softirq(&mut f, SoftirqKind::Raise),
            EventKind::SoftirqEntry => softirq(&mut f, SoftirqKind::Entry),
            EventKind::SoftirqExit => softirq(&mut f, SoftirqKind::Exit),
            // Not every event of irq_vectors is a pair: vector_alloc and its kin end otherwise.
            EventKind::VectorEntry => Plan::VectorEntry {
                vector: f.int(&["vector"]),
                name: event.detail(&format.name).unwrap_or("").into(),
                min: f.min(),
            },
            EventKind::VectorExit => Plan::VectorExit { vector: f.int(&["vector"]), min: f.min() },
            EventKind::WorkQueue => Plan::WorkQueue {
                work: f.int(&["work"]),
                function: f.int(&["function"]),
                min: f.min(),
            },
            EventKind::WorkStart => Plan::WorkStart {
                work: f.int(&["work"]),
                function: f.int(&["function"]),
                min: f.min(),
            },
            EventKind::WorkEnd => Plan::WorkEnd { work: f.int(&["work"]), min: f.min() },
            EventKind::PageFaultUser | EventKind::PageFaultKernel => Plan::PageFault {
                user: event == EventKind::PageFaultUser,
                address: f.int(&["address"]),
                ip: f.int(&["ip"]),
                min: f.min(),
            },
            EventKind::ContentionBegin => Plan::ContentionBegin {
                lock_addr: f.int(&["lock_addr"]),
                flags: f.int(&["flags"]),
                min: f.min(),
            },
            EventKind::ContentionEnd => Plan::ContentionEnd {
                lock_addr: f.int(&["lock_addr"]),
                ret: f.int(&["ret"]),
                min: f.min(),
            },
            EventKind::LockAcquire => lockdep(&mut f, LockdepKind::Acquire, true),
            EventKind::LockContended => lockdep(&mut f, LockdepKind::Contended, false),
            EventKind::LockAcquired => lockdep(&mut f, LockdepKind::Acquired, false),
            EventKind::LockRelease => lockdep(&mut f, LockdepKind::Release, false),
            EventKind::CpuIdle => {
                Plan::CpuIdle { state: f.int(&["state"]), cpu_id: f.int(&["cpu_id"]), min: f.min() }
            }
        };
        match (f.missing, plan) {
            (Some(field), _) => Plan::Incomplete(field),
            // Half of most traces; places known when holdup is compiled are half the work.
            (
                None,
                Plan::SysEnter {
                    id: Int { offset: 8, size: 8, .. }, args: 16, arg_size: 8, ..
                },
            ) => Plan::SysEnter64,
            (
                None,
                Plan::SysExit {
                    id: Int { offset: 8, size: 8, .. },
                    ret: Int { offset: 16, size: 8, .. },
                    ..
                },
            ) => Plan::SysExit64,
            (None, plan) => plan,
        }
    }

    /// Shortest record this plan can decode.
    pub fn min_len(&self) -> usize {
        match *self {
            Plan::Other | Plan::Incomplete(_) => 0,
            Plan::SysEnter64 => SYS_ENTER_64,
            Plan::SysExit64 => SYS_EXIT_64,
            Plan::Switch { min, .. }
            | Plan::Wake { min, .. }
            | Plan::Migrate { min, .. }
            | Plan::Fork { min, .. }
            | Plan::Exec { min, .. }
            | Plan::Exit { min, .. }
            | Plan::StatRuntime { min, .. }
            | Plan::StatDelay { min, .. }
            | Plan::BlockedReason { min, .. }
            | Plan::PiSetPrio { min, .. }
            | Plan::SysEnter { min, .. }
            | Plan::SysEnterNamed { min, .. }
            | Plan::SysExit { min, .. }
            | Plan::IrqEntry { min, .. }
            | Plan::IrqExit { min, .. }
            | Plan::VectorEntry { min, .. }
            | Plan::VectorExit { min, .. }
            | Plan::Softirq { min, .. }
            | Plan::WorkQueue { min, .. }
            | Plan::WorkStart { min, .. }
            | Plan::WorkEnd { min, .. }
            | Plan::PageFault { min, .. }
            | Plan::ContentionBegin { min, .. }
            | Plan::ContentionEnd { min, .. }
            | Plan::Lockdep { min, .. }
            | Plan::CpuIdle { min, .. } => min as usize,
        }
    }

    /// Decode one raw record (starting at `common_type`). `None` if it is too short for its
    /// format. Contention events come with [`StackRef::NONE`]: the chain is not in the payload,
    /// and the container's reader adds it.
    #[inline(always)]
    pub fn decode<E: Endian>(
        &self,
        raw: &[u8],
        names: &mut LocalNames,
        batch: &mut Batch,
    ) -> Option<What> {
        match self {
            Plan::SysEnter64 => {
                sys_enter_64::<E>(raw, batch).map(|(nr, args)| What::SysEnter { nr, args })
            }
            Plan::SysExit64 => sys_exit_64::<E>(raw).map(|(nr, ret)| What::SysExit { nr, ret }),
            _ => self.decode_any::<E>(raw, names, batch),
        }
    }

    #[inline(never)]
    fn decode_any<E: Endian>(
        &self,
        raw: &[u8],
        names: &mut LocalNames,
        batch: &mut Batch,
    ) -> Option<What> {
        if raw.len() < self.min_len() {
            return None;
        }
        Some(match *self {
            // The last two are decoded above.
            Plan::Other | Plan::Incomplete(_) | Plan::SysEnter64 | Plan::SysExit64 => What::Other,
            Plan::SysEnter { id, args, arg_size, .. } => {
                let (at, size) = (args as usize, arg_size as usize);
                let arg = |i| {
                    if size == 8 { E::u64(raw, at + 8 * i) } else { E::u32(raw, at + 4 * i) as u64 }
                };
                What::SysEnter {
                    nr: id.u32::<E>(raw),
                    args: batch.push_args(std::array::from_fn(arg)),
                }
            }
            Plan::SysExit { id, ret, .. } => {
                What::SysExit { nr: id.u32::<E>(raw), ret: ret.get::<E>(raw) as i64 }
            }
            Plan::Switch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                ref states,
                next_comm,
                next_pid,
                next_prio,
                ..
            } => {
                let (prev, next) = (prev_pid.tid::<E>(raw), next_pid.tid::<E>(raw));
                What::Switch {
                    prev,
                    next,
                    prev_state: states.state(prev_state.get::<E>(raw)),
                    prev_comm: prev_comm.name::<E>(raw, prev.0, names),
                    next_comm: next_comm.name::<E>(raw, next.0, names),
                    prev_prio: prev_prio.prio::<E>(raw),
                    next_prio: next_prio.prio::<E>(raw),
                }
            }
            Plan::Wake { kind, comm, pid, prio, target_cpu, .. } => {
                let tid = pid.tid::<E>(raw);
                let comm = comm.name::<E>(raw, tid.0, names);
                let prio = prio.prio::<E>(raw);
                let target = target_cpu.cpu::<E>(raw);
                match kind {
                    WakeKind::Waking => What::Waking { tid, comm, prio, target },
                    WakeKind::Wakeup => What::Wakeup { tid, comm, prio, target },
                    WakeKind::WakeupNew => What::WakeupNew { tid, comm, prio, target },
                }
            }
            Plan::Migrate { pid, orig_cpu, dest_cpu, .. } => What::Migrate {
                tid: pid.tid::<E>(raw),
                from: orig_cpu.cpu::<E>(raw),
                to: dest_cpu.cpu::<E>(raw),
            },
            Plan::Fork { parent_pid, child_pid, child_comm, .. } => {
                let child = child_pid.tid::<E>(raw);
                What::Fork {
                    parent: parent_pid.tid::<E>(raw),
                    child,
                    child_comm: child_comm.name::<E>(raw, child.0, names),
                }
            }
            Plan::Exec { pid, old_pid, filename, .. } => {
                let tid = pid.tid::<E>(raw);
                What::Exec {
                    tid,
                    old: old_pid.tid::<E>(raw),
                    filename: filename.name::<E>(raw, tid.0, names),
                }
            }
            Plan::Exit { pid, comm, .. } => {
                let tid = pid.tid::<E>(raw);
                What::Exit { tid, comm: comm.name::<E>(raw, tid.0, names) }
            }
            Plan::StatRuntime { pid, runtime, .. } => {
                What::StatRuntime { tid: pid.tid::<E>(raw), runtime: runtime.get::<E>(raw) }
            }
            Plan::StatDelay { kind, pid, delay, .. } => {
                What::StatDelay { kind, tid: pid.tid::<E>(raw), delay: delay.get::<E>(raw) }
            }
            Plan::BlockedReason { pid, io_wait, caller, .. } => What::BlockedReason {
                tid: pid.tid::<E>(raw),
                io_wait: io_wait.get::<E>(raw) != 0,
                caller: caller.get::<E>(raw),
                name: NameId::NONE,
            },
            Plan::PiSetPrio { pid, oldprio, newprio, .. } => What::PiSetPrio {
                tid: pid.tid::<E>(raw),
                old: oldprio.prio::<E>(raw),
                new: newprio.prio::<E>(raw),
            },
            Plan::SysEnterNamed { nr, ref args, .. } => {
                let args: [u64; 6] =
                    std::array::from_fn(|i| args[i].map_or(0, |a| a.get::<E>(raw)));
                What::SysEnter { nr: nr.u32::<E>(raw), args: batch.push_args(args) }
            }
            Plan::IrqEntry { irq, name, .. } => {
                let irq = irq.u32::<E>(raw);
                What::IrqEntry { irq, name: name.name::<E>(raw, irq, names) }
            }
            Plan::IrqExit { irq, .. } => What::IrqExit { irq: irq.u32::<E>(raw) },
            Plan::VectorEntry { vector, ref name, .. } => {
                let vector = vector.u32::<E>(raw);
                What::VectorEntry { vector, name: names.name(vector, name.as_bytes()) }
            }
            Plan::VectorExit { vector, .. } => What::VectorExit { vector: vector.u32::<E>(raw) },
            Plan::Softirq { kind, vec, .. } => {
                let vec = vec.u32::<E>(raw);
                match kind {
                    SoftirqKind::Raise => What::SoftirqRaise { vec },
                    SoftirqKind::Entry => What::SoftirqEntry { vec },
                    SoftirqKind::Exit => What::SoftirqExit { vec },
                }
            }
            Plan::WorkQueue { work, function, .. } => What::WorkQueue {
                work: work.get::<E>(raw),
                function: function.get::<E>(raw),
                name: NameId::NONE,
            },
            Plan::WorkStart { work, function, .. } => What::WorkStart {
                work: work.get::<E>(raw),
                function: function.get::<E>(raw),
                name: NameId::NONE,
            },
            Plan::WorkEnd { work, .. } => What::WorkEnd { work: work.get::<E>(raw) },
            Plan::PageFault { user, address, ip, .. } => {
                What::PageFault { user, address: address.get::<E>(raw), ip: ip.get::<E>(raw) }
            }
            Plan::ContentionBegin { lock_addr, flags, .. } => What::ContentionBegin {
                lock: lock_addr.get::<E>(raw),
                flags: flags.u32::<E>(raw),
                stack: StackRef::NONE,
            },
            Plan::ContentionEnd { lock_addr, ret, .. } => {
                What::ContentionEnd { lock: lock_addr.get::<E>(raw), ret: ret.get::<E>(raw) as i32 }
            }
            Plan::Lockdep { kind, lock, name, flags, .. } => {
                let lock = lock.get::<E>(raw);
                let name = name.name::<E>(raw, (lock >> 4) as u32, names);
                match kind {
                    LockdepKind::Acquire => What::LockAcquire {
                        lock,
                        name,
                        flags: flags.map_or(0, |f| f.u32::<E>(raw)),
                    },
                    LockdepKind::Contended => What::LockContended { lock, name },
                    LockdepKind::Acquired => What::LockAcquired { lock, name },
                    LockdepKind::Release => What::LockRelease { lock, name },
                }
            }
            Plan::CpuIdle { state, cpu_id, .. } => {
                What::CpuIdle { state: state.u32::<E>(raw), cpu: cpu_id.cpu::<E>(raw) }
            }
        })
    }
}
