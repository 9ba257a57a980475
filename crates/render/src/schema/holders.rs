//! What holders did while other threads waited: a list in the tables of waits and locks, and
//! separate rows for exports.

use super::{DataOnly, PLAIN, Verb, columns};
use crate::table::{Cell, Table, ToCell};
use holdup_attribution::HoldingRow;
use holdup_passes::{HolderFunction, HolderObject, HolderTime};

/// Records of a list; a field that is not a column does not compile.
macro_rules! records {
    ($($row:ident { $($field:ident),+ } $(without $unused:ident)?;)+) => {
        $(impl ToCell for Vec<$row> {
            fn to_cell(&self) -> Cell {
                let record = |row: &$row| {
                    let $row { $($field),+ $(, $unused: _)? } = row;
                    vec![$((stringify!($field), $field.to_cell())),+]
                };
                Cell::List(self.iter().map(record).collect())
            }
        })+
    };
}

records! {
    HolderTime { did, title, call, ns, pct, objects, functions } without runs;
    HolderObject { object, ns };
    HolderFunction { function, at, samples, pct };
}

pub(super) const VERB: Verb<HoldingRow> = Verb {
    name: "holding",
    columns: columns! { HoldingRow {
        kind Text, usage Text, object Text, pid Id, comm Text, did Text, call Text,
        waited_for Text, hold_ns Ns, pct_held Percent,
    } },
    shapes: &[&PLAIN],
    data_only: DataOnly::All,
    sort: "",
};
const _: () = VERB.check();

/// What holders did, in the order given. Text prints it with the object.
pub fn holding(rows: &[HoldingRow]) -> Table {
    VERB.table(rows, &PLAIN)
}
