//! `holdup doctor` as somebody who may record, and as those who may not: each is told what stands
//! in the way and the way out, in an answer, not in a crash.
#![allow(unsafe_code, reason = "a seccomp filter is set by a system call")]

use crate::support::holdup;
use holdup_testkit::needs;
use serde_json::Value;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The user and the group that nobody is.
const NOBODY: u32 = 65534;

/// The program where everybody can run it: the build folder may be out of others' sight.
fn public() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("holdup");
    fs::copy(env!("CARGO_BIN_EXE_holdup"), &path).unwrap();
    (folder, path)
}

/// What it prints, which must be an answer.
#[track_caller]
fn answer(out: &Output, code: i32) -> String {
    let text = String::from_utf8(out.stdout.clone()).unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{text}{errors}");
    assert_eq!(errors, "");
    text
}

/// The row of one thing in the JSON.
#[track_caller]
fn row<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let rows = answer["rows"].as_array().unwrap();
    rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no {name}: {answer:#}"))
}

/// `doctor` started by `before` in a shell, as text and as JSON; it must end with `code`.
#[track_caller]
fn doctor(before: &str, code: i32) -> (String, Value) {
    let run = |options: &str| {
        let mut shell = Command::new("sh");
        let script = format!("{before} \"$0\" doctor {options}");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_holdup")]);
        answer(&shell.output().unwrap(), code)
    };
    let json = serde_json::from_str(&run("--format json")).unwrap();
    (run(""), json)
}

#[needs(tracepoints)]
#[test]
fn who_may_record_is_told_so() {
    let (text, json) = doctor("exec", 0);
    assert!(text.starts_with("holdup record works on this host.\nOK: perf-events, "));
    assert_eq!(json["can_record"], true);
    assert_eq!(row(&json, "recording")["state"], "ok");
    assert_eq!(row(&json, "tracefs")["costs"], Value::Null);
}

#[needs(root)]
#[test]
fn an_ordinary_user_is_told_what_is_missing_and_how_to_get_it() {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse().is_ok_and(|level: i32| level < 0) {
        // This host lets everybody record.
        return;
    }
    let (_folder, program) = public();
    let out = Command::new(&program).arg("doctor").uid(NOBODY).gid(NOBODY).output().unwrap();
    let text = answer(&out, 3);
    assert!(text.starts_with("holdup record does not work on this host.\n"), "{text}");
    assert!(text.contains("permission (missing)\n"), "{text}");
    assert!(text.contains("  costs    nothing can be recorded\n  way out  "), "{text}");
    // Who records without asking before learns the same.
    let mut record = Command::new(&program);
    record.args(["record", "-o", "/dev/null", "--", "true"]).uid(NOBODY).gid(NOBODY);
    let out = record.output().unwrap();
    let words = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(3), "{words}");
    assert!(words.contains("\n  way out: ") && !words.contains("panicked"), "{words}");
}

#[needs(unshare)]
#[test]
fn root_of_a_user_namespace_is_told_that_it_is_none() {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse().is_ok_and(|level: i32| level < 0) {
        return;
    }
    let (text, json) = doctor("exec unshare -U -r", 3);
    assert_eq!(json["can_record"], false);
    let permission = row(&json, "permission");
    assert_eq!(
        (&permission["state"], &permission["stops_recording"]),
        (&"missing".into(), &true.into())
    );
    assert!(permission["found"].as_str().unwrap().contains("user namespace"), "{permission}");
    assert!(text.contains("  way out  record outside the user namespace"), "{text}");
}

#[needs(root, unshare)]
#[test]
fn without_tracefs_the_command_that_mounts_it_is_printed() {
    let unmount = "unshare -m sh -c 'for m in $(awk \"/ (tracefs|debugfs) /{print \\$2}\" \
                   /proc/mounts); do umount -l $m 2>/dev/null; done; exec \"$0\" \"$@\"'";
    let (text, json) = doctor(unmount, 3);
    let tracefs = row(&json, "tracefs");
    assert_eq!(tracefs["state"], "missing", "{text}");
    assert!(tracefs["found"].as_str().unwrap().starts_with("tracefs is not mounted"), "{text}");
    assert!(!tracefs["ways_out"].as_array().unwrap().is_empty(), "{text}");
    assert_eq!(row(&json, "recording")["state"], "unknown");
}

#[needs(tracepoints)]
#[test]
fn too_few_open_files_are_counted() {
    let (text, json) = doctor("ulimit -n 100; exec", 3);
    let files = row(&json, "open-files");
    assert_eq!(files["state"], "missing", "{text}");
    let found = files["found"].as_str().unwrap();
    assert!(found.starts_with("this process may have 100 files open, and a recording needs "));
    assert!(text.contains("ulimit -n "), "{text}");
}

#[needs(tracepoints, unshare)]
#[test]
fn in_a_pid_namespace_it_says_that_threads_outside_have_no_number() {
    let (text, json) = doctor("unshare -p -f --mount-proc", 0);
    assert!(
        text.starts_with("holdup record works here, but in its recordings most threads"),
        "{text}"
    );
    let threads = row(&json, "threads");
    assert_eq!(threads["state"], "limited", "{text}");
    assert!(threads["found"].as_str().unwrap().contains("records them as thread 0"), "{text}");
}

/// A filter that answers EPERM to `perf_event_open`, as that of most containers does, and lets
/// everything else pass.
fn refuse_perf_event_open() -> io::Result<()> {
    const CALL: u32 = libc::SYS_perf_event_open as u32;
    let step =
        |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    // The number of the call stands first in what the filter sees (`struct seccomp_data`).
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, CALL, 0, 1),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let done = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn a_seccomp_filter_is_recognised() {
    let mut doctor = holdup();
    doctor.args(["doctor", "-j"]);
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe { doctor.pre_exec(refuse_perf_event_open) };
    let out = match doctor.output() {
        Ok(out) => out,
        // A kernel without filters, or a sandbox that allows no more of them.
        Err(error) => return eprintln!("no filter can be set: {error}"),
    };
    let json: Value = serde_json::from_str(&answer(&out, 3)).unwrap();
    let call = row(&json, "perf-events");
    assert_eq!(call["found"], "a seccomp filter refuses the call perf_event_open (EPERM)");
    assert_eq!(call["stops_recording"], true);
}

#[test]
fn it_has_no_table_to_write_as_csv() {
    let out = crate::support::run(&["doctor", "--format", "csv"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("use text or json"));
}
