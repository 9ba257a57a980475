//! `holdup latency`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, When, block, field, only};
use holdup_attribution::{LatencyBy, LatencyRow};

pub(crate) const VERB: Verb<LatencyRow> = Verb {
    name: "latency",
    columns: columns! { LatencyRow {
        comm Text, pid Id, tid Id, threads Count, kind Text, usage Text, object Text,
        objects Count, count Count, total_ns Ns, pct Percent, p50_ns Ns, p90_ns Ns, p99_ns Ns,
        max_ns Ns, per_unit_ns Ns,
    } },
    shapes: &[&BY_COMMAND, &BY_PROCESS, &BY_THREAD],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = VERB.check();

const BY_COMMAND: Shape = Shape { without: &["pid", "tid"], text: LATENCY };
const BY_PROCESS: Shape = Shape { without: &["tid"], text: LATENCY };
const BY_THREAD: Shape = Shape { without: &["threads"], text: LATENCY };

const LATENCY: &[Layout] = &[block(
    "How long each run on a CPU, each wait for a CPU and each sleep lasted",
    &[
        field("", "process", Words(&["comm", "pid", "tid"], words::process), 0),
        field("", "threads", Key("threads"), 7),
        field("", "%", Key("pct"), 1),
        field("", "times", Key("count"), 2),
        field("", "total", Key("total_ns"), 0),
        only(When::Known, field("", "a unit", Key("per_unit_ns"), 0)),
        field("each time", "p50", Key("p50_ns"), 0),
        field("each time", "p90", Key("p90_ns"), 5),
        field("each time", "p99", Key("p99_ns"), 0),
        field("each time", "max", Key("max_ns"), 0),
        field("", "for", Words(&["kind", "usage", "object", "objects"], words::object), 0),
    ],
)];

/// `latency`, in the order given.
pub fn latency(rows: &[LatencyRow], by: LatencyBy) -> Table {
    let shape = match by {
        LatencyBy::Command => &BY_COMMAND,
        LatencyBy::Process => &BY_PROCESS,
        LatencyBy::Thread => &BY_THREAD,
    };
    VERB.table(rows, shape)
}
