//! The lock table in every view.

use holdup_passes::{LockBy, LockRow};
use holdup_render::{Body, Format, Known, Report, Table, TextOptions, TraceHead, schema, write};

fn render(table: Table, format: &Format) -> String {
    let trace = TraceHead {
        path: "perf.data".into(),
        format: "perf.data".into(),
        cpus: 4,
        start_ns: 1_000_000_000,
        end_ns: 3_000_000_000,
        wall_ns: 2_000_000_000,
        events: 5,
        lost_events: 0,
        clock: None,
        part_of: None,
        known: Known::Counted,
    };
    let mut out = Vec::new();
    write(
        &Report { command: "locks", trace, quality: Vec::new(), body: Body::Table(table) },
        format,
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

fn text(mut table: Table, view: &'static str) -> String {
    table.view = view;
    render(table, &Format::Text(TextOptions { quiet: true, ..TextOptions::default() }))
}

/// A row from contention events and the scheduler.
fn waits(contended: u64, avg: u64, slept: u64) -> LockRow {
    let total = contended * avg;
    LockRow {
        contended: Some(contended),
        wait_total_ns: Some(total),
        wait_min_ns: Some(avg / 2),
        wait_avg_ns: Some(avg),
        wait_max_ns: Some(avg * 3),
        wait_p50_ns: Some(avg),
        wait_p99_ns: Some(avg * 2),
        spin_ns: Some(total / 4),
        runnable_ns: Some(total / 4),
        block_ns: Some(total / 2),
        slept: Some(slept),
        slept_wait_ns: Some(total / contended * slept),
        open: Some(0),
        open_ns: Some(0),
        first_ns: Some(1_100_000_000),
        last_ns: Some(2_900_000_000),
        contended_per_s: Some(contended as f64 / 2.0),
        pct_wait: Some(25.0),
        ..LockRow::default()
    }
}

fn by_caller() -> Table {
    let row = |kind: &str, caller: Option<&str>, w| LockRow {
        lock_type: Some(Some(kind.into())),
        caller: Some(caller.map(str::to_owned)),
        ..w
    };
    let rows = [
        row("rwsem:W", Some("vm_mmap_pgoff+0xb3"), waits(150, 11_412_980, 120)),
        row("rwsem:R", Some("lock_mm_and_find_vma+0x9b"), waits(959, 6_067_668, 959)),
        row("mutex", None, waits(10, 960, 0)),
    ];
    schema::locks(&rows, LockBy::Caller)
}

/// Without `sched_switch`.
fn by_task() -> Table {
    let row = |tid, comm: &str, w| LockRow {
        tid: Some(tid),
        comm: Some(comm.into()),
        spin_ns: None,
        runnable_ns: None,
        block_ns: None,
        slept: None,
        slept_wait_ns: None,
        ..w
    };
    schema::locks(
        &[
            row(Some(749), "mmap-2", waits(162, 7_180_000, 0)),
            row(Some(0), "swapper", waits(2, 4_519, 0)),
            row(None, "Unknown", waits(1, 500, 0)),
        ],
        LockBy::Task,
    )
}

/// A table from lockdep.
fn by_lock() -> Table {
    let row =
        |address, name: Option<&str>, kind: Option<&str>, acquired: u64, w: LockRow| LockRow {
            address: Some(address),
            name: Some(name.map(str::to_owned)),
            lock_type: Some(kind.map(str::to_owned)),
            max_waiters: Some(3),
            acquired: Some(acquired),
            acquired_per_s: Some(acquired as f64 / 2.0),
            miss_rate: Some(0.9),
            hold_total_ns: Some(97_010_910),
            hold_min_ns: Some(860),
            hold_avg_ns: Some(122_030),
            hold_max_ns: Some(9_864_610),
            utilization: Some(0.049),
            block_pct: Some(92.16),
            sleep_pct: Some(37.28),
            trylocks: Some(1),
            reads: Some(4),
            recursion: Some(1),
            preempted_holds: Some(2),
            preempted_hold_ns: Some(7_000_000),
            slept_holds: Some(0),
            slept_hold_ns: Some(0),
            ..w
        };
    let rows = [
        row(
            Some(0xff11_0000_7ea1_8198),
            Some("&mm->mmap_lock"),
            Some("rwsem"),
            625,
            waits(576, 2_201_615, 233),
        ),
        row(
            Some(0xff11_0000_7ea1_8158),
            Some("&mm->mmap_lock"),
            Some("rwsem:R"),
            100,
            waits(3, 20_000, 1),
        ),
        row(Some(0xffff_ffff_81ec_d0f0), None, None, 229, waits(7, 3_750_069, 0)),
    ];
    schema::locks(&rows, LockBy::Lock)
}

/// A table from a dump of lock_stat.
fn by_class() -> Table {
    let row = LockRow {
        address: Some(None),
        name: Some(Some("&mm->mmap_lock-W".into())),
        lock_type: Some(None),
        contended: Some(476),
        wait_total_ns: Some(1_013_275_020),
        wait_min_ns: Some(1_690),
        wait_avg_ns: Some(2_128_729),
        wait_max_ns: Some(33_470_360),
        pct_wait: Some(100.0),
        acquired: Some(795),
        miss_rate: Some(0.599),
        hold_total_ns: Some(97_010_910),
        hold_min_ns: None,
        hold_avg_ns: Some(122_026),
        hold_max_ns: Some(9_864_610),
        block_pct: Some(59.874),
        con_bounces: Some(159),
        acq_bounces: Some(208),
        ..LockRow::default()
    };
    schema::locks(&[row], LockBy::Class)
}

#[test]
fn every_view_of_every_grouping() {
    for (name, table) in [
        ("caller", by_caller as fn() -> Table),
        ("task", by_task),
        ("lock", by_lock),
        ("class", by_class),
    ] {
        let all: Vec<String> = ["", "aix", "perf", "solaris", "lock_stat"]
            .into_iter()
            .map(|view| {
                format!(
                    "--view {}\n\n{}",
                    if view.is_empty() { "holdup" } else { view },
                    text(table(), view)
                )
            })
            .collect();
        insta::assert_snapshot!(format!("locks_by_{name}"), all.join("\n"));
    }
}

#[test]
fn notes_stand_below_and_what_was_not_recorded_is_named() {
    let mut table = schema::locks(&[], LockBy::Caller);
    table.missing = Some("lock:contention_begin,lock:contention_end");
    table.notes = vec!["record them".into()];
    let shown = |view: &'static str| {
        let mut table = table.clone();
        table.view = view;
        render(table, &Format::Text(TextOptions::default()))
    };
    insta::assert_snapshot!("locks_not_recorded", [shown(""), shown("aix")].join("\n"));
}

#[test]
fn json_has_null_and_csv_nothing_where_the_trace_cannot_say() {
    insta::assert_snapshot!("locks_json", render(by_class(), &Format::Json));
    insta::assert_snapshot!("locks_csv", render(by_task(), &Format::Csv { separator: ",".into() }));
}
