//! A trace and its text say the same, and no trace claims what no event in it shows.
//!
//! The text is made by the recorder's own tool, with nanoseconds. It holds the same events, so
//! capabilities, tables and verdict must be equal, whatever is recorded. What text cannot hold is a
//! short list of rules:
//!
//! * [`silent`]: text has no list of what was asked for. An event that was, and did not happen,
//!   leaves no line; what it would prove is not known to the text, and its column is `n/a`.
//! * [`no_plus`]: `trace-cmd report` prints the state `R+` of a preempted thread as `R`, so its
//!   waits count as those of woken threads. (With `-R` it prints numbers, which only the print
//!   format of the recorded kernel can read, and the text has none.)
//! * [`no_address`]: `trace-cmd report` prints the name of a work function in place of its address.
//! * [`Unflagged`]: perf script prints no flags, and trace-cmd only in some versions; so the text
//!   does not say whether an interrupt or the current thread woke a thread.
//! * [`comm_of_worker`]: kworkers change their names as they work, and perf script prints names
//!   from its own table of threads: threads are compared by id.

use crate::by_key::{self, Tables, json};
use holdup_attribution::{Attribution, analyze};
use holdup_diagnose::diagnose;
use holdup_passes::{Group, Options};
use holdup_testkit::{Unflagged, corpus, needs};
use holdup_trace::{Batch, Event, Presence, Reader, What, merge};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The capabilities that the events of a trace show. Told from what the events became, not from
/// their names, so that it knows nothing of how capabilities are decided.
fn shown(reader: &dyn Reader) -> BTreeSet<&'static str> {
    // Of an event that is no half of a pair, both are there at once.
    let mut ends: BTreeMap<&'static str, [bool; 2]> = BTreeMap::new();
    merge::drive(reader, 1, &mut |events: &[Event], _: &Batch| {
        for e in events {
            let (name, [begins, does_end]) = match e.what {
                What::Switch { .. } | What::ContextSwitch { .. } => ("switches", BOTH),
                What::Wakeup { .. } => ("wakeups", BOTH),
                What::Waking { .. } => ("wakers", BOTH),
                What::Migrate { .. } => ("migrations", BOTH),
                What::Fork { .. } | What::Exec { .. } | What::Exit { .. } => ("lifecycle", BOTH),
                What::StatRuntime { .. } => ("stat_runtime", BOTH),
                What::PageFault { .. } => ("page_faults", BOTH),
                What::LockAcquire { .. } => ("lockdep", BOTH),
                // Which counter it is of is not looked at.
                What::Sample { .. } => ("counters", BOTH),
                What::SysEnter { .. } => ("syscalls", BEGIN),
                What::SysExit { .. } => ("syscalls", END),
                What::IrqEntry { .. } => ("irqs", BEGIN),
                What::IrqExit { .. } => ("irqs", END),
                What::SoftirqEntry { .. } => ("softirqs", BEGIN),
                What::SoftirqExit { .. } => ("softirqs", END),
                What::WorkStart { .. } => ("workqueues", BEGIN),
                What::WorkEnd { .. } => ("workqueues", END),
                What::ContentionBegin { .. } => ("contention", BEGIN),
                What::ContentionEnd { .. } => ("contention", END),
                _ => continue,
            };
            let seen = ends.entry(name).or_default();
            *seen = [seen[0] | begins, seen[1] | does_end];
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    ends.iter().filter(|(_, seen)| **seen == BOTH).map(|(name, _)| *name).collect()
}

const BEGIN: [bool; 2] = [true, false];
const END: [bool; 2] = [false, true];
const BOTH: [bool; 2] = [true, true];

fn claimed(reader: &dyn Reader) -> BTreeSet<&'static str> {
    let list = reader.info().capabilities.list();
    list.into_iter().filter(|c| c.1).map(|c| c.0).collect()
}

/// What the trace claims without an event that shows it: only what may stay away, and only because
/// its recorder says that it asked for every event of it.
fn silent(reader: &dyn Reader) -> BTreeSet<&'static str> {
    let shown = shown(reader);
    let info = reader.info();
    let asked_for = |name: &str| {
        let short = name.split_once(':').map_or(name, |n| n.1);
        info.events.iter().any(|e| e.short_name() == short && e.presence > Presence::Described)
    };
    let mut silent = BTreeSet::new();
    for (name, present, events) in info.capabilities.list() {
        // Call chains and control groups hang on other events.
        if !present || shown.contains(name) || matches!(name, "stacks" | "groups") {
            continue;
        }
        let always = ["switches", "wakeups", "wakers", "syscalls", "counters"];
        let path = info.path.display();
        assert!(!always.contains(&name), "{path}: claims {name}, and no event shows it");
        // Of fork, exec and exit one is enough.
        let enough = match name {
            "lifecycle" | "page_faults" => events.split(',').any(asked_for),
            _ => events.split(',').take(2).all(asked_for),
        };
        assert!(enough, "{path}: claims {name}, which nobody asked for and no event shows");
        silent.insert(name);
    }
    silent
}

