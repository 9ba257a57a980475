//! Which event a name means. Looked up once per name of a file, not once per line.

use crate::lack::Lack;
use crate::line::Form;
use holdup_trace::EventKind;

/// How the fields of an event are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Not an event holdup interprets.
    Other,
    Event(EventKind),
    /// A counter or software event of perf.
    Sample,
    /// perf's sideband records.
    RecordComm,
    RecordFork,
    RecordExit,
    RecordSwitch,
    RecordLost,
    /// A sideband record that holdup does not use.
    RecordOther,
}

impl Kind {
    /// Whether it is a sideband record, which other tools do not count as an event.
    pub(crate) fn is_record(self) -> bool {
        matches!(
            self,
            Kind::RecordComm
                | Kind::RecordFork
                | Kind::RecordExit
                | Kind::RecordSwitch
                | Kind::RecordLost
                | Kind::RecordOther
        )
    }

    /// The columns without which this event is useless. The events that show which thread a CPU
    /// runs, and what it spends its time on, need their CPU; some also need their thread, others
    /// name the threads in their fields.
    pub(crate) fn needs(self) -> Lack {
        use EventKind::*;
        const FIELDS: Lack = Lack::CPU.with(Lack::FIELDS);
        const ALL: Lack = FIELDS.with(Lack::THREAD);
        match self {
            Kind::Event(kind) => match kind {
                // A call without arguments has no fields.
                SysEnterNamed => Lack::CPU.with(Lack::THREAD),
                SysEnter | SysExit | SysExitNamed | ContentionBegin | ContentionEnd
                | ContendedRelease | LockAcquire | LockAcquired | LockContended | LockRelease
                | PageFaultUser | PageFaultKernel => ALL,
                Switch | Wakeup | WakeupNew | Waking | Migrate | Fork | Exec | Exit
                | StatRuntime | StatWait | StatSleep | StatIoWait | StatBlocked | BlockedReason
                | AttachTask | PiSetPrio | IrqEntry | IrqExit | SoftirqEntry | SoftirqExit
                | SoftirqRaise | VectorEntry | VectorExit | WorkStart | WorkEnd | WorkQueue
                | CpuIdle => FIELDS,
            },
            // A counter counts for a thread, wherever that was.
            Kind::Sample => Lack::THREAD,
            Kind::RecordSwitch => Lack::CPU.with(Lack::THREAD),
            Kind::RecordComm
            | Kind::RecordFork
            | Kind::RecordExit
            | Kind::RecordLost
            | Kind::RecordOther
            | Kind::Other => Lack::NOTHING,
        }
    }
}

/// The meaning of a name in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) kind: Kind,
    /// The name as the printing tool spells it; `sys_enter_read` for the kernel's `sys_read(`.
    pub(crate) name: String,
    /// Empty for counters and for names not known.
    pub(crate) system: String,
    /// NAME of `sys_enter_NAME`, of a vector, else empty.
    pub(crate) detail: String,
}

/// The meaning of `name` (with system if the text has it), written in `form`. `perf` says that
/// names without system are counters.
pub(crate) fn meaning(name: &[u8], form: Form, perf: bool) -> Meaning {
    let text = String::from_utf8_lossy(name).into_owned();
    let plain = |kind, name: String, system: &str, detail: &str| Meaning {
        kind,
        name,
        system: system.to_owned(),
        detail: detail.to_owned(),
    };
    match form {
        Form::Function => return plain(Kind::Other, "function".to_owned(), "ftrace", ""),
        Form::Call | Form::Return => {
            if let Some(call) = text.strip_prefix("sys_") {
                let (kind, way) = if form == Form::Call {
                    (Kind::Event(EventKind::SysEnterNamed), "enter")
                } else {
                    (Kind::Event(EventKind::SysExitNamed), "exit")
                };
                return plain(kind, format!("sys_{way}_{call}"), "syscalls", call);
            }
            return plain(Kind::Other, text, "", "");
        }
        Form::Record => {
            let kind = match text.as_str() {
                "PERF_RECORD_COMM" => Kind::RecordComm,
                "PERF_RECORD_FORK" => Kind::RecordFork,
                "PERF_RECORD_EXIT" => Kind::RecordExit,
                "PERF_RECORD_SWITCH" | "PERF_RECORD_SWITCH_CPU_WIDE" => Kind::RecordSwitch,
                "PERF_RECORD_LOST" | "PERF_RECORD_LOST_SAMPLES" => Kind::RecordLost,
                _ => Kind::RecordOther,
            };
            return plain(kind, text, "", "");
        }
        Form::Colon => {}
    }
    let (system, short) = match text.split_once(':') {
        Some((_, modifiers)) if perf && is_modifiers(modifiers) => {
            return plain(Kind::Sample, text, "", "");
        }
        Some((system, short)) if !system.contains('/') => (system, short),
        _ if perf => return plain(Kind::Sample, text, "", ""),
        _ => (system_of(&text), text.as_str()),
    };
    let kind = EventKind::of(system, short).map_or(Kind::Other, Kind::Event);
    let detail = match kind {
        Kind::Event(event) => event.detail(short).unwrap_or(""),
        _ => "",
    };
    let (system, detail) = (system.to_owned(), detail.to_owned());
    Meaning { kind, name: text, system, detail }
}

