//! Control groups: the group of each thread, what each group got of the machine, and what kept it
//! from more.

use holdup_attribution::{Attribution, WaitsBy, analyze};
use holdup_passes::{Analysis, CgroupRow, Filter, Group, Options};
use holdup_testkit::{MemTrace, TraceBuilder};
use holdup_trace::{GroupLimit, Groups, Nanos};

const MS: Nanos = 1_000_000;
const WEB: &str = "/system.slice/web.service";
const BATCH: &str = "/system.slice/batch.service";

fn run(trace: &MemTrace) -> Analysis {
    analyze(trace, &Options::default()).unwrap()
}

fn row<'a>(rows: &'a [CgroupRow], name: &str) -> &'a CgroupRow {
    rows.iter().find(|r| r.cgroup.as_deref() == Some(name)).unwrap()
}

/// On one CPU a thread of each group in turn; then the CPU idles.
///
/// ```text
///  0     web 1     10  batch 2   30  web 1   45  idle   60
///        └ preempted ───────────────┘ slept
/// ```
fn two_groups() -> TraceBuilder {
    TraceBuilder::new(1)
        .task(1, 1, None, "web")
        .task(2, 2, None, "batch")
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 1, "R")
        .wakeup(5 * MS, 0, 1, 2)
        .in_group(10 * MS, 0, 1, WEB)
        .switch(10 * MS, 0, 1, 2, "R")
        .in_group(30 * MS, 0, 2, BATCH)
        .switch(30 * MS, 0, 2, 1, "S")
        .switch(45 * MS, 0, 1, 0, "S")
        .switch(60 * MS, 0, 0, 1, "R")
}

#[test]
fn what_groups_used_adds_up_to_the_machine() {
    let a = run(&two_groups().build());
    let rows = a.cgroups();
    let web = row(&rows, "web.service");
    assert_eq!((web.used_ns, web.ready_ns, web.threads), (25 * MS, Some(20 * MS), Some(1)));
    let batch = row(&rows, "batch.service");
    assert_eq!((batch.used_ns, batch.wanted_ns), (20 * MS, Some(25 * MS)));
    let all: Nanos = rows.iter().map(|r| r.used_ns).sum();
    assert_eq!(all, a.capacity_ns());
    let idle = rows.iter().find(|r| r.kind == "idle").unwrap();
    assert_eq!(idle.used_ns, a.idle_ns());
}

#[test]
fn a_group_that_was_ready_waited_behind_others() {
    let a = run(&two_groups().build());
    let rows = a.cgroups();
    let behind = |name| -> Vec<(Option<String>, Nanos)> {
        row(&rows, name).behind.iter().map(|r| (r.cgroup.clone(), r.ns)).collect()
    };
    assert_eq!(behind("web.service"), [(Some("batch.service".to_owned()), 20 * MS)]);
    assert_eq!(behind("batch.service"), [(Some("web.service".to_owned()), 5 * MS)]);
}

#[test]
fn every_table_adds_up_by_group() {
    let a = run(&two_groups().build());
    let procs = a.procs(Group::Cgroup);
    let of: Vec<(Option<String>, Nanos)> =
        procs.iter().map(|r| (r.cgroup.clone().unwrap(), r.combined_ns)).collect();
    let (web, batch) = (Some("web.service".to_owned()), Some("batch.service".to_owned()));
    assert_eq!(of, [(batch.clone(), 20 * MS), (web.clone(), 25 * MS)]);
    let sum =
        |rows: Vec<holdup_passes::ProcRow>| -> Nanos { rows.iter().map(|r| r.combined_ns).sum() };
    assert_eq!(sum(a.procs(Group::Thread)), sum(procs));
    let switches = a.switches_by_cgroup();
    assert_eq!(switches.len(), 2);
    let all: u64 = a.switches().iter().map(|r| r.switches).sum();
    assert_eq!(switches.iter().map(|r| r.switches).sum::<u64>(), all);
    assert_eq!(switches[1].cgroup, Some(web));
    assert_eq!(switches[0].max_delay_ns, Some(5 * MS));
    let detail = holdup_passes::Detail::Edges;
    let a = analyze(&two_groups().build(), &Options { detail, ..Options::default() }).unwrap();
    let judged = Attribution::from(&a);
    let asleep = |by| -> Nanos { judged.waits(by).iter().map(|r| r.wait_total_ns).sum() };
    assert_eq!(asleep(WaitsBy::Cgroup), asleep(WaitsBy::Thread));
    assert!(judged.waits(WaitsBy::Cgroup).iter().any(|r| r.cgroup == Some(batch.clone())));
}

#[test]
fn a_group_is_chosen_by_name_path_or_pattern() {
    let chosen = |pattern: &str| -> Vec<u32> {
        let filter = Filter { cgroups: vec![pattern.to_owned()], ..Filter::default() };
        let a = analyze(&two_groups().build(), &Options::from(filter)).unwrap();
        a.threads().map(|(_, t)| t.tid.0).collect()
    };
    for pattern in ["web.service", "web", WEB, "w*", "*/web*"] {
        assert_eq!(chosen(pattern), [1], "{pattern}");
    }
    assert_eq!(chosen("system.slice"), [1, 2]);
    assert!(chosen("other").is_empty());
}

