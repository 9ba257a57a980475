//! `holdup cut --anonymize`: the figures of a trace without names are those of the trace, and the
//! tools of the formats open it.

use crate::support::{fixture, run, stdout};
use holdup_testkit::{PerfettoForm, corpus, needs, perfetto};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const VERBS: [&[&str]; 7] = [
    &["ledger"],
    &["cpus"],
    &["syscalls"],
    &["procs"],
    &["waits", "--by", "kind"],
    &["switches"],
    &["diagnose"],
];

fn nameless(path: &Path) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("nameless");
    let (path, to) = (path.to_str().unwrap(), output.to_str().unwrap());
    stdout(&["cut", "-q", "--anonymize", path, "-o", to]);
    (folder, output)
}

/// What a verb says, without what it says of the file.
fn figures(verb: &[&str], path: &Path) -> Value {
    let path = path.to_str().unwrap();
    let out = run(&[verb, &["--format", "json", path]].concat());
    assert!(matches!(out.status.code(), Some(0 | 4)), "{verb:?} {path}: {out:?}");
    let mut json: Value = serde_json::from_slice(&out.stdout).unwrap();
    for key in ["trace", "quality", "next"] {
        json.as_object_mut().unwrap().remove(key);
    }
    json
}

/// The same with every letter the same: names have their lengths, and rows any order. Which code
/// made a call is found by the names of libraries, and summaries say it.
fn shape(json: Value) -> Value {
    let letters = |text: &str| -> String {
        text.chars().map(|c| if c.is_alphanumeric() || c == '_' { 'a' } else { c }).collect()
    };
    match json {
        Value::String(text) => Value::String(letters(&text)),
        Value::Array(all) => {
            let mut all: Vec<Value> = all.into_iter().map(shape).collect();
            all.sort_by_key(Value::to_string);
            Value::Array(all)
        }
        Value::Object(all) => {
            let named = |key: &str| key == "code" || key == "summary";
            let figures = all.into_iter().filter(|(key, _)| !named(key));
            Value::Object(figures.map(|(key, value)| (key, shape(value))).collect())
        }
        other => other,
    }
}

/// The first line that differs, and where.
fn difference(part: &Value, whole: &Value) -> String {
    let (part, whole) = (format!("{part:#}"), format!("{whole:#}"));
    let lines = part.lines().zip(whole.lines()).enumerate();
    let found = lines.into_iter().find(|(_, (a, b))| a != b);
    found.map_or("its length".into(), |(at, (a, b))| format!("line {at}: {a} is not {b}"))
}

/// The figures of a trace without names are its figures.
fn check(path: &Path) {
    let (_folder, output) = nameless(path);
    for verb in VERBS {
        let (whole, part) = (figures(verb, path), figures(verb, &output));
        if verb == ["diagnose"] {
            for of in ["class", "confidence"] {
                let (whole, part) = (&whole["verdict"][of], &part["verdict"][of]);
                assert_eq!(part, whole, "{}", path.display());
            }
        }
        let (whole, part) = (shape(whole), shape(part));
        assert!(part == whole, "{verb:?} {}: {}", path.display(), difference(&part, &whole));
    }
}

#[test]
fn text_without_names_has_its_figures() {
    for name in [
        "equivalence/imb_single_c4/ftrace.txt.xz",
        "equivalence/ser_semop_c4/report.txt.xz",
        "equivalence/thr_mutex_c4/report-ns.txt.xz",
        "profile_bank/script.txt.xz",
    ] {
        check(&fixture(name));
    }
}

#[test]
fn ctf_without_names_has_its_figures() {
    for name in ["lttng_thr_mutex_c4", "lttng_ser_semop_c4"] {
        check(&fixture(&format!("equivalence/{name}/lttng.tar.gz")));
    }
}

/// A recording as packets of Perfetto.
fn as_perfetto(name: &str, form: &PerfettoForm) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.pftrace");
    let trace = holdup_open::open(&fixture(name)).unwrap();
    std::fs::write(&path, perfetto(&*trace, form)).unwrap();
    (folder, path)
}

#[test]
fn packets_without_names_have_their_figures() {
    for compact in [false, true] {
        for name in ["imb_amdahl_c2/perf.data", "ser_psem_c2/perf.data"] {
            let form = PerfettoForm { compact, ..PerfettoForm::default() };
            let (_folder, path) = as_perfetto(name, &form);
            check(&path);
        }
    }
}

#[needs(corpus)]
#[test]
fn a_phones_trace_without_names_has_its_figures() {
    let path = "public/microsoft+Microsoft-Performance-Tools-Linux-Android/TestData/Perfetto";
    check(&corpus().join(path).join("test_trace.perfetto-trace"));
}

/// Events that babeltrace2 counts.
fn counted(path: &Path) -> usize {
    let mut babeltrace = Command::new("babeltrace2");
    let out = babeltrace.args([path.to_str().unwrap()]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8_lossy(&out.stdout).lines().count()
}

#[needs(babeltrace2)]
#[test]
fn babeltrace_counts_the_events_of_ctf_without_names() {
    let folder = tempfile::tempdir().unwrap();
    let archive = fixture("equivalence/lttng_thr_mutex_c4/lttng.tar.gz");
    let tar = Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(tar.unwrap().success());
    let (_other, output) = nameless(&archive);
    let count = counted(folder.path());
    assert!(count > 1000);
    assert_eq!(counted(&output), count);
}
