//! Text of `perf script` with call chains, beside the recording it was printed from: the text has
//! names, the recording finds them in files, and both must say the same.

use crate::support::{fixture, recording, root};
use holdup_testkit::needs;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const FIXTURES: [&str; 2] = ["profile_convoy", "profile_bank"];

/// What holdup prints where no cache of perf's is at hand: the text was made without one.
fn holdup(args: &[&str], trace: &Path) -> String {
    let empty = tempfile::tempdir().unwrap();
    let mut holdup = crate::support::holdup();
    let out = holdup.args(args).arg(trace).env("HOME", empty.path()).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn rows(args: &[&str], trace: &Path) -> Value {
    let answer: Value = serde_json::from_str(&holdup(&[args, &["-j"]].concat(), trace)).unwrap();
    answer["rows"].clone()
}

/// The events of a fixture with call chains, as `-e` names them.
const EVENTS: [&str; 6] = [
    "cpu-clock/freq=499/",
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "raw_syscalls:sys_enter",
    "raw_syscalls:sys_exit",
];

/// The text of a fixture's recording says what the recording says.
#[track_caller]
fn say_the_same(name: &str, text: &Path) {
    let data = recording(name);
    let files = fixture(name).join("root");
    let symfs = ["--symfs", files.to_str().unwrap()];
    let found = |args: &[&str]| rows(&[args, &symfs].concat(), &data);
    for by in ["function", "thread", "process", "dso", "cpu"] {
        let args = ["profile", "--by", by];
        let (printed, found) = (rows(&args, text), found(&args));
        assert!(!found.as_array().unwrap().is_empty());
        assert_eq!(printed, found, "{name} {by}");
    }
    for event in EVENTS {
        let args = ["profile", "--folded", "-e", event];
        let found = holdup(&[&args[..], &symfs].concat(), &data);
        assert!(found.lines().count() > 1, "{name} {event}: {found}");
        assert_eq!(holdup(&args, text), found, "{name} {event}");
    }
    let callers = ["waits", "--by", "caller"];
    assert_eq!(but_callers(rows(&callers, text)), but_callers(found(&callers)), "{name}");
}

/// Rows without the callers' names: libc hides the function that called it, which the code of the
/// program tells, and text has no code. It names that function's caller.
fn but_callers(mut rows: Value) -> Value {
    for row in rows.as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("caller");
    }
    rows
}

#[test]
fn text_with_chains_says_what_its_recording_says() {
    for name in FIXTURES {
        say_the_same(name, &fixture(name).join("script.txt.xz"));
    }
    let callers = rows(&["waits", "--by", "caller"], &fixture(FIXTURES[1]).join("script.txt.xz"));
    assert_eq!(callers[1]["caller"], "bank::clerk");
    assert_eq!(callers[1]["through"], "libc.so.6");
}

#[test]
fn names_in_text_need_no_file() {
    let text = fixture(FIXTURES[0]).join("script.txt.xz");
    let args = ["profile", "--by", "function"];
    let shown = rows(&args, &text);
    assert_eq!(rows(&[&args[..], &["--no-symbols"]].concat(), &text), shown);
    assert_eq!(shown[0]["symbol"], "post_entries");
    let table = holdup(&args, &text);
    assert!(!table.contains("not found"), "{table}");
}

/// `perf script` with these options on a fixture.
fn script(name: &str, options: &[&str], folder: &Path) -> PathBuf {
    let out = Command::new("perf")
        .args(["script", "--ns", "--show-task-events", "-i"])
        .arg(recording(name))
        .arg("--symfs")
        .arg(fixture(name).join("root"))
        .args(options)
        .current_dir(root())
        .output()
        .unwrap();
    let path = folder.join("script.txt");
    std::fs::write(&path, out.stdout).unwrap();
    path
}

#[needs(perf)]
#[test]
fn whatever_columns_perf_prints_the_chains_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for name in FIXTURES {
        for options in [&[][..], &["--no-inline"], &["--header"]] {
            say_the_same(name, &script(name, options, folder.path()));
        }
    }
}
