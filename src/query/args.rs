//! The command line of `holdup query`.

use crate::cli::OutputArgs;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// Traces, or folders that holdup export wrote, and the query as the last argument. Without a
    /// query, holdup asks for queries on a terminal, or reads one query from standard input
    #[arg(value_name = "TRACE|DIR|SQL")]
    pub(crate) words: Vec<String>,
    /// List the tables and their columns instead
    #[arg(long, conflicts_with = "examples")]
    pub(crate) list: bool,
    /// Show examples of queries instead
    #[arg(long)]
    pub(crate) examples: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Rows to show, 0 for all [default: text 100, else all]
    #[arg(short = 'n', long, value_name = "N", help_heading = "Output")]
    pub(crate) entries: Option<usize>,
}
