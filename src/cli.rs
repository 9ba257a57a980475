//! The command line as typed.

use crate::exit;
use crate::fleet::args::FleetArgs;
use crate::gate::args::{BaselineArgs, DiffArgs, GateArgs, HistoryArgs, ScaleArgs};
use crate::query::args::QueryArgs;
use crate::record::args::{RecordArgs, RunArgs};
use crate::whatif::args::WhatifArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// Names what holds a multiprocessor Linux system up, from a trace it already has.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = after_help()
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn after_help() -> String {
    format!(
        "TRACE is what perf record, trace-cmd record or ftrace wrote; - is standard input.\n\n\
         Example: holdup diagnose TRACE\n\n\
         {}",
        exit::list()
    )
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What holds the system up: a verdict with its evidence, and what to do next
    #[command(after_help = "Example: holdup diagnose --fail-on thread-serialization perf.data")]
    Diagnose(DiagnoseArgs),
    /// A page for a browser: the verdict, its evidence, a timeline and every table, in one file
    #[command(after_help = "Example: holdup report -o report.html perf.data\n\n\
        The same as holdup diagnose --format html. The file needs nothing beside it.")]
    Report(ReportArgs),
    /// Record what diagnose needs, of a command or of the machine, without perf
    #[command(after_help = "Examples: holdup record -- make -j8\n\
            \x20         holdup record --duration 10s -o slow.data")]
    Record(RecordArgs),
    /// Record, and say at once what holds the system up
    #[command(after_help = "Examples: holdup run -- make -j8\n\
            \x20         holdup run --duration 10s\n\
            \x20         holdup run --runs 5 -o before -- ./bench")]
    Run(RunArgs),
    /// The same questions one after the other, with the figures at each fork and a way back
    #[command(after_help = "Example: holdup guide perf.data\n\
            \x20        holdup guide --yes perf.data > walk.txt")]
    Guide(GuideArgs),
    /// The rules behind a verdict: what each does, its thresholds, what it needs
    #[command(after_help = "Example: holdup rules kernel-lock-conflict")]
    Rules(RulesArgs),
    /// All tables on a page: sar's first screen, the ledger, the heaviest of each kind
    #[command(after_help = "Example: holdup summary -n 5 perf.data")]
    Summary(SummaryArgs),
    /// What the file is, what it can prove, what is wrong with it
    #[command(
        after_help = "A file of more than 16 MiB is looked at in its tables and in samples, \
        which takes milliseconds.\nWhat takes counting is n/a then; --full counts. Options that \
        select a part read all too.\n\n\
        Example: holdup info perf.data\n         holdup info --full perf.data"
    )]
    Info(InfoArgs),
    /// Where every CPU-second of the machine went, as a tree that adds up
    #[command(after_help = "Example: holdup ledger --time 10%,90% perf.data")]
    Ledger(LedgerArgs),
    /// Time and errors of system calls
    #[command(
        after_help = "Example: holdup syscalls --by process --comm postgres -s max_ns perf.data"
    )]
    Syscalls(SyscallsArgs),
    /// CPU time of processes and threads
    #[command(after_help = "Example: holdup procs --by command -n 10 perf.data")]
    Procs(ProcsArgs),
    /// Where each CPU's time went
    #[command(after_help = "Example: holdup cpus -C 0-3 perf.data")]
    Cpus(CpusArgs),
    /// How long threads waited for a CPU, longest delay first
    #[command(after_help = "Example: holdup switches -s avg_delay perf.data")]
    Switches(SwitchesArgs),
    /// Interrupts, softirqs and kernel work
    #[command(after_help = "Example: holdup irqs --by total perf.data")]
    Irqs(IrqsArgs),
    /// Waits for kernel locks; with lockdep or /proc/lock_stat also who held them
    #[command(
        after_help = "TRACE may also be a dump of /proc/lock_stat, with --before one half of a \
            pair.\n\n\
                      Examples: holdup locks --by caller perf.data\n          \
                      holdup locks --view aix --before lock_stat.1 lock_stat.2"
    )]
    Locks(LocksArgs),
    /// What threads waited for: locks, queues, files, disks; who held them; what it cost
    #[command(after_help = "Example: holdup waits --graph dot perf.data | dot -Tsvg -o waits.svg")]
    Waits(WaitsArgs),
    /// The pieces a trace falls into: start-up, work, tail; each judged alone
    #[command(after_help = "Example: holdup phases perf.data\n\
            \x20        holdup waits --phase 2 perf.data")]
    Phases(PhasesArgs),
    /// The critical path of a thread: its work, and whom it waited for
    #[command(after_help = "Example: holdup path --tid 4711 perf.data")]
    Path(PathArgs),
    /// What a change would make of the work: the trace replayed on a simulated machine
    #[command(
        after_help = "Without any change, all that could be fixed is ranked by what that is \
            worth. Several changes are\n\
            replayed one by one, and at last all together.\n\n\
            Examples: holdup whatif perf.data\n\
            \x20         holdup whatif --cpus 2,4,8,16 perf.data\n\
            \x20         holdup whatif --lock 0x7f71238a0108=hold*0.5 --cpus 16 perf.data\n\
            \x20         holdup whatif --server dbserver=split:2 --syscall write*0.5 perf.data"
    )]
    Whatif(WhatifArgs),
    /// Every event in order, in the column of the context it happens in
    #[command(
        after_help = "Each event's description stands in the column of what was running: the \
            program (APPL), a\n\
                      system call (SYSCALL), the scheduler, a kernel thread or the idle task \
                      (KERNEL), an interrupt\n\
                      or softirq (INTERRUPT). ELAPSED_SEC counts from the first event of the \
                      trace, DELTA_US from the\n\
                      line above. --pid, --tid and --comm show what these threads do and what \
                      switches to or wakes\n\
                      them. --format json writes one object per line.\n\n\
                      Example: holdup events --tid 1234 -e 'sched:*' -e 'sys_*' perf.data"
    )]
    Events(EventsArgs),
    /// Every fact and table as files: Parquet, Arrow, CSV, NDJSON; a trace for the Perfetto UI
    #[command(after_help = "A folder gets a file for each table, docs/tables.md describes them. \
            A FILE.json is a trace for\nui.perfetto.dev.\n\n\
            Examples: holdup export perf.data --to tables/\n\
            \x20         holdup export --format csv --tables runs,waits --to tables/ perf.data\n\
            \x20         holdup export perf.data --to trace.json")]
    Export(ExportArgs),
    /// Many traces at once: what is found in each as tables of all, and a ranking across them
    #[command(after_help = crate::fleet::args::AFTER_HELP)]
    Fleet(FleetArgs),
    /// The same work on 1, 2, 4 ... CPUs: speedup, what stays serial, where the CPUs went
    #[command(after_help = "Examples: holdup scale 1=600 2=331 4=190\n\
            \x20         holdup scale --work syscall:write 1=one.data 2=two.data 4=four.data")]
    Scale(ScaleArgs),
    /// What a lock costs on other numbers of CPUs: the closed model of a trace, figures or a demand
    #[command(
        after_help = "Without --cpus a trace is predicted for its CPUs times 1, 2, 4 and 8, \
            a demand for 1 to 64 CPUs.\n\n\
            Examples: holdup predict --cpus 8,16,32 perf.data\n\
            \x20         holdup predict --demand 6% --cpus 16 --plot curve.svg\n\
            \x20         holdup predict --metrics figures.toml"
    )]
    Predict(PredictArgs),
    /// Make a baseline file of recordings, add to it, show what it holds
    #[command(after_help = "Example: holdup baseline --work syscall:write run-*.data -o \
            baseline.json\n\
            \x20        holdup baseline --show baseline.json")]
    Baseline(BaselineArgs),
    /// Two recordings beside each other: what changed most, in every table
    #[command(after_help = "Example: holdup diff --work syscall:write before.data after.data")]
    Diff(DiffArgs),
    /// The course of a metric over baselines, one a commit, and where it changed for good
    #[command(after_help = "Example: holdup history --metric lock.wait_per_s baselines/")]
    History(HistoryArgs),
    /// Judge recordings against a baseline, for CI: pass, regressed, or inconclusive
    #[command(after_help = "Examples: holdup gate --baseline baseline.json --policy holdup.toml \
            run-*.data\n\
            \x20         holdup gate --work syscall:write --pair a1.data b1.data a2.data b2.data\n\
            \x20         holdup gate --baseline baseline.json --self-test")]
    Gate(GateArgs),
    /// SQL over the tables of traces, or of folders that holdup export wrote
    #[command(
        after_help = "Several traces at once get a column trace in front. Without a query a \
            terminal asks for queries, with\ncompletion of names.\n\n\
            Examples: holdup query --list\n\
            \x20         holdup query --examples\n\
            \x20         holdup query perf.data 'SELECT name, count(*) FROM syscalls GROUP BY \
            name'\n\
            \x20         holdup query a.data b.data 'SELECT trace, sum(duration_ns) FROM waits \
            GROUP BY trace'"
    )]
    Query(QueryArgs),
    /// Whether this host lets holdup record, what is missing, what that costs, and the way out
    #[command(
        after_help = "Nothing is changed; the switches of all CPUs are recorded for a moment, \
            and thrown away.\nThe exit code is 0 if holdup record works here, and 3 if it does \
            not.\n\n\
            Examples: holdup doctor\n          sudo holdup doctor -v"
    )]
    Doctor(DoctorArgs),
    /// A script that lets a shell complete verbs and options
    #[command(after_help = "Examples: holdup completions bash > \
            ~/.local/share/bash-completion/completions/holdup\n\
            \x20         holdup completions zsh > ~/.zfunc/_holdup\n\
            \x20         holdup completions fish > ~/.config/fish/completions/holdup.fish")]
    Completions(CompletionsArgs),
    /// The manual pages: that of holdup on standard output, or all into a folder
    #[command(after_help = "Examples: holdup man ~/.local/share/man/man1\n\
            \x20         holdup man | man -l -")]
    Man(ManArgs),
}

