//! Folders of raw ring-buffer dumps.

use crate::support::writer::{BufferSpec, FileSpec};
use holdup_testkit::{corpus, needs};
use holdup_trace::{QualityCode, Reader};
use holdup_tracedat::open_raw_dir;
use std::fs;
use std::path::Path;

const WAKEUP: &str = "name: sched_wakeup\nID: 70\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

fn put(dir: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn every_layout_of_folder_and_machine() {
    for big in [false, true] {
        for (cpu0, cpu1, events) in [
            ("traces/cpu0", "traces/cpu1", "formats"),
            ("cpu0", "cpu1", "events"),
            ("per_cpu/cpu0/trace_pipe_raw", "per_cpu/cpu1/trace_pipe_raw", "events"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let s = FileSpec { big, ..FileSpec::new(7) };
            put(
                dir.path(),
                cpu0,
                [
                    s.page(50).wakeup(1, 2, 3).build(),
                    s.page(90).after_loss(Some(7)).wakeup(0, 2, 4).build(),
                ]
                .concat(),
            );
            put(dir.path(), cpu1, s.page(60).wakeup(1, 2, 3).build());
            put(dir.path(), &format!("{events}/sched/sched_wakeup/format"), WAKEUP);
            put(dir.path(), "trace_clock", "local [mono] boot\n");
            put(dir.path(), "saved_cmdlines", "2 waker\n");
            let dat = open_raw_dir(dir.path()).unwrap();
            let (events, quality) = crate::support::events(&dat, |_, e, _| (e.ts, e.cpu.0));
            assert_eq!(events, [(51, 0), (61, 1), (90, 0), (90, 0)], "big={big}");
            assert_eq!(quality.count(QualityCode::LostEvents), 7);
            let info = dat.info();
            assert_eq!(
                (info.clock.name.as_str(), info.cpus_online, info.tasks.len()),
                ("mono", Some(2), 1)
            );
            assert!(info.capabilities.wakeups);
        }
    }
}

#[test]
fn folders_without_dumps_say_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let error = |dir: &Path| open_raw_dir(dir).err().expect("refused").to_string();
    assert!(error(dir.path()).contains("traces/cpu0"));
    put(dir.path(), "cpu0", "");
    assert!(error(dir.path()).contains("formats/SYSTEM/NAME/format"));
    assert!(error(&dir.path().join("nowhere")).contains("No such file"));
}

/// Dumps published by others: trace-cmd must print the same for the same pages in a trace.dat.
#[needs(trace_cmd, corpus)]
#[test]
fn published_dumps_read_as_trace_cmd_reads_them() {
    let corpus = corpus();
    let mut seen = 0;
    for tar in crate::support::files(
        &corpus.join("public/google+schedviz/server"),
        &["test.tar.gz", "test_no_metadata.tar.gz"],
    ) {
        let dir = tempfile::tempdir().unwrap();
        let done = std::process::Command::new("tar")
            .arg("xzf")
            .arg(&tar)
            .arg("-C")
            .arg(dir.path())
            .status()
            .unwrap();
        assert!(done.success());
        let dat = open_raw_dir(dir.path()).unwrap();
        let mut s = FileSpec::new(6);
        let formats = crate::support::files(&dir.path().join("formats"), &["format"]);
        s.formats = Some(
            formats.iter().map(|f| ("sched".into(), fs::read_to_string(f).unwrap())).collect(),
        );
        s.buffers.push(BufferSpec {
            name: "",
            cpus: vec![(0, fs::read(dir.path().join("traces/cpu0")).unwrap())],
        });
        let file = dir.path().join("trace.dat");
        fs::write(&file, s.build()).unwrap();
        let (lines, fields) = crate::support::compare(&dat, &file).unwrap();
        println!("ok    {}: {lines} lines, {fields} with fields", tar.display());
        seen += lines;
    }
    assert!(seen > 20_000, "{seen}");
}
