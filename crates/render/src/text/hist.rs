//! Histograms: one line per power of two, with a bar.

use super::grid::{Grid, Head};
use super::{Page, TextOptions, escape, units};
use crate::spark::bar;
use crate::table::{Cell, Line, Table};
use std::io::{self, Write};

/// Width of the longest bar, in columns.
const BAR: usize = 40;

/// Write each histogram under a heading of its own.
pub(crate) fn write(
    table: &Table,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let lines: Vec<Line<'_>> = table.shown().iter().map(|row| table.line(row)).collect();
    let paint = options.paint();
    if lines.is_empty() {
        page.separate(out)?;
        let why = table.missing.map_or_else(
            || "there were no waits".to_owned(),
            |events| format!("n/a: the trace has no {events}"),
        );
        writeln!(out, "Histograms: {why}")?;
    }
    for one in lines.chunk_by(|a, b| about(*a) == about(*b)) {
        page.separate(out)?;
        let count = |line: &Line<'_>| line.int("count").unwrap_or(0);
        let all: u64 = one.iter().map(count).sum();
        let most = one.iter().map(count).max().unwrap_or(0).max(1);
        let spans = match one[0].text("spans") {
            "hold" => units::count(all, "hold", "holds"),
            _ => units::count(all, "wait", "waits"),
        };
        writeln!(out, "{}: {spans}", paint.title(title(one[0])))?;
        let mut grid = Grid::default();
        let head = |title: &str, left| Head { title: title.to_owned(), left, ..Head::default() };
        grid.heads = vec![head("from", false), head("to", false), head("count", false)];
        grid.heads.extend([head("%", false), head("", true)]);
        for line in one {
            let time = |key| line.int(key).map_or_else(|| "n/a".to_owned(), units::duration);
            let pct = match line.get("pct") {
                Some(Cell::Float(x)) => format!("{x:.1}"),
                _ => "n/a".to_owned(),
            };
            let drawn = bar(count(line) as f64 / most as f64, BAR);
            let count = count(line).to_string();
            grid.rows.push(vec![time("from_ns"), time("to_ns"), count, pct, drawn]);
        }
        grid.write(paint, out)?;
    }
    for note in &table.notes {
        page.separate(out)?;
        super::prose(note, "", "  ", options, out)?;
    }
    Ok(())
}

/// The identity of a histogram.
fn about<'a>(line: Line<'a>) -> (&'a str, &'a str, &'a str) {
    (line.text("spans"), line.text("kind"), line.text("object"))
}

/// `Waits for mutex 0x7f00 of thr_mutex`, `Holds of &mm->mmap_lock`.
fn title(line: Line<'_>) -> String {
    let (spans, kind, object) = about(line);
    let what = match spans {
        "hold" => "Holds of",
        _ => "Waits for",
    };
    format!("{what} {kind} {}", escape(object)).replace("  ", " ").trim_end().to_owned()
}
