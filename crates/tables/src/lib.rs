//! Exported tables as data frames, and SQL over them.
//!
//! `holdup export TRACE --to DIR` writes a Parquet file for each table. [`Frames`] opens one or
//! many such folders as [`LazyFrame`]s: of a file only the columns are read that a query needs,
//! one group of rows after the other, and of those the rows are kept that it asks for.
//! [`query`] answers SQL over them.
//!
//! This is the only crate that names polars, and the only one that a default build leaves out. Of
//! polars it takes the frames, their lazy form and SQL. Files are read with the crate `parquet`
//! that the export is written with: polars' own reader comes with its streaming engine, which
//! links an HTTP client and TLS, and a program that reads traces has no business on the network.

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
