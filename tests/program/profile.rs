//! `holdup profile` from outside, and beside perf.

use crate::support::profiles::{command, json, profile, rows, samples};
use crate::support::{fixture, recording, run, stdout};
use holdup_testkit::needs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const CONVOY: &str = "profile_convoy";
const BANK: &str = "profile_bank";

/// The keys of a row are these, whatever their order.
#[track_caller]
fn has_keys(row: &Value, keys: &[&str]) {
    let mut found: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let mut keys = keys.to_vec();
    found.sort();
    keys.sort();
    assert_eq!(found, keys);
}

fn notes(answer: &Value) -> String {
    answer["notes"].to_string()
}

#[test]
fn a_function_is_named_by_thread_file_and_symbol() {
    let answer = json(CONVOY, &[]);
    let all = rows(&answer);
    has_keys(&all[0], &["comm", "pid", "tid", "dso", "symbol", "samples", "pct"]);
    let of = |symbol: &str| samples(all.iter().filter(|r| r["symbol"] == symbol));
    // The program spends eight ninths of its work in one function and a ninth in the other.
    let (held, free) = (of("post_entries"), of("parse_request"));
    assert!(held > 6 * free && free > 0, "{held} and {free}");
    let kernel = samples(all.iter().filter(|r| r["dso"] == "[kernel.kallsyms]"));
    assert_eq!(held + free + kernel, samples(all));
    assert!(all.iter().all(|r| r["comm"] == "convoy"));
    let whole: f64 = all.iter().map(|r| r["pct"].as_f64().unwrap()).sum();
    assert!((whole - 100.0).abs() < 0.01 * all.len() as f64, "{whole}");
}

#[test]
fn names_of_cpp_are_those_of_the_source() {
    let all = json(BANK, &["--by", "dso"]);
    let functions = json(BANK, &[]);
    let names: Vec<&str> = rows(&functions).iter().filter_map(|r| r["symbol"].as_str()).collect();
    for name in ["bank::Ledger<64u>::withdraw", "bank::Ledger<64u>::deposit"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(names.contains(&"bank::Ledger<64u>::sum"), "a const function: {names:?}");
    assert_eq!(samples(rows(&all)), samples(rows(&functions)));
}

#[test]
fn every_group_adds_up_to_the_same() {
    let whole = samples(rows(&json(CONVOY, &[])));
    for (by, columns) in [
        ("thread", vec!["comm", "pid", "tid", "samples", "kernel_samples", "pct"]),
        ("process", vec!["comm", "pid", "samples", "kernel_samples", "pct"]),
        ("dso", vec!["dso", "samples", "kernel_samples", "pct"]),
        ("line", vec!["dso", "symbol", "line", "samples", "pct"]),
        ("cpu", vec!["cpu", "samples", "kernel_samples", "pct"]),
    ] {
        let answer = json(CONVOY, &["--by", by]);
        has_keys(&rows(&answer)[0], &columns);
        assert_eq!(samples(rows(&answer)), whole, "{by}");
        assert!(profile(CONVOY, &["--by", by]).contains("samples of cpu-clock"), "{by}");
    }
    let by_thread = json(CONVOY, &["--by", "thread"]);
    assert_eq!(rows(&by_thread).len(), 3, "three workers; the main thread sleeps");
}

#[test]
fn lines_come_from_debug_information_and_are_n_a_without() {
    let answer = json(CONVOY, &["--by", "line"]);
    let source = std::fs::read_to_string(fixture(CONVOY).join("convoy.c")).unwrap();
    let row = rows(&answer).iter().find(|r| r["symbol"] == "post_entries").unwrap();
    let (file, line) = row["line"].as_str().unwrap().split_once(':').unwrap();
    let line = source.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
    assert!(file == "convoy.c" && line.contains("800000"), "{line}");
    assert!(rows(&json(BANK, &["--by", "line"])).iter().all(|r| r["line"].is_null()));
}

#[test]
fn chains_are_folded_as_flame_graphs_want_them() {
    let text = profile(CONVOY, &["--folded"]);
    let counted = |l: &str| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(text.lines().map(counted).sum::<u64>(), samples(rows(&json(CONVOY, &[]))));
    assert!(text.lines().all(|l| l.starts_with("convoy;")), "{text}");
    let chain = ";worker;handle_request;update_balance;post_entries ";
    assert!(text.lines().any(|l| l.contains(chain)), "{text}");
    let all: Vec<&str> = text.lines().collect();
    assert!(all.is_sorted());
}

#[test]
fn a_selection_shows_its_part_and_shares_of_the_whole() {
    let all = json(CONVOY, &["--by", "thread"]);
    let one = &rows(&all)[1];
    let tid = one["tid"].to_string();
    let only = json(CONVOY, &["--by", "thread", "--tid", &tid]);
    assert_eq!(rows(&only), &vec![one.clone()]);
    let none = command(CONVOY, &["--comm", "another"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2), "a choice that fits no thread is an error");
    let (a, b) = (json(CONVOY, &["--time", "0%,50%"]), json(CONVOY, &["--time", "50%,100%"]));
    let (first, second) = (samples(rows(&a)), samples(rows(&b)));
    assert!(first > 0 && second > 0);
    assert_eq!(first + second, samples(rows(&all)));
    let pid = one["pid"].to_string();
    assert_eq!(samples(rows(&json(CONVOY, &["-p", &pid]))), samples(rows(&all)));
}

#[test]
fn any_event_with_chains_has_a_profile() {
    let answer = json(CONVOY, &["-e", "sched:sched_switch"]);
    assert!(notes(&answer).contains("samples of sched:sched_switch"));
    assert!(samples(rows(&answer)) > 100);
    let text = profile(CONVOY, &["-e", "sched_switch", "--folded"]);
    assert!(text.contains("handle_request;update_balance;"), "waits for the lock: {text}");
    let trace = recording(CONVOY).display().to_string();
    let out = run(&["profile", "-e", "cycles", &trace]);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2));
    assert!(message.contains("no event 'cycles'") && message.contains("cpu-clock"), "{message}");
}

