//! Hand-made comparisons: one of each outcome.

use holdup_diagnose::Class;
use holdup_gate::Work;
use holdup_gate::diff::Row;
use holdup_gate::judge::{Compared, Doubt, Finding, Judged, Number, Test};
use holdup_gate::metric::{Metric, Table};
use holdup_gate::policy::{Hard, Judgement, Limit, Waiver};
use holdup_gate::sample::Missing;
use holdup_gate::stats::bootstrap::Interval;
use holdup_gate::verdict::{Outcome, Problem, Verdict};
use holdup_gate::why::Reason;
use holdup_render::compare::{GateReport, SideHead};

pub(crate) const PRIMARY: &str = "syscalls.futex.total_per_work";

pub(crate) fn metric(name: &str) -> Metric {
    Metric::parse(name).unwrap()
}

/// A metric of both sides, 10 runs each.
pub(crate) fn number(name: &str, a: f64, b: f64, finding: Finding) -> Judged {
    let around = |m: f64| (0..10).map(|i| m * (0.991 + 0.002 * f64::from(i))).collect();
    let ratio = b / a;
    Judged {
        limit: Limit::of(metric(name)),
        compared: Compared::Number(Box::new(Number {
            a: around(a),
            b: around(b),
            median_a: a,
            median_b: b,
            change: (a > 0.0).then_some(ratio - 1.0),
            interval: (a > 0.0).then_some(Interval {
                ratio,
                low: ratio * 0.97,
                high: Some(ratio * 1.03),
            }),
            test: Test::Samples,
            p: Some(if b > a { 0.000_011 } else { 0.84 }),
            q: Some(if b > a { 0.000_098 } else { 0.97 }),
            sees: Some(0.08),
            runs_needed: Some(14),
        })),
        finding,
    }
}

pub(crate) fn classes(a: Class, b: Class, finding: Finding) -> Judged {
    Judged {
        limit: Limit::of(Metric::Class),
        compared: Compared::Class { a: Some(a), b: Some(b) },
        finding,
    }
}

pub(crate) fn side(prefix: &str, class: Class) -> SideHead {
    SideHead {
        file: None,
        runs: (1..=10).map(|i| format!("{prefix}-{i:02}.data")).collect(),
        host: Some("vm".to_owned()),
        kernel: Some("6.18.44".to_owned()),
        cpus: Some(2),
        wall_ns: Some(1_003_421_000),
        others_pct: Some(1.23),
        class: Some(class),
    }
}

pub(crate) fn row(name: &str, a: Option<f64>, b: Option<f64>) -> Row {
    let metric = metric(name);
    let Metric::Number { figure, .. } = &metric else { panic!("{name} is not a number") };
    Row { figure: figure.clone(), metric, a, b }
}

/// A verdict about one metric, with others that inform.
pub(crate) fn gate(outcome: Outcome, primary: Judged) -> GateReport {
    let regressed = outcome == Outcome::Regressed;
    let inform = vec![
        number("runq.delay_p99", 812_000.0, 798_000.0, Finding::Same),
        number("switches.involuntary_per_s", 120.0, 190.0, Finding::Worse),
        number("ledger.busy.pct", 71.25, 60.5, Finding::Better),
        classes(Class::ThreadSerialization, Class::ThreadSerialization, Finding::Same),
    ];
    let why = vec![
        Reason {
            row: row("waits[\"mutex work\"].per_work", Some(3.1e6), Some(3.9e6)),
            threads: Some(
                "4 threads wait for mutex 0x55d0; held meanwhile by work (tid 71) 92 %".to_owned(),
            ),
        },
        Reason { row: row("locks[\"futex_wake\"].per_work", Some(0.0), Some(21e3)), threads: None },
    ];
    GateReport {
        verdict: Verdict {
            outcome,
            primary,
            inform,
            problems: Vec::new(),
            no_slower: None,
            waived: None,
            expired: Vec::new(),
            set_aside: Vec::new(),
            why: if regressed { why } else { Vec::new() },
            work: Work::Syscall("write".to_owned()),
            // Not the default, which may change independently of the output forms.
            judgement: Judgement { alpha: 0.005, power: 0.8, others_pct: 10.0, lost_pct: 0.1 },
            runs: (10, 10),
            paired: false,
        },
        a: SideHead {
            file: Some("base.json".to_owned()),
            ..side("old", Class::ThreadSerialization)
        },
        b: side("new", Class::ThreadSerialization),
        baseline: Some("base.json".to_owned()),
    }
}

