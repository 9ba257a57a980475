//! The binary from outside: exit codes, forms of output, where they go.

use crate::support::{holdup, recording};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

const TABLES: [&str; 5] = ["syscalls", "procs", "cpus", "switches", "irqs"];

/// The smallest recording that has every kind of event.
fn small() -> PathBuf {
    recording("healthy_cpu_threads_c4")
}

fn run(args: &[&str], trace: &Path) -> Output {
    crate::support::run(&[args, &[trace.to_str().unwrap()]].concat())
}

/// Standard output of a run that must succeed.
#[track_caller]
fn printed(args: &[&str], trace: &Path) -> String {
    crate::support::stdout(&[args, &[trace.to_str().unwrap()]].concat())
}

fn json(args: &[&str], trace: &Path) -> Value {
    serde_json::from_str(&printed(&[args, &["-j"]].concat(), trace)).unwrap()
}

/// Standard error of a run that must fail with `code` and print nothing else.
#[track_caller]
fn fails(out: Output, code: i32) -> String {
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(code), "{stderr}");
    assert!(out.stdout.is_empty());
    stderr
}

#[test]
fn version_and_help_succeed() {
    let out = holdup().arg("--version").output().unwrap();
    assert!(out.status.success());
    assert_eq!(
        String::from_utf8(out.stdout).unwrap(),
        format!("holdup {}\n", env!("CARGO_PKG_VERSION"))
    );
    for verb in [&TABLES[..], &["info", "ledger", "summary", "diagnose"]].concat() {
        let out = holdup().args([verb, "--help"]).output().unwrap();
        let help = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success() && help.contains("Example: holdup"), "{help}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let trace = small();
    for args in [
        &["nonsense"][..],
        &["syscalls", "--by", "moon"],
        &["syscalls", "--format", "yaml"],
        &["syscalls", "-j", "-x,"],
        &["syscalls", "-x", ""],
        &["syscalls", "--time", "5"],
        &["syscalls", "--time", "1,2"],
        &["syscalls", "--cpu", "3-1"],
        &["syscalls", "-i", "other"],
        &["syscalls", "-q", "-v"],
        &["ledger", "--sort", "ns"],
    ] {
        fails(run(args, &trace), 2);
    }
    fails(holdup().output().unwrap(), 2);
    let keys = fails(run(&["procs", "-s", "beauty"], &trace), 2);
    assert!(keys.contains("'beauty'") && keys.contains("combined_ns"), "{keys}");
}

#[test]
fn a_wrong_key_shows_before_the_trace_is_read() {
    fails(run(&["procs", "-s", "beauty"], Path::new("/nonexistent")), 2);
}

#[test]
fn without_a_trace_the_current_directory_is_searched() {
    let dir = tempfile::tempdir().unwrap();
    let bare = |dir: &Path| holdup().args(["cpus", "-j"]).current_dir(dir).output().unwrap();
    assert!(fails(bare(dir.path()), 2).contains("perf.data"));
    fs::copy(small(), dir.path().join("trace.dat")).unwrap();
    let trace_dat: Value = serde_json::from_slice(&bare(dir.path()).stdout).unwrap();
    assert_eq!(trace_dat["trace"]["path"], "trace.dat");
    fs::copy(small(), dir.path().join("perf.data")).unwrap();
    let perf_data: Value = serde_json::from_slice(&bare(dir.path()).stdout).unwrap();
    assert_eq!(perf_data["trace"]["path"], "perf.data");
    assert_eq!(perf_data["rows"], trace_dat["rows"]);
}

#[test]
fn unreadable_input_exits_with_3_and_says_what_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let unreadable = |content: &[u8]| {
        let path = dir.path().join("trace");
        fs::write(&path, content).unwrap();
        let message = fails(run(&["summary"], &path), 3);
        assert!(message.starts_with(&format!("holdup: {}: ", path.display())), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    };
    assert!(unreadable(b"").contains("empty"));
    assert!(unreadable(b"\x28\xb5\x2f\xfd....").contains("zstd -dc"));
    assert!(unreadable(b"\x7fELF\x02\x01\x01").contains("ELF"));
    // The header, with sections behind the end of the file.
    let damaged = unreadable(&fs::read(small()).unwrap()[..104]);
    assert!(damaged.contains("byte 0x") && damaged.contains("expected"), "{damaged}");
    assert!(fails(run(&["summary"], &dir.path().join("missing")), 3).contains("No such file"));
    assert!(fails(run(&["summary"], dir.path()), 3).contains("directory"));
}

#[test]
fn a_closed_pipe_is_quiet_success() {
    let mut child = holdup()
        .args(["summary", "-j"])
        .arg(small())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    assert!(out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn standard_input_is_a_trace_too() {
    let out = holdup()
        .args(["syscalls", "-j", "-"])
        .stdin(fs::File::open(small()).unwrap())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let piped: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(piped["trace"]["path"], "-");
    assert_eq!(piped["rows"], json(&["syscalls"], &small())["rows"]);
}

#[test]
fn every_verb_speaks_json_of_one_schema() {
    let trace = small();
    for verb in TABLES {
        let report = json(&[verb], &trace);
        let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["command", "quality", "rows", "schema", "trace"], "{verb}");
        assert_eq!((&report["schema"], &report["command"]), (&"holdup/1".into(), &verb.into()));
        assert!(!report["rows"].as_array().unwrap().is_empty(), "{verb}");
    }
    let trace_keys = [
        "clock",
        "cpus",
        "end_ns",
        "events",
        "format",
        "lost_events",
        "path",
        "start_ns",
        "wall_ns",
    ];
    let info = json(&["info"], &trace);
    assert_eq!(info["trace"].as_object().unwrap().keys().collect::<Vec<_>>(), trace_keys);
    assert!(info["info"]["capabilities"].is_array());
    let summary = json(&["summary"], &trace);
    for table in ["sar", "cpus", "procs", "syscalls", "switches", "irqs"] {
        assert!(summary["summary"][table]["rows"].is_array(), "{table}");
    }
    assert_eq!(summary["summary"]["ledger"], json(&["ledger"], &trace)["ledger"]);
    assert_eq!(summary["summary"]["procs"]["rows"], json(&["procs"], &trace)["rows"]);
}

#[test]
fn the_ledger_and_every_cpu_add_up() {
    let report = json(&["ledger"], &small());
    let capacity = report["ledger"]["capacity_ns"].as_u64().unwrap();
    let nodes = report["ledger"]["nodes"].as_array().unwrap();
    let top: u64 = nodes
        .iter()
        .filter(|n| !n["path"].as_str().unwrap().contains('/'))
        .map(|n| n["ns"].as_u64().unwrap())
        .sum();
    assert_eq!(top, capacity);
    let trace = &report["trace"];
    assert_eq!(capacity, trace["cpus"].as_u64().unwrap() * trace["wall_ns"].as_u64().unwrap());
    for cpu in json(&["cpus"], &small())["rows"].as_array().unwrap() {
        let parts = [
            "user_ns",
            "kernel_ns",
            "kthread_ns",
            "irq_ns",
            "softirq_ns",
            "idle_ns",
            "unaccounted_ns",
        ];
        assert_eq!(
            parts.iter().map(|p| cpu[p].as_u64().unwrap_or(0)).sum::<u64>(),
            cpu["wall_ns"].as_u64().unwrap(),
            "{cpu}"
        );
    }
}

#[test]
fn groups_decide_which_keys_rows_have() {
    let keys = |args: &[&str]| {
        let report = json(args, &small());
        ["comm", "pid", "tid", "cpu"].map(|key| report["rows"][0].get(key).is_some())
    };
    assert_eq!(keys(&["syscalls"]), [false, false, false, false]);
    assert_eq!(keys(&["syscalls", "--by", "process"]), [true, true, false, false]);
    assert_eq!(keys(&["syscalls", "--by", "thread"]), [true, true, true, false]);
    assert_eq!(keys(&["procs"]), [true, true, true, false]);
    assert_eq!(keys(&["procs", "--by", "process"]), [true, true, false, false]);
    assert_eq!(keys(&["procs", "--by", "command"]), [true, false, false, false]);
    assert_eq!(keys(&["irqs"]), [false, false, false, true]);
    assert_eq!(keys(&["irqs", "--by", "total"]), [false, false, false, false]);
}

#[test]
fn rows_can_be_sorted_limited_and_selected() {
    let trace = small();
    let column = |args: &[&str], key: &str| -> Vec<Value> {
        json(args, &trace)["rows"].as_array().unwrap().iter().map(|r| r[key].clone()).collect()
    };
    let numbers = |args: &[&str], key: &str| {
        column(args, key).iter().map(|v| v.as_u64().unwrap()).collect::<Vec<_>>()
    };
    let counts = numbers(&["syscalls", "--sort", "count"], "count");
    assert!(counts.is_sorted_by(|a, b| a >= b) && counts.len() > 3);
    assert_eq!(numbers(&["syscalls", "-k", "count", "-n", "3"], "count"), counts[..3]);
    assert_eq!(numbers(&["syscalls", "--key", "count", "-E0"], "count"), counts);
    let tids = numbers(&["procs", "-s", "tid"], "tid");
    assert!(tids.is_sorted());
    assert_eq!(numbers(&["procs", "--tid", &tids[1].to_string()], "tid"), [tids[1]]);
    assert_eq!(numbers(&["cpus", "-C", "1-2"], "cpu"), [1, 2]);
    assert!(column(&["procs", "--comm", "wl"], "comm").iter().all(|c| c == "wl"));
}

#[test]
fn a_window_of_time_is_cut_out() {
    let trace = small();
    let head = |args: &[&str]| json(&[&["ledger"], args].concat(), &trace)["trace"].clone();
    let all = head(&[]);
    let (start, wall) = (all["start_ns"].as_u64().unwrap(), all["wall_ns"].as_u64().unwrap());
    let part = head(&["--time", "10%,20%"]);
    assert_eq!(part["start_ns"].as_u64().unwrap(), start + wall / 10);
    assert!(part["wall_ns"].as_u64().unwrap().abs_diff(wall / 10) <= 1);
    assert_eq!(part, head(&["--time", "10%-20%"]));
    let from = start + 500_000_000;
    let tail = head(&["--time", &format!("{}.{:09},", from / 1_000_000_000, from % 1_000_000_000)]);
    assert_eq!((tail["start_ns"].as_u64(), &tail["end_ns"]), (Some(from), &all["end_ns"]));
}

#[test]
fn csv_has_the_keys_as_headers() {
    let trace = small();
    let csv = printed(&["irqs", "--format", "csv", "-n", "2"], &trace);
    assert_eq!(
        csv.lines().next(),
        Some("kind,id,name,cpu,count,total_ns,avg_ns,max_ns,max_start_ns")
    );
    assert_eq!(csv.lines().count(), 3);
    assert_eq!(printed(&["irqs", "-x;", "-n", "2"], &trace), csv.replace(',', ";"));
    assert_eq!(printed(&["irqs", "-x", "\\t", "-n", "2"], &trace), csv.replace(',', "\t"));
}

#[test]
fn losses_are_told_on_stderr_where_the_form_has_no_place_for_them() {
    let trace = recording("lost_sysloop_n2");
    let out = run(&["cpus", "--format", "csv"], &trace);
    assert!(String::from_utf8_lossy(&out.stderr).contains("[lost-"), "{out:?}");
    assert!(run(&["cpus", "--format", "csv", "-q"], &trace).stderr.is_empty());
    assert!(run(&["cpus", "-j"], &trace).stderr.is_empty());
    assert!(printed(&["cpus"], &trace).contains("ERROR: "));
}

#[test]
fn text_says_how_to_see_the_rest() {
    let trace = small();
    let text = printed(&["syscalls", "-n", "1"], &trace);
    assert!(text.contains("more rows not shown; -n 0 shows all"), "{text}");
    assert!(!printed(&["syscalls", "-n", "0"], &trace).contains("not shown"));
    assert!(!printed(&["syscalls", "-n", "1", "-q"], &trace).contains("not shown"));
}

#[test]
fn output_goes_to_a_file_but_never_onto_the_trace() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("perf.data");
    fs::copy(small(), &trace).unwrap();
    let file = dir.path().join("out");
    let to =
        |file: &Path| vec!["cpus".to_owned(), "-o".to_owned(), file.to_str().unwrap().to_owned()];
    let out = holdup().args(to(&file)).arg(&trace).output().unwrap();
    assert!(out.status.success() && out.stdout.is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), printed(&["cpus"], &trace));

    let message = fails(holdup().args(to(&trace)).arg(&trace).output().unwrap(), 2);
    assert!(message.contains("overwritten"), "{message}");
    assert_eq!(fs::read(&trace).unwrap(), fs::read(small()).unwrap());

    // Opened first: a mistake there must not cost a long read.
    let nowhere = dir.path().join("no/such/directory");
    let message = fails(holdup().args(to(&nowhere)).arg("/nonexistent").output().unwrap(), 2);
    assert!(message.contains("cannot be written"), "{message}");
}

#[test]
fn colour_is_asked_for_or_absent() {
    let escapes = |args: &[&str], env: &[(&str, &str)]| {
        let out = holdup().args(args).arg(small()).envs(env.iter().copied()).output().unwrap();
        out.stdout.contains(&0x1b)
    };
    assert!(!escapes(&["ledger"], &[]));
    assert!(escapes(&["ledger", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(escapes(&["ledger"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!escapes(&["ledger", "--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!escapes(&["ledger", "-j", "--color", "always"], &[]));
}

#[test]
fn the_same_file_gives_the_same_bytes() {
    let trace = recording("imb_server_c4");
    for args in [&["summary"][..], &["summary", "-j"], &["diagnose"]] {
        assert_eq!(run(args, &trace).stdout, run(args, &trace).stdout);
    }
}

#[test]
fn fail_on_decides_the_exit_code() {
    let trace = recording("imb_server_c4");
    let code = |args: &[&str]| run(&[&["diagnose", "-q"], args].concat(), &trace).status.code();
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--fail-on", "thread-serialization"]), Some(0));
    assert_eq!(code(&["--fail-on", "io-bound,workload-imbalance"]), Some(1));
    assert_eq!(code(&["--fail-on", "bad-luck"]), Some(2));
}
