//! The output forms: one [`Report`] as text, JSON, CSV, Markdown or HTML; a comparison of
//! recordings ([`compare`]) also in the forms that CI reads.
//!
//! A report holds plain values. [`schema`] defines once per row type which field is which column;
//! every renderer works on the resulting [`Table`]. Only text rounds and scales; JSON and CSV carry
//! the results of the passes, in integer nanoseconds.

pub mod answer;
pub mod compare;
pub mod csv;
pub mod doctor;
pub mod fleet;
pub mod html;
mod info;
pub mod json;
pub mod json_schema;
pub mod markdown;
mod markup;
mod report;
pub mod schema;
mod spark;
pub mod svg;
mod table;
pub mod text;
mod trace_head;
mod whatif;

pub use info::{Capability, Fact, Info, Node};
pub use report::{
    Body, BusyCourse, GraphBody, PathBody, PathHead, PredictBody, Report, SCHEMA, Section,
};
pub use table::{Cell, Column, JsonRows, Line, Table, Unit, UnknownKey};
pub use text::{TextOptions, escape, wrap};
pub use trace_head::{FIGURES, Known, TraceHead};
pub use whatif::{UNCHANGED, WhatifBody, WhatifHead, WhatifRow};

use std::io::{self, Write};

/// A form of output.
#[derive(Clone, Debug)]
pub enum Format {
    /// Human-readable text.
    Text(TextOptions),
    /// Schema `holdup/1`.
    Json,
    /// Markdown, for issues and wikis.
    Markdown,
    /// A page for a browser.
    Html,
    /// Comma-separated, or separated by something else.
    Csv {
        /// The separator between cells.
        separator: String,
    },
}

/// Write `report` in `format`.
pub fn write(report: &Report, format: &Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text(options) => text::write(report, options, out),
        Format::Json => json::write(report, out),
        Format::Markdown => markdown::write(report, out),
        Format::Html => html::write_report(report, out),
        Format::Csv { separator } => csv::write(report, separator, out),
    }
}
