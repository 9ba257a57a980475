//! How much of a recording is replayed by default.

use std::path::Path;

/// Recordings of up to this many bytes are replayed by default. The steps of a larger one take more
/// memory than the rest of a diagnosis, and its replay more time (docs/models.md).
const SMALL: u64 = 64 << 20;

/// The most files and folders of a recording that are visited to find its size.
const ENTRIES: usize = 4096;

/// The size of the part of a larger recording that is replayed.
const WINDOW: u64 = 24 << 20;

/// The fraction of a recording that is replayed by default: 1 is all of it, a smaller one is a
/// window in the middle of the judged part. `None` if its length is unknown, as for standard input.
pub fn replayed_part(trace: &Path) -> Option<f64> {
    let size = size(trace, &mut { ENTRIES })?;
    Some(if size <= SMALL { 1.0 } else { WINDOW as f64 / size as f64 })
}

/// Bytes of a file, or of all files in a folder; `None` if there are too many to visit.
fn size(path: &Path, left: &mut usize) -> Option<u64> {
    *left = left.checked_sub(1)?;
    // A link to a folder can lead in circles, which `left` ends.
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_dir() {
        return meta.is_file().then_some(meta.len());
    }
    let mut sum = 0u64;
    for entry in std::fs::read_dir(path).ok()? {
        sum = sum.saturating_add(size(&entry.ok()?.path(), left)?);
    }
    Some(sum)
}
