//! `holdup fleet`: its tables.

use super::{DataOnly, Def, Shape, Verb, columns};
use crate::fleet::{CostRow, FailedRow, ServiceRow, VerdictRow};
use crate::table::layout::{Field, Layout, Show::*, When::*, block, field, only};
use crate::table::{Line, Table};

pub(crate) const VERDICTS: Verb<VerdictRow> = Verb {
    name: "verdicts",
    columns: columns! { VerdictRow {
        verdict Text, traces Count, pct Percent, hosts Count, lost_cpu_ns Ns, first_seen Text,
        last_seen Text, worst Text,
    } },
    shapes: &[&VERDICT_SHAPE],
    data_only: DataOnly::These(&[]),
    sort: "traces,lost_cpu_ns",
};
const _: () = VERDICTS.check();

const VERDICT_SHAPE: Shape = Shape {
    without: &[],
    text: &[block(
        "Verdicts",
        &[
            field("", "traces", Key("traces"), 0),
            field("", "%", Key("pct"), 2),
            field("", "hosts", Key("hosts"), 1),
            field("lost CPU", "time", Key("lost_cpu_ns"), 0),
            field("", "first seen", Words(&["first_seen"], first), 3),
            field("", "last seen", Words(&["last_seen"], last), 3),
            field("", "verdict", Key("verdict"), 0),
            field("", "worst in", Key("worst"), 4),
        ],
    )],
};

const COSTS: &[Def<CostRow>] = columns! { CostRow {
    name Text, cpu_ns Ns, wait_ns Ns, times Count, traces Count, hosts Count, first_seen Text,
    last_seen Text, worst Text,
} };

/// The table of one kind of costs: its key, its order, its title, and the headings of the CPU time,
/// the count and the names.
macro_rules! costs {
    ($verb:ident $shape:ident $key:literal $sort:literal
        $title:literal $cpu:literal $times:literal $what:literal) => {
        pub(crate) const $verb: Verb<CostRow> = Verb {
            name: $key,
            columns: COSTS,
            shapes: &[&$shape],
            data_only: DataOnly::These(&[]),
            sort: $sort,
        };
        const _: () = $verb.check();
        const $shape: Shape = Shape {
            without: &[],
            text: &[Layout {
                hide_empty: true,
                ..block(
                    $title,
                    &[
                        field("CPU time", $cpu, Key("cpu_ns"), 0),
                        only(Known, field("asleep", "in it", Key("wait_ns"), 4)),
                        field("", $times, Key("times"), 5),
                        field("", "traces", Key("traces"), 0),
                        field("", "hosts", Key("hosts"), 1),
                        field("", "first seen", Words(&["first_seen"], first), 3),
                        field("", "last seen", Words(&["last_seen"], last), 3),
                        field("", $what, Key("name"), 0),
                        only(Verbose, field("", "worst in", Key("worst"), 10)),
                    ],
                )
            }],
        };
    };
}

costs! { OBJECTS OBJECT_SHAPE "objects" "cpu_ns,wait_ns"
"What threads waited for while CPUs were idle" "idle for it" "waits" "object" }
costs! { LOCKS LOCK_SHAPE "locks" "cpu_ns,wait_ns"
"Kernel locks that threads waited for" "spinning" "waits" "lock" }
costs! { SYSCALLS SYSCALL_SHAPE "syscalls" "cpu_ns,wait_ns"
"System calls" "in them" "calls" "call" }

pub(crate) const SERVICES: Verb<ServiceRow> = Verb {
    name: "services",
    columns: columns! { ServiceRow {
        name Text, denied_ns Ns, ready_ns Ns, throttled_ns Ns, used_ns Ns, groups Count,
        traces Count, hosts Count, first_seen Text, last_seen Text, worst Text,
    } },
    shapes: &[&SERVICE_SHAPE],
    data_only: DataOnly::These(&[]),
    sort: "denied_ns,used_ns",
};
const _: () = SERVICES.check();

const SERVICE_SHAPE: Shape = Shape {
    without: &[],
    text: &[Layout {
        hide_empty: true,
        ..block(
            "Services and containers: CPU time that they wanted but did not get",
            &[
                field("CPU time", "denied", Key("denied_ns"), 0),
                field("CPU time", "used", Key("used_ns"), 0),
                only(Verbose, field("denied", "others ran", Key("ready_ns"), 9)),
                field("denied", "by a quota", Key("throttled_ns"), 2),
                only(Verbose, field("", "groups", Key("groups"), 9)),
                field("", "traces", Key("traces"), 0),
                field("", "hosts", Key("hosts"), 1),
                field("", "first seen", Words(&["first_seen"], first), 3),
                field("", "last seen", Words(&["last_seen"], last), 3),
                field("", "control group", Key("name"), 0),
                only(Verbose, field("", "worst in", Key("worst"), 10)),
            ],
        )
    }],
};

pub(crate) const FAILED: Verb<FailedRow> = Verb {
    name: "failed",
    columns: columns! { FailedRow { path Text, error Text } },
    shapes: &[&FAILED_SHAPE],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = FAILED.check();

const FAILED_FIELDS: &[Field] =
    &[field("", "file", Key("path"), 0), field("", "error", Key("error"), 0)];

const FAILED_SHAPE: Shape =
    Shape { without: &[], text: &[block("Could not be read", FAILED_FIELDS)] };

fn first(line: Line<'_>) -> String {
    minute(line.text("first_seen"))
}

fn last(line: Line<'_>) -> String {
    minute(line.text("last_seen"))
}

/// `2026-11-23 02:26`: without seconds, which do not matter in a ranking.
fn minute(time: &str) -> String {
    time.get(..16).unwrap_or(time).replace('T', " ")
}

/// The verdicts and how often they occur.
pub fn fleet_verdicts(rows: &[VerdictRow]) -> Table {
    VERDICTS.table(rows, &VERDICT_SHAPE)
}

/// Objects that threads waited for, the costliest first.
pub fn fleet_objects(rows: &[CostRow]) -> Table {
    OBJECTS.table(rows, &OBJECT_SHAPE)
}

/// Locks of the kernel, those that cost most first.
pub fn fleet_locks(rows: &[CostRow]) -> Table {
    LOCKS.table(rows, &LOCK_SHAPE)
}

/// System calls, those that cost most first.
pub fn fleet_syscalls(rows: &[CostRow]) -> Table {
    SYSCALLS.table(rows, &SYSCALL_SHAPE)
}

/// Services and containers, those with most denied CPU time first.
pub fn fleet_services(rows: &[ServiceRow]) -> Table {
    SERVICES.table(rows, &SERVICE_SHAPE)
}

/// Traces that could not be read.
pub fn fleet_failed(rows: &[FailedRow]) -> Table {
    FAILED.table(rows, &FAILED_SHAPE)
}
