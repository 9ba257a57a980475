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
}

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What to add up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = ProfileBy::Function)]
    pub(crate) by: ProfileBy,
    /// The event whose samples count [default: the first of cpu-clock, task-clock, cycles that has
    /// samples]; any event with call chains will do
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    pub(crate) event: Option<String>,
    /// Whole call chains for flame graphs, one a line, in place of a table
    #[arg(
        long,
        conflicts_with_all = ["format", "json", "separator", "entries", "sort", "by"],
        help_heading = "Output"
    )]
    pub(crate) folded: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

/// Where the names of functions come from.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct SymbolArgs {
    /// The recorded machine's files below DIR, in place of this machine's
    #[arg(long, value_name = "DIR", conflicts_with = "no_symbols")]
    pub(crate) symfs: Option<PathBuf>,
    /// Symbols of the recorded kernel: a copy of its /proc/kallsyms
    #[arg(long, value_name = "FILE", conflicts_with = "no_symbols")]
    pub(crate) kallsyms: Option<PathBuf>,
    /// Open no file for names of functions
    #[arg(long)]
    pub(crate) no_symbols: bool,
}

impl SymbolArgs {
    /// Whether anything was said.
    pub(crate) fn any(&self) -> bool {
        self.symfs.is_some() || self.kallsyms.is_some() || self.no_symbols
    }
}
