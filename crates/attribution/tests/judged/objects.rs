//! What waiting for an object is for, which objects are one lock, and how long it was held.

use crate::scene::{
    FUTEX, MS, NANOSLEEP, READ, US, WAIT, WAKE, WRITE, busy, ends, measured, tid, waits,
};
use holdup_attribution::{Attribution, Leaf, WaitRule, WaitsBy};
use holdup_passes::Analysis;

/// The rule of the only object that was waited for.
fn rule(analysis: &Analysis) -> WaitRule {
    let judged = Attribution::from(analysis);
    let waited = judged.objects.values().filter(|o| o.stats.wait_ns > 0);
    let rules: Vec<WaitRule> = waited.map(|o| o.rule).collect();
    assert_eq!(rules.len(), 1, "{rules:?}");
    rules[0]
}

/// 7 waits `waited` times, for the whole trace, at a word that is not a mutex's; 8 works and ends
/// the waits.
fn joined(waited: u64) -> Analysis {
    let each = 90 / waited * MS;
    let trace = (0..waited).fold(busy(2), |trace, i| {
        let (at, end) = (i * each + MS, (i + 1) * each);
        trace
            .sys_enter_with(at, 0, 7, FUTEX, &[0x1000, WAIT, 0])
            .switch(at + 10, 0, 7, 0, "S")
            .sys_enter_with(end - 20, 1, 8, FUTEX, &[0x1000, WAKE, 0x7fff_ffff])
            .waking(end - 10, 1, 8, 7)
            .sys_exit(end - 5, 1, 8, FUTEX, 1)
            .switch(end, 0, 0, 7, "R")
            .sys_exit(end + 10, 0, 7, FUTEX, 0)
    });
    measured(&ends(trace, 2, 100 * MS))
}

/// A main thread that waited for the end of its worker was a false alarm of a paced web server.
#[test]
fn what_is_waited_for_once_is_an_end_and_no_lock() {
    let once = joined(1);
    let judged = Attribution::from(&once);
    assert_eq!(judged.ledger.ns(Leaf::ThreadSync) + judged.ledger.ns(Leaf::Order), 0);
    let harmful = judged.objects.values().filter(|o| o.rule.is_harmful());
    assert_eq!(harmful.count(), 0, "{:?} {:?}", judged.objects, judged.waits);
    let often = joined(30);
    let ledger = &Attribution::from(&often).ledger;
    assert!(ledger.ns(Leaf::ThreadSync) + ledger.ns(Leaf::Order) + ledger.ns(Leaf::OneServer) > 0);
}

#[test]
fn a_mutex_between_threads_is_taking_turns() {
    let trace = (0..5).fold(busy(2), |trace, i| {
        let at = i * 10 * MS + MS;
        let trace = waits(trace, (at, 3 * MS), 8, 7, 0x1000);
        waits(trace, (at + 4 * MS, 3 * MS), 7, 8, 0x1000)
    });
    let analysis = measured(&ends(trace, 2, 60 * MS));
    assert_eq!(rule(&analysis), WaitRule::LockContention);
    assert!(rule(&analysis).is_harmful());
    let ledger = Attribution::from(&analysis).ledger;
    assert!(ledger.ns(Leaf::ThreadSync).abs_diff(30 * MS) < 10 * US, "{ledger:?}");
}

/// 7 and 8 wait in event loops and end each other's waits by a write. They belong to one process or
/// to two of one program.
fn loops(same_process: bool, call: u32) -> Analysis {
    let pid = if same_process { 7 } else { 8 };
    let trace = busy(2).task(7, 7, None, "db-1").task(8, pid, None, "db-2");
    let trace = (0..20).fold(trace, |trace, i| {
        let at = i * 4 * MS + MS;
        let (waits, works) = if i % 2 == 0 { (8, 7) } else { (7, 8) };
        let (cpu, by) = ((waits - 7) as u16, (works - 7) as u16);
        trace
            .sys_enter_with(at, cpu, waits, call, &[5])
            .switch(at + 10, cpu, waits, 0, "S")
            .sys_enter_with(at + 2 * MS, by, works, WRITE, &[6])
            .waking(at + 2 * MS + 10, by, works, waits)
            .sys_exit(at + 2 * MS + 20, by, works, WRITE, 8)
            .switch(at + 2 * MS + 30, cpu, 0, waits, "R")
            .sys_exit(at + 2 * MS + 40, cpu, waits, call, 1)
    });
    measured(&ends(trace, 2, 100 * MS))
}

/// Idle threads of tokio and Go wait for work in `epoll_wait`, those of ZeroMQ in `poll`;
/// PostgreSQL's processes hand locks on in them.
#[test]
fn an_event_loop_that_its_own_process_wakes_is_no_service() {
    let lost = |a: &Analysis| Attribution::from(a).ledger.ns(Leaf::KernelServices);
    const POLL: u32 = 7;
    const EPOLL_WAIT: u32 = 232;
    for call in [POLL, EPOLL_WAIT] {
        assert_eq!(lost(&loops(true, call)), 0, "{call}");
        let processes = loops(false, call);
        assert!(lost(&processes) > 30 * MS, "{:?}", Attribution::from(&processes).ledger);
    }
}

