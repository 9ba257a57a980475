//! Which threads wait for which: what a failing gate says in addition to its number.

use crate::diff::{self, Row};
use crate::judge::Sides;
use crate::metric::{Kind, Metric, Table};
use crate::objects::Object;
use crate::sample;
use crate::stats::spread::median;
use crate::work::Work;

/// The number of lines that a failing gate adds.
const REASONS: usize = 3;
/// A change worth less than this fraction of the largest explains nothing.
const WORTH: f64 = 0.1;

/// A change that explains a regression.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// The changed figure.
    pub row: Row,
    /// The waiters and holders now, if known.
    pub threads: Option<String>,
}

/// The changes for the worse that are worth most time. What threads wait for comes first; the
/// ledger says where the capacity went.
pub(crate) fn reasons(sides: Sides<'_>, metric: &Metric, work: &Work) -> Vec<Reason> {
    let rows = diff::rows(sides, work.per(), work);
    let worse: Vec<Row> = rows
        .into_iter()
        .filter(|r| r.figure.measure.kind == Kind::Time && r.change().is_some_and(|c| c > 0.0))
        .collect();
    let first = |table: Table| {
        let own = |r: &&Row| r.figure.table == table && r.figure.measure == table.measures()[0];
        worse.iter().filter(own).find(|r| tells(r)).cloned()
    };
    let mut found: Vec<Row> =
        [Table::Waits, Table::Locks, Table::Ledger, Table::Syscalls, Table::Procs]
            .into_iter()
            .filter_map(first)
            .collect();
    // The object with most waiting first, whatever it is worth; then by worth.
    let weight = |r: &Row| r.change().unwrap_or(0.0);
    found.sort_by(|a, b| {
        let object = |r: &Row| !matches!(r.figure.table, Table::Waits | Table::Locks);
        object(a).cmp(&object(b)).then(weight(b).total_cmp(&weight(a)))
    });
    let heaviest = found.iter().map(weight).fold(0.0, f64::max);
    found.retain(|row| weight(row) >= heaviest * WORTH);
    found.truncate(REASONS);
    let typical = typical(sides, metric, work);
    let threads = |row: &Row| {
        let object = |o: &&Object| row.figure.table == Table::Waits && o.key == row.figure.key;
        typical?.objects.iter().find(object).map(|o| o.threads.clone())
    };
    found.into_iter().map(|row| Reason { threads: threads(&row), row }).collect()
}

/// Waiting for children, input or time is a consequence of other things; so are sums over leaves.
fn tells(row: &Row) -> bool {
    let key = row.figure.key.as_str();
    match row.figure.table {
        Table::Waits => !["join ", "child ", "condvar "].iter().any(|k| key.starts_with(k)),
        Table::Ledger => !matches!(key, "busy" | "busy.kernel" | "idle" | "idle.no-work"),
        Table::Syscalls => !matches!(key, "wait4" | "waitid" | "nanosleep" | "clock_nanosleep"),
        _ => true,
    }
}

/// The run after the change whose value of the metric is nearest to the median.
fn typical<'a>(sides: Sides<'a>, metric: &Metric, work: &Work) -> Option<&'a crate::Run> {
    let Metric::Number { figure, per } = metric else { return sides.b.first() };
    let values = sample::values(sides.b, figure, *per, work).ok()?;
    let middle = median(&values)?;
    let runs = sides.b.iter().zip(values);
    runs.min_by(|x, y| (x.1 - middle).abs().total_cmp(&(y.1 - middle).abs())).map(|(run, _)| run)
}