#[test]
fn children_are_in_the_group_of_their_parents_until_they_move() {
    let a = run(&TraceBuilder::new(1)
        .switch(0, 0, 0, 1, "R")
        .in_group(1, 0, 1, WEB)
        .fork(10, 0, 1, 2)
        .fork(20, 0, 1, 3)
        .attach_task(30, (0, 1), 3, (0, BATCH))
        // Another hierarchy, in which no thread is in a group.
        .attach_task(35, (0, 1), 3, (4, "/"))
        .switch(40, 0, 1, 2, "S")
        .switch(50, 0, 2, 3, "S")
        .switch(60, 0, 3, 0, "S")
        .build());
    let group = |tid: u32| {
        let (_, t) = a.all_threads().find(|(_, t)| t.tid.0 == tid).unwrap();
        a.group_words(a.group(t))
    };
    assert_eq!(group(2).as_deref(), Some("web.service"));
    assert_eq!(group(3).as_deref(), Some("batch.service"));
}

#[test]
fn a_process_that_is_moved_takes_its_threads_along() {
    let a = run(&TraceBuilder::new(1)
        .task(1, 1, None, "main")
        .task(2, 1, None, "worker")
        .task(3, 3, None, "other")
        .attach_task(30, (0, 3), 1, (0, BATCH))
        .switch(40, 0, 3, 2, "S")
        .switch(50, 0, 2, 0, "S")
        .build());
    let groups: Vec<Option<String>> =
        a.all_threads().map(|(_, t)| a.group_words(a.group(t))).collect();
    let batch = Some("batch.service".to_owned());
    assert_eq!(groups, [batch.clone(), batch, None]);
}

/// Two groups with quotas of their own on two CPUs: 40 ms in 100 ms, and 30 ms in 50 ms.
fn two_quotas() -> TraceBuilder {
    let mut t = TraceBuilder::new(2)
        .records("sched", "sched_wakeup")
        .switch(0, 0, 0, 1, "R")
        .switch(0, 1, 0, 2, "R")
        .in_group(1, 0, 1, WEB)
        .in_group(1, 1, 2, BATCH);
    for i in 0..4 {
        let start = i * 100 * MS;
        t = t.switch(start + 40 * MS, 0, 1, 0, "R").switch(start + 100 * MS, 0, 0, 1, "R");
    }
    for i in 0..8 {
        let start = i * 50 * MS;
        t = t.switch(start + 30 * MS, 1, 2, 0, "R").switch(start + 50 * MS, 1, 0, 2, "R");
    }
    t.switch(410 * MS, 0, 1, 0, "S").switch(410 * MS, 1, 2, 0, "S")
}

#[test]
fn each_group_has_a_quota_of_its_own() {
    let a = run(&two_quotas().build());
    let quota = |path: &str| {
        let (_, t) = a.all_threads().find(|(_, t)| a.path_of(a.group(t)) == path).unwrap();
        let quota = a.quota_of(a.group(t)).unwrap();
        (quota.period_ns, quota.cpus())
    };
    assert_eq!(quota(WEB), (Some(100 * MS), Some(0.4)));
    assert_eq!(quota(BATCH), (Some(50 * MS), Some(0.6)));
    let rows = a.cgroups();
    assert_eq!(row(&rows, "web.service").throttled_ns, Some(240 * MS));
    assert_eq!(row(&rows, "batch.service").throttled_ns, Some(160 * MS));
    assert_eq!(row(&rows, "web.service").ready_ns, Some(0));
}

/// A neighbour has the CPU when the quota is used up, and goes to sleep later: only then does the
/// CPU idle, which shows that the thread was kept off all along.
#[test]
fn a_quota_that_shows_late_has_held_since_the_thread_lost_its_cpu() {
    let a = run(&TraceBuilder::new(1)
        .records("sched", "sched_wakeup")
        .records("sched", "sched_migrate_task")
        .switch(0, 0, 0, 1, "R")
        .in_group(1, 0, 1, WEB)
        .in_group(1, 0, 2, "/other.service")
        .wakeup(10 * MS, 0, 1, 2)
        .switch(40 * MS, 0, 1, 2, "R")
        .switch(70 * MS, 0, 2, 0, "S")
        .switch(100 * MS, 0, 0, 1, "R")
        .switch(110 * MS, 0, 1, 0, "S")
        .build());
    let rows = a.cgroups();
    let web = row(&rows, "web.service");
    assert_eq!((web.throttled_ns, web.ready_ns), (Some(60 * MS), Some(0)));
    // The CPU was idle for half of it.
    assert_eq!(web.throttled_idle_ns, Some(30 * MS));
    assert!(web.behind.is_empty(), "{:?}", web.behind);
}

#[test]
fn what_the_kernel_counted_is_no_less_than_what_switches_show() {
    let limit = |path: &str, ns| GroupLimit {
        path: path.to_owned(),
        quota_ns: 40 * MS,
        period_ns: 100 * MS,
        periods: 4,
        throttled_periods: 3,
        throttled_ns: ns,
    };
    // No CPU idles: switches do not show a quota.
    let limits = vec![limit(WEB, 15 * MS), limit("/empty.slice", 7 * MS)];
    let groups = Groups { containers: Vec::new(), limits };
    let a = run(&two_groups().read_groups(groups).build());
    let rows = a.cgroups();
    let web = row(&rows, "web.service");
    assert_eq!((web.throttled_ns, web.ready_ns), (Some(15 * MS), Some(5 * MS)));
    assert_eq!((web.limit_cpus, web.periods, web.throttled_periods), (Some(0.4), Some(4), Some(3)));
    assert_eq!(web.stopped_ns, Some(15 * MS));
    // A parent group has a row because of its quota.
    let around = row(&rows, "empty.slice");
    assert_eq!((around.used_ns, around.threads, around.stopped_ns), (0, None, Some(7 * MS)));
    assert_eq!(rows.iter().map(|r| r.used_ns).sum::<Nanos>(), a.capacity_ns());
}