/// 8 waits for work from 7. 7 mostly waits for requests, and computes a while before it has work
/// for 8; or it computes all the time. Of every `seen` ends of 8's waits, the trace has one.
fn pool(computes: bool, seen: u64) -> Analysis {
    const EPOLL_WAIT: u32 = 232;
    let trace = (0..5).fold(busy(2), |mut trace, i| {
        let (at, request) = (i * 20 * MS + MS, i * 20 * MS + 19 * MS);
        if !computes {
            trace = trace
                .sys_enter_with(at, 0, 7, EPOLL_WAIT, &[5])
                .switch(at + 10, 0, 7, 0, "S")
                .waking_in_irq(at + 11 * MS, 0, 0, 7)
                .switch(at + 11 * MS + 10, 0, 0, 7, "R")
                .sys_exit(at + 11 * MS + 20, 0, 7, EPOLL_WAIT, 1);
        }
        trace = trace.sys_enter_with(at + 30, 1, 8, FUTEX, &[0x1000, WAIT, 0]).switch(
            at + 40,
            1,
            8,
            0,
            "S",
        );
        if i % seen == 0 {
            trace = trace
                .sys_enter_with(request, 0, 7, FUTEX, &[0x1000, WAKE, 1])
                .waking(request + 10, 0, 7, 8)
                .sys_exit(request + 20, 0, 7, FUTEX, 1)
                .switch(request + 30, 1, 0, 8, "R");
        }
        trace.sys_exit(request + 40, 1, 8, FUTEX, 0)
    });
    measured(&ends(trace, 2, 100 * MS))
}

/// The compiler threads of an idle JVM were its bottleneck.
#[test]
fn a_pool_whose_listener_waits_for_requests_lacks_work() {
    let idle = pool(false, 1);
    let (rule, lost) = rule_at(&idle, 0x1000);
    assert!(rule == WaitRule::IdleNoWork && lost < US, "{rule:?} {lost}");
    let (rule, lost) = rule_at(&pool(true, 1), 0x1000);
    assert!(rule.is_harmful() && lost > 50 * MS, "{rule:?} {lost}");
}

/// zstd's threads for reading and writing wait for its only thread that compresses. Where most
/// wake-ups were not recorded, they contended.
#[test]
fn whoever_ends_the_waits_that_are_seen_ends_the_others_too() {
    for seen in [1, 5] {
        let ledger = Attribution::from(&pool(true, seen)).ledger;
        let of_one = ledger.ns(Leaf::OneServer) + ledger.ns(Leaf::Order);
        assert!(of_one > 50 * MS, "{seen}: {ledger:?}");
        assert!(ledger.ns(Leaf::ThreadSync) < MS, "{seen}: {ledger:?}");
    }
}

/// The rule of a futex, and the idle time lost to waits for other threads.
fn rule_at(analysis: &Analysis, address: u64) -> (WaitRule, u64) {
    let judged = Attribution::from(analysis);
    let name = format!("{address:#x}");
    let of = judged.objects.values().find(|o| analysis.object_name(o.stats.object) == name);
    let lost = [Leaf::ThreadSync, Leaf::OneServer, Leaf::Order];
    (of.unwrap().rule, lost.iter().map(|&leaf| judged.ledger.ns(leaf)).sum())
}

#[test]
fn time_that_has_to_pass_costs_nothing() {
    let trace = busy(2)
        .sys_enter(10 * MS, 1, 8, NANOSLEEP)
        .switch(10 * MS + 10, 1, 8, 0, "S")
        .irq(30 * MS - 5, 30 * MS + 5, 1, 0, 9)
        .waking(30 * MS, 1, 0, 8)
        .switch(30 * MS + 10, 1, 0, 8, "R")
        .sys_exit(30 * MS + 20, 1, 8, NANOSLEEP, 0);
    let analysis = measured(&ends(trace, 2, 60 * MS));
    assert_eq!(rule(&analysis), WaitRule::IdleTimer);
    let ledger = Attribution::from(&analysis).ledger;
    assert!(ledger.ns(Leaf::NoWork) + ledger.ns(Leaf::Serial) >= 19 * MS, "{ledger:?}");
}

/// A read of a file, in this state, that an interrupt ends after 20 ms.
fn read_in(state: &str) -> Analysis {
    let trace = busy(2)
        .sys_enter_with(10 * MS, 1, 8, READ, &[3])
        .switch(10 * MS + 10, 1, 8, 0, state)
        .irq(30 * MS - 5, 30 * MS + 5, 1, 0, 9)
        .waking(30 * MS, 1, 0, 8)
        .switch(30 * MS + 10, 1, 0, 8, "R")
        .sys_exit(30 * MS + 20, 1, 8, READ, 512);
    measured(&ends(trace, 2, 60 * MS))
}

