//! Exported tables as data frames, and SQL over them.
//!
//! `holdup export TRACE --to DIR` writes a Parquet file for each table. [`Frames`] opens one or
//! many such folders as [`LazyFrame`]s: only the columns that a query needs are read, one group of
//! rows after the other, and only the rows that it asks for are kept. [`query`] runs SQL over them.
//!
//! This is the only crate that uses polars, and the only one that a default build leaves out. It
//! uses polars' frames, their lazy form and SQL. Files are read with the crate `parquet` that the
//! export is written with, because polars' own reader comes with its streaming engine, which links
//! an HTTP client and TLS, and a program that reads traces needs no network.

mod error;
mod frames;
mod scan;
mod sql;
mod values;

pub use error::{Error, Place};
pub use frames::{Frames, Source};
pub use polars_core::prelude::{DataFrame, DataType, Schema};
pub use polars_lazy::frame::LazyFrame;
pub use scan::TRACE;
pub use sql::{query, tables_named};
pub use values::answer;
