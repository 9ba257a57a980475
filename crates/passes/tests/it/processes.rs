//! Very many processes that live for a moment, as a build or a shell script starts them.

use holdup_attribution::{Attribution, analyze};
use holdup_passes::{Group, Options, SwitchRow, SyscallRow};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::Nanos;

const READ: u32 = 0;
const CLONE: u32 = 56;
const WAIT4: u32 = 61;
const EXIT_GROUP: u32 = 231;
const SHELL: u32 = 10;
const FIRST: u32 = 100;
/// Time from the start of one process to the start of the next.
const EACH: Nanos = 10_000;

/// A shell starts `number` processes on one CPU and waits for each. They reuse `ids` ids in turn.
fn shell(number: u32, ids: u32) -> MemTrace {
    let mut trace = TraceBuilder::new(1)
        .task(5, 5, None, "holdup")
        .task(SHELL, SHELL, Some(5), "sh")
        .switch(0, 0, 0, SHELL, "R");
    for i in 0..number {
        let (at, child) = (Nanos::from(i) * EACH + 100, FIRST + i % ids);
        trace = trace
            .sys_enter(at, 0, SHELL, CLONE)
            .fork(at + 100, 0, SHELL, child)
            .sys_exit(at + 200, 0, SHELL, CLONE, child.into())
            .sys_enter(at + 300, 0, SHELL, WAIT4)
            .switch(at + 400, 0, SHELL, child, "S")
            .sys_exit(at + 500, 0, child, CLONE, 0);
        for call in 0..3 {
            let ret = if call == 2 { -11 } else { 7 };
            trace = trace.sys_enter(at + 1000 + call * 500, 0, child, READ).sys_exit(
                at + 1100 + call * 600,
                0,
                child,
                READ,
                ret,
            );
        }
        trace = trace
            .sys_enter(at + 6000, 0, child, EXIT_GROUP)
            .exit(at + 6100, 0, child)
            .waking(at + 6200, 0, child, SHELL)
            .wakeup(at + 6300, 0, child, SHELL)
            .switch(at + 6400, 0, child, SHELL, "X")
            .sys_exit(at + 6500, 0, SHELL, WAIT4, child.into());
    }
    trace.build()
}

/// Threads that ended free memory. Tables must say the same about the first of them as about the
/// last, which has only just ended.
#[test]
fn tables_show_threads_that_ended_long_ago() {
    let number = 500;
    let analysis = analyze(&shell(number, number), &Options::default()).unwrap();
    let last = FIRST + number - 1;
    let calls = analysis.syscalls(Group::Thread);
    let calls = |tid: u32| -> Vec<SyscallRow> {
        let rows = calls.iter().filter(|r| r.tid == Some(tid)).cloned();
        rows.map(|r| SyscallRow { tid: None, pid: None, comm: None, ..r }).collect()
    };
    let names: Vec<String> = calls(last).into_iter().map(|r| r.name).collect();
    assert_eq!(names, ["read", "exit_group"]);
    let read = &calls(last)[0];
    assert_eq!((read.count, read.errors, read.total_ns), (3, 1, 100 + 200 + 300));
    assert!(read.p50_ns.is_some() && read.p99_ns > read.p50_ns);
    let switches = analysis.switches();
    let switches = |tid: u32| -> SwitchRow {
        let row = switches.iter().find(|r| r.tid == tid).unwrap();
        let (max_delay_start_ns, max_delay_end_ns) = (None, None);
        SwitchRow { tid: 0, pid: None, max_delay_start_ns, max_delay_end_ns, ..row.clone() }
    };
    assert_eq!((switches(last).runtime_ns, switches(last).voluntary), (6000, 1));
    for tid in FIRST..last {
        assert_eq!(calls(tid), calls(last), "{tid}");
        assert_eq!(SwitchRow { comm: String::new(), ..switches(tid) }, {
            SwitchRow { comm: String::new(), ..switches(last) }
        });
    }
    let all = &analysis.syscalls(Group::System)[0];
    assert_eq!((all.name.as_str(), all.count), ("read", 3 * u64::from(number)));
}

/// Each time an id is reused, it is a new thread.
#[test]
fn ids_that_are_used_again_are_threads_of_their_own() {
    let analysis = analyze(&shell(300, 7), &Options::default()).unwrap();
    let reads = analysis.syscalls(Group::Thread);
    let reads = reads.iter().filter(|r| r.nr == READ && r.tid != Some(SHELL));
    assert_eq!(reads.map(|r| r.count).collect::<Vec<_>>(), vec![3; 300]);
}

/// A process with the name of one process of the workload belongs to the workload. Each process was
/// once compared with all of that name: 60,000 of them took minutes.
#[test]
fn twenty_thousand_namesakes_are_looked_at_once() {
    let number = 20_000;
    let analysis = analyze(&shell(number, number), &Options::default()).unwrap();
    let background = Attribution::from(&analysis).background;
    assert!(background.work_known);
    assert_eq!(background.work.len(), number as usize + 1);
    assert!(background.work.contains(&SHELL) && background.work.contains(&FIRST));
    assert_eq!(background.programs, []);
}
