//! Traces judged one by one, wherever: the tables are those of one run.

use super::{Bench, TRACES, code, stderr};
use crate::support::root;
use holdup_testkit::needs;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The parts of all traces of a bench, in a folder.
fn parts(bench: &Bench) {
    for name in TRACES {
        let trace = format!("in/{name}.data");
        let out = bench.run(&["--one", &trace, "--to", "parts/"]);
        assert_eq!(code(&out), 0, "{}", stderr(&out));
        let line: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(line["path"], trace);
        assert!(line["result"]["judged"]["class"].is_string(), "{line}");
    }
}

#[test]
fn parts_put_together_are_the_tables_of_one_run() {
    let bench = Bench::with_traces();
    parts(&bench);
    let merged = bench.run(&["--merge", "parts", "--to", "merged"]);
    let single = bench.fleet("single", &[]);
    assert_eq!((code(&merged), code(&single)), (0, 0), "{}", stderr(&merged));
    assert_eq!(merged.stdout, single.stdout);
    assert!(bench.tables("merged") == bench.tables("single"), "the same bytes");
    // A journal is a part of many traces.
    let again = bench.run(&["--merge", "single/journal.ndjson", "--to", "again", "-q"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert!(bench.tables("again") == bench.tables("single"));
}

#[test]
fn a_part_is_made_once_and_a_part_that_is_not_whole_is_named() {
    let bench = Bench::with_traces();
    parts(&bench);
    let seconds = || {
        let line = bench.run(&["--one", "in/imb_server_c4.data", "--to", "parts/"]).stdout;
        serde_json::from_slice::<Value>(&line).unwrap()["seconds"].clone()
    };
    assert_eq!(seconds(), seconds(), "it is kept");
    let mut files: Vec<_> =
        fs::read_dir(bench.path("parts")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), TRACES.len());
    let torn = fs::read(&files[0]).unwrap();
    fs::write(&files[0], &torn[..torn.len() / 2]).unwrap();
    let merged = bench.run(&["--merge", "parts", "absent", "--to", "merged"]);
    assert_eq!(code(&merged), 3);
    let name = files[0].file_name().unwrap().to_str().unwrap();
    let failed = bench.with_outcome("merged", "failed");
    assert_eq!(failed, ["absent".to_owned(), format!("parts/{name}")]);
    assert_eq!(bench.with_outcome("merged", "judged").len(), TRACES.len() - 1);
}

#[test]
fn a_trace_that_cannot_be_read_is_a_part_too() {
    let bench = Bench::with_traces();
    fs::write(bench.input("bad.data"), "PERFILE2 and no more").unwrap();
    let out = bench.run(&["--one", "in/bad.data", "--to", "bad.ndjson", "--name", "s3://b/bad"]);
    assert_eq!(code(&out), 3);
    let line: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(line["path"], "s3://b/bad");
    assert!(line["result"]["failed"]["error"].is_string());
    let merged = bench.run(&["--merge", "bad.ndjson", "--to", "merged", "-q"]);
    assert_eq!(code(&merged), 3);
    assert_eq!(bench.with_outcome("merged", "failed"), ["s3://b/bad"]);
}

#[needs(dask)]
#[test]
fn a_cluster_makes_the_tables_of_one_machine() {
    let bench = Bench::with_traces();
    fs::write(bench.input("bad.data"), "PERFILE2 and no more").unwrap();
    fs::write(bench.input("README.md"), "# Not a trace\n").unwrap();
    let cluster = || {
        let mut python = Command::new("python3");
        python.arg(root().join("contrib/fleet_dask.py")).args(["in", "--to", "cluster"]);
        python.args(["--workers", "2", "--holdup", env!("CARGO_BIN_EXE_holdup")]);
        python.current_dir(bench.path("")).output().unwrap()
    };
    let first = cluster();
    let single = bench.fleet("single", &[]);
    assert_eq!((code(&first), code(&single)), (3, 3), "{}", stderr(&first));
    assert_eq!(first.stdout, single.stdout);
    assert!(bench.tables("cluster") == bench.tables("single"), "the same bytes");
    let journal = fs::read_to_string(bench.path("cluster/journal.ndjson")).unwrap();
    assert_eq!(journal.lines().count(), TRACES.len() + 1, "what failed was told here");
    // A second run has nothing to do.
    assert_eq!(cluster().stdout, first.stdout);
    assert_eq!(fs::read_to_string(bench.path("cluster/journal.ndjson")).unwrap(), journal);
}