/// `cycles:u`, `cycles:ppp`: what follows the colon are modifiers, not an event's name.
fn is_modifiers(s: &str) -> bool {
    s.bytes().all(|b| b"ukhGHpPSDWeIb".contains(&b))
}

/// The vectors of x86, whose events end in `_entry` and `_exit` like many others do.
const VECTORS: &[&str] = &[
    "local_timer",
    "spurious_apic",
    "error_apic",
    "x86_platform_ipi",
    "irq_work",
    "reschedule",
    "call_function",
    "call_function_single",
    "threshold_apic",
    "deferred_error_apic",
    "thermal_apic",
];

/// The system of a well-known event, for text that leaves it out.
fn system_of(name: &str) -> &'static str {
    if let Some(event) = EventKind::by_name(name) {
        return event.system();
    }
    if name.starts_with("sched_") {
        return "sched";
    }
    if let Some(vector) = name.strip_suffix("_entry").or_else(|| name.strip_suffix("_exit"))
        && VECTORS.contains(&vector)
    {
        return "irq_vectors";
    }
    match name {
        "tasklet_entry" | "tasklet_exit" => "irq",
        "cpu_frequency"
        | "cpu_frequency_limits"
        | "clock_set_rate"
        | "clock_enable"
        | "clock_disable" => "power",
        "task_newtask" | "task_rename" => "task",
        "print" | "bprint" | "bputs" | "function" | "funcgraph_entry" | "funcgraph_exit"
        | "kernel_stack" | "user_stack" => "ftrace",
        n if n.starts_with("sys_enter_") || n.starts_with("sys_exit_") => "syscalls",
        n if n.starts_with("workqueue_") => "workqueue",
        n if n.starts_with("hrtimer_") || n.starts_with("timer_") || n.starts_with("tick_") => {
            "timer"
        }
        n if n.starts_with("block_") => "block",
        n if n.starts_with("ext4_") => "ext4",
        n if n.starts_with("thermal_") || n == "cdev_update" => "thermal",
        n if n.starts_with("ipi_") => "ipi",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn m(name: &str, perf: bool) -> (Kind, String, String, String) {
        let m = meaning(name.as_bytes(), Form::Colon, perf);
        (m.kind, m.name, m.system, m.detail)
    }

    #[test]
    fn names_with_and_without_system() {
        assert_eq!(
            m("sched:sched_switch", true),
            (
                Kind::Event(EventKind::Switch),
                "sched:sched_switch".into(),
                "sched".into(),
                "".into()
            )
        );
        assert_eq!(
            m("sched_switch", false),
            (Kind::Event(EventKind::Switch), "sched_switch".into(), "sched".into(), "".into())
        );
        assert_eq!(m("synthetic:sched_switch", true).0, Kind::Other);
        assert_eq!(m("cycles:uppp", true).0, Kind::Sample);
        assert_eq!(m("cpu/event=0x3c/u", true).0, Kind::Sample);
        assert_eq!(m("cpu-clock", true).0, Kind::Sample);
        assert_eq!(m("irq_vectors:local_timer_entry", true).3, "local_timer");
        assert_eq!(m("reschedule_exit", false).0, Kind::Event(EventKind::VectorExit));
        assert_eq!(m("funcgraph_entry", false).0, Kind::Other);
        assert_eq!(m("syscalls:sys_enter_read", true).3, "read");
    }

    #[test]
    fn the_kernels_own_syscall_rendering() {
        let e = meaning(b"sys_read", Form::Call, false);
        assert_eq!(
            (e.kind, e.name.as_str(), e.system.as_str(), e.detail.as_str()),
            (Kind::Event(EventKind::SysEnterNamed), "sys_enter_read", "syscalls", "read")
        );
        assert_eq!(meaning(b"sys_read", Form::Return, false).name, "sys_exit_read");
    }
}
