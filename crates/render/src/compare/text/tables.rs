//! The tables of a comparison in words, for text and Markdown.
//!
//! Cells have their control characters spelled out.

use super::name;
use crate::compare::report::{BaselineReport, BaselineRun, DiffReport};
use crate::compare::{spark, words};
use crate::text::TextOptions;
use crate::text::grid::{Grid, Head};
use crate::text::units::duration;
use holdup_gate::change_points::ChangePoint;
use holdup_gate::diff::Row;
use holdup_gate::history::{Course, Point};
use holdup_gate::judge::{Compared, Judged};
use holdup_gate::self_test::SelfTest;

/// Columns of the bars of a course.
const COURSE_BAR: usize = 24;
/// Columns of the bars of a power curve.
const CURVE_BAR: usize = 40;

/// A column of words. When space is short, those with the highest rank go first; 0 always stays.
fn left(title: &str, rank: u8) -> Head {
    Head { title: title.to_owned(), left: true, rank, ..Head::default() }
}

/// A column of numbers.
fn right(title: &str, rank: u8) -> Head {
    Head { title: title.to_owned(), rank, ..Head::default() }
}

/// Metrics with what is known of them.
pub(in crate::compare) fn judged(all: &[Judged]) -> Grid {
    Grid {
        heads: vec![
            left("metric", 0),
            right("before", 2),
            right("after", 2),
            right("change", 0),
            left("95 % interval", 3),
            right("q", 4),
            left("finding", 0),
        ],
        rows: all.iter().map(judged_row).collect(),
    }
}

fn judged_row(judged: &Judged) -> Vec<String> {
    let metric = &judged.limit.metric;
    let mut cells = vec![name(&metric.to_string())];
    cells.extend(match &judged.compared {
        Compared::Number(n) => [
            words::number(metric, Some(n.median_a)),
            words::number(metric, Some(n.median_b)),
            n.change.map_or("new".to_owned(), |c| words::signed_pct(c * 100.0)),
            words::interval(n).unwrap_or_default(),
            n.q.map_or(String::new(), words::probability),
        ],
        Compared::Class { a, b } => {
            let word = |c| words::class(c).to_owned();
            [word(*a), word(*b), String::new(), String::new(), String::new()]
        }
        Compared::Nothing => {
            let unknown = || words::NOT_KNOWN.to_owned();
            [unknown(), unknown(), unknown(), String::new(), String::new()]
        }
    });
    cells.push(words::finding(&judged.finding).to_owned());
    cells
}

/// What changed, a line per row of a table, led by its time; and how many rows were left out. With
/// `-v` come all columns of a row.
pub(in crate::compare) fn changes(report: &DiffReport, options: &TextOptions) -> (Grid, usize) {
    let heads = vec![
        right("change", 0),
        right("%", 0),
        right("A", 2),
        right("B", 2),
        left("table", 0),
        left("row", 0),
        left("column", 3),
        left("", 0),
    ];
    let groups: Vec<Vec<&Row>> = report.rows.chunk_by(of_one_row).filter_map(moved).collect();
    let shown = groups.len().min(report.entries.unwrap_or(usize::MAX));
    let mut rows = Vec::new();
    for group in &groups[..shown] {
        let lines = if options.verbose { group.len() } else { 1 };
        rows.extend(group[..lines].iter().enumerate().map(|(i, row)| change_row(row, i == 0)));
    }
    (Grid { heads, rows }, groups.len() - shown)
}

fn of_one_row(a: &Row, b: &Row) -> bool {
    (a.figure.table, &a.figure.key) == (b.figure.table, &b.figure.key)
}

/// The columns of a row that changed, if any did.
fn moved(group: &[Row]) -> Option<Vec<&Row>> {
    let unknown = |row: &Row| row.a.is_none() && row.b.is_none();
    let changed: Vec<&Row> =
        group.iter().filter(|r| r.change() != Some(0.0) && !unknown(r)).collect();
    (!changed.is_empty()).then_some(changed)
}

