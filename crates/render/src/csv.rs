//! CSV according to RFC 4180: a header row of JSON keys, integer nanoseconds, empty cells for
//! values that the trace cannot give.
//!
//! Lines end in a bare newline, as tools in a pipe expect. `info` is a list of keys and values.
//! `summary` has several tables; each is preceded by a line `# NAME` and followed by an empty line.

use crate::report::{Body, Report, Section};
use crate::schema;
use crate::table::{Cell, Table};
use holdup_diagnose::Diagnosis;
use std::io::{self, Write};

/// Write `report` as CSV with `separator` between the cells.
pub fn write(report: &Report, separator: &str, out: &mut dyn Write) -> io::Result<()> {
    match &report.body {
        Body::Table(table) | Body::Noted(table) => write_table(table, separator, out),
        Body::Ledger(ledger) => write_table(&schema::nodes(&ledger.nodes()), separator, out),
        Body::Diagnosis(d) => write_diagnosis(d, separator, out),
        Body::Guide(walk) => write_diagnosis(&walk.diagnosis, separator, out),
        Body::Path(path) => write_table(&path.table, separator, out),
        Body::Predict(predict) => write_table(&predict.table, separator, out),
        Body::Whatif(whatif) => write_table(&whatif.table, separator, out),
        Body::Graph(graph) => write_table(&schema::edges(&graph.graph.edges), separator, out),
        Body::Info(info) => {
            write_line(["key", "value"].into_iter(), separator, out)?;
            for (key, value) in info.pairs(&report.trace) {
                write_line([key.as_str(), value.as_str()].into_iter(), separator, out)?;
            }
            Ok(())
        }
        Body::Summary(sections) => {
            let table = |section: &Section| match section {
                Section::Table(table) => Some(table.clone()),
                Section::Ledger(ledger) => Some(schema::nodes(&ledger.nodes())),
                Section::Phases(rows) => Some(schema::phases(rows)),
                Section::Busy(_) => None,
            };
            write_tables(&sections.iter().filter_map(table).collect::<Vec<_>>(), separator, out)
        }
    }
}

fn write_diagnosis(d: &Diagnosis, separator: &str, out: &mut dyn Write) -> io::Result<()> {
    write_line(
        ["class", "rule", "share", "lost_cpu_ns", "verdict", "summary", "ruled_out"].into_iter(),
        separator,
        out,
    )?;
    for f in &d.findings {
        let verdict = (f.class == d.verdict.class).to_string();
        let share = f.priced().map_or(String::new(), |_| f.share.to_string());
        let lost = f.priced().map_or(String::new(), |ns| ns.to_string());
        let ruled_out = f.ruled_out.as_deref().unwrap_or("");
        write_line(
            [f.class.id(), f.rule, &share, &lost, &verdict, &f.summary, ruled_out].into_iter(),
            separator,
            out,
        )?;
    }
    Ok(())
}

/// Several tables, each preceded by a line `# NAME`, with an empty line between them.
pub(crate) fn write_tables(
    tables: &[Table],
    separator: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, table) in tables.iter().enumerate() {
        writeln!(out, "{}# {}", if i > 0 { "\n" } else { "" }, table.name)?;
        write_table(table, separator, out)?;
    }
    Ok(())
}

fn write_table(table: &Table, separator: &str, out: &mut dyn Write) -> io::Result<()> {
    write_line(table.columns.iter().map(|c| c.key), separator, out)?;
    for row in table.shown() {
        write_line(row.iter().map(field), separator, out)?;
    }
    Ok(())
}

/// One cell as text; empty if the trace cannot give it.
pub(crate) fn field(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(b) => b.to_string(),
        Cell::Int(n) => n.to_string(),
        Cell::Float(x) => x.to_string(),
        Cell::Text(t) => t.clone(),
        Cell::List(l) => {
            let record = |r: &Vec<(&'static str, Cell)>| {
                r.iter().map(|(_, c)| field(c)).collect::<Vec<_>>().join(":")
            };
            l.iter().map(record).collect::<Vec<_>>().join(";")
        }
        Cell::Map(m) => m.iter().map(|(k, n)| format!("{k}={n}")).collect::<Vec<_>>().join(";"),
    }
}

pub(crate) fn write_line<T: AsRef<str>>(
    fields: impl Iterator<Item = T>,
    separator: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (i, field) in fields.enumerate() {
        let field = field.as_ref();
        if i > 0 {
            out.write_all(separator.as_bytes())?;
        }
        if field.contains(separator) || field.contains(['"', '\n', '\r']) {
            write!(out, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            out.write_all(field.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}
