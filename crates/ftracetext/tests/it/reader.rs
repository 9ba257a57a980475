//! Order, losses, damage, streams: everything that is not about a single event.

use crate::common::all;
use holdup_ftracetext::{DialectKind, TextOptions, TextTrace, open, open_stream, sniff};
use holdup_trace::{Batch, Cpu, Event, EventId, Quality, QualityCode, Reader, What, merge};
use std::ops::ControlFlow;
use std::path::Path;

fn trace(text: &str) -> TextTrace {
    open_stream(Path::new("-"), text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn line(ts: f64, vec: u32) -> String {
    format!(
        "              sh-196     [003] d..2. {ts:12.6}: softirq_raise: vec={vec} [action=TIMER]\n"
    )
}

/// The vectors in merged order.
fn vectors(t: &TextTrace) -> (Vec<u32>, Quality) {
    let mut out = Vec::new();
    let mut last = 0;
    let quality = merge::drive(t, 2, &mut |events: &[Event], _: &Batch| {
        for e in events {
            assert!(e.ts >= last);
            last = e.ts;
            if let What::SoftirqRaise { vec } = e.what {
                out.push(vec);
            }
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    (out, quality)
}

#[test]
fn unsorted_text_comes_out_sorted() {
    let text: String =
        [5.0, 3.0, 4.0, 4.0, 1.0].iter().enumerate().map(|(i, &t)| line(t, i as u32)).collect();
    let t = trace(&text);
    assert_eq!(t.runs().len(), 3);
    assert_eq!(vectors(&t).0, [4, 1, 2, 3, 0]);
    assert_eq!(t.info().span, Some((1_000_000_000, 5_000_000_000)));
}

#[test]
fn text_in_no_order_at_all_is_sorted_by_place() {
    // A full cycle of a linear congruence: every time occurs once, in random order.
    let n = 20_000u64;
    let order: Vec<u64> = (0..n).map(|i| (i * 7919 + 13) % n).collect();
    let text: String = order.iter().map(|&t| line(t as f64 + 1.0, t as u32)).collect();
    let t = trace(&text);
    let (got, quality) = vectors(&t);
    assert_eq!(got, (0..n as u32).collect::<Vec<_>>());
    assert!(quality.count(QualityCode::Reordered) > 4096);
    assert!(t.runs().len() < 4096);
    assert_eq!(t.event_count(), n);
}

#[test]
fn too_many_names_are_one_event() {
    let text: String =
        (0..9000).map(|i| line(1.0, i).replace("softirq_raise", &format!("name{i}"))).collect();
    for run_bytes in [20_000, 4 << 20] {
        let t = TextOptions { run_bytes, ..TextOptions::default() }
            .open_stream(Path::new("-"), text.as_bytes())
            .unwrap();
        let (rows, quality) =
            all(&t, &|e, _, r| Some(r.info().events[e.id.0 as usize].name.clone()));
        assert_eq!((rows.len(), t.event_count(), t.info().events.len()), (9000, 9000, 4097));
        assert_eq!((rows[0].as_str(), rows[8999].as_str()), ("name0", "(too many event names)"));
        assert_eq!(quality.entries().len(), 1);
    }
}

#[test]
fn the_size_of_runs_changes_nothing() {
    let text: String = (0..3000).map(|i| line(f64::from(i / 3) / 100.0 + 1.0, i)).collect();
    for run_bytes in [100, 1000, 70_001, 1 << 20] {
        let t = TextOptions { run_bytes, ..TextOptions::default() }
            .open_stream(Path::new("-"), text.as_bytes())
            .unwrap();
        assert_eq!(vectors(&t).0, (0..3000).collect::<Vec<_>>(), "{run_bytes}");
        assert_eq!(t.event_count(), 3000);
    }
}

#[test]
fn losses_are_dated_by_the_event_that_follows() {
    let text = format!(
        "{}CPU:3 [LOST 12 EVENTS]\n{}##### CPU 2 buffer started ####\n{}CPU:1 [LOST EVENTS]\n",
        line(1.0, 0),
        line(2.0, 1),
        line(3.0, 2)
    );
    let t = trace(&text);
    let mut losses = Vec::new();
    let quality = merge::drive(&t, 1, &mut |events: &[Event], _: &Batch| {
        for e in events.iter().filter(|e| e.id == EventId::SIDEBAND) {
            losses.push((e.ts / 1_000_000_000, e.cpu, e.what));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(
        losses,
        [
            (2, Cpu(3), What::Lost { count: 12 }),
            (3, Cpu(2), What::Lost { count: 0 }),
            (3, Cpu(1), What::Lost { count: 0 })
        ]
    );
    assert_eq!(
        (quality.count(QualityCode::LostEvents), quality.count(QualityCode::LostChunks)),
        (12, 1)
    );
    assert_eq!(quality.count(QualityCode::UnreadableLines), 0);
    assert_eq!(t.event_count(), 3);
}

#[test]
fn a_trace_of_tricky_comms() {
    let comms = [
        "a b",
        "kworker/0:1-ev",
        "x-1 [0] 1.5: y",
        "a: b",
        "<x>",
        "(12)",
        "",
        "n 7",
        "a ==> b",
        "a pid=1 b",
        "é",
        "[LOST]",
    ];
    let kernel: String = comms
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let next = comms[(i + 1) % comms.len()];
            format!(
                "{c:>16}-{:<7} (  {:>5}) [001] d..2.  {:5}.000000: sched_switch: prev_comm={c} \
                    prev_pid={} prev_prio=120 prev_state=S ==> next_comm={next} next_pid=9 \
                    next_prio=120\n",
                i + 1,
                i + 100,
                i + 1,
                i + 1
            )
        })
        .collect();
    let perf: String = comms
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let next = comms[(i + 1) % comms.len()];
            format!(
                "{c:>16} {:>7}/{:<7} [001] {:5}.000000:  sched:sched_switch: prev_comm={c} \
                    prev_pid={} prev_prio=120 prev_state=S ==> next_comm={next} next_pid=9 \
                    next_prio=120\n",
                i + 100,
                i + 1,
                i + 1,
                i + 1
            )
        })
        .collect();
    for (text, kind) in [(kernel, DialectKind::TracePipe), (perf, DialectKind::PerfScript)] {
        let t = trace(&text);
        assert_eq!(t.dialect().kind, kind);
        let (rows, quality) = all(&t, &|e, _, r| match e.what {
            What::Switch { prev, next, prev_comm, next_comm, .. } => {
                let n = |id| r.info().names.get(id);
                Some(format!(
                    "{} {} {} {} {} {} {next}",
                    e.tid,
                    e.pid,
                    prev,
                    n(e.comm),
                    n(prev_comm),
                    n(next_comm)
                ))
            }
            _ => None,
        });
        let want: Vec<String> = (0..comms.len())
            .map(|i| {
                format!(
                    "{} {} {} {} {} {} 9",
                    i + 1,
                    i + 100,
                    i + 1,
                    comms[i],
                    comms[i],
                    comms[(i + 1) % comms.len()]
                )
            })
            .collect();
        assert_eq!(rows, want);
        assert_eq!(quality.entries().len(), 1, "{quality:?}");
    }
}

#[test]
fn line_ends_and_byte_order_mark() {
    let text = format!("\u{feff}{}{}", line(1.0, 5).replace('\n', "\r\n"), line(2.0, 6).trim_end());
    let t = trace(&text);
    assert_eq!(vectors(&t).0, [5, 6]);
    assert_eq!(t.quality().count(QualityCode::UnreadableLines), 0);
}

#[test]
fn unreadable_lines_are_shown() {
    let t = trace(&format!("{}what is this\n{}", line(1.0, 1), line(2.0, 2)));
    assert_eq!((t.event_count(), t.quality().count(QualityCode::UnreadableLines)), (2, 1));
    assert!(
        t.info()
            .extra
            .iter()
            .any(|(label, value)| label == "unreadable line at byte 87" && value == "what is this"),
        "{:?}",
        t.info().extra
    );
    // A time that exceeds 64 bits of nanoseconds is unreadable.
    let t = trace(&format!(
        "{}{}",
        line(1.0, 1),
        line(2.0, 2).replace("    2.000000", "99999999999999.000000")
    ));
    assert_eq!((t.event_count(), t.quality().count(QualityCode::UnreadableLines)), (1, 1));
}

#[test]
fn errors_say_what_was_expected() {
    let fails = |text: &str| match open_stream(Path::new("f.txt"), text.as_bytes()) {
        Ok(_) => panic!("opened"),
        Err(e) => e.to_string(),
    };
    assert_eq!(
        fails(""),
        "f.txt: byte 0x0: expected a text trace: lines `comm-pid [cpu] flags time: event: …` \
            (kernel trace, trace-cmd report) or \
         `comm pid [cpu] time: event: …` (perf script; with -F it must print time and event), \
         found an empty file"
    );
    assert!(fails("hello\n").ends_with("found \"hello\""));
    assert!(fails("a\0b").ends_with("found binary data"));
    let graph = "# tracer: function_graph\n#\n# CPU  DURATION                  FUNCTION CALLS\n\
        \x200)   1.234 us    |  foo();\n";
    assert!(fails(graph).contains("echo nop > current_tracer"));
    assert!(fails("# tracer: nop\n#\nnot an event\n").contains("\"not an event\" (1 such lines"));
    assert!(
        open(Path::new("/nonexistent"))
            .err()
            .expect("fails")
            .to_string()
            .starts_with("/nonexistent: ")
    );
    assert!(fails("SIMPLEPERF\0").contains("report-sample"));
}

#[test]
fn an_empty_trace_is_a_trace() {
    let t = trace("# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:8\n#\n");
    assert_eq!(
        (t.event_count(), t.info().span, t.runs().len(), t.info().cpus_online),
        (0, None, 0, Some(8))
    );
    assert!(vectors(&t).1.is_empty());
}

#[test]
fn a_page_with_a_trace_in_it() {
    let page = format!(
        "<!DOCTYPE html>\n<script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n\
            {}  </script>\n</html>\n",
        line(1.0, 7)
    );
    let t = trace(&page);
    assert_eq!((t.dialect().kind, t.event_count()), (DialectKind::Html, 1));
    assert_eq!(t.quality().count(QualityCode::UnreadableLines), 0, "{:?}", t.info().extra);
    assert_eq!(vectors(&t).0, [7]);
}

#[test]
fn counters_instead_of_time() {
    let t = trace("cpus=8\n              wl-1958  [006]770227493960: softirq_raise:  vec=1\n");
    assert_eq!(
        (t.info().span, t.info().clock.resolution_ns),
        (Some((770227493960, 770227493960)), 1)
    );
    assert_eq!(t.quality().count(QualityCode::TickClock), 1);
    assert!(t.info().extra.iter().any(|e| e.0 == "time stamps"));
}

#[test]
fn a_file_and_a_stream_are_the_same() {
    let text: String = (0..100).map(|i| line(f64::from(i), i)).collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.txt");
    std::fs::write(&path, &text).unwrap();
    let (file, stream) = (open(&path).unwrap(), trace(&text));
    assert_eq!(vectors(&file), vectors(&stream));
    assert_eq!(sniff(text.as_bytes()), Some(file.dialect()));
    assert_eq!(file.info().format, "trace_pipe text");
}
