//! Comparisons of recordings in every form.
//!
//! A [`Comparison`] holds plain values, like [`crate::Report`]. Sentences are made once, in
//! `words`, without escaping; every form escapes its output itself, because names come from traces
//! and may contain anything.

pub mod annotations;
mod csv;
pub(crate) mod json;
pub mod junit;
pub mod markdown;
mod report;
pub mod sarif;
mod text;
mod words;

pub use report::{
    BaselineMetric, BaselineReport, BaselineRun, Comparison, DiffReport, GateReport, HistoryReport,
    ScaleReport, SelfTestReport, SideHead,
};

use crate::Format;
use std::io::{self, Write};

/// Write `comparison` in `format`.
pub fn write(comparison: &Comparison, format: &Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text(options) => text::write(comparison, options, out),
        Format::Json => json::write(comparison, out),
        Format::Markdown => markdown::write(comparison, out),
        Format::Html => json::write_page(comparison, out),
        Format::Csv { separator } => csv::write(comparison, separator, out),
    }
}
