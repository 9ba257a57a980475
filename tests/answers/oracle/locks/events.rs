//! The lock events, as `perf script` and `trace-cmd report` print them.

use crate::oracle::corpus::Recording;
use crate::oracle::perf;
use std::process::{Command, Stdio};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Begin,
    End,
    Acquire { flags: u32 },
    Contended,
    Acquired,
    Release,
}

#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) tid: i64,
    pub(crate) cpu: i64,
    pub(crate) ts: u64,
    pub(crate) lock: u64,
    pub(crate) kind: Kind,
    pub(crate) class: String,
}

/// The lock events as printed by perf script.
pub(crate) fn script(file: &Recording) -> Vec<Raw> {
    for fields in ["tid,cpu,time,event,trace", "tid,time,event,trace"] {
        let out = perf::run(&["script", "--ns", "-F", fields], file);
        let events: Vec<Raw> =
            out.out.lines().filter_map(|l| raw(l, fields.contains("cpu"))).collect();
        if !events.is_empty() {
            return events;
        }
    }
    Vec::new()
}

/// `   18 [000]    55.866975841:      lock:lock_acquire: 0xff1100007afedb58 &rq->__lock`
pub(crate) fn raw(line: &str, has_cpu: bool) -> Option<Raw> {
    let at = line.find(" lock:")?;
    let mut words = line[..at].split_whitespace();
    let tid = words.next()?.parse().ok()?;
    let cpu = if has_cpu { words.next()?.trim_matches(['[', ']']).parse().ok()? } else { -1 };
    let (s, ns) = words.next()?.strip_suffix(':')?.split_once('.')?;
    let ts = s.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?;
    let (event, body) = line[at + 6..].split_once(": ")?;
    event_of(event, body, tid, cpu, ts)
}

pub(crate) fn event_of(event: &str, body: &str, tid: i64, cpu: i64, ts: u64) -> Option<Raw> {
    let (lock, rest) = body.trim().split_once(' ')?;
    let lock = u64::from_str_radix(lock.trim_start_matches("0x"), 16).ok()?;
    let mut class = rest.trim();
    let mut flags = 0;
    let kind = match event {
        "contention_begin" => Kind::Begin,
        "contention_end" => Kind::End,
        "lock_acquire" => {
            for (word, bit) in [("try ", 1), ("read ", 2)] {
                if let Some(rest) = class.strip_prefix(word) {
                    class = rest;
                    flags |= bit;
                }
            }
            Kind::Acquire { flags }
        }
        "lock_contended" => Kind::Contended,
        "lock_acquired" => Kind::Acquired,
        "lock_release" => Kind::Release,
        _ => return None,
    };
    Some(Raw { tid, cpu, ts, lock, kind, class: class.to_owned() })
}

/// The contention events as printed by trace-cmd report.
pub(crate) fn report(file: &Recording) -> Vec<Raw> {
    let out = Command::new("trace-cmd")
        .args(["report", "-t", "-F", "contention_begin", "-F", "contention_end", "-i"])
        .arg(&file.path)
        .stdin(Stdio::null())
        .output()
        .expect("trace-cmd runs");
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().filter_map(reported).collect()
}

/// `   mmap-1-944   [000]   145.907831498: contention_begin:     0xff1100000550a8f0 (flags=WRITE)`
pub(crate) fn reported(line: &str) -> Option<Raw> {
    let (event, at) = ["contention_begin", "contention_end"]
        .into_iter()
        .find_map(|e| Some((e, line.find(&format!(": {e}:"))?)))?;
    let body = &line[at + event.len() + 3..];
    let head = line[..at].trim_end();
    let (head, time) = head.rsplit_once([' ', ']'])?;
    let ts = match time.split_once('.') {
        Some((s, ns)) => s.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?,
        // The x86-tsc clock counts ticks.
        None => time.parse().ok()?,
    };
    let (task, cpu) = head.rsplit_once('[')?;
    let cpu = cpu.trim().trim_end_matches(']').parse().ok()?;
    let tid = task.trim().rsplit_once('-')?.1.parse().ok()?;
    event_of(event, body, tid, cpu, ts)
}
