//! The answer to a query: rows whose columns are not known in advance.
//!
//! Unlike the commands' tables, nothing is rounded, scaled or left out to fit, because the query
//! itself says what to show.

use crate::csv::write_line;
use crate::markdown;
use crate::report::SCHEMA;
use crate::text::escape;
use crate::text::grid::{Grid, Head};
use crate::{Format, TextOptions, html};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The trace cannot say.
    Null,
    /// Yes or no.
    Bool(bool),
    /// Any whole number that 64 bits can hold, with a sign or without.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// Text, unescaped.
    Text(String),
}

impl Value {
    fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Float(_))
    }
}

/// As text; empty for [`Value::Null`].
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => Ok(()),
            Value::Bool(b) => b.fmt(f),
            Value::Int(n) => n.fmt(f),
            Value::Float(x) => x.fmt(f),
            Value::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(b) => s.serialize_bool(*b),
            Value::Int(n) => match (i64::try_from(*n), u64::try_from(*n)) {
                (Ok(n), _) => s.serialize_i64(n),
                (_, Ok(n)) => s.serialize_u64(n),
                _ => s.serialize_none(),
            },
            // JSON has no infinity.
            Value::Float(x) if x.is_finite() => s.serialize_f64(*x),
            Value::Text(text) => s.serialize_str(text),
            Value::Null | Value::Float(_) => s.serialize_none(),
        }
    }
}

/// Rows under named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows; each has as many values as there are columns.
    pub rows: Vec<Vec<Value>>,
}

impl Answer {
    /// An answer from columns of equal length.
    pub fn of_columns(columns: Vec<(String, Vec<Value>)>) -> Answer {
        let (names, mut columns): (Vec<_>, Vec<_>) =
            columns.into_iter().map(|(name, values)| (name, values.into_iter())).unzip();
        let mut rows = Vec::new();
        loop {
            let row: Option<Vec<Value>> = columns.iter_mut().map(Iterator::next).collect();
            match row.filter(|row| !row.is_empty()) {
                Some(row) => rows.push(row),
                None => return Answer { columns: names, rows },
            }
        }
    }

    /// Write it in `format`, `entries` rows at most.
    pub fn write(
        &self,
        entries: Option<usize>,
        format: &Format,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let shown = &self.rows[..entries.unwrap_or(usize::MAX).min(self.rows.len())];
        match format {
            Format::Text(options) => self.text(shown, options, out),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, &self.envelope(shown))?;
                writeln!(out)
            }
            Format::Html => html::write(&self.envelope(shown), html::Extras::default(), out),
            Format::Csv { separator } => {
                write_line(self.columns.iter(), separator, out)?;
                shown.iter().try_for_each(|row| {
                    write_line(row.iter().map(Value::to_string), separator, out)
                })
            }
            Format::Markdown => {
                let heads: Vec<String> =
                    self.columns.iter().map(|name| markdown::plain(name)).collect();
                let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
                markdown::grid(&heads, &words(shown), out)
            }
        }
    }

    fn envelope<'a>(&'a self, shown: &'a [Vec<Value>]) -> Envelope<'a> {
        let rows = shown.iter().map(|row| Row { columns: &self.columns, row }).collect();
        Envelope { schema: SCHEMA, command: "query", columns: &self.columns, rows }
    }

    fn text(
        &self,
        shown: &[Vec<Value>],
        options: &TextOptions,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let head = |(i, name): (usize, &String)| Head {
            title: escape(name).into_owned(),
            left: !shown.iter().any(|row| row[i].is_number()),
            ..Head::default()
        };
        let mut rows = words(shown);
        rows.iter_mut().flatten().for_each(|cell| *cell = escape(cell).into_owned());
        let grid = Grid { heads: self.columns.iter().enumerate().map(head).collect(), rows };
        grid.write(options.paint(), out)?;
        let left_out = self.rows.len() - shown.len();
        if options.quiet || left_out == 0 {
            return Ok(());
        }
        let remark = format!("... {left_out} more rows; -n 0 shows all");
        writeln!(out, "{}", options.paint().dim(remark))
    }
}

/// Rows as text; `n/a` where the trace cannot say.
fn words(rows: &[Vec<Value>]) -> Vec<Vec<String>> {
    let word = |value: &Value| match value {
        Value::Null => "n/a".to_owned(),
        value => value.to_string(),
    };
    rows.iter().map(|row| row.iter().map(word).collect()).collect()
}

/// The JSON of an answer.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Envelope<'a> {
    /// Version of this format.
    schema: &'static str,
    /// The verb.
    command: &'static str,
    /// Names of the columns, in order.
    columns: &'a [String],
    /// Rows of the answer: values by the names of the columns.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    columns: &'a [String],
    row: &'a [Value],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.row.len()))?;
        for (column, value) in self.columns.iter().zip(self.row) {
            map.serialize_entry(column, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        Answer::of_columns(vec![
            ("name".into(), vec![Value::Text("a|b\n".into()), Value::Null]),
            ("n".into(), vec![Value::Int(-5), Value::Int(u64::MAX.into())]),
            ("x".into(), vec![Value::Float(f64::INFINITY), Value::Float(0.5)]),
        ])
    }

    fn written(format: &Format) -> String {
        let mut out = Vec::new();
        answer().write(None, format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_shows_hostile_names_harmless_and_unknown_values_as_such() {
        let text = written(&Format::Text(TextOptions::default()));
        assert_eq!(
            text,
            "name                      n    x\na|b\\n                    -5  inf\n\
             n/a    18446744073709551615  0.5\n"
        );
    }

    #[test]
    fn rows_that_are_left_out_are_counted() {
        let mut out = Vec::new();
        answer().write(Some(1), &Format::Text(TextOptions::default()), &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().ends_with("... 1 more rows; -n 0 shows all\n"));
    }

    #[test]
    fn json_keeps_all_digits_and_has_no_infinity() {
        let json: serde_json::Value = serde_json::from_str(&written(&Format::Json)).unwrap();
        assert_eq!(json["columns"], serde_json::json!(["name", "n", "x"]));
        assert_eq!(json["rows"][0], serde_json::json!({ "name": "a|b\n", "n": -5, "x": null }));
        assert_eq!(json["rows"][1]["n"], u64::MAX);
    }

    #[test]
    fn csv_quotes_and_markdown_escapes() {
        let csv = written(&Format::Csv { separator: ",".into() });
        assert_eq!(csv, "name,n,x\n\"a|b\n\",-5,inf\n,18446744073709551615,0.5\n");
        assert!(written(&Format::Markdown).contains("| a\\|b\\\\n | -5 | inf |"));
    }

    #[test]
    fn an_answer_without_rows_has_its_columns() {
        let empty = Answer { columns: vec!["n".into()], rows: vec![] };
        let mut out = Vec::new();
        empty.write(None, &Format::Csv { separator: ",".into() }, &mut out).unwrap();
        assert_eq!(out, b"n\n");
    }
}