/// Files below a folder, in a fixed order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { out.push(path) }
        }
    }
    out.sort();
    out
}

#[test]
fn no_fixture_claims_what_no_event_shows() {
    let mut read = 0;
    for file in files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")) {
        let Ok(reader) = holdup_open::open(&file) else { continue };
        silent(&*reader);
        read += 1;
    }
    assert!(read > 40, "{read}");
}

#[needs(corpus)]
#[test]
fn no_published_file_claims_what_no_event_shows() {
    let mut read = 0;
    for file in files_below(&corpus().join("public")) {
        let Ok(reader) = holdup_open::open(&file) else { continue };
        silent(&*reader);
        read += 1;
    }
    assert!(read > 50, "{read}");
}

/// A trace.dat that explains 580 events and holds four: the text of the same trace knows no others.
#[needs(corpus)]
#[test]
fn a_trace_dat_that_explains_system_calls_has_none() {
    let file =
        corpus().join("public/ARM-software+lisa/ipynb/deprecated/tutorial/example_rtapp/trace.dat");
    let reader = holdup_open::open(&file).unwrap();
    assert_eq!(claimed(&*reader), BTreeSet::from(["switches"]));
    let a = analyze(&*reader, &Options::default()).unwrap();
    let sar = &a.sar(false)[0];
    assert_eq!((sar.scall_per_s, sar.sread_per_s, sar.pct_sys), (None, None, None));
    assert_eq!((sar.fork_per_s, sar.exec_per_s), (None, None));
    assert!(a.cpu_rows().iter().all(|c| c.kernel_ns.is_none() && c.irqs.is_none()));
    let rt_app = a.threads().find(|(_, t)| t.tid.0 == 6984).unwrap().1;
    assert!(!rt_app.is_kthread(), "it made no call because none was recorded");
}

fn tables(reader: &dyn Reader) -> (Tables, Value) {
    let a = analyze(reader, &Options::default()).unwrap();
    let mut tables = Tables::new();
    let mut add = |table, keys: &[&str], rows| by_key::add(&mut tables, table, keys, rows);
    add("syscalls", &["name"], json(a.syscalls(Group::System)));
    add("procs", &["tid"], json(a.procs(Group::Thread)));
    add("cpus", &["cpu"], json(a.cpu_rows()));
    add("sar", &["cpu"], json(a.sar(true)));
    add("switches", &["tid"], json(a.switches()));
    add("irqs", &["kind", "name", "cpu"], json(a.irqs(true)));
    add("ledger", &["path"], json(Attribution::from(&a).ledger.nodes()));
    let verdict = serde_json::to_value(diagnose(reader.info(), &a, None).verdict).unwrap();
    (tables, verdict)
}

