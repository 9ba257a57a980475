//! What descriptors refer to, if a recorder looked at them.

use crate::pair::{READ, reads_until_written};
use holdup_attribution::{Attribution, WaitsBy, analyze};
use holdup_passes::Options;
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{DescriptorKind, Descriptors, Pid, Seen};

const CLOSE: u32 = 3;
const OPENAT: u32 = 257;

fn seen(pid: u32, fd: u32, looks: (u32, u32), kind: DescriptorKind, name: &str) -> Seen {
    Seen { pid: Pid(pid), fd, looks, kind, name: name.to_owned() }
}

/// Thread 8 reads from descriptor 3, which no call created, until 7 writes; then it opens another
/// descriptor of that number at 55, sleeps on it, and closes it at 85.
fn trace(looks: Vec<(u64, u64)>, all: Vec<Seen>) -> MemTrace {
    reads_until_written(TraceBuilder::new(2))
        .sys_enter_with(40, 1, 8, CLOSE, &[3])
        .sys_exit(41, 1, 8, CLOSE, 0)
        .sys_enter_with(50, 1, 8, OPENAT, &[0, 0])
        .sys_exit(55, 1, 8, OPENAT, 3)
        .sys_enter_with(60, 1, 8, READ, &[3, 0, 1])
        .switch(61, 1, 8, 0, "D")
        .irq(69, 72, 1, 0, 9)
        .waking(70, 1, 0, 8)
        .switch(73, 1, 0, 8, "R")
        .sys_exit(74, 1, 8, READ, 1)
        .sys_enter_with(84, 1, 8, CLOSE, &[3])
        .sys_exit(85, 1, 8, CLOSE, 0)
        .switch(100, 0, 7, 0, "S")
        .switch(100, 1, 8, 0, "S")
        .saw(Descriptors { looks, seen: all })
        .build()
}

/// Kind and name of what was waited for, the first wait first.
fn waited_for(trace: &MemTrace) -> Vec<(&'static str, String)> {
    let a = analyze(trace, &Options::default()).unwrap();
    let mut rows = Attribution::from(&a).waits(WaitsBy::Object);
    // Both threads end asleep, outside any call.
    rows.retain(|row| row.kind != "other");
    rows.sort_by_key(|row| row.kind == "disk");
    rows.into_iter().map(|row| (row.kind, row.object)).collect()
}

#[test]
fn without_a_look_a_descriptor_is_a_number() {
    let found = waited_for(&trace(vec![], vec![]));
    assert_eq!(found, [("pipe", "fd 3 of pid 8".into()), ("disk", "fd 3 of pid 8".into())]);
}

#[test]
fn a_descriptor_is_called_what_it_was_when_it_was_that() {
    use DescriptorKind::{File, Socket};
    let all = vec![
        seen(8, 3, (0, 0), Socket, "to 127.0.0.1:80 (web)"),
        seen(8, 3, (1, 1), File, "/var/log/a"),
    ];
    let found = waited_for(&trace(vec![(0, 35), (56, 80)], all.clone()));
    // A write woke its reader, as with a pipe; but the recorder saw that it is not a pipe.
    let [socket, file] = &found[..] else { panic!("{found:?}") };
    assert_eq!(socket, &("socket", "to 127.0.0.1:80 (web)".to_owned()));
    assert_eq!(file, &("disk", "/var/log/a".to_owned()));
    // The second look begins before the file is opened, the first ends after the close.
    let found = waited_for(&trace(vec![(0, 45), (50, 80)], all));
    assert!(found.iter().all(|(_, name)| name == "fd 3 of pid 8"), "{found:?}");
}

#[test]
fn two_of_a_process_that_lead_to_the_same_are_told_apart() {
    let all = vec![
        seen(8, 3, (0, 0), DescriptorKind::File, "/var/log/a"),
        seen(8, 3, (1, 1), DescriptorKind::File, "/var/log/a"),
    ];
    let found = waited_for(&trace(vec![(0, 35), (56, 80)], all));
    assert!(found.iter().all(|(_, name)| name == "/var/log/a (fd 3 of pid 8)"), "{found:?}");
}
