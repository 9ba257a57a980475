//! Control groups: which records name them, and what samples say of threads.

use crate::common::{Builder, Container, drain, merged, open_bytes};
use holdup_perfdata::PerfData;
use holdup_trace::{Batch, Event, Reader, Tid, What};

/// (time, thread, path) of each report of a control group.
fn said(file: &PerfData, events: &[Event]) -> Vec<(u64, u32, String)> {
    let names = &file.info().names;
    let say = |e: &Event| match e.what {
        What::InGroup { tid, group } => Some((e.ts, tid.0, names.get(group))),
        _ => None,
    };
    events.iter().filter_map(say).collect()
}

fn with_groups(big: bool) -> Builder {
    let mut b = Builder::new(big);
    b.cgroups = true;
    b.cgroup(0, 1, "/");
    b.cgroup(0, 44, "/system.slice/a.service");
    b
}

#[test]
fn samples_say_in_which_group_a_thread_is() {
    for big in [false, true] {
        for container in [Container::File, Container::Pipe, Container::Compressed] {
            let mut b = with_groups(big);
            b.switch_of(1000, 0, (7, 0), 44);
            b.switch_of(1010, 1, (8, 0), 1);
            b.switch_of(1020, 0, (7, 0), 44);
            // The thread moves to a group created just now.
            b.cgroup(1030, 82, "/made.scope");
            b.switch_of(1040, 0, (7, 0), 82);
            // The idle task is in no group that matters; the path of group 99 was never recorded.
            b.switch_of(1050, 0, (0, 9), 1);
            b.switch_of(1060, 0, (9, 0), 99);
            let file = open_bytes(&b.build(container)).unwrap();
            assert!(file.info().capabilities.groups);
            let (events, quality) = drain(&file);
            assert!(quality.is_empty(), "{big} {container:?} {quality:?}");
            let said = said(&file, &events);
            let said: Vec<(u64, u32, &str)> =
                said.iter().map(|(ts, tid, path)| (*ts, *tid, path.as_str())).collect();
            let a = "/system.slice/a.service";
            let want =
                [(1000, 7, a), (1010, 8, "/"), (1040, 7, "/made.scope"), (1060, 9, "group 99")];
            assert_eq!(said, want, "{big} {container:?}");
            // Each report comes right before its switch, and the switches are complete.
            let switches = events.iter().filter(
                |e| matches!(e.what, What::Switch { prev, .. } if prev == Tid(7) && e.tid == prev),
            );
            assert_eq!(switches.count(), 3);
        }
    }
}

#[test]
fn what_was_said_long_ago_is_said_again() {
    let mut b = with_groups(false);
    for i in 0..30 {
        b.switch_of(1_000_000 + i * 1_000_000, 0, (7, 0), 44);
    }
    let file = open_bytes(&b.build(Container::File)).unwrap();
    let times: Vec<u64> = said(&file, &merged(&file)).iter().map(|s| s.0 / 1_000_000).collect();
    assert_eq!(times, [1, 11, 21]);
}

#[test]
fn without_the_bit_nothing_is_said() {
    let mut b = Builder::new(false);
    b.cgroup(0, 44, "/a");
    b.switch(1000, 0, 7, 0);
    let file = open_bytes(&b.build(Container::File)).unwrap();
    assert!(!file.info().capabilities.groups);
    assert_eq!(said(&file, &merged(&file)), []);
}

#[test]
fn a_record_that_is_cut_off_harms_nobody() {
    let mut b = with_groups(false);
    b.switch_of(1000, 0, (7, 0), 44);
    let whole = b.build(Container::File);
    for cut in 0..whole.len() {
        if let Ok(file) = open_bytes(&whole[..cut]) {
            drain(&file);
        }
    }
    // Shorter than its own fields, and than an id.
    for body in [&[][..], &[1; 4], &[1; 8]] {
        let mut b = with_groups(false);
        b.push(19, 0, body);
        b.switch_of(1000, 0, (7, 0), 44);
        let file = open_bytes(&b.build(Container::File)).unwrap();
        assert_eq!(said(&file, &merged(&file)).len(), 1);
    }
}

/// A sample's control group gets the time of the next event, and a sample that is too short yields
/// none.
#[test]
fn groups_of_damaged_samples_stay_in_order() {
    let mut b = with_groups(false);
    for i in 0..6 {
        b.switch_of(1000 + i * 20_000_000, 0, (7 + i as u32, 0), 44);
        // A switch without a time.
        b.switch_of(u64::MAX, 0, (7 + i as u32, 0), 44);
    }
    let whole = b.build(Container::File);
    for at in 0..whole.len() {
        for value in [0, 1, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let Ok(file) = open_bytes(&bytes) else { continue };
            let mut batch = Batch::new();
            for (i, run) in file.runs().iter().enumerate() {
                let (mut decoder, mut last) = (file.decoder(i), run.first_ts);
                loop {
                    batch.clear();
                    let more = decoder.fill(&mut batch).unwrap();
                    for e in &batch.events {
                        assert!(e.ts >= last, "byte {at} is {value}: {} after {last}", e.ts);
                        last = e.ts;
                    }
                    if !more {
                        break;
                    }
                }
            }
        }
    }
}
