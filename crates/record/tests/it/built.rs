//! Files written from descriptions made by hand, read back by holdup's own reader.

use holdup_perfdata::format::{flag, kind, record, sample};
use holdup_perfdata::{PerfData, glance, open, open_stream};
use holdup_record::file::{
    Clock, Description, Error, Event, Running, Symbols, Target, TracingData, Writer,
};
use holdup_trace::{QualityCode, Reader, Runtimes, Tid, What, merge};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

const TYPE: u64 = sample::IDENTIFIER
    | sample::IP
    | sample::TID
    | sample::TIME
    | sample::CPU
    | sample::PERIOD
    | sample::RAW;

/// Id of the tracepoint in the folder made by [`tracefs`], and of the event.
const SWITCH: u16 = 5;
const ID: u64 = 100;

fn attr() -> Vec<u8> {
    let mut a = Vec::new();
    a.extend(kind::TRACEPOINT.to_ne_bytes());
    a.extend(136u32.to_ne_bytes());
    for word in [SWITCH.into(), 1, TYPE, 1 << 2, flag::SAMPLE_ID_ALL] {
        a.extend(u64::to_ne_bytes(word));
    }
    a.resize(136, 0);
    a
}

/// A record of a switch from thread `prev` to `next`.
fn switch(time: u64, prev: u32, next: u32) -> Vec<u8> {
    let mut raw = vec![0; 64];
    raw[..2].copy_from_slice(&SWITCH.to_ne_bytes());
    raw[8..12].copy_from_slice(b"prev");
    raw[24..28].copy_from_slice(&prev.to_ne_bytes());
    raw[40..44].copy_from_slice(b"next");
    raw[56..60].copy_from_slice(&next.to_ne_bytes());
    let mut b = Vec::new();
    b.extend(record::SAMPLE.to_ne_bytes());
    b.extend([1, 0, 0, 0]);
    for word in [ID, 0xffff_ffff_8100_0010, u64::from(prev) * 0x1_0000_0001, time, 0, 1] {
        b.extend(word.to_ne_bytes());
    }
    b.extend(68u32.to_ne_bytes());
    b.extend(raw);
    b.resize(b.len().next_multiple_of(8), 0);
    let size = b.len() as u16;
    b[6..8].copy_from_slice(&size.to_ne_bytes());
    b
}

/// A folder like tracefs.
fn tracefs(folder: &Path) {
    let event = folder.join("events/sched/sched_switch");
    fs::create_dir_all(&event).unwrap();
    let format = "name: sched_switch\nID: 5\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
        \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";
    fs::write(event.join("format"), format).unwrap();
    fs::write(folder.join("saved_cmdlines"), "4711 saved\n").unwrap();
    fs::write(folder.join("kallsyms"), "ffffffff81000000 T _text\nffffffff82000000 T _etext\n")
        .unwrap();
}

fn description(folder: &Path) -> Description {
    tracefs(folder);
    let me = Target::Processes(vec![std::process::id()]);
    Description {
        events: vec![Event::new("sched:sched_switch", &attr(), vec![ID])],
        command: vec!["holdup".into(), "record".into()],
        clock: Some(Clock { id: 1, resolution: 1, wall: 1_700_000_000_000_000_000, time: 5 }),
        tracing: TracingData::read(folder, ["sched:sched_switch"]).unwrap(),
        runtimes: Runtimes::default(),
        symbols: Symbols::read(&folder.join("kallsyms")),
        running: Running::read(Path::new("/proc"), me, true),
        compression: None,
    }
}

/// Times of the switches.
fn switches(file: &PerfData) -> Vec<u64> {
    let events = merge::events(file).map(|e| e.unwrap());
    events.filter(|e| matches!(e.what, What::Switch { .. })).map(|e| e.ts).collect()
}

/// Three rounds of two switches each, cut in the middle of records.
fn write(writer: &mut Writer) {
    for round in 1..=3 {
        let t = 1000 * round;
        writer.data(&switch(t, 7, 8), &switch(t + 1, 8, 7)).unwrap();
        writer.round().unwrap();
    }
}

const WRITTEN: [u64; 6] = [1000, 1001, 2000, 2001, 3000, 3001];

