//! Maps LTTng's events and their fields to holdup's events.
//!
//! Fields that the kernel names `pid` are `tid` here, because they hold a thread's id.

use crate::plan::{Slot, Want};
use crate::types::Type;
use holdup_trace::EventKind;

/// The meaning of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    Other,
    Kernel(EventKind),
    /// `lttng_statedump_process_state`: a thread that existed when recording began.
    Process,
}

/// Registers for fields that all events of a stream share.
pub(crate) mod reg {
    pub(crate) const STREAM: u8 = 1;
    pub(crate) const INSTANCE: u8 = 2;
    pub(crate) const BEGIN: u8 = 3;
    pub(crate) const END: u8 = 4;
    pub(crate) const CONTENT: u8 = 5;
    pub(crate) const PACKET: u8 = 6;
    pub(crate) const SEQ: u8 = 7;
    pub(crate) const DISCARDED: u8 = 8;
    pub(crate) const CPU: u8 = 9;
    pub(crate) const ID: u8 = 10;
    pub(crate) const TID: u8 = 11;
    pub(crate) const PID: u8 = 12;
    pub(crate) const MAGIC: u8 = 13;
    /// The first register of an event's own fields.
    pub(crate) const OWN: u8 = 20;
    /// Texts: an event's own, the name of the thread, the uuid of a packet.
    pub(crate) const TEXT: u8 = 0;
    pub(crate) const TEXT2: u8 = 1;
    pub(crate) const COMM: u8 = 2;
    pub(crate) const UUID: u8 = 3;
}

/// LTTng up to 2.5: the event of any call's return, and the prefix of events of a call's begin.
pub(crate) const OLD_EXIT: &str = "exit_syscall";
const OLD_ENTRIES: [&str; 2] = ["sys_", "compat_sys_"];

/// The meaning of a system call's event in a trace of LTTng up to 2.5, which records all system
/// calls or none.
pub(crate) fn old_call(name: &str) -> Option<(Meaning, String)> {
    if name == OLD_EXIT {
        return Some((Meaning::Kernel(EventKind::SysExitNamed), "sys_exit_".to_owned()));
    }
    let call = OLD_ENTRIES.iter().find_map(|before| name.strip_prefix(before))?;
    Some((Meaning::Kernel(EventKind::SysEnterNamed), format!("sys_enter_{call}")))
}

/// The meaning of the kernel's event `name`, and the kernel's own name for it.
pub(crate) fn kernel(name: &str) -> (Meaning, String) {
    if name == "lttng_statedump_process_state" {
        return (Meaning::Process, name.to_owned());
    }
    if let Some((kind, kernel)) = EventKind::of_lttng(name) {
        return (Meaning::Kernel(kind), kernel);
    }
    // `perf data convert --to-ctf` keeps the kernel's names.
    let known = name.split_once(':').and_then(|(s, n)| Some((EventKind::of(s, n)?, n)));
    match known {
        Some((kind, name)) => (Meaning::Kernel(kind), name.to_owned()),
        None => (Meaning::Other, name.to_owned()),
    }
}

/// A field of an event, whether the event is useless without it, and the default value if not.
pub(crate) struct Field {
    pub(crate) want: Want<'static>,
    pub(crate) needed: bool,
    pub(crate) default: u64,
}

const fn int(n: u8, names: &'static [&'static str]) -> Field {
    Field { want: Want { names, to: Slot::Register(reg::OWN + n) }, needed: true, default: 0 }
}

const fn maybe(n: u8, names: &'static [&'static str], default: u64) -> Field {
    Field { want: Want { names, to: Slot::Register(reg::OWN + n) }, needed: false, default }
}

const fn text(slot: u8, names: &'static [&'static str]) -> Field {
    Field { want: Want { names, to: Slot::Text(slot) }, needed: false, default: 0 }
}

const TID: Field = int(0, &["tid", "pid"]);
const COMM: Field = text(reg::TEXT, &["comm"]);
const VEC: &[Field] = &[int(0, &["vec"])];
const WAKE: &[Field] = &[TID, maybe(1, &["prio"], 0), maybe(2, &["target_cpu"], u64::MAX), COMM];
const DELAY: &[Field] = &[TID, int(1, &["delay"])];
const EXEC: &[Field] =
    &[TID, maybe(1, &["old_tid", "old_pid"], u64::MAX), text(reg::TEXT, &["filename"])];
const FAULT: &[Field] = &[int(0, &["address"]), maybe(1, &["ip"], 0)];
const LOCK: &[Field] =
    &[int(0, &["lockdep_addr"]), maybe(1, &["flags"], 0), text(reg::TEXT, &["name"])];
const WORK: &[Field] = &[int(0, &["work"]), maybe(1, &["function"], 0)];
const VECTOR: &[Field] = &[int(0, &["vector"])];

