//! Samples of `linux.perf`: their chains, times, weights and losses.

use crate::message::{M, m};
use holdup_perfetto::{Perfetto, open_stream};
use holdup_trace::{Batch, Cpu, Event, Pid, QualityCode, Reader, Tid, What, merge};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;

/// A packet of a writer.
fn of(writer: u64) -> M {
    m().int(3, 9999).int(10, writer)
}

/// Names, paths, frames and chains: `main` of `/srv/app` calls `hot`, which is in the kernel.
fn interned() -> M {
    let string = |id, text: &str| m().int(1, id).bytes(2, text);
    m().with(5, string(1, "main"))
        .with(5, string(2, "hot"))
        .with(5, string(3, "do_futex"))
        .with(17, string(1, "srv"))
        .with(17, string(2, "app"))
        .with(17, string(3, "kernel"))
        .with(19, m().int(1, 1).int(7, 1).int(7, 2))
        .with(19, m().int(1, 2).int(7, 3))
        .with(6, m().int(1, 1).int(2, 1).int(3, 1).int(4, 0x100))
        .with(6, m().int(1, 2).int(2, 2).int(3, 1).int(4, 0x200))
        .with(6, m().int(1, 3).int(2, 3).int(3, 2).int(4, 0x300))
        .with(7, m().int(1, 1).int(2, 1).int(2, 2).int(2, 3))
        .with(7, m().int(1, 2).bytes(2, [1, 2]))
}

/// A writer restarts; its times are of clock `clock`, its samples come at a frequency.
fn begins(clock: u64, timebase: M) -> M {
    of(5).int(13, 1).with(59, m().int(58, clock).with(12, m().with(1, timebase)))
}

fn sample(ts: u64, chain: u64) -> M {
    of(5).int(8, ts).with(66, m().int(1, 1).int(2, 70).int(3, 71).int(4, chain))
}

fn file(packets: &[M]) -> Vec<u8> {
    packets.iter().fold(m(), |file, packet| file.with(1, packet.clone())).0
}

fn trace(packets: &[M]) -> Perfetto {
    let file = file(packets);
    assert!(holdup_perfetto::sniff(&file));
    open_stream(Path::new("x"), &file[..]).unwrap()
}

