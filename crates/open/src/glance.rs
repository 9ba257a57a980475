//! A quick look at a large file without reading all of it.

use crate::wrap::Wrapper;
use crate::{note_in, read_head, recognise};
use holdup_trace::{ErrorKind, Glance, Result};
use std::fs::File;
use std::path::Path;

/// Files up to this size are read whole even for a quick look: that takes a few hundredths of a
/// second, and the answer is complete.
pub const SMALL: u64 = 16 << 20;

/// Look at `path` without reading all of it.
///
/// `None` if reading the whole file is as quick or the only way: for a file of up to [`SMALL`]
/// bytes, a pipe, a folder, a compressed trace, or a format without tables.
///
/// # Errors
/// As [`crate::open`].
pub fn glance(path: &Path) -> Result<Option<Glance>> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let fail = |e: std::io::Error| ErrorKind::from(e).in_file(path);
    let metadata = path.metadata().map_err(fail)?;
    if !metadata.is_file() || metadata.len() <= SMALL {
        return Ok(None);
    }
    let head = read_head(&mut File::open(path).map_err(fail)?).map_err(fail)?;
    if Wrapper::of(&head).is_some() {
        return Ok(None);
    }
    let (format, why) = recognise(&head).map_err(|kind| kind.in_file(path))?;
    let mut glance = (format.glance)(path)?;
    if let Some(glance) = &mut glance {
        note_in(&mut glance.info, why);
    }
    Ok(glance)
}
