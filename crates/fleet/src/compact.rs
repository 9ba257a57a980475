//! Writes records into tables: a file for about a thousand traces, in a folder for each partition.

use crate::dataset::{Dataset, Partition, When};
use crate::date;
use crate::error::FleetError;
use crate::manifest::{DataFile, Manifest, Row};
use crate::named::Seen;
use crate::ranking::Ranking;
use crate::store::{Entry, Place, Store};
use crate::tables::{DATE, HOST, definitions};
use crate::{MANIFEST, TABLES};
use holdup_export::{Column, Digest, TABLES_VERSION, TRACE, TableDef, TableFile};
use holdup_render::fleet::FleetReport;
use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// A trace to be written.
struct Line {
    date: String,
    host: String,
    path: String,
    recorded_ns: i64,
    date_from: &'static str,
    hash: String,
    place: Place,
}

/// Write the tables and the manifest of `entries` into the folder `to`. Old tables are replaced
/// atomically when all is written. Returns the report.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    entries: &[Entry],
    store: &Store,
    to: &Path,
    dataset: Dataset,
) -> Result<FleetReport, FleetError> {
    let made = to.join(format!(".{TABLES}.new"));
    let fresh = || {
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        fs::create_dir_all(&made)
    };
    fresh().map_err(FleetError::at(&made))?;
    let mut rows = crate::manifest::rows(entries);
    let mut lines: Vec<Line> = Vec::new();
    for (row, entry) in rows.iter().zip(entries) {
        let (Row { hash: Some(hash), same_as: None, .. }, Some(place), Some(when)) =
            (row, entry.place, When::of(&entry.head))
        else {
            continue;
        };
        lines.push(Line {
            date: date::date(when.ns),
            host: when.host,
            path: row.path.clone(),
            recorded_ns: when.ns,
            date_from: when.from,
            hash: hash.clone(),
            place,
        });
    }
    let part = |l: &Line| match dataset.partition {
        Partition::DateHost => (l.date.clone(), l.host.clone()),
        Partition::Date => (l.date.clone(), String::new()),
        Partition::Nothing => (String::new(), String::new()),
    };
    lines.sort_by_cached_key(|l| (part(l), l.path.clone(), l.hash.clone()));
    let mut writer =
        Writer { store, to: &made, files: Vec::new(), ranking: Ranking::default(), dataset };
    for same in lines.chunk_by(|a, b| part(a) == part(b)) {
        for (number, chunk) in same.chunks(dataset.per_file.max(1)).enumerate() {
            for damaged in writer.file(number, chunk)? {
                let error = "the record of this trace is damaged; run holdup fleet \
                             again"
                    .to_owned();
                let rows = rows.iter_mut().filter(|r| r.hash.as_deref() == Some(&*damaged));
                rows.for_each(|row| row.fail(error.clone()));
            }
        }
    }
    let Writer { files, ranking, .. } = writer;
    File::open(&made)
        .and_then(|folder| syncfs(&folder).map_err(io::Error::from))
        .and_then(|()| swap(&made, &to.join(TABLES)))
        .map_err(FleetError::at(&made))?;
    let manifest = Manifest::new(store.key(), dataset, &rows, files);
    manifest.write(&to.join(MANIFEST))?;
    Ok(ranking.report(&rows, &manifest))
}

/// Put `made` in the place of `old`. A concurrent reader sees either the one or the other.
fn swap(made: &Path, old: &Path) -> io::Result<()> {
    if !old.exists() {
        return fs::rename(made, old);
    }
    match renameat_with(CWD, made, CWD, old, RenameFlags::EXCHANGE) {
        Ok(()) => fs::remove_dir_all(made),
        // Not every file system can exchange folders: then there is none for a moment.
        Err(_) => {
            fs::remove_dir_all(old)?;
            fs::rename(made, old)
        }
    }
}

struct Writer<'a> {
    store: &'a Store,
    to: &'a Path,
    files: Vec<DataFile>,
    ranking: Ranking,
    dataset: Dataset,
}