/// The fields that are read of an event. Arguments of system calls are not among them, because they
/// differ from call to call.
pub(crate) fn fields(meaning: Meaning) -> &'static [Field] {
    let kind = match meaning {
        Meaning::Other => return &[],
        Meaning::Process => {
            return const {
                &[
                    TID,
                    maybe(1, &["pid"], u64::MAX),
                    maybe(2, &["ppid"], u64::MAX),
                    text(reg::TEXT, &["name"]),
                ]
            };
        }
        Meaning::Kernel(kind) => kind,
    };
    match kind {
        EventKind::Switch => {
            const {
                &[
                    int(0, &["prev_tid", "prev_pid"]),
                    int(1, &["next_tid", "next_pid"]),
                    int(2, &["prev_state"]),
                    maybe(3, &["prev_prio"], 0),
                    maybe(4, &["next_prio"], 0),
                    text(reg::TEXT, &["prev_comm"]),
                    text(reg::TEXT2, &["next_comm"]),
                ]
            }
        }
        EventKind::Wakeup | EventKind::WakeupNew | EventKind::Waking => WAKE,
        EventKind::Migrate => const { &[TID, int(1, &["orig_cpu"]), int(2, &["dest_cpu"])] },
        EventKind::Fork => {
            const {
                &[
                    int(0, &["parent_tid", "parent_pid"]),
                    int(1, &["child_tid", "child_pid"]),
                    text(reg::TEXT, &["child_comm"]),
                ]
            }
        }
        EventKind::Exec => EXEC,
        EventKind::Exit => const { &[TID, COMM] },
        EventKind::StatRuntime => const { &[TID, int(1, &["runtime"])] },
        EventKind::StatWait
        | EventKind::StatSleep
        | EventKind::StatIoWait
        | EventKind::StatBlocked => DELAY,
        EventKind::BlockedReason => const { &[TID, int(1, &["io_wait"]), int(2, &["caller"])] },
        EventKind::AttachTask => {
            const { &[TID, maybe(1, &["dst_root"], 0), text(reg::TEXT, &["dst_path"])] }
        }
        EventKind::PiSetPrio => const { &[TID, int(1, &["oldprio"]), int(2, &["newprio"])] },
        EventKind::SysEnter => const { &[int(0, &["id"])] },
        EventKind::SysEnterNamed => &[],
        EventKind::SysExit => const { &[int(0, &["id"]), int(1, &["ret"])] },
        EventKind::SysExitNamed => const { &[int(1, &["ret"])] },
        EventKind::IrqEntry => const { &[int(0, &["irq"]), text(reg::TEXT, &["name"])] },
        EventKind::IrqExit => const { &[int(0, &["irq"])] },
        EventKind::VectorEntry | EventKind::VectorExit => VECTOR,
        EventKind::SoftirqRaise | EventKind::SoftirqEntry | EventKind::SoftirqExit => VEC,
        EventKind::WorkQueue | EventKind::WorkStart | EventKind::WorkEnd => WORK,
        EventKind::PageFaultUser | EventKind::PageFaultKernel => FAULT,
        EventKind::ContentionBegin => const { &[int(0, &["lock_addr"]), maybe(1, &["flags"], 0)] },
        EventKind::ContentionEnd => const { &[int(0, &["lock_addr"]), maybe(1, &["ret"], 0)] },
        EventKind::ContendedRelease => const { &[int(0, &["lock_addr"])] },
        EventKind::LockAcquire
        | EventKind::LockContended
        | EventKind::LockAcquired
        | EventKind::LockRelease => LOCK,
        EventKind::CpuIdle => const { &[int(0, &["state"]), int(1, &["cpu_id"])] },
    }
}

/// The event that LTTng writes for a call newer than itself, which it cannot name; it has fields of
/// its own.
pub(crate) const UNKNOWN_CALL: &str = "unknown";

/// The register for the number of such a call, after the arguments.
pub(crate) const CALL_ID: Field = int(6, &["id"]);

/// The argument fields of such a call.
pub(crate) const RAW_ARGS: [&str; 6] =
    ["args[0]", "args[1]", "args[2]", "args[3]", "args[4]", "args[5]"];

/// Fields that `perf data convert --to-ctf` adds to each event if they are not in the context of
/// the stream: the CPU, the thread, the process, the thread's name.
pub(crate) const PERF: [Want<'static>; 4] = [
    Want { names: &["perf_cpu"], to: Slot::Register(reg::CPU) },
    Want { names: &["perf_tid"], to: Slot::Register(reg::TID) },
    Want { names: &["perf_pid"], to: Slot::Register(reg::PID) },
    Want { names: &["perf_comm"], to: Slot::Text(reg::COMM) },
];

/// Names of the fields of a struct, without the underscore that LTTng puts before them.
pub(crate) fn names(of: Option<&Type>) -> impl Iterator<Item = (&str, &Type)> {
    let fields = match of {
        Some(Type::Struct(s)) => &s.fields[..],
        _ => &[],
    };
    fields.iter().map(|(name, of)| (name.strip_prefix('_').unwrap_or(name), of))
}

/// The arguments among the fields of a `syscall_entry_*`: the name of each that is an integer.
///
/// The fields are in the order of the arguments, but output arguments, which only the kernel
/// writes, are missing and come with the exit. If the call has any (`outs`), only the first
/// argument is sure to be in its place, because no call returns data by it.
pub(crate) fn arguments(of: Option<&Type>, outs: bool) -> [Option<&str>; 6] {
    let mut args = [None; 6];
    // Names of sequence lengths begin with a second underscore.
    let fields = names(of).filter(|(name, _)| !name.starts_with('_'));
    for (arg, (name, of)) in args.iter_mut().zip(fields).take(if outs { 1 } else { 6 }) {
        *arg = matches!(of, Type::Int(_) | Type::Enum(_)).then_some(name);
    }
    args
}
