//! Writes tables in their formats.

use crate::arrow;
use crate::column::TableDef;
use crate::error::ExportError;
use crate::part::PartFile;
use crate::rows::{Pool, Rows, Value};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A format of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableFormat {
    /// Apache Parquet.
    Parquet,
    /// Files of Arrow's IPC format (Feather 2).
    Arrow,
    /// Comma-separated values, with a header line.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

impl TableFormat {
    /// The file name extension.
    pub fn extension(self) -> &'static str {
        match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow => "arrow",
            TableFormat::Csv => "csv",
            TableFormat::Ndjson => "ndjson",
        }
    }
}

/// Metadata of a file: keys and values.
pub(crate) type Metadata = Vec<(String, String)>;

/// Writes the rows of one table, in batches.
pub(crate) struct Sink {
    table: TableDef,
    kind: Kind,
    rows: Rows,
    seen: Vec<i32>,
}

enum Kind {
    Parquet { writer: Box<ArrowWriter<PartFile>>, schema: SchemaRef },
    Arrow { writer: Box<FileWriter<PartFile>>, schema: SchemaRef },
    Csv(PartFile),
    Ndjson(PartFile),
}

/// The number of rows that are written together, which is the smallest number that a reader can
/// skip. The memory of an export is this many rows of each table.
pub const ROW_GROUP: usize = 128 << 10;

impl Sink {
    pub(crate) fn create(
        path: PathBuf,
        table: TableDef,
        format: TableFormat,
        metadata: Metadata,
    ) -> Result<Sink, ExportError> {
        let mut file = PartFile::create(path)?;
        let path = file.part().to_owned();
        let kind = match format {
            TableFormat::Parquet => {
                let schema = arrow::schema(&table, Default::default());
                // Readers shall see plain strings, however they treat Arrow's dictionaries.
                let options = ArrowWriterOptions::new()
                    .with_skip_arrow_metadata(true)
                    .with_properties(properties(metadata));
                ArrowWriter::try_new_with_options(file, schema.clone(), options)
                    .map_err(of_parquet)
                    .map(|writer| Kind::Parquet { writer: Box::new(writer), schema })
            }
            TableFormat::Arrow => {
                let schema = arrow::schema(&table, metadata.into_iter().collect());
                FileWriter::try_new(file, &schema)
                    .map_err(of_arrow)
                    .map(|writer| Kind::Arrow { writer: Box::new(writer), schema })
            }
            TableFormat::Csv => head(&table, &mut file).map(|()| Kind::Csv(file)),
            TableFormat::Ndjson => Ok(Kind::Ndjson(file)),
        };
        let rows = Rows::new(&table);
        match kind {
            Ok(kind) => Ok(Sink { table, kind, rows, seen: Vec::new() }),
            Err(error) => Err(ExportError::Write { path, error }),
        }
    }

    /// The table that is written.
    pub(crate) fn table(&self) -> &TableDef {
        &self.table
    }

    /// Add a row with a value for each column; write a batch if there are enough.
    #[inline]
    pub(crate) fn push(&mut self, row: &[Value], pool: &Pool) -> Result<(), ExportError> {
        self.rows.push(row);
        if self.rows.len() < ROW_GROUP { Ok(()) } else { self.write(pool) }
    }

    #[cold]
    fn write(&mut self, pool: &Pool) -> Result<(), ExportError> {
        let Sink { table, kind, rows, seen } = self;
        let done = match kind {
            Kind::Parquet { writer, schema } => {
                arrow::batch(schema, rows, pool, seen).map_err(of_arrow).and_then(|batch| {
                    writer.write(&batch).and_then(|()| writer.flush()).map_err(of_parquet)
                })
            }
            Kind::Arrow { writer, schema } => arrow::batch(schema, rows, pool, seen)
                .and_then(|batch| writer.write(&batch))
                .map_err(of_arrow),
            Kind::Csv(file) => (0..rows.len()).try_for_each(|i| line(rows, i, pool, file)),
            Kind::Ndjson(file) => {
                (0..rows.len()).try_for_each(|i| object(table, rows, i, pool, file))
            }
        };
        rows.clear();
        done.map_err(|error| ExportError::Write { path: self.path().to_owned(), error })
    }

    fn path(&self) -> &Path {
        match &self.kind {
            Kind::Parquet { writer, .. } => writer.inner().part(),
            Kind::Arrow { writer, .. } => writer.get_ref().part(),
            Kind::Csv(file) | Kind::Ndjson(file) => file.part(),
        }
    }

    /// Write the rest, and give the file its name.
    pub(crate) fn finish(mut self, pool: &Pool) -> Result<(), ExportError> {
        if self.rows.len() > 0 {
            self.write(pool)?;
        }
        let path = self.path().to_owned();
        let file = match self.kind {
            Kind::Parquet { writer, .. } => writer.into_inner().map_err(of_parquet),
            Kind::Arrow { writer, .. } => writer.into_inner().map_err(of_arrow),
            Kind::Csv(file) | Kind::Ndjson(file) => Ok(file),
        };
        file.map_err(|error| ExportError::Write { path, error })?.finish()
    }
}

fn properties(metadata: Metadata) -> WriterProperties {
    let keys = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(keys))
        .set_created_by(format!("holdup {}", env!("CARGO_PKG_VERSION")))
        .build()
}

/// The crates wrap errors of the file in their own; all others are bugs of ours.
fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

fn head(table: &TableDef, out: &mut PartFile) -> io::Result<()> {
    let names: Vec<&str> = table.columns.iter().map(|c| c.name).collect();
    writeln!(out, "{}", names.join(","))
}

/// A row of CSV (RFC 4180): a null is empty, and looks like an empty string, as to most readers.
fn line(rows: &Rows, i: usize, pool: &Pool, out: &mut PartFile) -> io::Result<()> {
    for (n, cells) in rows.columns.iter().enumerate() {
        if n > 0 {
            out.write_all(b",")?;
        }
        match cells.get(i) {
            Value::Null => {}
            Value::Int(x) => write!(out, "{x}")?,
            Value::Id(x) => write!(out, "{x}")?,
            Value::Address(x) => write!(out, "{x}")?,
            Value::Float(x) => write!(out, "{x}")?,
            Value::Flag(x) => write!(out, "{x}")?,
            Value::Words(word) => {
                let text = pool.text(word);
                if text.contains([',', '"', '\n', '\r']) {
                    write!(out, "\"{}\"", text.replace('"', "\"\""))?;
                } else {
                    out.write_all(text.as_bytes())?;
                }
            }
        }
    }
    out.write_all(b"\n")
}

/// A row as a JSON object.
fn object(
    table: &TableDef,
    rows: &Rows,
    i: usize,
    pool: &Pool,
    out: &mut PartFile,
) -> io::Result<()> {
    for (n, (column, cells)) in table.columns.iter().zip(&rows.columns).enumerate() {
        write!(out, "{}\"{}\":", if n == 0 { "{" } else { "," }, column.name)?;
        match cells.get(i) {
            Value::Null => out.write_all(b"null")?,
            Value::Int(x) => write!(out, "{x}")?,
            Value::Id(x) => write!(out, "{x}")?,
            Value::Address(x) => write!(out, "{x}")?,
            Value::Float(x) => serde_json::to_writer(&mut *out, &x)?,
            Value::Flag(x) => write!(out, "{x}")?,
            Value::Words(word) => serde_json::to_writer(&mut *out, pool.text(word))?,
        }
    }
    out.write_all(b"}\n")
}
