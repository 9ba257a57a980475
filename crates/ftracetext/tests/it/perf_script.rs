//! `perf script` of a recording gives the same events as the recording itself.

use crate::common::{all, assert_same, inflate, output, row};
use holdup_ftracetext::{DialectKind, TextOptions, TextTrace, open_stream};
use holdup_syscalls::{Arch, entry_number};
use holdup_testkit::{corpus, needs};
use holdup_trace::{Capabilities, Pid, QualityCode, Reader};
use std::path::Path;

/// Recordings with every kind of event, with call chains, with syscalls by name, of a lockdep
/// kernel, of one process.
const FILES: &[&str] = &[
    "debian61/kern_mmap_perfg_c8.perf.data.zst",
    "debian61/imb_server_c4.perf.data.zst",
    "debian61/thr_mutex_perf_c8.perf.data.zst",
    "debian61/io_disk_perf_c4.perf.data.zst",
    "lockstat612/ls_kern_mmap_perf_c4.perf.data.zst",
    "funnel/fun_loop_cpu0_w512k_perf_c4.perf.data.zst",
    "host618/host_healthy_n1_proc.perf.data.zst",
    "host618/host_kern_mmap_n4_g.perf.data.zst",
];

/// Read text with a table of syscall numbers, which the text of `syscalls:*` leaves out.
fn read(name: &Path, text: &[u8]) -> TextTrace {
    let options = TextOptions {
        syscall_nr: |machine, name| {
            entry_number(machine.map_or(Arch::X86_64, Arch::from_uname), name)
        },
        ..TextOptions::default()
    };
    options.open_stream(name, text).unwrap_or_else(|e| panic!("{e}"))
}

fn compare(file: &Path, dir: &Path) {
    let data = inflate(file, dir);
    let binary = holdup_perfdata::open(&data).unwrap_or_else(|e| panic!("{e}"));
    let text = output("perf", &["script", "--ns", "-i", data.to_str().unwrap()]);
    let text = read(file, &text);
    let file = file.display().to_string();
    assert_eq!(text.dialect().kind, DialectKind::PerfScript);
    assert_eq!(text.info().clock.resolution_ns, 1);
    let (a, quality) = all(&text, &row);
    let (b, _) = all(&binary, &row);
    assert!(quality.is_empty(), "{file}: {quality:?}");
    assert_eq!(text.event_count(), a.len() as u64);
    assert_same(&file, a, b);
    // The same events occur, and with them all capabilities that text can prove.
    let (t, b) = (&text.info().capabilities, &binary.info().capabilities);
    for ((name, text, _), (_, binary, _)) in t.list().into_iter().zip(b.list()) {
        assert!(!text || binary, "{file}: {name}");
    }
    std::fs::remove_file(data).unwrap();
}

#[needs(perf, corpus)]
#[test]
fn text_and_binary_tell_the_same() {
    let corpus = corpus().join("vm");
    let dir = tempfile::tempdir().unwrap();
    for file in FILES {
        compare(&corpus.join(file), dir.path());
    }
}

#[needs(perf, corpus)]
#[test]
fn text_and_binary_tell_the_same_of_every_recording() {
    let corpus = corpus().join("vm");
    let of = |suffix| crate::common::files(&corpus, suffix);
    let files = Vec::from_iter([".perf.data.zst", ".perf.pipe.data.zst"].into_iter().flat_map(of));
    assert!(!files.is_empty());
    holdup_testkit::in_parallel(files, |file| {
        compare(&file, tempfile::tempdir().unwrap().path());
    });
}

#[needs(perf, corpus)]
#[test]
fn columns_can_be_left_out() {
    let corpus = corpus().join("vm");
    let dir = tempfile::tempdir().unwrap();
    let data = inflate(&corpus.join("debian61/imb_server_c4.perf.data.zst"), dir.path());
    let data = data.to_str().unwrap();
    let read = |fields: &str| {
        let text = output("perf", &["script", "--ns", "-F", fields, "-i", data]);
        open_stream(Path::new(fields), &text[..]).unwrap_or_else(|e| panic!("{e}"))
    };
    let full = read("comm,pid,tid,cpu,time,event,trace");
    let (want, quality) = all(&full, &row);
    assert!(quality.is_empty(), "{quality:?}");
    let pids = |t: &holdup_ftracetext::TextTrace| {
        let (rows, _) = all(t, &|e, _, _| (e.pid != Pid::UNKNOWN).then(|| e.pid.to_string()));
        rows.len()
    };
    assert_eq!(pids(&full), want.len());

    for (fields, keep) in [
        ("comm,tid,cpu,time,event,trace", [true, true]),
        ("tid,cpu,time,event,trace", [true, true]),
        ("pid,tid,cpu,time,event,trace", [true, true]),
        ("comm,tid,time,event,trace", [false, true]),
        ("comm,time,cpu,event,trace", [true, false]),
        ("comm,tid,cpu,misc,time,event,trace", [true, true]),
        ("comm,tid,cpu,time,period,event,trace", [true, true]),
    ] {
        let text = read(fields);
        let (got, quality) = all(&text, &row);
        // Every event of this recording that means something needs its CPU; some need the thread.
        assert_eq!(quality.count(QualityCode::NoCpu) == want.len() as u64, !keep[0], "{fields}");
        assert_eq!(quality.count(QualityCode::NoThread) > 0, !keep[1], "{fields}");
        assert_eq!(text.info().capabilities.switches, keep[0], "{fields}");
        assert_eq!(text.info().capabilities.syscalls.are_all(), keep[0] && keep[1], "{fields}");
        // Blank out the missing columns.
        let blank = |rows: &[String]| -> Vec<String> {
            let cut = |r: &String| {
                let mut w: Vec<&str> = r.splitn(4, ' ').collect();
                (1..=2).filter(|&i| !keep[i - 1]).for_each(|i| w[i] = "-1");
                w.join(" ")
            };
            rows.iter().map(cut).collect()
        };
        assert_same(fields, blank(&got), blank(&want));
    }
    // Without fields the events still count; those that need fields are counted as lacking them.
    let bare = read("comm,tid,cpu,time,event");
    assert_eq!(bare.event_count(), want.len() as u64);
    assert_eq!(bare.quality().count(QualityCode::NoFields), want.len() as u64);
    assert_eq!(bare.info().capabilities, Capabilities::default());
    // Task events are sideband, and not counted.
    let tasks = output("perf", &["script", "--ns", "--show-task-events", "-i", data]);
    let tasks = open_stream(Path::new("tasks"), &tasks[..]).unwrap();
    assert_eq!(tasks.event_count(), want.len() as u64);
    let header = output("perf", &["script", "--ns", "--header", "-i", data]);
    let header = open_stream(Path::new("header"), &header[..]).unwrap();
    let info = header.info();
    assert_eq!(
        (info.cpus_online, info.system_wide, info.arch.as_deref()),
        (Some(4), Some(true), Some("x86_64"))
    );
    assert_eq!(header.event_count(), want.len() as u64);
}
