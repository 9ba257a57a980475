//! `holdup predict` from outside: the published table and figures, what a trace says, and a message
//! for everything that can be wrong.

use crate::support::{root, run, stdout};
use serde_json::Value;

#[track_caller]
fn json(args: &[&str]) -> Value {
    let text = stdout(&[&["predict", "--format", "json"], args].concat());
    serde_json::from_str(&text).unwrap()
}

/// The row of `object` (the first if empty) for `cpus` CPUs.
#[track_caller]
fn row<'a>(found: &'a Value, object: &str, cpus: u32) -> &'a Value {
    let rows = found["rows"].as_array().unwrap().iter();
    let mut rows = rows.filter(|r| object.is_empty() || r["object"] == object);
    rows.find(|r| r["cpus"] == cpus).unwrap_or_else(|| panic!("no row for {cpus}: {found:#}"))
}

const TABLE_1: &str = "fixtures/published/bier-vernon-table-1.toml";

/// Bier and Vernon's table 1: case, CPUs, measured demand in %, power measured and predicted.
const PRINTED: [(&str, u32, f64, f64, f64); 12] = [
    ("compile-12-c2", 2, 26.64, 1.78, 1.87),
    ("compile-12-c4", 4, 24.40, 3.03, 3.21),
    ("exec-20-c2", 2, 0.21, 2.0, 2.0),
    ("exec-20-c4", 4, 0.16, 4.0, 4.0),
    ("exec-15-c2", 2, 1.10, 2.0, 2.0),
    ("exec-15-c4", 4, 3.76, 3.93, 3.98),
    ("mixed-30-c2", 2, 5.59, 1.95, 1.99),
    ("mixed-30-c4", 4, 6.65, 3.81, 3.94),
    ("compile-30-c2", 2, 44.12, 1.54, 1.67),
    ("compile-30-c4", 4, 38.69, 2.33, 2.44),
    ("idle-c2", 2, 0.31, 2.0, 2.0),
    ("idle-c4", 4, 0.12, 4.0, 4.0),
];

#[test]
fn table_1_as_published() {
    for (case, cpus, demand, measured, predicted) in PRINTED {
        let found = json(&["--metrics", TABLE_1, "--case", case]);
        let row = row(&found, "operating system semaphore", cpus);
        let near = |key: &str, printed: f64, within: f64| {
            let ours = row[key].as_f64().unwrap();
            assert!((ours - printed).abs() <= within, "{case}: {key} {ours} is not {printed}");
        };
        near("demand", demand / 100.0, 0.001);
        near("measured_effective_cpus", measured, 0.02);
        near("effective_cpus", predicted, 0.02);
        assert_eq!(row["basis"], "measured");
        assert_eq!(found["rows"].as_array().unwrap().len(), 4, "its CPUs times 1, 2, 4 and 8");
    }
}

#[test]
fn figures_2_2_and_2_3_as_published() {
    for (demand, power) in [("4%", 15.3), ("0.05", 14.7), ("6 %", 13.9)] {
        let found = json(&["--demand", demand, "--cpus", "16"]);
        let ours = row(&found, "lock", 16)["effective_cpus"].as_f64().unwrap();
        assert!((ours - power).abs() < 0.05, "{demand}: {ours} is not {power}");
    }
    let found = json(&["--demand", "1%", "--cpus", "64,400"]);
    let here = row(&found, "lock", 64);
    assert_eq!(here["saturation_cpus"], 100.0);
    assert!(here["degradation_pct"].as_f64().unwrap() < 3.0, "{here}");
    let beyond = row(&found, "lock", 400)["effective_cpus"].as_f64().unwrap();
    assert!((beyond - 100.0).abs() < 1e-3, "{beyond}");
}

/// Threads to spare keep CPUs at work that would wait; a lock of four lets four times as many in.
#[test]
fn threads_and_servers_change_what_a_demand_costs() {
    let working = |args: &[&str]| {
        let found = json(&[&["--demand", "20%", "--cpus", "8"], args].concat());
        row(&found, "lock", 8)["effective_cpus"].as_f64().unwrap()
    };
    let spins = working(&[]);
    assert!((working(&["--threads", "8"]) - spins).abs() < 1e-6, "a CPU for each");
    assert!(working(&["--threads", "64"]) > spins + 0.1);
    assert!((working(&["--threads", "64"]) - 5.0).abs() < 1e-3, "1 / D, and no more");
    assert!(working(&["--servers", "4"]) > 7.9);
}

