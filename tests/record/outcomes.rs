//! Exit codes and messages.

use crate::{done, holdup, info, place, recorder, said};
use holdup_testkit::needs;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[needs(tracepoints)]
#[test]
fn the_exit_status_is_that_of_the_command() {
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let (_folder, file) = place();
        let out = recorder(&file).args(["-q", "--", "sh", "-c", script]).output().unwrap();
        assert_eq!(out.status.code(), Some(status), "{script}: {}", said(&out));
        assert_eq!(said(&out), "", "-q");
        assert!(info(&file)["trace"]["events"].as_u64().unwrap() > 0);
    }
}

/// A parent that wants to hear nothing of its children hands that on to the programs it becomes.
#[needs(tracepoints, bash)]
#[test]
fn the_end_of_the_command_is_seen_where_ends_of_children_are_ignored() {
    let (_folder, file) = place();
    let script = "trap '' CHLD; exec timeout -k 1 60 \"$0\" record -q -o \"$1\" -- sh -c 'exit 7'";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_holdup")]).arg(&file);
    let out = bash.output().unwrap();
    assert_eq!(out.status.code(), Some(7), "{}", said(&out));
}

#[needs(tracepoints)]
#[test]
fn what_was_measured_of_the_recorder_is_printed() {
    let (_folder, file) = place();
    let words = said(&done(recorder(&file).args(["--duration", "300ms"])));
    for part in [" events in ", " a second), none lost, ", "of CPU time", "holdup diagnose "] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[needs(tracepoints)]
#[test]
fn mistakes_are_named_and_leave_no_file() {
    let cases: &[(&[&str], &str)] = &[
        (&["--", "/no/such/program"], "/no/such/program: cannot be started: No such file"),
        (
            &["-e", "cycles", "--", "true"],
            "cycles: is not a tracepoint; tracepoints are named SYSTEM:NAME",
        ),
        (&["-e", "sched:nothing", "--", "true"], "this kernel has no such tracepoint"),
        (&["-C", "4095", "--", "true"], "CPU 4095 is not online; the online CPUs are 0"),
        (&["-C", "x", "--", "true"], "'x' is not a list of CPUs"),
        (&["-p", "4194305"], "there is no process 4194305"),
        (&["--cgroup", "/no/such", "--", "true"], "control group /no/such: "),
        (&["--until", "load>1", "--", "true"], "--ring"),
        (
            &["--ring", "1M", "--until", "soon", "--", "true"],
            "the conditions are sigusr2, fails, load>X",
        ),
        (&["--duration", "soon"], "write 10s, 500ms or 2m"),
        (&["-m", "much", "--", "true"], "write 512K or 8M"),
    ];
    for (args, message) in cases {
        let (_folder, file) = place();
        let out = recorder(&file).args(*args).output().unwrap();
        let words = said(&out);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {words}");
        assert!(words.contains(message), "{args:?}: {words}");
        assert!(!file.exists(), "{args:?}");
    }
    let out = recorder("/no/such/folder/x".as_ref()).args(["--", "true"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(said(&out).contains("/no/such/folder/x: cannot be written: "), "{}", said(&out));
}

#[needs(tracepoints)]
#[test]
fn who_may_not_record_is_told_what_stands_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    // The build folder may be closed to nobody.
    let program = folder.path().join("holdup");
    std::fs::copy(env!("CARGO_BIN_EXE_holdup"), &program).unwrap();
    open_to_all(folder.path());
    let mut command = Command::new(&program);
    command.args(["record", "-o", "/tmp/holdup-of-nobody.data", "--", "true"]);
    let out = command.uid(65534).gid(65534).current_dir("/").output().unwrap();
    let words = said(&out);
    assert_eq!(out.status.code(), Some(3), "{words}");
    assert!(words.lines().count() > 1 && words.contains("\n  way out: "), "{words}");
    assert!(!words.contains("panicked") && !words.contains("RUST_BACKTRACE"), "{words}");
}

fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
}

#[needs(tracepoints)]
#[test]
fn a_run_prints_the_report_and_fails_as_the_command_does() {
    let out = holdup().args(["run", "-q", "--", "sleep", "0.3"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("VERDICT: "), "{text}{}", said(&out));
    assert!([Some(0), Some(4)].contains(&out.status.code()), "{}", said(&out));
    let out = holdup().args(["run", "-q", "--", "sh", "-c", "exit 9"]).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("VERDICT: "));
    assert_eq!(out.status.code(), Some(9), "{}", said(&out));
}

#[needs(tracepoints)]
#[test]
fn several_runs_are_kept_for_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("before");
    let out = holdup()
        .args(["run", "--runs", "3", "-o"])
        .arg(&runs)
        .args(["--", "sleep", "0.2"])
        .output()
        .unwrap();
    for run in 1..=3 {
        assert!(runs.join(format!("run-{run}.data")).exists(), "{}", said(&out));
        assert!(info(&runs.join(format!("run-{run}.data")))["trace"]["events"].as_u64() > Some(0));
    }
    assert!(said(&out).contains("holdup baseline -o baseline.json"), "{}", said(&out));
}
