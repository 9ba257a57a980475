//! The command line of `holdup fleet`.

use crate::cli::{EntriesArgs, OutputArgs};
use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(crate) const AFTER_HELP: &str = "A folder is gone through with all below it; in a PATTERN * \
stands for any characters and ? for\none. What is not a trace is left out. What is judged is kept \
in OUT/journal.ndjson: say the same\nagain to go on after an end of any kind, or when there are \
more traces. The tables are\nOUT/tables/TABLE/date=.../host=.../*.parquet, and OUT/manifest.json \
says what became of each\nfile. The exit code is 3 if one could not be read; the others are \
done.\n\n\
Examples: holdup fleet traces/ --to out\n\
\x20         holdup fleet '/mnt/*/perf.data' --to out --jobs 4 -j > ranking.json\n\
\x20         holdup fleet --one perf.data --to parts/ && holdup fleet --merge parts/ --to out";

/// Which columns are folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartitionName {
    /// date=.../host=.../
    DateHost,
    /// date=.../: where hosts have few traces a day; the host is a column
    Date,
    /// No folders: date and host are columns
    None,
}

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// Traces, folders, patterns; with --merge files and folders that --one wrote, or journals
    #[arg(value_name = "TRACE|DIR|PATTERN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The folder to write into, made if need be; with --one a FILE, or a folder that gets a file
    /// named after the content of the trace
    #[arg(long, value_name = "OUT", required_unless_present = "list", help_heading = "Output")]
    pub(crate) to: Option<PathBuf>,
    /// Judge traces at the same time, so many [default: CPUs]; memory grows with it
    #[arg(long, value_name = "N", conflicts_with_all = ["one", "merge", "list"])]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Only judge one trace: write a part for --merge, and print what came of it as a line of JSON
    #[arg(long, conflicts_with_all = ["merge", "list", "output", "format", "json", "separator"])]
    pub(crate) one: bool,
    /// With --one: the path that the trace shall have in the tables, where it was copied from there
    #[arg(long, value_name = "PATH", requires = "one")]
    pub(crate) name: Option<String>,
    /// Only make the tables, of parts that --one wrote
    #[arg(long, conflicts_with = "list")]
    pub(crate) merge: bool,
    /// Only list what would be judged, a path a line; with --to OUT without what is judged there
    #[arg(long, conflicts_with_all = ["output", "format", "json", "separator"])]
    pub(crate) list: bool,
    /// Columns that become folders
    #[arg(
        long, value_enum, value_name = "WHAT", default_value_t = PartitionName::DateHost,
        help_heading = "Output"
    )]
    pub(crate) partition: PartitionName,
    /// Traces in a file of a table, at most
    #[arg(long, value_name = "N", default_value = "1000", help_heading = "Output")]
    pub(crate) per_file: NonZeroUsize,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Replay large traces too, for what fixing the bottleneck would gain; smaller ones always are
    #[arg(long)]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
}
