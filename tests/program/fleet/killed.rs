//! A run that is ended by anything goes on where it was.

use super::{Bench, code, judged, stderr};
use crate::support::{holdup, recording};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Traces with different contents: what stands behind the last section of a perf.data is not read.
fn many(bench: &Bench, n: usize) {
    let trace = fs::read(recording("host_falseshare_n2")).unwrap();
    for i in 0..n {
        let mut bytes = trace.clone();
        bytes.extend(format!("copy {i}").bytes());
        fs::write(bench.input(&format!("{i:04}.data")), bytes).unwrap();
    }
}

fn lines(bench: &Bench) -> usize {
    let journal = fs::read(bench.path("out").join("journal.ndjson")).unwrap_or_default();
    journal.iter().filter(|&&b| b == b'\n').count()
}

#[test]
fn what_was_done_before_kill_9_is_not_done_again_and_the_tables_are_the_same() {
    const TRACES: usize = 120;
    let bench = Bench::new();
    many(&bench, TRACES);
    let mut command = holdup();
    command.current_dir(bench.path("")).args(["fleet", "in", "--to", "out", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while lines(&bench) < 5 {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let done = lines(&bench);
    assert!((5..TRACES).contains(&done), "killed too late: {done}");

    let resumed = bench.fleet("out", &["--jobs", "2"]);
    assert_eq!((code(&resumed), judged(&resumed)), (0, TRACES - done), "{}", stderr(&resumed));
    let at_once = bench.fleet("other", &["--jobs", "1"]);
    assert_eq!(judged(&at_once), TRACES);
    assert_eq!(resumed.stdout, at_once.stdout);
    assert!(bench.tables("out") == bench.tables("other"), "the same bytes");
}

#[test]
fn a_line_that_was_begun_and_one_that_is_damaged_are_made_again() {
    let bench = Bench::with_traces();
    let whole = bench.fleet("out", &[]);
    let tables = bench.tables("out");
    let path = bench.path("out").join("journal.ndjson");
    let journal = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = journal.lines().collect();
    let last = lines.pop().unwrap();
    let damaged = lines[0].replacen("\"result\":", "\"resul\":", 1);
    lines[0] = &damaged;
    let text = format!("{}\n{}", lines.join("\n"), &last[..last.len() / 2]);
    fs::write(&path, text).unwrap();
    let again = bench.fleet("out", &[]);
    assert_eq!((code(&again), judged(&again)), (0, 2), "{}", stderr(&again));
    assert_eq!(again.stdout, whole.stdout);
    assert!(bench.tables("out") == tables);
}

#[test]
fn tables_that_were_begun_are_begun_anew() {
    let bench = Bench::with_traces();
    bench.fleet("out", &[]);
    let tables = bench.tables("out");
    let left = bench.path("out/.tables.new/trace");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("part-0000.parquet.part"), "half of it").unwrap();
    fs::write(bench.path("out/tables/trace/strange.parquet"), "of another run").unwrap();
    assert_eq!(code(&bench.fleet("out", &["-q"])), 0);
    assert!(bench.tables("out") == tables);
    let mut names: Vec<_> =
        fs::read_dir(bench.path("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["journal.ndjson", "manifest.json", "tables"]);
}

#[test]
fn rows_that_are_not_those_of_the_tables_are_told_and_nothing_panics() {
    let bench = Bench::with_traces();
    bench.fleet("out", &[]);
    let path = bench.path("out").join("journal.ndjson");
    let journal = fs::read_to_string(&path).unwrap();
    // The rows of the first table of the first line are of another type.
    let broken = journal.replacen("\"rows\":{\"by_cgroup\":[", "\"rows\":{\"by_cgroup\":[[1],", 1);
    assert_ne!(broken, journal);
    fs::write(&path, broken.replace("[[1],]", "[[1]]")).unwrap();
    let out = bench.fleet("out", &[]);
    assert_eq!(code(&out), 3, "{}", stderr(&out));
    assert_eq!(bench.with_outcome("out", "failed").len(), 1);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("the record of this trace is damaged"), "{text}");
}

#[test]
fn two_runs_do_not_write_into_one_folder() {
    let bench = Bench::new();
    many(&bench, 120);
    let mut command = holdup();
    command.current_dir(bench.path("")).args(["fleet", "in", "--to", "out", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while lines(&bench) < 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let second = bench.fleet("out", &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(code(&second), 2);
    assert!(stderr(&second).contains("another holdup fleet"), "{}", stderr(&second));
}
