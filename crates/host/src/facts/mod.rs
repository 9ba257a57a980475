//! Everything a recording depends on, judged one by one.
//!
//! Facts come in the order in which a recorder meets them: first the right to record, then what
//! there is to record, then how much of it, then what the file will lack.

mod limits;
mod machine;
mod rights;
mod tracing;

pub(crate) use limits::no_more_files;
pub use limits::{BUFFER, largest_buffer};
pub use machine::Idle;
pub use tracing::no_tracefs;

use crate::kernel::Kernel;
use crate::process::Process;
use crate::tracefs::{NoTracefs, Tracefs};
use crate::{Attempt, Fact, Obstacle, Root, State};

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

/// The fact that is the proof of the others.
const RECORDING: &str = "recording";

/// How it stands with everything, in a fixed order.
pub fn facts(host: &Host, tried: &Tried) -> Vec<Fact> {
    type Judge = fn(&Host, &Tried) -> State;
    let all: [(&'static str, Judge); 16] = [
        ("perf-events", rights::call),
        ("permission", rights::permission),
        ("lockdown", rights::lockdown),
        ("tracefs", tracing::tracefs),
        ("tracepoints", tracing::tracepoints),
        ("system-calls", tracing::system_calls),
        ("open-files", limits::open_files),
        (RECORDING, rights::recording),
        ("buffers", limits::buffers),
        ("cpus", machine::cpus),
        ("idle-events", machine::idle_events),
        ("counters", machine::counters),
        ("threads", machine::threads),
        ("symbols", machine::symbols),
        ("cgroups", machine::cgroups),
        ("clock", machine::clock),
    ];
    all.into_iter().map(|(name, judge)| Fact { name, state: judge(host, tried) }).collect()
}

/// Whether a recording works; `None` where nothing forbids it, and it was not tried.
pub fn can_record(facts: &[Fact]) -> Option<bool> {
    let tried = facts.iter().find(|fact| fact.name == RECORDING);
    match (stopped(facts), tried.map(|fact| &fact.state)) {
        (Some(_), _) => Some(false),
        (None, Some(State::Ok { .. })) => Some(true),
        (None, _) => None,
    }
}

/// What forbids a recording, the first that a recorder would meet; none if nothing does.
pub fn stopped(facts: &[Fact]) -> Option<&Obstacle> {
    facts.iter().find_map(|fact| fact.state.stop())
}
