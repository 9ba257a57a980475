//! Errors of queries.

use std::fmt;
use std::path::Path;

/// A position in the text of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
}

/// The position as the beginning of a message.
fn said(at: Option<Place>) -> String {
    match at {
        None => String::new(),
        Some(Place { line: 1, column }) => format!("column {column}: "),
        Some(Place { line, column }) => format!("line {line}, column {column}: "),
    }
}

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, or is no table.
    #[error("{0}")]
    Input(String),
    /// The query is wrong, or uses something that is refused.
    #[error("{}{message}", said(*at))]
    Sql {
        /// What is wrong, and what to write instead.
        message: String,
        /// The position, if known.
        at: Option<Place>,
    },
}

impl Error {
    /// An error of a file.
    pub(crate) fn input(path: &Path, why: impl fmt::Display) -> Error {
        Error::Input(format!("{}: {why}", path.display()))
    }

    /// An error of a query as a whole.
    pub(crate) fn sql(message: impl Into<String>) -> Error {
        Error::Sql { message: message.into(), at: None }
    }

    /// An error at a position in a query.
    pub(crate) fn at(place: Option<Place>, message: impl Into<String>) -> Error {
        Error::Sql { message: message.into(), at: place }
    }
}
