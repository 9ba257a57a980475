//! `holdup irqs`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, block, field};
use holdup_passes::IrqRow;

pub(crate) const VERB: Verb<IrqRow> = Verb {
    name: "irqs",
    columns: columns! { IrqRow {
        kind Text, id Address, name Text, cpu Id, count Count, total_ns Ns, avg_ns Ns, max_ns Ns,
        max_start_ns Time,
    } },
    shapes: &[&PER_CPU, &TOTAL],
    data_only: DataOnly::These(&[]),
    sort: "total_ns",
};
const _: () = VERB.check();

const PER_CPU: Shape = Shape { without: &[], text: PER_CPU_TEXT };
const TOTAL: Shape = Shape { without: &["cpu"], text: TOTAL_TEXT };

const TOTAL_TEXT: &[Layout] = &[block(
    "Interrupts, softirqs and kernel work",
    &[
        field("", "kind", Key("kind"), 0),
        field("", "count", Key("count"), 0),
        field("run time", "total", Key("total_ns"), 0),
        field("run time", "%", Share("total_ns"), 0),
        field("run time", "avg", Key("avg_ns"), 0),
        field("run time", "max", Key("max_ns"), 0),
        field("run time", "max start", Key("max_start_ns"), 1),
        field("", "name", Words(&["kind", "id", "name"], words::irq), 0),
    ],
)];

const PER_CPU_TEXT: &[Layout] = &[block(
    "Interrupts, softirqs and kernel work, per CPU",
    &[
        field("", "kind", Key("kind"), 0),
        field("", "cpu", Key("cpu"), 0),
        field("", "count", Key("count"), 0),
        field("run time", "total", Key("total_ns"), 0),
        field("run time", "% of CPU", OfWall("total_ns"), 0),
        field("run time", "avg", Key("avg_ns"), 0),
        field("run time", "max", Key("max_ns"), 0),
        field("run time", "max start", Key("max_start_ns"), 1),
        field("", "name", Words(&["kind", "id", "name"], words::irq), 0),
    ],
)];

/// `irqs`, longest total first.
pub fn irqs(rows: &[IrqRow], per_cpu: bool) -> Table {
    VERB.table(rows, if per_cpu { &PER_CPU } else { &TOTAL })
}
