//! Every figure of two sides as text: one line per row of a table, led by its time.

use super::{head, name};
use crate::compare::report::DiffReport;
use crate::compare::words;
use crate::text::grid::{Grid, Head};
use crate::text::units::count;
use crate::text::{TextOptions, prose};
use holdup_gate::diff::Row;
use std::io::{self, Write};

/// Write the comparison.
pub(super) fn write(
    report: &DiffReport,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !options.quiet {
        prose(&head(&report.a), "A: ", "   ", options, out)?;
        prose(&head(&report.b), "B: ", "   ", options, out)?;
        writeln!(out, "Verdict: {}\n", verdicts(report))?;
    }
    let groups: Vec<Vec<&Row>> = report.rows.chunk_by(of_one_row).filter_map(moved).collect();
    let paint = options.paint();
    let title = format!("What changed, {}", words::per(report.per, &report.work.to_string()));
    writeln!(out, "{}", paint.title(name(&title)))?;
    if groups.is_empty() {
        return writeln!(out, "  {}", paint.dim("nothing"));
    }
    let shown = groups.len().min(report.entries.unwrap_or(usize::MAX));
    let mut grid = Grid { heads: heads(), rows: Vec::new() };
    for group in &groups[..shown] {
        let lines = if options.verbose { group.len() } else { 1 };
        grid.rows.extend(group[..lines].iter().enumerate().map(|(i, row)| line(row, i == 0)));
    }
    options.width.map(|w| grid.fit(w));
    grid.write(paint, out)?;
    if shown < groups.len() && !options.quiet {
        let more = count((groups.len() - shown) as u64, "more row", "more rows");
        writeln!(out, "{}", paint.dim(format!("{more} not shown; -n 0 shows all")))?;
    }
    Ok(())
}

fn of_one_row(a: &Row, b: &Row) -> bool {
    (a.figure.table, &a.figure.key) == (b.figure.table, &b.figure.key)
}

/// The rows of a group that changed, if any did.
fn moved(group: &[Row]) -> Option<Vec<&Row>> {
    // What one side did not record is said once for a row, not for every column.
    let changed: Vec<&Row> = group.iter().filter(|r| r.change() != Some(0.0)).collect();
    let known = changed.iter().any(|r| r.a.is_some() || r.b.is_some());
    (!changed.is_empty() && known).then_some(changed)
}

fn verdicts(report: &DiffReport) -> String {
    match (report.a.class, report.b.class) {
        (Some(a), Some(b)) if a == b => format!("{} in both", a.id()),
        (a, b) => format!("{} in A, {} in B", words::class(a), words::class(b)),
    }
}

fn heads() -> Vec<Head> {
    let right = |title: &str, rank| Head { title: title.to_owned(), rank, ..Head::default() };
    let left =
        |title: &str, rank| Head { title: title.to_owned(), left: true, rank, ..Head::default() };
    vec![
        right("change", 0),
        right("%", 0),
        right("A", 2),
        right("B", 2),
        left("table", 0),
        left("row", 0),
        left("column", 3),
        left("", 0),
    ]
}

fn line(row: &Row, leads: bool) -> Vec<String> {
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
