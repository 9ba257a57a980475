//! What people type by habit, and what their terminals and shells make of the answer.

use crate::support::{commands_unfolded, holdup, recording, run, stdout};
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
    let said = commands_unfolded(&stdout(&["diagnose", path.to_str().unwrap()]));
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
    let said = commands_unfolded(&said);
    assert!(said.contains("holdup run -o perf.data -- sleep 0.1"), "{said}");
}

/// What a diagnosis prints on a terminal of so many columns.
fn on_a_terminal(columns: usize, scenario: &str) -> Vec<String> {
    let recording = recording(scenario);
    let holdup = env!("CARGO_BIN_EXE_holdup");
    let typed = format!("stty cols {columns} rows 99; {holdup} --no-pager diagnose perf.data");
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &typed, "/dev/null"]).current_dir(recording.parent().unwrap());
    let out = script.env("LC_ALL", "C.UTF-8").stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().map(|line| plain(line.rsplit('\r').find(|part| !part.is_empty()))).collect()
}

/// A line without the codes of colours.
fn plain(line: Option<&str>) -> String {
    let mut parts = line.unwrap_or_default().split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| line + part.split_once(['m', 'K']).map_or("", |p| p.1))
}

#[needs(script)]
#[test]
fn a_diagnosis_fits_its_terminal_and_begins_with_what_to_do() {
    for scenario in ["thr_mutex_perfz_c8", "ser_flock_c4", "thr_rows_c2", "imb_server_c4"] {
        for columns in [60, 80, 140] {
            let lines = on_a_terminal(columns, scenario);
            let text = lines.join("\n");
            let most = if columns < 80 { 47 } else { 45 };
            assert!(lines.len() <= most, "{scenario} {columns}: {} lines\n{text}", lines.len());
            let wide = lines.iter().find(|line| line.chars().count() > columns);
            assert_eq!(wide, None, "{scenario} {columns}");
            let advice = lines.iter().position(|line| line.starts_with("  -> "));
            assert!(advice.is_some_and(|at| at < 10), "{scenario} {columns}: {advice:?}\n{text}");
            let worth = lines.iter().position(|line| line.starts_with("  Worth "));
            assert!(worth < advice, "{scenario} {columns}\n{text}");
        }
    }
}
