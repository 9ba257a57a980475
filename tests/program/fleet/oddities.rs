//! What lies among traces, and what is wrong with them.

use super::{Bench, TRACES, code, judged, stderr};
use crate::support::recording;
use holdup_testkit::needs;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

#[test]
fn one_bad_file_never_stops_the_rest() {
    let bench = Bench::with_traces();
    let whole = fs::read(recording("imb_server_c4")).unwrap();
    fs::write(bench.input("cut-header.data"), &whole[..90]).unwrap();
    fs::write(bench.input("cut-middle.data"), &whole[..whole.len() / 2]).unwrap();
    let mut damaged = whole.clone();
    damaged[..8].copy_from_slice(b"\x01\x02\x03\x04\x05\x06\x07\x08");
    fs::write(bench.input("no-magic.data"), damaged).unwrap();
    fs::write(bench.input("empty.data"), "").unwrap();
    fs::write(bench.input("README.md"), "# Not a trace\n").unwrap();
    symlink("nowhere", bench.input("dead")).unwrap();
    symlink(".", bench.input("circle")).unwrap();
    let pipe = bench.input("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    let out = bench.fleet("out", &["--jobs", "2"]);
    assert_eq!(code(&out), 3, "{}", stderr(&out));
    let failed = bench.with_outcome("out", "failed");
    let names = ["in/cut-header.data", "in/dead", "in/empty.data", "in/no-magic.data"];
    assert_eq!(failed, names);
    assert_eq!(bench.with_outcome("out", "no-trace"), ["in/README.md", "in/pipe"]);
    let traces = bench.with_outcome("out", "judged");
    assert_eq!(
        traces.len(),
        TRACES.len() + 1,
        "what is cut in the middle says something: {traces:?}"
    );
    let text = String::from_utf8(out.stdout).unwrap();
    let (_, last) = text.split_once("Could not be read (4)").expect("they come last");
    for (name, why) in names.iter().zip(["", "the target of this link", "the file is empty", ""]) {
        assert!(last.contains(&format!("  {name}: {why}")), "{last}");
    }
    // Whoever was damaged is not read again; what may be fixed is.
    assert_eq!(judged(&bench.fleet("out", &[])), 1, "no-magic.data");
}

#[test]
fn the_same_content_is_judged_once_and_listed_twice() {
    let bench = Bench::with_traces();
    fs::create_dir(bench.input("again")).unwrap();
    fs::copy(recording(TRACES[0]), bench.input("again/a-copy.data")).unwrap();
    let out = bench.fleet("out", &["--jobs", "2"]);
    assert_eq!((code(&out), judged(&out)), (0, TRACES.len()), "{}", stderr(&out));
    let same = bench.with_outcome("out", "same");
    assert_eq!(same, [format!("in/{}.data", TRACES[0])], "the first by path counts");
    assert_eq!(bench.manifest("out")[&same[0]]["same_as"], "in/again/a-copy.data");
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.starts_with("6 traces of "), "{text}");
    assert!(text.contains("1 has the same content as another"), "{text}");
}

#[test]
fn what_was_named_must_be_a_trace() {
    let bench = Bench::with_traces();
    fs::write(bench.path("notes.txt"), "words\n").unwrap();
    let out = bench.run(&["notes.txt", "absent", "in", "--to", "out", "-q"]);
    assert_eq!(code(&out), 3);
    assert_eq!(bench.with_outcome("out", "failed"), ["absent", "notes.txt"]);
    assert_eq!(bench.with_outcome("out", "judged").len(), TRACES.len());
}

#[test]
fn what_has_no_end_is_never_read() {
    let bench = Bench::new();
    assert!(Command::new("mkfifo").arg(bench.input("pipe")).status().unwrap().success());
    for (trace, why) in [
        ("in/pipe", "a pipe, not a file"),
        ("/dev/zero", "a device, not a file"),
        ("in", "this folder is not a trace"),
        ("in/absent", "No such file"),
    ] {
        let out = bench.run(&["--one", trace, "--to", "part.ndjson", "-q"]);
        assert_eq!(code(&out), 3, "{trace}: {}", stderr(&out));
        let line = String::from_utf8(out.stdout).unwrap();
        assert!(line.contains(why), "{line}");
    }
    assert_eq!(code(&bench.run(&["in/pipe", "/dev/zero", "--to", "out", "-q"])), 3);
    assert_eq!(bench.with_outcome("out", "failed"), ["/dev/zero", "in/pipe"]);
}

