//! `holdup switches`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, When::Verbose, block, field, only};
use holdup_passes::SwitchRow;

pub(crate) const VERB: Verb<SwitchRow> = Verb {
    name: "switches",
    columns: columns! { SwitchRow {
        comm Text, pid Id, tid Id, cgroup Text, threads Count, runtime_ns Ns, switches Count,
        delay_count Count, avg_delay_ns Ns, max_delay_ns Ns, max_delay_start_ns Time,
        max_delay_end_ns Time,
        voluntary Count, involuntary Count, preempted_ns Ns, migrations Count, stat_runtime_ns Ns,
    } },
    shapes: &[&SWITCHES, &BY_CGROUP],
    data_only: DataOnly::These(&[]),
    sort: "max_delay_ns",
};
const _: () = VERB.check();

const SWITCHES: Shape = Shape { without: &["threads"], text: TEXT };
const BY_CGROUP: Shape = Shape { without: &["comm", "pid", "tid"], text: TEXT };

/// The columns that identify the row.
const PROCESS: &[&str] = &["comm", "pid", "tid", "threads"];

const TEXT: &[Layout] = &[block(
    "Waiting for a CPU",
    &[
        field("on a CPU", "total", Key("runtime_ns"), 0),
        only(Verbose, field("on a CPU", "charged", Key("stat_runtime_ns"), 9)),
        field("on a CPU", "stays", Key("switches"), 0),
        field("delay from wake-up to running", "count", Key("delay_count"), 0),
        field("delay from wake-up to running", "avg", Key("avg_delay_ns"), 0),
        field("delay from wake-up to running", "max", Key("max_delay_ns"), 0),
        field("delay from wake-up to running", "max start", Key("max_delay_start_ns"), 2),
        field("delay from wake-up to running", "max end", Key("max_delay_end_ns"), 8),
        field("left the CPU", "vol", Key("voluntary"), 4),
        field("left the CPU", "invol", Key("involuntary"), 3),
        field("", "preempted", Key("preempted_ns"), 1),
        field("", "migr", Key("migrations"), 5),
        field("", "control group", Words(&["cgroup"], words::cgroup), 6),
        field("", "process", Words(PROCESS, words::process), 0),
    ],
)];

/// `switches`, longest delay first: one long wait for a CPU is what a user feels, and a mean hides
/// it.
pub fn switches(rows: &[SwitchRow]) -> Table {
    VERB.table(rows, &SWITCHES)
}

/// `switches`, of which only the first `entries` are kept.
pub fn first_switches(rows: impl Iterator<Item = SwitchRow>, entries: Option<usize>) -> Table {
    VERB.table_of(rows, &SWITCHES, entries)
}

/// `switches --by cgroup`, longest delay first.
pub fn switches_by_cgroup(rows: &[SwitchRow]) -> Table {
    VERB.table(rows, &BY_CGROUP)
}
