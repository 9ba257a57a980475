//! The summary rows of a trace, as JSON: they are stored for many traces, and written into files
//! about all of them.

use crate::column::{Column, TableDef, Type};
use crate::error::ExportError;
use crate::made::{MADE, Source};
use crate::rows::{Pool, Value};
use crate::sinks::{Metadata, Sink, TableFormat};
use crate::{Request, TRACE, judgement};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The tables of a digest, and the number of rows of each: the costliest come first.
pub const DIGEST: &[(&str, usize)] = &[
    (TRACE, 1),
    ("findings", usize::MAX),
    ("culprits", usize::MAX),
    ("ledger", usize::MAX),
    ("quality", usize::MAX),
    ("by_object", 20),
    ("by_lock_class", 20),
    ("by_syscall", 20),
    ("by_cgroup", 50),
];

/// Rows by the name of their table; a row has a value for each column of the table.
pub type Digest = BTreeMap<String, Vec<Vec<Json>>>;

/// The summary rows of a trace: those of the tables [`DIGEST`].
pub fn digest(request: &Request<'_>) -> Digest {
    let mut digest = Digest::new();
    for (table, _) in DIGEST {
        digest.insert((*table).to_owned(), Vec::new());
    }
    let mut pool = Pool::default();
    let mut put = |table: &'static str, row: &[Value], pool: &Pool| {
        if let Some(rows) = digest.get_mut(table) {
            rows.push(row.iter().map(|&value| json(value, pool)).collect());
        }
        Ok(())
    };
    // Nothing is written, so this cannot fail.
    let _ = judgement::rows(request, &mut pool, &mut put);
    let source = Source { judged: request.judged, phases: request.phases };
    for made in MADE {
        if let Some((_, most)) = DIGEST.iter().find(|(name, _)| *name == made.name) {
            let _ = made.rows(&source, *most, &mut pool, &mut put);
        }
    }
    digest
}

fn json(value: Value, pool: &Pool) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(n) => n.into(),
        Value::Id(n) => n.into(),
        Value::Address(n) => n.into(),
        // JSON has no infinity.
        Value::Float(x) => x.into(),
        Value::Flag(b) => b.into(),
        Value::Words(word) => pool.text(word).into(),
    }
}

/// A value of a column; `None` if it has another type, or is missing from a column that is not
/// nullable.
fn value(column: &Column, json: &Json, pool: &mut Pool) -> Option<Value> {
    if json.is_null() {
        return column.nullable.then_some(Value::Null);
    }
    Some(match column.ty {
        Type::Int => Value::Int(json.as_i64()?),
        Type::Id => Value::Id(u32::try_from(json.as_u64()?).ok()?),
        Type::Address => Value::Address(json.as_u64()?),
        Type::Float => Value::Float(json.as_f64()?),
        Type::Flag => Value::Flag(json.as_bool()?),
        Type::Words => Value::Words(pool.word(json.as_str()?)),
    })
}

/// Whether these are values of the table's columns.
pub fn fits(table: &TableDef, row: &[Json]) -> bool {
    let mut pool = Pool::default();
    table.columns.len() == row.len()
        && table
            .columns
            .iter()
            .zip(row)
            .all(|(column, json)| value(column, json, &mut pool).is_some())
}

/// A Parquet file of rows that were JSON. It gets its name only when it is finished.
pub struct TableFile {
    sink: Sink,
    pool: Pool,
}

impl TableFile {
    /// Begin a file; `metadata` is written into it.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: PathBuf, table: TableDef, metadata: Metadata) -> Result<Self, ExportError> {
        let sink = Sink::create(path, table, TableFormat::Parquet, metadata)?;
        Ok(TableFile { sink, pool: Pool::default() })
    }

    /// Add a row that [`fits`] the table; a value that does not fit becomes null.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, row: &[Json]) -> Result<(), ExportError> {
        let columns = self.sink.table().columns.iter();
        let pool = &mut self.pool;
        let values: Vec<Value> = (columns.zip(row))
            .map(|(column, json)| value(column, json, pool).unwrap_or(Value::Null))
            .collect();
        self.sink.push(&values, &self.pool)
    }

    /// Write the rest, and give the file its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), ExportError> {
        self.sink.finish(&self.pool)
    }
}
