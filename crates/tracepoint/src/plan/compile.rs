//! From formats to plans: which fields of an event are needed, and their names in different
//! kernels.

use super::decode::{ALL_ARGS, ARGS};
use super::{Abi, CallNumber, Int, LockdepKind, Plan, SoftirqKind, Str, WakeKind};
use crate::{Field, Format, states};
use holdup_trace::{EventKind, StatKind, StateTable};

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

    /// A missing string is no reason to reject an event.
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
    /// Compiles a format. Never fails: what cannot be interpreted becomes [`Plan::Other`] or
    /// [`Plan::Incomplete`].
    pub fn compile(format: &Format, abi: Abi) -> Plan {
        Plan::compile_for(format, abi, None)
    }

    /// Like [`Plan::compile`], for a kernel whose release (`uname -r`) is in the file: if the print
    /// format is missing, the meaning of `prev_state` follows that release.
    pub fn compile_for(format: &Format, abi: Abi, release: Option<&str>) -> Plan {
        let Some(event) = EventKind::of(&format.system, &format.name) else { return Plan::Other };
        let mut f = Fields { format, min: 0, missing: None };
        let wake = |f: &mut Fields, kind| Plan::Wake {
            kind,
            comm: f.str(&["comm"]),
            pid: f.int(&["pid"]),
            prio: f.int(&["prio"]),
            target_cpu: f.int(&["target_cpu", "cpu"]),
            flags: f.optional_int(&["common_flags"]),
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
            EventKind::AttachTask => Plan::AttachTask {
                pid: f.int(&["pid"]),
                dst_root: f.int(&["dst_root"]),
                dst_path: f.str(&["dst_path"]),
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
            // Not every event of irq_vectors is a pair: vector_alloc and similar events end
            // otherwise.
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
            EventKind::ContendedRelease => {
                Plan::ContendedRelease { lock_addr: f.int(&["lock_addr"]), min: f.min() }
            }
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
            (None, plan) => plan.of_64_bits().unwrap_or(plan),
        }
    }

    /// Most events of most traces: offsets known at compile time halve the decoding time. `None` if
    /// this is no system call in the layout of 64-bit kernels.
    fn of_64_bits(&self) -> Option<Plan> {
        let number = |nr: Int| match (nr.offset, nr.size) {
            (8, 8) => Some(CallNumber::Long),
            (8, 4) => Some(CallNumber::Int),
            _ => None,
        };
        match *self {
            Plan::SysEnter { id, args: 16, arg_size: 8, .. } => {
                Some(Plan::SysEnter64 { nr: number(id)?, args: ALL_ARGS })
            }
            Plan::SysEnterNamed { nr, args, .. } => {
                let here = |&(i, arg): &(usize, Option<Int>)| {
                    arg.is_some_and(|a| (a.offset as usize, a.size) == (ARGS + 8 * i, 8))
                };
                let first = args.into_iter().enumerate().take_while(here).count();
                let only = args[first..].iter().all(Option::is_none);
                only.then_some(Plan::SysEnter64 { nr: number(nr)?, args: first as u8 })
            }
            Plan::SysExit { id, ret: Int { offset: 16, size: 8, .. }, .. } => {
                Some(Plan::SysExit64 { nr: number(id)? })
            }
            _ => None,
        }
    }
}
