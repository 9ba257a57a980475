//! Services and containers: their names, what adds up by them, and the choice of one.

use crate::support::{fixture, run, stdout};
use serde_json::Value;
use std::collections::BTreeMap;

fn trace() -> String {
    fixture("groups_c2/perf.data").to_str().unwrap().to_owned()
}

fn rows(args: &[&str]) -> Vec<Value> {
    let text = stdout(&[args, &["-j", &trace()]].concat());
    let value: Value = serde_json::from_str(&text).unwrap();
    value["rows"].as_array().unwrap_or_else(|| panic!("{text}")).clone()
}

fn int(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// CPU time, periods out of quota and time out of quota of each group, as the kernel counted them.
fn truth() -> BTreeMap<String, [u64; 3]> {
    let text = std::fs::read_to_string(fixture("groups_c2/truth.txt")).unwrap();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| words[i].parse().unwrap();
        (words[0].to_owned(), [number(1), number(2), number(3)])
    };
    text.lines().map(line).collect()
}

#[test]
fn the_ledger_by_group_is_the_machine_and_the_kernels_own_account() {
    let ledger = rows(&["ledger", "--by", "cgroup"]);
    let text = stdout(&["ledger", "--by", "cgroup", "-j", &trace()]);
    let whole: Value = serde_json::from_str(&text).unwrap();
    let capacity = int(&whole["trace"], "cpus") * int(&whole["trace"], "wall_ns");
    assert_eq!(ledger.iter().map(|row| int(row, "used_ns")).sum::<u64>(), capacity);
    for (name, [usage_us, periods, _]) in truth() {
        let row = ledger.iter().find(|row| row["cgroup"] == name.as_str()).unwrap();
        let used = int(row, "used_ns") as f64 / 1e3;
        // The recorder begins before it starts the command, and cpu.stat is read around both.
        assert!((0.95..1.1).contains(&(used / usage_us as f64)), "{name}: {used} {usage_us}");
        assert_eq!(int(row, "throttled_ns") > 0, periods > 0, "{name}");
    }
    let names: Vec<&str> = ledger.iter().filter_map(|row| row["cgroup"].as_str()).collect();
    assert!(names.contains(&"docker:3f2a9c51d07b"), "{names:?}");
}

#[test]
fn tables_by_group_add_up_to_those_by_thread() {
    for (verb, key) in [("procs", "combined_ns"), ("switches", "runtime_ns")] {
        let sum = |by| rows(&[verb, "--by", by]).iter().map(|row| int(row, key)).sum::<u64>();
        assert_eq!(sum("cgroup"), sum("thread"), "{verb}");
    }
    let asleep = |by| -> u64 {
        rows(&["waits", "--by", by]).iter().map(|row| int(row, "wait_total_ns")).sum()
    };
    assert_eq!(asleep("cgroup"), asleep("thread"));
    let samples = rows(&["profile", "--by", "cgroup"]);
    assert!(samples.iter().any(|row| row["cgroup"] == "web.service"), "{samples:?}");
}

/// perf reads no cpu.stat: what its switches show is the least that it can have been.
#[test]
fn time_off_by_a_quota_is_a_lower_bound_where_no_cpu_stat_was_read() {
    let ledger = rows(&["ledger", "--by", "cgroup"]);
    let of = |name: &str| ledger.iter().find(|row| row["cgroup"] == name).unwrap();
    let [web, batch, other] = ["web.service", "batch.service", "neighbour.service"].map(of);
    assert!(int(web, "ready_ns") > int(web, "throttled_ns"), "{web}");
    assert_eq!(web["throttled_at_least"], true);
    assert_eq!(batch["throttled_at_least"], false, "most of its waiting is known as the quota's");
    assert!(other["throttled_at_least"].is_null(), "{other}");
    let text = stdout(&["ledger", "--by", "cgroup", &trace()]);
    assert!(text.contains("web.service: the throttled time is a minimum"), "{text}");
}

