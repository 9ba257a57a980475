//! The verbs that judge and predict.

use super::{CommonArgs, OutputArgs, SelectArgs, TableArgs, TraceArg};
use crate::profile::args::SymbolArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// A trace of the same work on one CPU (or under another kernel), to compare with
    #[arg(long, value_name = "TRACE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Exit with 1 if the verdict is one of these classes
    #[arg(long, value_name = "CLASS,..", value_delimiter = ',')]
    pub(crate) fail_on: Vec<String>,
    /// The output of perf stat -x or -j for the same work. Give it several times: for few busy CPUs
    /// and for many. CPUS= is the number of busy CPUs, if the output does not contain it. Without a
    /// TRACE, only the counts are judged
    #[arg(long, value_name = "[CPUS=]FILE")]
    pub(crate) counters: Vec<PathBuf>,
    /// Judge these figures (sar, utld, lockstat ... as TOML or JSON) instead of a trace
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all =
            ["trace", "input", "baseline", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"]
    )]
    pub(crate) metrics: Option<PathBuf>,
    /// The case to judge, if the FILE of --metrics holds several
    #[arg(long, value_name = "NAME", requires = "metrics")]
    pub(crate) case: Option<String>,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Show every rule with all its evidence, including the rules that do not fire
    #[arg(long)]
    pub(crate) explain: bool,
    /// Replay all of a large recording, and not only a window of it, to estimate how much faster
    /// the work would be without the bottleneck
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    /// For a recording that is not kept: the command that makes a recording to keep
    #[arg(skip)]
    pub(crate) unkept: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArg,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// A trace of the same work on one CPU (or under another kernel), to compare with
    #[arg(long, value_name = "TRACE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Replay all of a large recording, and not only a window of it, to estimate how much faster
    /// the work would be without the bottleneck
    #[arg(long)]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    /// Write to FILE [default: standard output, if it is not a terminal]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GuideArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Do not ask: follow the recommendations [default if input or output is not a terminal]
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Ask even if standard input is not a terminal, and read the answers from it
    #[arg(long, conflicts_with = "yes")]
    pub(crate) ask: bool,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Replay all of a large recording, and not only a window of it, to estimate how much faster
    /// the work would be without the bottleneck
    #[arg(long)]
    pub(crate) gain: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Show the manual page of this rule [default: list all rules]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// Instead of a trace: the demand for the lock, such as 6% or 0.06. It is the part of the time
    /// for which the lock would be held if a single CPU did all the work
    #[arg(
        long, value_name = "PART",
        conflicts_with_all =
            ["trace", "input", "metrics", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"]
    )]
    pub(crate) demand: Option<String>,
    /// Instead of a trace: locks with their rates, hold times and wait times (the semaphores of a
    /// file that diagnose --metrics reads)
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all =
            ["trace", "input", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"]
    )]
    pub(crate) metrics: Option<PathBuf>,
    /// The case to predict, if the FILE of --metrics holds several
    #[arg(long, value_name = "NAME", requires = "metrics")]
    pub(crate) case: Option<String>,
    /// The numbers of CPUs: 2,4,8 or 1-16
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Number of threads that use the lock, on any number of CPUs; these threads sleep while they
    /// wait [default: for a trace the number of threads seen, which grows with the CPUs; else one
    /// thread per CPU, and waiting threads spin]
    #[arg(
        long, value_name = "N", conflicts_with = "metrics",
        value_parser = clap::value_parser!(u32).range(1..=16384)
    )]
    pub(crate) threads: Option<u32>,
    /// With --demand: N threads can be served at the same time, as by a server of N threads or by N
    /// interchangeable locks [default: 1]
    #[arg(
        long, value_name = "N",
        conflicts_with_all =
            ["trace", "input", "metrics", "pid", "tid", "comm", "cgroup", "cpu", "time", "phase"],
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub(crate) servers: Option<u32>,
    /// Also draw the curve as SVG
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
}