const MUTEX: &str = "fixtures/thr_mutex_perfz_c8/perf.data";

/// Of a trace: rows for its own CPUs carry the measurement, the others the model's answer alone.
#[test]
fn a_trace_says_what_was_measured_and_what_follows() {
    let found = json(&["--cpus", "2,16", MUTEX]);
    let rows = found["rows"].as_array().unwrap();
    let mutex = rows.iter().find(|r| r["object"].as_str().unwrap().starts_with("mutex")).unwrap();
    let object = mutex["object"].as_str().unwrap();
    let (two, eight, more) =
        (row(&found, object, 2), row(&found, object, 8), row(&found, object, 16));
    assert_eq!(two["measured_effective_cpus"], Value::Null);
    assert_eq!(more["measured_effective_cpus"], Value::Null);
    let measured = eight["measured_effective_cpus"].as_f64().unwrap();
    assert!((3.0..5.0).contains(&measured), "half of the CPUs wait: {eight}");
    assert_eq!((&eight["basis"], &eight["threads"]), (&"inferred".into(), &8.into()));
    assert_eq!(more["threads"], 16, "a thread for each CPU, as on eight");
    for row in [two, eight, more] {
        let sum = row["effective_cpus"].as_f64().unwrap() + row["lost_cpus"].as_f64().unwrap();
        assert!((sum - row["cpus"].as_f64().unwrap()).abs() < 1e-5, "{row}");
        let full = row["saturation_cpus"].as_f64().unwrap();
        assert!(row["effective_cpus"].as_f64().unwrap() <= full + 1e-5, "{row}");
    }
    let notes = found["notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().contains("2 to 5 % optimistic"), "{notes:?}");
    // Where no hold was recorded, or nothing was lost, the row says so.
    let known = ["measured", "inferred", "lost-cpus"];
    for row in rows {
        match row["basis"].as_str() {
            Some(basis) => assert!(known.contains(&basis) && row["demand"].is_number(), "{row}"),
            None => assert!(row["demand"].is_null() && row["saturation_cpus"].is_null(), "{row}"),
        }
    }
}

/// Two programs with a lock each: the threads of the one are not held up by the lock of the other,
/// so that together they use more CPUs than any demand common to all lets them.
#[test]
fn threads_of_unlike_habits_have_a_demand_each() {
    let found = json(&["--cpus", "64", "fixtures/models/two_pools_c8/perf.data"]);
    let notes = found["notes"].as_array().unwrap().iter().map(|n| n.as_str().unwrap());
    let kinds: Vec<&str> = notes
        .filter_map(|n| n.split_once("a demand for each kind of thread: "))
        .map(|n| n.1)
        .collect();
    assert_eq!(kinds, ["3 mutex- at 0.8 %, 3 mutex- at 15.6 %"]);
    let all = row(&found, "all", 64);
    assert_eq!(row(&found, "all", 8)["threads"], 6);
    assert_eq!(all["threads"], 48);
    let working = all["effective_cpus"].as_f64().unwrap();
    // 24 threads that hardly meet, and what the full lock of the others lets pass.
    let full = found["rows"].as_array().unwrap().iter();
    let full = full.filter(|r| r["object"].as_str().unwrap().starts_with("mutex 0x7f"));
    let each: Vec<f64> =
        full.filter(|r| r["cpus"] == 64).map(|r| r["effective_cpus"].as_f64().unwrap()).collect();
    assert_eq!(each.len(), 2);
    assert!((working - each.iter().sum::<f64>()).abs() < 0.5, "{working} {each:?}");
    assert!(working > all["saturation_cpus"].as_f64().unwrap() * 1.5, "{all}");
}

/// A trace without a lock that anybody waits for has no rows, and no curve.
#[test]
fn no_lock_no_rows() {
    let trace = "fixtures/host_healthy_n1_proc/perf.data";
    let found = json(&[trace]);
    assert_eq!(found["rows"], Value::Array(Vec::new()));
    assert!(stdout(&["predict", trace]).contains("none"));
}

#[test]
fn a_demand_in_every_form() {
    let of = |more: &[&str]| {
        stdout(&[&["predict", "--demand", "6%", "--cpus", "1,4,16,32"], more].concat())
    };
    insta::assert_snapshot!("predict_text", of(&[]));
    insta::assert_snapshot!("predict_markdown", of(&["--format", "md"]));
    insta::assert_snapshot!("predict_csv", of(&["--format", "csv"]));
    assert_eq!(of(&["--color", "never"]), of(&[]));
    assert!(of(&["--color", "always"]).contains("\u{1b}["));
}

#[test]
fn the_curve_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curve.svg");
    let plot = path.to_str().unwrap();
    let case = ["--metrics", TABLE_1, "--case", "compile-12-c4"];
    stdout(&[&["predict"], &case[..], &["--cpus", "4,16", "--plot", plot]].concat());
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("prefers-color-scheme: dark"));
    assert!(svg.contains("16 CPUs: 4.08 working, predicted"), "{svg}");
    assert!(svg.contains("4 CPUs: 3.03 working, measured"), "{svg}");
    let out = run(&["predict", "fixtures/host_healthy_n1_proc/perf.data", "--plot", plot]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("nothing to draw"));
}

