//! `holdup phases`.

use super::{DataOnly, PLAIN, Shape, Verb, columns};
use crate::table::layout::{Layout, Show::*, block, field};
use crate::table::{Cell, Table, ToCell};
use holdup_diagnose::{Class, PhaseRow};

impl ToCell for Class {
    fn to_cell(&self) -> Cell {
        Cell::Text(self.id().to_owned())
    }
}

pub(crate) const VERB: Verb<PhaseRow> = Verb {
    name: "phases",
    columns: columns! { PhaseRow {
        phase Id, start_ns Time, end_ns Time, busy_cpus Ratio, leading_leaf Text, class Text,
        work Flag, part Text,
    } },
    shapes: &[&PHASES, &PLAIN],
    // `part` has it as text.
    data_only: DataOnly::These(&["work"]),
    sort: "phase",
};
const _: () = VERB.check();

const PHASES: Shape = Shape { without: &[], text: TEXT };

const TEXT: &[Layout] = &[block(
    "Phases: parts of the trace in which CPU use is alike, each judged separately",
    &[
        field("", "phase", Key("phase"), 0),
        field("", "part", Key("part"), 0),
        field("", "start", Key("start_ns"), 0),
        field("", "end", Key("end_ns"), 0),
        field("", "busy CPUs", Key("busy_cpus"), 0),
        field("", "class", Key("class"), 0),
        field("", "most time in", Key("leading_leaf"), 0),
    ],
)];

/// `phases`, in order.
pub fn phases(rows: &[PhaseRow]) -> Table {
    VERB.table(rows, &PHASES)
}