#[test]
fn a_file_of_another_build_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("tmp/demo");
    std::fs::create_dir_all(&place).unwrap();
    // The right name, and another program.
    std::fs::copy(fixture(BANK).join("root/tmp/demo/bank"), place.join("convoy")).unwrap();
    // Neither perf's cache nor this machine's files may step in.
    let answer = || -> Value {
        let mut holdup = crate::support::holdup();
        holdup.args(["profile", "-j", "--symfs"]).arg(folder.path()).arg(recording(CONVOY));
        let out = holdup.env("HOME", folder.path()).output().unwrap();
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let refused = answer();
    assert!(notes(&refused).contains("is not the recorded file"), "{}", notes(&refused));
    assert!(rows(&refused).iter().all(|r| r["symbol"].is_null()));
    assert!(rows(&refused).iter().any(|r| r["dso"] == "convoy"), "its name is known all the same");
    std::fs::remove_file(place.join("convoy")).unwrap();
    let missing = answer();
    assert!(notes(&missing).contains("not found, so their functions are not known: convoy"));
}

#[test]
fn no_file_is_opened_unless_names_are_wanted() {
    let trace = recording(CONVOY).display().to_string();
    let answer: Value =
        serde_json::from_str(&stdout(&["profile", "-j", "--no-symbols", &trace])).unwrap();
    assert!(rows(&answer).iter().all(|r| r["symbol"].is_null()));
    assert_eq!(rows(&answer)[0]["dso"], "convoy");
    let out = run(&["profile", "--symfs", "/nowhere/at/all", &trace]);
    assert_eq!(out.status.code(), Some(3), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn the_kernels_functions_come_from_a_list_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("kallsyms");
    // Where the recorded kernel began is not where this list does: a kernel that booted again.
    std::fs::write(&list, "ffffffff90000000 T _text\nffffffff92800000 D _edata\n").unwrap();
    let answer = json(CONVOY, &["--kallsyms", list.to_str().unwrap()]);
    let kernel: Vec<&Value> =
        rows(&answer).iter().filter(|r| r["dso"] == "[kernel.kallsyms]").collect();
    assert!(!kernel.is_empty() && kernel.iter().all(|r| r["symbol"] == "_text"), "{kernel:?}");
}

#[test]
fn without_samples_switches_say_how_long_threads_ran_and_not_where() {
    let trace = recording("imb_server_c4").display().to_string();
    let answer: Value = serde_json::from_str(&stdout(&["profile", "-j", &trace])).unwrap();
    let procs: Value = serde_json::from_str(&stdout(&["procs", "-j", &trace])).unwrap();
    let cpu_time = |answer: &Value, key: &str| -> BTreeMap<String, u64> {
        let of = |r: &Value| (r["tid"].to_string(), r[key].as_u64().unwrap());
        rows(answer).iter().map(of).filter(|(_, ns)| *ns > 0).collect()
    };
    assert_eq!(cpu_time(&answer, "run_ns"), cpu_time(&procs, "combined_ns"));
    let row = &rows(&answer)[0];
    assert!(row["samples"].is_null() && row["dso"].is_null() && row["symbol"].is_null());
    assert!(notes(&answer).contains("no samples say which code ran"));
    let text = stdout(&["profile", &trace]);
    assert!(text.contains("CPU time by thread") && text.contains("perf record -e cpu-clock"));
    let by_line: Value =
        serde_json::from_str(&stdout(&["profile", "-j", "--by", "line", &trace])).unwrap();
    assert!(rows(&by_line).is_empty(), "nobody knows");
}

#[test]
fn waits_are_told_by_the_function_of_the_program_that_waits() {
    // libc has no frame pointers, so the kernel missed the function that called it: the call before
    // the next address of the chain tells.
    for (name, waits) in [(CONVOY, "update_balance"), (BANK, "bank::Ledger<64u>::transfer")] {
        let (root, trace) = (fixture(name).join("root"), recording(name));
        let (root, trace) = (root.display().to_string(), trace.display().to_string());
        let by_caller: Value = serde_json::from_str(&stdout(&[
            "waits", "--by", "caller", "-j", "--symfs", &root, &trace,
        ]))
        .unwrap();
        let all = rows(&by_caller);
        let row = all.iter().find(|r| r["caller"] == waits).unwrap_or_else(|| panic!("{all:?}"));
        // A function of libc where its file is at hand, else the file.
        assert!(row["through"].is_string(), "{row}");
        assert!(row["object"].as_str().unwrap().starts_with("mutex 0x"), "{row}");
        assert_eq!(row["waiters"], 3);
        // Every sleep is in one row, and in one row of the other tables.
        let by_kind: Value =
            serde_json::from_str(&stdout(&["waits", "--by", "kind", "-j", &trace])).unwrap();
        let sum = |rows: &Vec<Value>, key: &str| -> u64 {
            rows.iter().map(|r| r[key].as_u64().unwrap()).sum()
        };
        for key in ["waits", "wait_total_ns"] {
            assert_eq!(sum(all, key), sum(rows(&by_kind), key), "{name}: {key}");
        }
    }
    let trace = recording("imb_server_c4").display().to_string();
    let text = stdout(&["waits", "--by", "caller", &trace]);
    assert!(text.contains("no call chains were recorded"), "{text}");
    let out = run(&["waits", "--by", "thread", "--no-symbols", &trace]);
    assert_eq!(out.status.code(), Some(2));
}

// ---- beside perf ---------------------------------------------------------------------------

/// Samples by name of thread, file and function; those without a function together.
type Counts = BTreeMap<(String, Option<String>, Option<String>), u64>;

/// What `perf report` says of the samples of `event`.
fn perf_says(trace: &Path, root: Option<&Path>, event: &str) -> Counts {
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "-n", "-g", "none", "--no-children"])
        .args(["--sort", "comm,dso,sym", "-t", "\t", "-i"])
        .arg(trace);
    if let Some(root) = root {
        perf.arg("--symfs").arg(root);
    }
    let out = perf.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let mut counts = Counts::new();
    let mut wanted = false;
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("of event '") {
            wanted = name.trim_end_matches('\'') == event;
        }
        let words: Vec<&str> = line.split('\t').map(str::trim).collect();
        if !wanted || line.starts_with('#') || words.len() < 5 {
            continue;
        }
        // `[.] name` and `[k] name`; an address has no name.
        let name = &words[4][4..];
        let symbol = (!name.starts_with("0x")).then(|| name.to_owned());
        let dso = (words[3] != "[unknown]").then(|| words[3].to_owned());
        *counts.entry((words[2].to_owned(), dso, symbol)).or_default() +=
            words[1].parse::<u64>().unwrap();
    }
    counts
}

