//! Files built by hand: every container in both byte orders, order, damage.

use crate::common::{Builder, Container, ID_GROUP, drain, merged, open_bytes, printed};
use holdup_trace::{Cpu, EventId, Pid, Presence, QualityCode, Reader, Tid, What};

const CONTAINERS: [Container; 4] =
    [Container::File, Container::Pipe, Container::Compressed, Container::Compressed2];

/// Two CPUs flushed in turn, with side-band records and a tie in time.
fn two_cpus(b: &mut Builder) {
    b.comm(0, 7, b"seven\0\0\0");
    b.fork(0, 1, 8);
    for round in 0..50u64 {
        for cpu in 0..2u32 {
            for i in 0..10u64 {
                b.switch(1000 + round * 100 + i * 10 + (cpu as u64 * 5 * (i % 2)), cpu, 7 + cpu, 0);
            }
        }
        b.contention(
            1000 + round * 100 + 99,
            1,
            8,
            &[-128i64 as u64, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020],
        );
        b.round();
    }
    b.comm(6000, 8, b"eight\0\0\0");
}

#[test]
fn containers_and_byte_orders_agree() {
    let mut seen = Vec::new();
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            two_cpus(&mut b);
            let file = open_bytes(&b.build(container)).unwrap();
            let info = file.info();
            assert_eq!(info.events[0].name, "sched:sched_switch");
            assert_eq!(info.events[1].system, "lock");
            assert_eq!(info.events[1].short_name(), "contention_begin");
            assert!(info.capabilities.switches && info.capabilities.stacks);
            assert!(!info.capabilities.contention, "the ends were not recorded");
            assert_eq!(info.span, Some((1000, 5999)));
            assert_eq!(
                info.hostname.as_deref(),
                (container != Container::Pipe).then_some("machine")
            );
            let task = info.tasks.iter().find(|t| t.tid == Tid(7)).unwrap();
            assert_eq!((info.names.get(task.comm).as_str(), task.pid), ("seven", Pid(7)));
            assert_eq!(info.tasks.iter().find(|t| t.tid == Tid(8)).unwrap().parent, Some(Tid(1)));
            let (_, quality) = drain(&file);
            assert!(quality.is_empty(), "{big} {container:?} {quality:?}");
            seen.push(printed(&merged(&file)));
        }
    }
    assert_eq!(seen[0].len(), 50 * 21);
    assert!(seen.iter().all(|s| *s == seen[0]));
    assert!(seen[0].is_sorted_by_key(|e| e.0));
    // Equal times: the CPU flushed first comes first.
    assert_eq!((seen[0][0], seen[0][1]), ((1000, 0, 7, 0), (1000, 1, 8, 0)));
}

#[test]
fn payload_and_call_chain_arrive() {
    let mut b = Builder::new(true);
    two_cpus(&mut b);
    let file = open_bytes(&b.build(Container::File)).unwrap();
    let mut batch = holdup_trace::Batch::new();
    file.decoder(0).fill(&mut batch).unwrap();
    let Some(What::Switch { prev, next, next_comm, prev_prio, .. }) =
        batch.events.iter().find(|e| e.id == EventId(0)).map(|e| e.what)
    else {
        panic!("no switch")
    };
    assert_eq!((prev, next, prev_prio), (Tid(7), Tid(0), 120));
    assert_eq!(file.info().names.get(next_comm), "next");
    let Some(What::ContentionBegin { lock, flags, stack }) =
        batch.events.iter().find(|e| e.id == EventId(1)).map(|e| e.what)
    else {
        panic!("no contention")
    };
    assert_eq!((lock, flags), (0xffff_8880_0000_1000, 32));
    assert_eq!(batch.stack(stack), [0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020]);
}

#[test]
fn side_band_records_become_events() {
    for big in [false, true] {
        let mut b = Builder::new(big);
        b.switch(10, 3, 42, 0);
        b.side(14, 1 << 13 | 1 << 14, &[], 11, 3, 42);
        let wide = b.words(&[50, 51]);
        b.side(15, 0, &wide, 12, 3, 42);
        let lost = [b.u64(crate::common::ID_SWITCH), b.u64(5)].concat();
        b.side(2, 0, &lost, 13, 3, 42);
        let exit = [b.words(&[42, 1, 43, 1]), b.u64(14).to_vec()].concat();
        b.side(4, 0, &exit, 14, 3, 43);
        let lost = b.u64(9);
        b.side(13, 0, &lost, 15, 3, 0);
        b.side(5, 0, &[0; 24], 16, 3, 0);
        let file = open_bytes(&b.build(Container::File)).unwrap();
        let (events, quality) = drain(&file);
        let what: Vec<What> = events[1..].iter().map(|e| e.what).collect();
        assert_eq!(
            what,
            [
                What::ContextSwitch { out: true, preempt: true, other: Tid::UNKNOWN },
                What::ContextSwitch { out: false, preempt: false, other: Tid(51) },
                What::Lost { count: 5 },
                What::TaskEnd { tid: Tid(43), pid: Pid(42) },
            ]
        );
        assert!(events[1..].iter().all(|e| e.id == EventId::SIDEBAND && e.cpu == Cpu(3)));
        assert_eq!((events[1].tid, events[1].ts), (Tid(42), 11));
        assert_eq!(
            (quality.count(QualityCode::LostEvents), quality.count(QualityCode::LostSamples)),
            (5, 9)
        );
        assert_eq!(quality.count(QualityCode::Throttled), 1);
    }
}

