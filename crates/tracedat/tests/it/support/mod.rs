//! What the integration tests share: trace-cmd as an oracle, and its lines.
#![allow(dead_code, reason = "each test uses its own part")]

pub(crate) mod writer;

use holdup_trace::{Batch, Event, Quality, Reader, StateTable, TaskState, TraceInfo, What, merge};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files below `dir` whose name ends with one of `endings`, sorted.
pub(crate) fn files(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path
                .file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| endings.iter().any(|e| n.ends_with(e)))
            {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// One line of `trace-cmd report -t -R`.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) enum Line {
    Event {
        instance: String,
        ts: u64,
        cpu: u16,
        pid: i32,
        name: String,
        fields: String,
    },
    /// `CPU:5 [94 EVENTS DROPPED]`; 0 where no number is given.
    Dropped {
        cpu: u16,
        count: u64,
    },
}

/// Run `trace-cmd report -t -R FILE`.
pub(crate) fn report(file: &Path) -> Vec<Line> {
    let out = Command::new("trace-cmd")
        .args(["report", "-t", "-R"])
        .arg(file)
        .output()
        .expect("trace-cmd runs");
    String::from_utf8_lossy(&out.stdout).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Line> {
    // If a file has instances, each line starts with the instance's name, or blanks for the top
    // buffer.
    let marked = line
        .find("CPU:")
        .filter(|&at| line[..at].trim_end().is_empty() || line[..at].ends_with(": "));
    if let Some(rest) = marked.filter(|_| line.ends_with("DROPPED]")).map(|at| &line[at + 4..]) {
        let (cpu, what) = rest.split_once(" [")?;
        let count = what.split(' ').next()?.parse().unwrap_or(0);
        return what
            .contains("DROPPED")
            .then(|| Line::Dropped { cpu: cpu.parse().unwrap(), count });
    }
    // `COMM-PID [CPU] TIME: NAME: FIELDS`; a name of a task may itself hold ` [`, digits or dashes.
    let (at, cpu) = line.match_indices(" [").find_map(|(at, _)| {
        let (inside, _) = line[at + 2..].split_once(']')?;
        let task = line[..at].trim_end();
        let pid = task.rsplit_once('-')?.1;
        (pid.parse::<u32>().is_ok() && inside.len() >= 3)
            .then(|| inside.parse().ok())?
            .map(|cpu: u16| (at, cpu))
    })?;
    let task = line[..at].trim_end();
    let (comm, pid) = task.rsplit_once('-')?;
    let rest = &line[at..].split_once(']')?.1;
    let (time, rest) = rest.split_once(": ")?;
    let time = time.trim();
    let ts = match time.split_once('.') {
        Some((s, ns)) => s.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?,
        None => time.parse().ok()?,
    };
    let (name, fields) = rest.split_once(':').unwrap_or((rest, ""));
    let instance = comm.trim_start().split_once(": ").map_or("", |(i, _)| i.trim()).to_owned();
    Some(Line::Event {
        instance,
        ts,
        cpu,
        pid: pid.parse().ok()?,
        name: name.trim().to_owned(),
        fields: format!(" {} ", fields.trim()),
    })
}

/// Every event in merged order, with the text that `check` returns for it.
pub(crate) fn events<T>(
    reader: &dyn Reader,
    mut check: impl FnMut(&TraceInfo, &Event, &Batch) -> T,
) -> (Vec<T>, Quality) {
    let mut out = Vec::new();
    let mut sink = |events: &[Event], batch: &Batch| {
        out.extend(events.iter().map(|e| check(reader.info(), e, batch)));
        ControlFlow::Continue(())
    };
    let quality = merge::drive(reader, 1, &mut sink).expect("decoding does not fail");
    (out, quality)
}

/// The fields an event must show in the oracle's raw output.
pub(crate) enum Field {
    Number(&'static str, i128),
    Text(&'static str, String),
    State(&'static str, TaskState),
    /// An address; printed as the name of the function it lies in, if that is known.
    Code(&'static str, u64, Option<String>),
    /// An array of longs, printed as its bytes.
    Longs(&'static str, Vec<u64>),
}

/// Whether the oracle's raw fields hold `field`.
pub(crate) fn shows(fields: &str, field: &Field) -> bool {
    let value = |key: &str| -> Option<&str> {
        let at = fields.find(&format!(" {key}="))?;
        fields[at + key.len() + 2..].split(' ').next()
    };
    let number = |key: &str| -> Option<i128> {
        let text = value(key)?;
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(i128::from),
            None => text.parse().ok(),
        }
    };
    match field {
        // The raw output prints some unsigned fields as signed and the other way round.
        Field::Number(key, n) => {
            number(key).is_some_and(|m| m == *n || m as u64 == *n as u64 || m as u32 as i128 == *n)
        }
        Field::Text(key, text) => fields.contains(&format!(" {key}={text} ")),
        // The raw number does not show the kernel's version, so the letter of any table will do.
        Field::State(key, state) => number(key).is_some_and(|n| {
            ["3.0", "3.10", "4.4", "4.9", "6.1"].iter().any(|release| {
                StateTable::of_release(release).is_some_and(|t| t.state(n as u64) == *state)
            })
        }),
        Field::Code(key, address, symbol) => match number(key) {
            Some(n) => n == *address as i128,
            None => value(key).map(str::to_owned) == *symbol,
        },
        // The bytes do not show width and byte order: any that fit will do.
        Field::Longs(key, longs) => {
            let wide = [u64::to_le_bytes, u64::to_be_bytes]
                .map(|f| longs.iter().flat_map(|&v| f(v)).collect::<Vec<u8>>());
            let narrow = [u32::to_le_bytes, u32::to_be_bytes]
                .map(|f| longs.iter().flat_map(|&v| f(v as u32)).collect());
            wide.iter().chain(&narrow).any(|bytes| {
                let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
                fields.contains(&format!(" {key}=ARRAY[{}] ", hex.join(", ")))
            })
        }
    }
}

/// What a decoded event must look like in the raw output.
pub(crate) fn fields_of(info: &TraceInfo, batch: &Batch, what: &What) -> Vec<Field> {
    use Field::{Code, Longs, Number as N, State, Text};
    let code = |key, at: u64| Code(key, at, info.symbols.lookup(at).map(|s| s.0.to_owned()));
    let name = |id| info.names.get(id);
    let n = |key, v: u32| N(key, v as i32 as i128);
    match *what {
        What::Switch { prev, next, prev_state, prev_comm, next_comm, prev_prio, next_prio } => {
            vec![
                n("prev_pid", prev.0),
                n("next_pid", next.0),
                State("prev_state", prev_state),
                Text("prev_comm", name(prev_comm)),
                Text("next_comm", name(next_comm)),
                N("prev_prio", prev_prio.into()),
                N("next_prio", next_prio.into()),
            ]
        }
        What::Waking { tid, comm, prio, target, .. }
        | What::Wakeup { tid, comm, prio, target }
        | What::WakeupNew { tid, comm, prio, target } => {
            vec![
                n("pid", tid.0),
                Text("comm", name(comm)),
                N("prio", prio.into()),
                N("target_cpu", target.0.into()),
            ]
        }
        What::Migrate { tid, from, to } => {
            vec![n("pid", tid.0), N("orig_cpu", from.0.into()), N("dest_cpu", to.0.into())]
        }
        What::Fork { parent, child, child_comm } => {
            vec![
                n("parent_pid", parent.0),
                n("child_pid", child.0),
                Text("child_comm", name(child_comm)),
            ]
        }
        What::Exec { tid, old, filename } => {
            vec![n("pid", tid.0), n("old_pid", old.0), Text("filename", name(filename))]
        }
        What::Exit { tid, comm } => vec![n("pid", tid.0), Text("comm", name(comm))],
        What::StatRuntime { tid, runtime } => vec![n("pid", tid.0), N("runtime", runtime.into())],
        What::StatDelay { tid, delay, .. } => vec![n("pid", tid.0), N("delay", delay.into())],
        What::BlockedReason { tid, io_wait, caller, .. } => {
            vec![n("pid", tid.0), N("io_wait", io_wait.into()), code("caller", caller)]
        }
        What::SysEnter { nr, args } => {
            let args = batch.args(args).expect("raw_syscalls carry arguments");
            vec![n("id", nr), Longs("args", args.to_vec())]
        }
        What::SysExit { nr, ret } => vec![n("id", nr), N("ret", ret.into())],
        What::IrqEntry { irq, name: id } => vec![n("irq", irq), Text("name", name(id))],
        What::IrqExit { irq } => vec![n("irq", irq)],
        What::SoftirqRaise { vec: v }
        | What::SoftirqEntry { vec: v }
        | What::SoftirqExit { vec: v } => vec![n("vec", v)],
        What::WorkQueue { work, function, .. } | What::WorkStart { work, function, .. } => {
            vec![N("work", work.into()), code("function", function)]
        }
        What::WorkEnd { work } => vec![N("work", work.into())],
        What::PageFault { address, ip, .. } => vec![N("address", address.into()), code("ip", ip)],
        What::ContentionBegin { lock, flags, .. } => {
            vec![code("lock_addr", lock), n("flags", flags)]
        }
        What::ContentionEnd { lock, ret } => vec![code("lock_addr", lock), N("ret", ret.into())],
        What::LockAcquire { lock, name: id, flags } => {
            vec![code("lockdep_addr", lock), Text("name", name(id)), n("flags", flags)]
        }
        What::LockContended { lock, name: id }
        | What::LockAcquired { lock, name: id }
        | What::LockRelease { lock, name: id } => {
            vec![code("lockdep_addr", lock), Text("name", name(id))]
        }
        What::CpuIdle { state, cpu } => vec![n("state", state), N("cpu_id", cpu.0.into())],
        _ => vec![],
    }
}

/// Compare a file with the oracle, line by line. Returns the number of events and of those whose
/// fields were compared.
pub(crate) fn compare(reader: &dyn Reader, file: &Path) -> Result<(usize, usize), String> {
    let lines = report(file);
    let (ours, _) = events(reader, |info, e, batch| {
        let line = match e.what {
            What::Lost { count } => Line::Dropped { cpu: e.cpu.0, count },
            _ => Line::Event {
                instance: String::new(),
                ts: e.ts,
                cpu: e.cpu.0,
                pid: e.tid.0 as i32,
                name: info.events[e.id.0 as usize].name.clone(),
                fields: String::new(),
            },
        };
        (line, fields_of(info, batch, &e.what))
    });
    let mut compared = 0;
    for (i, (theirs, (line, fields))) in lines.iter().zip(&ours).enumerate() {
        let same = match (theirs, line) {
            (
                Line::Event { ts, cpu, pid, name, .. },
                Line::Event { ts: ts2, cpu: cpu2, pid: pid2, name: name2, .. },
            ) => (ts, cpu, pid, name) == (ts2, cpu2, pid2, name2),
            (a, b) => a == b,
        };
        if !same {
            return Err(format!("line {i}: trace-cmd {theirs:?}, ours {line:?}"));
        }
        if let Line::Event { fields: text, .. } = theirs
            && !fields.is_empty()
        {
            compared += 1;
            if let Some(n) = fields.iter().position(|f| !shows(text, f)) {
                return Err(format!("line {i}, field {n}: {theirs:?}"));
            }
        }
    }
    if lines.len() != ours.len() {
        return Err(format!("trace-cmd prints {} lines, ours {}", lines.len(), ours.len()));
    }
    Ok((ours.len(), compared))
}
