//! Folders of exported tables, opened as lazy frames.

use crate::Error;
use crate::scan::{Part, Scan, TRACE, kind};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use polars_core::prelude::{DataType, Schema};
use polars_lazy::frame::LazyFrame;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One export: a folder with a file `<table>.parquet` for each table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The value of the column `trace` in its rows.
    pub trace: String,
    /// The folder.
    pub folder: PathBuf,
}

impl Source {
    /// The exports in `folder`: itself if it contains tables, else all folders below it that
    /// contain tables, each named by its path below `folder`, in the order of their names.
    pub fn find(folder: &Path) -> Result<Vec<Source>, Error> {
        let name = |folder: &Path| folder.file_name().unwrap_or(folder.as_os_str()).to_owned();
        let mut found = Vec::new();
        if !tables(folder)?.is_empty() {
            found.push(Source {
                trace: name(folder).to_string_lossy().into_owned(),
                folder: folder.to_owned(),
            });
            return Ok(found);
        }
        below(folder, folder, DEPTH, &mut found)?;
        if found.is_empty() {
            return Err(Error::input(
                folder,
                "no exported tables in this folder; holdup export TRACE --to DIR writes them",
            ));
        }
        found.sort_by(|a, b| a.folder.cmp(&b.folder));
        Ok(found)
    }
}

/// How many levels of folders are searched: enough for `date=…/host=…/<trace>`, and finite if links
/// form a cycle.
const DEPTH: usize = 8;

fn below(top: &Path, folder: &Path, depth: usize, found: &mut Vec<Source>) -> Result<(), Error> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::input(folder, e))?;
    for entry in entries {
        let path = entry.map_err(|e| Error::input(folder, e))?.path();
        if !path.is_dir() {
            continue;
        }
        if !tables(&path)?.is_empty() {
            let trace = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
            found.push(Source { trace, folder: path });
        } else if depth > 0 {
            below(top, &path, depth - 1, found)?;
        }
    }
    Ok(())
}

/// The tables in a folder: name and file.
fn tables(folder: &Path) -> Result<BTreeMap<String, PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::input(folder, e))?;
    let mut tables = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(|e| Error::input(folder, e))?.path();
        let is_table = path.extension().is_some_and(|e| e == "parquet") && path.is_file();
        if let Some(name) = path.file_stem().and_then(|s| s.to_str()).filter(|_| is_table) {
            tables.insert(name.to_owned(), path.clone());
        }
    }
    Ok(tables)
}

/// The tables of one or many traces.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    tables: BTreeMap<String, Arc<Scan>>,
}

impl Frames {
    /// Open the tables of `sources`; only the footers of the files are read. With several sources
    /// each table has all their rows, in the order of `sources`, and its first column names the
    /// trace of a row.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if a file cannot be read, or if a column has different types in two files.
    pub fn open(sources: &[Source]) -> Result<Frames, Error> {
        let mut tables: BTreeMap<String, Scan> = BTreeMap::new();
        for source in sources {
            let trace = (sources.len() > 1).then_some(source.trace.as_str());
            for (name, path) in self::tables(&source.folder)? {
                let columns = columns(&path)?;
                let scan = tables.entry(name).or_default();
                if trace.is_some() {
                    scan.schema.insert(TRACE.into(), DataType::String);
                }
                for (column, kind) in &columns {
                    let known = scan.schema.get(column.as_str());
                    if known.is_some_and(|known| known != kind) {
                        return Err(Error::input(
                            &path,
                            format!(
                                "column {column} has another type than in other traces; export all \
                                 traces with the same version of holdup"
                            ),
                        ));
                    }
                    scan.schema.insert(column.as_str().into(), kind.clone());
                }
                let columns = columns.into_iter().map(|(name, _)| name).collect();
                scan.parts.push(Part { path, trace: trace.map(str::to_owned), columns });
            }
        }
        Ok(Frames { tables: tables.into_iter().map(|(n, s)| (n, Arc::new(s))).collect() })
    }

    /// The names of the tables, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The columns of a table and their types.
    pub fn schema(&self, table: &str) -> Option<&Schema> {
        self.tables.get(table).map(|scan| &scan.schema)
    }

    /// A table as a frame that is read when it is collected.
    pub fn lazy(&self, table: &str) -> Option<LazyFrame> {
        let scan = self.tables.get(table)?;
        // The schema is known, so this cannot fail.
        LazyFrame::anonymous_scan(scan.clone(), scan.arguments()).ok()
    }
}

/// The columns of a file, with the types they have in a frame.
fn columns(path: &Path) -> Result<Vec<(String, DataType)>, Error> {
    let file = File::open(path).map_err(|e| Error::input(path, e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|e| Error::input(path, format!("no Parquet file, or a damaged one: {e}")))?;
    let fields = builder.schema().fields();
    fields
        .iter()
        .map(|field| match kind(field.data_type()) {
            Some(kind) => Ok((field.name().clone(), kind)),
            None => Err(Error::input(
                path,
                format!(
                    "column {} is of the type {}, which no exported table has",
                    field.name(),
                    field.data_type()
                ),
            )),
        })
        .collect()
}
