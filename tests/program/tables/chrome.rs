//! The trace for the Perfetto UI: sorted, slices of one track nest, they add up to the tables, and
//! Perfetto reads them all. LAMI's form: rows fit the classes of their tables.

use super::sums::rows;
use super::{TRACES, export, name};
use crate::support::{recording, root, stdout};
use holdup_testkit::needs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The trace of a scenario as Chrome's JSON.
fn chrome(scenario: &str) -> (TempDir, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let trace = recording(scenario);
    stdout(&["export", name(&trace), "--to", name(&file), "-q"]);
    let json = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    (folder, json)
}

/// Nanoseconds of a number of microseconds with three decimals.
fn ns(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

struct Slice {
    start: u64,
    end: u64,
    track: (u64, u64),
    sort: String,
}

fn slices(json: &Value) -> Vec<Slice> {
    let events = json["traceEvents"].as_array().unwrap();
    let complete = events.iter().filter(|e| e["ph"] == "X");
    complete
        .map(|e| Slice {
            start: ns(&e["ts"]),
            end: ns(&e["ts"]) + ns(&e["dur"]),
            track: (e["pid"].as_u64().unwrap(), e["tid"].as_u64().unwrap()),
            sort: e["cat"].as_str().unwrap().to_owned(),
        })
        .collect()
}

#[test]
fn slices_are_sorted_nest_and_add_up_to_the_tables() {
    for scenario in TRACES {
        let (_folder, json) = chrome(scenario);
        let slices = slices(&json);
        assert!(slices.windows(2).all(|s| s[0].start <= s[1].start), "{scenario}: not sorted");
        let mut open: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
        for s in &slices {
            let stack = open.entry(s.track).or_default();
            while stack.last().is_some_and(|&end| end <= s.start) {
                stack.pop();
            }
            let encloses = stack.last().is_none_or(|&end| s.end <= end);
            assert!(encloses, "{scenario}: {} {:?} {}..{}", s.sort, s.track, s.start, s.end);
            stack.push(s.end);
        }
        let folder = export(scenario, "ndjson", &[]);
        let sum = |table: &str| -> u64 {
            let rows = rows(folder.path(), table);
            rows.iter().map(|row| row["duration_ns"].as_u64().unwrap()).sum()
        };
        let of = |sort: &str| -> u64 {
            slices.iter().filter(|s| s.sort == sort).map(|s| s.end - s.start).sum()
        };
        // Each run stands on the track of its CPU and on that of its thread.
        assert_eq!(of("run"), 2 * sum("runs"), "{scenario}");
        for (sort, table) in [("syscall", "syscalls"), ("wait", "waits"), ("irq", "irqs")] {
            assert_eq!(of(sort), sum(table), "{scenario}: {table}");
        }
        assert_eq!(of("lock"), sum("lock_waits"), "{scenario}");
        // The critical path covers one thread's life.
        let args = ["path", "-j", name(&recording(scenario))].map(str::to_owned);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let path: Value = serde_json::from_str(&stdout(&args)).unwrap();
        let total: u64 =
            path["rows"].as_array().unwrap().iter().map(|r| r["total_ns"].as_u64().unwrap()).sum();
        assert_eq!(of("path"), total, "{scenario}: path");
    }
}

/// Perfetto's own processor reads every slice.
fn perfetto_counts(file: &Path) -> Value {
    let script = root().join("tests/program/tables/perfetto.py");
    let out = Command::new("python3").arg(script).arg(file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[needs(trace_processor, perfetto_python)]
#[test]
fn perfetto_shows_every_slice() {
    let (folder, json) = chrome("thr_mutex_perfz_c8");
    let found = perfetto_counts(&folder.path().join("trace.json"));
    let slices = slices(&json);
    let mut expected: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for s in &slices {
        let sum = expected.entry(&s.sort).or_default();
        *sum = (sum.0 + 1, sum.1 + (s.end - s.start));
    }
    for (sort, (count, ns)) in expected {
        assert_eq!(found["slices"][sort][0], count, "{sort}");
        assert_eq!(found["slices"][sort][1], ns, "{sort}");
    }
    assert_eq!(found["errors"], serde_json::json!({}));
    let names: Vec<&str> =
        found["processes"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    assert!(
        names.contains(&"CPUs") && names.iter().any(|n| n.starts_with("holdup: critical path"))
    );
}

#[test]
fn lami_rows_fit_the_classes_of_their_tables() {
    let folder = export("thr_mutex_perfz_c8", "lami", &[]);
    let read = |file: &str| -> Value {
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (metadata, results) = (read("metadata.json"), read("results.json"));
    assert_eq!(metadata["mi-version"]["major"], 1);
    let classes = metadata["table-classes"].as_object().unwrap();
    // All that lttng-analyses' mi.py knows and these tables use.
    let known = ["string", "number", "duration", "timestamp", "ratio", "bool"];
    let mut cells = 0;
    let tables = results["results"].as_array().unwrap();
    assert_eq!(tables.len(), classes.len());
    for table in tables {
        let class = &classes[table["class"].as_str().unwrap()];
        let columns = class["column-descriptions"].as_array().unwrap();
        assert!(class["title"].is_string());
        assert_eq!(table["time-range"]["class"], "time-range");
        assert_eq!(table["time-range"]["begin"]["class"], "timestamp");
        for row in table["data"].as_array().unwrap() {
            let row = row.as_array().unwrap();
            assert_eq!(row.len(), columns.len());
            for (cell, column) in row.iter().zip(columns) {
                assert!(known.contains(&column["class"].as_str().unwrap()));
                if cell.is_null() {
                    continue;
                }
                assert_eq!(cell["class"], column["class"], "{column}");
                let value = &cell["value"];
                let fits = match column["class"].as_str().unwrap() {
                    "string" => value.is_string(),
                    "bool" => value.is_boolean(),
                    _ => value.is_number(),
                };
                assert!(fits, "{column}: {cell}");
                cells += 1;
            }
        }
    }
    assert!(cells > 1000);
}