#[test]
fn mistakes_have_a_message_each() {
    let wrong = |args: &[&str], code: i32, says: &str| {
        let out = run(&[&["predict"], args].concat());
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    };
    for demand in ["x", "", "-1%", "101%", "1.5", "nan", "%"] {
        wrong(&[&format!("--demand={demand}")], 2, "write 6% or 0.06");
    }
    for cpus in ["0", "x", "1,,2", "8-4-2", "", "9000", "5-"] {
        wrong(&["--demand", "5%", &format!("--cpus={cpus}")], 2, "write 2,4,8 or 1-16");
    }
    wrong(&["--demand", "5%", "--cpus", "8-4"], 2, "write 2,4,8 or 1-16");
    wrong(&["--demand", "5%", MUTEX], 2, "cannot be used with");
    wrong(&["--servers", "2", MUTEX], 2, "cannot be used with");
    wrong(&["--servers", "2"], 2, "--demand");
    wrong(&["--metrics", TABLE_1], 2, "compile-12-c2");
    wrong(&["--metrics", "fixtures/published/aix-case-1.toml"], 2, "semaphores");
    wrong(&["--metrics", "missing.toml"], 2, "missing.toml");
    wrong(&["missing.data"], 3, "missing.data");
    wrong(&["--demand", "5%", "--sort", "moon"], 2, "unknown sort key");
}

/// A lock that holds and waits for more time than there is has no demand.
#[test]
fn figures_that_contradict_each_other_predict_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    let lock = "name = \"l\", requests_per_s = 10000, hold_us = 150, wait_us = 100";
    std::fs::write(&path, format!("cpus = 2\nsemaphores = [{{ {lock} }}]\n")).unwrap();
    let found = json(&["--metrics", path.to_str().unwrap(), "--cpus", "4"]);
    assert_eq!(row(&found, "l", 4)["effective_cpus"], Value::Null);
    assert_eq!(row(&found, "l", 2)["measured_effective_cpus"], 1.0);
    assert!(found["notes"][1].as_str().unwrap().contains("contradict"), "{found}");
}

/// Several locks: each alone, and all in one network, which lose no less than the worst of them.
#[test]
fn several_locks_are_one_network() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.toml");
    let lock = |name: &str, hold: u32| {
        format!("{{ name = \"{name}\", requests_per_s = 1000, hold_us = {hold}, wait_us = 20 }}")
    };
    let figures = format!("cpus = 4\nsemaphores = [{}, {}]\n", lock("a", 200), lock("b", 300));
    std::fs::write(&path, figures).unwrap();
    let found = json(&["--metrics", path.to_str().unwrap(), "--cpus", "4,32"]);
    assert_eq!(found["rows"][0]["object"], "all");
    let working = |object| row(&found, object, 32)["effective_cpus"].as_f64().unwrap();
    assert!(working("all") <= working("b").min(working("a")), "{found:#}");
    // Both are there in the traced row: 2000 acquisitions a second, of 250 us and 20 us.
    let all = row(&found, "all", 4);
    assert_eq!((&all["throughput_per_s"], &all["hold_ns"]), (&2000.0.into(), &250_000.into()));
    assert_eq!((&all["wait_ns"], &all["measured_effective_cpus"]), (&20_000.into(), &3.96.into()));
}

/// The examples of the document print what stands there.
#[test]
fn the_documents_figures_are_those_printed() {
    let text = std::fs::read_to_string(root().join("docs/models.md")).unwrap();
    let block = text.split("$ holdup predict --demand 6% --cpus 8,16,32 --threads 32\n").nth(1);
    let printed = block.and_then(|b| b.split("```").next()).expect("the example is there");
    let args = ["predict", "-q", "--demand", "6%", "--cpus", "8,16,32", "--threads", "32"];
    assert_eq!(printed, stdout(&args));
}
