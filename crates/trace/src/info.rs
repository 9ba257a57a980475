//! What a file is and what it can prove.

use crate::descriptors::Descriptors;
use crate::groups::Groups;
use crate::runtime::Runtimes;
use crate::spins::Spins;
use crate::symbols::SymbolTable;
use crate::{Built, Capabilities, Cpu, Cut, NameId, Names, Nanos, Pid, Tid};
use std::path::PathBuf;
use std::sync::Arc;

/// Earliest and latest time of two spans, either of which may be empty.
pub fn union(a: Option<(Nanos, Nanos)>, b: Option<(Nanos, Nanos)>) -> Option<(Nanos, Nanos)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

/// The version of the kernel `release` (`uname -r`): `6.1.0-56-amd64` is (6, 1). `None` if it does
/// not begin with two numbers.
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Everything known about a trace before its events are read.
#[derive(Clone)]
pub struct TraceInfo {
    /// The file, `-` for standard input.
    pub path: PathBuf,
    /// Name of the format with its variant: `perf.data`, `perf.data (pipe)`, `trace.dat v7` …
    pub format: String,
    /// The events of the file; [`crate::EventId`] indexes it.
    pub events: Vec<EventDesc>,
    /// What the file can prove: [`Capabilities::of`] its events.
    pub capabilities: Capabilities,
    /// The clock of the time stamps.
    pub clock: Clock,
    /// Earliest and latest time stamp of a printed event; `None` in a trace without events.
    pub span: Option<(Nanos, Nanos)>,
    /// Which part of a longer trace it is, if it was cut out of one.
    pub cut: Option<Cut>,
    /// Wall-clock time of the start of the recording, nanoseconds since 1970, if the file says so.
    pub recorded_ns: Option<u64>,
    /// CPUs that were online when recording, if the file says so. CPUs with events that are missing
    /// here count too.
    pub cpus_online: Option<u32>,
    /// The CPUs that were recorded, if the file says so: fewer than were online if the user chose
    /// them (`perf record -C`).
    pub cpus_recorded: Option<Vec<Cpu>>,
    /// Recorded machine's architecture as `uname -m` spells it (`x86_64`, `aarch64`, `armv7l`).
    pub arch: Option<String>,
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release.
    pub os_release: Option<String>,
    /// Model of the CPU.
    pub cpu_desc: Option<String>,
    /// Memory, bytes.
    pub total_mem: Option<u64>,
    /// NUMA nodes and the CPUs of each, as the file spells them (`0-3,8`).
    pub numa: Vec<(u32, String)>,
    /// Command that made the recording.
    pub cmdline: Option<String>,
    /// Version of the recorder.
    pub recorder: Option<String>,
    /// Whether all CPUs were recorded; `None` if the file does not say.
    pub system_wide: Option<bool>,
    /// Threads known from the header or saved comms, valid from the start of the trace.
    pub tasks: Vec<Task>,
    /// Kernel symbols if the file carries them.
    pub symbols: SymbolTable,
    /// Build ids of mapped files that the recorder saw; the kernel's is `[kernel.kallsyms]`.
    pub built: Vec<Built>,
    /// What the recorder saw of descriptors.
    pub descriptors: Descriptors,
    /// What the recorder read of control groups.
    pub groups: Groups,
    /// What the recorder knows about runtimes that schedule their own tasks.
    pub runtimes: Runtimes,
    /// What the recorder found in the code that it sampled.
    pub spins: Arc<Spins>,
    /// All names of this trace.
    pub names: Arc<Names>,
    /// Further facts worth showing in `info`, in order: (label, value).
    pub extra: Vec<(String, String)>,
}

