//! Data in packets other than events: clocks, losses, machines, threads, the recorder's
//! configuration.

use crate::message::{M, m};
use holdup_perfetto::{Perfetto, open_stream};
use holdup_trace::{Event, QualityCode, ReadError, Reader, TaskState, What, merge};
use std::path::Path;

/// A bundle of CPU 0 with a switch from thread `prev`, in `state`, at each time.
fn bundle(times: &[u64], prev: u64, state: u64) -> M {
    times.iter().fold(m().int(1, 0), |bundle, &ts| {
        let switch = m().bytes(1, "old").int(2, prev).int(4, state).bytes(5, "new").int(6, 9);
        bundle.with(2, m().int(1, ts).int(2, prev).with(4, switch))
    })
}

/// A packet of sequence 1.
fn packet(number: u32, content: M) -> M {
    m().with(number, content).int(3, 9999).int(10, 1)
}

fn trace(packets: &[M]) -> Result<Perfetto, ReadError> {
    let file = packets.iter().fold(m(), |file, packet| file.with(1, packet.clone()));
    assert!(holdup_perfetto::sniff(&file.0));
    open_stream(Path::new("x"), &file.0[..])
}

fn events(trace: &Perfetto) -> Vec<Event> {
    merge::events(trace).map(Result::unwrap).collect()
}

#[test]
fn times_of_another_clock_go_to_the_boot_clock_by_one_distance() {
    const LOCAL: u64 = 3;
    let stamped = |times: &[u64], local, boot| {
        packet(1, bundle(times, 7, 1).int(5, LOCAL).int(6, local).int(7, boot))
    };
    // The clock gains 5 ns between the two.
    let both = trace(&[stamped(&[100, 200], 1000, 5000), stamped(&[300, 400], 2000, 6005)]);
    let both = both.unwrap();
    assert_eq!(both.info().clock.name, "local");
    assert_eq!(events(&both).iter().map(|e| e.ts).collect::<Vec<_>>(), [4100, 4200, 4300, 4400]);
    assert_eq!(both.info().span, Some((4100, 4400)));
    // Without a pair in the bundle, a snapshot of all clocks has one for the raw clock.
    const MONO_RAW: u64 = 4;
    let [raw, boot] = [(5, 10), (6, 1010)].map(|(id, ts)| m().int(1, id).int(2, ts));
    let snapshot = packet(6, m().with(1, raw).with(1, boot));
    let raw = trace(&[snapshot, packet(1, bundle(&[100], 7, 1).int(5, MONO_RAW))]).unwrap();
    assert_eq!((events(&raw)[0].ts, &*raw.info().clock.name), (1100, "mono_raw"));
}

#[test]
fn what_the_kernel_counted_as_lost_while_recording_is_lost() {
    let stats = |phase, overrun, dropped| {
        let cpu = |n| m().int(1, n).int(3, overrun).int(4, 1).int(8, dropped);
        packet(34, m().int(1, phase).with(2, cpu(0)).with(2, cpu(1)))
    };
    let packets = [stats(1, 10, 0), packet(1, bundle(&[5], 7, 1)), stats(2, 13, 4)];
    let t = trace(&packets).unwrap();
    // Two CPUs, 3 overwritten and 4 dropped on each.
    assert_eq!(t.quality().count(QualityCode::LostEvents), 14);
    assert_eq!(t.info().cpus_online, Some(2), "the kernel's counters are one for each CPU");
}

#[test]
fn packets_that_the_recorder_dropped_are_a_loss_on_every_cpu() {
    let dropped = |b| packet(1, b).int(42, 1);
    let t = trace(&[dropped(bundle(&[5], 7, 1)), dropped(bundle(&[9], 7, 1))]).unwrap();
    let cpus: Vec<String> = events(&t)
        .iter()
        .map(|e| {
            if let What::Lost { .. } = e.what {
                format!("lost on {}", e.cpu)
            } else {
                e.ts.to_string()
            }
        })
        .collect();
    // A writer's first packet always has this flag.
    assert_eq!(cpus, ["5", "lost on 65535", "9"]);
}

#[test]
fn several_machines_are_refused_with_a_word() {
    let of = |machine| packet(1, bundle(&[5], 7, 1)).int(98, machine);
    assert!(trace(&[of(0), packet(1, bundle(&[6], 7, 1))]).is_ok());
    let error = trace(&[of(0), of(77)]).err().unwrap().to_string();
    assert!(error.contains("2 machines") && error.contains("trace_all_machines"), "{error}");
}

#[test]
fn states_are_those_of_the_recorded_kernel() {
    let state = |release: &str| {
        let system = packet(45, m().with(1, m().bytes(3, release).bytes(4, "aarch64")));
        let t = trace(&[system, packet(1, bundle(&[5], 7, 0x82))]).unwrap();
        assert_eq!(t.info().arch.as_deref(), Some("aarch64"));
        match events(&t)[0].what {
            What::Switch { prev_state, .. } => prev_state,
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(state("3.18.91-g1234"), TaskState::from_text(b"D|K"));
    assert_eq!(state("4.19.113-22067904"), TaskState::from_text(b"D|I"));
}

#[test]
fn threads_come_from_the_process_tree() {
    let process = |pid, parent, command: &str| m().int(1, pid).int(2, parent).bytes(3, command);
    let tree = m()
        .with(1, process(2, 0, "kthreadd"))
        .with(1, process(11, 2, "kworker/0:1"))
        .with(1, process(500, 1, "/usr/bin/python3").bytes(3, "x.py"))
        .with(2, m().int(1, 501).bytes(2, "worker").int(3, 500));
    let t = trace(&[packet(2, tree), packet(1, bundle(&[5], 7, 1))]).unwrap();
    let name = |id| t.info().names.get(id);
    let tasks =
        t.info().tasks.iter().map(|t| (t.tid.0, t.pid.0, t.parent.map(|p| p.0), name(t.comm)));
    assert_eq!(
        tasks.collect::<Vec<_>>(),
        [
            (2, 2, Some(0), "kthreadd".to_owned()),
            (11, 11, Some(2), "kworker/0:1".to_owned()),
            // A command line is not a name.
            (500, 500, Some(1), String::new()),
            (501, 500, None, "worker".to_owned()),
        ]
    );
}

/// Chrome's own traces: processes and threads, and nothing of the kernel.
#[test]
fn a_trace_without_ftrace_opens_and_says_so() {
    let track = packet(60, m().int(1, 5).bytes(2, "track"));
    let t = trace(&[packet(2, m().with(1, m().int(1, 77))), track]).unwrap();
    assert!(events(&t).is_empty() && t.quality().is_empty());
    assert_eq!((t.info().span, t.info().tasks.len()), (None, 1));
    let said = t.info().extra.iter().find(|(label, _)| label == "ftrace").expect("it is said");
    assert!(said.1.contains("no ftrace events") && said.1.contains("linux.ftrace"), "{}", said.1);
}

/// Two ftrace instances read the same CPU: their bundles are no damage.
#[test]
fn bundles_that_overlap_are_put_in_order() {
    let bundles = [&[10, 30][..], &[5, 20, 40], &[35, 50], &[45, 60]];
    let packets: Vec<M> = bundles.iter().map(|times| packet(1, bundle(times, 7, 1))).collect();
    let t = trace(&packets).unwrap();
    assert_eq!(t.runs().len(), 2);
    let times: Vec<u64> = events(&t).iter().map(|e| e.ts).collect();
    assert_eq!(times, [5, 10, 20, 30, 35, 40, 45, 50, 60]);
}
