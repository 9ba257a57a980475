//! An export into tables: one file per table.

use crate::column::TableDef;
use crate::error::ExportError;
use crate::explain::Explain;
use crate::facts::{CallRow, IrqRow, LockWaitRow, RunRow, SwitchRow, WaitRow, WakeupRow};
use crate::made::{MADE, PATH, Source};
use crate::rows::{Pool, Value};
use crate::sinks::{Metadata, Sink, TableFormat};
use crate::{Request, judgement};
use holdup_attribution::JUDGE;
use holdup_passes::{Fact, each_fact};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// Version of the tables: it grows when a column is removed or changes its meaning.
pub const TABLES_VERSION: u32 = 1;

/// All tables, in the order of the documents.
pub fn definitions() -> Vec<TableDef> {
    let made = MADE.iter().map(|made| made.table());
    crate::facts::tables().into_iter().chain(made).collect()
}

/// Which tables to write, and how.
pub struct Choice {
    /// Their format.
    pub format: TableFormat,
    /// Their names; empty for all except `path`.
    pub names: Vec<String>,
}

impl Choice {
    /// Whether `table` is to be written.
    pub fn has(&self, table: &str) -> bool {
        match self.names.is_empty() {
            true => table != PATH,
            false => self.names.iter().any(|name| name == table),
        }
    }
}

/// A table of facts, if it is to be written.
type Maybe = Option<Sink>;

fn put<const N: usize>(
    sink: &mut Maybe,
    pool: &Pool,
    row: Option<[Value; N]>,
) -> Result<(), ExportError> {
    let (Some(sink), Some(row)) = (sink, row) else { return Ok(()) };
    sink.push(&row, pool)
}

/// `FIELD: FACT => ROW by METHOD`: a fact, its row, and the method of [`Explain`] that makes it.
macro_rules! fact_tables {
    ($($field:ident: $fact:ident => $row:ident by $explain:ident;)+) => {
        /// The sinks of the facts.
        struct Facts { $($field: Maybe),+ }

        impl Facts {
            fn open(
                mut open: impl FnMut(TableDef) -> Result<Maybe, ExportError>,
            ) -> Result<Facts, ExportError> {
                Ok(Facts { $($field: open($row::table())?),+ })
            }

            fn take(&mut self, fact: &Fact, to: &mut Explain<'_>) -> Result<(), ExportError> {
                match fact {
                    $(Fact::$fact(it) if self.$field.is_some() => {
                        let row: Option<$row> = to.$explain(it).into();
                        put(&mut self.$field, &to.pool, row.map($row::values))
                    })+
                    _ => Ok(()),
                }
            }

            fn any(&self) -> bool {
                [$(&self.$field),+].into_iter().any(Option::is_some)
            }

            fn all(self) -> impl Iterator<Item = Sink> {
                [$(self.$field),+].into_iter().flatten()
            }
        }
    };
}

fact_tables! {
    switches: Switch => SwitchRow by switch;
    runs: Run => RunRow by run;
    calls: Call => CallRow by returned;
    waits: Wait => WaitRow by slept;
    lock_waits: LockWait => LockWaitRow by lock_wait;
    wakeups: Wakeup => WakeupRow by wakeup;
    irqs: Irq => IrqRow by irq;
}

/// Write the tables of `choice` into `folder`, which is created if necessary; returns their names.
///
/// # Errors
/// The trace cannot be read, or a file cannot be written; an unfinished file ends in `.part`.
pub fn tables(
    request: &Request<'_>,
    choice: &Choice,
    folder: &Path,
) -> Result<Vec<&'static str>, ExportError> {
    fs::create_dir_all(folder)
        .map_err(|error| ExportError::Write { path: folder.to_owned(), error })?;
    let mut explain = Explain::new(request.judged);
    let mut names = Vec::new();
    let mut open = |table: TableDef| {
        if !choice.has(table.name) {
            return Ok(None);
        }
        names.push(table.name);
        let metadata = metadata(request, table.name);
        let path = folder.join(format!("{}.{}", table.name, choice.format.extension()));
        Sink::create(path, table, choice.format, metadata).map(Some)
    };
    let mut facts = Facts::open(&mut open)?;
    let mut sinks: Vec<Sink> = Vec::new();
    for table in judgement::tables() {
        sinks.extend(open(table)?);
    }
    for made in MADE {
        let Some(mut sink) = open(made.table())? else { continue };
        let source = Source { judged: request.judged, phases: request.phases };
        made.rows(&source, usize::MAX, &mut explain.pool, &mut |_, row, pool| {
            sink.push(row, pool)
        })?;
        sinks.push(sink);
    }

    if facts.any() {
        let mut done = Ok(());
        each_fact(request.reader, request.judged.analysis, &JUDGE, &mut |fact| {
            done = facts.take(fact, &mut explain);
            if done.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        done?;
    }

    judgement::rows(request, &mut explain.pool, &mut |table, row, pool| {
        sinks.iter_mut().find(|s| s.table().name == table).map_or(Ok(()), |s| s.push(row, pool))
    })?;
    sinks.extend(facts.all());
    for sink in sinks {
        sink.finish(&explain.pool)?;
    }
    Ok(names)
}

/// The metadata of a table's file.
fn metadata(request: &Request<'_>, table: &str) -> Metadata {
    let (info, analysis) = (request.info, request.judged.analysis);
    let optional = [
        ("trace.bytes", request.bytes.map(|n| n.to_string())),
        ("trace.hostname", info.hostname.clone()),
        ("holdup.missing", (request.missing)(table).map(str::to_owned)),
    ];
    let always = [
        ("holdup.schema", holdup_render::SCHEMA.to_owned()),
        ("holdup.table", table.to_owned()),
        ("holdup.table_version", TABLES_VERSION.to_string()),
        ("holdup.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("trace.file", request.file_name()),
        ("trace.format", info.format.clone()),
        ("trace.events", analysis.events.to_string()),
        ("trace.cpus", analysis.cpus.to_string()),
        ("trace.start_ns", analysis.start.to_string()),
        ("trace.end_ns", analysis.end.to_string()),
    ];
    let optional = optional.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let all = always.into_iter().chain(optional);
    all.map(|(key, value)| (key.to_owned(), value)).collect()
}
