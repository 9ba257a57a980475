//! `holdup locks`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, When::*, block, field, only};
use holdup_passes::{LockBy, LockRow};

pub(crate) const VERB: Verb<LockRow> = Verb {
    name: "locks",
    columns: columns! { LockRow {
        comm Text, tid Id, cgroup Text, address Address, name Text, likely Text,
        lock_type "type" Text, caller Text,
        contended Count, wait_total_ns Ns, wait_min_ns Ns, wait_avg_ns Ns, wait_max_ns Ns,
        wait_p50_ns Ns, wait_p99_ns Ns, spin_ns Ns, runnable_ns Ns, block_ns Ns, slept Count,
        slept_wait_ns Ns, open Count, open_ns Ns, first_ns Time, last_ns Time, max_waiters Count,
        contended_per_s Rate, pct_wait Percent, acquired Count, acquired_per_s Rate,
        miss_rate Ratio, hold_total_ns Ns, hold_min_ns Ns, hold_avg_ns Ns, hold_max_ns Ns,
        utilization Ratio, block_pct Percent, sleep_pct Percent, trylocks Count, reads Count,
        recursion Count, preempted_holds Count, preempted_hold_ns Ns, slept_holds Count,
        slept_hold_ns Ns, holder Id, holder_comm Text, holder_ns Ns, pct_holder Percent,
        holders Count, holders_did List, con_bounces Count, acq_bounces Count, code Text,
    } },
    shapes: &[&BY_LOCK, &BY_HOLDER, &BY_CALLER, &BY_TYPE, &BY_TASK],
    // Some of these show in the columns of other tools (`--view`).
    data_only: DataOnly::These(&[
        "wait_p50_ns",
        "slept",
        "slept_wait_ns",
        "open_ns",
        "first_ns",
        "last_ns",
        "acquired_per_s",
        "hold_min_ns",
        "block_pct",
        "sleep_pct",
        "reads",
    ]),
    sort: "wait_total_ns,contended,acquired",
};
const _: () = VERB.check();

/// Omits these columns, and those of holders.
macro_rules! without {
    ($($key:literal),*) => {
        &[$($key,)* "holder", "holder_comm", "holder_ns", "pct_holder", "holders"]
    };
}

const BY_LOCK: Shape =
    Shape { without: without!["comm", "tid", "cgroup", "caller"], text: LOCK_TEXT };
/// For traces that show which thread held a lock while others waited.
const BY_HOLDER: Shape = Shape { without: &["comm", "tid", "cgroup", "caller"], text: HOLDER_TEXT };
const BY_CALLER: Shape = Shape {
    without: without!["comm", "tid", "cgroup", "address", "name", "likely", "code", "holders_did"],
    text: CALLER_TEXT,
};
const BY_TYPE: Shape = Shape {
    without: without![
        "comm",
        "tid",
        "cgroup",
        "address",
        "name",
        "likely",
        "caller",
        "code",
        "holders_did"
    ],
    text: TYPE_TEXT,
};
const BY_TASK: Shape = Shape {
    without: without!["address", "name", "likely", "type", "caller", "code", "holders_did"],
    text: TASK_TEXT,
};

/// The columns of every shape, then those that identify the row.
macro_rules! lock_layout {
    ($title:literal, $($last:expr),+) => {
        &[block(
            $title,
            &[
                field("", "contended", Key("contended"), 0),
                only(Known, field("", "per s", Key("contended_per_s"), 6)),
                field("wait", "total", Key("wait_total_ns"), 0),
                only(Known, field("wait", "%", Key("pct_wait"), 0)),
                only(Verbose, field("wait", "min", Key("wait_min_ns"), 10)),
                field("wait", "avg", Key("wait_avg_ns"), 1),
                field("wait", "max", Key("wait_max_ns"), 0),
                only(Known, field("wait", "p99", Key("wait_p99_ns"), 3)),
                field("of wait", "spin", Key("spin_ns"), 2),
                only(Verbose, field("of wait", "runnable", Key("runnable_ns"), 10)),
                field("of wait", "blocked", Key("block_ns"), 2),
                only(Verbose, field("", "open", Key("open"), 10)),
                only(Verbose, field("", "waiters", Key("max_waiters"), 10)),
                only(Known, field("", "acquired", Key("acquired"), 4)),
                only(Known, field("", "miss rate", Key("miss_rate"), 4)),
                only(Known, field("hold", "total", Key("hold_total_ns"), 5)),
                only(Known, field("hold", "avg", Key("hold_avg_ns"), 5)),
                only(Known, field("hold", "max", Key("hold_max_ns"), 5)),
                only(Known, field("hold", "util", Key("utilization"), 5)),
                only(Verbose, field("while held", "preempted", Key("preempted_holds"), 10)),
                only(Verbose, field("while held", "for", Key("preempted_hold_ns"), 10)),
                only(Verbose, field("while held", "slept", Key("slept_holds"), 10)),
                only(Verbose, field("while held", "for", Key("slept_hold_ns"), 10)),
                only(Verbose, field("", "trylocks", Key("trylocks"), 10)),
                only(Verbose, field("", "recursion", Key("recursion"), 10)),
                only(Verbose, field("bounces", "con", Key("con_bounces"), 10)),
                only(Verbose, field("bounces", "acq", Key("acq_bounces"), 10)),
                $($last),+
            ],
        )]
    };
}

const LOCK_TEXT: &[Layout] = lock_layout!(
    "Kernel locks",
    only(Known, field("", "type", Key("type"), 0)),
    field("", "lock", Words(&["address", "name", "likely"], words::lock), 0),
    field("", "holders did", Words(&["holders_did"], words::holders_did), 4),
    only(Known, field("", "asked for in", Key("code"), 0))
);
const HOLDER_TEXT: &[Layout] = lock_layout!(
    "Kernel locks",
    field("held while others waited", "for", Key("holder_ns"), 3),
    field("held while others waited", "% of wait", Key("pct_holder"), 3),
    field(
        "held while others waited",
        "most by",
        Words(&["holder", "holder_comm"], words::lock_holder),
        3
    ),
    only(Verbose, field("held while others waited", "threads", Key("holders"), 10)),
    only(Known, field("", "type", Key("type"), 0)),
    field("", "lock", Words(&["address", "name", "likely"], words::lock), 0),
    field("", "holders did", Words(&["holders_did"], words::holders_did), 4),
    only(Known, field("", "asked for in", Key("code"), 0))
);
const CALLER_TEXT: &[Layout] = lock_layout!(
    "Kernel locks, by caller",
    field("", "type", Key("type"), 0),
    field("", "caller", Key("caller"), 0)
);
const TYPE_TEXT: &[Layout] =
    lock_layout!("Kernel locks, by type", field("", "type", Key("type"), 0));
const TASK_TEXT: &[Layout] = lock_layout!(
    "Kernel locks, by waiting thread",
    field("", "tid", Key("tid"), 0),
    field("", "control group", Words(&["cgroup"], words::cgroup), 6),
    field("", "thread", Key("comm"), 0)
);

/// `locks`, most waiting first.
pub fn locks(rows: &[LockRow], by: LockBy) -> Table {
    let shape = match by {
        LockBy::Lock | LockBy::Class if rows.iter().any(|row| row.holders.is_some()) => &BY_HOLDER,
        LockBy::Lock | LockBy::Class => &BY_LOCK,
        LockBy::Caller => &BY_CALLER,
        LockBy::Type => &BY_TYPE,
        LockBy::Task => &BY_TASK,
    };
    VERB.table(rows, shape)
}
