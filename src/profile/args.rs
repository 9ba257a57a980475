//! The command line of `holdup profile`.

use crate::cli::TableArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileBy {
    Function,
    Thread,
    Process,
    Dso,
    Line,
    Cpu,
    /// The control group: a service or a container
    Cgroup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeWay {
    TopDown,
    BottomUp,
}

/// Options of tables that other forms do not support.
const OF_TABLES: [&str; 8] =
    ["format", "json", "separator", "entries", "sort", "by", "children", "tree"];

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What each row sums up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = ProfileBy::Function)]
    pub(crate) by: ProfileBy,
    /// Also show functions that only call others, and count for each function the samples of the
    /// functions it called
    #[arg(long, conflicts_with = "by")]
    pub(crate) children: bool,
    /// Show call chains as a tree: from the outermost functions down, or from the sampled functions
    /// up
    #[arg(long, value_enum, value_name = "WAY", conflicts_with_all = ["by", "children", "sort"])]
    pub(crate) tree: Option<TreeWay>,
    /// Leave branches with less than PCT per cent of all samples out of the tree [default: 0.5]
    #[arg(long, value_name = "PCT", requires = "tree", value_parser = per_cent)]
    pub(crate) min_pct: Option<f64>,
    /// The event whose samples are counted; any event with call chains is possible [default: the
    /// first of cpu-clock, task-clock and cycles that has samples]
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    pub(crate) event: Option<String>,
    /// Print whole call chains for flame graphs, one per line, instead of a table
    #[arg(long, conflicts_with_all = OF_TABLES, help_heading = "Output")]
    pub(crate) folded: bool,
    /// Write whole call chains to FILE for pprof, instead of a table; - for standard output
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = OF_TABLES,
        conflicts_with_all = ["folded", "output"],
        help_heading = "Output"
    )]
    pub(crate) pprof: Option<PathBuf>,
    /// Write every sample to FILE for profiler.firefox.com, instead of a table; - for standard
    /// output
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = OF_TABLES,
        conflicts_with_all = ["folded", "output", "pprof"],
        help_heading = "Output"
    )]
    pub(crate) firefox: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

fn per_cent(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| "a number from 0 to 100 is expected".to_owned())
}

/// Where the names of functions come from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct SymbolArgs {
    /// Take the recorded machine's files from below DIR, instead of this machine's files
    #[arg(long, value_name = "DIR", conflicts_with = "no_symbols")]
    pub(crate) symfs: Option<PathBuf>,
    /// Symbols of the recorded kernel: a copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE", conflicts_with = "no_symbols")]
    pub(crate) kallsyms: Option<PathBuf>,
    /// Do not open files to look up function names
    #[arg(long)]
    pub(crate) no_symbols: bool,
    /// Do not show inlined functions
    #[arg(long)]
    pub(crate) no_inline: bool,
}

impl SymbolArgs {
    /// Whether any of the options was given.
    pub(crate) fn any(&self) -> bool {
        self.symfs.is_some() || self.kallsyms.is_some() || self.no_symbols || self.no_inline
    }
}
