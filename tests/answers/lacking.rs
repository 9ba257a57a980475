//! Text of perf script with columns left out: the report says what is missing and which option
//! prints it, and judges nothing that rests on it.

use crate::support::stdout;
use holdup_testkit::{corpus, needs};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// perf script's text of eight threads that keep four CPUs busy, with the columns asked for.
fn text(dir: &Path, cpu: bool, fields: bool) -> PathBuf {
    let mut text = String::from("# captured on    : Sat\n# nrcpus online : 4\n#\n");
    for ms in 0..400u32 {
        for at in 0..4u32 {
            let (prev, next) = (100 + 2 * at + ms % 2, 101 + 2 * at - ms % 2);
            let column = if cpu { format!(" [{at:03}]") } else { String::new() };
            let time = format!("10.{:06}", ms * 1000 + at * 10);
            let switch = format!(
                "prev_comm=w prev_pid={prev} prev_prio=120 prev_state=R ==> next_comm=w \
                 next_pid={next} next_prio=120"
            );
            let runtime = format!("comm=w pid={prev} runtime=1000000 [ns]");
            for (name, body) in [("sched_switch", switch), ("sched_stat_runtime", runtime)] {
                let body = if fields { body.as_str() } else { "" };
                writeln!(text, "{:>16} {prev:>5}{column} {time}: sched:{name}: {body}", "w")
                    .unwrap();
            }
        }
    }
    let path = dir.join(format!("{cpu}-{fields}.txt"));
    std::fs::write(&path, text).unwrap();
    path
}

/// The report; `None` for a file that is refused. A verdict without evidence has an exit code of
/// its own.
fn diagnose(path: &Path) -> Option<Value> {
    let out = crate::support::run(&["diagnose", "--json", path.to_str().unwrap()]);
    serde_json::from_slice(&out.stdout).ok()
}

#[test]
fn text_without_the_cpu_is_not_judged_and_names_the_option_that_prints_it() {
    let dir = tempfile::tempdir().unwrap();
    for (cpu, fields, code, flag) in
        [(false, true, "no-cpu", "-F +cpu"), (true, false, "no-fields", "-F +trace")]
    {
        let path = text(dir.path(), cpu, fields);
        let report = diagnose(&path).unwrap();
        let verdict = &report["verdict"];
        assert_eq!(verdict["class"], "not-enough-evidence", "{report}");
        assert!(verdict["summary"].as_str().unwrap().contains(flag), "{verdict}");
        let quality = report["quality"].as_array().unwrap();
        let found = quality.iter().find(|q| q["code"] == code).expect("it is counted");
        assert_eq!(found["count"], 3200, "{found}");
        let info = stdout(&["info", path.to_str().unwrap()]);
        assert!(!info.contains("  yes  "), "{info}");
        assert!(info.contains(flag), "{info}");
        let summary = stdout(&["summary", path.to_str().unwrap()]);
        let switches = summary.lines().skip_while(|l| !l.contains("cswch/s")).nth(1).unwrap();
        assert!(switches.trim_start().starts_with("n/a"), "{summary}");
    }
    let path = text(dir.path(), true, true);
    let verdict = &diagnose(&path).unwrap()["verdict"];
    assert_ne!(verdict["class"], "not-enough-evidence", "{verdict}");
}

#[test]
fn a_trace_whose_events_do_not_matter_here_is_not_called_empty() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.txt");
    let line =
        |us| format!("          app-123   [002]    50.{us:06}: cpu_frequency: state=1 cpu_id=2\n");
    std::fs::write(&path, line(1) + &line(900)).unwrap();
    let report = diagnose(&path).unwrap();
    assert_eq!(report["trace"]["cpus"], 1);
    let summary = report["verdict"]["summary"].as_str().unwrap();
    assert!(summary.contains("without scheduler events"), "{summary}");
}

#[test]
fn a_dump_of_lock_stat_points_to_the_verb_that_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock_stat");
    std::fs::write(&path, "lock_stat version 0.4\n-----\n").unwrap();
    for verb in ["info", "summary", "diagnose"] {
        let out = crate::support::run(&[verb, path.to_str().unwrap()]);
        let says = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(3), "{says}");
        assert!(says.contains("`holdup locks FILE`"), "{says}");
    }
}

/// Files other people published, beside the labelled corpus.
fn public() -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![corpus().join("public")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

#[needs(corpus)]
#[test]
fn what_is_said_of_other_peoples_files_is_true() {
    let mut read = 0;
    // Those of babeltrace are there for what is wrong with them.
    for path in public().iter().filter(|path| !path.to_str().unwrap().contains("babeltrace")) {
        let name = path.to_str().unwrap();
        let Some(report) = diagnose(path) else { continue };
        read += 1;
        let count = |code: &str| {
            let quality = report["quality"].as_array().unwrap();
            quality.iter().find(|q| q["code"] == code).map_or(0, |q| q["count"].as_u64().unwrap())
        };
        let summary = report["verdict"]["summary"].as_str().unwrap();
        if report["trace"]["events"] != 0 {
            assert!(!summary.contains("contains no events"), "{name}");
        }
        // None of them is cut. One recorder had numbers of its own for two kinds of records.
        assert_eq!(count("truncated"), 0, "{name}");
        let odd = if name.ends_with("piped.host-3.2") { 2 } else { 0 };
        assert_eq!(count("bad-records"), odd, "{name}");
    }
    assert!(read >= 60, "{read}");
}
