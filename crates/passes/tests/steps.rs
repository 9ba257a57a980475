//! What threads did, on traces built by hand: one thing that a replay got wrong a test.

use holdup_attribution::analyze;
use holdup_passes::{Analysis, Detail, Did, Options, Slot, Step};
use holdup_testkit::TraceBuilder;

fn run(trace: TraceBuilder) -> Analysis {
    let options = Options { detail: Detail::Steps, ..Options::default() };
    analyze(&trace.build(), &options).unwrap()
}

fn slot(a: &Analysis, tid: u32) -> Slot {
    a.all_threads().find(|(_, t)| t.tid.0 == tid).unwrap().0
}

fn steps(a: &Analysis, tid: u32) -> &[Step] {
    a.steps(slot(a, tid)).steps
}

fn did(a: &Analysis, tid: u32) -> Vec<Did> {
    steps(a, tid).iter().map(|s| s.what).collect()
}

/// Two CPUs, 7 and 8 on them; all wake-ups and switches of both.
fn two() -> TraceBuilder {
    TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .records("sched", "sched_waking")
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
}

/// 7 lost its CPU between the two, for 8 ms of a replay that let the child begin at once.
#[test]
fn a_new_thread_begins_when_it_is_let_not_when_it_is_made() {
    let a = run(two()
        .makes(100, 0, 7, 9)
        .lets_begin(300, 0, 7, 9)
        .switch(350, 0, 7, 9, "S")
        .switch(400, 0, 9, 0, "S")
        .switch(500, 1, 8, 0, "S"));
    let spawn = Step { at: 300, what: Did::Spawn(slot(&a, 9)) };
    let spawns: Vec<_> =
        steps(&a, 7).iter().filter(|s| matches!(s.what, Did::Spawn(_))).copied().collect();
    assert_eq!(spawns, [spawn]);
    assert_eq!(did(&a, 9), [Did::Run(50)]);
}
