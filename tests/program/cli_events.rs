//! `holdup events` as its users see it.

use crate::support::{fixture, holdup};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Output, Stdio};

const SEMOP: &str = "equivalence/ser_semop_c4/trace.dat.zst";

fn events(name: &str, args: &[&str]) -> Output {
    holdup().arg("events").arg(fixture(name)).args(args).output().unwrap()
}

fn stdout(name: &str, args: &[&str]) -> String {
    crate::support::stdout(&[&["events", fixture(name).to_str().unwrap()], args].concat())
}

fn json(name: &str, args: &[&str]) -> Vec<Value> {
    stdout(name, &[&["--format", "json"], args].concat())
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

#[test]
fn nesting_shows() {
    // A worker sleeps on the semaphore, another runs, posts and wakes it.
    insta::assert_snapshot!(
        "semop",
        stdout(SEMOP, &["--time", "14.6,14.62", "--comm", "semop-1,semop-2", "-n", "60"])
    );
}

#[test]
fn interrupts_stand_in_their_own_column() {
    insta::assert_snapshot!(
        "interrupts",
        stdout(SEMOP, &["-C", "1", "-n", "40", "--time", "14.4,"])
    );
}

#[test]
fn microseconds_are_marked() {
    insta::assert_snapshot!(
        "microseconds",
        stdout("equivalence/ser_semop_c4/report.txt.xz", &["-n", "5"])
    );
}

#[test]
fn side_band_on_demand() {
    let all = json("imb_amdahl_c2/perf.data", &[]);
    let verbose = json("imb_amdahl_c2/perf.data", &["-v"]);
    assert!(verbose.len() > all.len());
    assert!(all.iter().all(|e| e["event"].as_str().unwrap().contains(':')));
    assert!(verbose.iter().any(|e| e["event"] == "COMM" && e["fields"]["comm"].is_string()));
}

#[test]
fn every_line_is_an_object_in_order() {
    let all = json(SEMOP, &[]);
    assert_eq!(all.len(), 32797);
    let ts = |e: &Value| e["ts_ns"].as_u64().unwrap();
    assert!(all.windows(2).all(|w| ts(&w[0]) <= ts(&w[1])));
    let keys = ["ts_ns", "cpu", "tid", "pid", "comm", "event", "context", "fields"];
    let contexts = ["application", "syscall", "kernel", "interrupt"];
    for e in &all {
        assert!(
            e.as_object().unwrap().len() == keys.len() && keys.iter().all(|k| e.get(k).is_some()),
            "{e}"
        );
        assert!(contexts.contains(&e["context"].as_str().unwrap()));
    }
    let of = |context: &str| all.iter().filter(|e| e["context"] == context).count();
    assert!(contexts.iter().all(|c| of(c) > 0));
    let enter = all
        .iter()
        .find(|e| e["event"] == "raw_syscalls:sys_enter" && e["fields"]["name"] == "semtimedop")
        .unwrap();
    assert_eq!(enter["fields"]["args"].as_array().unwrap().len(), 6);
}

#[test]
fn filters_are_what_they_say() {
    let all = json(SEMOP, &[]);
    let count = |f: &dyn Fn(&Value) -> bool| all.iter().filter(|e| f(e)).count();
    let shown = |args: &[&str]| json(SEMOP, args).len();
    assert_eq!(shown(&["-C", "1,3"]), count(&|e| e["cpu"] == 1 || e["cpu"] == 3));
    assert_eq!(
        shown(&["-e", "sched:*"]),
        count(&|e| e["event"].as_str().unwrap().starts_with("sched:"))
    );
    assert_eq!(
        shown(&["-e", "sched_switch", "-e", "sys_e*"]),
        shown(&["-e", "sched:sched_switch,raw_syscalls:*"])
    );
    assert_eq!(shown(&["-n", "7"]), 7);
    let (from, to) = (14_500_000_000, 14_600_000_000u64);
    assert_eq!(
        shown(&["--time", "14.5,14.6"]),
        count(&|e| (from..=to).contains(&e["ts_ns"].as_u64().unwrap()))
    );
    let worker = all.iter().find(|e| e["fields"]["name"] == "semtimedop").unwrap()["tid"].clone();
    let about = |e: &Value| {
        let fields = &e["fields"];
        let woken =
            e["event"].as_str().unwrap().starts_with("sched:sched_wak") && fields["tid"] == worker;
        e["tid"] == worker || fields["next_tid"] == worker || woken
    };
    assert_eq!(shown(&["--tid", &worker.to_string()]), count(&about));
    let comm = json(SEMOP, &["--comm", "semop-1"]);
    assert!(
        comm.len() > 500
            && comm.iter().any(|e| e["comm"] != "semop-1" && e["fields"]["next_comm"] == "semop-1")
    );
}

#[test]
fn nothing_found_is_not_nothing_said() {
    let output = events(SEMOP, &["-e", "sched_swich"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("no event sched_swich") && message.contains("sched_switch"),
        "{message}"
    );
}

#[test]
fn csv_has_one_record_per_event() {
    let text = stdout(SEMOP, &["-x", ";", "-n", "50"]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("ts_ns;cpu;tid;pid;comm;event;context;description"));
    assert_eq!(lines.clone().count(), 50);
    assert!(lines.all(|l| l.split(';').count() == 8), "{text}");
}

#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let mut child = holdup()
        .arg("events")
        .arg(fixture(SEMOP))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("# trace.dat v7 in zstd"), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(message, "");
}

#[test]
fn wrapped_traces_come_through_a_pipe() {
    let from_file = stdout(SEMOP, &["-q"]);
    for file in [SEMOP, "equivalence/ser_semop_c4/report-ns.txt.xz"] {
        let mut child = holdup()
            .args(["events", "-q", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = std::fs::read(fixture(file)).unwrap();
        let feeder = std::thread::spawn(move || stdin.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap().unwrap();
        assert!(output.status.success());
        assert_eq!(
            output.stdout.iter().filter(|&&b| b == b'\n').count(),
            from_file.lines().count()
        );
    }
}

#[test]
fn info_says_what_it_was_recognised_by() {
    for (file, why) in [
        (SEMOP, "tracing"),
        ("equivalence/ser_semop_c4/ftrace.txt.xz", "# tracer:"),
        ("equivalence/ser_semop_c4/report.txt.xz", "cpus="),
        ("ser_flock_c4/perf.data", "PERFILE2"),
    ] {
        let output = holdup().arg("info").arg(fixture(file)).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line =
            text.lines().find(|l| l.contains("recognised by")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(why), "{line}");
    }
}

/// The recording of one mutex, and where its program is.
const CONVOY: &str = "profile_convoy/perf.data";

fn convoy(args: &[&str]) -> Vec<Value> {
    let root = fixture("profile_convoy/root");
    json(CONVOY, &[&["-g", "--symfs", root.to_str().unwrap()], args].concat())
}

#[test]
fn chains_stand_below_their_events_and_are_those_that_profile_adds_up() {
    let mut by_function: BTreeMap<String, u64> = BTreeMap::new();
    for event in convoy(&["--event", "cpu-clock*"]) {
        let innermost = &event["stack"][0];
        *by_function.entry(innermost["symbol"].as_str().unwrap_or("").to_owned()).or_default() += 1;
    }
    let root = fixture("profile_convoy/root");
    let path = fixture(CONVOY);
    let profile = crate::support::stdout(&[
        "profile",
        path.to_str().unwrap(),
        "--symfs",
        root.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let profile: Value = serde_json::from_str(&profile).unwrap();
    let mut added: BTreeMap<String, u64> = BTreeMap::new();
    for row in profile["rows"].as_array().unwrap() {
        let function = row["symbol"].as_str().unwrap_or("").to_owned();
        *added.entry(function).or_default() += row["samples"].as_u64().unwrap();
    }
    assert_eq!(by_function, added);
    assert!(by_function["post_entries"] > 50, "{by_function:?}");
    // A switch has the chain of the thread that leaves: through the scheduler into the program.
    let switches = convoy(&["--event", "sched_switch", "--comm", "convoy"]);
    let called = |event: &&Value| {
        let frames = event["stack"].as_array().unwrap();
        frames.iter().any(|f| f["symbol"] == "worker" && f["dso"] == "convoy")
    };
    assert!(switches.iter().filter(called).count() > 10, "{}", switches.len());
}

#[test]
fn chains_in_text_are_lines_of_their_own() {
    let root = fixture("profile_convoy/root");
    let args = ["-g", "--symfs", root.to_str().unwrap(), "--event", "cpu-clock*", "-n", "40"];
    let text = stdout(CONVOY, &args);
    let frame = text.lines().find(|line| line.contains("handle_request")).unwrap();
    let words: Vec<&str> = frame.split_whitespace().collect();
    assert!(frame.starts_with("        "), "{frame}");
    let address = words[0].strip_prefix("0x").unwrap();
    assert!(u64::from_str_radix(address, 16).is_ok(), "{frame}");
    assert_eq!(words[1..], ["handle_request", "(convoy)"], "{frame}");
}

#[test]
fn chains_have_no_place_in_csv_and_may_not_be_there() {
    let out = events(CONVOY, &["-g", "-x", ","]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8(out.stderr).unwrap().contains("CSV has no place for call chains"));
    let out = events(CONVOY, &["--no-symbols"]);
    assert_eq!(out.status.code(), Some(2));
    let out = events(SEMOP, &["-g", "-n", "1"]);
    assert!(out.status.success());
    assert!(String::from_utf8(out.stderr).unwrap().contains("no call chains were recorded"));
}
