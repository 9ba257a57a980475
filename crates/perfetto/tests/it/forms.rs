//! The same events must read the same in every form that Perfetto has for them.

use holdup_perfetto::{Perfetto, open_stream};
use holdup_testkit::{Generic, MemTrace, Packing, PerfettoForm, TraceBuilder, perfetto};
use holdup_trace::{
    Batch, Cpu, Event, EventId, NameId, QualityCode, Reader, StatKind, Tid, What, merge,
};
use std::ops::ControlFlow;
use std::path::Path;

/// An event of each kind there is, some of them on two CPUs at the same time.
fn scenario() -> MemTrace {
    let mut t =
        TraceBuilder::new(4).only_these_events().task(7, 7, None, "seven").task(9, 7, None, "nine");
    for round in 0..50u64 {
        let at = 1_000_000 + round * 10_000;
        t = t
            .switch(at, 0, 0, 7, "R")
            .sys_enter_with(at + 10, 0, 7, 202, &[1, 2, u64::MAX])
            .waking_to(at + 20, 0, 7, 9, 1)
            .wakeup_to(at + 30, 0, 7, 9, 1)
            .switch(at + 40, 1, 0, 9, "R")
            .migrate(at + 50, 0, 7, 9, 1)
            .irq(at + 60, at + 70, 1, 9, 33)
            .softirq(at + 65, at + 68, 0, 7, 3)
            .contention_begin(at + 80, 1, 9, 0xffff_8880_0000_1000, 2)
            .contended_release(at + 85, 0, 7, 0xffff_8880_0000_1000)
            .contention_end(at + 90, 1, 9, 0xffff_8880_0000_1000)
            .lock_acquire(at + 91, 1, 9, 0xffff_8880_0000_2000, "a_class", 1)
            .lock_release(at + 92, 1, 9, 0xffff_8880_0000_2000, "a_class")
            .event(
                at + 95,
                1,
                9,
                ("sched", "sched_stat_runtime"),
                What::StatRuntime { tid: Tid(9), runtime: 55 },
            )
            .event(
                at + 96,
                1,
                9,
                ("sched", "sched_stat_iowait"),
                What::StatDelay { kind: StatKind::IoWait, tid: Tid(9), delay: 1 << 40 },
            )
            .event(
                at + 97,
                1,
                9,
                ("exceptions", "page_fault_user"),
                What::PageFault { user: true, address: u64::MAX, ip: 1 },
            )
            .event(
                at + 98,
                1,
                9,
                ("power", "cpu_idle"),
                What::CpuIdle { state: u32::MAX, cpu: Cpu(1) },
            )
            .event(
                at + 99,
                1,
                9,
                ("workqueue", "workqueue_execute_start"),
                What::WorkStart { work: 5, function: 6, name: NameId::NONE },
            )
            .sys_exit(at + 100, 0, 7, 202, -11)
            .fork(at + 110, 0, 7, 1000 + round as u32)
            .switch(at + 120, 0, 7, 0, "D")
            .exit(at + 130, 1, 9)
            .switch(at + 140, 1, 9, 0, "R+")
            .waking_in_irq(at + 145, 0, 0, 7);
    }
    t.build()
}

