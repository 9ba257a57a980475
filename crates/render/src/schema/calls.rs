//! `holdup syscalls --by caller`.

use super::callers::caller;
use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, block, field};
use holdup_profile::CallRow;

pub(crate) const VERB: Verb<CallRow> = Verb {
    name: "syscalls",
    columns: columns! { CallRow {
        caller Text, dso Text, through Text, comm Text, pid Id, name Text, nr Id, count Count,
        errors Count, threads Count, total_ns Ns, cpu_ns Ns, blocked_ns Ns, avg_ns Ns, max_ns Ns,
    } },
    shapes: &[&SHAPE],
    data_only: DataOnly::These(&["nr", "threads"]),
    sort: "",
};
const _: () = VERB.check();

const SHAPE: Shape = Shape { without: &[], text: TEXT };

const TEXT: &[Layout] = &[block(
    "System calls by the code that makes them",
    &[
        field("", "calls", Key("count"), 0),
        field("", "errors", Key("errors"), 2),
        field("elapsed", "total", Key("total_ns"), 0),
        field("elapsed", "on CPU", Key("cpu_ns"), 1),
        field("elapsed", "asleep", Key("blocked_ns"), 1),
        field("elapsed", "avg", Key("avg_ns"), 2),
        field("elapsed", "max", Key("max_ns"), 2),
        field("", "process", Words(&["comm", "pid"], words::process), 0),
        field("", "syscall", Key("name"), 0),
        field("", "caller", Words(&["caller", "dso", "through"], caller), 0),
    ],
)];

/// `syscalls` by the code that makes the calls, in the order given: the most time first.
pub fn calls(rows: &[CallRow]) -> Table {
    VERB.table(rows, &SHAPE)
}
