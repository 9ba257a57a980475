//! SQL over frames.
//!
//! polars' SQL is a lenient dialect: it guesses where others stop, and some of its answers differ
//! from other databases'. So a query first passes through three steps. [`parse`] reads it with the
//! parser that polars uses. [`check`] accepts what is on its lists, and the lists contain only what
//! `tests/differential.rs` compares with SQLite. [`rewrite`] spells out what the SQL standard says
//! and polars does differently. polars runs the result.

mod check;
mod functions;
mod names;
mod parse;
mod rewrite;

use crate::{Error, Frames};
use polars_core::prelude::*;
use polars_lazy::prelude::IntoLazy;
use polars_sql::SQLContext;
use sqlparser::ast::Query;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The rows of the query `sql`, in a reproducible order.
///
/// # Errors
///
/// [`Error::Sql`] if the query is wrong, or uses something that is refused: the message says what
/// to write instead. [`Error::Input`] if a file cannot be read.
pub fn query(frames: &Frames, sql: &str) -> Result<DataFrame, Error> {
    let mut query = parse::query(sql)?;
    check::query(&query, frames)?;
    let ordered = rewrite::query(&mut query);
    // polars has `unwrap`s that a query may reach; one wrong query must not end the prompt.
    let done = catch_unwind(AssertUnwindSafe(|| run(frames, &query, ordered)));
    done.unwrap_or_else(|_| Err(Error::sql("polars failed on this query; write it another way")))
}

/// The tables that `sql` names, whether they exist or not.
///
/// # Errors
///
/// [`Error::Sql`] if it is no query.
pub fn tables_named(sql: &str) -> Result<BTreeSet<String>, Error> {
    Ok(names::tables(&parse::query(sql)?))
}

fn run(frames: &Frames, query: &Query, ordered: bool) -> Result<DataFrame, Error> {
    let mut context = SQLContext::new();
    for table in names::tables(query) {
        if let Some(frame) = frames.lazy(&table) {
            context.register(&table, frame);
        }
    }
    let plan = context.execute(&query.to_string()).map_err(|e| failure(&e))?;
    let rows = plan.collect().map_err(|e| failure(&e))?;
    if ordered { Ok(rows) } else { sorted(rows) }
}

/// Sorted by all columns, from left to right: threads find groups in any order.
fn sorted(rows: DataFrame) -> Result<DataFrame, Error> {
    if rows.height() < 2 || rows.width() == 0 {
        return Ok(rows);
    }
    let columns: Vec<_> =
        rows.columns().iter().map(|c| polars_lazy::dsl::col(c.name().clone())).collect();
    let order = SortMultipleOptions::default().with_nulls_last(true);
    rows.lazy().sort_by_exprs(columns, order).collect().map_err(|e| failure(&e))
}

/// polars' message, without its kinds of errors and its advice to Python programmers.
fn failure(error: &PolarsError) -> Error {
    let text = match error {
        PolarsError::ComputeError(text) if text.contains(".parquet: ") => {
            return Error::Input(text.to_string());
        }
        PolarsError::Duplicate(_) => {
            "two columns of the answer have the same name; rename one of them with AS".to_owned()
        }
        other => {
            let text = other.to_string();
            text.lines().next().unwrap_or_default().to_owned()
        }
    };
    Error::sql(text)
}
