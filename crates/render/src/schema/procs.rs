//! `holdup procs`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, When::*, block, field, only};
use holdup_passes::{Group, ProcRow};

pub(crate) const VERB: Verb<ProcRow> = Verb {
    name: "procs",
    columns: columns! { ProcRow {
        comm Text, pid Id, pid_inferred Flag, tid Id, cgroup Text, processes Count, threads Count,
        kthread Flag, combined_ns Ns, app_ns Ns, kernel_ns Ns, interrupted_ns Ns, runnable_ns Ns,
        blocked_ns Ns,
        pct_capacity Percent, switches Count, voluntary Count, involuntary Count,
        switches_per_s Rate, migrations Count, lock_ratio Ratio, waiting_ratio Ratio,
    } },
    shapes: &[&BY_COMMAND, &BY_PROCESS, &BY_THREAD, &BY_CGROUP],
    data_only: DataOnly::These(&["pid_inferred"]),
    sort: "combined_ns",
};
const _: () = VERB.check();

const BY_COMMAND: Shape = Shape { without: &["pid", "pid_inferred", "tid", "cgroup"], text: TEXT };
const BY_PROCESS: Shape = Shape { without: &["tid", "processes"], text: TEXT };
const BY_THREAD: Shape = Shape { without: &["processes", "threads"], text: TEXT };

const BY_CGROUP: Shape =
    Shape { without: &["comm", "kthread", "pid", "pid_inferred", "tid"], text: TEXT };

/// The columns that identify the row.
const PROCESS: &[&str] = &["comm", "kthread", "pid", "tid", "processes", "threads"];

const TEXT: &[Layout] = &[block(
    "Processing time",
    &[
        field("Processing total ({})", "Combined", Key("combined_ns"), 0),
        field("Processing total ({})", "Appl", Key("app_ns"), 0),
        field("Processing total ({})", "Kernel", Key("kernel_ns"), 0),
        field("Percent of total", "Combined", Key("pct_capacity"), 0),
        field("Percent of total", "Appl", Share("app_ns"), 3),
        field("Percent of total", "Kernel", Share("kernel_ns"), 3),
        only(Verbose, field("", "interrupted", Key("interrupted_ns"), 10)),
        field("waiting ({})", "runnable", Key("runnable_ns"), 1),
        field("waiting ({})", "blocked", Key("blocked_ns"), 2),
        field("switches", "all", Key("switches"), 4),
        only(Verbose, field("switches", "per s", Key("switches_per_s"), 9)),
        field("switches", "vol", Key("voluntary"), 8),
        field("switches", "invol", Key("involuntary"), 7),
        field("", "migr", Key("migrations"), 5),
        only(Known, field("", "lock ratio", Key("lock_ratio"), 7)),
        only(Known, field("", "wait ratio", Key("waiting_ratio"), 7)),
        field("", "control group", Words(&["cgroup"], words::cgroup), 6),
        field("", "process", Words(PROCESS, words::process), 0),
    ],
)];

/// `procs`, most CPU time first.
pub fn procs(rows: &[ProcRow], by: Group) -> Table {
    let shape = match by {
        Group::Command | Group::System => &BY_COMMAND,
        Group::Process => &BY_PROCESS,
        Group::Thread => &BY_THREAD,
        Group::Cgroup => &BY_CGROUP,
    };
    VERB.table(rows, shape)
}

/// `procs --by thread`, of which only the first `entries` are kept.
pub fn first_procs(rows: impl Iterator<Item = ProcRow>, entries: Option<usize>) -> Table {
    VERB.table_of(rows, &BY_THREAD, entries)
}
