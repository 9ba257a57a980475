//! The nodes of the capacity ledger. Text draws them as a tree.

use super::{DataOnly, PLAIN, Verb, columns};
use crate::table::Table;
use holdup_attribution::LedgerNode;

pub(super) const VERB: Verb<LedgerNode> = Verb {
    name: "ledger",
    columns: columns! { LedgerNode { path Text, ns Ns, pct Percent } },
    shapes: &[&PLAIN],
    data_only: DataOnly::All,
    sort: "",
};
const _: () = VERB.check();

/// The nodes of the ledger, in pre-order.
pub fn nodes(rows: &[LedgerNode]) -> Table {
    VERB.table(rows, &PLAIN)
}
