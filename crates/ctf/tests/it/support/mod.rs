//! What the tests of this crate share: events as a list, and as babeltrace2 prints them.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod writer;

use holdup_ctf::CtfTrace;
use holdup_trace::{Event, EventId, Quality, Reader, What, merge};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// Every event in order, as `f` sees it, and what went wrong.
pub(crate) fn events<T>(trace: &CtfTrace, mut f: impl FnMut(&Event) -> T) -> (Vec<T>, Quality) {
    let mut list = Vec::new();
    let mut events = |events: &[Event], _: &holdup_trace::Batch| {
        list.extend(events.iter().filter(|e| e.id != EventId::SIDEBAND).map(&mut f));
        std::ops::ControlFlow::Continue(())
    };
    let quality = merge::drive(trace, 1, &mut events).expect("decoding does not fail");
    (list, quality)
}

/// An event as both tools can express it: time in steps of the clock, CPU, name, fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
pub(crate) struct Read {
    pub(crate) ts: u64,
    pub(crate) cpu: u16,
    pub(crate) name: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// The fields of `what`, with babeltrace2's names.
fn fields(trace: &CtfTrace, what: &What, lttng: bool) -> Vec<(&'static str, String)> {
    let name = |id| format!("{:?}", trace.info().names.get(id));
    let prio = |p: i16| (p - if lttng { 100 } else { 0 }).to_string();
    match *what {
        What::Switch { prev, next, prev_comm, next_comm, prev_prio, next_prio, .. } => vec![
            ("prev_tid", prev.to_string()),
            ("next_tid", next.to_string()),
            ("prev_comm", name(prev_comm)),
            ("next_comm", name(next_comm)),
            ("prev_prio", prio(prev_prio)),
            ("next_prio", prio(next_prio)),
        ],
        What::Waking { tid, comm, prio: p, target, .. }
        | What::Wakeup { tid, comm, prio: p, target }
        | What::WakeupNew { tid, comm, prio: p, target } => vec![
            ("tid", tid.to_string()),
            ("comm", name(comm)),
            ("prio", prio(p)),
            ("target_cpu", target.to_string()),
        ],
        What::Migrate { tid, from, to } => vec![
            ("tid", tid.to_string()),
            ("orig_cpu", from.to_string()),
            ("dest_cpu", to.to_string()),
        ],
        What::Fork { parent, child, child_comm } => vec![
            ("parent_tid", parent.to_string()),
            ("child_tid", child.to_string()),
            ("child_comm", name(child_comm)),
        ],
        What::Exec { tid, old, filename } => vec![
            ("tid", tid.to_string()),
            ("old_tid", old.to_string()),
            ("filename", name(filename)),
        ],
        What::Exit { tid, comm } => vec![("tid", tid.to_string()), ("comm", name(comm))],
        What::StatRuntime { tid, runtime } => {
            vec![("tid", tid.to_string()), ("runtime", runtime.to_string())]
        }
        What::StatDelay { tid, delay, .. } => {
            vec![("tid", tid.to_string()), ("delay", delay.to_string())]
        }
        What::SysExit { ret, .. } => vec![("ret", ret.to_string())],
        What::IrqEntry { irq, name: n } => vec![("irq", irq.to_string()), ("name", name(n))],
        What::IrqExit { irq } => vec![("irq", irq.to_string())],
        What::VectorEntry { vector, .. } | What::VectorExit { vector } => {
            vec![("vector", vector.to_string())]
        }
        What::SoftirqEntry { vec } | What::SoftirqExit { vec } | What::SoftirqRaise { vec } => {
            vec![("vec", vec.to_string())]
        }
        What::Comm { tid, pid, comm, .. } => {
            vec![("tid", tid.to_string()), ("pid", pid.to_string()), ("name", name(comm))]
        }
        _ => Vec::new(),
    }
}

/// The events that this crate reads.
pub(crate) fn ours(trace: &CtfTrace) -> (Vec<Read>, Quality) {
    let lttng = trace.info().format.contains("lttng");
    events(trace, |e| Read {
        ts: e.ts,
        cpu: e.cpu.0,
        name: trace.info().events[usize::from(e.id.0)].name.clone(),
        fields: fields(trace, &e.what, lttng),
    })
}

/// The events that babeltrace2 reads, and all their fields as it prints them.
pub(crate) type Theirs = Vec<(u64, u16, String, HashMap<String, String>)>;

/// Run babeltrace2; its error message if it refuses.
pub(crate) fn babeltrace(path: &Path) -> Result<Theirs, String> {
    let out = Command::new("babeltrace2")
        .args(["--clock-cycles", "--no-delta"])
        .arg(path)
        .output()
        .expect("babeltrace2 runs");
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line}"))).collect())
}

