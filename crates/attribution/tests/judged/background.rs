//! Which programs are the work and which are not; what a thread's critical path goes through.

use crate::scene::{GETPPID, MS, busy, ends, machine, measured, runs, waits};
use holdup_attribution::{Attribution, UnrelatedProgram, WaitsBy};
use holdup_testkit::MemTrace;

/// perf starts `work`; `other` runs concurrently, as the child of another process.
fn with_other(parent_of_other: u32) -> MemTrace {
    beside(parent_of_other, "other")
}

/// The same with another name.
fn beside(parent_of_other: u32, name: &str) -> MemTrace {
    machine(2)
        .task(5, 5, None, "perf")
        .task(6, 6, None, "shell")
        .task(7, 7, Some(5), "work")
        .task(8, 8, Some(parent_of_other), name)
        .switch(0, 0, 0, 7, "R")
        .switch(0, 1, 0, 8, "R")
        .switch(100 * MS, 0, 7, 0, "S")
        .switch(100 * MS, 1, 8, 0, "S")
        .build()
}

#[test]
fn who_was_not_started_by_the_recorder_is_background_load() {
    let analysis = measured(&with_other(6));
    let background = Attribution::from(&analysis).background;
    assert!(background.work_known && background.work.contains(&7), "{background:?}");
    let other = UnrelatedProgram { comm: "other".to_owned(), cgroup: None, ns: 100 * MS };
    assert_eq!(background.programs, [other]);
    assert_eq!(background.program, Some(7));
}

/// Another build's compiler kept the second CPU busy, and the work was healthy.
#[test]
fn a_namesake_is_background_load() {
    let analysis = measured(&beside(6, "work"));
    let background = Attribution::from(&analysis).background;
    assert_eq!(background.work.iter().copied().collect::<Vec<_>>(), [7]);
    assert_eq!(background.ns, 100 * MS);
}

#[test]
fn who_was_is_work() {
    let analysis = measured(&with_other(5));
    let background = Attribution::from(&analysis).background;
    assert_eq!(background.programs, []);
    assert_eq!(background.work.iter().copied().collect::<Vec<_>>(), [7, 8]);
    assert_eq!(background.program, None, "neither does all that matters");
}

fn once(waker: u32) -> MemTrace {
    ends(waits(busy(3), (10 * MS, 20 * MS), 8, waker, 0x1000), 3, 50 * MS)
}

#[test]
fn a_path_goes_through_who_ended_the_wait() {
    let analysis = measured(&once(7));
    let path = Attribution::from(&analysis).path(Some(8)).unwrap();
    let runs: Vec<(u32, &str)> = path.rows.iter().map(|r| (r.tid, r.state)).collect();
    assert_eq!(runs, [(8, "run"), (7, "run")], "{path:?}");
    assert!(path.rows[1].total_ns.abs_diff(20 * MS) < 100, "{path:?}");
    assert_eq!(path.rows.iter().map(|r| r.total_ns).sum::<u64>(), path.total_ns);
}

/// 7 creates 10 at 15 ms; 10 is first seen at 20 ms and at 30 ms ends the wait of 8.
fn by_who_came_to_be() -> MemTrace {
    let trace = machine(4)
        .records("sched", "sched_wakeup_new")
        .task(7, 7, None, "w0")
        .task(8, 7, None, "w1");
    let trace = runs(runs(trace, 0, 7), 1, 8)
        .makes(15 * MS, 0, 7, 10)
        .switch(20 * MS, 3, 0, 10, "R")
        .sys_enter(20 * MS + 1, 3, 10, GETPPID)
        .sys_exit(20 * MS + 2, 3, 10, GETPPID, 7);
    let trace = waits(trace, (10 * MS, 20 * MS), 8, 10, 0x1000);
    ends(trace.switch(40 * MS, 3, 10, 0, "S"), 2, 50 * MS)
}

#[test]
fn a_path_has_as_running_only_what_ran() {
    let analysis = measured(&by_who_came_to_be());
    let path = Attribution::from(&analysis).path(Some(8)).unwrap();
    let of = |tid, state| {
        path.rows.iter().filter(|r| (r.tid, r.state) == (tid, state)).map(|r| r.total_ns).sum()
    };
    let near = |ns: u64, ms: u64| assert!(ns.abs_diff(ms * MS) < 100, "{path:#?}");
    near(of(8, "run"), 30);
    // Until 10 was created, 8 waited for its creator.
    near(of(7, "run"), 5);
    near(of(10, "unknown"), 5);
    near(of(10, "run"), 10);
    assert_eq!(path.rows.iter().map(|r| r.total_ns).sum::<u64>(), path.total_ns);
}

/// The parts of a recording of some tasks also name threads that had the number before.
#[test]
fn of_two_threads_with_a_number_the_path_is_of_the_one_that_did_something() {
    let trace = machine(2).task(7, 7, None, "w0").task(9, 7, None, "before");
    let trace = runs(trace, 0, 7).fork(30 * MS, 0, 7, 9).switch(31 * MS, 1, 0, 9, "R").switch(
        40 * MS,
        1,
        9,
        0,
        "S",
    );
    let analysis = measured(&ends(trace, 1, 50 * MS));
    let path = Attribution::from(&analysis).path(Some(9)).unwrap();
    assert!(path.rows.iter().any(|r| r.state == "run"), "{path:?}");
}

#[test]
fn the_graph_has_an_edge_from_who_waited_to_who_ended_it() {
    for waker in [7, 9] {
        let analysis = measured(&once(waker));
        let graph = Attribution::from(&analysis).graph();
        let edges: Vec<_> = graph.edges.iter().map(|e| (e.waiter, e.waker)).collect();
        assert_eq!(edges, [(8, Some(waker))]);
        assert!(graph.edges[0].wait_ns.abs_diff(20 * MS) < 100, "{graph:?}");
    }
}

#[test]
fn a_histogram_has_every_wait_of_the_object() {
    let trace = (0..5)
        .fold(busy(2), |trace, i| waits(trace, (i * 10 * MS + MS, (i + 1) * MS), 8, 7, 0x1000));
    let analysis = measured(&ends(trace, 2, 60 * MS));
    let rows = Attribution::from(&analysis).wait_hists(WaitsBy::Object, 1);
    assert_eq!(rows.iter().map(|r| r.count).sum::<u64>(), 5, "{rows:?}");
    assert!(Attribution::from(&analysis).wait_hists(WaitsBy::Object, 0).is_empty());
}