pub(crate) fn regressed() -> GateReport {
    gate(Outcome::Regressed, number(PRIMARY, 3.58e6, 4.29e6, Finding::Worse))
}

pub(crate) fn passed() -> GateReport {
    gate(Outcome::Pass, number(PRIMARY, 3.58e6, 3.594e6, Finding::Same))
}

/// A report with the number of its primary metric changed.
pub(crate) fn with_number(mut report: GateReport, change: impl Fn(&mut Number)) -> GateReport {
    let Compared::Number(n) = &mut report.verdict.primary.compared else { panic!("no number") };
    change(n);
    report
}

pub(crate) fn waiver() -> Waiver {
    Waiver {
        metric: PRIMARY.to_owned(),
        until: "2027-01-31".to_owned(),
        until_day: 20_849,
        reason: "the new index takes the lock twice".to_owned(),
    }
}

pub(crate) fn background() -> Problem {
    Problem {
        code: "background-load",
        words:
            "programs outside the work took 13.2 % of capacity after (cc1, ld); the limit is 10 %"
                .to_owned(),
        remedy: "keep the machine to the work, or pin both to CPUs of their own".to_owned(),
    }
}

/// Every outcome by its name.
pub(crate) fn all() -> Vec<(&'static str, GateReport)> {
    let unsure = |doubt| number(PRIMARY, 3.58e6, 3.795e6, Finding::Unsure(doubt));
    let inconclusive = |doubt| gate(Outcome::Inconclusive, unsure(doubt));
    let mut hard = gate(Outcome::Regressed, number(PRIMARY, 3.58e6, 14.2e6, Finding::BeyondHard));
    hard.verdict.primary.limit.hard = Hard { relative: None, max: Some(10e6) };
    let few = with_number(inconclusive(Doubt::TooFewRuns), |n| {
        n.a.truncate(3);
        n.b.truncate(3);
        (n.p, n.q, n.sees) = (Some(0.05), Some(0.05), None);
    });
    let blind = with_number(inconclusive(Doubt::CouldHide), |n| {
        (n.change, n.sees, n.runs_needed) = (Some(0.004), Some(0.41), None);
    });
    let mut missing = gate(
        Outcome::Inconclusive,
        Judged {
            limit: Limit::of(metric(PRIMARY)),
            compared: Compared::Nothing,
            finding: Finding::Unsure(Doubt::NoValue {
                run: "new-03.data".to_owned(),
                why: Missing::NotRecorded(Table::Syscalls),
            }),
        },
    );
    missing.verdict.inform.clear();
    let mut crowded = gate(Outcome::Inconclusive, regressed().verdict.primary);
    crowded.verdict.problems = vec![background()];
    crowded.b.others_pct = Some(13.2);
    let mut waived = regressed();
    waived.verdict.outcome = Outcome::Pass;
    waived.verdict.waived = Some(waiver());
    let mut expired = regressed();
    expired.verdict.expired = vec![waiver()];
    let mut pairs = with_number(passed(), |n| n.test = Test::Pairs);
    pairs.verdict.paired = true;
    vec![
        ("regressed", regressed()),
        ("hard", hard),
        ("passed", passed()),
        ("better", gate(Outcome::Pass, number(PRIMARY, 4.29e6, 3.58e6, Finding::Better))),
        ("pairs", pairs),
        ("looks-worse", inconclusive(Doubt::LooksWorse)),
        ("could-hide", blind),
        ("too-few-runs", few),
        ("no-value", missing),
        ("background-load", crowded),
        ("waived", waived),
        ("expired", expired),
    ]
}