#[test]
fn an_event_that_was_opened_and_never_came_is_taken_for_recorded_only_if_it_may_stay_away() {
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            b.counters = true;
            b.contention(20, 0, 7, &[]);
            let caps = open_bytes(&b.build(container)).unwrap().info().capabilities.clone();
            assert!(!caps.switches, "every machine switches: {big} {container:?}");
            assert!(!caps.counters, "a counter that never counted: {big} {container:?}");
            let mut b = Builder::new(big);
            b.switch(20, 0, 7, 0);
            let file = open_bytes(&b.build(container)).unwrap();
            assert!(file.info().capabilities.switches, "{big} {container:?}");
            let [switch, contention] = [0, 1].map(|i| file.info().events[i].presence);
            assert_eq!((switch, contention), (Presence::Seen, Presence::Enabled));
        }
    }
}

#[test]
fn counters_beside_tracepoints_say_how_much_was_counted_and_where() {
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            b.counters = true;
            b.switch(10, 0, 1, 7);
            b.cycles(20, 0, 7, 0x40_1000, 650_000);
            b.cycles(30, 0, 7, 0x40_1004, 700_000);
            b.switch(40, 0, 7, 0);
            let file = open_bytes(&b.build(container)).unwrap();
            assert_eq!(file.info().events[2].name, "cycles:u");
            assert!(file.info().capabilities.switches);
            assert!(!file.info().capabilities.counters, "cycles without instructions");
            let mut batch = holdup_trace::Batch::new();
            let mut decoder = file.decoder(0);
            while decoder.fill(&mut batch).unwrap() {}
            let samples: Vec<_> = batch.events.iter().filter(|e| e.id == EventId(2)).collect();
            let counted: Vec<(u64, Tid, u64, &[u64])> = samples
                .iter()
                .filter_map(|e| match e.what {
                    What::Sample { period, stack } => {
                        Some((e.ts, e.tid, period, batch.stack(stack)))
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(
                counted,
                [(20, Tid(7), 650_000, &[0x40_1000][..]), (30, Tid(7), 700_000, &[0x40_1004])],
                "{big} {container:?}"
            );
        }
    }
}

#[test]
fn what_the_counters_of_a_group_stood_at_comes_before_the_switch_it_was_read_at() {
    let [_, cycles, instructions] = ID_GROUP;
    for big in [false, true] {
        for container in CONTAINERS {
            let mut b = Builder::new(big);
            b.group = true;
            b.group_switch(10, 0, (1, 7), (100, 50), &[(cycles, 900), (instructions, 300)]);
            b.group_switch(20, 0, (7, 1), (200, 150), &[(cycles, 1900), (99, 1)]);
            let file = open_bytes(&b.build(container)).unwrap();
            let names: Vec<&str> = file.info().events.iter().map(|e| e.name.as_str()).collect();
            assert_eq!(names[2..], ["sched:sched_switch", "cycles:u", "instructions:u"]);
            assert!(file.info().capabilities.counters, "the leader's samples show them");
            let presence = |i: usize| file.info().events[i].presence;
            assert_eq!((presence(2), presence(3)), (Presence::Seen, Presence::Seen));
            let mut batch = holdup_trace::Batch::new();
            while file.decoder(0).fill(&mut batch).unwrap() {}
            let order: Vec<(u64, EventId)> = batch.events.iter().map(|e| (e.ts, e.id)).collect();
            let (side, switch) = (EventId::SIDEBAND, EventId(2));
            assert_eq!(order, [(10, side), (10, switch), (20, side), (20, switch)]);
            let read = |i: usize| match batch.events[i].what {
                What::Readings { of, leader: EventId(2) } => batch.readings(of),
                other => panic!("{other:?}"),
            };
            let [c, i] = read(0) else { panic!("two members: {:?}", read(0)) };
            assert_eq!((c.event, c.value, c.enabled_running), (EventId(3), 900, Some((100, 50))));
            assert_eq!((i.event, i.value), (EventId(4), 300));
            assert_ne!(c.instance, i.instance);
            let [later] = read(2) else { panic!("an id of nobody: {:?}", read(2)) };
            assert_eq!((later.instance, later.value), (c.instance, 1900));
            assert_eq!(batch.quality.count(QualityCode::BadRecords), 1);
        }
    }
}

#[test]
fn events_later_than_a_round_permits_are_counted_and_put_in_place() {
    let mut b = Builder::new(false);
    b.switch(100, 0, 1, 0);
    b.round(); // hands on nothing; 100 is the latest so far
    b.switch(200, 0, 1, 0);
    b.round(); // hands on everything up to 100
    b.switch(150, 1, 1, 0); // in time
    b.switch(99, 1, 2, 0); // late
    b.round(); // hands on everything up to 200
    b.switch(199, 1, 3, 0); // late
    b.switch(200, 1, 4, 0); // in time
    let file = open_bytes(&b.build(Container::File)).unwrap();
    assert_eq!(file.quality().count(QualityCode::Reordered), 2);
    let tids: Vec<u32> = merged(&file).iter().map(|e| e.tid.0).collect();
    assert_eq!(tids, [2, 1, 1, 3, 1, 4]);
}

/// A cheap generator of a fixed pseudo-random sequence.
fn numbers(mut x: u64) -> impl FnMut(u64) -> u64 {
    move |n| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (x >> 33) % n
    }
}