/// Which trace.
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArg {
    /// The trace, - for standard input [default: perf.data, then trace.dat, in the current
    /// directory]
    #[arg(value_name = "TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// The trace, as perf spells it
    #[arg(short, long, value_name = "FILE", conflicts_with = "trace")]
    pub(crate) input: Option<PathBuf>,
}

impl TraceArg {
    /// Whether none is named.
    pub(crate) fn is_default(&self) -> bool {
        self.trace.is_none() && self.input.is_none()
    }
}

/// Which part of it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectArgs {
    /// Only rows of these processes
    #[arg(short, long, value_name = "PID,..", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Only rows of these threads
    #[arg(long, value_name = "TID,..", value_delimiter = ',')]
    pub(crate) tid: Vec<u32>,
    /// Only rows of threads with these names
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(crate) comm: Vec<String>,
    /// Only these CPUs: 0-3,5
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,
    /// Only this time: seconds as perf prints them (A,B with either left out) or 10%,20%
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Only this phase, by its number in holdup phases
    #[arg(long, value_name = "N", conflicts_with = "time")]
    pub(crate) phase: Option<usize>,
}

/// How the answer is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Form of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::Text)]
    pub(crate) format: FormatName,
    /// JSON, as perf spells it
    #[arg(
        short = 'j', long = "json", overrides_with = "json",
        conflicts_with_all = ["format", "separator"]
    )]
    pub(crate) json: bool,
    /// CSV with this separator, as perf spells it
    #[arg(
        short = 'x',
        long = "field-separator",
        value_name = "SEP",
        conflicts_with = "format",
        allow_hyphen_values = true
    )]
    pub(crate) separator: Option<String>,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorName::Auto)]
    pub(crate) color: ColorName,
    /// More columns and remarks
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The tables only: no head line, no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// How many rows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct EntriesArgs {
    /// Rows per table, 0 for all [default: text 20 (summary, fleet 10), else all]
    #[arg(short = 'n', visible_short_alias = 'E', long, value_name = "N")]
    pub(crate) entries: Option<usize>,
}

