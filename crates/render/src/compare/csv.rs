//! Comparisons as CSV: one table each, with the keys of the JSON output.

use super::report::{
    BaselineReport, Comparison, DiffReport, GateReport, ScaleReport, SelfTestReport,
};
use super::words;
use crate::csv::write_line;
use holdup_gate::history::Course;
use holdup_gate::judge::{Compared, Finding, Judged};
use std::io::{self, Write};

/// Write `comparison` with `separator` between the cells.
pub(super) fn write(
    comparison: &Comparison,
    separator: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (heads, rows) = match comparison {
        Comparison::Diff(report) => diff(report),
        Comparison::Gate(report) => gate(report),
        Comparison::History(report) => history(&report.course),
        Comparison::SelfTest(report) => curve(report),
        Comparison::Baseline(report) => baseline(report),
        Comparison::Scale(report) => scale(report),
    };
    write_line(heads.iter(), separator, out)?;
    rows.iter().try_for_each(|row| write_line(row.iter(), separator, out))
}

type Table = (&'static [&'static str], Vec<Vec<String>>);

/// A number as it is; empty where there is none.
fn number(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or(String::new(), |v| v.to_string())
}

fn percent(ratio: Option<f64>) -> String {
    number(ratio.map(|r| r * 100.0))
}

fn diff(report: &DiffReport) -> Table {
    let rows = report.shown(report.entries.unwrap_or(usize::MAX)).map(|row| {
        vec![
            row.figure.table.name().to_owned(),
            row.figure.key.clone(),
            row.metric.to_string(),
            number(row.a),
            number(row.b),
            number(row.change()),
            number(row.change_pct()),
            row.metric.unit().to_owned(),
        ]
    });
    (&["table", "key", "metric", "a", "b", "change", "change_pct", "unit"], rows.collect())
}

fn scale(report: &ScaleReport) -> Table {
    let rows = report.scaling.rows.iter().map(|row| {
        vec![
            row.cpus.to_string(),
            number(Some(row.seconds * 1e9)),
            number(Some(row.speedup)),
            number(Some(row.efficiency)),
            number(Some(row.lost_cpus)),
            number(row.serial_fraction),
            number(row.usl_speedup),
            number(row.switches),
            number(row.without_setup.map(|w| w.setup * 1e9)),
            number(row.without_setup.map(|w| w.speedup)),
        ]
    });
    let heads = &[
        "cpus",
        "time_ns",
        "speedup",
        "efficiency",
        "lost_cpus",
        "serial_fraction",
        "usl_speedup",
        "switches",
        "setup_ns",
        "speedup_without_setup",
    ];
    (heads, rows.collect())
}

fn gate(report: &GateReport) -> Table {
    let verdict = &report.verdict;
    let row = |role: &str, outcome: &str, judged: &Judged| {
        let mut cells = vec![judged.limit.metric.to_string(), role.to_owned(), outcome.to_owned()];
        cells.push(words::finding(&judged.finding).to_owned());
        cells.push(match &judged.finding {
            Finding::Unsure(doubt) => words::doubt_code(doubt).to_owned(),
            _ => String::new(),
        });
        cells.extend(match &judged.compared {
            Compared::Number(n) => [
                number(Some(n.median_a)),
                number(Some(n.median_b)),
                percent(n.change),
                percent(n.interval.map(|i| i.low - 1.0)),
                percent(n.interval.and_then(|i| i.high).map(|high| high - 1.0)),
                number(n.p),
                number(n.q),
                percent(n.sees),
            ],
            Compared::Class { a, b } => {
                let id = |class: Option<holdup_diagnose::Class>| {
                    class.map_or(String::new(), |c| c.id().to_owned())
                };
                let mut cells = [const { String::new() }; 8];
                cells[0] = id(*a);
                cells[1] = id(*b);
                cells
            }
            Compared::Nothing => [const { String::new() }; 8],
        });
        cells.push(judged.limit.metric.unit().to_owned());
        cells
    };
    let mut rows = vec![row("primary", verdict.outcome.word(), &verdict.primary)];
    rows.extend(verdict.inform.iter().map(|judged| row("inform", "", judged)));
    let heads = &[
        "metric",
        "role",
        "outcome",
        "finding",
        "doubt",
        "a",
        "b",
        "change_pct",
        "low_pct",
        "high_pct",
        "p",
        "q",
        "sees_pct",
        "unit",
    ];
    (heads, rows)
}

fn history(course: &Course) -> Table {
    let rows = course.points.iter().enumerate().map(|(i, point)| {
        let change = course.changes.iter().find(|c| c.index == i);
        vec![
            point.label.clone(),
            number(point.median),
            percent(point.spread),
            point.runs.to_string(),
            point.class.map_or(String::new(), |c| c.id().to_owned()),
            number(change.map(|c| c.before)),
            number(change.map(|c| c.after)),
            number(change.map(|c| c.p)),
            course.metric.unit().to_owned(),
        ]
    });
    let heads = &["label", "median", "spread_pct", "runs", "class", "before", "after", "p", "unit"];
    (heads, rows.collect())
}

fn curve(report: &SelfTestReport) -> Table {
    let rows = report.test.curve.iter();
    let rows = rows.map(|&(change, seen)| vec![percent(Some(change)), percent(Some(seen))]);
    (&["change_pct", "seen_pct"], rows.collect())
}

fn baseline(report: &BaselineReport) -> Table {
    let rows = report.runs.iter().map(|run| {
        vec![
            run.name.clone(),
            run.setting.to_string(),
            run.wall_ns.to_string(),
            run.events.to_string(),
            run.lost_events.to_string(),
            number(Some(run.others_pct)),
            run.class.id().to_owned(),
            number(run.work_units),
        ]
    });
    let heads = &[
        "name",
        "setting",
        "wall_ns",
        "events",
        "lost_events",
        "others_pct",
        "class",
        "work_units",
    ];
    (heads, rows.collect())
}
