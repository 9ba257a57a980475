//! The journal of a run: each record is a line, added when its trace is done.
//!
//! A killed run leaves whole lines and perhaps the beginning of one, which the next run cuts off.
//! Thousands of traces are one file.

use crate::error::FleetError;
use crate::record::Record;
use crate::store::{Place, Store};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A power failure may lose this much work; a killed process loses nothing that was written.
const SYNC: Duration = Duration::from_secs(5);

/// The journal and its contents.
pub struct Journal {
    path: PathBuf,
    file: File,
    number: u32,
    end: u64,
    synced: Instant,
    store: Store,
}

impl Journal {
    /// Open the journal at `path`, or create it. No other process may have it open.
    ///
    /// # Errors
    /// The file cannot be read or written, or another process has it open.
    pub fn open(path: &Path, key: String) -> Result<Journal, FleetError> {
        let open = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            File::options().create(true).append(true).read(true).open(path)
        };
        let file = open().map_err(FleetError::at(path))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            match io::Error::from(error) {
                error if error.kind() == io::ErrorKind::WouldBlock => {
                    FleetError::Busy(path.to_owned())
                }
                error => FleetError::at(path)(error),
            }
        })?;
        let mut store = Store::new(key);
        let scanned = store.read(path).map_err(FleetError::at(path))?;
        file.set_len(scanned.end).map_err(FleetError::at(path))?;
        // Added records belong to the file just read.
        let (number, end, synced) = (0, scanned.end, Instant::now());
        Ok(Journal { path: path.to_owned(), file, number, end, synced, store })
    }

    /// Its contents.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Add a record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, record: Record) -> Result<Place, FleetError> {
        let write = |file: &mut File, synced: &mut Instant| {
            let mut line = serde_json::to_vec(&record)?;
            line.push(b'\n');
            file.write_all(&line)?;
            if synced.elapsed() > SYNC {
                file.sync_data()?;
                *synced = Instant::now();
            }
            io::Result::Ok(line.len() as u64)
        };
        let len = write(&mut self.file, &mut self.synced).map_err(FleetError::at(&self.path))?;
        let place = self.store.written(record.head, self.number, self.end, len);
        self.end += len;
        Ok(place)
    }

    /// Flush all records to the disk, to survive a power failure.
    ///
    /// # Errors
    /// The disk cannot be written.
    pub fn sync(&self) -> Result<(), FleetError> {
        self.file.sync_data().map_err(FleetError::at(&self.path))
    }
}
