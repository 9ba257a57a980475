//! `holdup waits`, its graph, and `holdup path`.

use super::{DataOnly, PLAIN, Shape, Verb, columns, words};
use crate::table::layout::{Layout, Show::*, When::*, block, field, only};
use crate::table::{Cell, Table, ToCell};
use holdup_attribution::{Edge, Holder, PathRow, WaitsBy, WaitsRow};

/// The columns that identify the thread or process of a row.
const PROCESS: &[&str] = &["comm", "pid", "tid"];

/// The columns of the waits' thread or process.
const OWNER: &[&str] = &["comm", "pid", "tid"];

pub(crate) const VERB: Verb<WaitsRow> = Verb {
    name: "waits",
    columns: columns! { WaitsRow {
        cgroup Text, kind Text, usage Text, object Text, objects Count, pid Id, tid Id, comm Text,
        waits Count, waiters Count, wait_total_ns Ns, wait_avg_ns Ns, wait_p99_ns Ns,
        wait_max_ns Ns, elapsed_ns Ns, wake_delay_ns Ns, retries Count, holders List,
        holders_did List, pct_explained Percent,
        top_waker Id, harmful Flag, rule Text, idle_blamed_ns Ns, pct_idle_blamed Percent,
        code Text,
    } },
    shapes: &[&BY_OBJECT, &BY_KIND, &BY_THREAD, &BY_CGROUP],
    data_only: DataOnly::These(&["pct_explained", "top_waker", "harmful"]),
    sort: "",
};
const _: () = VERB.check();

const BY_OBJECT: Shape = Shape { without: &["cgroup", "objects", "tid"], text: WAITS };
const BY_KIND: Shape = Shape { without: &["cgroup", "tid", "code"], text: WAITS };
const BY_CGROUP: Shape = Shape {
    without: &[
        "pid",
        "tid",
        "comm",
        "holders",
        "holders_did",
        "pct_explained",
        "wait_p99_ns",
        "wait_max_ns",
        "elapsed_ns",
        "wake_delay_ns",
        "retries",
        "code",
    ],
    text: WAITS,
};
const BY_THREAD: Shape = Shape {
    without: &[
        "holders",
        "holders_did",
        "pct_explained",
        "wait_p99_ns",
        "wait_max_ns",
        "elapsed_ns",
        "waiters",
        "wake_delay_ns",
        "retries",
        "code",
    ],
    text: WAITS,
};

const OBJECT: &[&str] = &["kind", "usage", "object", "objects"];

const WAITS: &[Layout] = &[block(
    "What threads waited for",
    &[
        field("idle time", "%", Key("pct_idle_blamed"), 0),
        only(Verbose, field("idle time", "blamed", Key("idle_blamed_ns"), 9)),
        field("", "waits", Key("waits"), 0),
        field("", "threads", Key("waiters"), 3),
        field("asleep", "total", Key("wait_total_ns"), 0),
        field("asleep", "avg", Key("wait_avg_ns"), 0),
        field("asleep", "p99", Key("wait_p99_ns"), 6),
        field("asleep", "max", Key("wait_max_ns"), 2),
        only(Verbose, field("", "in calls", Key("elapsed_ns"), 9)),
        only(Verbose, field("", "wake delay", Key("wake_delay_ns"), 9)),
        field("", "retries", Key("retries"), 8),
        field("", "rule", Key("rule"), 1),
        field("", "object", Words(OBJECT, words::object), 0),
        field("", "control group", Words(&["cgroup"], words::cgroup), 0),
        field("", "process", Words(OWNER, words::process), 0),
        field("", "held meanwhile by (~ inferred)", Words(&["holders"], words::holders), 0),
        field("", "holders did", Words(&["holders_did"], words::holders_did), 4),
        only(Known, field("", "waited for in", Key("code"), 0)),
    ],
)];

impl ToCell for Vec<Holder> {
    fn to_cell(&self) -> Cell {
        let record = |h: &Holder| {
            // A field that is not a column does not compile here.
            let Holder { tid, comm, hold_ns, pct_explained, inferred } = h;
            vec![
                ("tid", tid.to_cell()),
                ("comm", comm.to_cell()),
                ("hold_ns", hold_ns.to_cell()),
                ("pct_explained", pct_explained.to_cell()),
                ("inferred", inferred.to_cell()),
            ]
        };
        Cell::List(self.iter().map(record).collect())
    }
}

/// `waits`, in the order given: harmful ones first, largest part of the idle time first.
pub fn waits(rows: &[WaitsRow], by: WaitsBy) -> Table {
    let shape = match by {
        WaitsBy::Object => &BY_OBJECT,
        WaitsBy::Kind => &BY_KIND,
        WaitsBy::Thread => &BY_THREAD,
        WaitsBy::Cgroup => &BY_CGROUP,
    };
    VERB.table(rows, shape)
}

pub(super) const PATH_VERB: Verb<PathRow> = Verb {
    name: "path",
    columns: columns! { PathRow {
        state Text, tid Id, pid Id, comm Text, kind Text, usage Text, object Text, pieces Count,
        total_ns Ns, max_ns Ns, pct_path Percent, code Text,
    } },
    shapes: &[&PATH_SHAPE],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = PATH_VERB.check();

const PATH_SHAPE: Shape = Shape { without: &[], text: PATH };

const PATH: &[Layout] = &[block(
    "Critical path",
    &[
        field("", "%", Key("pct_path"), 0),
        field("", "total", Key("total_ns"), 0),
        field("", "pieces", Key("pieces"), 0),
        field("", "longest", Key("max_ns"), 0),
        field("", "state", Key("state"), 0),
        field("", "thread", Words(PROCESS, words::process), 0),
        field("", "through", Words(&["kind", "usage", "object"], words::object), 0),
        only(Known, field("", "code", Key("code"), 0)),
    ],
)];

/// `path`, in the order given: longest part first.
pub fn path(rows: &[PathRow]) -> Table {
    PATH_VERB.table(rows, &PATH_SHAPE)
}

pub(super) const EDGES: Verb<Edge> = Verb {
    name: "edges",
    columns: columns! { Edge {
        waiter Id, waker Id, kind Text, usage Text, object Text, waits Count, wait_ns Ns,
    } },
    shapes: &[&PLAIN],
    data_only: DataOnly::All,
    sort: "",
};
const _: () = EDGES.check();

/// The edges of the blocking graph. Text shows them as sentences.
pub(crate) fn edges(rows: &[Edge]) -> Table {
    EDGES.table(rows, &PLAIN)
}
