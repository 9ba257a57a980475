//! The verbs: each reads the trace once and says which tables it wants.

use crate::choice::{self, DIAGNOSE, LEDGER, PROCS, no_path};
use crate::cli::{
    Command, CommonArgs, GraphForm, InfoArgs, IrqsBy, LatencyArgs, LatencyByName, LedgerArgs,
    LedgerBy, PathArgs, PhasesArgs, ProcsBy, SwitchesBy, SyscallsArgs, SyscallsBy, TableArgs,
    WaitsArgs, WaitsByName,
};
use crate::code;
use crate::config::Config;
use crate::exit::{self, usage};
use crate::profile::args::SymbolArgs;
use crate::unit::Ends;
use anyhow::Result;
use holdup_attribution::{
    Attribution, LatencyBy, NoPath, Path, Thresholds, WaitsBy, analyze, in_words, latencies,
};
use holdup_diagnose::phases::{PhaseRow, judged_phases};
use holdup_passes::{Analysis, Detail, Group};
use holdup_profile::{Code, KnowsCode};
use holdup_render::{
    Body, BusyCourse, Format, GraphBody, Info, PathBody, PathHead, Report, Section, Table,
    TraceHead, schema, text,
};
use holdup_trace::{Capabilities, QualityEntry, Reader, Severity, Tid};

/// Rows per table of text.
pub(crate) const ENTRIES: usize = 20;
/// Rows per table of a summary's text: it should stay within two screens.
const SUMMARY_ENTRIES: usize = 10;
/// Histograms in text.
pub(crate) const HISTS: usize = 5;

/// Run one verb.
pub(crate) fn run(command: &Command) -> Result<u8> {
    match command {
        Command::Diagnose(args) => return crate::diagnose::run(args),
        Command::Report(args) => return crate::report::run(args),
        Command::Record(args) => return crate::record::run(args),
        Command::Run(args) => return crate::record::run::run(args),
        Command::Guide(args) => return crate::guide::run(args),
        Command::Baseline(args) => return crate::gate::baseline::run(args),
        Command::Diff(args) => return crate::gate::diff::run(args),
        Command::History(args) => return crate::gate::history::run(args),
        Command::Scale(args) => return crate::gate::scale::run(args),
        Command::Profile(args) => return crate::profile::run(args),
        Command::Predict(args) => return crate::predict::run(args),
        Command::Whatif(args) => return crate::whatif::run(args),
        Command::Gate(args) => return crate::gate::judge::run(args),
        Command::Rules(args) => return crate::rules::run(args),
        Command::Events(args) => return crate::events::run(args),
        Command::Query(args) => return crate::query::run(args),
        Command::Export(args) => return crate::export::run(args),
        Command::Cut(args) => return crate::cut::run(args),
        Command::Fleet(args) => return crate::fleet::run(args),
        Command::Lab(args) => return crate::lab::run(args),
        Command::Doctor(args) => return crate::doctor::run(args),
        Command::Completions(args) => return crate::man::completions(args.shell),
        Command::Man(args) => return crate::man::run(args.folder.as_deref()),
        Command::Syscalls(args) => syscalls(args),
        Command::Procs(args) => {
            let by = procs_group(args.by);
            table("procs", &args.table, schema::procs(&[], by), |a| schema::procs(&a.procs(by), by))
        }
        Command::Cpus(args) => {
            choice::refuse(&args.table.common.select, "cpus", PROCS)?;
            table("cpus", &args.table, schema::cpus(&[]), |a| schema::cpus(&a.cpu_rows()))
        }
        Command::Switches(args) => match args.by {
            SwitchesBy::Thread => table("switches", &args.table, schema::switches(&[]), |a| {
                schema::switches(&a.switches())
            }),
            SwitchesBy::Cgroup => {
                let empty = schema::switches_by_cgroup(&[]);
                table("switches", &args.table, empty, |a| {
                    schema::switches_by_cgroup(&a.switches_by_cgroup())
                })
            }
        },
        Command::Latency(args) => latency(args),
        Command::Irqs(args) => {
            choice::refuse(&args.table.common.select, "irqs", PROCS)?;
            let per_cpu = args.by == IrqsBy::Cpu;
            table("irqs", &args.table, schema::irqs(&[], per_cpu), |a| {
                schema::irqs(&a.irqs(per_cpu), per_cpu)
            })
        }
        Command::Waits(args) => waits(args),
        Command::Phases(args) => phases(args),
        Command::Path(args) => path(args),
        Command::Locks(args) => crate::locks::run(args),
        Command::Ledger(args) => ledger(args),
        Command::Info(args) => info(args),
        Command::Summary(args) => report("summary", &args.common, |reader, analysis, config| {
            let entries = config.entries(args.entries.entries, SUMMARY_ENTRIES);
            Ok(Body::Summary(summary(reader, analysis, args.per_cpu, entries)))
        }),
    }?;
    Ok(exit::OK)
}

