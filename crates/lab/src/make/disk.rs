//! Processes that wait for the disk.

use super::{culprit, plain};
use crate::site::{Error, Made, Site, Tried, Worker};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Records that must be on the disk before the work continues.
pub(crate) fn make(site: &Site) -> Result<Made, Error> {
    plain(site, vec![culprit(&["disk"])])
}

pub(crate) fn worker(site: &Site, index: usize) -> Result<Worker, Error> {
    let path = site.folder.join(format!("records-{index}"));
    let file = File::create(&path).tried("a file")?;
    let size = usize::try_from(site.get("size")).unwrap_or(0).clamp(1, 64 << 20);
    let (think, each) = (site.get("think"), site.get("each").max(1));
    Ok(Worker::new(format!("disk-{index}"), move |clock, tally| {
        let record = vec![1; size];
        while !clock.over() {
            clock.think(think, tally);
            // In place, so that the file does not grow.
            file.write_all_at(&record, 0)?;
            tally.units += 1;
            if tally.units.is_multiple_of(each) {
                clock.wait(tally, || file.sync_all())?;
            }
        }
        Ok(())
    }))
}
