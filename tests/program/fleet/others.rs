//! pyarrow and DuckDB read the tables of a fleet as one data set.

use super::{Bench, TRACES, code};
use crate::support::root;
use holdup_fleet::definitions;
use holdup_testkit::needs;
use serde_json::Value;
use std::process::Command;

#[needs(pyarrow)]
#[test]
fn pyarrow_and_duckdb_read_all_files_as_one_table() {
    let bench = Bench::with_traces();
    assert_eq!(code(&bench.fleet("out", &["--per-file", "2", "-q"])), 0);
    let script = root().join("tests/program/fleet/read.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(bench.path("out/tables")).arg(root().join("docs/fleet.md"));
    let out = python.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    for table in definitions() {
        let mut names: Vec<&str> = table.columns.iter().map(|c| c.name).collect();
        names.extend(["date", "host"]);
        assert_eq!(found[table.name]["columns"], serde_json::json!(names), "{}", table.name);
        assert_eq!(found[table.name]["pyarrow"], found[table.name]["duckdb"], "{}", table.name);
    }
    assert_eq!(found["trace"]["duckdb"], TRACES.len());
    // Every row of every table belongs to a trace, and the leaves close.
    assert_eq!(found["strays"], 0);
    assert_eq!(found["worst_sum_pct"].as_f64().map(|x| x < 0.01), Some(true), "{found}");
    // Verdicts of a day; one mutex; groups, none of which is known; traces with a gain.
    let examples = found["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 4, "{found}");
    assert_eq!(examples[1], 1, "{found}");
    assert!(examples.iter().all(|rows| rows.as_u64() > Some(0)), "{found}");
    let manifest = bench.manifest("out");
    let mut verdicts: Vec<String> = (manifest.values())
        .map(|file| format!("{} {} {}", file["path"], file["verdict"], file["host"]))
        .collect();
    verdicts.sort();
    assert_eq!(found["verdicts"], serde_json::json!(verdicts));
}