/// From tables and samples of a large file, from all of it where it is small, where that was asked
/// for, and where a part was selected: nobody but the whole read knows what is in a part.
fn info(args: &InfoArgs) -> Result<()> {
    choice::refuse(&args.common.select, "info", PROCS)?;
    let config = Config::new(&args.common)?;
    let glance = match args.full || config.selects() {
        true => None,
        false => holdup_open::glance(&config.trace)?,
    };
    let Some(glance) = glance else {
        return report_with("info", config, Detail::Sums, |reader, _, _| {
            Ok(Body::Info(Box::new(Info::new(reader.info()))))
        });
    };
    let report = Report {
        command: "info",
        trace: TraceHead::glanced(&glance),
        quality: glance.quality.entries(),
        body: Body::Info(Box::new(Info::glanced(&glance))),
    };
    write_report(config, &report)
}

/// Of the whole machine, or by control group.
fn ledger(args: &LedgerArgs) -> Result<()> {
    let common = &args.table.common;
    if args.by == LedgerBy::Cgroup {
        return table("ledger", &args.table, schema::cgroups(&[]), |a| {
            schema::cgroups(&a.cgroups())
        });
    }
    choice::refuse(&common.select, "ledger", LEDGER)?;
    if args.table.entries.entries.is_some() || args.table.sort.sort.is_some() {
        return Err(usage("-n and --sort need --by cgroup: the ledger is a tree"));
    }
    report("ledger", common, |_, a, _| Ok(Body::Ledger(Box::new(Attribution::from(a).ledger))))
}

fn syscalls(args: &SyscallsArgs) -> Result<()> {
    let by = match args.by {
        SyscallsBy::System => Group::System,
        SyscallsBy::Process => Group::Process,
        SyscallsBy::Thread => Group::Thread,
        SyscallsBy::Cgroup => Group::Cgroup,
        SyscallsBy::Caller => {
            return crate::profile::callers::syscalls(&args.table, &args.symbols);
        }
    };
    if by != Group::System {
        no_symbols(&args.symbols, "system or --by caller")?;
        return table("syscalls", &args.table, schema::syscalls(&[], by), |a| {
            schema::syscalls(&a.syscalls(by), by)
        });
    }
    let build = |reader: &dyn Reader, a: &Analysis| {
        let mut rows = a.syscalls(by);
        let code = code::of_all(reader, a, &args.symbols)?;
        for row in &mut rows {
            row.code = code.as_ref().and_then(|code| code.call(row.nr)?.words());
        }
        Ok(with_remarks(schema::syscalls(&rows, by), code))
    };
    table_with(
        "syscalls",
        (&args.table, &args.symbols),
        Detail::Sums,
        schema::syscalls(&[], by),
        build,
    )
}

/// Where no names of functions are looked up, nothing may be said about that.
fn no_symbols(symbols: &SymbolArgs, by: &str) -> Result<()> {
    if symbols.any() {
        return Err(usage(format!("--symfs, --kallsyms and --no-symbols need --by {by}")));
    }
    Ok(())
}

/// With what readers of the names of code should know.
fn with_remarks(mut table: Table, code: Option<Code<'_>>) -> Table {
    table.notes.extend(code.into_iter().flat_map(|code| code.remarks()));
    table
}

