//! The command line as typed: the verbs and their arguments.

mod common;
mod cut;
mod export;
mod groups;
mod judge;
mod setup;
mod tables;

use crate::exit;
use crate::fleet::args::FleetArgs;
use crate::gate::args::{BaselineArgs, DiffArgs, GateArgs, HistoryArgs, ScaleArgs};
use crate::lab::args::LabArgs;
use crate::profile::args::ProfileArgs;
use crate::query::args::QueryArgs;
use crate::record::args::{RecordArgs, RunArgs};
use crate::whatif::args::WhatifArgs;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
pub(crate) use common::{
    ColorName, CommonArgs, EntriesArgs, FormatName, OutputArgs, SelectArgs, TableArgs, TraceArg,
};
pub(crate) use cut::CutArgs;
pub(crate) use export::{ExportArgs, ExportFormat};
pub(crate) use judge::{DiagnoseArgs, GuideArgs, PredictArgs, ReportArgs, RulesArgs};
pub(crate) use setup::{CompletionsArgs, DoctorArgs, ManArgs};
pub(crate) use tables::{
    CpusArgs, EventsArgs, GraphForm, InfoArgs, IrqsArgs, IrqsBy, LatencyArgs, LatencyByName,
    LedgerArgs, LedgerBy, LocksArgs, LocksBy, LocksEvents, LocksView, PathArgs, PhasesArgs,
    ProcsArgs, ProcsBy, SummaryArgs, SwitchesArgs, SwitchesBy, SyscallsArgs, SyscallsBy, WaitsArgs,
    WaitsByName,
};

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Says why a multiprocessor Linux system is slow, from a trace of its scheduler.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = after_help()
)]
pub(crate) struct Cli {
    /// Print without a pager, however long the answer is
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) no_pager: bool,
    /// Take options from this TOML file [default: $XDG_CONFIG_HOME/holdup/config.toml, if it
    /// exists]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parse these words. On a mistake or for help, print the message and end the program.
    pub(crate) fn of(words: Vec<OsString>) -> Cli {
        let holdup = Cli::command();
        let help = groups::template(&holdup);
        let typed = holdup.help_template(help).get_matches_from(words);
        Cli::from_arg_matches(&typed).unwrap_or_else(|error| error.exit())
    }
}

