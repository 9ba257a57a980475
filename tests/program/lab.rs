//! `holdup lab`: workloads do what they say, by what they count; mistakes are named; `docs/lab.md`
//! has the list. `HOLDUP_BLESS=1 cargo test --test program lab` writes it.

use crate::support::{holdup, is_written, run, stdout};
use holdup_diagnose::Class;
use holdup_lab::{COMMON, Need, Param, WORKLOADS, Workload};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What a short run counted.
#[track_caller]
fn counted(name: &str, options: &[&str]) -> Value {
    let set = ["lab", "run", name, "--set", "duration=30ms"];
    serde_json::from_str(&stdout(&[&set[..], options].concat())).unwrap()
}

fn sum(counted: &Value, key: &str) -> u64 {
    counted[key].as_u64().unwrap_or_else(|| panic!("no {key}: {counted:#}"))
}

/// Whether it runs everywhere, and changes nothing of the host.
fn runs_here(workload: &Workload) -> bool {
    !workload.needs.iter().any(|need| matches!(need, Need::Quota | Need::Workers))
}

#[test]
fn every_class_is_made_by_a_workload() {
    let made: BTreeSet<&str> = WORKLOADS.iter().map(|w| w.class).collect();
    // Classes that no program has by itself.
    let unmade = [Class::NotEnoughEvidence];
    let classes = Class::ALL.iter().filter(|class| !unmade.contains(class));
    let classes: BTreeSet<&str> = classes.map(|class| class.id()).collect();
    let missing: Vec<_> = classes.difference(&made).collect();
    assert!(missing.is_empty(), "no workload in crates/lab/src/table.rs has the class {missing:?}");
    let unknown: Vec<_> = made.difference(&classes).collect();
    assert!(unknown.is_empty(), "workloads have classes that no rule judges: {unknown:?}");
}

#[test]
fn every_workload_and_its_twin_runs_and_finishes_pieces_of_work() {
    for workload in WORKLOADS.iter().filter(|w| runs_here(w)) {
        let twin: &[&[&str]] = if workload.has_twin() { &[&[], &["--fixed"]] } else { &[&[]] };
        for options in twin {
            let counted = counted(workload.name, options);
            assert_eq!(counted["name"], workload.name);
            assert!(sum(&counted, "units") > 0, "{counted:#}");
            let workers = counted["workers"].as_array().unwrap();
            assert!(workers.iter().all(|w| !w["role"].as_str().unwrap().is_empty()));
            assert_eq!(counted["fixed"], !options.is_empty());
        }
    }
}

/// What is held once at a time is held for no longer than the run takes, but for who loses its CPU
/// between giving it back and looking at the clock; of two at once it would be twice as long.
#[test]
fn what_is_held_by_one_at_a_time_is_never_held_twice() {
    let holds = |w: &&Workload| w.params.iter().any(|p| p.key == "hold");
    // Its readers hold it together.
    let shares = |w: &&Workload| w.name == "rwlock";
    for name in WORKLOADS.iter().filter(|w| holds(w) && !shares(w)).map(|w| w.name) {
        let counted = counted(name, &["--set", "workers=3,hold=400us"]);
        let (held, wall) = (sum(&counted, "hold_ns"), sum(&counted, "wall_ns"));
        assert!(held * 2 <= wall * 3, "{name}: {held} of {wall}");
        assert!(sum(&counted, "wait_ns") > 0, "{name}");
    }
}

#[test]
fn processes_are_processes_and_threads_threads() {
    let pids = |counted: &Value| {
        let workers = counted["workers"].as_array().unwrap().iter();
        workers.map(|w| w["pid"].as_u64().unwrap()).collect::<BTreeSet<_>>().len()
    };
    assert_eq!(pids(&counted("mutex", &["--set", "workers=3"])), 1);
    assert_eq!(pids(&counted("flock", &["--set", "workers=3"])), 3);
    assert_eq!(pids(&counted("mmap", &["--set", "workers=3"])), 1);
    assert_eq!(pids(&counted("mmap", &["--fixed", "--set", "workers=3"])), 3);
}

#[test]
fn a_job_does_its_work_however_long_it_takes() {
    let counted = counted("jobs", &["--set", "workers=2,threads=2,work=20ms,round=5ms"]);
    assert_eq!(sum(&counted, "units"), 2 * 4);
}

#[test]
fn mistakes_are_named() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["lab", "run", "nothing"],
            "there is no workload nothing; the workloads are server, barrier",
        ),
        (&["lab", "run", "mutex", "--set", "hold"], "--set: 'hold' is not a setting"),
        (&["lab", "run", "mutex", "--set", "hold=x"], "--set: hold: 'x' is not a time"),
        (&["lab", "run", "mutex", "--set", "x=1"], "--set: mutex has no parameter x; it has"),
        (&["lab", "run", "compute", "--fixed"], "compute has no variant without the bottleneck"),
        (&["lab", "record", "nothing"], "there is no workload nothing"),
        (&["lab", "list", "--format", "csv"], "lab list has text and json output only"),
        (&["lab", "prove", "--format", "md"], "lab prove has text and json output only"),
        (&["lab", "run", "mutex", "-o", "/nowhere/x"], "/nowhere/x: cannot be written"),
    ];
    for (args, message) in cases {
        let out = run(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(message), "{args:?}: {said}");
    }
}

#[test]
fn a_worker_without_a_run_ends_with_a_message() {
    let mut worker = holdup();
    worker.args(["lab", "worker", "flock", "0", "--folder", "/nowhere", "--pace", "1"]);
    let out = worker.output().unwrap();
    assert_eq!(out.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&out.stderr).contains("the socket for the start"));
}

#[test]
fn the_list_has_everything_as_text_and_as_json() {
    let (text, json) = (stdout(&["lab", "list"]), stdout(&["lab", "list", "-j"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), WORKLOADS.len());
    for workload in WORKLOADS {
        assert!(text.contains(&format!("  {}: {}", workload.name, workload.does)));
        assert!(rows.iter().any(|row| row["name"] == workload.name));
    }
}

/// The settings of the twin, as they are typed.
fn fix(workload: &Workload) -> String {
    workload.fix.iter().map(|(key, value)| format!("`{key}={value}`")).collect::<String>()
}

fn settings(params: &[Param]) -> String {
    let words: Vec<_> = params.iter().map(|p| format!("`{}={}`", p.key, p.default)).collect();
    words.join(" ")
}

#[test]
fn the_document_lists_the_workloads() {
    let mut text =
        "| workload | class | does | settings | fixed by |\n|---|---|---|---|---|\n".to_owned();
    for w in WORKLOADS {
        let fixed = match w.has_twin() {
            true => format!("{}: {}", fix(w), w.fixes),
            false => String::new(),
        };
        let settings = settings(w.params);
        let also = w.also.map_or(String::new(), |(class, why)| format!(", or {class}: {why}"));
        let (name, class, does) = (w.name, w.class, w.does);
        writeln!(text, "| `{name}` | {class}{also} | {does} | {settings} | {fixed} |").unwrap();
    }
    writeln!(text, "\nAll have {}.", settings(COMMON)).unwrap();
    is_written("docs/lab.md", ("<!-- workloads -->\n", "<!-- end of workloads -->"), &text);
}
