//! What a file is and what it can prove.

use crate::trace_head::{Head, TraceHead};
use holdup_trace::{Capabilities, Glance, Presence, TraceInfo};
use serde::Serialize;

/// The answer of `info`.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Info {
    /// Whether the whole file was read. If it was not, the answer comes from tables and samples of
    /// the file, and figures that need counting are null; `info --full` reads the whole file.
    pub complete: bool,
    /// Name of the recorded host.
    pub hostname: Option<String>,
    /// Kernel release of the recorded host.
    pub os_release: Option<String>,
    /// Architecture of the recorded host.
    pub arch: Option<String>,
    /// Model of the CPUs.
    pub cpu_desc: Option<String>,
    /// Number of CPUs that were online.
    pub cpus_online: Option<u32>,
    /// NUMA nodes of the recorded host.
    pub numa: Vec<Node>,
    /// Memory of the recorded host, in bytes.
    pub total_mem_bytes: Option<u64>,
    /// Version of the recorder.
    pub recorder: Option<String>,
    /// Command line that made the recording.
    pub cmdline: Option<String>,
    /// Whether all CPUs were recorded, with all their threads.
    pub system_wide: Option<bool>,
    /// Step of the time stamps, in nanoseconds.
    pub clock_resolution_ns: u64,
    /// Earliest time stamp in the file; for a file that was not read completely, only if the file
    /// states it.
    pub first_ns: Option<u64>,
    /// Latest time stamp in the file.
    pub last_ns: Option<u64>,
    /// Number of threads that the file names at its start.
    pub tasks: Option<u64>,
    /// Whether the file contains kernel symbols.
    pub kernel_symbols: bool,
    /// The recorded kinds of events; for text that was not read completely, the kinds seen in the
    /// samples.
    pub events: Vec<String>,
    /// Whether `events` lists every recorded kind.
    pub all_kinds: bool,
    /// Estimated number of events, from their density in the samples; null if the whole file was
    /// read, because `trace.events` is then the exact number.
    pub estimated_events: Option<u64>,
    /// What the trace can show.
    pub capabilities: Vec<Capability>,
    /// Names of the chosen system calls, as in their tracepoints: all other calls are untraced.
    /// Absent if all calls or no calls were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_calls: Option<Vec<String>>,
    /// A command that records everything that a diagnosis can use.
    pub record_command: String,
    /// Further facts, by name.
    pub extra: Vec<Fact>,
}

/// A NUMA node.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "NumaNode")]
pub struct Node {
    /// Number of the NUMA node.
    pub node: u32,
    /// CPUs of the NUMA node, as a list.
    pub cpus: String,
}

/// Something that a trace may or may not be able to show.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Capability {
    /// Stable name of the capability.
    pub name: &'static str,
    /// Whether this trace has the capability; null if the file was not read completely, the samples
    /// do not show it, and the file does not rule it out.
    pub present: Option<bool>,
    /// Whether the recorder's list of events contains the events of the capability; null if the
    /// file has no such list, or if it was read completely.
    pub listed: Option<bool>,
    /// Events that show that the trace has the capability.
    pub events: &'static str,
    /// What a diagnosis uses the capability for.
    pub purpose: &'static str,
}

/// A fact with its name.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Fact {
    /// Name of the fact.
    pub label: String,
    /// Value of the fact.
    pub value: String,
}

/// What `syscalls` proves if only some calls were recorded.
const CHOSEN_CALLS: &str = "time in the chosen calls; whether threads sleep in a chosen call";

/// The state of each capability, from what `info` saw and what is `listed`.
fn capabilities(
    info: &TraceInfo,
    complete: bool,
    listed: Option<&Capabilities>,
) -> Vec<Capability> {
    let listed_calls = listed;
    let listed = listed.map(Capabilities::list);
    let capability = |(i, (name, seen, events)): (usize, (_, bool, _))| {
        let listed = listed.as_ref().and_then(|l| l.get(i)).map(|l| l.1);
        // An event that was not requested cannot have occurred.
        let absent = complete || listed == Some(false);
        let present = if seen { Some(true) } else { absent.then_some(false) };
        let chosen = name == "syscalls" && choice(info, listed_calls).is_some();
        let purpose = if chosen { CHOSEN_CALLS } else { Capabilities::purpose(name) };
        Capability { name, present, listed, events, purpose }
    };
    info.capabilities.list().into_iter().enumerate().map(capability).collect()
}

/// The calls of a file if only some were recorded: by the recorder's list if there is one, because
/// samples of a large file may not show them all.
fn choice<'a>(info: &'a TraceInfo, listed: Option<&'a Capabilities>) -> Option<&'a [Box<str>]> {
    listed.unwrap_or(&info.capabilities).syscalls.chosen()
}

fn names(calls: &[Box<str>]) -> Vec<String> {
    calls.iter().map(|name| name.to_string()).collect()
}

impl Info {
    /// Info from a file's tables and samples.
    pub fn glanced(glance: &Glance) -> Info {
        let whole = Info::new(&glance.info);
        Info {
            complete: false,
            tasks: whole.tasks.filter(|_| glance.all_tasks),
            all_kinds: glance.all_kinds,
            estimated_events: glance.estimated_events,
            capabilities: capabilities(&glance.info, false, glance.listed.as_ref()),
            chosen_calls: choice(&glance.info, glance.listed.as_ref()).map(names),
            ..whole
        }
    }

    /// Info from the reader of the whole file.
    pub fn new(info: &TraceInfo) -> Info {
        Info {
            complete: true,
            hostname: info.hostname.clone(),
            os_release: info.os_release.clone(),
            arch: info.arch.clone(),
            cpu_desc: info.cpu_desc.clone(),
            cpus_online: info.cpus_online,
            numa: info
                .numa
                .iter()
                .map(|(node, cpus)| Node { node: *node, cpus: cpus.clone() })
                .collect(),
            total_mem_bytes: info.total_mem,
            recorder: info.recorder.clone(),
            cmdline: info.cmdline.clone(),
            system_wide: info.system_wide,
            clock_resolution_ns: info.clock.resolution_ns,
            first_ns: info.span.map(|s| s.0),
            last_ns: info.span.map(|s| s.1),
            tasks: Some(info.tasks.len() as u64),
            kernel_symbols: !info.symbols.is_empty(),
            // Many files describe events that were not recorded.
            events: info
                .events
                .iter()
                .filter(|e| e.presence > Presence::Described)
                .map(|e| e.name.clone())
                .collect(),
            all_kinds: true,
            estimated_events: None,
            capabilities: capabilities(info, true, None),
            chosen_calls: choice(info, None).map(names),
            record_command: holdup_diagnose::record_command(info),
            extra: info
                .extra
                .iter()
                .map(|(label, value)| Fact { label: label.clone(), value: value.clone() })
                .collect(),
        }
    }

    /// Keys and values for CSV: everything that is one value, then one line per list entry.
    pub(crate) fn pairs(&self, trace: &TraceHead) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for value in [serde_json::to_value(Head::of(trace)), serde_json::to_value(self)]
            .into_iter()
            .flatten()
        {
            flatten("", &value, &mut pairs);
        }
        pairs
    }
}

fn flatten(path: &str, value: &serde_json::Value, out: &mut Vec<(String, String)>) {
    use serde_json::Value;
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| flatten(&join(key), value, out)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(i, value)| flatten(&join(&i.to_string()), value, out)),
        Value::Null => out.push((path.to_owned(), String::new())),
        Value::String(text) => out.push((path.to_owned(), text.clone())),
        other => out.push((path.to_owned(), other.to_string())),
    }
}