/// Each sample's event and chain, innermost frame first.
fn samples(trace: &Perfetto) -> Vec<(Event, Vec<String>)> {
    let mut all = Vec::new();
    let names = &trace.info().names;
    merge::drive(trace, 1, &mut |events: &[Event], batch: &Batch| {
        for e in events {
            let What::Sample { stack, .. } = e.what else { continue };
            let frames = batch.frame_names(stack).iter().zip(batch.stack(stack)).enumerate();
            let frames = frames.map(|(n, (name, address))| {
                let kernel = if n < stack.in_kernel() { " k" } else { "" };
                let (function, dso) = (names.get(name.function), names.get(name.dso));
                format!("{function} {dso} {address:x}{kernel}")
            });
            all.push((*e, frames.collect()));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    all
}

const AT_100_HZ: fn() -> M = || m().int(2, 100);

#[test]
fn samples_have_their_chains() {
    let packets = [
        begins(6, AT_100_HZ()),
        of(5).with(12, interned()),
        // Chains are unwound in parallel: a later chain may be finished earlier.
        sample(3000, 2),
        sample(1000, 1),
    ];
    let trace = trace(&packets);
    let all = samples(&trace);
    let kernel = "do_futex [kernel.kallsyms] 300 k";
    assert_eq!(all[0].1, [kernel, "hot /srv/app 200", "main /srv/app 100"]);
    assert_eq!(all[1].1, ["hot /srv/app 200", "main /srv/app 100"]);
    let first = all[0].0;
    assert_eq!((first.ts, first.cpu, first.pid, first.tid), (1000, Cpu(1), Pid(70), Tid(71)));
    assert!(matches!(first.what, What::Sample { period: 10_000_000, .. }), "{first:?}");
    assert_eq!(trace.info().events[first.id.0 as usize].name, "cpu-clock");
    assert_eq!(trace.info().span, Some((1000, 3000)));
    assert!(trace.info().capabilities.stacks);
    assert!(trace.quality().is_empty(), "{:?}", trace.quality());
}

#[test]
fn what_was_interned_before_a_writer_began_anew_means_nothing_after() {
    let packets = [
        begins(6, AT_100_HZ()),
        of(5).with(12, interned()),
        sample(1000, 1),
        begins(6, m().int(4, 10).int(1, 5000)),
        sample(2000, 1),
        // Nothing is known of the other writer.
        of(8).int(8, 3000).with(66, m().int(4, 1)),
    ];
    let trace = trace(&packets);
    let all = samples(&trace);
    assert_eq!(all.iter().map(|s| s.1.len()).collect::<Vec<_>>(), [3, 0, 0]);
    let name = |e: &Event| trace.info().events[e.id.0 as usize].name.clone();
    assert_eq!((name(&all[1].0), name(&all[2].0)), ("cycles".into(), "cpu-clock".into()));
    assert!(matches!(all[1].0.what, What::Sample { period: 5000, .. }));
}

#[test]
fn times_go_by_the_clock_of_the_writer() {
    let [raw, boot] = [(5, 10), (6, 1010)].map(|(id, ts)| m().int(1, id).int(2, ts));
    let packets = [
        of(1).with(6, m().with(1, raw).with(1, boot)),
        begins(5, AT_100_HZ()),
        sample(500, 0),
        // The time of this sample is unknown.
        sample(500, 0).int(58, 70),
    ];
    let trace = trace(&packets);
    let all = samples(&trace);
    assert_eq!(all.iter().map(|s| s.0.ts).collect::<Vec<_>>(), [1500]);
    assert_eq!(trace.quality().count(QualityCode::BadRecords), 1);
}

#[test]
fn losses_are_no_samples() {
    let packets = [
        begins(6, AT_100_HZ()),
        of(5).int(8, 10).with(66, m().int(1, 0).int(17, 12)),
        of(5).int(8, 20).with(66, m().int(1, 0).int(18, 2)),
        sample(30, 0),
    ];
    let trace = trace(&packets);
    assert_eq!(samples(&trace).len(), 1);
    assert_eq!(trace.quality().count(QualityCode::LostSamples), 13);
    let said = |label: &str| trace.info().extra.iter().any(|(l, _)| l == label);
    assert!(said("samples lost by the kernel") && said("samples without a whole call chain"));
}

#[test]
fn a_long_chain_of_many_samples_takes_little_memory() {
    let chain = [1u8; 200_000];
    let string = |id, text: &str| m().int(1, id).bytes(2, text);
    let path = "x".repeat(100_000);
    // A path of many parts, each of them long.
    let parts = [1u8; 10_000];
    let data = m()
        .with(17, string(1, &path))
        .with(19, m().int(1, 1).bytes(7, parts))
        .with(6, m().int(1, 1).int(3, 1))
        .with(7, m().int(1, 1).bytes(2, chain));
    let mut packets = vec![begins(6, AT_100_HZ()), of(5).with(12, data)];
    packets.extend((0..500).map(|n| sample(n, 1)));
    let trace = trace(&packets);
    let all = samples(&trace);
    assert_eq!(all.len(), 500);
    assert!(all.iter().all(|s| s.1.len() == 512 && s.1[0].len() < 5000));
}

proptest! {
    #[test]
    fn damage_is_no_panic(places in prop::collection::vec((any::<usize>(), any::<u8>()), 1..12)) {
        let mut packets = vec![begins(5, AT_100_HZ()), of(5).with(12, interned())];
        packets.extend((0..4).map(|n| sample(n, n % 3)));
        let mut bytes = file(&packets);
        for (at, byte) in places {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(trace) = open_stream(Path::new("x"), &bytes[..]) {
            samples(&trace);
        }
    }
}