#[test]
fn large_files_with_payloads_that_look_like_records() {
    // Payloads full of what a resynchronising walk takes for records, so that many segments
    // start with a wrong guess; flushes short and long.
    let mut decoy = Builder::new(false);
    for i in 0..400 {
        decoy.switch(i, 9, 9, 9);
    }
    let mut b = Builder::new(false);
    let mut random = numbers(1);
    let mut clocks = [1_000_000u64; 4];
    while b.records.len() < 30 << 20 {
        let cpu = random(4) as usize;
        let longest = if random(3) == 0 { 2000 } else { 20 };
        for _ in 0..random(longest) {
            clocks[cpu] += random(50);
            let extra = if random(8) == 0 { &decoy.records[..] } else { &[] };
            b.switch_with(clocks[cpu], cpu as u32, cpu as u32 + 1, 0, extra);
        }
        if random(5) == 0 {
            b.round();
        }
    }
    // The expected result, from walking the records sequentially.
    let mut expect = Vec::new();
    let mut at = 0;
    while at < b.records.len() {
        let r = &b.records[at..];
        if r[0] == 9 {
            let word = |i: usize| u32::from_le_bytes(r[i..i + 4].try_into().unwrap());
            expect.push((
                u64::from_le_bytes(r[32..40].try_into().unwrap()),
                word(40) as u16,
                word(28),
                0,
            ));
        }
        at += u16::from_le_bytes(r[6..8].try_into().unwrap()) as usize;
    }
    expect.sort_by_key(|e| e.0);
    let file = open_bytes(&b.build(Container::File)).unwrap();
    assert!(printed(&merged(&file)) == expect);
    assert_eq!(file.info().span, Some((expect[0].0, expect[expect.len() - 1].0)));
    assert_eq!(file.quality().count(QualityCode::SkippedBytes), 0);
}

#[test]
fn a_reversed_file_costs_no_run_per_record() {
    // perf record --overwrite reads the ring newest first.
    let mut b = Builder::new(false);
    for t in (0..50_000u64).rev() {
        b.switch(t + 1, 0, 1, 0);
    }
    let file = open_bytes(&b.build(Container::File)).unwrap();
    assert!(file.runs().len() < 50, "{}", file.runs().len());
    let times: Vec<u64> = merged(&file).iter().map(|e| e.ts).collect();
    assert!(times.into_iter().eq(1..=50_000));
}

#[test]
fn a_recorder_that_was_killed_leaves_a_readable_file() {
    let mut b = Builder::new(false);
    two_cpus(&mut b);
    let all = printed(&merged(&open_bytes(&b.build(Container::File)).unwrap()));
    let mut bytes = b.build(Container::File);
    // This file has its attrs after the data; a real one has them before. Only the size is 0.
    bytes[48..56].fill(0);
    let file = open_bytes(&bytes).unwrap();
    assert!(file.quality().count(QualityCode::Truncated) > 0);
    assert_eq!(printed(&merged(&file)), all);
}

