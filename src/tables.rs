//! What the verbs of one table each have in common.

use crate::cli::TableArgs;
use crate::exit::{Result, usage};
use crate::profile::args::SymbolArgs;
use crate::write::report_as;
use holdup_attribution::{Attribution, WaitsBy};
use holdup_passes::{Analysis, Detail, Group, LockBy};
use holdup_profile::{Code, KnowsCode};
use holdup_render::{Body, Table, schema};
use holdup_trace::{Capabilities, Reader};

/// Rows per table of text.
pub(crate) const ENTRIES: usize = 20;

/// Histograms in text.
pub(crate) const HISTS: usize = 5;

/// A verb with one table; `empty` has its columns.
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

/// The same, with more kept about waits.
pub(crate) fn table_with(
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
/// all interrupts were recorded. What a choice of system calls leaves out is told below the table.
pub(crate) fn mark_missing(table: &mut Table, capabilities: &Capabilities) {
    let partial = table.name == "irqs" && !table.rows.is_empty();
    table.missing = if partial { None } else { missing(table.name, capabilities) };
    table.notes.extend(untraced(table.name, capabilities));
}

/// What a table cannot show where a choice of system calls was recorded.
fn untraced(table: &str, capabilities: &Capabilities) -> Option<String> {
    /// More names would fill the line.
    const NAMES: usize = 5;
    let calls = capabilities.syscalls.in_words(NAMES)?;
    Some(match table {
        "syscalls" => format!("recorded system calls: {calls}; all others are untraced"),
        "sar" | "cpus" | "procs" => "time in application code and in system calls is n/a, because \
            not all calls were recorded and the other calls cannot be distinguished from \
            application code"
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

/// With what readers of the names of code should know.
pub(crate) fn with_remarks(mut table: Table, code: Option<Code<'_>>) -> Table {
    table.notes.extend(code.into_iter().flat_map(|code| code.remarks()));
    table
}

/// Where no names of functions are looked up, nothing may be said about that.
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