fn waits(args: &WaitsArgs) -> Result<()> {
    if args.hist
        && matches!(args.by, WaitsByName::Thread | WaitsByName::Cgroup | WaitsByName::Caller)
    {
        return Err(usage("--hist goes by object or by kind"));
    }
    if args.folded {
        return crate::profile::callers::folded(&args.table, &args.symbols);
    }
    let by = match args.by {
        WaitsByName::Object => WaitsBy::Object,
        WaitsByName::Kind => WaitsBy::Kind,
        WaitsByName::Thread => WaitsBy::Thread,
        WaitsByName::Cgroup => WaitsBy::Cgroup,
        WaitsByName::Caller => return crate::profile::callers::waits(&args.table, &args.symbols),
    };
    if by != WaitsBy::Object || args.hist || args.graph.is_some() {
        no_symbols(&args.symbols, "object or --by caller")?;
    }
    if args.hist {
        return report("waits", &args.table.common, |reader, analysis, config| {
            let most = config.entries(args.table.entries.entries, HISTS).unwrap_or(usize::MAX);
            let mut table = schema::hist(&Attribution::from(analysis).wait_hists(by, most));
            table.missing = missing("waits", &reader.info().capabilities);
            Ok(Body::Table(table))
        });
    }
    let Some(form) = args.graph else {
        let detail = match by {
            WaitsBy::Thread | WaitsBy::Cgroup => Detail::Edges,
            WaitsBy::Object | WaitsBy::Kind => Detail::Sums,
        };
        let build = |reader: &dyn Reader, a: &Analysis| {
            let mut rows = Attribution::from(a).waits(by);
            let code = match by {
                WaitsBy::Object => code::of_all(reader, a, &args.symbols)?,
                WaitsBy::Kind | WaitsBy::Thread | WaitsBy::Cgroup => None,
            };
            for row in &mut rows {
                let words = in_words(row.kind, row.usage, &row.object);
                if let Some(around) = code.as_ref().and_then(|code| code.object(&[words])) {
                    row.code = around.words();
                    around.tell_holders(&mut row.holders_did);
                }
            }
            Ok(with_remarks(schema::waits(&rows, by), code))
        };
        return table_with(
            "waits",
            (&args.table, &args.symbols),
            detail,
            schema::waits(&[], by),
            build,
        );
    };
    let json = form == GraphForm::Json;
    report_as(
        "waits",
        (&args.table.common, &args.symbols),
        Detail::Edges,
        json.then_some(Format::Json),
        |_, a, config| {
            let entries = config.entries(args.table.entries.entries, ENTRIES);
            Ok(Body::Graph(Box::new(GraphBody {
                graph: Attribution::from(a).graph(),
                dot: form == GraphForm::Dot,
                entries,
            })))
        },
    )
}

fn latency(args: &LatencyArgs) -> Result<()> {
    let by = match args.by {
        LatencyByName::Command => LatencyBy::Command,
        LatencyByName::Process => LatencyBy::Process,
        LatencyByName::Thread => LatencyBy::Thread,
    };
    let unit = args.unit.as_deref().map(Ends::parse).transpose()?;
    let build = |reader: &dyn Reader, a: &Analysis| {
        let rows = match &unit {
            None => latencies(reader, a, by, None)?,
            Some(unit) => {
                unit.with(reader.info(), a, |unit| latencies(reader, a, by, Some(unit)))??
            }
        };
        Ok(schema::latency(&rows, by))
    };
    let empty = schema::latency(&[], by);
    table_with("latency", (&args.table, &args.symbols), Detail::Sums, empty, build)
}

fn phases(args: &PhasesArgs) -> Result<()> {
    choice::refuse(&args.table.common.select, "phases", DIAGNOSE)?;
    let sort = args.table.sort.sort.as_deref();
    if let Some(keys) = sort {
        schema::phases(&[]).sort(keys).map_err(|e| usage(format!("--sort: {e}")))?;
    }
    let limits = crate::diagnose::thresholds(args.thresholds.as_deref())?;
    let config = Config::new(&args.table.common)?;
    let reader = holdup_open::open(&config.trace)?;
    let options = config.options(&*reader)?;
    let (analysis, rows) = judged_phases(&*reader, &options, &limits)?;
    write("phases", config, &*reader, &analysis, |reader, _, config| {
        let mut table = schema::phases(&rows);
        if let Some(keys) = sort {
            table.sort(keys)?;
        }
        table.entries = config.entries(args.table.entries.entries, ENTRIES);
        table.missing = missing("phases", &reader.info().capabilities);
        Ok(Body::Table(table))
    })
}

fn path(args: &PathArgs) -> Result<()> {
    let tid = match args.table.common.select.tid[..] {
        [] => None,
        [tid] => Some(tid),
        _ => return Err(usage("--tid: a path is that of one thread")),
    };
    let sort = args.table.sort.sort.as_deref();
    if let Some(keys) = sort {
        schema::path(&[]).sort(keys).map_err(|e| usage(format!("--sort: {e}")))?;
    }
    report_as(
        "path",
        (&args.table.common, &args.symbols),
        Detail::Intervals,
        None,
        |reader, a, config| {
            config.must_match(a)?;
            let tid_or_all = tid.map_or_else(|| "path".to_owned(), |tid| format!("--tid {tid}"));
            let lacking = missing("path", &reader.info().capabilities);
            let chosen = tid.is_some() || config.chooses_threads();
            let mut path = match Attribution::from(a).path(tid) {
                Ok(path) => path,
                // What was recorded lacks the events, which the table says.
                Err(NoPath::NoThread | NoPath::Still(_)) if lacking.is_some() && !chosen => {
                    Path::default()
                }
                Err(NoPath::NoThread) if !chosen => Path::default(),
                Err(why) => return Err(usage(format!("{tid_or_all}: {}", no_path(&why)))),
            };
            let code = code::of_all(reader, a, &args.symbols)?;
            for row in &mut path.rows {
                let words = in_words(row.kind, row.usage, &row.object);
                let around = |code: &Code<'_>| match row.state {
                    "run" => code.thread(Tid(row.tid)),
                    _ => code.object(&[words]),
                };
                row.code = code.as_ref().and_then(|code| around(code)?.words());
            }
            let mut table = with_remarks(schema::path(&path.rows), code);
            if let Some(keys) = sort {
                table.sort(keys)?;
            }
            table.entries = config.entries(args.table.entries.entries, ENTRIES);
            table.missing = lacking;
            let head = PathHead { tid: path.tid, comm: path.comm, total_ns: path.total_ns };
            Ok(Body::Path(Box::new(PathBody { head, table })))
        },
    )
}

