//! What is looked at: a host as its files show it, and what only trying tells.

use crate::Root;
use crate::kernel::Kernel;
use crate::process::Process;
use crate::tracefs::{NoTracefs, Tracefs};
use holdup_trace::Cpu;

/// A host, as its files show it to this process.
#[derive(Debug)]
pub struct Host {
    /// Who asks.
    pub process: Process,
    /// Whom it asks.
    pub kernel: Kernel,
    /// Where the tracepoints are.
    pub tracefs: Result<Tracefs, NoTracefs>,
}

impl Host {
    /// Look at it.
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
    /// How many different ones, those of system calls among them.
    pub found: usize,
    /// Those that the preset wants and the kernel does not have: `lock:contention_begin`.
    pub missing: Vec<String>,
    /// How system calls are traced.
    pub calls: Calls,
}

/// How system calls can be traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Each alone, so many of those wanted.
    Single(usize),
    /// All or none.
    OnlyAll,
    /// Not at all.
    None,
}

/// What only trying tells, by an error number where it failed. `None` where it was not tried.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// The events of the default preset, looked up.
    pub events: Option<Events>,
    /// A call of `perf_event_open` that no kernel grants: whatever but `EFAULT` says that the
    /// call does not get through.
    pub call: Option<i32>,
    /// Recording `sched:sched_switch` of every CPU, with what was refused.
    pub record: Option<Result<(), (Attempt<'static>, i32)>>,
    /// Counting cycles of this process.
    pub counters: Option<Result<(), i32>>,
    /// What came of the idle tasks, by CPU.
    pub idle: Option<Vec<Idle>>,
}

/// What a recorder tried when it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt<'a> {
    /// To open this event (`sched:sched_switch`).
    Open(&'a str),
    /// To get a buffer of so many bytes for each CPU.
    Buffer(u64),
}

/// What came of the idle task of a CPU while a thread slept and woke there again and again.
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
    /// Whether the CPU was idle often enough to tell: a recording may begin or end between two
    /// switches.
    pub fn tells(self) -> bool {
        self.to >= 5
    }

    /// Whether events of the idle task are lost.
    pub(crate) fn is_mute(self) -> bool {
        self.tells() && self.from < self.to / 2
    }
}
