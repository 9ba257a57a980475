//! Facts add up to the tables of the verbs.

use super::{TRACES, export};
use crate::support::{recording, stdout};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The rows of a table.
pub(crate) fn rows(folder: &Path, table: &str) -> Vec<Value> {
    let path = folder.join(format!("{table}.ndjson"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or(0)
}

/// How many rows, and the sum of a column, by the values of others.
fn sums(rows: &[Value], by: &[&str], of: &str) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let key: Vec<String> = by.iter().map(|key| row[*key].to_string()).collect();
        let sum: &mut (u64, u64) = sums.entry(key.join(" ")).or_default();
        *sum = (sum.0 + 1, sum.1 + number(row, of));
    }
    sums
}

/// The same of a table of a verb, which has the number of rows in a column.
fn counted(rows: &[Value], by: &[&str], count: &str, of: &str) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in rows.iter().filter(|row| number(row, count) > 0) {
        let key: Vec<String> = by.iter().map(|key| row[*key].to_string()).collect();
        let sum: &mut (u64, u64) = sums.entry(key.join(" ")).or_default();
        *sum = (sum.0 + number(row, count), sum.1 + number(row, of));
    }
    sums
}

fn total(rows: &[Value], of: &str) -> u64 {
    rows.iter().map(|row| number(row, of)).sum()
}

/// The rows of a verb.
fn verb(scenario: &str, args: &[&str]) -> Vec<Value> {
    let trace = recording(scenario);
    let mut all = vec![args[0], "-j", trace.to_str().unwrap()];
    all.extend(&args[1..]);
    let report: Value = serde_json::from_str(&stdout(&all)).unwrap();
    report["rows"].as_array().unwrap().clone()
}

#[test]
fn facts_add_up_to_the_tables() {
    let mut facts = [0; 6];
    for scenario in TRACES {
        let folder = export(scenario, "ndjson", &[]);
        let table = |name: &str| rows(folder.path(), name);

        let runs = table("runs");
        let procs = verb(scenario, &["procs"]);
        assert!(!runs.is_empty(), "{scenario}");
        for of in ["combined_ns", "app_ns", "kernel_ns"] {
            assert_eq!(total(&runs, of), total(&procs, of), "{scenario}: {of}");
        }
        let mut by_thread = sums(&runs, &["tid"], "combined_ns");
        by_thread.values_mut().for_each(|sum| sum.0 = 0);
        by_thread.retain(|_, sum| sum.1 > 0);
        let mut expected = sums(&procs, &["tid"], "combined_ns");
        expected.values_mut().for_each(|sum| sum.0 = 0);
        expected.retain(|_, sum| sum.1 > 0);
        assert_eq!(by_thread, expected, "{scenario}: runs");

        let calls = table("syscalls");
        let by_call = verb(scenario, &["syscalls"]);
        let expected = counted(&by_call, &["name"], "count", "total_ns");
        assert_eq!(sums(&calls, &["name"], "duration_ns"), expected, "{scenario}: syscalls");
        for of in ["cpu_ns", "runnable_ns", "blocked_ns", "interrupted_ns"] {
            assert_eq!(total(&calls, of), total(&by_call, of), "{scenario}: {of} of system calls");
        }
        let failed = calls.iter().filter(|row| !row["errno"].is_null()).count() as u64;
        assert_eq!(failed, total(&by_call, "errors"), "{scenario}: errors");

        let waits = table("waits");
        let by_object = verb(scenario, &["waits"]);
        let expected = counted(&by_object, &["kind"], "waits", "wait_total_ns");
        assert_eq!(sums(&waits, &["kind"], "duration_ns"), expected, "{scenario}: waits");

        let lock_waits = table("lock_waits");
        let by_lock = verb(scenario, &["locks", "--by", "lock"]);
        assert_eq!(
            total(&lock_waits, "duration_ns"),
            total(&by_lock, "wait_total_ns"),
            "{scenario}: locks"
        );
        assert_eq!(total(&lock_waits, "spin_ns"), total(&by_lock, "spin_ns"), "{scenario}: spins");

        let irqs = table("irqs");
        let by_irq = verb(scenario, &["irqs"]);
        let expected = counted(&by_irq, &["kind", "name", "cpu"], "count", "total_ns");
        assert_eq!(sums(&irqs, &["kind", "name", "cpu"], "duration_ns"), expected, "{scenario}");

        let switches = table("switches");
        let by_cpu = counted(&verb(scenario, &["cpus"]), &["cpu"], "switches", "none");
        assert_eq!(sums(&switches, &["cpu"], "none"), by_cpu, "{scenario}: switches");

        let here = [&runs, &calls, &waits, &lock_waits, &irqs, &switches].map(Vec::len);
        facts.iter_mut().zip(here).for_each(|(all, n)| *all += n);
    }
    assert!(facts.iter().all(|&n| n > 0), "a table without rows in all traces: {facts:?}");
}

#[test]
fn times_lie_in_the_trace_and_count_from_its_start() {
    let folder = export("thr_mutex_perfz_c8", "ndjson", &[]);
    let trace = &rows(folder.path(), "trace")[0];
    let (start, end) = (number(trace, "start_ns"), number(trace, "end_ns"));
    for table in ["runs", "syscalls", "waits", "lock_waits"] {
        for row in rows(folder.path(), table) {
            let (from, to) = (number(&row, "start_ns"), number(&row, "end_ns"));
            assert!(start <= from && from <= to && to <= end, "{table}: {row}");
            assert_eq!(number(&row, "at_ns"), from - start, "{table}: {row}");
            assert_eq!(number(&row, "duration_ns"), to - from, "{table}: {row}");
        }
    }
}

#[test]
fn runs_of_one_cpu_do_not_overlap() {
    for scenario in TRACES {
        let folder = export(scenario, "ndjson", &["--tables", "runs"]);
        let mut runs: Vec<(u64, u64, u64)> = rows(folder.path(), "runs")
            .iter()
            .map(|r| (number(r, "cpu"), number(r, "start_ns"), number(r, "end_ns")))
            .collect();
        runs.sort_unstable();
        for pair in runs.windows(2).filter(|p| p[0].0 == p[1].0) {
            assert!(pair[0].2 <= pair[1].1, "{scenario}: {pair:?}");
        }
    }
}

#[test]
fn a_part_of_a_trace_has_its_facts_alone() {
    let more = ["--time", "20%,60%", "--comm", "mutex-*"];
    let folder = export("thr_mutex_perfz_c8", "ndjson", &more);
    let args = [&["procs"], &more[..]].concat();
    let expected = total(&verb("thr_mutex_perfz_c8", &args), "combined_ns");
    assert_eq!(total(&rows(folder.path(), "runs"), "combined_ns"), expected);
    assert!(expected > 0, "the selection fits some threads");
    let args = [&["syscalls"], &more[..]].concat();
    let expected = total(&verb("thr_mutex_perfz_c8", &args), "count");
    assert_eq!(rows(folder.path(), "syscalls").len() as u64, expected);
}
