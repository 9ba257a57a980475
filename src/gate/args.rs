//! The command lines of the verbs that compare recordings.

use crate::cli::{ColorName, EntriesArgs, OutputArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What recordings may differ in and still be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllowName {
    Host,
    Kernel,
    Arch,
    Cpus,
    Events,
    /// All of them
    All,
}

/// How units of work are counted, and what may differ.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct CompareArgs {
    /// What a unit of work is: syscall:NAME, event:SYSTEM:NAME (ftrace:print for trace_marker), or
    /// the number of units each run does
    #[arg(long, value_name = "WORK")]
    pub(crate) work: Option<String>,
    /// Compare although these differ
    #[arg(long, value_enum, value_name = "WHAT,..", value_delimiter = ',')]
    pub(crate) allow: Vec<AllowName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PerName {
    /// Seconds of the recording
    S,
    /// Capacity: CPUs x seconds
    Cpu,
    /// Units of work
    Work,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The recording before: a trace or a baseline file
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The recording after
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    /// Divide sums by this [default: work, if it is counted, else s]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Comparison")]
    pub(crate) per: Option<PerName>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// The recordings: traces, or baseline files whose runs are taken over
    #[arg(value_name = "TRACE", required_unless_present_any = ["show"])]
    pub(crate) traces: Vec<PathBuf>,
    /// Write the baseline to FILE
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["show", "add"])]
    pub(crate) output: Option<PathBuf>,
    /// Add the recordings to the baseline FILE
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) add: Option<PathBuf>,
    /// Show what the baseline FILE holds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["traces", "output", "add"])]
    pub(crate) show: Option<PathBuf>,
    /// Hash the names of hosts, programs, files and probes
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorName::Auto)]
    pub(crate) color: ColorName,
    /// Say nothing where all is well
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
