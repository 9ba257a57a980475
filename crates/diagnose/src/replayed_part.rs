//! How much of a recording is replayed unasked.

use std::path::Path;

/// Recordings of up to so many bytes are replayed unasked. The steps of a larger one take more
/// memory than the rest of a diagnosis, and its replay more time (docs/models.md).
const SMALL: u64 = 64 << 20;

/// Files and folders of a recording that are looked at to know its size.
const ENTRIES: usize = 4096;

/// Bytes of a larger recording whose part is replayed in its place.
const WINDOW: u64 = 24 << 20;

/// Which part of a recording is replayed unasked: 1 is all of it, less a window in the middle of
/// what is judged. `None` where nobody knows how long it is: of standard input.
pub fn replayed_part(trace: &Path) -> Option<f64> {
    let size = size(trace, &mut { ENTRIES })?;
    Some(if size <= SMALL { 1.0 } else { WINDOW as f64 / size as f64 })
}

/// Bytes of a file, or of all files in a folder; `None` if that would take long to find out.
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
