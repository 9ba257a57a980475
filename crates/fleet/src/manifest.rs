//! The manifest: the result of every file, and the files of the tables.

use crate::dataset::{Dataset, Partition, When};
use crate::date;
use crate::error::FleetError;
use crate::record::Verdict;
use crate::store::Entry;
use serde::Serialize;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The name of the manifest, in the folder of a fleet.
pub const MANIFEST: &str = "manifest.json";

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    /// Its path, as it was named.
    pub(crate) path: String,
    /// SHA-256 of its content; null if it was not read to its end.
    pub(crate) hash: Option<String>,
    /// Its size.
    pub(crate) bytes: u64,
    /// `judged`, `same` (as another file, judged once), `failed`, `no-trace`.
    pub(crate) outcome: &'static str,
    /// The other file with this content.
    pub(crate) same_as: Option<String>,
    /// Why it could not be read.
    pub(crate) error: Option<String>,
    /// What it is, if it is not a trace.
    pub(crate) what: Option<String>,
    /// The class of its verdict.
    pub(crate) verdict: Option<String>,
    /// When it was recorded, UTC.
    pub(crate) recorded: Option<String>,
    /// The source of the date: `trace` or `mtime`.
    pub(crate) date_from: Option<&'static str>,
    /// The recorded host; `unknown` if the trace does not say.
    pub(crate) host: Option<String>,
    /// How long it took to judge it; 0 if it was not judged.
    pub(crate) seconds: f64,
}

impl Row {
    /// It could not be read after all.
    pub(crate) fn fail(&mut self, error: String) {
        self.outcome = "failed";
        self.error = Some(error);
        (self.same_as, self.verdict) = (None, None);
    }
}

/// The row of each entry. Of several with the same content the first by path is judged; the others
/// are `same`.
pub(crate) fn rows(entries: &[Entry]) -> Vec<Row> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    for Entry { head, .. } in entries {
        if let (Verdict::Judged { .. }, Some(hash)) = (&head.result, &head.hash) {
            let path = first.entry(hash).or_insert(&head.path);
            *path = (*path).min(&head.path);
        }
    }
    let mut taken: HashMap<&str, ()> = HashMap::new();
    let mut rows = Vec::new();
    for Entry { head, .. } in entries {
        let mut row = Row {
            path: head.path.clone(),
            hash: head.hash.clone(),
            bytes: head.bytes,
            outcome: "judged",
            same_as: None,
            error: None,
            what: None,
            verdict: None,
            recorded: None,
            date_from: None,
            host: None,
            seconds: head.seconds,
        };
        if let Some(when) = When::of(head) {
            row.recorded = Some(date::time(when.ns));
            row.date_from = Some(when.from);
            row.host = Some(when.host);
        }
        match &head.result {
            Verdict::Judged { class, .. } => {
                row.verdict = Some(class.clone());
                let hash = head.hash.as_deref().unwrap_or_default();
                let path = first.get(hash).copied().unwrap_or_default();
                // Parts of several machines may contain the same path.
                if path != head.path || taken.insert(hash, ()).is_some() {
                    row.outcome = "same";
                    row.same_as = Some(path.to_owned());
                }
            }
            Verdict::Failed { error } => row.fail(error.clone()),
            Verdict::NoTrace { what } => {
                row.outcome = "no-trace";
                row.what = Some(what.clone());
            }
        }
        rows.push(row);
    }
    rows
}

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DataFile {
    /// Name of the table.
    pub(crate) table: String,
    /// Path below the folder of the fleet.
    pub(crate) path: String,
    /// Number of traces in it.
    pub(crate) traces: usize,
    /// Number of rows.
    pub(crate) rows: u64,
    /// Its size.
    pub(crate) bytes: u64,
}

/// The manifest.
#[derive(Serialize)]
pub(crate) struct Manifest<'a> {
    /// Version of this format.
    schema: &'static str,
    /// Value of [`crate::Settings::key`].
    made_by: &'a str,
    /// The columns that are folders.
    partitioned_by: &'static [&'static str],
    /// Every file that was found, by path.
    files: &'a [Row],
    /// Every file of the tables.
    pub(crate) tables: Vec<DataFile>,
}

impl Manifest<'_> {
    pub(crate) fn new<'a>(
        made_by: &'a str,
        dataset: Dataset,
        files: &'a [Row],
        tables: Vec<DataFile>,
    ) -> Manifest<'a> {
        let partitioned_by = match dataset.partition {
            Partition::DateHost => &["date", "host"][..],
            Partition::Date => &["date"],
            Partition::Nothing => &[],
        };
        Manifest { schema: "holdup-fleet/1", made_by, partitioned_by, files, tables }
    }

    /// Write it; it gets its name only when it is complete and on the disk.
    pub(crate) fn write(&self, path: &Path) -> Result<(), FleetError> {
        let part = path.with_extension("json.part");
        let write = || {
            let mut out = BufWriter::new(File::create(&part)?);
            serde_json::to_writer_pretty(&mut out, self)?;
            out.write_all(b"\n")?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&part, path)
        };
        write().map_err(FleetError::at(path))
    }
}