fn procs_group(by: ProcsBy) -> Group {
    match by {
        ProcsBy::Command => Group::Command,
        ProcsBy::Process => Group::Process,
        ProcsBy::Thread => Group::Thread,
        ProcsBy::Cgroup => Group::Cgroup,
    }
}

/// A verb with one table; `empty` has its columns.
fn table(
    command: &'static str,
    args: &TableArgs,
    empty: Table,
    build: impl FnOnce(&Analysis) -> Table,
) -> Result<()> {
    table_with(command, (args, &SymbolArgs::default()), Detail::Sums, empty, |_, analysis| {
        Ok(build(analysis))
    })
}

/// The same, with more kept about waits.
fn table_with(
    command: &'static str,
    (args, symbols): (&TableArgs, &SymbolArgs),
    detail: Detail,
    mut empty: Table,
    build: impl FnOnce(&dyn Reader, &Analysis) -> Result<Table>,
) -> Result<()> {
    let sort = args.sort.sort.as_deref();
    if let Some(keys) = sort {
        // A wrong key shows before the trace is read.
        empty.sort(keys).map_err(|e| usage(format!("--sort: {e}")))?;
    }
    report_as(command, (&args.common, symbols), detail, None, |reader, analysis, config| {
        let mut table = build(reader, analysis)?;
        if let Some(keys) = sort {
            table.sort(keys)?;
        }
        table.entries = config.entries(args.entries.entries, ENTRIES);
        mark_missing(&mut table, &reader.info().capabilities);
        Ok(Body::Table(table))
    })
}

fn summary(
    reader: &dyn Reader,
    analysis: &Analysis,
    per_cpu: bool,
    entries: Option<usize>,
) -> Vec<Section> {
    let with = |mut table: Table, entries: Option<usize>| {
        table.entries = entries;
        mark_missing(&mut table, &reader.info().capabilities);
        Section::Table(table)
    };
    let mut sections = vec![
        with(schema::sar(&analysis.sar(per_cpu), per_cpu), None),
        Section::Ledger(Box::new(Attribution::from(analysis).ledger)),
        with(schema::cpus(&analysis.cpu_rows()), None),
        with(schema::procs(&analysis.procs(Group::Thread), Group::Thread), entries),
        with(schema::syscalls(&analysis.syscalls(Group::System), Group::System), entries),
        with(schema::switches(&analysis.switches()), entries),
        with(schema::irqs(&analysis.irqs(true), true), entries),
    ];
    sections.insert(1, Section::Busy(BusyCourse::of(analysis)));
    let phases = PhaseRow::of(&holdup_attribution::phases(analysis, &Thresholds::default()));
    if phases.len() > 1 {
        sections.insert(2, Section::Phases(phases));
    }
    // Most recordings lack them.
    if analysis.sees_locks() {
        sections.push(with(crate::locks::by_class(analysis), entries));
    }
    sections
}

/// The events without which a table stays empty, if the trace lacks them.
pub(crate) fn missing(table: &str, capabilities: &Capabilities) -> Option<&'static str> {
    let needs: &[&str] = match table {
        "syscalls" => &["syscalls"],
        "procs" | "switches" | "cpus" | "waits" | "path" | "phases" | "predict" | "latency" => {
            &["switches"]
        }
        "irqs" => &["irqs", "softirqs", "workqueues"],
        "locks" => &["contention", "lockdep"],
        _ => &[],
    };
    let list: Vec<_> =
        capabilities.list().into_iter().filter(|(name, ..)| needs.contains(name)).collect();
    if list.iter().any(|(_, present, _)| *present) {
        None
    } else {
        list.first().map(|(_, _, events)| *events)
    }
}

