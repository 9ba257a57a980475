//! Locks of the kernel itself: of an address space, a directory, a file, a file's position.

use super::files::{opened, shared_file};
use super::{calls, culprit, plain};
use crate::clock::Clock;
use crate::count::Tally;
use crate::site::{Error, Made, Site, Tried, Worker};
use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;

/// Workers that are threads or, if the settings say so, processes.
fn apart_or_not(
    site: &Site,
    worker: fn(&Site, usize) -> Result<Worker, Error>,
    culprits: &[&str],
) -> Result<Made, Error> {
    let culprits = culprits.iter().map(|name| culprit(&[name])).collect();
    if site.get("apart") > 0 {
        return plain(site, culprits);
    }
    let workers = (0..site.workers()).map(|i| worker(site, i)).collect::<Result<_, _>>()?;
    Ok(Made::threads(workers, culprits))
}

fn usize_of(site: &Site, key: &str) -> usize {
    usize::try_from(site.get(key)).unwrap_or(usize::MAX)
}

/// The smallest page size.
const PAGE: usize = 4096;

/// Memory that is mapped, written in some pages, and unmapped: more than any allocator caches.
pub(crate) fn mmap(site: &Site) -> Result<Made, Error> {
    apart_or_not(site, mmap_worker, &["mmap", "munmap", "exc_page_fault"])
}

pub(crate) fn mmap_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let (size, pages, think) = (usize_of(site, "size"), usize_of(site, "pages"), site.get("think"));
    Ok(Worker::new(format!("mmap-{index}"), move |clock, tally| {
        calls(clock, tally, think, || {
            let mut memory = Vec::new();
            memory.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
            // Within the reserved capacity, so nothing moves.
            memory.resize(size.min(pages.saturating_mul(PAGE)), 0_u8);
            black_box(&memory);
            Ok(())
        })
    }))
}

/// Threads that start threads.
pub(crate) fn threads(site: &Site) -> Result<Made, Error> {
    apart_or_not(site, threads_worker, &["mmap", "munmap", "mprotect", "clone"])
}

pub(crate) fn threads_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let (size, think) = (usize_of(site, "size"), site.get("think"));
    Ok(Worker::new(format!("threads-{index}"), move |clock, tally| {
        calls(clock, tally, think, || {
            let child = thread::Builder::new().stack_size(size).spawn(|| ())?;
            child.join().map_err(|_| io::ErrorKind::Other.into())
        })
    }))
}

/// Files created and removed in shared directories.
pub(crate) fn directory(site: &Site) -> Result<Made, Error> {
    for i in 0..site.count("folders") {
        fs::create_dir(site.folder.join(format!("folder-{i}"))).tried("a folder")?;
    }
    plain(site, ["openat", "unlink", "open", "unlinkat"].map(|name| culprit(&[name])).into())
}

pub(crate) fn directory_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let folder = site.folder.join(format!("folder-{}", index % site.count("folders")));
    let (path, think) = (folder.join(format!("of-{index}")), site.get("think"));
    Ok(Worker::new(format!("folder-{index}"), move |clock, tally| {
        calls(clock, tally, think, || {
            File::create(&path)?;
            fs::remove_file(&path)
        })
    }))
}

/// Writes into the same place of shared files.
pub(crate) fn file(site: &Site) -> Result<Made, Error> {
    plain(site, vec![culprit(&["pwrite"])])
}

pub(crate) fn file_worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let file = opened(&shared_file(&site.folder, site.count("files"), index))?;
    let (bytes, think) = (vec![1; usize_of(site, "size").min(LARGEST)], site.get("think"));
    Ok(Worker::new(format!("file-{index}"), move |clock, tally| {
        calls(clock, tally, think, || file.write_all_at(&bytes, 0))
    }))
}

/// A larger transfer is a mistake.
const LARGEST: usize = 64 << 20;

/// Reads through open files that threads share.
pub(crate) fn position(site: &Site) -> Result<Made, Error> {
    let size = usize_of(site, "size").min(LARGEST);
    let path = shared_file(&site.folder, 1, 0);
    fs::write(&path, vec![1; size]).tried("a file")?;
    let number = site.count("opened");
    let files = (0..number).map(|_| opened(&path).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let think = site.get("think");
    let worker = |i: usize| {
        let file = files[i % number].clone();
        Worker::new(format!("position-{i}"), move |clock: &Clock, tally: &mut Tally| {
            let mut bytes = vec![0; size];
            calls(clock, tally, think, || {
                rustix::io::read(&*file, &mut bytes)?;
                rustix::fs::seek(&*file, rustix::fs::SeekFrom::Start(0))?;
                Ok(())
            })
        })
    };
    let culprits = vec![culprit(&["read"]), culprit(&["lseek"])];
    Ok(Made::threads((0..site.workers()).map(worker).collect(), culprits))
}
