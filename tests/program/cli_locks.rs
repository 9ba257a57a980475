//! `holdup locks` from outside.

use crate::support::{recording, run, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn fails(args: &[&str], code: i32, words: &str) {
    let out = run(args);
    let message = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(code), 0), "{args:?}: {message}");
    assert!(message.contains(words), "{message}");
}

fn fixture() -> String {
    recording("healthy_cpu_threads_c4").display().to_string()
}

fn dump(dir: &Path, name: &str, waits: u32, total: &str) -> PathBuf {
    let path = dir.join(name);
    let text = format!(
        "lock_stat version 0.4\n--\n class name con-bounces\n--\n\n\
            \x20 &mm->mmap_lock-W: 1 {waits} 1.00 9.00 {total} 0.00 3 40 0.10 7.00 80.00 2.00\n\
            \x20 --\n   &mm->mmap_lock {waits} [<0>] vm_mmap_pgoff+0x6c/0x190\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_trace_is_grouped_filtered_and_viewed() {
    let trace = fixture();
    for by in ["lock", "class", "caller", "type", "task"] {
        let value: Value =
            serde_json::from_str(&stdout(&["locks", "--by", by, "-j", &trace])).unwrap();
        assert_eq!(value["command"], "locks");
        assert!(value["rows"].is_array());
        for view in ["holdup", "aix", "perf", "solaris", "lock_stat"] {
            stdout(&["locks", "--by", by, "--view", view, &trace]);
        }
    }
    stdout(&[
        "locks",
        "-Y",
        "rwsem,mutex",
        "-L",
        "0xff1100007d898970,tasklist_lock",
        "-s",
        "wait_max",
        &trace,
    ]);
    assert!(
        stdout(&["locks", &trace]).contains("note: the kernel reports neither waits for an rwsem")
    );
    assert!(!stdout(&["locks", "-q", &trace]).contains("note:"));
}

#[test]
fn a_pair_of_dumps_is_an_interval() {
    let dir = tempfile::tempdir().unwrap();
    let before = dump(dir.path(), "1", 3, "20.00").display().to_string();
    let after = dump(dir.path(), "2", 10, "50.00").display().to_string();
    let value: Value =
        serde_json::from_str(&stdout(&["locks", "-j", "--before", &before, &after])).unwrap();
    let row = &value["rows"][0];
    assert_eq!(
        (&row["name"], &row["contended"], &row["wait_total_ns"]),
        (&"&mm->mmap_lock-W".into(), &7.into(), &30_000.into())
    );
    assert_eq!(row["wait_min_ns"], Value::Null);
    assert_eq!(value["trace"].as_object().unwrap().keys().collect::<Vec<_>>(), ["format", "path"]);
    let view = stdout(&["locks", "-q", "--view", "lock_stat", &after]);
    assert!(view.contains("waittime-total") && view.contains("50.00"), "{view}");
    assert!(
        stdout(&["locks", "--before", &after, &before])
            .contains("note: the counters of /proc/lock_stat were reset")
    );
    assert!(stdout(&["locks", "--by", "caller", &after]).contains("vm_mmap_pgoff+0x6c/0x190"));
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let stat = dump(dir.path(), "1", 3, "20.00").display().to_string();
    let odd = dir.path().join("odd");
    std::fs::write(&odd, "lock_stat version 0.9\n").unwrap();
    fails(&["locks", "-Y", "spin", &fixture()], 2, "'spin' is not a type of lock");
    fails(&["locks", "-s", "nonsense", &fixture()], 2, "nonsense");
    fails(&["locks", "--view", "aix", "-j", &fixture()], 2, "--view changes text output only");
    fails(&["locks", "--before", &stat, &fixture()], 2, "is not a dump of /proc/lock_stat");
    fails(&["locks", "--by", "task", &stat], 2, "--by: a dump");
    fails(&["locks", "--kallsyms", &stat, &fixture()], 2, "no symbols");
    fails(&["locks", &odd.display().to_string()], 3, "version 0.9");
}
