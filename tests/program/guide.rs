//! The guided walk: its transcript, and its questions answered through a pipe.

use crate::support::{holdup, recording, root};
use holdup_diagnose::rules::ALL;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Output, Stdio};

/// `fixture` is a scenario.
fn guide(args: &[&str], fixture: &str, answers: &str) -> Output {
    guide_file(args, &format!("{fixture}/perf.data"), answers)
}

/// `file` is any recording below `fixtures/`.
fn guide_file(args: &[&str], file: &str, answers: &str) -> Output {
    let mut child = holdup()
        .arg("guide")
        .args(args)
        .arg(format!("fixtures/{file}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The walk may end before it has read all answers.
    let _ = child.stdin.take().unwrap().write_all(answers.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(out: Output) -> String {
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Everything up to the report, which has snapshots of its own.
fn walk(text: &str) -> &str {
    text.split("\nVERDICT").next().unwrap()
}

#[test]
fn transcripts() {
    for fixture in
        ["ser_semop_perf_c8", "imb_server_c4", "thr_mutex_perfz_c8", "ser_append_case2_c2"]
    {
        insta::assert_snapshot!(
            format!("transcript_{fixture}"),
            walk(&text(guide(&["--yes"], fixture, "")))
        );
    }
}

#[test]
fn the_recommended_way_ends_at_the_verdict() {
    let scenarios = std::fs::read_dir(root().join("fixtures"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| recording(name).exists())
        .map(|name| format!("{name}/perf.data"));
    // A rule may be shown at work by a file of another format; there is no walk through figures.
    let of_rules = ALL
        .iter()
        .map(|rule| rule.fixtures.positive.to_owned())
        .filter(|file| !file.ends_with(".toml"));
    for name in scenarios.chain(of_rules).collect::<BTreeSet<String>>() {
        let out = guide_file(&["-y", "-j"], &name, "");
        let value: serde_json::Value =
            serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{name}: {e}"));
        let verdict = value["verdict"]["class"].as_str().unwrap();
        if verdict != "not-enough-evidence" {
            assert_eq!(value["ends_at"], verdict, "{name}");
        }
        assert_eq!(
            out.status.code(),
            Some(if verdict == "not-enough-evidence" { 4 } else { 0 }),
            "{name}"
        );
    }
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    let asked = text(guide(&[], "imb_server_c4", "1\n1\n"));
    assert_eq!(asked, text(guide(&["--yes"], "imb_server_c4", "")));
    assert!(!asked.contains("Enter ="));
}

#[test]
fn enter_follows_the_recommendations_to_the_report() {
    let answered = text(guide(&["--ask"], "imb_server_c4", "\n\n\n\n\n\n"));
    assert!(
        answered.contains("The questions lead to workload-imbalance")
            && answered.contains("VERDICT: workload-imbalance"),
        "{answered}"
    );
    assert!(
        answered.trim_end().lines().last().unwrap().contains("holdup "),
        "ends in commands: {answered}"
    );
}

#[test]
fn the_other_branch_says_why_its_rule_does_not_fire() {
    // Busy, against the recommendation, and the first class there; back, twice, to the report.
    let answered = text(guide(&["--ask"], "imb_server_c4", "1\n1\nb\nb\nr\n"));
    assert!(answered.contains("The rule of this class does not fire: "), "{answered}");
    assert!(
        answered.contains("The verdict is a different class: workload-imbalance"),
        "{answered}"
    );
    assert_eq!(answered.matches("1. Are the CPUs busy?").count(), 2, "{answered}");
    assert!(answered.contains("VERDICT: workload-imbalance"));
}

#[test]
fn tables_help_back_and_quit() {
    let answered = text(guide(&["--ask"], "imb_server_c4", "?\nt procs\nt moon\n2\nb\nb\nq\n1\n"));
    assert!(
        answered.contains("server-0")
            && answered.contains("There is no table moon; the tables are cpus, procs"),
        "{answered}"
    );
    assert!(answered.contains("This is the first question."));
    assert!(!answered.contains("VERDICT"), "q ends without the report");
    let ended = text(guide(&["--ask"], "imb_server_c4", "2\n"));
    assert!(
        ended.contains("\n2. ") && !ended.contains("VERDICT"),
        "the end of the answers ends the walk"
    );
    for nonsense in ["0\n", "99\n", "-1\n", "\u{1b}[A\n", "1 2 3 4\n"] {
        text(guide(&["--ask"], "imb_server_c4", nonsense));
    }
}

#[test]
fn no_escape_codes_but_where_asked_for() {
    assert!(!text(guide(&["--ask"], "imb_server_c4", "\n\n\n\n")).contains('\u{1b}'));
    assert!(
        text(guide(&["--ask", "--color", "always"], "imb_server_c4", "\n\n\n\n"))
            .contains("\u{1b}[1m")
    );
}
