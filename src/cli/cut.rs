//! `holdup cut`.

use super::TraceArg;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(group(
    ArgGroup::new("part").required(true).multiple(true).args(["time", "phase", "cpu", "anonymize"])
))]
pub(crate) struct CutArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArg,
    /// Only this time window: A,B in seconds as perf prints them (A or B may be empty), or 10%,20%
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Only this phase, by its number in holdup phases
    #[arg(long, value_name = "N", conflicts_with = "time")]
    pub(crate) phase: Option<usize>,
    /// Only the events of these CPUs: 0-3,5
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,
    /// Replace names, paths and command lines; equal texts get equal replacements
    #[arg(long)]
    pub(crate) anonymize: bool,
    /// The file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: PathBuf,
    /// Print no progress and no line about what was written
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}