/// In which order.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct SortArgs {
    /// Order by the column with this JSON key; several separated by commas
    #[arg(short, long, visible_short_alias = 'k', visible_alias = "key", value_name = "KEY,..")]
    pub(crate) sort: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    Text,
    Json,
    Csv,
    Md,
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorName {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyscallsBy {
    System,
    Process,
    Thread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProcsBy {
    Command,
    Process,
    Thread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitsByName {
    Object,
    Kind,
    Thread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphForm {
    Text,
    Dot,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IrqsBy {
    Total,
    Cpu,
}

/// What every verb takes.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArg,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What every verb with one table takes.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
    #[command(flatten)]
    pub(crate) sort: SortArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SummaryArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(flatten)]
    pub(crate) entries: EntriesArgs,
    /// sar's figures for every CPU too
    #[arg(long)]
    pub(crate) per_cpu: bool,
}

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
            ["trace", "input", "baseline", "pid", "tid", "comm", "cpu", "time", "phase"]
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
    /// Replay a large trace too, for what mending its hold-up would gain; smaller ones always are
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) gain: bool,
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
    /// Replay a large trace too, for what mending its hold-up would gain; smaller ones always are
    #[arg(long)]
    pub(crate) gain: bool,
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
    /// Replay a large trace too, for what mending its hold-up would gain; smaller ones always are
    #[arg(long)]
    pub(crate) gain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Parquet,
    Arrow,
    Csv,
    Ndjson,
    /// Chrome's JSON, for ui.perfetto.dev: a file
    Chrome,
    /// LAMI 1.0, for Trace Compass
    Lami,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) trace: TraceArg,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// The folder to write into, made if need be; or a FILE.json. What has the same names is
    /// replaced
    #[arg(long, value_name = "DIR|FILE", help_heading = "Output")]
    pub(crate) to: PathBuf,
    /// Form of the tables [default: parquet; of a FILE.json chrome]
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<ExportFormat>,
    /// Only these tables [default: all but path, which keeps every sleep in memory]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help_heading = "Output")]
    pub(crate) tables: Vec<String>,
    /// Take thresholds of rules from this TOML file; holdup rules lists them
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// No progress, no list of what was written
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
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
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the page of each verb too, into this folder
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Read all of a large file, to count events and losses [default: its tables and samples]
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SyscallsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What to add up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = SyscallsBy::System)]
    pub(crate) by: SyscallsBy,
}

