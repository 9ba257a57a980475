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
    /// The workloads: what each does, which class it makes, what can be set, what fixes it
    List(ListArgs),
    /// Run a workload; what it counted itself is printed as JSON
    #[command(after_help = "Examples: holdup lab run mutex\n\
            \x20         holdup lab run mutex --set hold=50us,workers=2cpus\n\
            \x20         holdup lab run mutex --fixed")]
    Run(RunArgs),
    /// Record a workload, and keep what it counted beside the recording
    #[command(after_help = "Example: holdup lab record server && holdup diagnose server.data")]
    Record(RecordArgs),
    /// Make every class that this host allows, and hold the verdicts against what was made
    #[command(after_help = "The exit code is 1 if a verdict is wrong. Other work on the machine \
            makes figures and verdicts\nworse.\n\n\
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
    /// The workload; holdup lab list has them
    pub(crate) name: String,
    /// Settings: hold=50us, locks=2, workers=2cpus
    #[arg(long, value_name = "KEY=VALUE,..", value_delimiter = ',')]
    pub(crate) set: Vec<String>,
    /// Its twin without the trouble; --set is applied to that
    #[arg(long)]
    pub(crate) fixed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) of: OfWorkload,
    /// Write what was counted to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) of: OfWorkload,
    /// The recording; what was counted is written beside it, to FILE.truth.json
    /// [default: NAME.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Compress the recording with zstd
    #[arg(short = 'z', long)]
    pub(crate) compress: bool,
    /// Say nothing of the recording when it ends
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    /// Only these workloads
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Also what changes settings of the host while it runs: where the kernel's workers run
    #[arg(long)]
    pub(crate) change_host: bool,
    /// So many short runs of random strength instead, for a look at where the border lies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) random: Option<u32>,
    /// Where the random numbers start
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "random")]
    pub(crate) seed: u64,
    /// Keep the recordings and what was counted in this folder
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
