//! The verbs that show one table each, and the verbs that show all tables.

use super::{CommonArgs, EntriesArgs, TableArgs};
use crate::profile::args::SymbolArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SummaryArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
    /// Also show sar's figures for every CPU
    #[arg(long)]
    pub(crate) per_cpu: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Read all of a large file, to count events and losses [default: only its tables and samples]
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// How to divide the machine's time
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = LedgerBy::Leaf)]
    pub(crate) by: LedgerBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LedgerBy {
    /// By the activities on which the time was spent
    Leaf,
    /// By service or container: the CPU time it used and wanted, and which groups took the rest
    Cgroup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyscallsBy {
    System,
    Process,
    Thread,
    /// The control group: a service or a container
    Cgroup,
    /// The function of the program that makes the call; needs call chains (holdup record -g)
    Caller,
}

#[derive(Debug, Args)]
pub(crate) struct SyscallsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What each row sums up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = SyscallsBy::System)]
    pub(crate) by: SyscallsBy,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProcsBy {
    Command,
    Process,
    Thread,
    /// The control group: a service or a container
    Cgroup,
}

#[derive(Debug, Args)]
pub(crate) struct ProcsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What each row sums up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = ProcsBy::Thread)]
    pub(crate) by: ProcsBy,
}

#[derive(Debug, Args)]
pub(crate) struct CpusArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SwitchesArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What each row sums up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = SwitchesBy::Thread)]
    pub(crate) by: SwitchesBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SwitchesBy {
    Thread,
    /// The control group: a service or a container
    Cgroup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IrqsBy {
    Total,
    Cpu,
}

#[derive(Debug, Args)]
pub(crate) struct IrqsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What each row sums up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = IrqsBy::Cpu)]
    pub(crate) by: IrqsBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksBy {
    /// One lock at an address
    Lock,
    /// Locks of one class or variable
    Class,
    /// The code that requested the lock
    Caller,
    /// Mutex, rwsem:R, spinlock ...
    Type,
    /// The thread that waited
    Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksView {
    /// holdup's own table
    Holdup,
    /// The columns of AIX lockstat
    Aix,
    /// The columns of perf lock contention and perf lock report
    Perf,
    /// The columns of illumos lockstat
    Solaris,
    /// The columns of /proc/lock_stat
    #[value(name = "lock_stat")]
    LockStat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksEvents {
    /// The events that show most: lockdep for locks and classes, contention for the rest
    Auto,
    /// lock:contention_begin and contention_end
    Contention,
    /// lock:lock_acquire, lock_contended, lock_acquired and lock_release
    Lockdep,
}

#[derive(Debug, Args)]
pub(crate) struct LocksArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What each row sums up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = LocksBy::Lock)]
    pub(crate) by: LocksBy,
    /// Show text output in the columns of another tool
    #[arg(long, value_enum, value_name = "TOOL", default_value_t = LocksView::Holdup)]
    pub(crate) view: LocksView,
    /// Only locks of these types, as perf names them; rwsem stands for rwsem:R and rwsem:W
    #[arg(
        short = 'Y',
        long = "type",
        visible_alias = "type-filter",
        value_name = "TYPE,..",
        value_delimiter = ',',
        help_heading = "Selection"
    )]
    pub(crate) types: Vec<String>,
    /// Only these locks: addresses (0x...), classes or variables
    #[arg(
        short = 'L',
        long = "lock-addr",
        visible_alias = "lock-filter",
        value_name = "LOCK,..",
        value_delimiter = ',',
        help_heading = "Selection"
    )]
    pub(crate) locks: Vec<String>,
    /// Show histograms of wait times (and, with lockdep, of hold times) by powers of two instead of
    /// the table [default: for 5 locks in text, see -n]
    #[arg(long, conflicts_with_all = ["view", "sort", "before"])]
    pub(crate) hist: bool,
    /// Which events to use if the trace has both kinds
    #[arg(long, value_enum, value_name = "KIND", default_value_t = LocksEvents::Auto)]
    pub(crate) events: LocksEvents,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    /// If TRACE is a dump of /proc/lock_stat: an earlier dump, whose counts are subtracted
    #[arg(long, value_name = "FILE")]
    pub(crate) before: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitsByName {
    Object,
    Kind,
    Thread,
    /// The control group: a service or a container
    Cgroup,
    /// The function of the program that went to sleep; needs call chains (holdup record -g)
    Caller,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphForm {
    Text,
    Dot,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct WaitsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What each row sums up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = WaitsByName::Object)]
    pub(crate) by: WaitsByName,
    /// Show who waits for whom, with wait cycles and root causes, instead of the table
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "by")]
    pub(crate) graph: Option<GraphForm>,
    /// Show histograms of wait times by powers of two instead of the table [default: for 5 objects
    /// in text, see -n]
    #[arg(long, conflicts_with_all = ["graph", "sort"])]
    pub(crate) hist: bool,
    /// Print the time asleep of each whole call chain in nanoseconds, for flame graphs, instead of
    /// a table
    #[arg(
        long,
        conflicts_with_all = ["by", "graph", "hist"],
        conflicts_with_all = ["format", "json", "separator", "entries", "sort"],
        help_heading = "Output"
    )]
    pub(crate) folded: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LatencyByName {
    /// All threads of one name, such as the threads of a service
    Command,
    /// All threads of a process
    Process,
    Thread,
}

#[derive(Debug, Args)]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What the times of a row are combined from
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = LatencyByName::Command)]
    pub(crate) by: LatencyByName,
    /// The event that ends a unit of work: syscall:NAME or event:SYSTEM:NAME, as with diff and
    /// gate. The table then also shows how long units take, and what each row takes per unit
    #[arg(long, value_name = "EVENT")]
    pub(crate) unit: Option<String>,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PhasesArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// Take thresholds from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Only events of this name, with or without the system; * stands for any characters, ? for one
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = "Selection")]
    pub(crate) event: Vec<String>,
    /// Stop after N lines, 0 for all [default: all]
    #[arg(short = 'n', visible_short_alias = 'E', long, value_name = "N", help_heading = "Output")]
    pub(crate) entries: Option<u64>,
    /// Show the call chain of each event below the event
    #[arg(short = 'g', long = "stacks", help_heading = "Output")]
    pub(crate) stacks: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}