impl TraceInfo {
    /// An info with nothing known but the path and format.
    pub fn new(path: PathBuf, format: impl Into<String>) -> TraceInfo {
        TraceInfo {
            path,
            format: format.into(),
            events: Vec::new(),
            capabilities: Capabilities::default(),
            clock: Clock::default(),
            span: None,
            cut: None,
            recorded_ns: None,
            cpus_online: None,
            cpus_recorded: None,
            arch: None,
            hostname: None,
            os_release: None,
            cpu_desc: None,
            total_mem: None,
            numa: Vec::new(),
            cmdline: None,
            recorder: None,
            system_wide: None,
            tasks: Vec::new(),
            symbols: SymbolTable::default(),
            built: Vec::new(),
            descriptors: Descriptors::default(),
            groups: Groups::default(),
            runtimes: Runtimes::default(),
            spins: Arc::default(),
            names: Names::new(),
            extra: Vec::new(),
        }
    }
}

impl TraceInfo {
    /// Notes which part of a longer trace this is, if `text` says so; returns whether it does.
    pub fn is_cut(&mut self, text: &str) -> bool {
        let Some(cut) = Cut::find(text) else { return false };
        self.cut = Some(cut);
        true
    }

    /// Earliest and latest time of the part that this trace is, without what a cut also contains
    /// from before and after the part.
    pub fn part(&self) -> Option<(Nanos, Nanos)> {
        self.cut.as_ref().and_then(|cut| cut.time).or(self.span)
    }
}

/// How a file shows that it knows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// The file describes the format of the event. That does not mean that it was recorded.
    Described,
    /// The file says that the recorder was asked for the event; none is in the file.
    Enabled,
    /// At least one is in the file.
    Seen,
}

/// One kind of event in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDesc {
    /// Name in the output of the peer tool: `sched:sched_switch` (perf), `sched_switch`
    /// (trace-cmd), `cycles:u`.
    pub name: String,
    /// Its system (`sched`), empty for counters.
    pub system: String,
    /// How the file shows that it knows the event.
    pub presence: Presence,
}

impl EventDesc {
    /// The name without its system: `sched_switch`.
    pub fn short_name(&self) -> &str {
        self.name
            .strip_prefix(self.system.as_str())
            .and_then(|n| n.strip_prefix(':'))
            .unwrap_or(&self.name)
    }

    /// The name with its system, whatever the peer tool prints: `sched:sched_switch`, `cycles:u`.
    pub fn full_name(&self) -> String {
        match self.system.is_empty() {
            true => self.name.clone(),
            false => format!("{}:{}", self.system, self.short_name()),
        }
    }
}

/// A thread known to exist from the start.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Thread.
    pub tid: Tid,
    /// Process, [`Pid::UNKNOWN`] if not said.
    pub pid: Pid,
    /// Parent thread's id, if known (2 marks kernel threads).
    pub parent: Option<Tid>,
    /// Name.
    pub comm: NameId,
}

/// The clock of the time stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Its name (`local`, `mono`, `CLOCK_MONOTONIC`, `x86-tsc` …); empty if not said.
    pub name: String,
    /// Nanoseconds per step of the printed time stamps: 1, or 1000 in text with microseconds.
    pub resolution_ns: u64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { name: String::new(), resolution_ns: 1 }
    }
}

/// Whether the kernel function of this name writes events: such functions are innermost in the
/// chains that ftrace records, and do not tell what caused the event.
pub fn is_recorder(function: &str) -> bool {
    ["trace_event_raw_event_", "trace_event_buffer_commit", "__traceiter_"]
        .iter()
        .any(|start| function.starts_with(start))
}

/// The CPU list syntax of the kernel and of perf's `-C`: `0-3,5`.
impl Cpu {
    /// Parse a CPU list; `None` if it is not one or is out of range.
    pub fn parse_list(text: &str) -> Option<Vec<Cpu>> {
        let mut cpus = Vec::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (a, b) = part.split_once('-').unwrap_or((part, part));
            let (a, b): (u16, u16) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
            if a > b || b == u16::MAX {
                return None;
            }
            cpus.extend((a..=b).map(Cpu));
        }
        cpus.sort();
        cpus.dedup();
        (!cpus.is_empty()).then_some(cpus)
    }
}
