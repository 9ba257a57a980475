//! The command lines of the verbs that compare recordings.

use crate::cli::{ColorName, EntriesArgs, OutputArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// In what recordings may differ and still be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllowName {
    Host,
    Kernel,
    Arch,
    Cpus,
    Events,
    /// All of these
    All,
}

/// How units of work are counted, and what may differ.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct CompareArgs {
    /// What counts as a unit of work: syscall:NAME, event:SYSTEM:NAME (a probe, or ftrace:print for
    /// a write to trace_marker in a trace.dat), or the number of units that each run does
    #[arg(long, value_name = "WORK")]
    pub(crate) work: Option<String>,
    /// Compare the recordings although they differ in these settings
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
    /// The earlier recording, before the change: a trace or a baseline file
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The later recording, after the change
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    /// Divide sums by this [default: work if units of work are counted, else s]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Comparison")]
    pub(crate) per: Option<PerName>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    /// For each number of CPUs: how long the work took (600, 600s, 2min, 35ms), how much work was
    /// done per second (120/s), a recording of the work, or a folder of recordings
    #[arg(value_name = "CPUS=VALUE", required = true, num_args = 2..)]
    pub(crate) steps: Vec<String>,
    /// Time of the serial set-up, which each of the times includes (37min); recordings need no
    /// --setup
    #[arg(long, value_name = "TIME")]
    pub(crate) setup: Option<String>,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BaselineArgs {
    /// The recordings: traces, or baseline files whose runs are copied
    #[arg(value_name = "TRACE", required_unless_present_any = ["show"])]
    pub(crate) traces: Vec<PathBuf>,
    /// Add the recordings to the baseline FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) add: Option<PathBuf>,
    /// Show what the baseline FILE contains
    #[arg(long, value_name = "FILE", conflicts_with_all = ["traces", "add"])]
    pub(crate) show: Option<PathBuf>,
    /// Hash the names of hosts, programs, files and probes
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    /// -o FILE is the baseline to make, or the file that --show writes to
    #[command(flatten)]
    pub(crate) form: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// The recordings to judge: traces, folders of traces, or baseline files
    #[arg(value_name = "TRACE", required_unless_present_any = ["pair", "self_test"])]
    pub(crate) traces: Vec<PathBuf>,
    /// The recordings to compare with: a baseline file
    #[arg(long, value_name = "FILE", required_unless_present = "pair")]
    pub(crate) baseline: Option<PathBuf>,
    /// Interleaved recordings, before and after alternating: A1 B1 A2 B2 ...
    #[arg(
        long, value_name = "TRACE", num_args = 2..,
        conflicts_with_all = ["baseline", "traces", "self_test"]
    )]
    pub(crate) pair: Vec<PathBuf>,
    /// Judge how the work scales, from equally many recordings on each of 1, 2, 4 ... CPUs; write
    /// N=TRACE if N threads did the work on the same CPUs
    #[arg(long)]
    pub(crate) scaling: bool,
    /// Check that the gate can fail: judge the baseline against itself, unchanged and slowed down
    #[arg(long, conflicts_with = "traces")]
    pub(crate) self_test: bool,
    /// Number of runs per side to assume in the self-test [default: as many as the baseline has]
    #[arg(long, value_name = "N", requires = "self_test")]
    pub(crate) runs: Option<usize>,
    /// The policy, which says what to fail on: a TOML file
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(crate) policy: Option<PathBuf>,
    /// The metric that decides, with default limits [default: contention.wait_per_work or
    /// contention.wait_per_s; with --scaling: the efficiency on the largest number of CPUs]
    #[arg(long, value_name = "METRIC", conflicts_with = "policy", help_heading = "Comparison")]
    pub(crate) metric: Option<String>,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Also write JUnit XML to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) junit: Option<PathBuf>,
    /// Also write SARIF 2.1.0 to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) sarif: Option<PathBuf>,
    /// Also write Markdown to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Annotate the GitHub run and its summary page [default: if GITHUB_ACTIONS is set]
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorName::Auto,
        help_heading = "Output")]
    pub(crate) github: ColorName,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The baselines: baseline files in order, or a folder of baseline files, ordered by name
    #[arg(value_name = "BASELINE", required = true)]
    pub(crate) baselines: Vec<PathBuf>,
    /// The metric [default: contention.wait_per_work or contention.wait_per_s]
    #[arg(long, value_name = "METRIC", help_heading = "Comparison")]
    pub(crate) metric: Option<String>,
    /// What counts as a unit of work [default: what each baseline says]
    #[arg(long, value_name = "WORK", help_heading = "Comparison")]
    pub(crate) work: Option<String>,
    /// Report a change point only if the median changes by at least this many per cent
    #[arg(long, value_name = "PCT", default_value_t = 3.0, help_heading = "Comparison")]
    pub(crate) least: f64,
    /// Exit with 1 if the last change for the worse was not reverted
    #[arg(long)]
    pub(crate) fail: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
