//! Processes that contend for locks on files.

use super::{of_a_worker, plain, turns};
use crate::site::{Error, Made, Site, Tried, Worker};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::path::{Path, PathBuf};

/// One of a few files, by the number of the worker.
pub(crate) fn shared_file(folder: &Path, files: usize, index: usize) -> PathBuf {
    folder.join(format!("file-{}", index % files))
}

pub(crate) fn opened(path: &Path) -> Result<File, Error> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .tried(path.display().to_string())
}

type Lock = fn(&File, FlockOperation) -> rustix::io::Result<()>;

fn locker(site: &Site, index: usize, role: &str, lock: Lock) -> Result<Worker, Error> {
    let file = opened(&shared_file(&site.folder, site.count("files"), index))?;
    let turn = (site.get("think"), site.get("hold"));
    Ok(Worker::new(format!("{role}-{index}"), move |clock, tally| {
        let enter = || Ok(lock(&file, FlockOperation::LockExclusive)?);
        turns(clock, tally, turn, enter, || Ok(lock(&file, FlockOperation::Unlock)?))
    }))
}

/// Processes lock whole files with `flock`.
pub(crate) fn flock(site: &Site) -> Result<Made, Error> {
    plain(site, vec![of_a_worker("flock")])
}

pub(crate) fn flock_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    locker(site, index, "flock", |file, how| rustix::fs::flock(file, how))
}

/// Processes lock whole files with `fcntl`.
pub(crate) fn fcntl(site: &Site) -> Result<Made, Error> {
    plain(site, vec![of_a_worker("posix-lock")])
}

pub(crate) fn fcntl_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    locker(site, index, "fcntl", |file, how| rustix::fs::fcntl_lock(file, how))
}