fn holdup_says(answer: &Value) -> Counts {
    let mut counts = Counts::new();
    for row in rows(answer) {
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        let key = (text("comm").unwrap(), text("dso"), text("symbol"));
        *counts.entry(key).or_default() += row["samples"].as_u64().unwrap();
    }
    counts
}

#[needs(perf)]
#[test]
fn perf_counts_the_same_samples_of_the_fixtures() {
    for name in [CONVOY, BANK] {
        let root = fixture(name).join("root");
        let ours = holdup_says(&json(name, &[]));
        let event = "cpu-clock/freq=499/";
        assert_eq!(perf_says(&recording(name), Some(&root), event), ours, "{name}");
        assert!(ours.values().sum::<u64>() > 100, "{name}: {ours:?}");
    }
}

/// A recording of this machine, its kernel and its libraries included.
#[needs(perf_6_1, tracepoints)]
#[test]
fn perf_counts_the_same_samples_of_a_new_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let work = "i=0; while [ $i -lt 300 ]; do /bin/cat /proc/self/maps; i=$((i+1)); done";
    let status = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock", "-F", "1999", "-g", "-o"])
        .arg(&file)
        .args(["--", "sh", "-c", work])
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let trace = file.display().to_string();
    let answer: Value = serde_json::from_str(&stdout(&["profile", "-j", &trace])).unwrap();
    let (mut theirs, mut ours) = (perf_says(&file, None, "cpu-clock"), holdup_says(&answer));
    assert!(ours.values().sum::<u64>() > 100, "{ours:?}");
    // perf before 6.3 does not name all stubs of procedure linkage tables.
    let stub = |symbol: &Option<String>| {
        symbol.as_ref().is_some_and(|s| s.ends_with("@plt") || s == "_init")
    };
    for counts in [&mut theirs, &mut ours] {
        let stubs: Vec<_> = counts.keys().filter(|(_, _, s)| stub(s)).cloned().collect();
        for key in stubs {
            let n = counts.remove(&key).unwrap_or(0);
            *counts.entry((key.0, key.1, None)).or_default() += n;
        }
    }
    assert_eq!(theirs, ours);
}

