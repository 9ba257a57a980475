//! What goes wrong with a query.

use std::fmt;
use std::path::Path;

/// Where in the text of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
}

/// In front of a message.
fn said(at: Option<Place>) -> String {
    match at {
        None => String::new(),
        Some(Place { line: 1, column }) => format!("column {column}: "),
        Some(Place { line, column }) => format!("line {line}, column {column}: "),
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, or is no table.
    #[error("{0}")]
    Input(String),
    /// The query is wrong, or asks for what is refused.
    #[error("{}{message}", said(*at))]
    Sql {
        /// What is wrong, and the way out.
        message: String,
        /// Where, if that is known.
        at: Option<Place>,
    },
}

impl Error {
    /// About a file.
    pub(crate) fn input(path: &Path, why: impl fmt::Display) -> Error {
        Error::Input(format!("{}: {why}", path.display()))
    }

    /// About a query as a whole.
    pub(crate) fn sql(message: impl Into<String>) -> Error {
        Error::Sql { message: message.into(), at: None }
    }

    /// About a place in a query.
    pub(crate) fn at(place: Option<Place>, message: impl Into<String>) -> Error {
        Error::Sql { message: message.into(), at: place }
    }
}