/// All events with their fields, names spelled out.
fn content(reader: &dyn Reader) -> (Vec<String>, holdup_trace::Quality) {
    let mut all = Vec::new();
    let info = reader.info();
    let quality = merge::drive(reader, 2, &mut |events: &[Event], batch: &Batch| {
        for e in events.iter().filter(|e| e.id != EventId::SIDEBAND) {
            let name = |id: NameId| info.names.get(id);
            let what = match e.what {
                What::SysEnter { nr, args } => format!("SysEnter {nr} {:?}", batch.args(args)),
                What::LockAcquire { lock, name: n, flags } => {
                    format!("LockAcquire {lock} {} {flags}", name(n))
                }
                What::LockRelease { lock, name: n } => format!("LockRelease {lock} {}", name(n)),
                what => format!("{what:?}"),
            };
            let event = info.events[e.id.0 as usize].short_name();
            all.push(format!("{} {} {} {event} {what}", e.ts, e.cpu, e.tid));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    (all, quality)
}

fn read(bytes: &[u8]) -> Perfetto {
    assert!(holdup_perfetto::sniff(&bytes[..bytes.len().min(64 << 10)]));
    open_stream(Path::new("x"), bytes).unwrap()
}

#[test]
fn events_come_back_as_they_were_written() {
    let trace = scenario();
    let (mut wanted, _) = content(&trace);
    // At equal times this reader orders events by CPU, the builder by insertion.
    wanted.sort();
    for generic in [Generic::Named, Generic::Described] {
        for packing in [Packing::None, Packing::Deflate, Packing::Zstd] {
            let form = PerfettoForm { generic, packing, ..PerfettoForm::default() };
            let reader = read(&perfetto(&trace, &form));
            let (mut got, quality) = content(&reader);
            assert!(got.is_sorted_by_key(|e| e.split(' ').next().unwrap().parse::<u64>().unwrap()));
            got.sort();
            assert_eq!(got.len(), wanted.len());
            for (a, b) in wanted.iter().zip(&got) {
                assert_eq!(a, b, "{form:?}");
            }
            assert!(quality.is_empty(), "{form:?} {quality:?}");
            let (info, of) = (reader.info(), trace.info());
            assert_eq!((&info.capabilities, info.span), (&of.capabilities, of.span));
            assert_eq!((info.cpus_online, &info.arch), (Some(4), &Some("x86_64".to_owned())));
            let tasks: Vec<_> =
                info.tasks.iter().map(|t| (t.tid.0, t.pid.0, info.names.get(t.comm))).collect();
            assert_eq!(tasks, [(7, 7, "seven".to_owned()), (9, 7, "nine".to_owned())]);
        }
    }
}

/// `compact_sched` omits the thread switched out: it is the one switched in before.
#[test]
fn lists_of_switches_are_those_of_the_events() {
    let trace = scenario();
    let plain = read(&perfetto(&trace, &PerfettoForm::default()));
    let (wanted, _) = content(&plain);
    for per_bundle in [3, 200] {
        let form = PerfettoForm { compact: true, per_bundle, ..PerfettoForm::default() };
        let (got, quality) = content(&read(&perfetto(&trace, &form)));
        assert!(quality.is_empty(), "{quality:?}");
        assert_eq!(got.len(), wanted.len());
        // The thread switched out by each CPU's first switch, and its priority, are not recorded.
        let differ: Vec<_> = wanted.iter().zip(&got).filter(|(a, b)| a != b).collect();
        assert_eq!(differ.len(), 2, "{differ:?}");
        for (a, b) in differ {
            let b =
                b.replace("Tid(4294967295)", "Tid(0)").replace("prev_prio: 0", "prev_prio: 120");
            assert_eq!(*a, b.replace(" -1 sched_switch", " 0 sched_switch"));
        }
    }
}

/// After a loss the thread on the CPU is unknown.
#[test]
fn a_loss_is_told_and_ends_what_lists_leave_out() {
    let mut t = TraceBuilder::new(1);
    for at in 0..10u64 {
        t = t.switch(at * 10 + 5, 0, at as u32, at as u32 + 1, "S");
        if at == 4 {
            t = t.event(at * 10 + 7, 0, 0, ("sched", "sched_switch"), What::Lost { count: 9 });
        }
    }
    let trace = t.build();
    let form = PerfettoForm { compact: true, ..PerfettoForm::default() };
    let reader = read(&perfetto(&trace, &form));
    let mut seen = Vec::new();
    let quality = merge::drive(&reader, 1, &mut |events: &[Event], _: &Batch| {
        seen.extend(events.iter().map(|e| match e.what {
            What::Switch { prev, .. } => prev.to_string(),
            What::Lost { .. } => format!("lost on {}", e.cpu),
            _ => "other".to_owned(),
        }));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(quality.count(QualityCode::LostChunks), 1);
    let before = seen.iter().position(|s| s == "lost on 0").expect("it is told");
    assert_eq!(seen[0], "-1");
    assert_eq!(seen[before + 1], "-1", "{seen:?}");
    assert!(seen.iter().filter(|s| *s == "-1").count() == 2, "{seen:?}");
}

/// A producer that numbers its events differently: the message with the number of `sched_switch`
/// has text where that has numbers, and the other way round.
#[test]
fn an_event_of_other_types_is_not_the_one_with_its_number() {
    let field = |number: u8, wire: u8, bytes: &[u8]| [&[number << 3 | wire][..], bytes].concat();
    let message = |number: u8, of: &[u8]| field(number, 2, &[&[of.len() as u8][..], of].concat());
    let event = |ts: u8, content: &[u8]| {
        let of = [field(1, 0, &[ts]), field(2, 0, &[77]), message(4, content)].concat();
        message(2, &of)
    };
    let counter = [field(1, 0, &[1]), message(2, b"a_counter"), field(3, 0, &[5])].concat();
    let events: Vec<u8> = (1..4).flat_map(|ts| event(ts, &counter)).collect();
    let bundle = message(1, &[field(1, 0, &[0]), events].concat());
    let file = message(1, &[field(10, 0, &[1]), bundle].concat());
    let trace = open_stream(Path::new("x"), &file[..]).unwrap();
    assert!(!trace.info().capabilities.switches);
    assert_eq!(trace.info().events[0].name, "ftrace_event_4");
    assert_eq!(trace.quality().count(QualityCode::MissingFormat), 3);
}
