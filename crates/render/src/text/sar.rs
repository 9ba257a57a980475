//! The first screen of sar, in its own abbreviations.

use super::grid::{Grid, Head};
use super::{Page, TextOptions};
use crate::table::{Cell, Line, Table};
use std::io::{self, Write};

/// Pairs of sar's heading and the column it shows; one list per line.
const LINES: &[&[(&str, &str)]] = &[
    &[
        ("%usr", "pct_usr"),
        ("%sys", "pct_sys"),
        ("%wio", "pct_wio"),
        ("%idle", "pct_idle"),
        ("%unacc", "pct_unaccounted"),
    ],
    &[
        ("scall/s", "scall_per_s"),
        ("sread/s", "sread_per_s"),
        ("swrit/s", "swrit_per_s"),
        ("fork/s", "fork_per_s"),
        ("exec/s", "exec_per_s"),
        ("rchar/s", "rchar_per_s"),
        ("wchar/s", "wchar_per_s"),
    ],
    &[
        ("cswch/s", "cswch_per_s"),
        ("runq-sz", "runq_sz"),
        ("%runocc", "pct_runocc"),
        ("msg/s", "msg_per_s"),
        ("sema/s", "sema_per_s"),
        ("fault/s", "fault_per_s"),
    ],
];

/// Write the lines, for the system and, if the table has them, every CPU.
pub(crate) fn write(
    table: &Table,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let per_cpu = table.column("cpu").is_some();
    page.separate(out)?;
    for (i, line) in LINES.iter().enumerate() {
        let mut grid = Grid::default();
        if per_cpu {
            grid.heads.push(Head { title: "cpu".to_owned(), ..Head::default() });
        }
        grid.heads.extend(
            line.iter().map(|(title, _)| Head { title: format!("{title:>7}"), ..Head::default() }),
        );
        for row in &table.rows {
            let row = table.line(row);
            let cpu =
                per_cpu.then(|| row.int("cpu").map_or_else(|| "all".to_owned(), |n| n.to_string()));
            grid.rows.push(
                cpu.into_iter().chain(line.iter().map(|(_, key)| figure(row, key))).collect(),
            );
        }
        if i > 0 {
            writeln!(out)?;
        }
        grid.write(options.paint(), out)?;
    }
    Ok(())
}

fn figure(row: Line<'_>, key: &str) -> String {
    match row.get(key) {
        Some(Cell::Float(x)) => format!("{x:.2}"),
        Some(Cell::Int(n)) => n.to_string(),
        _ => "n/a".to_owned(),
    }
}
