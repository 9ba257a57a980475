//! `holdup export`.

use super::{SelectArgs, TraceArg};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Parquet,
    Arrow,
    Csv,
    Ndjson,
    /// Chrome's JSON for ui.perfetto.dev, in one file
    Chrome,
    /// LAMI 1.0, for Trace Compass
    Lami,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArg,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// The folder to write into, which is created if it does not exist; or a FILE.json. Existing
    /// files with the same names are replaced
    #[arg(long, value_name = "DIR|FILE", help_heading = "Output")]
    pub(crate) to: PathBuf,
    /// Format of the tables [default: parquet; for a FILE.json: chrome]
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<ExportFormat>,
    /// Only these tables [default: all except path, which needs every sleep in memory]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help_heading = "Output")]
    pub(crate) tables: Vec<String>,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Print no progress and no list of the files written
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}
