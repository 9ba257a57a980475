//! The command line of `holdup fleet`.

use crate::cli::{EntriesArgs, OutputArgs};
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(crate) const AFTER_HELP: &str = "Folders are searched with all folders below them. In a \
PATTERN, * stands for any characters and ?\n\
for one. Files that are not traces are skipped. OUT/journal.ndjson keeps every result: repeat the\n\
command to continue after an interruption, or to add new traces. The tables are\n\
OUT/tables/TABLE/date=.../host=.../*.parquet, and OUT/manifest.json has the outcome of each file.\n\
The exit code is 3 if a trace could not be read; all other traces are judged nevertheless.\n\n\
Examples: holdup fleet traces/ --to out\n\
\x20         holdup fleet '/mnt/*/perf.data' --to out --jobs 4 -j > ranking.json\n\
\x20         holdup fleet --one perf.data --to parts/ && holdup fleet --merge parts/ --to out";

/// Which columns are folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartitionName {
    /// date=.../host=.../
    DateHost,
    /// date=.../, with the host as a column: for hosts that have few traces a day
    Date,
    /// No folders: date and host are columns
    None,
}

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// Traces, folders or patterns; with --merge: files and folders that --one wrote, or journals
    #[arg(value_name = "TRACE|DIR|PATTERN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The folder to write into, created if it does not exist; with --one: a FILE, or a folder for
    /// a file named after the content of the trace
    #[arg(long, value_name = "OUT", required_unless_present = "list", help_heading = "Output")]
    pub(crate) to: Option<PathBuf>,
    /// Number of traces to judge at the same time [default: the number of CPUs]; memory use grows
    /// with it
    #[arg(long, value_name = "N", conflicts_with_all = ["one", "merge", "list"])]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Judge only one trace: write a part for --merge, and print the outcome as a line of JSON
    #[arg(long, conflicts_with_all = ["merge", "list", "output", "format", "json", "separator"])]
    pub(crate) one: bool,
    /// With --one: the path of the trace in the tables, if the trace was copied from that path
    #[arg(long, value_name = "PATH", requires = "one")]
    pub(crate) name: Option<String>,
    /// Only make the tables, from parts that --one wrote
    #[arg(long, conflicts_with = "list")]
    pub(crate) merge: bool,
    /// Only list the traces to judge, one path per line; with --to OUT, without the traces that are
    /// already judged there
    #[arg(long, conflicts_with_all = ["output", "format", "json", "separator"])]
    pub(crate) list: bool,
    /// Columns that become folders
    #[arg(
        long, value_enum, value_name = "WHAT", default_value_t = PartitionName::DateHost,
        help_heading = "Output"
    )]
    pub(crate) partition: PartitionName,
    /// Maximum number of traces in one file of a table
    #[arg(long, value_name = "N", default_value = "1000", help_heading = "Output")]
    pub(crate) per_file: NonZeroUsize,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Replay all of large recordings, not only a window of each, to estimate what fixing the
    /// bottleneck would gain
    #[arg(long)]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
}
