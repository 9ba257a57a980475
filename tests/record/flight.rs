//! The flight recorder: nothing until something happens, then the last of what happened before.

use crate::survives::send;
use crate::{info, place, recorder, said, until};
use holdup_testkit::needs;
use std::path::Path;
use std::process::Stdio;

/// Makes system calls without end, and no process that would outlive it.
const WORK: &[&str] = &["dd", "if=/dev/zero", "of=/dev/null", "bs=1"];

/// One that has begun: `/proc` shows its rings.
fn flying(file: &Path, args: &[&str]) -> std::process::Child {
    let mut recorder = recorder(file);
    let child = recorder.args(args).arg("--").args(WORK).stderr(Stdio::piped()).spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    until("the rings", || std::fs::read_to_string(&maps).is_ok_and(|m| m.contains("[perf_event]")));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    child
}

#[needs(tracepoints)]
#[test]
fn a_signal_has_the_last_events_written() {
    let (_folder, file) = place();
    // So small that the rings are written over many times.
    let child = flying(&file, &["--ring", "128K"]);
    assert!(!file.exists(), "nothing has happened yet");
    send("USR2", child.id());
    until("the file", || file.exists());
    send("TERM", child.id());
    let out = child.wait_with_output().unwrap();
    assert!(said(&out).contains("written because SIGUSR2 came"), "{}", said(&out));
    // Who asks for the first time does not kill: the command may clean up.
    assert_eq!(out.status.code(), Some(128 + 15), "{}", said(&out));
    let about = info(&file);
    assert!(about["trace"]["events"].as_u64().unwrap() > 100, "{about}");
    // In time order per CPU: the reader finds no CPU that steps back.
    let quality = about["quality"].as_array().unwrap();
    assert!(quality.iter().all(|q| q["code"] != "unordered"), "{quality:?}");
}

#[needs(tracepoints)]
#[test]
fn only_a_command_that_fails_leaves_a_file() {
    for (script, status, written) in [("exit 3", 3, true), ("exit 0", 0, false)] {
        let (_folder, file) = place();
        let args = ["--ring", "4M", "--until", "fails", "--", "sh", "-c", script];
        let out = recorder(&file).args(args).output().unwrap();
        assert_eq!(out.status.code(), Some(status), "{}", said(&out));
        assert_eq!(file.exists(), written, "{}", said(&out));
    }
}

#[needs(tracepoints)]
#[test]
fn a_condition_that_holds_is_named_with_its_value() {
    let (_folder, file) = place();
    // With a program that never sleeps the average is above 0 within seconds.
    let child = flying(&file, &["--ring", "4M", "--until", "load>0"]);
    until("the file", || file.exists());
    send("TERM", child.id());
    let out = child.wait_with_output().unwrap();
    assert!(said(&out).contains("the load average was "), "{}", said(&out));
}
