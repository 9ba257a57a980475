//! Tables in LAMI 1.0, the format of lttng-analyses that Trace Compass shows: `metadata.json`
//! corresponds to the output of its `--metadata`, `results.json` to the output of an analysis.
//!
//! A table class names its columns with a title, a class and a unit; each cell is an object with
//! its class, or `null`. Several of our columns stay several columns: a thread does not become one
//! `process` object, so that the same columns can be sorted and charted as everywhere.

use crate::Request;
use crate::error::ExportError;
use crate::facts::int;
use crate::made::{MADE, Made, PATH, Source};
use crate::part::PartFile;
use holdup_render::{Cell, Unit};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Class and unit of a column.
fn class(unit: Unit) -> (&'static str, Option<&'static str>) {
    match unit {
        Unit::Text | Unit::Map | Unit::List => ("string", None),
        Unit::Count | Unit::Id => ("number", None),
        Unit::Ns => ("duration", None),
        Unit::Time => ("timestamp", None),
        Unit::Percent => ("ratio", None),
        Unit::Rate => ("number", Some("1/s")),
        Unit::Ratio => ("number", None),
        // Some readers keep only 53 bits of a JSON number, so an address is a string.
        Unit::Address => ("string", None),
        Unit::Flag => ("bool", None),
    }
}

fn cell(cell: &Cell, unit: Unit) -> Value {
    let (class, _) = class(unit);
    let value = match (cell, unit) {
        (Cell::Null, _) => return Value::Null,
        (Cell::Int(n), Unit::Address) => json!(format!("{n:#x}")),
        (Cell::Int(n), _) => json!(int(*n)),
        // A LAMI ratio is a fraction of 1.
        (Cell::Float(x), Unit::Percent) => json!(x / 100.0),
        (Cell::Float(x), _) => json!(x),
        (Cell::Bool(b), _) => json!(b),
        (Cell::Text(text), _) => json!(text),
        (Cell::Map(_) | Cell::List(_), _) => json!(serde_json::to_string(cell).unwrap_or_default()),
    };
    json!({ "class": class, "value": value })
}

/// The descriptions of the tables: all table classes.
pub fn lami_metadata() -> Value {
    let mut classes = Map::new();
    for made in written() {
        let table = (made.make)(None);
        let column = |c: &holdup_render::Column| {
            let (class, unit) = class(c.unit);
            let mut column = json!({ "title": c.key, "class": class });
            if let Some(unit) = unit {
                column["unit"] = json!(unit);
            }
            column
        };
        let columns: Vec<Value> = table.columns.iter().map(column).collect();
        classes.insert(
            made.name.to_owned(),
            json!({ "title": made.about, "column-descriptions": columns }),
        );
    }
    let mut version = env!("CARGO_PKG_VERSION").split('.').map(|n| n.parse().unwrap_or(0u32));
    let mut next = || version.next().unwrap_or(0);
    json!({
        "mi-version": { "major": 1, "minor": 0 },
        "version": { "major": next(), "minor": next(), "patch": next(), "extra": "" },
        "title": "holdup",
        "description": "Where every CPU-second went, and what the bottleneck is",
        "authors": ["holdup"],
        "url": env!("CARGO_PKG_REPOSITORY"),
        "tags": ["cpu", "sched", "syscall", "interrupt"],
        "table-classes": classes,
    })
}

fn written() -> impl Iterator<Item = &'static Made> {
    MADE.iter().filter(|made| made.name != PATH)
}

/// Write `metadata.json` and `results.json` into `folder`.
///
/// # Errors
/// A file cannot be written; an unfinished file ends in `.part`.
pub fn lami(request: &Request<'_>, folder: &Path) -> Result<(), ExportError> {
    fs::create_dir_all(folder)
        .map_err(|error| ExportError::Write { path: folder.to_owned(), error })?;
    let mut file = PartFile::create(folder.join("metadata.json"))?;
    let path = file.part().to_owned();
    writeln!(file, "{}", lami_metadata()).map_err(|error| ExportError::Write { path, error })?;
    file.finish()?;

    let mut file = PartFile::create(folder.join("results.json"))?;
    let path = file.part().to_owned();
    results(request, &mut file).map_err(|error| ExportError::Write { path, error })?;
    file.finish()
}

fn results(request: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    let analysis = request.judged.analysis;
    let timestamp = |ns: u64| json!({ "class": "timestamp", "value": int(ns) });
    let range = json!({
        "class": "time-range",
        "begin": timestamp(analysis.start),
        "end": timestamp(analysis.end),
    });
    out.write_all(b"{\"results\":[")?;
    for (n, made) in written().enumerate() {
        let source = Source { judged: request.judged, phases: request.phases };
        let table = (made.make)(Some(&source));
        let comma = if n == 0 { "" } else { "," };
        write!(out, "{comma}\n{{\"class\":\"{}\",\"time-range\":{range},\"data\":[", made.name)?;
        for (i, row) in table.rows.iter().enumerate() {
            let cells: Vec<Value> =
                row.iter().zip(&table.columns).map(|(c, column)| cell(c, column.unit)).collect();
            write!(out, "{}\n{}", if i == 0 { "" } else { "," }, Value::Array(cells))?;
        }
        out.write_all(b"]}")?;
    }
    out.write_all(b"\n]}\n")
}