/// The command line, with habitual forms accepted: `holdup help VERB`, and `holdup FILE` for
/// `holdup diagnose FILE`.
pub(crate) fn typed(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let Some(first) = words.get(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-")) else {
        return words;
    };
    let is_verb = Cli::command().get_subcommands().any(|verb| verb.get_name() == first);
    if first == "help" {
        words.remove(1);
        words.truncate(2);
        words.push("--help".into());
    } else if !is_verb && Path::new(first).exists() {
        words.insert(1, "diagnose".into());
    }
    words
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
    /// Find the bottleneck: a verdict with its evidence, and what to do next
    #[command(after_help = "Example: holdup diagnose --fail-on thread-serialization perf.data")]
    Diagnose(DiagnoseArgs),
    /// An HTML page with the verdict, its evidence, a timeline and every table, in one file
    #[command(after_help = "Example: holdup report -o report.html perf.data\n\n\
        The same as holdup diagnose --format html. The file is self-contained.")]
    Report(ReportArgs),
    /// Record a command or the whole machine for diagnose, without perf
    #[command(after_help = "Examples: holdup record -- make -j8\n\
            \x20         holdup record --duration 10s -o slow.data")]
    Record(RecordArgs),
    /// Record, and diagnose the recording at once
    #[command(after_help = "Examples: holdup run -- make -j8\n\
            \x20         holdup run --duration 10s\n\
            \x20         holdup run --runs 5 -o before -- ./bench")]
    Run(RunArgs),
    /// Diagnose in steps: one question at a time, with its figures and a way back
    #[command(after_help = "Example: holdup guide perf.data\n\
            \x20        holdup guide --yes perf.data > walk.txt")]
    Guide(GuideArgs),
    /// The rules behind a verdict: what each does, its thresholds, what it needs
    #[command(after_help = "Example: holdup rules kernel-lock-conflict")]
    Rules(RulesArgs),
    /// An overview on one page: sar's figures, the ledger, and the top rows of each table
    #[command(after_help = "Example: holdup summary -n 5 perf.data")]
    Summary(SummaryArgs),
    /// What the trace file is, what it can prove, and what is wrong with it
    #[command(
        after_help = "Of a file larger than 16 MiB only the tables and some samples are read, \
        which takes milliseconds.\n\
        Figures that need counting are n/a then. --full reads and counts everything, as do options \
        that\n\
        select a part.\n\n\
        Example: holdup info perf.data\n\
        \x20        holdup info --full perf.data"
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
    /// Which code used the CPUs: samples by function, thread, file, line or CPU
    #[command(after_help = "perf record -e cpu-clock -F 999 -g -- ./prog records samples.\n\n\
            Examples: holdup profile --by line --comm prog perf.data\n\
            \x20         holdup profile --tree bottom-up --min-pct 2 perf.data\n\
            \x20         holdup profile --folded perf.data | flamegraph.pl > flames.svg\n\
            \x20         holdup profile --pprof cpu.pb.gz perf.data && pprof -http=: cpu.pb.gz")]
    Profile(ProfileArgs),
    /// Where each CPU's time went
    #[command(after_help = "Example: holdup cpus -C 0-3 perf.data")]
    Cpus(CpusArgs),
    /// How long threads waited for a CPU, longest delay first
    #[command(after_help = "Example: holdup switches -s avg_delay perf.data")]
    Switches(SwitchesArgs),
    /// How long threads run, wait for a CPU and sleep at a time: percentiles, by reason
    #[command(after_help = "Example: holdup latency --comm redis-server perf.data\n\
            \x20        holdup latency --by thread -p 4711 -s p99_ns perf.data\n\
            \x20        holdup latency --comm oned --unit syscall:epoll_wait perf.data")]
    Latency(LatencyArgs),
    /// Interrupts, softirqs and work items of the kernel
    #[command(after_help = "Example: holdup irqs --by total perf.data")]
    Irqs(IrqsArgs),
    /// Waits for kernel locks; with lockdep or /proc/lock_stat also who held them
    #[command(
        after_help = "TRACE may also be a dump of /proc/lock_stat; --before names an earlier dump \
            to subtract.\n\n\
            Examples: holdup locks --by caller perf.data\n\
            \x20         holdup locks --view aix --before lock_stat.1 lock_stat.2"
    )]
    Locks(LocksArgs),
    /// What threads waited for: locks, queues, files, disks; who held them; what it cost
    #[command(after_help = "Example: holdup waits --graph dot perf.data | dot -Tsvg -o waits.svg")]
    Waits(WaitsArgs),
    /// The phases of a trace (start-up, work, tail), each judged on its own
    #[command(after_help = "Example: holdup phases perf.data\n\
            \x20        holdup waits --phase 2 perf.data")]
    Phases(PhasesArgs),
    /// The critical path of a thread: its own work, and the threads it waited for
    #[command(after_help = "Example: holdup path --tid 4711 perf.data")]
    Path(PathArgs),
    /// What a change would gain: the trace replayed on a simulated machine
    #[command(
        after_help = "Without a change, everything that could be fixed is ranked by what the fix \
            would gain. Several\n\
            changes are replayed one by one, and finally all together.\n\n\
            Examples: holdup whatif perf.data\n\
            \x20         holdup whatif --cpus 2,4,8,16 perf.data\n\
            \x20         holdup whatif --lock 0x7f71238a0108=hold*0.5 --cpus 16 perf.data\n\
            \x20         holdup whatif --server dbserver=split:2 --syscall write*0.5 perf.data"
    )]
    Whatif(WhatifArgs),
    /// Every event in order, in the column of its context (program, system call, kernel, interrupt)
    #[command(
        after_help = "Each event's description is in the column of what was running: the program \
            (APPL), a\n\
            system call (SYSCALL), the scheduler, a kernel thread or the idle task (KERNEL), an \
            interrupt\n\
            or softirq (INTERRUPT). ELAPSED_SEC counts from the first event of the trace, DELTA_US \
            from the\n\
            line above. --pid, --tid and --comm show the events of these threads and the events \
            that\n\
            switch to them or wake them. --format json writes one object per line.\n\n\
            Example: holdup events --tid 1234 -e 'sched:*' -e 'sys_*' perf.data"
    )]
    Events(EventsArgs),
    /// All facts and tables as files (Parquet, Arrow, CSV, NDJSON), or a trace for the Perfetto UI
    #[command(
        after_help = "A folder gets one file per table; docs/tables.md describes the tables. \
            A FILE.json is a trace for\n\
            ui.perfetto.dev.\n\n\
            Examples: holdup export perf.data --to tables/\n\
            \x20         holdup export --format csv --tables runs,waits --to tables/ perf.data\n\
            \x20         holdup export perf.data --to trace.json"
    )]
    Export(ExportArgs),
    /// Write a part of a trace as a small file of the same format; --anonymize replaces names
    #[command(
        after_help = "The file also keeps the state at the beginning of the part: the latest \
            earlier records of each\n\
            CPU, thread and object.\n\n\
            Examples: holdup cut --time 10%,20% perf.data -o part.data\n\
            \x20         holdup cut --phase 2 perf.data -o work.data\n\
            \x20         holdup cut --anonymize perf.data -o nameless.data"
    )]
    Cut(CutArgs),
    /// Many traces at once: tables of what was found in each, and a ranking across all of them
    #[command(after_help = crate::fleet::args::AFTER_HELP)]
    Fleet(FleetArgs),
    /// The same work on 1, 2, 4 ... CPUs: speedup, serial part, and where the CPU time went
    #[command(after_help = "Examples: holdup scale 1=600 2=331 4=190\n\
            \x20         holdup scale --work syscall:write 1=one.data 2=two.data 4=four.data")]
    Scale(ScaleArgs),
    /// What a lock costs on other numbers of CPUs: a closed queueing model of a trace, figures or a
    /// demand
    #[command(
        after_help = "Without --cpus, a trace is predicted for 1, 2, 4 and 8 times its CPUs, and a \
            demand for 1 to 64\n\
            CPUs.\n\n\
            Examples: holdup predict --cpus 8,16,32 perf.data\n\
            \x20         holdup predict --demand 6% --cpus 16 --plot curve.svg\n\
            \x20         holdup predict --metrics figures.toml"
    )]
    Predict(PredictArgs),
    /// Make a baseline file from recordings, add recordings to it, or show what it holds
    #[command(after_help = "Example: holdup baseline --work syscall:write run-*.data -o \
            baseline.json\n\
            \x20        holdup baseline --show baseline.json")]
    Baseline(BaselineArgs),
    /// Compare two recordings: what changed most, in every table
    #[command(after_help = "Example: holdup diff --work syscall:write before.data after.data")]
    Diff(DiffArgs),
    /// A metric over a series of baselines (one per commit), and where it changed permanently
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
        after_help = "With several traces, tables have a first column named trace. Without a \
            query, holdup asks for\n\
            queries on a terminal and completes names.\n\n\
            Examples: holdup query --list\n\
            \x20         holdup query --examples\n\
            \x20         holdup query perf.data 'SELECT name, count(*) FROM syscalls GROUP BY \
            name'\n\
            \x20         holdup query a.data b.data 'SELECT trace, sum(duration_ns) FROM waits \
            GROUP BY trace'"
    )]
    Query(QueryArgs),
    /// Whether this host allows recording, what is missing, what that costs, and how to fix it
    #[command(
        after_help = "Nothing is changed. The context switches of all CPUs are recorded for a \
            moment and discarded.\n\
            The exit code is 0 if holdup record works here, and 3 if it does not.\n\n\
            Examples: holdup doctor\n\
            \x20         sudo holdup doctor -v"
    )]
    Doctor(DoctorArgs),
    /// Create bottlenecks of every class on this machine, and check the verdicts on them
    #[command(after_help = "Examples: holdup lab list\n\
            \x20         holdup lab run mutex --set hold=50us\n\
            \x20         holdup lab record server && holdup diagnose server.data\n\
            \x20         sudo holdup lab prove")]
    Lab(LabArgs),
    /// A script that lets a shell complete verbs and options
    #[command(after_help = "Examples: holdup completions bash > \
            ~/.local/share/bash-completion/completions/holdup\n\
            \x20         holdup completions zsh > ~/.zfunc/_holdup\n\
            \x20         holdup completions fish > ~/.config/fish/completions/holdup.fish")]
    Completions(CompletionsArgs),
    /// The manual pages: holdup's own page on standard output, or all pages into a folder
    #[command(after_help = "Examples: holdup man ~/.local/share/man/man1\n\
            \x20         holdup man | man -l -")]
    Man(ManArgs),
}