#[test]
fn every_cut_of_a_pipe_reads_as_far_as_it_goes() {
    let mut b = Builder::new(false);
    two_cpus(&mut b);
    let whole = b.build(Container::Pipe);
    let start = whole.len() - b.records.len();
    let mut last = 0;
    for n in (start..whole.len()).step_by(13) {
        let file = open_bytes(&whole[..n]).unwrap();
        let (events, _) = drain(&file);
        assert!(events.len() >= last);
        last = events.len();
    }
    for n in 0..start {
        if let Ok(file) = open_bytes(&whole[..n]) {
            assert!(drain(&file).0.is_empty());
        }
    }
}

#[test]
fn an_impossible_size_is_skipped_and_counted() {
    for at in [0, 5] {
        let mut b = Builder::new(false);
        for i in 0..at {
            b.switch(i + 1, 0, 1, 0);
        }
        b.records.extend([9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        for i in 0..20 {
            b.switch(i + 100, 0, 1, 0);
        }
        let file = open_bytes(&b.build(Container::File)).unwrap();
        assert_eq!(file.quality().count(QualityCode::SkippedBytes), 16);
        assert_eq!(drain(&file).0.len() as u64, 20 + at);
    }
}

#[test]
fn without_formats_events_still_count() {
    let mut b = Builder::new(false);
    b.tracing = false;
    two_cpus(&mut b);
    let file = open_bytes(&b.build(Container::File)).unwrap();
    let (events, quality) = drain(&file);
    assert_eq!(quality.count(QualityCode::MissingFormat), 50 * 21);
    assert_eq!(printed(&events).len(), 50 * 21);
    assert!(!file.info().capabilities.switches);
    assert_eq!(file.info().events[0].name, "tracepoint:0x5");
}

#[test]
fn records_without_time_take_their_predecessors() {
    let mut b = Builder::new(false);
    b.comm(u64::MAX, 1, b"first\0\0\0");
    b.switch(50, 0, 1, 0);
    b.comm(u64::MAX, 1, b"then\0\0\0\0");
    b.switch(60, 0, 1, 0);
    b.switch(40, 1, 1, 0);
    b.comm(u64::MAX, 1, b"last\0\0\0\0");
    let file = open_bytes(&b.build(Container::File)).unwrap();
    let order: Vec<(u64, bool)> =
        merged(&file).iter().map(|e| (e.ts, e.id == EventId::SIDEBAND)).collect();
    // The first has no predecessor and takes the run's earliest time.
    assert_eq!(order, [(40, true), (40, false), (40, true), (50, false), (50, true), (60, false)]);
}

#[test]
fn a_directory_is_read_as_one_trace() {
    let mut all = Builder::new(false);
    two_cpus(&mut all);
    let mut head = Builder::new(false);
    head.comm(0, 7, b"seven\0\0\0");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("data"), head.build(Container::File)).unwrap();
    for n in [0u64, 1, 10] {
        let mut part = Builder::new(false);
        for i in 0..100 {
            part.switch(1000 + i * 20 + n, n as u32, 7, 0);
        }
        std::fs::write(dir.path().join(format!("data.{n}")), &part.records).unwrap();
    }
    let file = holdup_perfdata::open(dir.path()).unwrap();
    let events = merged(&file);
    assert_eq!(printed(&events).len(), 300);
    assert_eq!(printed(&events)[..3], [(1000, 0, 7, 0), (1001, 1, 7, 0), (1010, 10, 7, 0)]);
    assert!(holdup_perfdata::open(&dir.path().join("nothing")).is_err());
    std::fs::remove_file(dir.path().join("data")).unwrap();
    assert!(holdup_perfdata::open(dir.path()).is_err());
}

#[test]
fn what_is_not_perf_data_is_refused_with_the_spot() {
    let message = |bytes: &[u8]| open_bytes(bytes).err().unwrap().to_string();
    assert!(message(b"").contains("0x0"));
    assert!(message(b"#!/bin/sh\n").contains("PERFILE2"));
    assert!(message(b"PERFFILE--------").contains("version 1"));
    assert!(holdup_perfdata::sniff(b"2ELIFREP") && !holdup_perfdata::sniff(b"#!/bin/sh"));
}

#[test]
fn events_without_common_id_and_with_times_at_different_offsets_stay_in_order() {
    // Found by damage::flipped_anywhere: events distinguished by common_type whose layouts differ.
    let mut b = Builder::new(false);
    for i in 0..50u64 {
        b.switch(1000 + i, 0, 7, 0);
        b.contention(2000 - i, 1, 8, &[]);
    }
    let whole = b.build(Container::Pipe);
    // The second attr's sample_type: 16 bytes header, an attr record, a record header, then 24.
    let sample_type = 16 + (8 + 136 + 8) + 8 + 24;
    for mask in 1..=255 {
        for byte in 0..3 {
            let mut file = whole.clone();
            file[sample_type + byte] ^= mask;
            drain(&open_bytes(&file).unwrap());
        }
    }
}
