//! The command line as typed: the verbs, and what they are called with.

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

/// Says why a multiprocessor Linux system is slow, from a trace it already has.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = after_help()
)]
pub(crate) struct Cli {
    /// Print to the terminal itself, however long the answer is
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) no_pager: bool,
    /// Take options from this TOML file [default: $XDG_CONFIG_HOME/holdup/config.toml, if there]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What these words say. Ends the program with help, or with what is wrong with them.
    pub(crate) fn of(words: Vec<OsString>) -> Cli {
        let holdup = Cli::command();
        let help = groups::template(&holdup);
        let typed = holdup.help_template(help).get_matches_from(words);
        Cli::from_arg_matches(&typed).unwrap_or_else(|error| error.exit())
    }
}

/// The command line with what people type by habit: `holdup help VERB`, and `holdup FILE` for
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
    /// How long threads run, wait for a CPU and sleep at a time: percentiles, by what for
    #[command(after_help = "Example: holdup latency --comm redis-server perf.data\n\
            \x20        holdup latency --by thread -p 4711 -s p99_ns perf.data\n\
            \x20        holdup latency --comm oned --unit syscall:epoll_wait perf.data")]
    Latency(LatencyArgs),
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
    /// A part of a trace as a small file of the same format; with other names for names, if asked
    #[command(after_help = "What is known at the beginning of the part stays known: the latest \
            records of each CPU, thread and\nobject before it stay in the file.\n\n\
            Examples: holdup cut --time 10%,20% perf.data -o part.data\n\
            \x20         holdup cut --phase 2 perf.data -o work.data\n\
            \x20         holdup cut --anonymize perf.data -o nameless.data")]
    Cut(CutArgs),
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
    /// Trouble made on purpose: every class, on this machine, and whether the verdicts are right
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
    /// The manual pages: that of holdup on standard output, or all into a folder
    #[command(after_help = "Examples: holdup man ~/.local/share/man/man1\n\
            \x20         holdup man | man -l -")]
    Man(ManArgs),
}