/// Whether some thread was woken by an interrupt, as each trace of a while has it.
fn has_flags(reader: &dyn Reader) -> bool {
    let mut found = false;
    merge::drive(reader, 1, &mut |events: &[Event], _: &Batch| {
        found |= events.iter().any(|e| matches!(e.what, What::Waking { in_irq: true, .. }));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// See the list of rules at the top.
fn no_plus(reader: &dyn Reader, table: &str, column: &str) -> bool {
    reader.info().format.starts_with("trace.dat") && table == "switches" && column.contains("delay")
}

/// See the list of rules at the top.
fn no_address(table: &str, row: &Value, column: &str) -> bool {
    table == "irqs" && column == "id" && row["kind"] == "workqueue"
}

/// See the list of rules at the top.
fn comm_of_worker(row: &Value, column: &str) -> bool {
    column == "comm" && row["comm"].as_str().is_some_and(|c| c.starts_with("kworker/"))
}

/// The text of a recording: what its own tool prints of it.
fn text_of(file: &Path) -> Vec<u8> {
    let path = file.to_str().unwrap();
    let mut command = if file.extension().is_some_and(|e| e == "dat") {
        let mut c = Command::new("trace-cmd");
        c.args(["report", "-t", "-i", path]);
        c
    } else {
        let mut c = Command::new("perf");
        c.args(["script", "--ns", "--header", "--show-task-events", "--show-switch-events"]);
        c.args(["--show-lost-events", "-f", "-i", path]);
        c
    };
    command.output().unwrap().stdout
}

fn compare(name: &str, file: &Path, dir: &Path) {
    let text = dir.join("text.txt");
    std::fs::write(&text, text_of(file)).unwrap();
    let (binary, text) = (holdup_open::open(file).unwrap(), holdup_open::open(&text).unwrap());
    let silent_here = silent(&*binary);
    assert!(silent(&*text).is_empty(), "{name}: text claims what it does not hold");
    let more: BTreeSet<_> = claimed(&*binary).difference(&silent_here).copied().collect();
    assert_eq!(more, claimed(&*text), "{name}");
    let (b, text_verdict) = tables(&*text);
    let (a, verdict) =
        if has_flags(&*text) { tables(&*binary) } else { tables(&Unflagged::of(&*binary)) };
    // A leaf of the ledger that is not known has no row.
    let unknown = |key: &(&str, String)| {
        key.0 == "ledger" && !silent_here.is_empty() && a[key]["ns"] == 0 && !b.contains_key(key)
    };
    let expected: Vec<_> = a.keys().filter(|key| !unknown(key)).collect();
    assert_eq!(expected, b.keys().collect::<Vec<_>>(), "{name}");
    for (key, other) in &b {
        let (table, row) = (key.0, &a[key]);
        for (column, value) in row.as_object().unwrap() {
            // What did not happen is 0 here, and n/a there.
            let unknown = other[column].is_null() && value.as_f64() == Some(0.0);
            let known_apart = unknown && !silent_here.is_empty()
                || no_plus(&*binary, table, column)
                || no_address(table, row, column)
                || comm_of_worker(row, column);
            assert!(
                known_apart || *value == other[column],
                "{name} {key:?} {column}: {value} and {}",
                other[column]
            );
        }
    }
    for key in ["class", "summary"] {
        assert_eq!(verdict[key], text_verdict[key], "{name}");
    }
}

/// Unpacked, as the tools need it.
fn unpacked(file: &Path, dir: &Path) -> PathBuf {
    let name = file.file_name().unwrap().to_str().unwrap();
    let Some(name) = name.strip_suffix(".zst") else { return file.to_owned() };
    let out = dir.join(name);
    std::fs::write(&out, zstd::decode_all(std::fs::File::open(file).unwrap()).unwrap()).unwrap();
    out
}

#[needs(trace_cmd)]
#[test]
fn a_trace_dat_and_its_report_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for file in [
        "tracedat-small/imb_single_c2.trace.dat.zst",
        "tracedat-small/thr_mutex_tc7n_c8.trace.dat.zst",
    ] {
        compare(file, &unpacked(&crate::support::fixture(file), dir.path()), dir.path());
    }
}

#[needs(trace_cmd, corpus)]
#[test]
fn trace_dats_of_others_and_their_reports_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for file in [
        "public/ARM-software+lisa/ipynb/deprecated/tutorial/example_rtapp/trace.dat",
        "public/ARM-software+trappy/tests/raw_trace.dat",
        "vm/debian61/imb_single_c2.trace.dat.zst",
        "vm/debian61/drv_loop_wq_cpu0_c4.trace.dat.zst",
        "vm/lockstat612/ls_kern_mmap_c4.trace.dat.zst",
    ] {
        compare(file, &unpacked(&corpus().join(file), dir.path()), dir.path());
    }
}

#[needs(perf)]
#[test]
fn a_perf_data_and_its_script_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    // None of some tasks only: their records of exits, which a script lacks, tell more.
    for fixture in [
        "native_steps",
        "native_one_cpu",
        "host_falseshare_n2",
        "io_disk_perf_c4",
        "native_cpu2_switches",
    ] {
        compare(fixture, &crate::support::fixture(&format!("{fixture}/perf.data")), dir.path());
    }
}
