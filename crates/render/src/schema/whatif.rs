//! `holdup whatif`.

use super::{DataOnly, Shape, Verb, columns};
use crate::table::layout::{Field, Show::*, When, block, field, only};
use crate::table::{Cell, Line, Table};
use crate::text::units::{count, duration};
use crate::whatif::{UNCHANGED, WhatifRow, gain_in_words};
use holdup_diagnose::Basis;

pub(crate) const VERB: Verb<WhatifRow> = Verb {
    name: "whatif",
    columns: columns! { WhatifRow {
        fix Text, kind Text, wall_ns Ns, wall_low_ns Ns, wall_high_ns Ns, gain Ratio,
        basis Text(|r: &WhatifRow| r.basis.word()), beyond_chance Flag, throughput_pct Percent,
        throughput_low_pct Percent, throughput_high_pct Percent, forced Count, waits Count,
        wait_ns Ns, change Text,
    } },
    shapes: &[&ASKED, &RANKED],
    // The shown range is from the longest to the shortest replay.
    data_only: DataOnly::These(&["throughput_pct"]),
    sort: "",
};
const _: () = VERB.check();

const ASKED: Shape = Shape { without: &[], text: &[block("What if", FIELDS)] };
const RANKED: Shape =
    Shape { without: &[], text: &[block("Gain of each change, largest first", FIELDS)] };

const BAND: &[&str] = &["kind", "throughput_low_pct", "throughput_high_pct"];

const FIELDS: &[Field] = &[
    field("", "gain", Words(&["gain", "beyond_chance", "kind", "basis"], gain), 0),
    field("time of the work ({})", "median", Key("wall_ns"), 0),
    field("time of the work ({})", "shortest", Key("wall_low_ns"), 4),
    field("time of the work ({})", "longest", Key("wall_high_ns"), 4),
    field("", "throughput", Words(BAND, throughput), 3),
    field("", "forced", Words(&["forced"], forced), 0),
    field("", "waiting in the trace", Words(&["waits", "wait_ns"], waiting), 2),
    field("", "change", Key("fix"), 0),
    // The option's argument is not readable text, so it needs `-v`.
    only(When::Verbose, field("", "as an option", Key("change"), 0)),
];

fn gain(l: Line<'_>) -> String {
    if l.text("kind") == UNCHANGED {
        return String::new();
    }
    let of = |key| match l.get(key) {
        Some(&Cell::Float(x)) => Some(x),
        _ => None,
    };
    let certain = l.get("beyond_chance") == Some(&Cell::Bool(true));
    gain_in_words(of("gain"), certain, l.text("basis") == Basis::Bound.word())
}

/// `6.368 s, 899 waits`; empty if no thread waits for the changed object.
fn waiting(l: Line<'_>) -> String {
    match (l.int("waits"), l.int("wait_ns")) {
        (Some(waits), Some(ns)) => format!("{}, {}", duration(ns), count(waits, "wait", "waits")),
        _ => String::new(),
    }
}

/// `+17.1 to +18.9 %`.
fn throughput(l: Line<'_>) -> String {
    if l.text("kind") == UNCHANGED {
        return String::new();
    }
    let of = |key| match l.get(key) {
        // No -0.0.
        Some(&Cell::Float(x)) => Some(format!("{:+.1}", if x.abs() < 0.05 { 0.0 } else { x })),
        _ => None,
    };
    match (of("throughput_low_pct"), of("throughput_high_pct")) {
        (Some(low), Some(high)) if low == high => format!("{low} %"),
        (Some(low), Some(high)) => format!("{low} to {high} %"),
        _ => String::new(),
    }
}

/// Empty if no replay had to be forced to continue.
fn forced(l: Line<'_>) -> String {
    l.int("forced").filter(|&n| n > 0).map_or_else(String::new, |n| n.to_string())
}

/// `whatif`, in the order given: the unchanged replay first. `ranked` puts that into the title.
pub fn whatif(rows: &[WhatifRow], ranked: bool) -> Table {
    VERB.table(rows, if ranked { &RANKED } else { &ASKED })
}
