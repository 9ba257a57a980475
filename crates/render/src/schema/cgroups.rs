//! `holdup ledger --by cgroup`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::layout::{Layout, Show::*, When::*, block, field, only};
use crate::table::{Cell, Line, Table, ToCell};
use holdup_passes::{CgroupRow, Rival};

pub(crate) const VERB: Verb<CgroupRow> = Verb {
    name: "cgroups",
    columns: columns! { CgroupRow {
        kind Text, cgroup Text, processes Count, threads Count, used_ns Ns,
        pct_capacity Percent, wanted_ns Ns, ready_ns Ns, behind List, throttled_ns Ns,
        throttled_at_least Flag, throttled_idle_ns Ns, limit_cpus Ratio, periods Count,
        throttled_periods Count,
        stopped_ns Ns, path Text,
    } },
    shapes: &[&SHAPE],
    data_only: DataOnly::These(&["path", "throttled_at_least"]),
    sort: "used_ns",
};
const _: () = VERB.check();

const SHAPE: Shape = Shape { without: &[], text: TEXT };

const TEXT: &[Layout] = &[Layout {
    total: true,
    ..block(
        "CPU time that each control group used and wanted",
        &[
            field("CPU time", "used", Key("used_ns"), 0),
            field("CPU time", "%", Key("pct_capacity"), 0),
            field("CPU time", "wanted", Key("wanted_ns"), 1),
            field("ready without a CPU", "total", Key("ready_ns"), 0),
            field("throttled by its quota", "threads", Key("throttled_ns"), 0),
            only(
                Verbose,
                field("throttled by its quota", "idle CPUs", Key("throttled_idle_ns"), 9),
            ),
            only(Known, field("cpu.max, cpu.stat", "CPUs", Key("limit_cpus"), 2)),
            only(Verbose, field("cpu.max, cpu.stat", "periods", Key("periods"), 9)),
            only(Known, field("cpu.max, cpu.stat", "used up", Key("throttled_periods"), 3)),
            only(Known, field("cpu.max, cpu.stat", "stopped", Key("stopped_ns"), 3)),
            field("", "threads", Key("threads"), 5),
            only(Verbose, field("", "processes", Key("processes"), 9)),
            field("", "control group", Words(&["kind", "cgroup"], whose), 0),
            field("", "ready behind", Words(&["behind"], behind), 4),
        ],
    )
}];

/// A group's name; time that belongs to no group is in brackets.
fn whose(l: Line<'_>) -> String {
    match l.text("kind") {
        "cgroup" => words::cgroup(l),
        // The total row has no group.
        "" => String::new(),
        kind => format!("[{kind}]"),
    }
}

/// Most groups shown in a line.
const RIVALS: usize = 3;

/// `a.service 40 ms, b.service 2 ms`.
fn behind(l: Line<'_>) -> String {
    let Some(Cell::List(list)) = l.get("behind") else { return String::new() };
    let one = |record: &Vec<(&'static str, Cell)>| {
        let get = |key| record.iter().find(|(k, _)| *k == key).map(|(_, c)| c);
        let name = match get("cgroup").map_or("", Cell::text) {
            "" => "n/a".to_owned(),
            name => crate::text::escape(name).into_owned(),
        };
        let ns = get("ns").and_then(Cell::int).unwrap_or(0);
        format!("{name} {}", crate::text::units::duration(ns))
    };
    let mut words: Vec<String> = list.iter().take(RIVALS).map(one).collect();
    if list.len() > RIVALS {
        words.push(format!("{} more", list.len() - RIVALS));
    }
    words.join(", ")
}

impl ToCell for Vec<Rival> {
    fn to_cell(&self) -> Cell {
        let record = |r: &Rival| {
            // A field that is not a column does not compile here.
            let Rival { cgroup, ns } = r;
            vec![("cgroup", cgroup.to_cell()), ("ns", ns.to_cell())]
        };
        Cell::List(self.iter().map(record).collect())
    }
}

/// `ledger --by cgroup`, most CPU time first.
pub fn cgroups(rows: &[CgroupRow]) -> Table {
    let mut table = VERB.table(rows, &SHAPE);
    let at_least = |row: &&CgroupRow| row.throttled_at_least == Some(true);
    let names: Vec<&str> =
        rows.iter().filter(at_least).filter_map(|row| row.cgroup.as_deref()).collect();
    if let [first, rest @ ..] = names.as_slice() {
        let more = if rest.is_empty() { "" } else { " and other groups" };
        table.notes.push(format!(
            "{first}{more}: the throttled time is a minimum, because throttling is visible only \
             where a CPU goes idle; the maximum includes the time for which threads were ready \
             without a CPU. holdup record, run as root, reads cpu.stat, which counts all throttled \
             time"
        ));
    }
    table
}
