//! What the lab says: a line that is overwritten, and tables.

use std::io::{self, IsTerminal, Write};

/// Overwrite the last such line, if standard error is a terminal.
pub(super) fn say(text: &str, quiet: bool) {
    if !quiet && io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[Kholdup: {text}");
    }
}

pub(super) fn times(times: f64) -> String {
    format!("{times:.2}x")
}

/// Write a table whose columns are as wide as their content.
pub(super) fn table(out: &mut dyn Write, rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(String::len).max();
    let widths: Vec<usize> = (0..columns).map(|i| width(i).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
