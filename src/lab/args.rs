//! The command line of the lab.

use crate::cli::OutputArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(subcommand_required = true, disable_help_subcommand = true)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// List the workloads: what each one does, the class it causes, its settings, and its fix
    List(ListArgs),
    /// Run a workload, and print its own counts as JSON
    #[command(after_help = "Examples: holdup lab run mutex\n\
            \x20         holdup lab run mutex --set hold=50us,workers=2cpus\n\
            \x20         holdup lab run mutex --fixed")]
    Run(RunArgs),
    /// Record a workload, and write its own counts to a file next to the recording
    #[command(after_help = "Example: holdup lab record server && holdup diagnose server.data")]
    Record(RecordArgs),
    /// Cause every class that this host allows, and compare the verdicts with the known causes
    #[command(after_help = "The exit code is 1 if a verdict is wrong. Other load on the machine \
            makes figures and\n\
            verdicts worse.\n\n\
            Examples: holdup lab prove\n\
            \x20         holdup lab prove --only mutex,server -j\n\
            \x20         holdup lab prove --random 50 --seed 7")]
    Prove(ProveArgs),
    /// One process of a workload
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A workload and its settings.
#[derive(Debug, Args)]
pub(crate) struct OfWorkload {
    /// The workload; holdup lab list lists all of them
    pub(crate) name: String,
    /// Settings: hold=50us, locks=2, workers=2cpus
    #[arg(long, value_name = "KEY=VALUE,..", value_delimiter = ',')]
    pub(crate) set: Vec<String>,
    /// Run the fixed variant, which does the same work without the bottleneck; --set then changes
    /// the fixed variant
    #[arg(long)]
    pub(crate) fixed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) of: OfWorkload,
    /// Write the counts to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) of: OfWorkload,
    /// The recording; the workload's own counts are written next to it, to FILE.truth.json
    /// [default: NAME.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Compress the recording with zstd
    #[arg(short = 'z', long)]
    pub(crate) compress: bool,
    /// Print nothing about the recording when it ends
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    /// Only these workloads
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Also run workloads that change a setting of the host while they run: the CPUs that the
    /// kernel's workers may use
    #[arg(long)]
    pub(crate) change_host: bool,
    /// Do this many short runs of random strength instead, to see where the border between healthy
    /// and not healthy lies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) random: Option<u32>,
    /// Seed of the random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "random")]
    pub(crate) seed: u64,
    /// Keep the recordings and the counts in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    pub(crate) name: String,
    pub(crate) index: usize,
    #[arg(long)]
    pub(crate) folder: PathBuf,
    #[arg(long)]
    pub(crate) pace: u64,
    #[arg(long)]
    pub(crate) set: Vec<String>,
}
