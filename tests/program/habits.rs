//! What people type by habit, and what their terminals and shells make of the answer.

use crate::support::{holdup, recording, run, stdout};
use holdup_testkit::needs;
use std::fs;

fn trace() -> String {
    recording("healthy_cpu_threads_c4").to_str().unwrap().to_owned()
}

#[test]
fn help_is_a_verb_and_a_file_is_to_be_diagnosed() {
    assert_eq!(stdout(&["help"]), stdout(&["--help"]));
    assert_eq!(stdout(&["help", "record"]), stdout(&["record", "--help"]));
    assert_eq!(stdout(&[&trace()]), stdout(&["diagnose", &trace()]));
}

#[test]
fn without_utf8_there_is_no_letter_beyond_ascii() {
    let out = holdup().env("LC_ALL", "C").args(["ledger", &trace()]).output().unwrap();
    assert!(out.stdout.is_ascii() && out.stdout.contains(&b'#'));
    assert!(!stdout(&["ledger", &trace()]).is_ascii());
}

#[test]
fn next_commands_quote_paths_with_blanks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b.data");
    fs::copy(trace(), &path).unwrap();
    let said = stdout(&["diagnose", path.to_str().unwrap()]);
    assert!(said.contains(&format!(" '{}'\n", path.display())), "{said}");
}

#[test]
fn a_column_is_sorted_by_its_heading() {
    let by = |key| stdout(&["waits", "-s", key, &trace()]);
    assert_eq!(by("total"), by("wait_total_ns"));
}

#[test]
fn both_ends_of_calls_are_listed_once() {
    let listed = stdout(&["info", recording("native_make_j1").to_str().unwrap()]);
    assert!(listed.matches("sys_exit_").count() <= 1, "{listed}");
}

#[needs(tracepoints)]
#[test]
fn a_command_is_recorded_without_dashes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f.data");
    let out = run(&["record", "-q", "-o", file.to_str().unwrap(), "sh", "-c", "exit 7"]);
    assert_eq!(out.status.code(), Some(7), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(file.exists());
}

#[needs(tracepoints)]
#[test]
fn a_recording_that_is_gone_is_in_no_command() {
    let out = run(&["run", "--", "sleep", "0.1"]);
    let said = String::from_utf8(out.stdout).unwrap() + &String::from_utf8_lossy(&out.stderr);
    assert!(!said.contains(std::env::temp_dir().to_str().unwrap()), "{said}");
    let said = said.replace(" \\\n    ", " ");
    assert!(said.contains("holdup run -o perf.data -- sleep 0.1"), "{said}");
}
