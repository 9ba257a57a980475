//! Files that the corpus lacks, written by these tests and read by holdup and by trace-cmd.

use crate::support::writer::{BufferSpec, FileSpec};
use holdup_testkit::needs;
use holdup_trace::{ErrorKind, Event, Quality, QualityCode, Reader, TraceInfo, What};
use holdup_tracedat::{Content, TraceDat, content_stream, open, open_stream};
use std::path::Path;

/// The file as read, its events, and what went wrong.
fn read(spec: &FileSpec) -> (TraceDat, Vec<Event>, holdup_trace::Quality) {
    let bytes = spec.build();
    let dat = open_stream(Path::new("-"), bytes.as_slice()).expect("a sound file opens");
    let (events, quality) = crate::support::events(&dat, |_, e, _| *e);
    (dat, events, quality)
}

/// Two CPUs, a few events each, one loss, equal times on both.
fn pages(s: &FileSpec, shift: u64) -> Vec<(u32, Vec<u8>)> {
    let t = 5_000_000_000 + shift;
    let a = [
        s.page(t).wakeup(0, 7, 8).sys_enter(100, 8, 202).build(),
        s.page(t + 1000)
            .after_loss(Some(33))
            .wakeup(2, 7, 8)
            .record(30, 5, &[1])
            .wakeup(7, 7, 8)
            .build(),
    ];
    let b = [s.page(t).wakeup(0, 0, 9).record(29, 50, &[8, 0]).wakeup(50, 9, 10).build()];
    vec![(0, a.concat()), (1, b.concat())]
}

fn with_pages(mut s: FileSpec) -> FileSpec {
    s.buffers.push(BufferSpec { name: "", cpus: pages(&s, 0) });
    s
}

fn times(events: &[Event]) -> Vec<(u64, u16, u32)> {
    events
        .iter()
        .filter(|e| !matches!(e.what, What::Lost { .. }))
        .map(|e| (e.ts - 5_000_000_000, e.cpu.0, e.tid.0))
        .collect()
}

const EXPECTED: [(u64, u16, u32); 6] = [
    (0, 0, 7),
    (0, 1, 0),
    (100, 0, 8),
    (100, 1, 9),
    (1002, 0, 7),
    (1002 + 5 + (1 << 27) + 7, 0, 7),
];

/// Every version, byte order, word size and compression.
fn machines() -> Vec<FileSpec> {
    let mut out = Vec::new();
    for (codec, short_sizes) in
        [("none", false), ("zstd", false), ("zlib", false), ("zstd", true), ("zlib", true)]
    {
        for version in if codec == "none" { 6..=7 } else { 7..=7 } {
            for (big, long) in [(false, 4), (false, 8), (true, 4), (true, 8)] {
                let spec = FileSpec { big, long, codec, short_sizes, ..FileSpec::new(version) };
                out.push(with_pages(spec));
            }
        }
    }
    out
}

#[test]
fn every_machine_and_version_reads_the_same() {
    for s in machines() {
        let (dat, events, quality) = read(&s);
        let FileSpec { version, big, long, codec, short_sizes, .. } = s;
        let which = format!("v{version} big={big} long={long} {codec} short={short_sizes}");
        assert_eq!(times(&events), EXPECTED, "{which}");
        assert_eq!(quality.count(QualityCode::LostEvents), 33, "{which}");
        assert_eq!(quality.entries().len(), 1, "{which}: {:?}", quality.entries());
        let lost = events.iter().position(|e| e.what == What::Lost { count: 33 }).unwrap();
        assert_eq!(events[lost].ts, events[lost + 1].ts);
        assert!(matches!(events[2].what, What::SysEnter { nr: 202, .. }), "{which}");
        let info = dat.info();
        assert_eq!(info.clock.name, "local");
        assert_eq!(info.cpus_online, Some(2));
        assert_eq!(info.span, Some((5_000_000_000, 5_000_000_000 + EXPECTED[5].0)));
        let can = &info.capabilities;
        assert!(can.wakeups && !can.switches);
        assert!(!can.syscalls.are_any(), "sys_enter without sys_exit");
        assert_eq!(info.names.get(info.tasks[0].comm), "a task");
    }
}

