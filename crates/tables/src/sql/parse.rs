//! Parses text into one query, with the parser and the dialect that polars uses.

use crate::{Error, Place};
use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};
use sqlparser::tokenizer::Location;

/// The one query in `sql`; it may end with a semicolon.
pub(crate) fn query(sql: &str) -> Result<Query, Error> {
    let options = ParserOptions::new().with_trailing_commas(true);
    let statements = Parser::new(&GenericDialect)
        .with_options(options)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|e| failure(&e))?;
    match <[Statement; 1]>::try_from(statements) {
        Ok([Statement::Query(query)]) => Ok(*query),
        Ok([_]) => Err(Error::sql("only SELECT is supported: the tables cannot be changed")),
        Err(none) if none.is_empty() => Err(Error::sql("no query: write SELECT ... FROM ...")),
        Err(_) => Err(Error::sql("only one query at a time is supported")),
    }
}

/// The position of the beginning, if the parser knows it.
pub(crate) fn place(at: Location) -> Option<Place> {
    (at.line > 0).then_some(Place { line: at.line, column: at.column })
}

/// The parser's message, which has the position at its end.
fn failure(error: &ParserError) -> Error {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => "the query is nested too deeply",
    };
    let Some((message, place)) = text.rsplit_once(" at Line: ") else {
        return Error::sql(lower(text));
    };
    let at = place.split_once(", Column: ").and_then(|(line, column)| {
        Some(Place { line: line.parse().ok()?, column: column.trim().parse().ok()? })
    });
    match at {
        Some(_) => Error::at(at, lower(message)),
        None => Error::sql(lower(text)),
    }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|c| c.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
