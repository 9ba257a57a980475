//! Records in files: the journal of a run, the parts of other machines.

use crate::record::{Head, Record};
use crate::tables::{definitions, in_front};
use holdup_export::{Digest, TableDef, fits};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A record of a trace is some tens of KiB long; what is longer than this is none.
const LONGEST: u64 = 64 << 20;

/// Where the line of a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    file: u32,
    offset: u64,
    len: u64,
}

/// What is known of an item, and where its rows are.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which, and what came of it.
    pub head: Head,
    /// Where its record is; none of what came to nothing.
    pub place: Option<Place>,
}

/// Records in files. Their rows stay there.
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

/// What a file of records held.
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

    /// [`crate::Settings::key`] of what is in it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// All records, in the order in which they were taken in.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What is known of a content.
    pub fn of_content(&self, hash: &str) -> Option<&Entry> {
        self.by_hash.get(hash).map(|&i| &self.entries[i])
    }

    /// What was known last of what lay there.
    pub fn of_path(&self, path: &str) -> Option<&Entry> {
        self.by_path.get(path).map(|&i| &self.entries[i])
    }

    /// Take in the records of a file.
    ///
    /// # Errors
    /// It cannot be read.
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

    /// The number of a file that records are in.
    pub(crate) fn file(&mut self, path: &Path) -> u32 {
        self.files.push(path.to_owned());
        self.files.len() as u32 - 1
    }

    /// Take in the record of a line that is there.
    fn take(&mut self, head: Head, place: Place) {
        let at = self.entries.len();
        if let Some(hash) = &head.hash {
            self.by_hash.insert(hash.clone(), at);
        }
        self.by_path.insert(head.path.clone(), at);
        self.entries.push(Entry { head, place: Some(place) });
    }

    /// Take in a record that was written to `file`.
    pub(crate) fn written(&mut self, head: Head, file: u32, offset: u64, len: u64) -> Place {
        let place = Place { file, offset, len };
        self.take(head, place);
        place
    }

    /// The rows of a record; `None` if it is damaged: it is no JSON any longer, or its rows are
    /// not those of the tables.
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

    /// Whether these are rows of the tables.
    fn fit(&self, rows: &Digest) -> bool {
        self.tables.iter().all(|table| {
            rows.get(table.name).is_some_and(|rows| rows.iter().all(|row| fits(table, row)))
        })
    }
}

/// The files that hold parts: those that are named, and all that end in `.ndjson` in folders that
/// are named.
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
