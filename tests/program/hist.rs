//! `waits --hist` and `locks --hist`: the histograms are of the spans that the tables sum up.

use crate::support::{holdup, recording, stdout};
use holdup_testkit::needs;
use serde_json::Value;
use std::collections::BTreeMap;

fn rows(args: &[&str]) -> Vec<Value> {
    let text = stdout(&[args, &["--format", "json"]].concat());
    let value: Value = serde_json::from_str(&text).unwrap();
    value["rows"].as_array().unwrap_or_else(|| panic!("{text}")).clone()
}

fn int(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// Counts, and the bounds of the longest spans, by what the spans are and of which object.
fn sums(hist: &[Value]) -> BTreeMap<(String, String), (u64, u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in hist {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let sum = sums.entry((text("spans"), text("object"))).or_insert((0, 0, 0));
        sum.0 += int(row, "count");
        if int(row, "count") > 0 {
            (sum.1, sum.2) = (int(row, "from_ns"), int(row, "to_ns"));
        }
    }
    sums
}

#[test]
fn waits_of_each_object_are_all_in_its_histogram() {
    for name in ["thr_mutex_perfz_c8", "imb_server_c4", "ser_flock_c4"] {
        let trace = recording(name);
        let trace = trace.to_str().unwrap();
        let hist = sums(&rows(&["waits", "--hist", trace]));
        let table = rows(&["waits", trace]);
        let waited: Vec<_> = table.iter().filter(|row| int(row, "waits") > 0).collect();
        assert!(!waited.is_empty(), "{name}");
        let mut held = BTreeMap::new();
        for row in &waited {
            let text = |key: &str| row[key].as_str().unwrap();
            let name = format!("{} of {}", text("object"), text("comm"));
            let sum = held.entry(("wait".to_owned(), name)).or_insert((0, 0));
            *sum = (sum.0 + int(row, "waits"), sum.1.max(int(row, "wait_max_ns")));
        }
        assert_eq!(hist.len(), held.len(), "{name}");
        for (object, (count, longest)) in held {
            let (counted, from, to) = hist[&object];
            assert_eq!(counted, count, "{name} {object:?}");
            assert!((from..to).contains(&longest), "{name} {object:?}: {longest} in {from}..{to}");
        }
    }
}

#[test]
fn kinds_add_up_and_few_are_drawn_in_text() {
    let trace = recording("thr_mutex_perfz_c8");
    let trace = trace.to_str().unwrap();
    let all = |by: &str| -> u64 {
        rows(&["waits", "--hist", "--by", by, trace]).iter().map(|row| int(row, "count")).sum()
    };
    assert_eq!(all("object"), all("kind"));
    let text = stdout(&["waits", "--hist", "-n", "1", trace]);
    insta::assert_snapshot!("waits_hist", text.split_once("\n\n").unwrap().1);
    let out = holdup().args(["waits", "--hist", "--by", "thread", trace]).output().unwrap();
    let message = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(message.contains("--by object or --by kind"), "{message}");
}

#[needs(corpus)]
#[test]
fn holds_and_waits_of_kernel_locks_are_all_in_their_histograms() {
    let trace = holdup_testkit::corpus().join("vm/lockstat612/ls_kern_mmap_c4.trace.dat.zst");
    let trace = trace.to_str().unwrap();
    let hist = sums(&rows(&["locks", "--hist", trace]));
    let table = rows(&["locks", trace]);
    let mut holds = 0;
    for row in &table {
        let name = row["name"].as_str().map(str::to_owned);
        let address = row["address"].as_u64().map(|at| format!("{at:#x}"));
        let object = [name, address].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let waits = int(row, "contended") - int(row, "open");
        if waits > 0 {
            let (count, from, to) = hist[&("wait".to_owned(), object.clone())];
            assert_eq!(count, waits, "{object}");
            assert!((from..to).contains(&int(row, "wait_max_ns")), "{object}");
        }
        let Some(longest) = row["hold_max_ns"].as_u64() else { continue };
        let (count, from, to) = hist[&("hold".to_owned(), object.clone())];
        assert!((from..to).contains(&longest), "{object}: {longest} in {from}..{to}");
        holds += count;
    }
    assert!(holds > 1_000, "{holds}");
}
