//! What perf recorded and holdup rewrote is read the same.

use crate::common::{Recorded, perf, perf_of_pipe, record};
use holdup_needs::needs;
use holdup_record::file::Writer;
use std::fs::File;
use std::path::Path;

/// A recording of perf, and its output of `perf script`.
fn recorded(folder: &Path, options: &[&str]) -> (Recorded, (String, String)) {
    let file = folder.join("theirs");
    record(&file, options);
    let printed = perf(&["script"], &file);
    assert!(printed.0.lines().count() > 10, "{}", printed.1);
    (Recorded::read(&file, 0), printed)
}

#[needs(perf, tracepoints)]
#[test]
fn perf_reads_a_file_as_its_own_finished_or_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (recorded, printed) = recorded(folder.path(), &[]);
    for compression in [None, Some(1), Some(19)] {
        let mut description = recorded.description();
        description.compression = compression;
        let ours = folder.path().join("ours");
        let mut writer = Writer::create(&ours, &description).unwrap();
        recorded.write(&mut writer);
        writer.round().unwrap();
        assert_eq!(perf(&["script"], &ours), printed, "killed, compression {compression:?}");
        // Killed while it wrote.
        writer.data(&recorded.data[..recorded.data.len() / 2], &[]).unwrap();
        assert_eq!(perf(&["script"], &ours), printed, "cut, compression {compression:?}");

        let mut writer = Writer::create(&ours, &description).unwrap();
        recorded.write(&mut writer);
        let written = writer.finish().unwrap();
        assert_eq!(perf(&["script"], &ours), printed, "compression {compression:?}");
        assert_eq!(written.tally.samples, printed.0.lines().count() as u64);
        assert_eq!(written.bytes, ours.metadata().unwrap().len());
        assert!(folder.path().join("ours.old").exists(), "what was there is kept");
    }
}

#[needs(perf, tracepoints)]
#[test]
fn perf_reads_a_pipe_as_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (recorded, printed) = recorded(folder.path(), &[]);
    for compression in [None, Some(1)] {
        let mut description = recorded.description();
        description.compression = compression;
        let ours = folder.path().join("ours");
        let pipe = Box::new(File::create(&ours).unwrap());
        let mut writer = Writer::pipe(pipe, &description).unwrap();
        recorded.write(&mut writer);
        writer.finish().unwrap();
        assert_eq!(perf_of_pipe(&["script"], &ours), printed, "compression {compression:?}");
        // perf sched reads no pipe, not even one of perf's own.
        let report = ["report", "--header", "--stdio"];
        let (header, _) = perf_of_pipe(&report, &ours);
        assert!(header.contains("# perf version : holdup "), "{header}");
        assert!(header.contains("of event 'sched:sched_waking'"), "{header}");
    }
}

/// The lines of `perf report --header-only -I` about the machine, without values that change from
/// one moment to the next.
fn machine(file: &Path) -> Vec<String> {
    const RECORDING: [&str; 12] = [
        "captured on",
        "header version",
        "data offset",
        "data size",
        "feat offset",
        "perf version",
        "cmdline",
        "event :",
        "time of",
        "sample duration",
        "missing features",
        "clock",
    ];
    let (text, _) = perf(&["report", "--header-only", "-I"], file);
    let of_machine = |line: &&str| !RECORDING.iter().any(|r| line[1..].trim().starts_with(r));
    let without_free = |line: &str| line.split(", free =").next().unwrap_or_default().to_owned();
    text.lines().filter(|l| l.starts_with('#')).filter(of_machine).map(without_free).collect()
}

#[needs(perf, tracepoints)]
#[test]
fn the_header_is_that_of_perf() {
    let folder = tempfile::tempdir().unwrap();
    let (recorded, _) = recorded(folder.path(), &[]);
    let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
    let mut writer = Writer::create(&ours, &recorded.description()).unwrap();
    recorded.write(&mut writer);
    let expected = machine(&theirs);
    assert!(expected.iter().any(|l| l.contains("nrcpus online")), "{expected:?}");
    assert_eq!(machine(&ours), expected, "while it is written");
    writer.finish().unwrap();
    assert_eq!(machine(&ours), expected);
    let all = ["report", "--header-only", "-I"];
    let (text, said) = perf(&all, &ours);
    for line in ["# perf version : holdup 0.1.0", "# cmdline : holdup record -- sleep 1 "] {
        assert!(text.lines().any(|l| l == line), "{line:?} is not in {text}{said}");
    }
    let of = |text: &str, what: &str| {
        text.lines().filter(|l| l.contains(what)).map(str::to_owned).collect::<Vec<_>>()
    };
    for what in ["# event :", "# time of", "# sample duration"] {
        assert_eq!(of(&text, what), of(&perf(&all, &theirs).0, what));
    }
    let kernel = of(&perf(&["buildid-list"], &theirs).0, "[kernel.kallsyms]");
    assert_eq!(of(&perf(&["buildid-list"], &ours).0, "[kernel.kallsyms]"), kernel);
}

/// Newer kernels have a longer `perf_event_attr` than perf 6.1 knows.
#[needs(perf, tracepoints)]
#[test]
fn attributes_of_a_newer_kernel_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (_, printed) = recorded(folder.path(), &[]);
    let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
    let recorded = Recorded::read(&theirs, 16);
    let mut writer = Writer::create(&ours, &recorded.description()).unwrap();
    recorded.write(&mut writer);
    writer.finish().unwrap();
    assert_eq!(perf(&["script"], &ours), printed);
}
