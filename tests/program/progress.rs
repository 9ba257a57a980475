//! Progress is for people at a terminal who wait: nobody else gets a byte of it.

use crate::support::recording;
use holdup_testkit::needs;
use std::path::Path;
use std::process::{Command, Stdio};

const HOLDUP: &str = env!("CARGO_BIN_EXE_holdup");

/// Run a shell command on a terminal made by script(1); what came to the terminal.
fn on_a_terminal(command: &str) -> String {
    let out = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(out.status.success(), "{command}: {}", out.status);
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn trace() -> String {
    recording("healthy_cpu_threads_c4").display().to_string()
}

/// A trace that takes its time to come, read by `holdup summary` with these options.
fn slowly(options: &str, folder: &Path) -> String {
    let out = folder.join("out");
    format!("(sleep 3; cat {}) | {HOLDUP} summary {options} -o {} -", trace(), out.display())
}

#[needs(script)]
#[test]
fn who_waits_at_a_terminal_sees_progress_and_it_is_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let seen = on_a_terminal(&slowly("", folder.path()));
    assert!(seen.contains("\r\x1b[Kreading"), "{seen:?}");
    assert!(seen.ends_with("\r\x1b[K"), "the line must be gone at the end: {seen:?}");
    assert!(std::fs::metadata(folder.path().join("out")).unwrap().len() > 1000);
}

#[needs(script)]
#[test]
fn the_line_is_gone_before_an_error_is_printed() {
    let seen = on_a_terminal(&format!("(sleep 3; echo nonsense) | {HOLDUP} summary - || true"));
    let (_, error) = seen.rsplit_once("\x1b[K").expect("there was progress");
    assert!(error.starts_with("holdup: -: "), "{seen:?}");
}

#[needs(script)]
#[test]
fn quick_work_quiet_work_and_dumb_terminals_show_none() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    assert_eq!(on_a_terminal(&format!("{HOLDUP} summary -o {out} {}", trace())), "");
    assert_eq!(on_a_terminal(&slowly("-q", folder.path())), "");
    assert_eq!(on_a_terminal(&format!("TERM=dumb; {}", slowly("", folder.path()))), "");
}

#[test]
fn a_pipe_gets_no_byte_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new("sh")
        .args(["-c", &slowly("", folder.path())])
        .env("TERM", "xterm")
        .output()
        .unwrap();
    assert!(out.status.success());
    assert_eq!((out.stdout.as_slice(), out.stderr.as_slice()), (&b""[..], &b""[..]));
}

#[needs(script)]
#[test]
fn many_traces_show_a_bar() {
    let folder = tempfile::tempdir().unwrap();
    let (traces, out) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::create_dir(&traces).unwrap();
    // What stands behind the last section is not read: another content, as much work.
    let trace = std::fs::read(recording("imb_server_c4")).unwrap();
    for i in 0..30 {
        let mut bytes = trace.clone();
        bytes.extend(format!("copy {i}").bytes());
        std::fs::write(traces.join(format!("{i}.data")), bytes).unwrap();
    }
    let command = |more: &str| {
        let (traces, out) = (traces.display(), out.display());
        // Stopped for a while in the middle: how fast the machine is does not matter.
        let fleet = format!("{HOLDUP} fleet {traces} --to {out} --jobs 1 {more} >/dev/null");
        format!("{fleet} & sleep 0.2; kill -STOP $!; sleep 3; kill -CONT $!; wait $!")
    };
    let seen = on_a_terminal(&command(""));
    assert!(seen.contains(" of 30 files, ") && seen.contains(" traces/s, "), "{seen:?}");
    let (_, last) = seen.rsplit_once("\r\x1b[K").expect("the bar is taken away");
    assert!(last.starts_with("holdup: 30 traces read in "), "{seen:?}");
    std::fs::remove_dir_all(&out).unwrap();
    assert_eq!(on_a_terminal(&command("-q")), "");
}
