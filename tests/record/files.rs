//! What stands in the file.

use crate::survives::send;
use crate::{done, info, of, place, recorder, said, until};
use holdup_testkit::needs;
use std::process::Stdio;

#[needs(tracepoints)]
#[test]
fn the_recorder_does_not_record_what_it_does_itself() {
    let (_folder, file) = place();
    let mut recorder = recorder(&file);
    let child = recorder.args(["-q", "--all-syscalls", "--", "sleep", "0.5"]).spawn().unwrap();
    let pid = child.id().to_string();
    assert!(child.wait_with_output().unwrap().status.success());
    let events = of(&["perf", "script", "--tid", &pid], &file);
    assert!(events.contains("sched:sched_switch"), "when it runs is recorded: {events:.300}");
    assert!(!events.contains("sys_enter"), "{events:.300}");
}

#[needs(tracepoints)]
#[test]
fn a_file_that_was_there_is_kept() {
    let (folder, file) = place();
    std::fs::write(&file, "precious").unwrap();
    done(recorder(&file).args(["--preset", "sched", "--", "true"]));
    let old = folder.path().join("perf.data.old");
    assert_eq!(std::fs::read_to_string(old).unwrap(), "precious");
    assert!(info(&file)["trace"]["events"].as_u64() > Some(0));
}

/// Both files are whole, and the first recorder says where its own is.
#[needs(tracepoints)]
#[test]
fn of_two_recorders_of_one_file_the_first_has_the_old_name() {
    let (folder, file) = place();
    let mut first = recorder(&file);
    first.args(["--preset", "sched", "--", "sleep", "600"]).stderr(Stdio::piped());
    let first = first.spawn().unwrap();
    until("the file", || file.metadata().is_ok_and(|meta| meta.len() > 4096));
    let second = done(recorder(&file).args(["--preset", "sched", "--", "true"]));
    send("INT", first.id());
    let out = first.wait_with_output().unwrap();
    let old = folder.path().join("perf.data.old");
    assert!(
        said(&out).contains(&format!("the recording is now called {}", old.display())),
        "{}",
        said(&out)
    );
    assert!(said(&out).contains(&format!("holdup diagnose {}", old.display())), "{}", said(&out));
    assert!(!said(&second).contains("the recording is now called"), "{}", said(&second));
    for file in [&old, &file] {
        assert!(info(file)["trace"]["events"].as_u64() > Some(0), "{}", file.display());
    }
}

#[needs(tracepoints)]
#[test]
fn a_process_is_recorded_without_the_others() {
    let (_folder, file) = place();
    let mut sleeper = std::process::Command::new("sh")
        .args(["-c", "while :; do sleep 0.01; done"])
        .spawn()
        .unwrap();
    let pid = sleeper.id().to_string();
    let out = recorder(&file).args(["-p", &pid, "--duration", "700ms"]).output().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(out.status.success(), "{}", crate::said(&out));
    let events = of(&["perf", "script", "-F", "comm"], &file);
    // Who was made just before the recording began has a number for a name.
    let known = |comm: &&str| ["sh", "sleep"].contains(comm) || comm.starts_with(':');
    let others: Vec<&str> = events.lines().map(str::trim).filter(|comm| !known(comm)).collect();
    assert!(events.contains("sleep") && others.is_empty(), "{others:?}");
}