fn change_row(row: &Row, leads: bool) -> Vec<String> {
    let change = row.change().map(|c| words::change(&row.metric, c));
    let (table, key) = (row.figure.table.name(), name(&row.figure.key));
    vec![
        change.unwrap_or(words::NOT_KNOWN.to_owned()),
        row.change_pct().map_or(String::new(), |p| format!("{p:+.1}")),
        words::number(&row.metric, row.a),
        words::number(&row.metric, row.b),
        if leads { table.to_owned() } else { String::new() },
        if leads { key } else { String::new() },
        row.figure.measure.name.to_owned(),
        words::remark(row).to_owned(),
    ]
}

/// The baselines of a course.
pub(in crate::compare) fn history(course: &Course) -> Grid {
    let most = course.points.iter().filter_map(|p| p.median).fold(0.0, f64::max);
    let row = |(i, point): (usize, &Point)| {
        let change = course.changes.iter().find(|c| c.index == i);
        let part = point.median.filter(|_| most > 0.0).map(|m| m / most);
        vec![
            name(&point.label),
            words::number(&course.metric, point.median),
            part.map_or(String::new(), |p| spark::bar(p, COURSE_BAR)),
            point.spread.map_or(words::NOT_KNOWN.to_owned(), |s| words::pct(s * 100.0)),
            point.runs.to_string(),
            words::class(point.class).to_owned(),
            change.map_or(String::new(), |c| format!("<- {}", size(c))),
        ]
    };
    Grid {
        heads: vec![
            left("baseline", 0),
            right("median", 0),
            left("", 1),
            right("spread", 3),
            right("runs", 4),
            left("verdict", 2),
            left("", 0),
        ],
        rows: course.points.iter().enumerate().map(row).collect(),
    }
}

/// A change of the course in per cent.
pub(super) fn size(change: &ChangePoint) -> String {
    match change.before {
        0.0 => "from 0".to_owned(),
        before => words::signed_pct((change.after / before - 1.0) * 100.0),
    }
}

/// The power curve.
pub(in crate::compare) fn curve(test: &SelfTest) -> Grid {
    let row = |&(change, seen): &(f64, f64)| {
        vec![words::pct(change * 100.0), words::pct(seen * 100.0), spark::bar(seen, CURVE_BAR)]
    };
    Grid {
        heads: vec![right("change", 0), right("seen", 0), left("", 0)],
        rows: test.curve.iter().map(row).collect(),
    }
}

/// The runs of a baseline.
pub(in crate::compare) fn runs(report: &BaselineReport) -> Grid {
    let several = report.settings.len() > 1;
    let mut heads = vec![
        left("run", 0),
        right("length", 0),
        right("events", 2),
        right("lost", 0),
        right("others %", 0),
        right("units", 3),
        left("verdict", 0),
    ];
    if several {
        heads.push(right("setting", 0));
    }
    Grid { heads, rows: report.runs.iter().map(|r| run_row(r, several)).collect() }
}

fn run_row(run: &BaselineRun, several: bool) -> Vec<String> {
    let mut cells = vec![
        name(&run.name),
        duration(run.wall_ns),
        run.events.to_string(),
        run.lost_events.to_string(),
        format!("{:.1}", run.others_pct),
        run.work_units.map_or(words::NOT_KNOWN.to_owned(), |n| n.to_string()),
        run.class.id().to_owned(),
    ];
    if several {
        cells.push((run.setting + 1).to_string());
    }
    cells
}

/// The metrics of a baseline.
pub(in crate::compare) fn metrics(report: &BaselineReport) -> Grid {
    let rows = report.metrics.iter().map(|m| {
        vec![
            name(&m.metric.to_string()),
            words::number(&m.metric, m.median),
            m.spread.map_or(words::NOT_KNOWN.to_owned(), |s| words::pct(s * 100.0)),
        ]
    });
    let heads = vec![left("metric", 0), right("median", 0), right("run-to-run spread", 0)];
    Grid { heads, rows: rows.collect() }
}
