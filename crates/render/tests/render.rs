//! Every renderer on hand-made rows: known and unknown values, hostile names, empty tables.

use holdup_attribution::{Leaf, Ledger};
use holdup_passes::{CpuRow, Group, IrqRow, ProcRow, SarRow, SwitchRow, SyscallRow};
use holdup_render::{
    Body, Format, Info, Known, Report, Section, Table, TextOptions, TraceHead, schema,
};
use holdup_trace::{Quality, QualityCode, TraceInfo};
use std::path::PathBuf;

fn report(command: &'static str, body: Body) -> Report {
    let mut quality = Quality::default();
    quality.add(QualityCode::LostEvents, 12);
    quality.add(QualityCode::Throttled, 3);
    quality.add(QualityCode::Reordered, 7);
    Report {
        command,
        trace: TraceHead {
            path: "traces/a\x1b[2J.data".to_owned(),
            format: "perf.data".to_owned(),
            cpus: 4,
            start_ns: 9_211_166_123,
            end_ns: 10_211_166_123,
            wall_ns: 1_000_000_000,
            events: 3214,
            lost_events: 12,
            clock: None,
            part_of: None,
            known: Known::Counted,
        },
        quality: quality.entries(),
        body,
    }
}

fn render(report: &Report, format: &Format) -> String {
    let mut out = Vec::new();
    holdup_render::write(report, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn text(command: &'static str, body: Body, options: TextOptions) -> String {
    let out = render(&report(command, body), &Format::Text(options));
    assert!(!out.contains(|c: char| c.is_control() && c != '\n'), "control characters: {out:?}");
    assert!(out.lines().all(|l| l == l.trim_end()), "blanks at the end of a line: {out:?}");
    out
}

/// Blocks only, for tables.
fn quiet(table: Table) -> String {
    let name = table.name;
    text(name, Body::Table(table), TextOptions { quiet: true, ..TextOptions::default() })
}

fn json(command: &'static str, body: Body) -> String {
    render(&report(command, body), &Format::Json)
}

fn csv(table: Table, separator: &str) -> String {
    render(
        &report(table.name, Body::Table(table)),
        &Format::Csv { separator: separator.to_owned() },
    )
}

fn syscall_rows() -> Vec<SyscallRow> {
    vec![
        SyscallRow {
            comm: Some("server".into()),
            pid: Some(Some(5874)),
            tid: Some(5683),
            name: "semop".into(),
            nr: 65,
            count: 4760,
            errors: 2,
            total_ns: 5_424_494_000,
            cpu_ns: Some(631_810_000),
            interrupted_ns: Some(1_200),
            runnable_ns: Some(44_000),
            blocked_ns: Some(4_792_638_800),
            min_ns: 14_000,
            avg_ns: 1_139_599,
            max_ns: 13_730_000,
            p50_ns: Some(1_000_000),
            p99_ns: Some(9_000_000),
            pct_capacity: Some(15.795),
            errnos: [("EAGAIN".to_owned(), 1), ("EINTR".to_owned(), 1)].into(),
            ..SyscallRow::default()
        },
        SyscallRow {
            comm: Some("a\n\x1b[31m\"b,c\"".into()),
            pid: Some(None),
            tid: Some(7),
            name: "kwritev".into(),
            nr: 20,
            pending: 1,
            pending_ns: 250,
            ..SyscallRow::default()
        },
    ]
}

fn proc_rows() -> Vec<ProcRow> {
    let row = |comm: &str, pid, tid, app_ns, kernel_ns: Option<u64>| ProcRow {
        comm: comm.into(),
        pid: Some(pid),
        tid: Some(tid),
        combined_ns: app_ns + kernel_ns.unwrap_or(0),
        app_ns: Some(app_ns),
        kernel_ns,
        blocked_ns: 900_000,
        pct_capacity: holdup_passes::percent(app_ns + kernel_ns.unwrap_or(0), 4_000_000_000),
        switches: 3,
        voluntary: 2,
        involuntary: 1,
        switches_per_s: 3.0,
        ..ProcRow::default()
    };
    vec![
        row("syncd", Some(3044), 2003, 86_000, Some(44_650_000)),
        row("lazyp", Some(5874), 5683, 630_816_000, Some(121_122_000)),
        ProcRow { kthread: true, ..row("kworker/0:1", Some(17), 17, 0, Some(12_000)) },
        row("東京\u{202e}", None, 9, 12_000, None),
    ]
}

fn cpu_rows() -> Vec<CpuRow> {
    let row = |cpu, user_ns, kernel_ns: Option<u64>| CpuRow {
        cpu,
        user_ns: Some(user_ns),
        kernel_ns,
        kthread_ns: 1_000_000,
        idle_ns: 999_000_000 - user_ns - kernel_ns.unwrap_or(0),
        wall_ns: 1_000_000_000,
        switches: 100,
        switches_per_s: 100.0,
        ..CpuRow::default()
    };
    vec![row(1, 12_345_678, None), row(0, 900_000_000, Some(50_000_000))]
}

fn switch_rows() -> Vec<SwitchRow> {
    vec![
        SwitchRow {
            cgroup: Some(None),
            threads: None,
            comm: "quiet".into(),
            pid: Some(1),
            tid: 1,
            runtime_ns: 5_000,
            switches: 1,
            voluntary: 1,
            ..SwitchRow::default()
        },
        SwitchRow {
            cgroup: Some(Some("a.service".into())),
            threads: None,
            comm: "waiter".into(),
            pid: Some(2),
            tid: 3,
            runtime_ns: 700_000_000,
            switches: 40,
            delay_count: Some(38),
            avg_delay_ns: Some(90_045),
            max_delay_ns: Some(49_621_392),
            max_delay_start_ns: Some(9_419_984_691),
            max_delay_end_ns: Some(9_469_606_083),
            voluntary: 30,
            involuntary: 10,
            preempted_ns: 438_698,
            migrations: Some(9),
            stat_runtime_ns: Some(701_000_000),
        },
    ]
}

fn irq_rows() -> Vec<IrqRow> {
    let row = |kind, id, name: &str, cpu, total_ns| IrqRow {
        kind,
        id,
        name: name.into(),
        cpu: Some(cpu),
        count: 10,
        total_ns,
        avg_ns: total_ns / 10,
        max_ns: total_ns / 2,
        max_start_ns: 9_300_000_000,
    };
    vec![
        row("workqueue", 0xffff_ffff_8100_0000, "", 2, 1_000),
        row("irq", 10, "eth0", 0, 400_000_000),
        row("softirq", 9, "RCU", 1, 30_000),
        row("workqueue", 0xffff_ffff_8100_0040, "vmstat_update", 2, 1_000),
    ]
}

fn sar_rows() -> Vec<SarRow> {
    let system = SarRow {
        pct_usr: Some(36.0),
        pct_sys: Some(43.0),
        pct_wio: Some(0.0),
        pct_idle: Some(21.0),
        scall_per_s: Some(18734.0),
        sread_per_s: Some(21.0),
        rchar_per_s: Some(89850.0),
        cswch_per_s: Some(13737.0),
        runq_sz: Some(3.4),
        pct_runocc: Some(100.0),
        ..SarRow::default()
    };
    vec![system.clone(), SarRow { cpu: Some(0), pct_sys: None, ..system }]
}

fn ledger() -> Ledger {
    Ledger::new(
        4_000_000_000,
        [
            (Leaf::UserUndivided, 1_000_000_000),
            (Leaf::LockSpin, 500_000_000),
            (Leaf::OneServer, 2_490_000_000),
            (Leaf::NoWork, 0),
            (Leaf::Unaccounted, 10_000_000),
        ],
    )
}

fn info() -> Info {
    let mut info = TraceInfo::new(PathBuf::from("perf.data"), "perf.data");
    info.hostname = Some("evil\x1b]0;title\x07".into());
    info.os_release = Some("5.10.0".into());
    info.arch = Some("aarch64".into());
    info.cpus_online = Some(4);
    info.numa = vec![(0, "0-3".into())];
    info.span = Some((9_211_166_123, 10_211_166_123));
    info.clock.resolution_ns = 1000;
    info.capabilities.switches = true;
    info.extra = vec![("runs in time order".into(), "5".into())];
    Info::new(&info)
}

#[test]
fn text_has_a_head_and_warnings() {
    let mut table = schema::switches(&switch_rows());
    table.entries = Some(1);
    let page = text("switches", Body::Table(table.clone()), TextOptions::default());
    insta::assert_snapshot!("text_switches", page);
    let options = TextOptions { verbose: true, width: Some(80), ..TextOptions::default() };
    insta::assert_snapshot!(
        "text_switches_verbose_80_columns",
        text("switches", Body::Table(table), options)
    );
}

/// However many rows are made, those that are kept, their order and the number of the others are
/// the same.
#[test]
fn rows_that_nobody_reads_are_not_kept() {
    let row = |tid: u32| SwitchRow {
        tid,
        max_delay_ns: (!tid.is_multiple_of(7)).then(|| u64::from(tid * 37 % 101)),
        ..SwitchRow::default()
    };
    let rows: Vec<SwitchRow> = (0..500).map(row).collect();
    for entries in [Some(1), Some(3), Some(499), Some(500), Some(1000), None] {
        let first = schema::first_switches(rows.iter().cloned(), entries);
        let mut all = schema::switches(&rows);
        all.entries = entries;
        assert!(first.rows.len() <= entries.unwrap_or(500), "{}", first.rows.len());
        assert_eq!(first.left_out(), all.left_out());
        assert_eq!(quiet(first), quiet(all));
    }
}

#[test]
fn text_of_system_calls() {
    let thread = schema::syscalls(&syscall_rows(), Group::Thread);
    insta::assert_snapshot!("text_syscalls_by_thread", quiet(thread.clone()));
    let options = TextOptions { quiet: true, verbose: true, ..TextOptions::default() };
    insta::assert_snapshot!(
        "text_syscalls_verbose",
        text("syscalls", Body::Table(thread), options)
    );
    insta::assert_snapshot!("text_syscalls_none", quiet(schema::syscalls(&[], Group::System)));
    let mut missing = schema::syscalls(&[], Group::System);
    missing.missing = Some("raw_syscalls:sys_enter,raw_syscalls:sys_exit");
    insta::assert_snapshot!("text_syscalls_not_recorded", quiet(missing));
}

#[test]
fn text_of_processes() {
    insta::assert_snapshot!(
        "text_procs_by_thread",
        quiet(schema::procs(&proc_rows(), Group::Thread))
    );
    let mut rows = proc_rows();
    for row in &mut rows {
        (row.pid, row.tid, row.processes, row.threads) = (None, None, Some(1), Some(2));
    }
    insta::assert_snapshot!("text_procs_by_command", quiet(schema::procs(&rows, Group::Command)));
}

#[test]
fn text_of_cpus_irqs_and_sar() {
    insta::assert_snapshot!("text_cpus", quiet(schema::cpus(&cpu_rows())));
    insta::assert_snapshot!("text_irqs_per_cpu", quiet(schema::irqs(&irq_rows(), true)));
    insta::assert_snapshot!("text_irqs_total", quiet(schema::irqs(&irq_rows(), false)));
    insta::assert_snapshot!("text_sar", quiet(schema::sar(&sar_rows()[..1], false)));
    insta::assert_snapshot!("text_sar_per_cpu", quiet(schema::sar(&sar_rows(), true)));
}

#[test]
fn text_of_ledger_and_info() {
    let options = TextOptions { quiet: true, ..TextOptions::default() };
    insta::assert_snapshot!(
        "text_ledger",
        text("ledger", Body::Ledger(Box::new(ledger())), options.clone())
    );
    insta::assert_snapshot!(
        "text_ledger_empty",
        text("ledger", Body::Ledger(Box::new(Ledger::new(0, []))), options.clone())
    );
    insta::assert_snapshot!("text_info", text("info", Body::Info(Box::new(info())), options));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let report = report("ledger", Body::Ledger(Box::new(ledger())));
    let plain = render(&report, &Format::Text(TextOptions::default()));
    let colored =
        render(&report, &Format::Text(TextOptions { color: true, ..TextOptions::default() }));
    assert_ne!(plain, colored);
    let mut stripped = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn json_keeps_every_value() {
    insta::assert_snapshot!(
        "json_syscalls_by_thread",
        json("syscalls", Body::Table(schema::syscalls(&syscall_rows(), Group::Thread)))
    );
    insta::assert_snapshot!(
        "json_no_rows",
        json("procs", Body::Table(schema::procs(&[], Group::Thread)))
    );
    insta::assert_snapshot!("json_ledger", json("ledger", Body::Ledger(Box::new(ledger()))));
    insta::assert_snapshot!("json_info", json("info", Body::Info(Box::new(info()))));
    let mut procs = schema::procs(&proc_rows(), Group::Thread);
    procs.entries = Some(1);
    let sections = vec![
        Section::Table(schema::sar(&sar_rows(), true)),
        Section::Ledger(Box::new(ledger())),
        Section::Table(schema::cpus(&cpu_rows())),
        Section::Table(procs),
        Section::Table(schema::irqs(&irq_rows()[..1], true)),
    ];
    insta::assert_snapshot!("json_summary", json("summary", Body::Summary(sections)));
}

#[test]
fn csv_quotes_what_must_be_quoted() {
    let table = || schema::syscalls(&syscall_rows(), Group::Thread);
    insta::assert_snapshot!("csv_syscalls_by_thread", csv(table(), ","));
    assert!(
        csv(table(), ";")
            .lines()
            .nth(1)
            .unwrap()
            .starts_with(";server;5874;5683;semop;65;4760;2;5424494000;")
    );
    insta::assert_snapshot!("csv_no_rows", csv(schema::irqs(&[], true), ","));
    let report = report(
        "summary",
        Body::Summary(vec![
            Section::Ledger(Box::new(ledger())),
            Section::Table(schema::cpus(&cpu_rows())),
        ]),
    );
    insta::assert_snapshot!("csv_summary", render(&report, &Format::Csv { separator: ",".into() }));
}
