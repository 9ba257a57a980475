//! What is wrong with the input is said, and is neither a pass nor a regression.

use crate::gate::runs::{Folder, baseline, only, text};
use crate::support::recording;

/// A folder with a baseline of five runs, and five others that did not change.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.runs("b.json", "mutex-100", 0..5);
    folder.runs("same.json", "mutex-100", 5..10);
    folder
}

const BAD_INPUT: i32 = 3;
const USAGE: i32 = 2;

#[test]
fn a_truncated_trace_is_named_with_the_place() {
    let folder = folder();
    let whole = std::fs::read(recording("healthy_cpu_threads_c4")).unwrap();
    folder.file("cut.data", &whole[..whole.len() / 2]);
    folder.file("head.data", &whole[..60]);
    insta::assert_snapshot!(folder.holdup("gate --baseline b.json cut.data").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("gate --baseline b.json head.data").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("baseline -o new.json cut.data").fails(BAD_INPUT));
    assert!(!folder.path().join("new.json").exists(), "half a baseline was written");
}

#[test]
fn what_is_no_trace_and_what_is_no_baseline_is_said() {
    let folder = folder();
    folder.file("text", "nothing of interest\n");
    folder.file("empty", "");
    insta::assert_snapshot!(folder.holdup("gate --baseline b.json text").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("gate --baseline b.json empty").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("gate --baseline text same.json").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("gate --baseline no.json same.json").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("gate --baseline b.json no.data").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("baseline --show text").fails(BAD_INPUT));
}

#[test]
fn an_empty_folder_is_no_recording() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("runs")).unwrap();
    insta::assert_snapshot!(folder.holdup("gate --baseline b.json runs").fails(BAD_INPUT));
    insta::assert_snapshot!(folder.holdup("baseline -o new.json runs").fails(BAD_INPUT));
}

#[test]
fn a_baseline_of_another_version_or_shape_is_refused() {
    let folder = folder();
    let mut other = only(baseline("mutex-100"), 0..5);
    other["schema"] = "holdup-baseline/2".into();
    other["settings"] = "elsewhere".into();
    folder.file("next.json", text(other));
    let mut short = only(baseline("mutex-100"), 0..5);
    short["figures"]["contention.wait_ns"] = serde_json::json!([1, 2]);
    folder.file("short.json", text(short));
    let mut none = only(baseline("mutex-100"), 0..0);
    folder.file("none.json", text(none.clone()));
    none["runs"] = "many".into();
    folder.file("odd.json", text(none));
    let whole = text(only(baseline("mutex-100"), 0..5));
    folder.file("cut.json", &whole[..whole.len() / 2]);
    for file in ["next.json", "short.json", "none.json", "odd.json", "cut.json"] {
        let said = folder.holdup(&format!("gate --baseline {file} same.json")).fails(BAD_INPUT);
        insta::assert_snapshot!(said);
    }
}

#[test]
fn a_policy_that_is_wrong_is_wrong_usage() {
    let folder = folder();
    let primary = "[primary]\nmetric = \"syscalls.futex.total_per_work\"\n";
    let waiver = "[[waiver]]\nmetric = \"runq.delay_p99\"\nreason = \"known\"\n";
    for policy in [
        "[primary]\nmetric = \"syscalls.futex.totl_per_work\"\n".to_owned(),
        "[primary]\nmetric = \"syscalls.fute.total_per_work\"\n".to_owned(),
        "[primary]\nmetric = \"locs.wait\"\n".to_owned(),
        format!("{primary}relatve = 5\n"),
        format!("{primary}{waiver}until = \"2027-02-30\"\n"),
        "work = \"syscall:write\"\n".to_owned(),
        "[primary\n".to_owned(),
    ] {
        folder.file("policy.toml", policy);
        let said = folder.holdup("gate --baseline b.json --policy policy.toml same.json");
        insta::assert_snapshot!(said.fails(USAGE));
    }
    let said = folder.holdup("gate --baseline b.json --policy no.toml same.json").fails(USAGE);
    insta::assert_snapshot!(said);
}

#[test]
fn a_command_line_that_is_wrong_is_wrong_usage() {
    let folder = folder();
    for args in [
        "gate same.json",
        "gate --baseline b.json",
        "gate --pair b.json",
        "gate --pair b.json b.json b.json",
        "gate --pair b.json same.json",
        "gate --baseline b.json --metric moon same.json",
        "gate --baseline b.json --work moon same.json",
        "gate --baseline b.json --allow moon same.json",
        "baseline same.json",
        "baseline --show b.json same.json",
        "baseline --work syscall:read -o new.json same.json",
    ] {
        let said = folder.holdup(args).fails(USAGE);
        insta::assert_snapshot!(format!("$ holdup {args}\n{said}"));
    }
    assert!(!folder.path().join("new.json").exists());
}

#[test]
fn recordings_of_two_hosts_are_no_baseline() {
    let folder = folder();
    for (name, host) in [("here.json", "here"), ("there.json", "there")] {
        let mut runs = only(baseline("mutex-100"), 0..5);
        runs["settings"][0]["host"] = host.into();
        folder.file(name, text(runs));
    }
    let said = folder.holdup("baseline -o new.json here.json there.json").fails(BAD_INPUT);
    insta::assert_snapshot!(said);
    assert!(!folder.path().join("new.json").exists());
    folder.holdup("baseline -o new.json --allow host here.json there.json").says(0);
}

#[test]
fn a_recording_beside_itself_and_one_that_is_there_prove_nothing() {
    let folder = Folder::new();
    folder.runs("a.json", "mutex-100", 0..1);
    folder.runs("b.json", "mutex-110", 0..1);
    let said = folder.holdup("gate --pair a.json a.json").fails(USAGE);
    assert!(said.contains("the same recording"), "{said}");
    // One pair proves nothing, whatever it shows.
    folder.holdup("gate --pair a.json b.json").says(4);
    folder.holdup("baseline -o base.json a.json").says(0);
    let said = folder.holdup("baseline --add base.json a.json").fails(USAGE);
    assert!(said.contains("already has"), "{said}");
}

/// A baseline keeps no figures of what did not happen, and the recording is the same all the same.
#[test]
fn a_recording_that_a_baseline_file_holds_is_not_added_again() {
    let folder = Folder::new();
    let run = recording("imb_server_c4");
    folder.holdup(&format!("baseline -o b.json {}", run.display())).says(0);
    let again = folder.holdup(&format!("baseline --add b.json {}", run.display())).fails(USAGE);
    assert!(again.contains("a run counts once"), "{again}");
}
