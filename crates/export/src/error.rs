//! Errors of an export.

use holdup_trace::ReadError;
use std::io;
use std::path::PathBuf;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// A file or folder cannot be written.
    #[error("{}: cannot be written: {error}", path.display())]
    Write {
        /// Its path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}