#[derive(Debug, Args)]
pub(crate) struct ProcsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What to add up
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksBy {
    /// One lock at an address
    Lock,
    /// Locks of one class or variable
    Class,
    /// The code that asked for the lock
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
    /// AIX lockstat
    Aix,
    /// perf lock contention, perf lock report
    Perf,
    /// illumos lockstat
    Solaris,
    /// /proc/lock_stat
    #[value(name = "lock_stat")]
    LockStat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksEvents {
    /// Those that show most: lockdep for locks and classes, contention for the rest
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
    /// What to add up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = LocksBy::Lock)]
    pub(crate) by: LocksBy,
    /// Show text in the columns of another tool
    #[arg(long, value_enum, value_name = "TOOL", default_value_t = LocksView::Holdup)]
    pub(crate) view: LocksView,
    /// Only locks of these types, as perf names them; rwsem is rwsem:R and rwsem:W
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
    /// Which events to take where the trace has both kinds
    #[arg(long, value_enum, value_name = "KIND", default_value_t = LocksEvents::Auto)]
    pub(crate) events: LocksEvents,
    /// Symbols of the recorded kernel: a copy of its /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub(crate) kallsyms: Option<PathBuf>,
    /// With a dump of /proc/lock_stat: the dump taken before it
    #[arg(long, value_name = "FILE")]
    pub(crate) before: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct WaitsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What to add up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = WaitsByName::Object)]
    pub(crate) by: WaitsByName,
    /// Who waits for whom, knots and root causes instead of the table
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "by")]
    pub(crate) graph: Option<GraphForm>,
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
pub(crate) struct PredictArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// Instead of a trace: the part of its time that one CPU would hold the lock if it were alone,
    /// such as 6% or 0.06
    #[arg(
        long, value_name = "PART",
        conflicts_with_all =
            ["trace", "input", "metrics", "pid", "tid", "comm", "cpu", "time", "phase"]
    )]
    pub(crate) demand: Option<String>,
    /// Instead of a trace: locks with rate, hold and wait times (semaphores of a file that
    /// diagnose --metrics reads)
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = ["trace", "input", "pid", "tid", "comm", "cpu", "time", "phase"]
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
            ["trace", "input", "metrics", "pid", "tid", "comm", "cpu", "time", "phase"],
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub(crate) servers: Option<u32>,
    /// Draw the curve as SVG too
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Only events of this name, with or without system; * and ? stand for any characters
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = "Selection")]
    pub(crate) event: Vec<String>,
    /// Stop after N lines, 0 for all [default: all]
    #[arg(short = 'n', visible_short_alias = 'E', long, value_name = "N", help_heading = "Output")]
    pub(crate) entries: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct IrqsArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    /// What to add up
    #[arg(long, value_enum, value_name = "GROUP", default_value_t = IrqsBy::Cpu)]
    pub(crate) by: IrqsBy,
}
