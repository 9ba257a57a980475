//! The tables of a comparison as text cells, for text and Markdown.
//!
//! Control characters in cells are escaped.

use super::name;
use crate::compare::report::{BaselineReport, BaselineRun, DiffReport, ScaleReport};
use crate::compare::words;
use crate::spark;
use crate::text::TextOptions;
use crate::text::grid::{Grid, Head};
use crate::text::units::duration;
use holdup_gate::Work;
use holdup_gate::change_points::ChangePoint;
use holdup_gate::diff::Row;
use holdup_gate::history::{Course, Point};
use holdup_gate::judge::{Compared, Judged};
use holdup_gate::scale::{Call, WithoutSetup};
use holdup_gate::self_test::SelfTest;

/// Width of the bars of a history, in columns.
const COURSE_BAR: usize = 24;
/// Width of the bars of a power curve, in columns.
const CURVE_BAR: usize = 40;

/// A column of text. When space is short, columns with the highest rank are dropped first; 0 always
/// stays.
fn left(title: &str, rank: u8) -> Head {
    Head { title: title.to_owned(), left: true, rank, ..Head::default() }
}

/// A column of numbers.
fn right(title: &str, rank: u8) -> Head {
    Head { title: title.to_owned(), rank, ..Head::default() }
}

/// Metrics with their judgements.
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

/// What changed, one line per row of a table, led by its time; and how many rows were omitted. `-v`
/// adds all columns of a row.
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

/// The baselines of a history.
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

/// The size of a change in per cent.
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

/// A ladder: its rows, where the CPU time went, and the kernel path; each with its title.
pub(in crate::compare) fn scaling(report: &ScaleReport) -> Vec<(&'static str, Grid)> {
    let scaling = &report.scaling;
    let most = scaling.rows.iter().map(|r| r.speedup).fold(0.0, f64::max);
    // Only if there is one: most ladders have no significant set-up.
    let setup = scaling.rows.iter().any(|r| r.without_setup.is_some());
    let ladder = scaling.rows.iter().map(|row| {
        let mut cells = vec![
            row.cpus.to_string(),
            duration((row.seconds * 1e9) as u64),
            format!("{:.2}", row.speedup),
            spark::bar(row.speedup / most, COURSE_BAR),
            words::pct(row.efficiency * 100.0),
            row.serial_fraction.map_or(String::new(), serial),
            row.usl_speedup.map_or(String::new(), |s| format!("{s:.2}")),
            format!("{:.2}", row.lost_cpus),
            row.switches.map_or(words::NOT_KNOWN.to_owned(), |n| format!("{n:.1}")),
        ];
        if setup {
            let known = |of: fn(&WithoutSetup) -> String| {
                row.without_setup.as_ref().map_or(words::NOT_KNOWN.to_owned(), of)
            };
            cells.push(known(|w| duration((w.setup * 1e9) as u64)));
            cells.push(known(|w| format!("{:.2}", w.speedup)));
        }
        cells
    });
    let mut heads = vec![
        right("CPUs", 0),
        right("time", 0),
        right("speedup", 0),
        left("", 4),
        right("efficiency", 1),
        right("serial", 1),
        right("law", 2),
        right("CPUs lost", 0),
        right("switches", 3),
    ];
    if setup {
        heads.extend([right("set-up", 0), right("rest", 0)]);
    }
    let title = match report.work {
        Work::Unknown => "The same work on more CPUs",
        _ => "Time for a unit of work on more CPUs",
    };
    let mut tables = vec![(title, Grid { heads, rows: ladder.collect() })];
    let leaves = report
        .leaves()
        .map(|l| vec![l.cpus.to_string(), format!("{:+.2}", l.lost_cpus), name(&l.path)]);
    let heads = vec![right("CPUs", 0), right("CPUs lost", 0), left("to", 0)];
    tables.push((
        "Where the CPU time went that did not speed up the work",
        Grid { heads, rows: leaves.collect() },
    ));
    let heads = vec![
        right("CPUs", 0),
        left("call", 0),
        right("CPU in row 1", 1),
        right("CPU here", 1),
        right("ratio", 0),
        left("95 % interval", 2),
    ];
    let calls = report.calls().map(call_row).collect();
    tables.push((
        "CPU time of system calls, compared with the first row",
        Grid { heads, rows: calls },
    ));
    tables.retain(|(_, grid)| !grid.rows.is_empty());
    tables
}

/// A serial fraction, which may be below 0.
pub(super) fn serial(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

fn call_row(call: &Call) -> Vec<String> {
    let interval = call.interval.map(|(low, high)| match high {
        Some(high) => format!("{low:.2} to {high:.2}"),
        None => format!("{low:.2} or more"),
    });
    vec![
        call.cpus.to_string(),
        call.name.as_deref().map_or("all together".to_owned(), name),
        duration(call.first_ns as u64),
        duration(call.here_ns as u64),
        format!("{:.2}", call.ratio()),
        interval.unwrap_or_else(|| words::NOT_KNOWN.to_owned()),
    ]
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