#[test]
fn what_is_described_is_read_back_from_files_and_pipes() {
    let folder = tempfile::tempdir().unwrap();
    for compression in [None, Some(3)] {
        let mut description = description(folder.path());
        description.compression = compression;
        let (path, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        let mut writer = Writer::create(&path, &description).unwrap();
        write(&mut writer);
        let written = writer.finish().unwrap();
        assert_eq!((written.tally.samples, written.tally.span), (6, Some((1000, 3001))));
        let mut writer =
            Writer::pipe(Box::new(File::create(&pipe).unwrap()), &description).unwrap();
        write(&mut writer);
        writer.finish().unwrap();

        let file = open(&path).unwrap();
        let pipe = open_stream(Path::new("-"), File::open(&pipe).unwrap()).unwrap();
        for read in [&file, &pipe] {
            assert_eq!(switches(read), WRITTEN);
            let info = read.info();
            let version = concat!("holdup ", env!("CARGO_PKG_VERSION"));
            assert_eq!(info.recorder.as_deref(), Some(version));
            assert_eq!(info.cmdline.as_deref(), Some("holdup record"));
            assert_eq!(info.events[0].name, "sched:sched_switch");
            assert_eq!(info.clock.name, "CLOCK_MONOTONIC");
            assert_eq!(info.system_wide, Some(false));
            let named = |tid: u32| info.tasks.iter().any(|t| t.tid == Tid(tid));
            assert!(named(std::process::id()) && named(4711), "{:?}", info.tasks);
            assert_eq!(read.quality().count(QualityCode::Truncated), 0);
            assert_eq!(read.quality().count(QualityCode::BadRecords), 0);
        }
        // perf cannot skip symbols in a pipe.
        assert!(!file.info().symbols.is_empty() && pipe.info().symbols.is_empty());
        let quick = glance(&path).unwrap();
        assert!(quick.all_tasks);
        assert_eq!(quick.info.span, Some((1000, 3001)));
    }
}

/// What kill -9 may leave: the last round is in the header, and part of the next data is there.
#[test]
fn a_file_that_ends_anywhere_is_read_to_its_last_whole_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut writer = Writer::create(&path, &description(folder.path())).unwrap();
    let begun = writer.bytes() as usize;
    write(&mut writer);
    let behind = writer.bytes() as usize;
    writer.data(&switch(4000, 7, 8), &[]).unwrap();
    writer.data(&switch(4001, 8, 7), &[]).unwrap();
    let bytes = fs::read(&path).unwrap();
    let size = (bytes.len() - behind) / 2;
    for n in behind..=bytes.len() {
        let cut = open_stream(Path::new("-"), &bytes[..n]).unwrap();
        let more = [4000, 4001];
        let expected = [&WRITTEN[..], &more[..(n - behind) / size]].concat();
        assert_eq!(switches(&cut), expected, "{n} of {} bytes", bytes.len());
        assert!(cut.quality().count(QualityCode::Truncated) > 0, "it says that it was cut");
        assert!(cut.info().recorder.is_some());
        assert!(
            cut.info()
                .extra
                .iter()
                .any(|(what, how)| what == "recording" && how.contains("was not finished"))
        );
    }
    // Cut even further, which kill does not do: then there is no table, and still no error.
    for n in begun..behind {
        assert!(open_stream(Path::new("-"), &bytes[..n]).is_ok(), "{n}");
    }
}

#[test]
fn a_file_that_was_there_is_kept_and_what_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let description = description(folder.path());
    let path = folder.path().join("file");
    fs::write(&path, "precious").unwrap();
    Writer::create(&path, &description).unwrap().finish().unwrap();
    assert_eq!(fs::read(folder.path().join("file.old")).unwrap(), b"precious");
    assert!(switches(&open(&path).unwrap()).is_empty());

    let refused = |path: &str| Writer::create(Path::new(path), &description).err().unwrap();
    assert!(matches!(refused("/dev/null"), Error::NoFile { .. }));
    let said = refused("/dev/null").to_string();
    assert!(said.contains("/dev/null: is not a regular file") && said.contains("-o -"), "{said}");
    assert!(matches!(refused("/"), Error::Uncreated { .. }));
    let nowhere = refused("/nowhere/file").to_string();
    assert!(nowhere.contains("/nowhere/file: cannot be written"), "{nowhere}");
}

#[test]
fn events_that_do_not_fit_into_one_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut description = description(folder.path());
    let mut longer = attr();
    longer.push(1);
    description.events.push(Event::new("cycles", &longer, vec![ID + 1]));
    let path = folder.path().join("file");
    let e = Writer::create(&path, &description).err().unwrap().to_string();
    assert!(e.contains("137 bytes") && e.contains("128") && !path.exists(), "{e}");
}

/// The folder in which [`nothing_more_can_be_written`] tries the limit in a separate process.
const FOLDER: &str = "HOLDUP_TEST_LIMITED";

/// Like a full disk: a process that may write files of 16 KiB at most. Run by the test below.
#[test]
fn limited() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let mut description = description(folder);
    description.running = Running::read(Path::new("/nowhere"), Target::Machine, false);
    let path = folder.join("file");
    let mut writer = Writer::create(&path, &description).unwrap();
    write(&mut writer);
    let whole = (writer.tally(), writer.bytes());
    let records = switch(4000, 7, 8);
    let stopped = (0..1000).find_map(|_| writer.data(&records, &[]).err()).unwrap();
    let said = stopped.to_string();
    assert!(
        said.contains("file: ")
            && said.ends_with("; the file contains what was written before the error"),
        "{said}"
    );
    // A caller that ignores the error does no harm.
    writer.data(&records, &[]).unwrap();
    writer.round().unwrap();
    let written = writer.finish().unwrap();
    assert_eq!((written.tally, written.bytes), whole);
    let read = open(&path).unwrap();
    assert_eq!(switches(&read), WRITTEN);
    assert!(read.quality().count(QualityCode::Truncated) > 0);
    fs::write(folder.join("passed"), "").unwrap();
}

#[test]
fn nothing_more_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    // Blocks of 512 bytes; without the trap the kernel kills a process that writes more.
    let mut sh = Command::new("sh");
    sh.args(["-c", "trap '' XFSZ; ulimit -f 32; exec \"$0\" --exact built::limited"]);
    let out = sh.arg(std::env::current_exe().unwrap()).env(FOLDER, folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(folder.path().join("passed").exists(), "{said}");
}
