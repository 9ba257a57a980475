//! Comparisons that are no gate: diff, history, the self-test, the content of a baseline.

use crate::values::{PRIMARY, metric, passed, regressed, row, side};
use crate::{csv, text, write};
use holdup_diagnose::Class;
use holdup_gate::Work;
use holdup_gate::change_points::ChangePoint;
use holdup_gate::history::{Course, Point};
use holdup_gate::metric::Per;
use holdup_gate::run::Setting;
use holdup_gate::scale::{Call, Leaf, Row, Scaling};
use holdup_gate::self_test::SelfTest;
use holdup_model::{Interval, Usl};
use holdup_render::compare::{
    BaselineMetric, BaselineReport, BaselineRun, Comparison, DiffReport, HistoryReport,
    ScaleReport, SelfTestReport,
};
use holdup_render::{Format, TextOptions};

fn diff() -> DiffReport {
    DiffReport {
        a: side("old", Class::ThreadSerialization),
        b: side("new", Class::CpuOverload),
        per: Per::Work,
        work: Work::Syscall("write".to_owned()),
        rows: vec![
            row(PRIMARY, Some(3.58e6), Some(4.29e6)),
            row("syscalls.futex.blocked_per_work", Some(3.5e6), Some(4.2e6)),
            row("syscalls.futex.count_per_work", Some(12.0), Some(12.5)),
            row("syscalls.futex.max", Some(9e6), Some(9e6)),
            row("locks[\"do_exit\"].per_work", Some(0.0), Some(21e3)),
            row("locks[\"do_exit\"].contended_per_work", Some(0.0), Some(0.25)),
            row("waits[\"pipe sh\"].per_work", Some(18e3), Some(0.0)),
            row("syscalls.write.per_work", Some(900.0), Some(900.0)),
            row("irqs.timer.per_work", None, Some(700.0)),
            row("runq.delay_per_work", None, None),
            row("switches.voluntary_per_work", Some(4.0), Some(3.0)),
        ],
        entries: None,
        differences: Some("kernel 6.18.44 against 6.19.0".to_owned()),
    }
}

#[test]
fn a_diff_in_every_form() {
    let report = Comparison::Diff(diff());
    insta::assert_snapshot!("diff_text", text(&report));
    let verbose = TextOptions { verbose: true, ..TextOptions::default() };
    insta::assert_snapshot!("diff_verbose", write(&report, &Format::Text(verbose)));
    insta::assert_snapshot!("diff_md", write(&report, &Format::Markdown));
    insta::assert_snapshot!("diff_json", write(&report, &Format::Json));
    insta::assert_snapshot!("diff_csv", write(&report, &csv()));
}

#[test]
fn no_more_rows_are_shown_than_asked_for() {
    let report = Comparison::Diff(DiffReport { entries: Some(2), ..diff() });
    let words = text(&report);
    assert!(words.contains("do_exit") && !words.contains("pipe sh"), "{words}");
    assert!(words.contains("3 more rows not shown"), "{words}");
    let value: serde_json::Value = serde_json::from_str(&write(&report, &Format::Json)).unwrap();
    assert_eq!(value["rows"].as_array().unwrap().len(), 2);
    assert_eq!(write(&report, &csv()).lines().count(), 3);
}

#[test]
fn nothing_changed() {
    let report = Comparison::Diff(DiffReport { rows: Vec::new(), ..diff() });
    assert!(text(&report).ends_with("per unit of work (syscall:write)\n  nothing\n"));
    assert!(write(&report, &Format::Markdown).ends_with("nothing\n"));
}

fn history() -> HistoryReport {
    let point = |(i, median): (usize, Option<f64>)| Point {
        label: format!("{:02}-abc.json", i + 1),
        runs: 5,
        median,
        spread: median.map(|_| 0.021),
        class: Some(Class::ThreadSerialization),
    };
    let medians = [3.0, 3.05, 2.98, 3.02, 3.6, 3.65, 3.62, 3.58].map(|m| Some(m * 1e6));
    let mut medians = medians.to_vec();
    medians.insert(2, None);
    let change = ChangePoint { index: 5, before: 3.0125e6, after: 3.6125e6, p: 0.000_003 };
    HistoryReport {
        course: Course {
            metric: metric(PRIMARY),
            points: medians.into_iter().enumerate().map(point).collect(),
            changes: vec![change],
        },
    }
}

#[test]
fn a_history_in_every_form() {
    let report = Comparison::History(history());
    insta::assert_snapshot!("history_text", text(&report));
    insta::assert_snapshot!("history_md", write(&report, &Format::Markdown));
    insta::assert_snapshot!("history_json", write(&report, &Format::Json));
    insta::assert_snapshot!("history_csv", write(&report, &csv()));
}

#[test]
fn a_history_says_if_nothing_changed_or_nothing_can_be_seen() {
    let mut course = history().course;
    course.changes.clear();
    let words = text(&Comparison::History(HistoryReport { course: course.clone() }));
    assert!(words.contains("There is no lasting change."), "{words}");
    course.points.clear();
    let words = text(&Comparison::History(HistoryReport { course }));
    assert!(words.contains("Four baselines are needed"), "{words}");
}

