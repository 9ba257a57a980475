//! Records in files: the journal of a run, and the parts of other machines.

use crate::record::{Head, Record};
use crate::tables::{definitions, in_front};
use holdup_export::{Digest, TableDef, fits};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A record of a trace is some tens of KiB long; a longer line is not a record.
const LONGEST: u64 = 64 << 20;

/// The place of a record's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    file: u32,
    offset: u64,
    len: u64,
}

/// The result for an item, and the place of its rows.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The trace and its result.
    pub head: Head,
    /// The place of its record; `None` if it has none.
    pub place: Option<Place>,
}

/// Records in files. Their rows stay in the files.
pub struct Store {
    files: Vec<PathBuf>,
    /// Every record made under `key`, in the order found.
    entries: Vec<Entry>,
    by_hash: HashMap<String, usize>,
    by_path: HashMap<String, usize>,
    key: String,
    tables: Vec<TableDef>,
}

/// A line without its rows.
#[derive(Deserialize)]
struct OnlyHead {
    head: Head,
}

/// The contents of a file of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Records made under the store's key.
    pub taken: usize,
    /// Records made under another key.
    pub others: usize,
    /// Lines that are no records.
    pub damaged: usize,
    /// Where the last whole line ends.
    pub end: u64,
}

impl Store {
    /// A store of records made under `key`.
    pub fn new(key: String) -> Store {
        let mut tables = definitions();
        for table in &mut tables {
            table.columns.drain(..in_front(table.name));
        }
        let (by_hash, by_path) = (HashMap::new(), HashMap::new());
        Store { files: Vec::new(), entries: Vec::new(), by_hash, by_path, key, tables }
    }

    /// The [`crate::Settings::key`] of its records.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// All records, in the order in which they were read.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of a content.
    pub fn of_content(&self, hash: &str) -> Option<&Entry> {
        self.by_hash.get(hash).map(|&i| &self.entries[i])
    }

    /// The latest entry of a path.
    pub fn of_path(&self, path: &str) -> Option<&Entry> {
        self.by_path.get(path).map(|&i| &self.entries[i])
    }

    /// Read the records of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, path: &Path) -> io::Result<Scanned> {
        let mut lines = BufReader::with_capacity(1 << 20, File::open(path)?);
        let file = self.file(path);
        let (mut scanned, mut offset, mut line) = (Scanned::default(), 0, Vec::new());
        loop {
            line.clear();
            let len = (&mut lines).take(LONGEST).read_until(b'\n', &mut line)? as u64;
            if len == 0 {
                return Ok(scanned);
            }
            let place = Place { file, offset, len };
            offset += len;
            let whole = line.last() == Some(&b'\n');
            match serde_json::from_slice::<OnlyHead>(&line) {
                Ok(OnlyHead { head }) if whole && head.made_by == self.key => {
                    scanned.taken += 1;
                    self.take(head, place);
                }
                Ok(_) if whole => scanned.others += 1,
                Ok(_) | Err(_) => scanned.damaged += 1,
            }
            if whole {
                scanned.end = offset;
            }
        }
    }

    /// The number of a file with records.
    pub(crate) fn file(&mut self, path: &Path) -> u32 {
        self.files.push(path.to_owned());
        self.files.len() as u32 - 1
    }

    /// Add the record of a line that was read.
    fn take(&mut self, head: Head, place: Place) {
        let at = self.entries.len();
        if let Some(hash) = &head.hash {
            self.by_hash.insert(hash.clone(), at);
        }
        self.by_path.insert(head.path.clone(), at);
        self.entries.push(Entry { head, place: Some(place) });
    }

    /// Add a record that was written to `file`.
    pub(crate) fn written(&mut self, head: Head, file: u32, offset: u64, len: u64) -> Place {
        let place = Place { file, offset, len };
        self.take(head, place);
        place
    }

    /// The rows of a record; `None` if it is damaged: no longer JSON, or not the tables' rows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn rows(&self, place: Place) -> io::Result<Option<Digest>> {
        let mut file = File::open(&self.files[place.file as usize])?;
        file.seek(SeekFrom::Start(place.offset))?;
        let mut line = Vec::new();
        file.take(place.len).read_to_end(&mut line)?;
        Ok(serde_json::from_slice::<Record>(&line).ok().map(|r| r.rows).filter(|r| self.fit(r)))
    }

    /// Whether these rows match the tables.
    fn fit(&self, rows: &Digest) -> bool {
        self.tables.iter().all(|table| {
            rows.get(table.name).is_some_and(|rows| rows.iter().all(|row| fits(table, row)))
        })
    }
}

/// The files of parts: those that are named, and all that end in `.ndjson` in named folders.
///
/// # Errors
/// A folder cannot be read.
pub fn parts(inputs: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for input in inputs {
        if !input.is_dir() {
            found.push(input.clone());
            continue;
        }
        for entry in fs::read_dir(input)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "ndjson") && path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}
