//! `sar`, part of `holdup summary`: the first screen of sar, in its own abbreviations.

use super::{DataOnly, Shape, Verb, columns};
use crate::table::Table;
use crate::table::layout::{Layout, Show::Key, block, field};
use holdup_passes::SarRow;

pub(crate) const VERB: Verb<SarRow> = Verb {
    name: "sar",
    columns: columns! { SarRow {
        cpu Id, pct_usr Percent, pct_sys Percent, pct_wio Percent, pct_idle Percent,
        pct_unaccounted Percent, scall_per_s Rate, sread_per_s Rate, swrit_per_s Rate,
        rchar_per_s Rate, wchar_per_s Rate, fork_per_s Rate, exec_per_s Rate, cswch_per_s Rate,
        runq_sz Ratio, pct_runocc Percent, sema_per_s Rate, msg_per_s Rate, fault_per_s Rate,
    } },
    shapes: &[&PER_CPU, &SYSTEM],
    // The number of the CPU begins every line.
    data_only: DataOnly::These(&["cpu"]),
    sort: "",
};
const _: () = VERB.check();

const PER_CPU: Shape = Shape { without: &[], text: LINES };
const SYSTEM: Shape = Shape { without: &["cpu"], text: LINES };

/// One block per line of sar.
const LINES: &[Layout] = &[
    block(
        "",
        &[
            field("", "%usr", Key("pct_usr"), 0),
            field("", "%sys", Key("pct_sys"), 0),
            field("", "%wio", Key("pct_wio"), 0),
            field("", "%idle", Key("pct_idle"), 0),
            field("", "%unacc", Key("pct_unaccounted"), 0),
        ],
    ),
    block(
        "",
        &[
            field("", "scall/s", Key("scall_per_s"), 0),
            field("", "sread/s", Key("sread_per_s"), 0),
            field("", "swrit/s", Key("swrit_per_s"), 0),
            field("", "fork/s", Key("fork_per_s"), 0),
            field("", "exec/s", Key("exec_per_s"), 0),
            field("", "rchar/s", Key("rchar_per_s"), 0),
            field("", "wchar/s", Key("wchar_per_s"), 0),
        ],
    ),
    block(
        "",
        &[
            field("", "cswch/s", Key("cswch_per_s"), 0),
            field("", "runq-sz", Key("runq_sz"), 0),
            field("", "%runocc", Key("pct_runocc"), 0),
            field("", "msg/s", Key("msg_per_s"), 0),
            field("", "sema/s", Key("sema_per_s"), 0),
            field("", "fault/s", Key("fault_per_s"), 0),
        ],
    ),
];

/// `sar`, in the order given: the system, then its CPUs.
pub fn sar(rows: &[SarRow], per_cpu: bool) -> Table {
    VERB.table(rows, if per_cpu { &PER_CPU } else { &SYSTEM })
}
