//! Recorders that come to a bad end leave files that open.

use crate::{done, holdup, info, of, place, recorder, said, until};
use holdup_testkit::needs;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

#[needs(tracepoints)]
#[test]
fn a_recorder_that_is_killed_leaves_a_file_that_opens() {
    for moment in 0..5 {
        let (_folder, file) = place();
        let work =
            ["--preset", "sched", "-q", "--", "perf", "bench", "sched", "pipe", "-l", "200000"];
        let mut child = recorder(&file).args(work).stdout(Stdio::null()).spawn().unwrap();
        // The first round stands in the file before the first event. Its header is written last:
        // before that there is no recording.
        until("the file", || std::fs::read(&file).is_ok_and(|b| b.starts_with(b"PERFILE2")));
        std::thread::sleep(Duration::from_millis(120 * moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let about = info(&file);
        assert_eq!(about["command"], "info");
        // perf warns of a recording that did not end, and goes on.
        let perf = Command::new("perf").args(["script", "-i"]).arg(&file).output().unwrap();
        assert!(perf.status.success(), "{}", said(&perf));
    }
}

#[needs(tracepoints)]
#[test]
fn a_full_disk_is_said_and_what_was_written_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mount = |args: &[&str]| Command::new("mount").args(args).arg(folder.path()).output();
    let mounted = mount(&["-t", "tmpfs", "-o", "size=4m", "nodev"]);
    if !mounted.is_ok_and(|out| out.status.success()) {
        eprintln!("not tried: no file system can be mounted here");
        return;
    }
    let file = folder.path().join("perf.data");
    // Who ends it leaves nobody behind that would keep the pipe of its messages open.
    let script = "i=0; while [ $i -lt 1000000 ]; do (:); i=$((i+1)); done";
    let out = recorder(&file).args(["--", "sh", "-c", script]).output().unwrap();
    let perf = Command::new("perf").args(["script", "-i"]).arg(&file).output().unwrap();
    let about = holdup().args(["info"]).arg(&file).output().unwrap();
    Command::new("umount").arg(folder.path()).output().unwrap();
    let words = said(&out);
    assert_eq!(out.status.code(), Some(2), "{words}");
    assert!(words.contains("No space left on device"), "{words}");
    assert!(words.contains("the file contains what was written before"), "{words}");
    assert!(perf.status.success(), "{}", said(&perf));
    assert!(about.status.success(), "{}", said(&about));
}

#[needs(tracepoints)]
#[test]
fn three_thousand_forks_are_all_there() {
    let (_folder, file) = place();
    let script = "i=0; while [ $i -lt 3000 ]; do (:); i=$((i+1)); done";
    done(recorder(&file).args(["--preset", "sched", "-m", "16M", "--", "sh", "-c", script]));
    let lines = of(&["perf", "script"], &file);
    // Other shells of the machine fork too: the one with the most is ours.
    let mut forks = BTreeMap::<&str, usize>::new();
    for (_, fork) in lines.lines().filter_map(|l| l.split_once("sched_process_fork: comm=sh pid="))
    {
        *forks.entry(fork.split(' ').next().unwrap()).or_default() += 1;
    }
    assert_eq!(forks.values().max(), Some(&3000));
}

#[needs(tracepoints)]
#[test]
fn signals_end_a_recording_that_is_complete() {
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let (_folder, file) = place();
        let mut recorder = recorder(&file);
        recorder.args(["--preset", "sched", "--", "sleep", "600"]);
        let out = ended_by(signal, &mut recorder, &file);
        assert_eq!(out.status.code(), Some(status), "{signal}: {}", said(&out));
        let events = of(&["perf", "script"], &file);
        assert!(events.contains("sched:sched_switch"), "{signal}");
    }
}

/// As a command in the background of a script does, which ignores the keyboard's signal.
#[needs(tracepoints)]
#[test]
fn an_interrupt_that_was_ignored_before_ends_the_command_too() {
    let (_folder, file) = place();
    let script = format!(
        "trap '' INT; exec '{}' record -o '{}' --preset sched -- sleep 600",
        env!("CARGO_BIN_EXE_holdup"),
        file.display()
    );
    let mut recorder = Command::new("sh");
    let out = ended_by("INT", recorder.args(["-c", &script]), &file);
    assert_eq!(out.status.code(), Some(130), "{}", said(&out));
}

#[needs(tracepoints)]
#[test]
fn nobody_listening_is_no_reason_to_fail() {
    let (_folder, file) = place();
    let script = format!(
        "'{}' record -o '{}' --preset sched -- true 2>&-",
        env!("CARGO_BIN_EXE_holdup"),
        file.display()
    );
    done(Command::new("sh").args(["-c", &script]));
    assert!(info(&file)["trace"]["events"].as_u64().unwrap() > 0);
}

/// Start a recorder, and send it a signal once it records: how it ended.
fn ended_by(signal: &str, recorder: &mut Command, file: &Path) -> Output {
    let child = recorder.stderr(Stdio::piped()).spawn().unwrap();
    until("the file", || file.metadata().is_ok_and(|meta| meta.len() > 4096));
    std::thread::sleep(Duration::from_millis(300));
    send(signal, child.id());
    child.wait_with_output().unwrap()
}

/// Send a signal by its name.
pub(crate) fn send(signal: &str, pid: u32) {
    done(Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]));
}

/// The kernel takes seconds to close the events of all calls, and it is the recorder's child that
/// waits for it.
#[needs(tracepoints)]
#[test]
fn who_recorded_has_the_prompt_back_at_once() {
    for round in 0..8 {
        let (_folder, file) = place();
        let mut child =
            recorder(&file).args(["--", "true"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(words.any(|line| line.contains("to see what the recording shows")));
        let said = Instant::now();
        assert!(child.wait().unwrap().success());
        let took = said.elapsed();
        assert!(took < Duration::from_millis(700), "round {round}: {took:?}");
    }
}
