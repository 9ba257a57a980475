//! `holdup cpus`.

use super::{DataOnly, Shape, Verb, columns};
use crate::table::Table;
use crate::table::layout::{Layout, Show::*, block, field};
use holdup_passes::CpuRow;

pub(crate) const VERB: Verb<CpuRow> = Verb {
    name: "cpus",
    columns: columns! { CpuRow {
        cpu Id, user_ns Ns, kernel_ns Ns, kthread_ns Ns, irq_ns Ns, softirq_ns Ns, idle_ns Ns,
        iowait_ns Ns, unaccounted_ns Ns, wall_ns Ns, switches Count, switches_per_s Rate,
        irqs Count,
    } },
    shapes: &[&CPUS],
    data_only: DataOnly::These(&[]),
    sort: "cpu",
};
const _: () = VERB.check();

const CPUS: Shape = Shape { without: &[], text: TEXT };

const TEXT: &[Layout] = &[
    Layout {
        total: true,
        ..block(
            "CPUs, in per cent of wall time",
            &[
                field("", "cpu", Key("cpu"), 0),
                field("busy", "user", Share("user_ns"), 0),
                field("busy", "kernel", Share("kernel_ns"), 0),
                field("busy", "kthread", Share("kthread_ns"), 0),
                field("busy", "irq", Share("irq_ns"), 0),
                field("busy", "softirq", Share("softirq_ns"), 0),
                field("idle", "all", Share("idle_ns"), 0),
                field("idle", "iowait", Share("iowait_ns"), 1),
                field("", "unacc", Share("unaccounted_ns"), 0),
                field("", "switches/s", Key("switches_per_s"), 2),
                field("", "irqs", Key("irqs"), 3),
            ],
        )
    },
    Layout {
        total: true,
        ..block(
            "CPUs: time ({})",
            &[
                field("", "cpu", Key("cpu"), 0),
                field("busy", "user", Key("user_ns"), 0),
                field("busy", "kernel", Key("kernel_ns"), 0),
                field("busy", "kthread", Key("kthread_ns"), 0),
                field("busy", "irq", Key("irq_ns"), 0),
                field("busy", "softirq", Key("softirq_ns"), 0),
                field("idle", "all", Key("idle_ns"), 0),
                field("idle", "iowait", Key("iowait_ns"), 1),
                field("", "unacc", Key("unaccounted_ns"), 0),
                field("", "wall", Key("wall_ns"), 3),
                field("", "switches", Key("switches"), 4),
            ],
        )
    },
];

/// `cpus`, by number.
pub fn cpus(rows: &[CpuRow]) -> Table {
    VERB.table(rows, &CPUS)
}