/// A top buffer and two instances.
fn instances() -> Vec<FileSpec> {
    [(6, "none"), (7, "none"), (7, "zstd")]
        .map(|(version, codec)| {
            let mut s = with_pages(FileSpec { codec, ..FileSpec::new(version) });
            s.buffers.push(BufferSpec { name: "foo", cpus: pages(&s, 0) });
            s.buffers.push(BufferSpec { name: "bar", cpus: pages(&s, 1) });
            s
        })
        .into()
}

#[test]
fn instances_are_read_after_the_top_buffer() {
    for s in instances() {
        let (dat, events, quality) = read(&s);
        assert_eq!(
            quality.count(QualityCode::RepeatedEvents),
            2,
            "wakeups and system calls, in three buffers each"
        );
        assert_eq!(dat.runs().len(), 6);
        assert_eq!(events.len(), 3 * 7);
        let instances: Vec<_> =
            dat.info().extra.iter().filter(|x| x.0 == "instance").map(|x| x.1.as_str()).collect();
        assert!(
            instances[0].starts_with("foo") && instances[1].starts_with("bar"),
            "{instances:?}"
        );
    }
}

/// A clock that counts ticks, with the factor to nanoseconds and two offsets.
fn scaled_clock(version: u8) -> FileSpec {
    let mut s = FileSpec { clock: "x86-tsc", ..FileSpec::new(version) };
    s.options = vec![
        (14, [s.u32(3 << 20), s.u32(21), s.u64(77)].concat()),
        (7, b"-500\0".to_vec()),
        (1, b"0x10\0".to_vec()),
    ];
    with_pages(s)
}

/// A clock that counts ticks, without the factor to nanoseconds.
fn tick_clock(version: u8) -> FileSpec {
    with_pages(FileSpec { clock: "x86-tsc", ..FileSpec::new(version) })
}

#[test]
fn clocks_are_scaled_and_shifted() {
    for version in [6, 7] {
        let (dat, events, quality) = read(&scaled_clock(version));
        assert_eq!(quality.count(QualityCode::TickClock), 0);
        assert_eq!(events[0].ts, 5_000_000_000 * 3 / 2 - 500 + 16_000);
        assert!(!dat.info().extra.iter().any(|x| x.0 == "unit of time"));
        let (dat, events, quality) = read(&tick_clock(version));
        assert_eq!(
            (quality.count(QualityCode::TickClock), quality.count(QualityCode::RepeatedEvents)),
            (1, 0)
        );
        assert_eq!((dat.info().clock.name.as_str(), events[0].ts), ("x86-tsc", 5_000_000_000));
        assert!(dat.info().extra.iter().any(|x| x.0 == "unit of time"));
    }
}

/// A guest whose clock's offset from the host's was measured `samples` times.
fn guest(interpolate: u32, samples: u64) -> FileSpec {
    let mut s = FileSpec::new(7);
    let columns = |s: &FileSpec, cpu: u64| -> Vec<u8> {
        let each =
            |f: &dyn Fn(u64) -> u64| (0..samples).flat_map(|n| s.u64(f(n))).collect::<Vec<u8>>();
        // Offsets of both signs, and times so that events fall before, between and after.
        let times = each(&|n| 5_000_000_050 + n * 700);
        let offsets = each(&|n| (n * 1_000_003 + cpu).wrapping_sub(2_000_000));
        [s.u32(samples as u32), times, offsets, each(&|_| 8)].concat()
    };
    let fractions: Vec<u8> = (0..2 * samples).flat_map(|_| s.u64(3)).collect();
    let head = [s.u64(0x1234), s.u32(interpolate), s.u32(2)].concat();
    s.options.push((12, [head, columns(&s, 0), columns(&s, 7), fractions].concat()));
    with_pages(s)
}

/// Interpolated or not, and how many samples.
const GUESTS: [(u32, u64); 4] = [(0, 1), (0, 3), (1, 2), (1, 4)];

#[test]
fn a_guest_tells_the_time_of_its_host() {
    for (interpolate, samples) in GUESTS {
        let (dat, events, _) = read(&guest(interpolate, samples));
        assert!(dat.info().extra.iter().any(|x| x.0 == "guest"));
        assert!(events[0].ts < 5_000_000_000 || samples > 1);
    }
}

