//! `holdup waits --hist` and `holdup locks --hist`.

use super::{DataOnly, PLAIN, Verb, columns};
use crate::table::Table;
use holdup_passes::HistRow;

/// The name of the table.
pub(crate) const HIST: &str = "hist";

pub(crate) const VERB: Verb<HistRow> = Verb {
    name: HIST,
    columns: columns! { HistRow {
        spans Text, kind Text, object Text, from_ns Ns, to_ns Ns, count Count, pct Percent,
    } },
    shapes: &[&PLAIN],
    data_only: DataOnly::All,
    sort: "",
};
const _: () = VERB.check();

/// Histograms, one after the other in the order given. Text draws them.
pub fn hist(rows: &[HistRow]) -> Table {
    VERB.table(rows, &PLAIN)
}
