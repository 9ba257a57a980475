//! The first screen of sar, in its own abbreviations.

use super::grid::{Grid, Head};
use super::{Page, TextOptions};
use crate::table::layout::Show;
use crate::table::{Cell, Line, Table};
use std::io::{self, Write};

/// Write the lines, for the system and, if the table has them, every CPU.
pub(crate) fn write(
    table: &Table,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let per_cpu = table.column("cpu").is_some();
    page.separate(out)?;
    for (i, line) in table.text.iter().enumerate() {
        let mut grid = Grid::default();
        if per_cpu {
            grid.heads.push(Head { title: "cpu".to_owned(), ..Head::default() });
        }
        grid.heads.extend(
            line.fields
                .iter()
                .map(|f| Head { title: format!("{:>7}", f.title), ..Head::default() }),
        );
        for row in &table.rows {
            let row = table.line(row);
            let cpu =
                per_cpu.then(|| row.int("cpu").map_or_else(|| "all".to_owned(), |n| n.to_string()));
            grid.rows.push(
                cpu.into_iter().chain(line.fields.iter().map(|f| figure(row, f.show))).collect(),
            );
        }
        if i > 0 {
            writeln!(out)?;
        }
        grid.write(options.paint(), out)?;
    }
    Ok(())
}

fn figure(row: Line<'_>, show: Show) -> String {
    let cell = if let Show::Key(key) = show { row.get(key) } else { None };
    match cell {
        Some(Cell::Float(x)) => format!("{x:.2}"),
        Some(Cell::Int(n)) => n.to_string(),
        _ => "n/a".to_owned(),
    }
}
