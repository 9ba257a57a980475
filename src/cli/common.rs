//! Arguments of many verbs: the trace, the part of it, and the form of the answer.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which trace.
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArg {
    /// The trace, - for standard input [default: perf.data, then trace.dat, in the current
    /// directory]
    #[arg(value_name = "TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// The trace (-i is perf's option for it)
    #[arg(short, long, value_name = "FILE", conflicts_with = "trace")]
    pub(crate) input: Option<PathBuf>,
}

impl TraceArg {
    /// Whether no trace is named.
    pub(crate) fn is_default(&self) -> bool {
        self.trace.is_none() && self.input.is_none()
    }
}

/// Which part of it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectArgs {
    /// Only rows of these processes
    #[arg(short, long, value_name = "PID,..", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Only rows of these threads
    #[arg(long, value_name = "TID,..", value_delimiter = ',')]
    pub(crate) tid: Vec<u32>,
    /// Only rows of threads with these names
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) comm: Vec<String>,
    /// Only rows of threads in these control groups; name services, containers or parts of paths
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) cgroup: Vec<String>,
    /// Only these CPUs: 0-3,5
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,
    /// Only this time window: A,B in seconds as perf prints them (A or B may be empty), or 10%,20%
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Only this phase, by its number in holdup phases
    #[arg(long, value_name = "N", conflicts_with = "time")]
    pub(crate) phase: Option<usize>,
}

/// How the answer is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::Text)]
    pub(crate) format: FormatName,
    /// Write JSON (-j is perf's option for it)
    #[arg(
        short = 'j', long = "json", overrides_with = "json",
        conflicts_with_all = ["format", "separator"]
    )]
    pub(crate) json: bool,
    /// Write CSV with this separator (-x is perf's option for it)
    #[arg(
        short = 'x',
        long = "field-separator",
        value_name = "SEP",
        conflicts_with = "format",
        allow_hyphen_values = true
    )]
    pub(crate) separator: Option<String>,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Whether to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorName::Auto)]
    pub(crate) color: ColorName,
    /// Show more columns and remarks
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print only the tables: no head line, no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// How many rows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EntriesArgs {
    /// Rows per table, 0 for all [default: 20 in text (10 in summary and fleet), else all]
    #[arg(short = 'n', visible_short_alias = 'E', long, value_name = "N")]
    pub(crate) entries: Option<usize>,
}

/// In which order.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct SortArgs {
    /// Sort by the column with this JSON key, or by several keys separated by commas
    #[arg(short, long, visible_short_alias = 'k', visible_alias = "key", value_name = "KEY,..")]
    pub(crate) sort: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    Text,
    Json,
    Csv,
    Md,
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorName {
    Auto,
    Always,
    Never,
}

/// What every verb takes.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArg,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What every verb with one table takes.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
    #[command(flatten)]
    pub(crate) sort: SortArgs,
}
