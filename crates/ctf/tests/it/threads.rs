//! Which thread an event happened in, if the event does not carry it.

use crate::support::writer::{Packet, SPECS, Spec, metadata, sample};
use holdup_trace::{Presence, Reader, Tid, What};
use std::path::Path;

fn tids(files: Vec<(String, Vec<u8>)>) -> Vec<(u64, u16, Tid)> {
    let trace = holdup_ctf::open_files(Path::new("x"), files).unwrap();
    crate::support::events(&trace, |e| (e.ts - 1_000_000_000, e.cpu.0, e.tid)).0
}

#[test]
fn the_switches_of_a_cpu_tell_and_agree_with_the_context() {
    let of = |cpu: u16, files| -> Vec<(u64, Tid)> {
        let all: Vec<_> = tids(files);
        all.into_iter().filter(|e| e.1 == cpu).map(|e| (e.0, e.2)).collect()
    };
    for cpu in [0, 1] {
        let without = of(cpu, sample(SPECS[0]));
        assert_eq!(without, of(cpu, sample(SPECS[2])), "the context says the same");
        assert!(without.len() > 3);
    }
    // Before its first switch a CPU runs the thread that this switch switches out; likewise after a
    // loss.
    let second = of(1, sample(SPECS[1]));
    let wanted = [(50, 200), (60, 200), (600, 201), (700, 201)].map(|(ts, tid)| (ts, Tid(tid)));
    assert_eq!(second, wanted);
}

/// A second loss before any switch: the thread that ran in between is unknown.
#[test]
fn between_two_losses_without_a_switch_the_thread_is_unknown() {
    let spec = SPECS[0];
    let packets = [
        Packet::new(spec, 0, 0, 1_000_000_000).switch(1_000_000_010, 5, 6, 1).build(512),
        Packet::new(spec, 0, 1, 1_000_000_100).discarded(3).softirq(1_000_000_110, 0, 1).build(512),
        Packet::new(spec, 0, 2, 1_000_000_200)
            .discarded(4)
            .softirq(1_000_000_210, 0, 1)
            .switch(1_000_000_220, 7, 8, 1)
            .build(512),
    ];
    let files = vec![("metadata".into(), metadata(spec)), ("c0".into(), packets.concat())];
    let tids: Vec<Tid> = tids(files).into_iter().map(|e| e.2).collect();
    assert_eq!(tids, [Tid(5), Tid::UNKNOWN, Tid(7), Tid(7)]);
}

/// Channels of one CPU are merged, whatever their files are called.
#[test]
fn switches_of_one_channel_serve_the_events_of_another() {
    let spec = SPECS[0];
    let one = Packet::new(spec, 0, 0, 1_000_000_000)
        .switch(1_000_000_010, 5, 6, 1)
        .switch(1_000_000_030, 6, 7, 1)
        .build(512);
    let mut two = Packet::new(spec, 0, 0, 1_000_000_001)
        .softirq(1_000_000_005, 0, 1)
        .softirq(1_000_000_020, 0, 1)
        .softirq(1_000_000_040, 0, 1)
        .build(512);
    // Another stream instance.
    two[24] = 9;
    let files = vec![("metadata".into(), metadata(spec)), ("a".into(), two), ("b".into(), one)];
    let tids: Vec<(u64, Tid)> = tids(files).into_iter().map(|e| (e.0, e.2)).collect();
    assert_eq!(tids, [(5, 5), (10, 5), (20, 6), (30, 6), (40, 7)].map(|(ts, tid)| (ts, Tid(tid))));
}

#[test]
fn the_state_dump_names_threads() {
    let trace = holdup_ctf::open_files(Path::new("x"), sample(SPECS[0])).unwrap();
    let names = &trace.info().names;
    let tasks: Vec<_> = trace
        .info()
        .tasks
        .iter()
        .map(|t| (t.tid.0, t.pid.0, t.parent.map(|p| p.0), names.get(t.comm)))
        .collect();
    let wanted = [(1, 0, Some(0), "init".to_owned()), (7, 0, Some(2), "kworker/0:1".to_owned())];
    assert_eq!(tasks, wanted);
}

#[test]
fn fields_are_read_in_every_layout() {
    for spec in SPECS {
        let trace = holdup_ctf::open_files(Path::new("x"), sample(spec)).unwrap();
        let name = |id| trace.info().names.get(id);
        let mut args = Vec::new();
        let mut seen = Vec::new();
        holdup_trace::merge::drive(
            &trace,
            1,
            &mut |events: &[holdup_trace::Event], batch: &holdup_trace::Batch| {
                for e in events {
                    match e.what {
                        What::Switch { prev, next, prev_state, prev_prio, .. } => {
                            seen.push(format!("{prev}>{next} {prev_state} {prev_prio}"));
                        }
                        What::IrqEntry { irq, name: n } => seen.push(format!("{irq} {}", name(n))),
                        What::Fork { parent, child, .. } => seen.push(format!("{parent}+{child}")),
                        What::SysEnter { nr, args: a } => args.push((nr, batch.args(a).copied())),
                        What::SysExit { nr, ret } => seen.push(format!("{nr}={ret}")),
                        What::Lost { count } => seen.push(format!("lost {count}")),
                        _ => {}
                    }
                }
                std::ops::ControlFlow::Continue(())
            },
        )
        .unwrap();
        assert_eq!(
            seen,
            [
                "100>0 S 120",
                "200>0 D 120",
                "lost 17",
                "201>0 Z 120",
                "24 virtio0",
                "0>100 R 120",
                "202=-110",
                "100+101",
                "100>101 R+ 120"
            ],
            "{spec:?}"
        );
        assert_eq!(
            args,
            [
                (202, Some([0x7f00_1000, 128, 1, 0, 0x7f00_1040, 0])),
                (257, Some([-100i64 as u64, 0, 0, 0, 0, 0])),
                (0, Some([3, 0, 0, 0, 0, 0])),
                (435, Some([11, 12, 13, 14, 15, 16])),
            ]
        );
    }
}

/// The 27 bits of a compact time stamp wrap around within half a second.
#[test]
fn narrow_time_stamps_go_around() {
    let spec = Spec::default();
    let start = 1_000_000_000;
    let step = 100_000_000;
    let packet =
        (1..20).fold(Packet::new(spec, 0, 0, start), |p, n| p.softirq(start + n * step, 0, 1));
    let files = vec![("metadata".into(), metadata(spec)), ("c".into(), packet.build(4096))];
    let times: Vec<u64> = tids(files).into_iter().map(|e| e.0).collect();
    assert_eq!(times, (1..20).map(|n| n * step).collect::<Vec<_>>());
}

/// The first pass reads as little of an event as possible, but must find the same: in whole files,
/// and in files cut anywhere.
#[test]
fn the_first_look_finds_what_reading_finds() {
    for spec in SPECS {
        let files = sample(spec);
        let len = files[1].1.len();
        for left in (1..=len).rev().step_by(29) {
            let mut files = files.clone();
            files[1].1.truncate(left);
            let Ok(trace) = holdup_ctf::open_files(Path::new("x"), files) else { continue };
            let events = crate::support::events(&trace, |e| (e.ts, e.id)).0;
            let span = events.first().zip(events.last()).map(|(first, last)| (first.0, last.0));
            assert_eq!(trace.info().span, span, "{left} bytes");
            for (id, event) in (0u16..).zip(&trace.info().events) {
                let occurs = events.iter().any(|e| e.1.0 == id);
                assert_eq!(event.presence == Presence::Seen, occurs, "{}, {left}", event.name);
            }
        }
    }
}