#[test]
fn the_output_may_lie_among_the_traces() {
    let bench = Bench::with_traces();
    for judged_now in [TRACES.len(), 0] {
        let out = bench.run(&["in", "--to", "in/out"]);
        assert_eq!((code(&out), judged(&out)), (0, judged_now), "{}", stderr(&out));
        assert_eq!(bench.manifest("in/out").len(), TRACES.len());
    }
}

#[test]
fn patterns_choose_and_lists_leave_out_what_is_done() {
    let bench = Bench::with_traces();
    fs::write(bench.input("README.md"), "# Not a trace\n").unwrap();
    let list = |words: &[&str]| {
        let out = bench.run(words);
        assert_eq!(code(&out), 0, "{}", stderr(&out));
        String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list(&["--list", "in/imb*.data"]), ["in/imb_server_c4.data"]);
    assert_eq!(list(&["--list", "in"]).len(), TRACES.len());
    assert_eq!(code(&bench.run(&["in/[x]*", "--to", "none", "-q"])), 3, "no file matches");
    assert_eq!(code(&bench.run(&["in/imb*.data", "--to", "out", "-q"])), 0);
    assert_eq!(list(&["--list", "in", "--to", "out"]).len(), TRACES.len() - 1);
}

#[test]
fn other_thresholds_are_another_judgement() {
    let bench = Bench::with_traces();
    fs::write(bench.path("limits.toml"), "[all]\nmatters_pct = 99\n").unwrap();
    assert_eq!(judged(&bench.fleet("out", &[])), TRACES.len());
    let stricter = bench.fleet("out", &["--thresholds", "limits.toml"]);
    assert_eq!(judged(&stricter), TRACES.len());
    assert_eq!(judged(&bench.fleet("out", &[])), 0, "both are kept");
    assert_eq!(judged(&bench.fleet("out", &["--thresholds", "limits.toml"])), 0);
}

#[test]
fn a_trace_that_changed_is_judged_again() {
    let bench = Bench::with_traces();
    assert_eq!(judged(&bench.fleet("out", &[])), TRACES.len());
    fs::rename(bench.input("imb_server_c4.data"), bench.input("moved.data")).unwrap();
    assert_eq!(judged(&bench.fleet("out", &[])), 0, "known by its content");
    fs::copy(recording("native_ticks"), bench.input("moved.data")).unwrap();
    assert_eq!(judged(&bench.fleet("out", &[])), 1);
}

#[test]
fn mistakes_on_the_command_line_are_told_before_anything_is_read() {
    let bench = Bench::new();
    fs::write(bench.path("file"), "").unwrap();
    for (words, why) in [
        (&["in"][..], "--to"),
        (&["-", "--to", "out"], "standard input"),
        (&["in", "--to", "file"], "is not a folder"),
        (&["--one", "in", "in", "--to", "out"], "takes one trace"),
        (&["in", "--to", "out", "--jobs", "0"], "--jobs"),
    ] {
        let out = bench.run(words);
        assert_eq!(code(&out), 2, "{words:?}");
        assert!(stderr(&out).contains(why), "{words:?}: {}", stderr(&out));
    }
}

#[needs(root)]
#[test]
fn a_folder_that_may_not_be_read_is_named() {
    const NOBODY: u32 = 65534;
    let bench = Bench::with_traces();
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    for name in ["in/secret", "out"] {
        fs::create_dir(bench.path(name)).unwrap();
    }
    allow(&bench.input("secret"), 0o700);
    allow(&bench.path("out"), 0o777);
    allow(&bench.path(""), 0o755);
    let program = bench.path("holdup");
    fs::copy(env!("CARGO_BIN_EXE_holdup"), &program).unwrap();
    let mut command = Command::new(&program);
    command.current_dir(bench.path("")).args(["fleet", "in", "--to", "out", "-q"]);
    let out = command.uid(NOBODY).gid(NOBODY).output().unwrap();
    assert_eq!(code(&out), 3, "{}", stderr(&out));
    assert_eq!(bench.with_outcome("out", "failed"), ["in/secret"]);
    let error = bench.manifest("out")["in/secret"]["error"].clone();
    assert!(error.as_str().unwrap().contains("Permission denied"), "{error}");
    assert_eq!(bench.with_outcome("out", "judged").len(), TRACES.len());
}
