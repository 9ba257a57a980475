//! `holdup record` and `holdup run`, recording for real.

#[path = "../support/mod.rs"]
mod support;

mod files;
mod flight;
mod lab;
mod names;
mod outcomes;
mod perf;
mod survives;
mod whose;

use crate::support::holdup;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder, and a file in it that is not there yet.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    (folder, file)
}

/// `holdup record -o FILE`, to be completed.
fn recorder(file: &Path) -> Command {
    let mut recorder = holdup();
    recorder.args(["record", "-o"]).arg(file);
    recorder
}

/// Run it, and see that it does not say no.
fn done(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", said(&out));
    out
}

/// Standard error as text.
fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Standard output of a tool that succeeds, of a recording.
fn of(tool: &[&str], file: &Path) -> String {
    let out = done(Command::new(tool[0]).args(&tool[1..]).arg("-i").arg(file));
    String::from_utf8(out.stdout).unwrap()
}

/// What `holdup info --format json` says of a recording.
fn info(file: &Path) -> serde_json::Value {
    let out = done(holdup().args(["info", "--full", "--format", "json"]).arg(file));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Wait until something holds. A machine that is busy may take long; one that never gets there
/// has failed.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