/// A field of a protobuf message: a length and that many bytes.
fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut out = varint(number << 3 | 2);
    out.extend(varint(content.len() as u64));
    out.extend(content);
    out
}

/// Fields that are numbers.
fn ints(fields: &[(u64, u64)]) -> Vec<u8> {
    fields
        .iter()
        .flat_map(|&(number, value)| [varint(number << 3), varint(value)])
        .flatten()
        .collect()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// 7,977 packets with samples of `linux.perf` were dropped without a word.
#[test]
fn samples_of_perfetto_are_rows_with_their_callers() {
    let name =
        |of, id, text: &str| field(of, &[ints(&[(1, id)]), field(2, text.as_bytes())].concat());
    let frame =
        |id, function, address| field(6, &ints(&[(1, id), (2, function), (3, 1), (4, address)]));
    let interned = [
        name(5, 1, "main"),
        name(5, 2, "hot"),
        name(17, 1, "app"),
        field(19, &ints(&[(1, 1), (7, 1)])),
        frame(1, 1, 0x100),
        frame(2, 2, 0x200),
        field(7, &ints(&[(1, 1), (2, 1)])),
        field(7, &ints(&[(1, 2), (2, 1), (2, 2)])),
    ];
    // A writer begins: its times are of the boot clock, 100 samples a second.
    let rate = field(12, &field(1, &ints(&[(2, 100)])));
    let begin = field(59, &[ints(&[(58, 6)]), rate].concat());
    let writer = ints(&[(3, 9999), (10, 5)]);
    let mut packets = vec![
        [writer.clone(), ints(&[(13, 1)]), begin].concat(),
        [writer.clone(), field(12, &interned.concat())].concat(),
    ];
    for n in 1..=40 {
        let chain = if n % 4 == 0 { 1 } else { 2 };
        let sample = field(66, &ints(&[(1, 0), (2, 70), (3, 71), (4, chain)]));
        packets.push([writer.clone(), ints(&[(8, n * 10_000_000)]), sample].concat());
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("samples.pftrace");
    std::fs::write(&path, packets.iter().flat_map(|p| field(1, p)).collect::<Vec<u8>>()).unwrap();
    let path = path.to_str().unwrap();
    let answer: Value = serde_json::from_str(&stdout(&["profile", "--json", path])).unwrap();
    let of = |row: &Value| (row["symbol"].clone(), row["samples"].clone(), row["tid"].clone());
    let all: Vec<_> = rows(&answer).iter().map(of).collect();
    assert_eq!(all, [("hot".into(), 30.into(), 71.into()), ("main".into(), 10.into(), 71.into())]);
    let folded = stdout(&["profile", "--folded", path]);
    assert_eq!(folded.trim(), ":71;main 10\n:71;main;hot 30");
}
