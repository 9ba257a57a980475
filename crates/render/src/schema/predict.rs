//! `holdup predict`.

use super::{DataOnly, PLAIN, Shape, Verb, columns};
use crate::table::layout::{Layout, Show::*, When::Known, block, field, only};
use crate::table::{Cell, Line, Table, ToCell};
use crate::text::escape;
use holdup_diagnose::predict::{Basis, PredictRow};

impl ToCell for Basis {
    fn to_cell(&self) -> Cell {
        Cell::Text(self.id().to_owned())
    }
}

pub(crate) const VERB: Verb<PredictRow> = Verb {
    name: "predict",
    columns: columns! { PredictRow {
        object Text, pid Id, comm Text, cpus Id, threads Count, demand Ratio, basis Text,
        hold_ns Ns, wait_ns Ns, throughput_per_s Rate, measured_effective_cpus Ratio,
        effective_cpus Ratio, lost_cpus Ratio, utilization Ratio, degradation_pct Percent,
        saturation_cpus Ratio,
    } },
    shapes: &[&PREDICT, &PLAIN],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = VERB.check();

const PREDICT: Shape = Shape { without: &[], text: TEXT };

const TEXT: &[Layout] = &[block(
    "CPUs that work, and CPUs that wait for a lock",
    &[
        field("", "CPUs", Key("cpus"), 0),
        field("", "threads", Key("threads"), 5),
        field("working CPUs", "measured", Key("measured_effective_cpus"), 0),
        field("working CPUs", "predicted", Key("effective_cpus"), 0),
        field("lost CPUs", "", Key("lost_cpus"), 2),
        field("lost CPUs", "%", Key("degradation_pct"), 0),
        field("", "lock busy", Key("utilization"), 4),
        field("demand", "of a CPU", Key("demand"), 0),
        field("demand", "from", Key("basis"), 1),
        field("", "full at", Key("saturation_cpus"), 1),
        only(Known, field("acquisitions", "per s", Key("throughput_per_s"), 3)),
        only(Known, field("acquisitions", "hold", Key("hold_ns"), 6)),
        only(Known, field("acquisitions", "lose", Key("wait_ns"), 7)),
        field("", "lock", Words(&["object", "comm", "pid"], object), 0),
    ],
)];

/// `mutex 0x7f00, httpd (4711)`.
fn object(l: Line<'_>) -> String {
    let mut words = escape(l.text("object")).into_owned();
    if !l.text("comm").is_empty() {
        words += &format!(", {}", escape(l.text("comm")));
    }
    if let Some(pid) = l.int("pid") {
        words += &format!(" ({pid})");
    }
    words
}

/// `predict`, in the order given: all locks together, then the costliest first.
pub fn predict(rows: &[PredictRow]) -> Table {
    VERB.table(rows, &PREDICT)
}
