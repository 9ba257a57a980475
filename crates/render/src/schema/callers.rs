//! `holdup waits --by caller`.

use super::{DataOnly, Shape, Verb, columns, words};
use crate::table::layout::{Layout, Show::*, block, field};
use crate::table::{Line, Table};
use crate::text::escape;
use holdup_profile::CallerRow;

pub(crate) const VERB: Verb<CallerRow> = Verb {
    name: "waits",
    columns: columns! { CallerRow {
        caller Text, dso Text, through Text, comm Text, pid Id, object Text, objects Count,
        waits Count, waiters Count, wait_total_ns Ns, wait_avg_ns Ns, wait_max_ns Ns,
    } },
    shapes: &[&SHAPE],
    data_only: DataOnly::These(&[]),
    sort: "",
};
const _: () = VERB.check();

const SHAPE: Shape = Shape { without: &[], text: TEXT };

const TEXT: &[Layout] = &[block(
    "Waits by the code that waits",
    &[
        field("", "waits", Key("waits"), 0),
        field("", "threads", Key("waiters"), 2),
        field("asleep", "total", Key("wait_total_ns"), 0),
        field("asleep", "avg", Key("wait_avg_ns"), 1),
        field("asleep", "max", Key("wait_max_ns"), 1),
        field("", "process", Words(&["comm", "pid"], words::process), 0),
        field("", "caller", Words(&["caller", "dso", "through"], caller), 0),
        field("", "waits for", Words(&["object", "objects"], object), 0),
    ],
)];

/// `update_balance, through pthread_mutex_lock`; if the function has no name, its file.
pub(super) fn caller(l: Line<'_>) -> String {
    let mut words = match (l.text("caller"), l.text("dso")) {
        ("", "") => "n/a".to_owned(),
        ("", dso) => format!("[{}]", escape(dso)),
        (caller, _) => escape(caller).into_owned(),
    };
    if !l.text("through").is_empty() {
        words += &format!(", through {}", escape(l.text("through")));
    }
    words
}

/// The object waited for longest, and the number of other objects.
fn object(l: Line<'_>) -> String {
    let more = l.int("objects").unwrap_or(0).saturating_sub(1);
    let name = escape(l.text("object"));
    if more == 0 { name.into_owned() } else { format!("{name} and {more} more") }
}

/// `waits` by the code that waits, in the order given: longest first.
pub fn callers(rows: &[CallerRow]) -> Table {
    VERB.table(rows, &SHAPE)
}
