//! What holders did while others waited, on traces built by hand: each part to the nanosecond.

use crate::pair::{FUTEX, WAIT, WAKE, contended_again, woken};
use holdup_attribution::{Attribution, WaitsBy, analyze};
use holdup_passes::{HolderPart, Options};
use holdup_testkit::TraceBuilder;

const PREAD: u32 = 17;
const NANOSLEEP: u32 = 35;
const RECVFROM: u32 = 45;
const WAIT_BITSET: u64 = 0x89;

/// 8 has held the mutex since 62, and 7 waits for it from 70 on. Before that 7 held it, from 20 to
/// 45, when it was not followed.
fn held_by_8() -> TraceBuilder {
    contended_again(0x1000)
}

/// 8 releases it at `at`; what it did since 70, in the order of `waits -j`, without 7's part.
#[track_caller]
fn did(trace: TraceBuilder, at: u64) -> Vec<(&'static str, Option<String>, u64)> {
    let trace = woken(trace, at, (1, 8), (0, 7)).build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let rows = Attribution::from(&a).waits(WaitsBy::Object);
    let mutex = rows.iter().find(|r| r.object == "0x1000").unwrap();
    let mut did = mutex.holders_did.clone();
    let unknown = did.iter().position(|d| d.did == "unknown").unwrap();
    assert_eq!(did.remove(unknown).ns, 25, "of 7");
    assert_eq!(did.iter().map(|d| d.ns).sum::<u64>(), at - 70, "it adds up");
    did.into_iter().map(|d| (d.did, d.call, d.ns)).collect()
}

/// 8 sleeps at another futex until 9 wakes it at 180.
fn woken_by_9(trace: TraceBuilder) -> TraceBuilder {
    trace
        .sys_enter_with(180, 0, 9, FUTEX, &[0x2000, WAKE, 1])
        .waking(180, 0, 9, 8)
        .switch(180, 1, 0, 8, "R")
        .sys_exit(180, 1, 8, FUTEX, 0)
        .sys_exit(181, 0, 9, FUTEX, 1)
        .switch(182, 0, 9, 0, "S")
}

