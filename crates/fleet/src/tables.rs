//! The tables of a fleet: an export's summary tables, with the trace in front.

use holdup_attribution::{Leaf, Ledger, Total};
use holdup_diagnose::Diagnosis;
use holdup_export::{Column, DIGEST, TRACE, TableDef, Type, definitions as exported};
use serde_json::Value as Json;
use std::sync::LazyLock;

/// A node of the ledger and its column in the table of traces.
struct Share {
    path: &'static str,
    column: String,
    about: String,
}

/// Every node of the ledger, parents before children.
static SHARES: LazyLock<Vec<Share>> = LazyLock::new(|| {
    let mut paths: Vec<&'static str> = Vec::new();
    for leaf in Leaf::ALL {
        let mut way: Vec<_> = std::iter::successors(leaf.parent(), |b| b.parent()).collect();
        way.reverse();
        for path in way.into_iter().map(Total::path).chain([leaf.path()]) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    let share = |path: &'static str| Share {
        path,
        column: format!("pct_{}", path.replace(['/', '-'], "_")),
        about: format!(
            "CPU time of `{path}` in the ledger, as per cent of capacity; null if the trace does \
             not show it."
        ),
    };
    paths.into_iter().map(share).collect()
});

const fn column(name: &'static str, ty: Type, unit: &'static str, about: &'static str) -> Column {
    Column { name, ty, unit, nullable: false, about }
}

const fn maybe(name: &'static str, ty: Type, unit: &'static str, about: &'static str) -> Column {
    Column { name, ty, unit, nullable: true, about }
}

/// The first column of every table.
const KEY: Column = column(
    "trace",
    Type::Words,
    "",
    "SHA-256 of the content of the trace. It is the key in all tables.",
);

/// The columns after the key in the table of traces.
const PLACE: [Column; 3] = [
    column(
        "path",
        Type::Words,
        "",
        "Path of the trace. If several files have the same content: the first of their paths.",
    ),
    column(
        "recorded_ns",
        Type::Int,
        "ns since 1970",
        "Time at which the trace was recorded, from the source that `date_from` names.",
    ),
    column(
        "date_from",
        Type::Words,
        "",
        "Source of `recorded_ns`: `trace` (the recording itself) or `mtime` (the time at which the \
         file was last written).",
    ),
];

/// The columns at the end of the table of traces, before the shares of the ledger.
const OUTCOME: [Column; 6] = [
    maybe(
        "lost_cpu_ns",
        Type::Int,
        "ns",
        "CPU time lost to the bottleneck that the verdict names; null if there is no bottleneck, \
         or if the lost time is not known.",
    ),
    maybe("lost_pct", Type::Float, "%", "`lost_cpu_ns` as per cent of capacity."),
    maybe(
        "gain",
        Type::Float,
        "",
        "How many times as fast the work would be without the bottleneck; null if there is no \
         bottleneck. If `gain_change` is null, the gain is estimated from the lost CPU time.",
    ),
    maybe("gain_low", Type::Float, "", "Low end of `gain`."),
    maybe("gain_high", Type::Float, "", "High end of `gain`."),
    maybe(
        "gain_change",
        Type::Words,
        "",
        "The change that was replayed, as `whatif` spells it; null if nothing was replayed.",
    ),
];

/// A partition that is not part of the path is a column.
pub(crate) const DATE: Column =
    column("date", Type::Words, "", "Day of `recorded_ns`, in UTC: `2026-11-23`.");
pub(crate) const HOST: Column = column(
    "host",
    Type::Words,
    "",
    "Name of the recorded host; `unknown` if the trace does not name it.",
);

/// Every table, in the order of the documents.
pub fn definitions() -> Vec<TableDef> {
    let exported = exported();
    let of = |name: &str| exported.iter().find(|t| t.name == name).cloned();
    DIGEST.iter().filter_map(|(name, _)| of(name)).map(with_trace).collect()
}

fn with_trace(mut table: TableDef) -> TableDef {
    let mut columns = vec![KEY];
    if table.name == TRACE {
        columns.extend(PLACE);
        table.columns.extend(OUTCOME);
        let shares = SHARES.iter();
        table.columns.extend(shares.map(|s| maybe(&s.column, Type::Float, "%", &s.about)));
    }
    columns.append(&mut table.columns);
    table.columns = columns;
    table
}

/// The number of columns before those of a record's row.
pub(crate) fn in_front(table: &str) -> usize {
    if table == TRACE { 1 + PLACE.len() } else { 1 }
}

/// The columns of the table of traces after those of an export.
pub(crate) fn outcome(diagnosis: &Diagnosis, ledger: &Ledger) -> Vec<Json> {
    let class = diagnosis.verdict.class;
    let holds = diagnosis.findings.iter().find(|f| f.class == class && f.ruled_out.is_none());
    let lost = holds.and_then(|f| f.priced());
    let worth = holds.map(|f| &f.worth);
    let mut row: Vec<Json> = vec![
        lost.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX)).into(),
        lost.and(holds).map(|f| f.share).into(),
        worth.map(|w| w.times).into(),
        worth.map(|w| w.low).into(),
        worth.map(|w| w.high).into(),
        worth.and_then(|w| w.change.as_deref()).into(),
    ];
    let nodes = ledger.nodes();
    let share = |s: &Share| nodes.iter().find(|n| n.path == s.path).map(|n| n.pct).into();
    row.extend(SHARES.iter().map(share));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_table_begins_with_the_trace() {
        let tables = definitions();
        assert_eq!(tables.len(), DIGEST.len());
        for table in &tables {
            assert_eq!(table.columns[0], KEY);
            for (i, column) in table.columns.iter().enumerate() {
                let before = &table.columns[..i];
                let name = column.name;
                assert!(before.iter().all(|c| c.name != name), "{}.{name}", table.name);
                assert!(![DATE.name, HOST.name].contains(&name), "{}.{name}", table.name);
            }
        }
        let names: Vec<_> = tables[0].columns.iter().map(|c| c.name).collect();
        assert_eq!(names[in_front(TRACE)], "file");
        assert!(names.contains(&"pct_idle") && names.contains(&"pct_idle_thread_sync"));
    }
}
