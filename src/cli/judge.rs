//! The verbs that judge and predict.

use super::{CommonArgs, OutputArgs, SelectArgs, TableArgs, TraceArg};
use crate::profile::args::SymbolArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// A trace of the same work on one CPU (or on another kernel) to compare with
    #[arg(long, value_name = "TRACE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Exit with 1 if the verdict is one of these classes
    #[arg(long, value_name = "CLASS,..", value_delimiter = ',')]
    pub(crate) fail_on: Vec<String>,
    /// What perf stat -x or -j counted of the same work; twice or more: with few CPUs busy and with
    /// many. CPUS= says how many were, where perf stat does not. Without a TRACE it is judged alone
    #[arg(long, value_name = "[CPUS=]FILE")]
    pub(crate) counters: Vec<PathBuf>,
    /// Judge these figures (sar, utld, lockstat ... as TOML or JSON) instead of a trace
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all =
            ["trace", "input", "baseline", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"]
    )]
    pub(crate) metrics: Option<PathBuf>,
    /// The case to judge, where FILE of --metrics holds several
    #[arg(long, value_name = "NAME", requires = "metrics")]
    pub(crate) case: Option<String>,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Every rule with all its evidence, those ruled out too
    #[arg(long)]
    pub(crate) explain: bool,
    /// Replay a large trace too, for what fixing its bottleneck would gain; smaller ones always are
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    /// Of a recording that nobody keeps: the command that makes one that is kept
    #[arg(skip)]
    pub(crate) unkept: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArg,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// A trace of the same work on one CPU (or on another kernel) to compare with
    #[arg(long, value_name = "TRACE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Replay a large trace too, for what fixing its bottleneck would gain; smaller ones always are
    #[arg(long)]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    /// Write to FILE [default: standard output, if that is no terminal]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GuideArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Do not ask: follow the recommendations [default where input or output is no terminal]
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Ask even where input is no terminal, and read the answers from it
    #[arg(long, conflicts_with = "yes")]
    pub(crate) ask: bool,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Replay a large trace too, for what fixing its bottleneck would gain; smaller ones always are
    #[arg(long)]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// The manual page of this rule [default: a list of all]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// Instead of a trace: the part of its time that one CPU would hold the lock if it were alone,
    /// such as 6% or 0.06
    #[arg(
        long, value_name = "PART",
        conflicts_with_all =
            ["trace", "input", "metrics", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"]
    )]
    pub(crate) demand: Option<String>,
    /// Instead of a trace: locks with rate, hold and wait times (semaphores of a file that
    /// diagnose --metrics reads)
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all =
            ["trace", "input", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"]
    )]
    pub(crate) metrics: Option<PathBuf>,
    /// The case to predict, where FILE of --metrics holds several
    #[arg(long, value_name = "NAME", requires = "metrics")]
    pub(crate) case: Option<String>,
    /// The numbers of CPUs: 2,4,8 or 1-16
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Threads that use the lock, on any number of CPUs; they sleep while they wait [default: of a
    /// trace those seen, more where there are CPUs for more; else as many as CPUs, which spin]
    #[arg(
        long, value_name = "N", conflicts_with = "metrics",
        value_parser = clap::value_parser!(u32).range(1..=16384)
    )]
    pub(crate) threads: Option<u32>,
    /// With --demand: the lock lets N in at once, as a server of N threads does, or N locks of
    /// which any will do [default: 1]
    #[arg(
        long, value_name = "N",
        conflicts_with_all =
            ["trace", "input", "metrics", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"],
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub(crate) servers: Option<u32>,
    /// Draw the curve as SVG too
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
}
