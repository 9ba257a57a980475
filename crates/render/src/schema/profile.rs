//! `holdup profile`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::layout::{Field, Show::*, block, field};
use crate::table::{Cell, Line, Table};
use crate::text::escape;
use holdup_profile::{By, ProfileRow, Tree, TreeRow};

pub(crate) const VERB: Verb<ProfileRow> = Verb {
    name: "profile",
    columns: columns! { ProfileRow {
        cgroup Text, comm Text, pid Id, tid Id, cpu Id, dso Text, symbol Text, inlined Flag,
        line Text, samples Count, kernel_samples Count, run_ns Ns, pct Percent, total_samples Count,
        total_pct Percent,
    } },
    shapes: &[
        &FUNCTION,
        &CHILDREN,
        &THREAD,
        &PROCESS,
        &DSO,
        &LINE,
        &CPU,
        &CGROUP,
        &STAYS,
        &CGROUP_STAYS,
    ],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = VERB.check();

/// `profile --tree`.
pub(crate) const TREE: Verb<TreeRow> = Verb {
    name: "profile",
    columns: columns! { TreeRow {
        depth Count, comm Text, dso Text, symbol Text, inlined Flag, samples Count,
        total_samples Count, total_pct Percent,
    } },
    shapes: &[&TOP_DOWN, &BOTTOM_UP],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = TREE.check();

const FUNCTION: Shape = Shape {
    without: &[
        "cgroup",
        "cpu",
        "inlined",
        "line",
        "kernel_samples",
        "run_ns",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU samples by function", FUNCTION_TEXT)],
};
const CHILDREN: Shape = Shape {
    without: &["cgroup", "cpu", "line", "kernel_samples", "run_ns"],
    text: &[block("CPU samples by function, callees included", CHILDREN_TEXT)],
};
const THREAD: Shape = Shape {
    without: &[
        "cgroup",
        "cpu",
        "dso",
        "symbol",
        "inlined",
        "line",
        "run_ns",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU samples by thread", THREAD_TEXT)],
};
const PROCESS: Shape = Shape {
    without: &[
        "cgroup",
        "tid",
        "cpu",
        "dso",
        "symbol",
        "inlined",
        "line",
        "run_ns",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU samples by process", THREAD_TEXT)],
};
const DSO: Shape = Shape {
    without: &[
        "cgroup",
        "comm",
        "pid",
        "tid",
        "cpu",
        "symbol",
        "inlined",
        "line",
        "run_ns",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU samples by file of code", DSO_TEXT)],
};
const LINE: Shape = Shape {
    without: &[
        "cgroup",
        "comm",
        "pid",
        "tid",
        "cpu",
        "inlined",
        "kernel_samples",
        "run_ns",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU samples by source line", LINE_TEXT)],
};
const CPU: Shape = Shape {
    without: &[
        "cgroup",
        "comm",
        "pid",
        "tid",
        "dso",
        "symbol",
        "inlined",
        "line",
        "run_ns",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU samples by CPU", CPU_TEXT)],
};
/// No samples: how long threads had a CPU.
const STAYS: Shape = Shape {
    without: &["cgroup", "cpu", "inlined", "line", "kernel_samples", "total_samples", "total_pct"],
    text: &[block("CPU time by thread ({})", STAYS_TEXT)],
};

const CGROUP: Shape = Shape {
    without: &[
        "comm",
        "pid",
        "tid",
        "cpu",
        "dso",
        "symbol",
        "inlined",
        "line",
        "run_ns",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU samples by control group", CGROUP_TEXT)],
};
const CGROUP_STAYS: Shape = Shape {
    without: &[
        "comm",
        "pid",
        "tid",
        "cpu",
        "dso",
        "symbol",
        "inlined",
        "line",
        "kernel_samples",
        "total_samples",
        "total_pct",
    ],
    text: &[block("CPU time by control group ({})", CGROUP_STAYS_TEXT)],
};

const TOP_DOWN: Shape = Shape {
    without: &[],
    text: &[block("CPU samples of functions and their callees", TOP_DOWN_TEXT)],
};
/// The ends of the chains upwards mean nothing.
const BOTTOM_UP: Shape = Shape {
    without: &["samples"],
    text: &[block("CPU samples of functions and their callers", BOTTOM_UP_TEXT)],
};

const SAMPLES: Field = field("", "samples", Key("samples"), 0);
const PCT: Field = field("", "%", Key("pct"), 0);
const IN_KERNEL: Field = field("", "in kernel", Key("kernel_samples"), 1);
const THREAD_NAME: Field = field("", "process", Words(&["comm", "pid", "tid"], words::process), 0);

const FUNCTION_TEXT: &[Field] = &[
    SAMPLES,
    PCT,
    THREAD_NAME,
    field("", "dso", Words(&["dso"], dso), 0),
    field("", "symbol", Words(&["symbol"], symbol), 0),
];
const TOTAL: Field = field("", "in all", Key("total_samples"), 0);
const TOTAL_PCT: Field = field("", "% in all", Key("total_pct"), 0);
const CHILDREN_TEXT: &[Field] = &[
    TOTAL,
    TOTAL_PCT,
    SAMPLES,
    PCT,
    THREAD_NAME,
    field("", "dso", Words(&["dso"], dso), 0),
    field("", "symbol", Words(&["symbol", "inlined"], nested_symbol), 0),
];
const LEVEL: Field = field("", "", Words(&["depth", "comm", "dso", "symbol", "inlined"], level), 0);
const TOP_DOWN_TEXT: &[Field] = &[TOTAL, TOTAL_PCT, SAMPLES, LEVEL];
const BOTTOM_UP_TEXT: &[Field] = &[TOTAL, TOTAL_PCT, LEVEL];
const THREAD_TEXT: &[Field] = &[SAMPLES, PCT, IN_KERNEL, THREAD_NAME];
const DSO_TEXT: &[Field] = &[SAMPLES, PCT, IN_KERNEL, field("", "dso", Words(&["dso"], dso), 0)];
const LINE_TEXT: &[Field] = &[
    SAMPLES,
    PCT,
    field("", "dso", Words(&["dso"], dso), 0),
    field("", "symbol", Words(&["symbol"], symbol), 0),
    field("", "line", Words(&["line"], line), 0),
];
const CPU_TEXT: &[Field] = &[field("", "cpu", Key("cpu"), 0), SAMPLES, PCT, IN_KERNEL];
const CGROUP_NAME: Field = field("", "control group", Words(&["cgroup"], words::cgroup), 0);
const CGROUP_TEXT: &[Field] = &[SAMPLES, PCT, IN_KERNEL, CGROUP_NAME];
const CGROUP_STAYS_TEXT: &[Field] = &[
    field("", "on a CPU", Key("run_ns"), 0),
    field("", "% of machine", Key("pct"), 0),
    CGROUP_NAME,
];
const STAYS_TEXT: &[Field] = &[
    field("", "on a CPU", Key("run_ns"), 0),
    field("", "% of machine", Key("pct"), 0),
    THREAD_NAME,
];

fn known(l: Line<'_>, key: &str) -> String {
    match l.text(key) {
        "" => "n/a".to_owned(),
        name => escape(name).into_owned(),
    }
}

fn dso(l: Line<'_>) -> String {
    known(l, "dso")
}

fn symbol(l: Line<'_>) -> String {
    known(l, "symbol")
}

/// A symbol with perf's mark for inlined functions.
fn nested_symbol(l: Line<'_>) -> String {
    match l.get("inlined") {
        Some(Cell::Bool(true)) => symbol(l) + " (inlined)",
        _ => symbol(l),
    }
}

/// A function at its level, with its file; at level 0 a thread's name.
fn level(l: Line<'_>) -> String {
    let depth = l.int("depth").unwrap_or(0);
    let name = match (depth, l.text("symbol"), l.text("dso")) {
        (0, ..) => escape(l.text("comm")).into_owned(),
        (_, "", "") => "[unknown]".to_owned(),
        (_, "", file) => format!("[{}]", escape(file).trim_matches(['[', ']'])),
        _ => nested_symbol(l),
    };
    "  ".repeat(usize::try_from(depth).unwrap_or(0)) + &name
}

fn line(l: Line<'_>) -> String {
    known(l, "line")
}

/// `profile`, in the order given: most samples first.
pub fn profile(rows: &[ProfileRow], by: By) -> Table {
    let shape = match by {
        By::Function => &FUNCTION,
        By::Children => &CHILDREN,
        By::Thread => &THREAD,
        By::Process => &PROCESS,
        By::Dso => &DSO,
        By::Line => &LINE,
        By::Cpu => &CPU,
        By::Cgroup => &CGROUP,
    };
    VERB.table(rows, shape)
}

/// `profile --tree`, level by level.
pub fn profile_tree(rows: &[TreeRow], tree: Tree) -> Table {
    let shape = match tree {
        Tree::TopDown => &TOP_DOWN,
        Tree::BottomUp => &BOTTOM_UP,
    };
    TREE.table(rows, shape)
}

/// `profile` of a trace without samples, in which switches show how long threads had a CPU.
pub fn stays(rows: &[ProfileRow], by: By) -> Table {
    VERB.table(rows, if by == By::Cgroup { &CGROUP_STAYS } else { &STAYS })
}