fn self_test() -> SelfTestReport {
    let chances = [0.004, 0.11, 0.35, 0.86, 0.985, 1.0, 1.0, 1.0];
    SelfTestReport {
        baseline: "base.json".to_owned(),
        test: SelfTest {
            metric: metric(PRIMARY),
            runs: 5,
            injected: 0.25,
            unchanged: passed().verdict,
            slowed: regressed().verdict,
            curve: holdup_gate::self_test::CHANGES.iter().copied().zip(chances).collect(),
            sees: Some(0.091),
        },
    }
}

#[test]
fn a_self_test_in_every_form() {
    let report = Comparison::SelfTest(Box::new(self_test()));
    insta::assert_snapshot!("self_test_text", text(&report));
    insta::assert_snapshot!("self_test_md", write(&report, &Format::Markdown));
    insta::assert_snapshot!("self_test_csv", write(&report, &csv()));
}

#[test]
fn a_gate_that_cannot_fail_is_said_to() {
    let mut report = self_test();
    report.test.slowed = passed().verdict;
    report.test.curve.clear();
    let words = text(&Comparison::SelfTest(Box::new(report)));
    assert!(words.starts_with("FAILED: the gate does not fail if"), "{words}");
}

fn baseline() -> BaselineReport {
    let setting = |kernel: &str| Setting {
        host: Some("vm".to_owned()),
        kernel: Some(kernel.to_owned()),
        arch: Some("x86_64".to_owned()),
        cpus: 2,
        events: vec!["sched:sched_switch".to_owned(), "sched:sched_wakeup".to_owned()],
    };
    let run = |i: u32, setting: usize| BaselineRun {
        name: format!("run-{i}.data"),
        setting,
        wall_ns: 1_003_421_000 + u64::from(i),
        events: 81_234,
        lost_events: u64::from(i),
        others_pct: 1.23,
        class: Class::ThreadSerialization,
        work_units: Some(512.0),
    };
    let metric =
        |name: &str, median, spread| BaselineMetric { metric: metric(name), median, spread };
    BaselineReport {
        file: "base.json".to_owned(),
        work: Some("syscall:write".to_owned()),
        redacted: false,
        settings: vec![setting("6.18.44"), setting("6.19.0")],
        runs: vec![run(1, 0), run(2, 0), run(3, 1)],
        metrics: vec![
            metric("contention.wait_per_work", Some(3.58e6), Some(0.021)),
            metric("lock.wait_pct", None, None),
        ],
    }
}

#[test]
fn a_baseline_in_every_form() {
    let report = Comparison::Baseline(baseline());
    insta::assert_snapshot!("baseline_text", text(&report));
    insta::assert_snapshot!("baseline_md", write(&report, &Format::Markdown));
    insta::assert_snapshot!("baseline_json", write(&report, &Format::Json));
    insta::assert_snapshot!("baseline_csv", write(&report, &csv()));
}

/// A ladder of recordings: one row super-linear, one that lost CPUs.
fn ladder() -> ScaleReport {
    let row = |cpus: u32, seconds: f64, serial, switches| Row {
        cpus,
        seconds,
        speedup: 4.0 / seconds,
        efficiency: 4.0 / seconds / f64::from(cpus),
        lost_cpus: f64::from(cpus) - 4.0 / seconds,
        serial_fraction: serial,
        usl_speedup: Some(f64::from(cpus).sqrt()),
        switches: Some(switches),
        without_setup: None,
    };
    let leaf = |path: &str, lost_cpus| Leaf { cpus: 4, path: path.to_owned(), lost_cpus };
    let call = |name: Option<&str>, here_ns, interval| Call {
        cpus: 4,
        name: name.map(str::to_owned),
        first_ns: 25_000.0,
        here_ns,
        interval,
    };
    let law = Usl {
        one_cpu: 0.25,
        sigma: 0.02,
        kappa: 0.011,
        sigma_interval: Some(Interval { low: 0.0, high: 0.05 }),
        kappa_interval: None,
    };
    ScaleReport {
        scaling: Scaling {
            rows: vec![
                row(1, 4.0, None, 900.0),
                row(2, 1.9, Some(-0.05), 600.0),
                row(4, 1.4, Some(0.13), 950.0),
            ],
            amdahl: Some(0.07),
            usl: Some(law),
            leaves: vec![leaf("idle/thread-sync", 1.3), leaf("busy/user", -0.16)],
            calls: vec![
                call(None, 50_000.0, None),
                call(Some("futex"), 75_000.0, Some((2.5, Some(3.25)))),
                call(Some("munmap"), 20_000.0, Some((0.7, None))),
            ],
        },
        work: Work::Syscall("write".to_owned()),
        entries: None,
    }
}

#[test]
fn a_ladder_in_every_form() {
    let report = Comparison::Scale(ladder());
    insta::assert_snapshot!("scale_text", text(&report));
    insta::assert_snapshot!("scale_md", write(&report, &Format::Markdown));
    insta::assert_snapshot!("scale_json", write(&report, &Format::Json));
    insta::assert_snapshot!("scale_csv", write(&report, &csv()));
}

/// Everything that is no gate, for the tests of hostile names and of the schema.
pub(crate) fn everything() -> Vec<Comparison> {
    vec![
        Comparison::Diff(diff()),
        Comparison::History(history()),
        Comparison::SelfTest(Box::new(self_test())),
        Comparison::Baseline(baseline()),
        Comparison::Scale(ladder()),
    ]
}
