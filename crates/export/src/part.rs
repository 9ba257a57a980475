//! A file that gets its name only when it is complete: until then it is called `NAME.part`.

use crate::error::ExportError;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) struct PartFile {
    path: PathBuf,
    part: PathBuf,
    out: Option<BufWriter<File>>,
}

/// Writes are collected up to this size.
const BUFFER: usize = 256 << 10;

impl PartFile {
    pub(crate) fn create(path: PathBuf) -> Result<PartFile, ExportError> {
        let mut part = path.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        match File::create(&part) {
            Ok(file) => {
                let out = Some(BufWriter::with_capacity(BUFFER, file));
                Ok(PartFile { path, part, out })
            }
            Err(error) => Err(ExportError::Write { path: part, error }),
        }
    }

    /// Its path until it is complete.
    pub(crate) fn part(&self) -> &Path {
        &self.part
    }

    /// The file is complete: it gets its name.
    pub(crate) fn finish(mut self) -> Result<(), ExportError> {
        let named = self.out.take().map_or(Ok(()), |out| {
            out.into_inner().map_err(io::IntoInnerError::into_error).map(drop)
        });
        named.and_then(|()| fs::rename(&self.part, &self.path)).map_err(|error| {
            // The write error matters, not that the partial file stays.
            let _ = fs::remove_file(&self.part);
            ExportError::Write { path: self.path.clone(), error }
        })
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}
