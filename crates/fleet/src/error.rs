//! What can go wrong with a fleet as a whole. What is wrong with one trace is told with it.

use holdup_export::ExportError;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A file or folder of the output cannot be read or written.
    #[error("{}: cannot be written: {error}", path.display())]
    Output {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another run writes there.
    #[error("{}: another holdup fleet is writing into this folder", .0.display())]
    Busy(PathBuf),
}

impl FleetError {
    /// Names the file.
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