#[test]
fn a_read_that_no_signal_ends_is_the_devices_and_another_is_not() {
    let io = |analysis: &Analysis| Attribution::from(analysis).ledger.ns(Leaf::Io);
    let disk = read_in("D");
    assert_eq!(rule(&disk), WaitRule::IoDevice);
    assert!(io(&disk).abs_diff(20 * MS) < US);
    assert_eq!(io(&read_in("S")), 0, "a terminal, or the network");
}

/// 7 and 8 each sleep at an object of their own and wake each other; or 9 wakes both.
fn latches(wakers: [u32; 2]) -> Analysis {
    let trace = (0..5).fold(busy(3), |trace, i| {
        let at = i * 10 * MS + MS;
        let trace = waits(trace, (at, 3 * MS), 7, wakers[0], 0x1000);
        waits(trace, (at + 4 * MS, 3 * MS), 8, wakers[1], 0x2000)
    });
    measured(&ends(trace, 3, 60 * MS))
}

#[test]
fn objects_whose_waiters_let_each_other_go_on_are_one_lock() {
    let ring = latches([8, 7]);
    let blamed = Attribution::from(&ring).blamed();
    assert_eq!(blamed.len(), 1, "{blamed:?}");
    assert_eq!((blamed[0].others, blamed[0].names.len()), (1, 2));
    let sleepers: Vec<u32> = blamed[0].sleepers.iter().map(|s| tid(&ring, s.slot)).collect();
    assert_eq!(sleepers, [7, 8]);
}

#[test]
fn objects_that_a_third_thread_wakes_are_two() {
    let apart = latches([9, 9]);
    let blamed = Attribution::from(&apart).blamed();
    assert_eq!(blamed.iter().map(|b| b.others).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn blamed_objects_name_who_slept_longest_first_and_have_the_ledgers_idle_time() {
    let trace = waits(busy(3), (10 * MS, 5 * MS), 8, 7, 0x1000);
    let trace = waits(trace, (20 * MS, 15 * MS), 9, 7, 0x1000);
    let analysis = measured(&ends(trace, 3, 60 * MS));
    let judged = Attribution::from(&analysis);
    let blamed = &judged.blamed()[0];
    let slept: Vec<_> = blamed.sleepers.iter().map(|s| tid(&analysis, s.slot)).collect();
    assert_eq!(slept, [9, 8]);
    let idle: u64 =
        [Leaf::ThreadSync, Leaf::OneServer].map(|leaf| blamed.idle_ns(leaf)).iter().sum();
    let has = judged.ledger.ns(Leaf::ThreadSync) + judged.ledger.ns(Leaf::OneServer);
    assert!(idle > 19 * MS && idle <= has, "{idle} of {has}");
}

/// 7 and 8 hand a mutex to each other this many times; each hold takes 1 ms.
fn handed(times: u64) -> Analysis {
    let mut trace = busy(2);
    for i in 0..times {
        let (who, other) = if i % 2 == 0 { (7_u32, 8_u32) } else { (8, 7) };
        let (cpu, by) = ((who - 7) as u16, (other - 7) as u16);
        let at = (i + 1) * 2 * MS;
        trace = trace
            .sys_enter_with(at, cpu, who, FUTEX, &[0x1000, WAIT, 2])
            .switch(at + 10, cpu, who, 0, "S")
            .sys_enter_with(at + MS, by, other, FUTEX, &[0x1000, WAKE, 1])
            .waking(at + MS + 10, by, other, who)
            .sys_exit(at + MS + 20, by, other, FUTEX, 1)
            .switch(at + MS + 30, cpu, 0, who, "R")
            .sys_exit(at + MS + 40, cpu, who, FUTEX, 0);
    }
    measured(&ends(trace, 2, (times + 2) * 2 * MS))
}

#[test]
fn many_holds_tell_how_long_a_mutex_was_held_in_all_and_few_do_not() {
    let many = handed(40);
    let in_all = Attribution::from(&many).blamed()[0].in_all.unwrap();
    assert!(in_all.holds >= 20 && in_all.ns <= many.wall_ns(), "{in_all:?}");
    let seen: u64 = Attribution::from(&many).blamed()[0].held.values().map(|h| h.hold_ns).sum();
    assert!(in_all.ns * 2 > seen, "{in_all:?} of {seen}");
    assert_eq!(Attribution::from(&handed(6)).blamed()[0].in_all, None);
}

#[test]
fn the_table_of_waits_has_a_row_for_each_object() {
    let trace = waits(busy(2), (10 * MS, 5 * MS), 8, 7, 0x1000);
    let trace = waits(trace, (20 * MS, 15 * MS), 8, 7, 0x2000);
    let analysis = measured(&ends(trace, 2, 60 * MS));
    let rows = Attribution::from(&analysis).waits(WaitsBy::Object);
    let objects: Vec<_> = rows.iter().map(|r| (r.object.as_str(), r.waits)).collect();
    assert_eq!(objects, [("0x2000", 1), ("0x1000", 1)], "the costliest first");
}
