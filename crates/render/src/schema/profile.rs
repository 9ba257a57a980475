//! `holdup profile`.

use super::layout::{Field, Show::*, block, field};
use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::{Line, Table};
use crate::text::escape;
use holdup_profile::{By, ProfileRow};

pub(crate) const VERB: Verb<ProfileRow> = Verb {
    name: "profile",
    columns: columns! { ProfileRow {
        comm Text, pid Id, tid Id, cpu Id, dso Text, symbol Text, line Text, samples Count,
        kernel_samples Count, run_ns Ns, pct Percent,
    } },
    shapes: &[&FUNCTION, &THREAD, &PROCESS, &DSO, &LINE, &CPU, &STAYS],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = VERB.check();

const FUNCTION: Shape = Shape {
    without: &["cpu", "line", "kernel_samples", "run_ns"],
    text: &[block("CPU samples by function", FUNCTION_TEXT)],
};
const THREAD: Shape = Shape {
    without: &["cpu", "dso", "symbol", "line", "run_ns"],
    text: &[block("CPU samples by thread", THREAD_TEXT)],
};
const PROCESS: Shape = Shape {
    without: &["tid", "cpu", "dso", "symbol", "line", "run_ns"],
    text: &[block("CPU samples by process", THREAD_TEXT)],
};
const DSO: Shape = Shape {
    without: &["comm", "pid", "tid", "cpu", "symbol", "line", "run_ns"],
    text: &[block("CPU samples by file of code", DSO_TEXT)],
};
const LINE: Shape = Shape {
    without: &["comm", "pid", "tid", "cpu", "kernel_samples", "run_ns"],
    text: &[block("CPU samples by source line", LINE_TEXT)],
};
const CPU: Shape = Shape {
    without: &["comm", "pid", "tid", "dso", "symbol", "line", "run_ns"],
    text: &[block("CPU samples by CPU", CPU_TEXT)],
};
/// No samples: how long threads had a CPU.
const STAYS: Shape = Shape {
    without: &["cpu", "line", "kernel_samples"],
    text: &[block("CPU time by thread ({})", STAYS_TEXT)],
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

fn line(l: Line<'_>) -> String {
    known(l, "line")
}

/// `profile`, in the order given: most samples first.
pub fn profile(rows: &[ProfileRow], by: By) -> Table {
    let shape = match by {
        By::Function => &FUNCTION,
        By::Thread => &THREAD,
        By::Process => &PROCESS,
        By::Dso => &DSO,
        By::Line => &LINE,
        By::Cpu => &CPU,
    };
    VERB.table(rows, shape)
}

/// The same of a trace without samples, in which switches say how long threads had a CPU.
pub fn stays(rows: &[ProfileRow]) -> Table {
    VERB.table(rows, &STAYS)
}
