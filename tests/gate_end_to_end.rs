//! The gate from end to end: record with perf, make a baseline, judge the same program as it was
//! and with a longer critical section.

mod support;

use crate::support::{fixture, holdup, root};
use holdup_testkit::needs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs a side: five are the fewest that can prove anything.
const RUNS: usize = 5;

/// The tests share the machine with whatever runs there, so only what is never in doubt is asked:
/// the critical section is as it was, or takes four times as long.
const POLICY: &str = r#"
work = "syscall:write"
[primary]
metric = "syscalls.futex.total_per_work"
relative = 60
must_see = 200
[judgement]
others_pct = 99
lost_pct = 5
"#;

/// Compile the workload.
fn compile(folder: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-pthread", "-o"]).arg(folder.join("work")).arg(fixture("gate/work.c"));
    let out = cc.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Record one run with the script that the documents give.
fn record(folder: &Path, name: &str, length: &str) -> PathBuf {
    let file = folder.join(name);
    let mut script = Command::new(root().join("docs/ci/record.sh"));
    script.arg(&file).args(["./work", "mutex", "3", length, "60"]).current_dir(folder);
    let out = script.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    file
}

/// The exit code of a run, and all that it printed.
fn code(out: &Output) -> (Option<i32>, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout) + &text(&out.stderr))
}

#[needs(tracepoints)]
#[test]
fn the_gate_passes_what_did_not_change_and_fails_on_what_did() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    compile(folder);
    let (mut before, mut same, mut slower) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..RUNS {
        before.push(record(folder, &format!("before-{i}.data"), "100"));
        slower.push(record(folder, &format!("slower-{i}.data"), "400"));
        same.push(record(folder, &format!("same-{i}.data"), "100"));
    }
    let (baseline, policy) = (folder.join("baseline.json"), folder.join("policy.toml"));
    std::fs::write(&policy, POLICY).unwrap();
    let made = holdup()
        .args(["baseline", "--work", "syscall:write", "-o"])
        .arg(&baseline)
        .args(&before)
        .output()
        .unwrap();
    assert_eq!(code(&made).0, Some(0), "{}", code(&made).1);
    let gate = |runs: &[PathBuf]| {
        let mut gate = holdup();
        gate.arg("gate").arg("--baseline").arg(&baseline).arg("--policy").arg(&policy);
        code(&gate.args(runs).output().unwrap())
    };
    let (passed, words) = gate(&same);
    assert_eq!(passed, Some(0), "unchanged: {words}");
    let (failed, words) = gate(&slower);
    assert_eq!(failed, Some(1), "four times the critical section: {words}");
}
