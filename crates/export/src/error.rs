//! What can go wrong when an export is written.

use holdup_trace::ReadError;
use std::io;
use std::path::PathBuf;

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// A file or folder cannot be written.
    #[error("{}: cannot be written: {error}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}
