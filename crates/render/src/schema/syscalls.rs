//! `holdup syscalls`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, When::*, block, field, only};
use holdup_passes::{Group, SyscallRow};

pub(crate) const VERB: Verb<SyscallRow> = Verb {
    name: "syscalls",
    columns: columns! { SyscallRow {
        cgroup Text, comm Text, pid Id, tid Id, name Text, nr Id, count Count, errors Count,
        total_ns Ns, cpu_ns Ns, interrupted_ns Ns, runnable_ns Ns, blocked_ns Ns,
        min_ns Ns (|r: &SyscallRow| returned(r, r.min_ns)),
        avg_ns Ns (|r: &SyscallRow| returned(r, r.avg_ns)),
        max_ns Ns (|r: &SyscallRow| returned(r, r.max_ns)),
        p50_ns Ns, p99_ns Ns, pending Count, pending_ns Ns, returned_only Count,
        pct_capacity Percent, errnos Map, code Text,
    } },
    shapes: &[&SYSTEM, &PROCESS, &THREAD, &BY_CGROUP],
    data_only: DataOnly::These(&["nr"]),
    sort: "total_ns",
};
const _: () = VERB.check();

const SYSTEM: Shape = Shape { without: &["cgroup", "comm", "pid", "tid"], text: TEXT };
const PROCESS: Shape = Shape { without: &["cgroup", "tid", "code"], text: TEXT };
const THREAD: Shape = Shape { without: &["code"], text: TEXT };
const BY_CGROUP: Shape = Shape { without: &["comm", "pid", "tid", "code"], text: TEXT };

/// The columns of the calls' thread or process.
const OWNER: &[&str] = &["comm", "pid", "tid"];

const TEXT: &[Layout] = &[
    block(
        "System calls",
        &[
            field("", "count", Key("count"), 0),
            field("", "errors", Key("errors"), 0),
            field("CPU time", "total", Key("cpu_ns"), 0),
            field("CPU time", "%", Key("pct_capacity"), 0),
            field("CPU time", "avg", Mean("cpu_ns", "count"), 7),
            field("elapsed", "total", Key("total_ns"), 0),
            field("elapsed", "min", Key("min_ns"), 8),
            field("elapsed", "avg", Key("avg_ns"), 3),
            field("elapsed", "max", Key("max_ns"), 2),
            only(Verbose, field("elapsed", "p50", Key("p50_ns"), 10)),
            only(Verbose, field("elapsed", "p99", Key("p99_ns"), 10)),
            field("of elapsed", "runnable", Key("runnable_ns"), 5),
            field("of elapsed", "blocked", Key("blocked_ns"), 1),
            only(Verbose, field("of elapsed", "interrupted", Key("interrupted_ns"), 10)),
            field("", "pending", Key("pending"), 6),
            only(Verbose, field("", "returned only", Key("returned_only"), 10)),
            field("", "system call", Words(&["name"], words::syscall), 0),
            field("", "control group", Words(&["cgroup"], words::cgroup), 0),
            field("", "process", Words(OWNER, words::process), 0),
            only(Known, field("", "called in", Key("code"), 0)),
        ],
    ),
    Layout {
        filter: |l| l.int("pending").unwrap_or(0) > 0,
        hide_empty: true,
        ..block(
            "Pending system calls (they had not returned at the end of the trace)",
            &[
                field("", "pending", Key("pending"), 0),
                field("", "elapsed so far", Key("pending_ns"), 0),
                field("", "system call", Words(&["name"], words::syscall), 0),
                field("", "control group", Words(&["cgroup"], words::cgroup), 0),
                field("", "process", Words(OWNER, words::process), 0),
            ],
        )
    },
    Layout {
        filter: |l| l.int("errors").unwrap_or(0) > 0,
        hide_empty: true,
        ..block(
            "Errors returned",
            &[
                only(Verbose, field("", "errors", Key("errors"), 0)),
                only(Verbose, field("", "system call", Words(&["name"], words::syscall), 0)),
                only(Verbose, field("", "control group", Words(&["cgroup"], words::cgroup), 0)),
                only(Verbose, field("", "process", Words(OWNER, words::process), 0)),
                only(Verbose, field("", "of these", Key("errnos"), 0)),
            ],
        )
    },
];

/// A call that never returned has no shortest time; 0 would be wrong.
fn returned(row: &SyscallRow, ns: u64) -> Option<u64> {
    (row.count > 0).then_some(ns)
}

/// `syscalls`, longest total first.
pub fn syscalls(rows: &[SyscallRow], by: Group) -> Table {
    let shape = match by {
        Group::System | Group::Command => &SYSTEM,
        Group::Process => &PROCESS,
        Group::Thread => &THREAD,
        Group::Cgroup => &BY_CGROUP,
    };
    VERB.table(rows, shape)
}
