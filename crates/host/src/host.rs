//! The input: a host as its files show it, and what only trying shows.

use crate::Root;
use crate::kernel::Kernel;
use crate::process::Process;
use crate::tracefs::{NoTracefs, Tracefs};
use holdup_trace::Cpu;

/// A host, as its files show it to this process.
#[derive(Debug)]
pub struct Host {
    /// The asking process.
    pub process: Process,
    /// The kernel and its settings.
    pub kernel: Kernel,
    /// The tracepoints.
    pub tracefs: Result<Tracefs, NoTracefs>,
}

impl Host {
    /// Reads the files.
    pub fn look(root: &Root) -> Host {
        Host {
            process: Process::look(root),
            kernel: Kernel::look(root),
            tracefs: Tracefs::find_in(root),
        }
    }
}

/// The events that a recording would hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// Number of different events, including those of system calls.
    pub found: usize,
    /// Events of the preset that the kernel does not have: `lock:contention_begin`.
    pub missing: Vec<String>,
    /// How system calls are traced.
    pub calls: Calls,
}

/// How system calls can be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// One by one; the number of wanted calls that the kernel has.
    Single(usize),
    /// All or none.
    OnlyAll,
    /// Not at all.
    None,
}

/// What only trying shows, with the error number of a failure. `None` if it was not tried.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// The events of the default preset, looked up.
    pub events: Option<Events>,
    /// A call of `perf_event_open` that no kernel grants: any error other than `EFAULT` means that
    /// the call does not reach the kernel's own checks.
    pub call: Option<i32>,
    /// Recording `sched:sched_switch` on every CPU; if it failed, the refused attempt and the
    /// error.
    pub record: Option<Result<(), (Attempt<'static>, i32)>>,
    /// Counting cycles of this process.
    pub counters: Option<Result<(), i32>>,
    /// The events of the idle tasks, by CPU.
    pub idle: Option<Vec<Idle>>,
}

/// The attempt that the kernel refused to a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt<'a> {
    /// To open this event (`sched:sched_switch`).
    Open(&'a str),
    /// To map a buffer of this many bytes for each CPU.
    Buffer(u64),
}

/// Events of the idle task of a CPU while a thread repeatedly slept and woke on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The CPU.
    pub cpu: Cpu,
    /// Switches to the idle task: events of the thread that leaves.
    pub to: u64,
    /// Switches away from it: events of the idle task.
    pub from: u64,
}

impl Idle {
    /// Whether the CPU was idle often enough for a conclusion: a recording may begin or end between
    /// two switches.
    pub fn tells(self) -> bool {
        self.to >= 5
    }

    /// Whether events of the idle task are lost.
    pub(crate) fn is_mute(self) -> bool {
        self.tells() && self.from < self.to / 2
    }
}
