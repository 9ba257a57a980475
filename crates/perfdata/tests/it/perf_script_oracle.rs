//! `perf script` as the oracle: same file, same sequence of (time, cpu, tid, event).
//!
//! For files that perf cannot read, the count of events is printed.

use crate::common::{files_below, merged};
use holdup_testkit::{corpus, needs};
use holdup_trace::{EventId, Reader};
use std::path::Path;
use std::process::Command;

/// (time, cpu, tid, event); what perf does not print is -1 or empty.
type Row = (u64, i64, i64, String);

/// perf's answer, stably sorted by time (perf may deliver late events late). `None` if it cannot
/// read the file.
fn perf(file: &Path) -> Option<(Vec<Row>, bool)> {
    for fields in ["comm,tid,cpu,time,event", "comm,tid,time,event"] {
        let out = Command::new("perf")
            .args(["script", "--ns", "-F", fields, "-i"])
            .arg(file)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut rows: Vec<Row> = text.lines().filter_map(row).collect();
        if !rows.is_empty() {
            rows.sort_by_key(|r| r.0);
            return Some((rows, fields.contains("cpu")));
        }
    }
    None
}

/// `comm 123 [001] 12.000000345: sched:sched_switch:`; a comm may hold anything.
fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let time = words.iter().position(|w| {
        let digits = w.strip_suffix(':').and_then(|w| w.split_once('.'));
        digits.is_some_and(|(s, ns)| {
            ns.len() == 9 && [s, ns].concat().bytes().all(|b| b.is_ascii_digit())
        })
    })?;
    let (s, ns) = words[time].strip_suffix(':')?.split_once('.')?;
    let cpu = words[time - 1].strip_prefix('[').and_then(|w| w.strip_suffix(']'));
    let tid = words[time - 1 - cpu.is_some() as usize].parse().ok()?;
    let event = words[time + 1..].join(" ").strip_suffix(':')?.to_owned();
    Some((
        s.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?,
        cpu.map_or(Ok(-1), str::parse).ok()?,
        tid,
        event,
    ))
}

fn decoded(file: &Path, cpu: bool) -> Vec<Row> {
    let file = holdup_perfdata::open(file).unwrap();
    let name = |id: EventId| file.info().events[id.0 as usize].name.clone();
    let events = merged(&file);
    let printed = events.iter().filter(|e| e.id != EventId::SIDEBAND);
    printed
        .map(|e| (e.ts, if cpu { e.cpu.0 as i64 } else { -1 }, e.tid.0 as i32 as i64, name(e.id)))
        .collect()
}

fn check(file: &Path) -> bool {
    let name = file.display();
    let Some((theirs, cpu)) = perf(file) else {
        let events = holdup_perfdata::open(file)
            .map(|f| merged(&f).iter().filter(|e| e.id != EventId::SIDEBAND).count());
        eprintln!("perf prints nothing for {name}; holdup: {events:?} events");
        return true;
    };
    let ours = decoded(file, cpu);
    let differ = theirs.iter().zip(&ours).position(|(a, b)| a != b);
    match differ {
        None if theirs.len() == ours.len() => {
            eprintln!("same: {} events in {name}", ours.len());
            true
        }
        at => {
            let at = at.unwrap_or(theirs.len().min(ours.len()));
            eprintln!(
                "DIFFERENT at {at} of {}/{}: perf {:?}, holdup {:?} in {name}",
                theirs.len(),
                ours.len(),
                theirs.get(at),
                ours.get(at)
            );
            false
        }
    }
}

#[needs(perf, corpus)]
#[test]
fn foreign_files() {
    let folder = corpus().join("public");
    let mut files =
        files_below(&folder.join("google+perf_data_converter"), &|n| n.starts_with("perf.data"));
    files.extend(files_below(&folder.join("mstange+linux-perf-data"), &|n| n.ends_with(".data")));
    assert!(files.len() > 30, "{files:?}");
    let wrong: Vec<_> = files.iter().filter(|f| !check(f)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[needs(perf, corpus)]
#[test]
fn recordings() {
    let folder = corpus().join("vm");
    let temp = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for packed in files_below(&folder, &|n| {
        n.ends_with(".perf.data.zst") || n.ends_with(".perf.pipe.data.zst")
    }) {
        let file = temp.path().join("perf.data");
        let bytes = zstd::decode_all(std::fs::File::open(&packed).unwrap()).unwrap();
        std::fs::write(&file, bytes).unwrap();
        if !check(&file) {
            wrong.push(packed);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