/// Name the events that a table lacks. Interrupt vectors have rows although they do not prove that
/// all interrupts were recorded. What a choice of system calls leaves dark is told below the table.
fn mark_missing(table: &mut Table, capabilities: &Capabilities) {
    let partial = table.name == "irqs" && !table.rows.is_empty();
    table.missing = if partial { None } else { missing(table.name, capabilities) };
    table.notes.extend(dark(table.name, capabilities));
}

/// What a table cannot show where a choice of system calls was recorded.
fn dark(table: &str, capabilities: &Capabilities) -> Option<String> {
    /// More names would fill the line.
    const NAMES: usize = 5;
    let calls = capabilities.syscalls.in_words(NAMES)?;
    Some(match table {
        "syscalls" => format!("recorded system calls: {calls}; all others are dark"),
        "sar" | "cpus" | "procs" => "time in application code and in system calls is n/a, as not \
            all calls were recorded: others are not told from application code"
            .to_owned(),
        _ => return None,
    })
}

/// The verbs of one table each, in a fixed order.
pub(crate) fn table_names() -> Vec<&'static str> {
    vec!["cpus", "procs", "syscalls", "switches", "irqs", "locks", "waits"]
}

/// The table of the verb `name`, as it is without options.
pub(crate) fn any_table(
    name: &str,
    analysis: &Analysis,
    capabilities: &Capabilities,
) -> Option<Table> {
    let mut table = match name {
        "cpus" => schema::cpus(&analysis.cpu_rows()),
        "procs" => schema::procs(&analysis.procs(Group::Thread), Group::Thread),
        "syscalls" => schema::syscalls(&analysis.syscalls(Group::System), Group::System),
        "switches" => schema::switches(&analysis.switches()),
        "irqs" => schema::irqs(&analysis.irqs(true), true),
        "locks" => crate::locks::by_class(analysis),
        "waits" => {
            schema::waits(&Attribution::from(analysis).waits(WaitsBy::Object), WaitsBy::Object)
        }
        _ => return None,
    };
    mark_missing(&mut table, capabilities);
    Some(table)
}

/// Open, analyse, and write what `build` makes of it.
pub(crate) fn report(
    command: &'static str,
    args: &CommonArgs,
    build: impl FnOnce(&dyn Reader, &Analysis, &Config) -> Result<Body>,
) -> Result<()> {
    report_as(command, (args, &SymbolArgs::default()), Detail::Sums, None, build)
}

/// The same, with more kept about waits, and perhaps in another format than the common options say.
fn report_as(
    command: &'static str,
    (args, symbols): (&CommonArgs, &SymbolArgs),
    detail: Detail,
    format: Option<Format>,
    build: impl FnOnce(&dyn Reader, &Analysis, &Config) -> Result<Body>,
) -> Result<()> {
    let mut config = Config::new(args)?.named_by(symbols)?;
    if let Some(format) = format {
        config.format = format;
    }
    report_with(command, config, detail, build)
}

/// The same, of arguments that are resolved.
fn report_with(
    command: &'static str,
    config: Config,
    detail: Detail,
    build: impl FnOnce(&dyn Reader, &Analysis, &Config) -> Result<Body>,
) -> Result<()> {
    let reader = holdup_open::open(&config.trace)?;
    let mut options = config.options(&*reader)?;
    options.detail = detail;
    let analysis = analyze(&*reader, &options)?;
    write(command, config, &*reader, &analysis, build)
}

/// Write what `build` makes of `analysis`.
pub(crate) fn write(
    command: &'static str,
    config: Config,
    reader: &dyn Reader,
    analysis: &Analysis,
    build: impl FnOnce(&dyn Reader, &Analysis, &Config) -> Result<Body>,
) -> Result<()> {
    config.must_match(analysis)?;
    let report = Report {
        command,
        trace: TraceHead::new(reader.info(), analysis),
        quality: analysis.quality.entries(),
        body: build(reader, analysis, &config)?,
    };
    write_report(config, &report)
}

/// Say what went wrong where the output has no place for it: losses must not pass in silence.
pub(crate) fn warn_of_losses(path: &str, quality: &[QualityEntry]) {
    for entry in quality.iter().filter(|e| e.severity > Severity::Info) {
        eprintln!("holdup: {}: {}", text::escape(path), text::quality_words(entry));
    }
}

/// Write `report` where and how it was asked for.
pub(crate) fn write_report(config: Config, report: &Report) -> Result<()> {
    crate::progress::end();
    if matches!(config.format, Format::Csv { .. }) && !config.quiet {
        warn_of_losses(&report.trace.path, &report.quality);
    }
    config.output.write(report, &config.format)
}
