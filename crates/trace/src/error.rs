//! Why an input cannot be read.

use std::path::{Path, PathBuf};

/// Result of reading.
pub type Result<T, E = ReadError> = std::result::Result<T, E>;

/// An input that cannot be read, with enough detail to find the place in a hex dump.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", .file.display())]
pub struct ReadError {
    /// The file, `-` for standard input.
    pub file: PathBuf,
    /// What is wrong.
    #[source]
    pub kind: ErrorKind,
}

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are not what the format demands at this place.
    #[error("byte {offset:#x}{}: expected {expected}, found \
        {found}", record.as_ref().map(|r| format!(" ({r})")).unwrap_or_default())]
    Malformed {
        /// Byte offset in the file.
        offset: u64,
        /// Which record or section, if known.
        record: Option<String>,
        /// What the format demands.
        expected: String,
        /// What the file contains.
        found: String,
    },
    /// A format or variant that holdup knows but does not read; says what to do instead.
    #[error("{what}: {way_out}")]
    Unsupported {
        /// What it is.
        what: String,
        /// What to do instead.
        way_out: String,
    },
}

impl ErrorKind {
    /// An error for bytes that are not what the format demands.
    pub fn malformed(
        offset: u64,
        record: impl Into<Option<String>>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> ErrorKind {
        ErrorKind::Malformed {
            offset,
            record: record.into(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// Adds the name of the file.
    pub fn in_file(self, file: &Path) -> ReadError {
        ReadError { file: file.to_owned(), kind: self }
    }
}
