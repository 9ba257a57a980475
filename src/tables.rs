//! Shared code of the verbs that show one table.

use crate::cli::TableArgs;
use crate::config::Config;
use crate::exit::{Result, usage};
use crate::profile::args::SymbolArgs;
use crate::write::{report_with, report_with_code};
use holdup_attribution::{Attribution, WaitsBy};
use holdup_passes::{Analysis, Detail, Group, LockBy};
use holdup_profile::{Code, KnowsCode};
use holdup_render::{Body, Table, schema};
use holdup_trace::{Capabilities, Reader};

/// Default number of rows per table in text.
pub(crate) const ENTRIES: usize = 20;

/// Default number of histograms in text.
pub(crate) const HISTS: usize = 5;

/// Run a verb with one table; `empty` has its columns.
pub(crate) fn table(
    command: &'static str,
    args: &TableArgs,
    empty: Table,
    build: impl FnOnce(&Analysis) -> Table,
) -> Result<()> {
    table_with(command, (args, &SymbolArgs::default()), Detail::Sums, empty, |_, analysis| {
        Ok(build(analysis))
    })
}

/// [`table`] with more detail about waits.
pub(crate) fn table_with(
    command: &'static str,
    (args, symbols): (&TableArgs, &SymbolArgs),
    detail: Detail,
    mut empty: Table,
    build: impl FnOnce(&dyn Reader, &Analysis) -> Result<Table>,
) -> Result<()> {
    sort(args, &mut empty)?;
    let config = Config::new(&args.common)?.named_by(symbols)?;
    report_with(command, config, detail, |reader, analysis, config| {
        finished(build(reader, analysis)?, args, reader, config)
    })
}

/// [`table`] with the code around waits.
pub(crate) fn table_with_code(
    command: &'static str,
    (args, symbols): (&TableArgs, &SymbolArgs),
    mut empty: Table,
    build: impl FnOnce(&Analysis, Option<&Code<'_>>) -> Table,
) -> Result<()> {
    sort(args, &mut empty)?;
    let common = (&args.common, symbols);
    report_with_code(command, common, Detail::Sums, |reader, analysis, code, config| {
        let table = build(analysis, code.as_ref());
        finished(with_remarks(table, code), args, reader, config)
    })
}

/// Sort a table by the keys of the options, if they have any. An empty table shows whether the keys
/// are right before the trace is read.
pub(crate) fn sort(args: &TableArgs, table: &mut Table) -> Result<()> {
    match args.sort.sort.as_deref() {
        Some(keys) => table.sort(keys).map_err(|e| usage(format!("--sort: {e}"))),
        None => Ok(()),
    }
}

/// The table as the options want it.
fn finished(
    mut table: Table,
    args: &TableArgs,
    reader: &dyn Reader,
    config: &Config,
) -> Result<Body> {
    sort(args, &mut table)?;
    table.entries = config.entries(args.entries.entries, ENTRIES);
    mark_missing(&mut table, &reader.info().capabilities);
    Ok(Body::Table(table))
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

/// Note the events that a table lacks. Interrupt vectors have rows although they do not prove that
/// all interrupts were recorded. Calls left out by a choice of system calls are noted below the
/// table.
pub(crate) fn mark_missing(table: &mut Table, capabilities: &Capabilities) {
    let partial = table.name == "irqs" && !table.rows.is_empty();
    table.missing = if partial { None } else { missing(table.name, capabilities) };
    table.notes.extend(untraced(table.name, capabilities));
}

/// What a table cannot show if only some system calls were recorded.
fn untraced(table: &str, capabilities: &Capabilities) -> Option<String> {
    /// More names would fill the line.
    const NAMES: usize = 5;
    let calls = capabilities.syscalls.in_words(NAMES)?;
    Some(match table {
        "syscalls" => format!("recorded system calls: {calls}; all other calls are untraced"),
        "sar" | "cpus" | "procs" => "time in application code and time in system calls are n/a, \
                                     because not all calls were recorded, and calls that were not \
                                     recorded cannot be distinguished from application code"
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
        "locks" => locks_by_class(analysis),
        "waits" => {
            schema::waits(&Attribution::from(analysis).waits(WaitsBy::Object), WaitsBy::Object)
        }
        _ => return None,
    };
    mark_missing(&mut table, capabilities);
    Some(table)
}

/// Add remarks on the names of code.
pub(crate) fn with_remarks(mut table: Table, code: Option<Code<'_>>) -> Table {
    table.notes.extend(code.into_iter().flat_map(|code| code.remarks()));
    table
}

/// Reject options for function names if none are looked up.
pub(crate) fn no_symbols(symbols: &SymbolArgs, by: &str) -> Result<()> {
    if symbols.any() {
        return Err(usage(format!("--symfs, --kallsyms and --no-symbols need --by {by}")));
    }
    Ok(())
}

/// The lock table of a summary.
pub(crate) fn locks_by_class(analysis: &Analysis) -> Table {
    schema::locks(&analysis.locks(LockBy::Lock), LockBy::Lock)
}
