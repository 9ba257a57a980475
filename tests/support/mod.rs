//! Shared code of the tests of the binary: runs holdup, and finds the recordings.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod profiles;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file below `fixtures/`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}

/// The perf.data of a scenario below `fixtures/`.
pub(crate) fn recording(scenario: &str) -> PathBuf {
    fixture(scenario).join("perf.data")
}

/// A command that runs holdup in the repository's root, so that a relative path prints the same on
/// every machine; it does not see the caller's colour settings and terminal.
pub(crate) fn holdup() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command
        .current_dir(root())
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("CLICOLOR")
        .stdin(Stdio::null());
    command
}

/// Run holdup to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    holdup().args(args).output().expect("holdup runs")
}

/// The output of a run, which must end with exit code 0.
#[track_caller]
pub(crate) fn stdout(args: &[&str]) -> String {
    let out = run(args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("UTF-8")
}

/// The files below a folder whose names end with one of `ends`, except build output and hidden
/// files.
pub(crate) fn files_below(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut todo) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry of it");
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                todo.push(path);
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The verbs, in the order of `holdup --help`.
pub(crate) fn verbs() -> Vec<String> {
    let help = stdout(&["--help"]);
    let lists = help.lines().skip_while(|l| !l.starts_with("Usage:")).skip(1);
    let lines = lists.take_while(|l| *l != "Options:");
    let first = |l: &str| l.split_whitespace().next().unwrap().to_owned();
    lines.filter(|l| l.starts_with("  ") && !l.starts_with("   ")).map(first).collect()
}

/// The text with each printed command on one line: where a command is folded depends on the length
/// of its paths, and so on the location of the checkout.
pub(crate) fn commands_unfolded(text: &str) -> String {
    text.replace(" \\\n    ", " ")
}

/// The text between the two marks in a document, such as `docs/models.md`, must be `made`;
/// `HOLDUP_BLESS=1` writes it.
#[track_caller]
pub(crate) fn is_written(document: &str, (begin, end): (&str, &str), made: &str) {
    let path = root().join(document);
    let text = std::fs::read_to_string(&path).expect("the document");
    let (before, rest) = text.split_once(begin).expect("its begin");
    let (old, after) = rest.split_once(end).expect("its end");
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{made}{end}{after}")).expect("writable");
    } else {
        assert_eq!(old, made, "{document}: HOLDUP_BLESS=1 writes it: {begin}");
    }
}
