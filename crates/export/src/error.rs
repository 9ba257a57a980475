//! What can go wrong when an export is written.

use holdup_trace::ReadError;
use std::io;
use std::path::PathBuf;

/// Why there is no export.
#[derive(Debug)]
pub enum ExportError {
    /// The trace cannot be read.
    Trace(ReadError),
    /// A file or folder cannot be written.
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExportError::Trace(error) => error.fmt(f),
            ExportError::Write { path, error } => {
                write!(f, "{}: cannot be written: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for ExportError {}

impl From<ReadError> for ExportError {
    fn from(error: ReadError) -> ExportError {
        ExportError::Trace(error)
    }
}
