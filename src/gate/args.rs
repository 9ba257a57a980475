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
    /// What a unit of work is: syscall:NAME, event:SYSTEM:NAME (a probe; ftrace:print, a write to
    /// trace_marker in a trace.dat), or the number of units each run does
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
pub(crate) struct ScaleArgs {
    /// The work on so many CPUs: how long it took (600, 600s, 2min, 35ms), how much of it was done
    /// a second (120/s), or a recording of it, or a folder of recordings
    #[arg(value_name = "CPUS=VALUE", required = true, num_args = 2..)]
    pub(crate) steps: Vec<String>,
    /// Serial set-up that is in each of the times (37min); recordings tell it themselves
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
    /// The recordings: traces, or baseline files whose runs are taken over
    #[arg(value_name = "TRACE", required_unless_present_any = ["show"])]
    pub(crate) traces: Vec<PathBuf>,
    /// Add the recordings to the baseline FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) add: Option<PathBuf>,
    /// Show what the baseline FILE holds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["traces", "add"])]
    pub(crate) show: Option<PathBuf>,
    /// Hash the names of hosts, programs, files and probes
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    /// -o FILE is the baseline to be made, or what --show writes to
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
    /// Interleaved recordings, before and after in turn: A1 B1 A2 B2 ...
    #[arg(
        long, value_name = "TRACE", num_args = 2..,
        conflicts_with_all = ["baseline", "traces", "self_test"]
    )]
    pub(crate) pair: Vec<PathBuf>,
    /// Judge how the work scales: recordings of it on 1, 2, 4 ... CPUs, each as often; write
    /// N=TRACE where N threads did it on the same CPUs
    #[arg(long)]
    pub(crate) scaling: bool,
    /// Show that the gate can fail: judge the baseline against itself, as it is and slowed
    #[arg(long, conflicts_with = "traces")]
    pub(crate) self_test: bool,
    /// Runs a side to assume in the self-test [default: as many as the baseline has]
    #[arg(long, value_name = "N", requires = "self_test")]
    pub(crate) runs: Option<usize>,
    /// What to fail on: a TOML file
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(crate) policy: Option<PathBuf>,
    /// The metric that decides, by default limits [default: contention.wait_per_work or _per_s;
    /// with --scaling the efficiency on most CPUs]
    #[arg(long, value_name = "METRIC", conflicts_with = "policy", help_heading = "Comparison")]
    pub(crate) metric: Option<String>,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Write JUnit XML to FILE too
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) junit: Option<PathBuf>,
    /// Write SARIF 2.1.0 to FILE too
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write Markdown to FILE too
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Annotate the run and its summary page [default: where GITHUB_ACTIONS is set]
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorName::Auto,
        help_heading = "Output")]
    pub(crate) github: ColorName,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The baselines: a folder of baseline files in order of their names, or the files in order
    #[arg(value_name = "BASELINE", required = true)]
    pub(crate) baselines: Vec<PathBuf>,
    /// The metric [default: contention.wait_per_work or _per_s]
    #[arg(long, value_name = "METRIC", help_heading = "Comparison")]
    pub(crate) metric: Option<String>,
    /// What a unit of work is [default: as each baseline has it]
    #[arg(long, value_name = "WORK", help_heading = "Comparison")]
    pub(crate) work: Option<String>,
    /// A change point needs a change of the median by this many per cent
    #[arg(long, value_name = "PCT", default_value_t = 3.0, help_heading = "Comparison")]
    pub(crate) least: f64,
    /// Exit with 1 if the last change for the worse has not been taken back
    #[arg(long)]
    pub(crate) fail: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
