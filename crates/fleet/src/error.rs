//! Errors of a fleet as a whole. Errors of one trace are recorded with the trace.

use holdup_export::ExportError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a fleet cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A file or folder of the output cannot be read or written.
    #[error("{}: cannot be written: {error}", path.display())]
    Output {
        /// Its path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Another run writes to this folder.
    #[error("{}: another holdup fleet is writing into this folder", .0.display())]
    Busy(PathBuf),
}

impl FleetError {
    /// Adds the file's path to an error.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> FleetError {
        let path = path.to_owned();
        move |error| FleetError::Output { path, error }
    }
}

impl From<ExportError> for FleetError {
    fn from(error: ExportError) -> FleetError {
        match error {
            ExportError::Write { path, error } => FleetError::Output { path, error },
            ExportError::Trace(error) => {
                FleetError::Output { path: error.file.clone(), error: io::Error::other(error) }
            }
        }
    }
}