#[test]
fn an_export_has_the_groups_and_threads_have_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    stdout(&["export", &trace(), "--to", to, "--format", "ndjson", "-q"]);
    let table = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.path().join(format!("{name}.ndjson"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let used = |rows: &[Value]| -> BTreeMap<String, u64> {
        let named = rows.iter().filter(|row| row["cgroup"].is_string());
        named.map(|row| (row["cgroup"].as_str().unwrap().to_owned(), int(row, "used_ns"))).collect()
    };
    assert_eq!(used(&table("by_cgroup")), used(&rows(&["ledger", "--by", "cgroup"])));
    for name in ["by_thread", "by_thread_delay", "by_thread_object"] {
        let rows = table(name);
        let group = |row: &Value| row["cgroup"].as_str() == Some("web.service");
        assert!(rows.iter().any(group), "{name}: {rows:?}");
    }
}

#[test]
fn a_fleet_ranks_services_by_what_they_were_denied() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let without = fixture("native_quota/perf.data");
    let without = without.to_str().unwrap();
    let text = stdout(&["fleet", &trace(), without, "--to", to, "--format", "json", "-n", "0"]);
    let fleet: Value = serde_json::from_str(&text).unwrap();
    let services = fleet["services"].as_array().unwrap();
    let ledger = rows(&["ledger", "--by", "cgroup"]);
    let denied: Vec<u64> = services.iter().map(|row| int(row, "denied_ns")).collect();
    assert!(denied.is_sorted_by(|a, b| a >= b) && denied[0] > 0, "{denied:?}");
    let of = |name: &str| services.iter().find(|row| row["name"] == name).unwrap();
    for name in ["web.service", "batch.service"] {
        let own = ledger.iter().find(|row| row["cgroup"] == name).unwrap();
        let (row, both) = (of(name), int(own, "ready_ns") + int(own, "throttled_ns"));
        assert_eq!(int(row, "denied_ns"), both, "{name}");
        assert_eq!(int(row, "used_ns"), int(own, "used_ns"), "{name}");
        assert_eq!((int(row, "traces"), int(row, "groups")), (1, 1), "{name}");
    }
    // The id of a container is another one on the next machine.
    assert!(services.iter().any(|row| row["name"] == "docker:*"), "{services:?}");
}

#[test]
fn a_page_has_a_table_of_groups_where_there_are_several() {
    let page = |trace: &str| stdout(&["report", trace]);
    let of_groups = "{\"name\":\"cgroups\",";
    assert!(page(&trace()).contains(of_groups));
    let without = fixture("native_quota/perf.data");
    assert!(!page(without.to_str().unwrap()).contains(of_groups));
}

#[test]
fn text_of_each_table_by_group() {
    let mut all = String::new();
    for verb in ["ledger", "procs", "switches", "profile"] {
        let text = stdout(&[verb, "--by", "cgroup", "-q", &trace()]);
        all += &format!("## {verb}\n{text}\n");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn one_group_is_chosen_by_any_of_its_names() {
    let threads = |choice: &str| -> Vec<u64> {
        rows(&["procs", "--cgroup", choice]).iter().map(|row| int(row, "tid")).collect()
    };
    let of_web = threads("web.service");
    assert!(!of_web.is_empty());
    assert_eq!(threads("web"), of_web);
    assert_eq!(threads("/system.slice/web.service"), of_web);
    assert_eq!(threads("docker:3f2a9c51d07b"), threads("3f2a9c"));
    let events = stdout(&["events", "--cgroup", "web", "-j", &trace()]);
    assert!(events.lines().count() > of_web.len(), "{events}");
}

#[test]
fn a_group_that_is_not_there_is_refused_with_those_that_are() {
    let said = |args: &[&str]| {
        let out = run(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    let trace = trace();
    let slip = said(&["procs", "--cgroup", "web.servic", &trace]);
    assert!(slip.contains("nearest by name: web.service"), "{slip}");
    assert!(slip.contains("busiest groups are batch.service"), "{slip}");
    let without = fixture("native_quota/perf.data");
    let none = said(&["procs", "--cgroup", "web", without.to_str().unwrap()]);
    assert!(none.contains("does not say in which control groups its threads are"), "{none}");
    let of_leaves = said(&["ledger", "--cgroup", "web", &trace]);
    assert!(of_leaves.contains("holdup ledger --by cgroup"), "{of_leaves}");
}