#[test]
fn large_pages_are_believed_only_if_they_are_there() {
    for (page, stated) in [(16384, 16384), (16384, 4096), (65536, 65536), (65536, 4096)] {
        let mut s = FileSpec { page, stated_page: stated, ..FileSpec::new(7) };
        let full = |t| (0..300).fold(s.page(t), |p, n| p.wakeup(1, 5, n)).build();
        let cpus = vec![(0, [full(1000), full(2000), full(3000)].concat())];
        s.buffers.push(BufferSpec { name: "", cpus });
        let (_, events, quality) = read(&s);
        assert_eq!(events.len(), 900, "{page} stated as {stated}");
        assert!(quality.is_empty(), "{:?}", quality.entries());
    }
}

/// A loss marked on a page without a count.
fn loss_of_unknown_size() -> FileSpec {
    let mut s = FileSpec::new(7);
    let page = s.page(9).after_loss(None).wakeup(1, 2, 3).build();
    s.buffers.push(BufferSpec { name: "", cpus: vec![(3, page)] });
    s
}

#[test]
fn losses_of_unknown_size_and_losses_only_the_kernel_counted() {
    let mut s = FileSpec::new(7);
    s.options.push((
        2,
        b"CPU: 0\nentries: 0\noverrun: 40\ncommit overrun: 0\ndropped events: 5\n\0".to_vec(),
    ));
    let s = with_pages(s);
    let (dat, _, quality) = read(&s);
    assert_eq!(dat.quality().count(QualityCode::LostEvents), 12, "45 counted, 33 marked on pages");
    assert_eq!(quality.count(QualityCode::LostEvents), 45);

    let (dat, events, quality) = read(&loss_of_unknown_size());
    assert_eq!(quality.count(QualityCode::LostChunks), 1);
    assert_eq!((events[0].what, events[0].ts, events[0].cpu.0), (What::Lost { count: 0 }, 10, 3));
    assert_eq!(dat.info().span, Some((10, 10)));
}

/// trace-cmd 3.1.6 reports a loss only if the page after it starts with an event. A loss before a
/// page that starts with a time extend must count, too.
#[test]
fn a_loss_before_a_time_extend_counts() {
    let mut s = FileSpec::new(7);
    let page = s.page(9).after_loss(Some(4)).record(30, 5, &[1]).wakeup(1, 2, 3).build();
    s.buffers.push(BufferSpec { name: "", cpus: vec![(0, page)] });
    let (_, events, quality) = read(&s);
    assert_eq!(quality.count(QualityCode::LostEvents), 4);
    assert_eq!(events[0].ts, 9 + 5 + (1 << 27) + 1);
}

#[test]
fn strangers_and_broken_records_are_counted() {
    let mut s = FileSpec::new(7);
    let good = s.page(10).stranger(1, 4, 999).wakeup(1, 2, 3).build();
    let cut = s.page(20).wakeup(1, 2, 3).record(20, 1, &[0; 3]).build();
    let mut absurd = s.page(30).wakeup(1, 2, 3).build();
    absurd[8..12].copy_from_slice(&5000u32.to_le_bytes());
    let after = s.page(40).wakeup(1, 2, 3).build();
    s.buffers.push(BufferSpec { name: "", cpus: vec![(0, [good, cut, absurd, after].concat())] });
    let (dat, events, quality) = read(&s);
    assert_eq!(events.iter().map(|e| e.ts).collect::<Vec<_>>(), [11, 12, 21, 41]);
    assert_eq!(dat.info().events[events[0].id.0 as usize].name, "unknown event 999");
    assert_eq!(quality.count(QualityCode::MissingFormat), 1);
    assert_eq!(quality.count(QualityCode::BadRecords), 1);
    assert_eq!(quality.count(QualityCode::SkippedBytes), 4096);
}

/// The second event's time, absolute instead of relative to the first.
const ABSOLUTE: u64 = 3 << 30;

fn absolute_time() -> FileSpec {
    let mut s = FileSpec::new(7);
    let page = s
        .page(1000)
        .wakeup(1, 2, 3)
        .record(31, (ABSOLUTE & 0x7ff_ffff) as u32, &[(ABSOLUTE >> 27) as u32])
        .wakeup(4, 2, 3)
        .build();
    s.buffers.push(BufferSpec { name: "", cpus: vec![(0, page)] });
    s
}

#[test]
fn absolute_time_stamps() {
    let (_, events, _) = read(&absolute_time());
    assert_eq!(events.iter().map(|e| e.ts).collect::<Vec<_>>(), [1001, ABSOLUTE + 4]);
}

