//! `holdup latency`: every time is in one row, and its percentiles lie where they must.

use crate::support::{recording, run, stdout};
use serde_json::Value;
use std::collections::BTreeMap;

fn rows(args: &[&str]) -> Vec<Value> {
    let answer: Value = serde_json::from_str(&stdout(args)).unwrap();
    answer["rows"].as_array().unwrap().clone()
}

fn n(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn times_add_up_to_those_of_the_threads() {
    for scenario in ["imb_server_c4", "native_pipe_pair", "thr_rows_c2", "order_stages_c4"] {
        let trace = recording(scenario);
        let trace = trace.to_str().unwrap();
        let mut sums: BTreeMap<(u64, String), u64> = BTreeMap::new();
        for row in rows(&["latency", "--by", "thread", "-j", "-n", "0", trace]) {
            let kind = row["kind"].as_str().unwrap();
            let what = if matches!(kind, "running" | "ready") { kind } else { "asleep" };
            *sums.entry((n(&row, "tid"), what.to_owned())).or_default() += n(&row, "total_ns");
        }
        let procs = rows(&["procs", "-j", "-n", "0", trace]);
        let mut seen = 0;
        for row in procs.iter().filter(|row| row["kthread"] == false) {
            let of = |what: &str| sums.get(&(n(row, "tid"), what.to_owned())).copied();
            let Some(running) = of("running") else { continue };
            let interrupted = n(row, "interrupted_ns");
            assert_eq!(running, n(row, "combined_ns") + interrupted, "{scenario}: {row}");
            seen += 1;
        }
        assert!(seen > 1, "{scenario}");
        // Sleeps that were not over at the end of the trace are no times yet.
        let asleep: u64 = procs.iter().map(|row| n(row, "blocked_ns")).sum();
        let known: u64 = sums.iter().filter(|((_, what), _)| what == "asleep").map(|s| s.1).sum();
        assert!(known > 0 && known <= asleep, "{scenario}: {known} of {asleep}");
    }
}

#[test]
fn percentiles_are_ordered_and_parts_are_of_the_whole() {
    let trace = recording("imb_server_c4");
    for by in ["command", "process", "thread"] {
        let rows = rows(&["latency", "--by", by, "-j", "-n", "0", trace.to_str().unwrap()]);
        let mut parts: BTreeMap<String, f64> = BTreeMap::new();
        for row in &rows {
            let times = ["p50_ns", "p90_ns", "p99_ns", "max_ns"].map(|key| n(row, key));
            assert!(times.is_sorted(), "{row}");
            assert!(n(row, "max_ns") <= n(row, "total_ns") && n(row, "count") > 0, "{row}");
            let who = format!("{} {} {}", row["comm"], row["pid"], row["tid"]);
            *parts.entry(who).or_default() += row["pct"].as_f64().unwrap();
        }
        assert!(parts.values().all(|sum| (sum - 100.0).abs() < 0.01), "{by}: {parts:?}");
        let totals: Vec<u64> = rows.iter().map(|row| n(row, "total_ns")).collect();
        assert!(totals.is_sorted_by(|a, b| a >= b), "{by}: what takes most time comes first");
    }
}

#[test]
fn units_of_work_are_from_one_event_of_a_thread_to_its_next() {
    let trace = recording("imb_server_c4");
    let trace = trace.to_str().unwrap();
    let of = |unit: &str| {
        let args = ["latency", "--by", "thread", "--comm", "client-1", "--unit", unit];
        rows(&[&args[..], &["-j", "-n", "0", trace]].concat())
    };
    let calls = rows(&["syscalls", "--by", "thread", "--comm", "client-1", "-j", "-n", "0", trace]);
    let semop = calls.iter().find(|row| row["name"] == "semtimedop").unwrap();
    for unit in ["syscall:semtimedop", "event:raw_syscalls:sys_enter"] {
        let rows = of(unit);
        let row = rows.iter().find(|row| row["kind"] == "unit").unwrap();
        let others = || rows.iter().filter(|row| row["kind"] != "unit");
        // The mean of units is what each takes.
        assert!(n(row, "max_ns") <= n(row, "total_ns") && n(row, "count") > 100, "{row}");
        assert_eq!(n(row, "per_unit_ns"), n(row, "total_ns") / n(row, "count"));
        for other in others() {
            assert_eq!(n(other, "per_unit_ns"), n(other, "total_ns") / n(row, "count"), "{other}");
        }
        if unit.starts_with("syscall:") {
            // The first ends none, and one that was under way at the end of the trace has no row.
            let (units, calls) = (n(row, "count"), n(semop, "count"));
            assert!(units == calls || units + 1 == calls, "{units} {calls}");
        }
    }
    assert!(rows(&["latency", "-j", trace]).iter().all(|row| row["per_unit_ns"].is_null()));
}

#[test]
fn a_unit_that_is_not_in_the_trace_is_refused_with_what_is() {
    let trace = recording("imb_server_c4");
    for (unit, says) in [
        ("syscall:nosuch", "which holds "),
        ("event:a:b", "which holds "),
        ("7", "write syscall:NAME or event:SYSTEM:NAME"),
    ] {
        let out = run(&["latency", "--unit", unit, trace.to_str().unwrap()]);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains(says) && said.starts_with("holdup: --unit: "), "{said}");
    }
}

#[test]
fn a_service_waits_for_what_the_recording_was_made_to_show() {
    let trace = recording("imb_server_c4");
    let args = ["latency", "--comm", "client-*", "-j", trace.to_str().unwrap()];
    let rows = rows(&args);
    assert_eq!(rows[0]["kind"], "semop", "clients wait for the server: {}", rows[0]);
    assert!(rows.iter().all(|row| row["comm"].as_str().unwrap().starts_with("client-")));
}