/// `[000123] host name: { cpu_id = 3 }, { tid = 5 }, { comm = "x", … }`
fn parse(line: &str) -> Option<(u64, u16, String, HashMap<String, String>)> {
    let (ts, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (front, rest) = rest.split_once(": {")?;
    let name = kernel_name(front.rsplit(' ').next()?);
    let mut fields = HashMap::new();
    let mut at = rest;
    // Values are numbers, texts, or braces and brackets, which are skipped as a whole.
    while let Some(eq) = at.find(" = ") {
        let key = at[..eq].rsplit([' ', '{', '[', ',']).next()?.to_owned();
        at = &at[eq + 3..];
        let end = if at.starts_with('"') {
            let bytes = at.as_bytes();
            let mut i = 1;
            while i < bytes.len() && bytes[i] != b'"' {
                i += if bytes[i] == b'\\' { 2 } else { 1 };
            }
            i + 1
        } else {
            at.find([',', ' ']).unwrap_or(at.len())
        };
        let value = at[..end.min(at.len())].to_owned();
        // Context fields come before the event's own fields; the latter take precedence.
        match key.as_str() {
            "cpu_id" => drop(fields.entry(key).or_insert(value)),
            _ => drop(fields.insert(key, value)),
        }
        at = &at[end.min(at.len())..];
    }
    let cpu = fields.get("cpu_id").and_then(|c| c.parse().ok()).unwrap_or(u16::MAX);
    Some((ts.trim_start_matches('0').parse().ok()?, cpu, name, fields))
}

/// Addresses that calls return are printed in hexadecimal.
fn decimal(value: &str) -> String {
    match value.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
        Some(Ok(n)) => (n as i64).to_string(),
        _ => value.to_owned(),
    }
}

/// The kernel's name of an LTTng event.
fn kernel_name(name: &str) -> String {
    let name = name.strip_prefix("compat_").unwrap_or(name);
    for (theirs, ours) in [
        ("syscall_entry_", "sys_enter_"),
        ("syscall_exit_", "sys_exit_"),
        ("irq_softirq_", "softirq_"),
        ("x86_exceptions_", ""),
        ("x86_irq_vectors_", ""),
        ("power_cpu_idle", "cpu_idle"),
    ] {
        if let Some(rest) = name.strip_prefix(theirs) {
            return format!("{ours}{rest}");
        }
    }
    name.to_owned()
}

/// The events must be the same, and every field holdup reads must have babeltrace2's value.
pub(crate) fn compare(trace: &CtfTrace, theirs: Theirs) -> Result<(usize, usize), String> {
    let (mut ours, quality) = ours(trace);
    let mut theirs = theirs;
    // At equal times each tool has its own order of CPUs.
    ours.sort_by_key(|e| (e.ts, e.cpu));
    theirs.sort_by_key(|e| (e.0, e.1));
    let mut compared = 0;
    for (mine, other) in ours.iter().zip(&theirs) {
        if (mine.ts, mine.cpu, &mine.name) != (other.0, other.1, &other.2) {
            return Err(format!("{mine:?}\nbabeltrace2: {other:?}\n{quality:?}"));
        }
        for (key, value) in &mine.fields {
            let Some(theirs) = other.3.get(*key) else {
                return Err(format!("{mine:?}: babeltrace2 has no {key}: {other:?}"));
            };
            if decimal(theirs) != *value {
                return Err(format!("{mine:?}: {key} is {theirs}"));
            }
            compared += 1;
        }
    }
    if ours.len() != theirs.len() {
        return Err(format!("{} events, babeltrace2 has {}", ours.len(), theirs.len()));
    }
    Ok((ours.len(), compared))
}
