//! A trace as a file or folder, for code that reads its bytes again.

use crate::meter::Meter;
use crate::wrap::{Input, Wrapper};
use crate::{not_unpacked, read_head, unwrap_all};
use holdup_trace::{ErrorKind, Result};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The path of a trace; an unpacked trace is a temporary file that is deleted on drop.
#[derive(Debug)]
pub struct Unpacked {
    path: PathBuf,
    /// Deletes the file.
    _temporary: Option<tempfile::TempPath>,
}

impl Unpacked {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The first bytes of a file, to recognise its format; empty for a folder.
///
/// # Errors
/// It cannot be read.
pub fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path.is_dir() {
        return Ok(Vec::new());
    }
    read_head(&mut File::open(path)?)
}

/// `path` itself, if it is a folder or an uncompressed file; otherwise a temporary file with the
/// unpacked trace, from `path` or, for `-`, from standard input.
///
/// # Errors
/// It cannot be read or unpacked, or there is no room for it.
pub fn unpacked(path: &Path) -> Result<Unpacked> {
    let fail = |e: io::Error| ErrorKind::from(e).in_file(path);
    let is_pipe = path.as_os_str() == "-";
    let metadata = if is_pipe { None } else { Some(path.metadata().map_err(fail)?) };
    if metadata.as_ref().is_some_and(std::fs::Metadata::is_dir) {
        return Ok(Unpacked { path: path.to_owned(), _temporary: None });
    }
    let mut stream: Box<dyn Read + Send> = match is_pipe {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).map_err(fail)?),
    };
    let head = read_head(&mut stream).map_err(fail)?;
    let wrapper = Wrapper::of(&head);
    if wrapper.is_none() && metadata.is_some_and(|m| m.is_file() && m.len() > 0) {
        return Ok(Unpacked { path: path.to_owned(), _temporary: None });
    }
    let mut file = tempfile::NamedTempFile::new().map_err(fail)?;
    let meter = Arc::new(Meter::default());
    let stream: Box<dyn Read + Send> = Box::new(Cursor::new(head).chain(stream));
    match wrapper {
        None => {
            let mut stream = stream;
            io::copy(&mut stream, file.as_file_mut()).map_err(fail)?;
        }
        Some(wrapper) => {
            let (_, input) = unwrap_all(path, wrapper, Input::Stream(stream), &meter)?;
            if let Input::Stream(mut stream) = input {
                io::copy(&mut stream, file.as_file_mut())
                    .map_err(|e| not_unpacked(e.into(), wrapper, &meter).in_file(path))?;
            }
        }
    }
    let temporary = file.into_temp_path();
    Ok(Unpacked { path: temporary.to_path_buf(), _temporary: Some(temporary) })
}
