//! An export into tables: a file for each.

use crate::column::TableDef;
use crate::error::ExportError;
use crate::explain::Explain;
use crate::facts::{
    AdviceRow, CallRow, CulpritRow, EvidenceRow, FindingRow, IrqRow, LockWaitRow, QualityRow,
    RunRow, SwitchRow, TraceRow, WaitRow, WakeupRow,
};
use crate::made::{MADE, PATH, Source, value};
use crate::rows::{Pool, Value};
use crate::sinks::{Metadata, Sink, TableFormat};
use crate::{Request, judgement};
use holdup_attribution::JUDGE;
use holdup_passes::{Fact, each_fact};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

/// Version of the tables: a column that goes or changes its meaning makes it grow.
pub const TABLES_VERSION: u32 = 1;

/// Every table there is, in the order of the documents.
pub fn definitions() -> Vec<TableDef> {
    let made = MADE.iter().map(|made| made.table());
    crate::facts::tables().into_iter().chain(made).collect()
}

/// Which tables to write, and how.
pub struct Choice {
    /// In which form.
    pub format: TableFormat,
    /// Their names; empty for all but `path`.
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
    sink.rows().push(row);
    sink.settle(pool)
}

/// `FIELD: FACT => ROW by METHOD`: which fact becomes which row, and what of [`Explain`] makes it.
macro_rules! fact_tables {
    ($($field:ident: $fact:ident => $row:ident by $explain:ident;)+) => {
        /// Where facts go.
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

/// Write the tables of `choice` into `folder`, which is made if need be; returns their names.
///
/// # Errors
/// The trace cannot be read, or a file cannot be written; what was not finished ends in `.part`.
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
        Sink::create(folder, table, choice.format, metadata).map(Some)
    };
    let mut facts = Facts::open(&mut open)?;
    let mut trace = open(TraceRow::table())?;
    let mut findings = open(FindingRow::table())?;
    let mut evidence = open(EvidenceRow::table())?;
    let mut culprits = open(CulpritRow::table())?;
    let mut advice = open(AdviceRow::table())?;
    let mut quality = open(QualityRow::table())?;
    let mut sinks = Vec::new();
    for made in MADE {
        let Some(mut sink) = open(made.table())? else { continue };
        let source = Source { judged: request.judged, phases: request.phases };
        let table = (made.make)(Some(&source));
        let types: Vec<_> = made.table().columns.iter().map(|c| c.ty).collect();
        for row in &table.rows {
            let cells = row.iter().zip(&types);
            let values: Vec<Value> =
                cells.map(|(cell, &ty)| value(cell, ty, &mut explain.pool)).collect();
            sink.rows().push_all(values.into_iter());
            sink.settle(&explain.pool)?;
        }
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

    let pool = &mut explain.pool;
    let row = judgement::trace(request, pool).values();
    put(&mut trace, pool, Some(row))?;
    for (n, finding) in request.diagnosis.findings.iter().enumerate() {
        let verdict =
            finding.ruled_out.is_none() && finding.class == request.diagnosis.verdict.class;
        let found = judgement::found(n as u32 + 1, finding, verdict, pool);
        put(&mut findings, pool, Some(found.finding.values()))?;
        for row in found.evidence {
            put(&mut evidence, pool, Some(row.values()))?;
        }
        for row in found.culprits {
            put(&mut culprits, pool, Some(row.values()))?;
        }
        for row in found.advice {
            put(&mut advice, pool, Some(row.values()))?;
        }
    }
    for entry in request.quality {
        let row = judgement::quality(entry, pool).values();
        put(&mut quality, pool, Some(row))?;
    }
    sinks.extend(facts.all());
    sinks.extend([trace, findings, evidence, culprits, advice, quality].into_iter().flatten());
    for sink in sinks {
        sink.finish(&explain.pool)?;
    }
    Ok(names)
}

/// What every file says of itself.
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