fn call(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[test]
fn a_holder_that_runs() {
    assert_eq!(did(held_by_8(), 90), [("user", None, 20)]);
}

#[test]
fn a_holder_that_is_interrupted() {
    assert_eq!(
        did(held_by_8().irq(75, 82, 1, 8, 9), 90),
        [("user", None, 13), ("interrupted", None, 7)]
    );
}

#[test]
fn a_holder_that_waits_for_a_disk() {
    let trace = held_by_8()
        .sys_enter_with(80, 1, 8, PREAD, &[3])
        .switch(85, 1, 8, 0, "D")
        .irq(184, 188, 1, 0, 9)
        .waking(185, 1, 0, 8)
        .wakeup(187, 1, 0, 8)
        .switch(190, 1, 0, 8, "R")
        .sys_exit(195, 1, 8, PREAD, 512);
    // The interrupt wakes it; from then on it is ready.
    assert_eq!(
        did(trace, 200),
        [
            ("disk", call("pread64"), 102),
            ("user", None, 15),
            ("kernel", call("pread64"), 10),
            ("woken", None, 3)
        ]
    );
}

#[test]
fn a_holder_that_is_preempted() {
    let trace = held_by_8().switch(80, 1, 8, 9, "R").switch(180, 1, 9, 8, "S");
    assert_eq!(did(trace, 190), [("preempted", None, 100), ("user", None, 20)]);
}

#[test]
fn a_holder_that_naps() {
    let trace = held_by_8()
        .sys_enter_with(80, 1, 8, NANOSLEEP, &[0])
        .switch(80, 1, 8, 0, "S")
        .irq(178, 180, 1, 0, 9)
        .waking(180, 1, 0, 8)
        .switch(180, 1, 0, 8, "R")
        .sys_exit(180, 1, 8, NANOSLEEP, 0);
    assert_eq!(did(trace, 190), [("timer", call("nanosleep"), 100), ("user", None, 20)]);
}

#[test]
fn a_holder_that_waits_for_its_client() {
    let trace = held_by_8()
        .sys_enter_with(80, 1, 8, RECVFROM, &[4])
        .switch(80, 1, 8, 0, "S")
        .softirq(178, 180, 1, 0, 3)
        .waking(180, 1, 0, 8)
        .switch(180, 1, 0, 8, "R")
        .sys_exit(180, 1, 8, RECVFROM, 1);
    assert_eq!(did(trace, 190), [("outside", call("recvfrom"), 100), ("user", None, 20)]);
}

#[test]
fn a_holder_that_waits_for_a_second_lock() {
    let trace = held_by_8()
        .sys_enter_with(80, 1, 8, FUTEX, &[0x2000, WAIT, 2])
        .switch(80, 1, 8, 0, "S")
        .switch(81, 0, 0, 9, "R");
    let trace = woken_by_9(trace);
    assert_eq!(did(trace, 190), [("thread-sync", call("futex"), 100), ("user", None, 20)]);
}

/// The holder waits for what another thread hands out after a nap: work that comes by itself, or
/// the answer to what the holder asked that thread for.
#[test]
fn a_holder_that_waits_for_work_delays_nobody_but_one_that_waits_for_an_answer_does() {
    let followed_idle = |asked: bool| {
        let trace = held_by_8().switch(71, 0, 0, 9, "R");
        let trace = match asked {
            true => trace
                .sys_enter_with(72, 0, 9, FUTEX, &[0x3000, WAIT_BITSET, 0])
                .switch(73, 0, 9, 0, "S")
                .sys_enter_with(75, 1, 8, FUTEX, &[0x3000, WAKE, 1])
                .waking(76, 1, 8, 9)
                .sys_exit(77, 1, 8, FUTEX, 1)
                .switch(78, 0, 0, 9, "R")
                .sys_exit(79, 0, 9, FUTEX, 0),
            false => trace,
        };
        let trace = trace
            .sys_enter_with(80, 1, 8, FUTEX, &[0x2000, WAIT_BITSET, 0])
            .switch(80, 1, 8, 0, "S")
            .sys_enter_with(81, 0, 9, NANOSLEEP, &[0])
            .switch(82, 0, 9, 0, "S")
            .irq(171, 174, 0, 0, 9)
            .waking(172, 0, 0, 9)
            .switch(175, 0, 0, 9, "R")
            .sys_exit(176, 0, 9, NANOSLEEP, 0);
        let trace = woken_by_9(trace);
        let a = analyze(&woken(trace, 190, (1, 8), (0, 7)).build(), &Options::default()).unwrap();
        let mutex = a.objects().find(|o| a.object_name(o.object) == "0x1000").unwrap();
        mutex.followed_idle_ns
    };
    assert_eq!((followed_idle(false), followed_idle(true)), (90, 0));
}

/// Taking a free mutex needs no call: the thread cannot have held it while it waited for it itself.
#[test]
fn what_was_before_a_holder_s_own_wait_is_not_its_hold() {
    let trace = held_by_8()
        .switch(71, 0, 0, 9, "R")
        .sys_enter_with(75, 0, 9, FUTEX, &[0x1000, WAIT, 2])
        .switch(75, 0, 9, 0, "S");
    // 8 wakes 9, which holds it from then on; 7 waits all the time.
    let trace = trace
        .sys_enter_with(100, 1, 8, FUTEX, &[0x1000, WAKE, 1])
        .waking(101, 1, 8, 9)
        .sys_exit(102, 1, 8, FUTEX, 1)
        .switch(103, 0, 0, 9, "R")
        .sys_exit(104, 0, 9, FUTEX, 0)
        .sys_enter_with(150, 0, 9, FUTEX, &[0x1000, WAKE, 1])
        .waking(151, 0, 9, 7)
        .sys_exit(152, 0, 9, FUTEX, 1)
        .switch(153, 0, 9, 7, "S")
        .sys_exit(154, 0, 7, FUTEX, 0)
        .build();
    let a = analyze(&trace, &Options::default()).unwrap();
    let rows = Attribution::from(&a).waits(WaitsBy::Object);
    let mutex = rows.iter().find(|r| r.object == "0x1000").unwrap();
    let ns = |id| mutex.holders_did.iter().filter(|d| d.did == id).map(|d| d.ns).sum::<u64>();
    assert_eq!((ns("thread-sync"), ns("unknown")), (0, 25));
    assert_eq!(ns("user"), (100 - 70) + (150 - 104));
}

#[test]
fn the_document_names_every_part() {
    let document = include_str!("../../../../docs/waits.md");
    for part in HolderPart::ALL {
        assert!(document.contains(&format!("`{}`", part.id())), "{part:?}");
    }
}