impl Writer<'_> {
    /// Write the files of one chunk, one for each table that has rows; for the first chunk one for
    /// each table, so that no table is missing. Returns the hashes of damaged records.
    fn file(&mut self, number: usize, chunk: &[Line]) -> Result<Vec<String>, FleetError> {
        let first = self.files.is_empty();
        let mut open: BTreeMap<&str, (TableFile, u64)> = BTreeMap::new();
        let definitions = definitions();
        let mut damaged = Vec::new();
        let mut place = String::new();
        if let Some(line) = chunk.first() {
            place = folder(self.dataset.partition, line);
        }
        for line in chunk {
            let rows = self.store.rows(line.place);
            let Some(rows) = rows.map_err(FleetError::at(self.to))? else {
                damaged.push(line.hash.clone());
                continue;
            };
            let rows = self.complete(rows, line);
            for table in &definitions {
                let rows = rows.get(table.name).map_or(&[][..], Vec::as_slice);
                if rows.is_empty() && (!first || open.contains_key(table.name)) {
                    continue;
                }
                let (file, n) = match open.entry(table.name) {
                    std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        entry.insert((self.create(table, &place, number, chunk.len())?, 0))
                    }
                };
                for row in rows {
                    file.push(row)?;
                    *n += 1;
                }
            }
            let seen = Seen { ns: line.recorded_ns, host: &line.host, path: &line.path };
            self.ranking.add(&seen, &definitions, &rows);
        }
        for (table, (file, rows)) in open {
            file.finish()?;
            let path = name(table, &place, number);
            let full = self.to.join(&path);
            let bytes = full.metadata().map_err(FleetError::at(&full))?.len();
            let (table, path) = (table.to_owned(), format!("{TABLES}/{path}"));
            self.files.push(DataFile { table, path, traces: chunk.len(), rows, bytes });
        }
        Ok(damaged)
    }

    /// The rows with the trace's columns in front.
    fn complete(&self, mut rows: Digest, line: &Line) -> Digest {
        let partition: Vec<Json> = match self.dataset.partition {
            Partition::DateHost => vec![],
            Partition::Date => vec![line.host.as_str().into()],
            Partition::Nothing => vec![line.date.as_str().into(), line.host.as_str().into()],
        };
        for (table, rows) in &mut rows {
            for row in rows {
                let mut all: Vec<Json> = vec![line.hash.as_str().into()];
                all.extend(partition.iter().cloned());
                if table == TRACE {
                    let path = &line.path;
                    all.extend([path.as_str().into(), line.recorded_ns.into()]);
                    all.push(line.date_from.into());
                    // Its name may have changed since it was judged.
                    if let Some(file) = row.first_mut() {
                        *file = path.rsplit('/').next().unwrap_or(path).into();
                    }
                }
                all.append(row);
                *row = all;
            }
        }
        rows
    }

    fn create(
        &self,
        table: &TableDef,
        place: &str,
        number: usize,
        traces: usize,
    ) -> Result<TableFile, FleetError> {
        let path = self.to.join(name(table.name, place, number));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(FleetError::at(folder))?;
        }
        let mut table = table.clone();
        let columns: &[Column] = match self.dataset.partition {
            Partition::DateHost => &[],
            Partition::Date => &[HOST],
            Partition::Nothing => &[DATE, HOST],
        };
        table.columns.splice(1..1, columns.iter().cloned());
        let metadata = [
            ("holdup.schema", holdup_render::SCHEMA.to_owned()),
            ("holdup.table", table.name.to_owned()),
            ("holdup.table_version", TABLES_VERSION.to_string()),
            ("holdup.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("holdup.made_by", self.store.key().to_owned()),
            ("fleet.traces", traces.to_string()),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).to_vec();
        Ok(TableFile::create(path, table, metadata)?)
    }
}

/// `trace/date=2026-11-23/host=db1/part-0000.parquet`.
fn name(table: &str, place: &str, number: usize) -> String {
    format!("{table}/{place}part-{number:04}.parquet")
}

fn folder(partition: Partition, line: &Line) -> String {
    let date = format!("date={}/", line.date);
    match partition {
        Partition::DateHost => format!("{date}host={}/", escaped(&line.host)),
        Partition::Date => date,
        Partition::Nothing => String::new(),
    }
}

/// As a path component, as in Hive: `%` and two digits for every byte that is not harmless. Host
/// names come from traces and may contain anything.
fn escaped(name: &str) -> String {
    let byte = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(b).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::host_of;

    #[test]
    fn hosts_cannot_leave_their_folder() {
        assert_eq!(escaped("db-1.example_x"), "db-1.example_x");
        assert_eq!(escaped("../ä%"), "..%2F%C3%A4%25");
        let long = host_of(Some(&"ä".repeat(100)));
        assert!(escaped(&long).len() < 250, "file systems take 255 bytes");
    }
}