#[needs(trace_cmd)]
#[test]
fn trace_cmd_reads_all_of_these_the_same() {
    let mut specs = machines();
    // Debian's trace-cmd is built without zlib.
    specs.retain(|s| s.codec != "zlib");
    specs.extend(instances());
    specs.extend([6, 7].into_iter().flat_map(|v| [scaled_clock(v), tick_clock(v)]));
    specs.extend(GUESTS.map(|(interpolate, samples)| guest(interpolate, samples)));
    specs.extend([loss_of_unknown_size(), absolute_time()]);
    for (i, spec) in specs.iter().enumerate() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), spec.build()).unwrap();
        let dat = open(file.path()).unwrap();
        let (lines, _) =
            crate::support::compare(&dat, file.path()).unwrap_or_else(|e| panic!("{i}: {e}"));
        assert!(lines > 0);
    }
}

const LATENCY: &str = "# tracer: irqsoff\n#\n\
    # irqsoff latency trace v1.1.5 on 6.1.0\n\
    # latency: 259 us, #4/4, CPU#2 | (M:server VP:0, KP:0, SP:0 HP:0 #P:4)\n\
    \x20 <idle>-0         2d..2.   200us : sched_switch: prev_comm=swapper/2 prev_pid=0 \
    prev_prio=120 prev_state=R ==> next_comm=ps next_pid=6143 next_prio=120\n";

fn latency_files() -> Vec<FileSpec> {
    [(6, "none", false), (6, "none", true), (7, "none", false), (7, "zstd", false)]
        .into_iter()
        .chain([(7, "zlib", true)])
        .map(|(version, codec, big)| FileSpec {
            codec,
            big,
            latency: Some(LATENCY),
            options: vec![(5, b"Linux box 6.1.0 x86_64\0".to_vec())],
            ..FileSpec::new(version)
        })
        .collect()
}

#[test]
fn the_text_of_a_latency_tracer_is_handed_out() {
    for spec in latency_files() {
        let (version, codec, bytes) = (spec.version, spec.codec, spec.build());
        let Ok(Content::Text(mut text)) = content_stream(Path::new("-"), bytes.as_slice()) else {
            panic!("{version} {codec}: no text")
        };
        assert_eq!(String::from_utf8(text.take_text()).unwrap(), LATENCY, "{version} {codec}");
        let mut info = TraceInfo::new("x".into(), "");
        let mut quality = Quality::default();
        text.amend(&mut info, &mut quality);
        assert_eq!(
            (info.hostname.as_deref(), info.cpus_online, quality.is_empty()),
            (Some("box"), Some(2), true)
        );
        // Wherever the file is cut, the result is an error or the beginning of the text.
        for end in (0..bytes.len()).step_by(7) {
            if let Ok(Content::Text(mut text)) = content_stream(Path::new("-"), &bytes[..end]) {
                let text = text.take_text();
                assert!(LATENCY.as_bytes().starts_with(&text), "{version} {codec} {end}");
            }
        }
    }
}

#[needs(trace_cmd)]
#[test]
fn trace_cmd_prints_the_same_text_of_a_latency_tracer() {
    for spec in latency_files().into_iter().filter(|s| s.codec != "zlib") {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), spec.build()).unwrap();
        let out = std::process::Command::new("trace-cmd")
            .arg("report")
            .arg(file.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(text.contains(LATENCY), "{} {}: {out:?}", spec.version, spec.codec);
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let error = |bytes: &[u8]| match open_stream(Path::new("x"), bytes) {
        Ok(_) => panic!("opened"),
        Err(e) => (e.to_string(), e.kind),
    };
    assert!(
        error(b"not a trace")
            .0
            .starts_with("x: byte 0x0 (initial format): expected \"\\x17\\x08Dtracing\"")
    );
    assert!(matches!(error(b"\x17\x08\x44tracing8\0\0\x08").1, ErrorKind::Unsupported { .. }));
    let latency = FileSpec { latency: Some("# tracer: irqsoff\n"), ..FileSpec::new(6) }.build();
    assert!(error(&latency).0.contains("text of a latency tracer"));
    let mut lzma = with_pages(FileSpec::new(7)).build();
    lzma[18..22].copy_from_slice(b"lzma");
    assert!(error(&lzma).0.contains("lzma"), "{}", error(&lzma).0);
    assert!(holdup_tracedat::sniff(&latency) && !holdup_tracedat::sniff(b"PERFILE2"));
}
