//! Cells that text makes of several columns.

use crate::table::{Cell, Line};
use crate::text::escape;
use holdup_attribution::in_words;
use holdup_trace::Tid;
use std::cmp::Reverse;

/// `&mm->mmap_lock ff1100007d898970`, or what is known of the two.
pub(crate) fn lock(l: Line<'_>) -> String {
    let name = escape(l.text("name"));
    match (name.is_empty(), l.int("address")) {
        (true, None) => "n/a".to_owned(),
        (true, Some(address)) => match l.text("likely") {
            "" => format!("{address:016x}"),
            likely => format!("{address:016x}, most likely {}", escape(likely)),
        },
        (false, None) => name.into_owned(),
        (false, Some(address)) => format!("{name} {address:016x}"),
    }
}

/// `convoy (6179)`: the thread that others waited for longest.
pub(super) fn lock_holder(l: Line<'_>) -> String {
    let comm = escape(l.text("holder_comm"));
    match l.int("holder") {
        Some(tid) => format!("{comm} ({tid})"),
        None if comm.is_empty() => "n/a".to_owned(),
        None => comm.into_owned(),
    }
}

/// `mutex 0x7f00`, `semop semid 1`; several objects as the longest and how many more.
pub(super) fn object(l: Line<'_>) -> String {
    let usage = l.text("usage");
    let kind = if usage.is_empty() { l.text("kind") } else { usage };
    let more = l
        .int("objects")
        .filter(|&n| n > 1)
        .map(|n| format!(" and {} more", n - 1))
        .unwrap_or_default();
    format!("{}{more}", in_words(kind, None, &escape(l.text("object")))).trim().to_owned()
}

/// Holders shown in a line.
const HOLDERS: usize = 3;

/// `a (7) 41 %, ~b (9) 22 %, 3 more`.
pub(super) fn holders(l: Line<'_>) -> String {
    let Some(Cell::List(list)) = l.get("holders") else { return String::new() };
    let one = |record: &Vec<(&'static str, Cell)>| {
        let get = |key| record.iter().find(|(k, _)| *k == key).map(|(_, c)| c);
        let inferred = if get("inferred") == Some(&Cell::Bool(true)) { "~" } else { "" };
        let pct = if let Some(Cell::Float(x)) = get("pct_explained") { *x } else { 0.0 };
        let tid = number(get("tid").and_then(Cell::int).unwrap_or(0));
        format!("{inferred}{} ({tid}) {pct:.0} %", escape(get("comm").map_or("", Cell::text)))
    };
    let mut words: Vec<String> = list.iter().take(HOLDERS).map(one).collect();
    if list.len() > HOLDERS {
        words.push(format!("{} more", list.len() - HOLDERS));
    }
    words.join(", ")
}

/// A thread's number; a task's, as people read it.
fn number(tid: u64) -> String {
    Tid(tid as u32).number()
}

/// `disk fsync 61 %, user 25 %`: what holders did while others waited, where it took a tenth.
pub(super) fn holders_did(l: Line<'_>) -> String {
    let Some(Cell::List(list)) = l.get("holders_did") else { return String::new() };
    let mut sums: Vec<(String, u64)> = Vec::new();
    for record in list {
        let get = |key| record.iter().find(|(k, _)| *k == key).map(|(_, c)| c);
        let word = |key| get(key).map_or("", Cell::text);
        let what = format!("{} {}", word("did"), word("call")).trim_end().to_owned();
        let ns = get("ns").and_then(Cell::int).unwrap_or(0);
        match sums.iter_mut().find(|(other, _)| *other == what) {
            Some((_, sum)) => *sum += ns,
            None => sums.push((what, ns)),
        }
    }
    sums.sort_by_key(|&(_, ns)| Reverse(ns));
    let all: u64 = sums.iter().map(|(_, ns)| ns).sum();
    let share = |ns: u64| ns as f64 * 100.0 / all as f64;
    let shown = sums.into_iter().take(HOLDERS).filter(|&(_, ns)| share(ns) >= 10.0);
    let one = |(what, ns): (String, u64)| format!("{} {:.0} %", escape(&what), share(ns));
    shown.map(one).collect::<Vec<String>>().join(", ")
}

/// `futex`.
pub(super) fn syscall(l: Line<'_>) -> String {
    escape(l.text("name")).into_owned()
}

/// `nginx.service`, `docker:web`; of a thread whose group is not known, nothing.
pub(super) fn cgroup(l: Line<'_>) -> String {
    match l.text("cgroup") {
        "" if l.get("comm").is_some() || l.get("cgroup").is_none() => String::new(),
        "" => "n/a".to_owned(),
        name => escape(name).into_owned(),
    }
}

/// `lazyp (5874 5683)` for a thread, `lazyp (5874)` for a process, with the number of what it
/// stands for; kernel threads in brackets, as ps has it.
pub(super) fn process(l: Line<'_>) -> String {
    let comm = escape(l.text("comm"));
    let comm = if l.get("kthread") == Some(&Cell::Bool(true)) {
        format!("[{comm}]")
    } else {
        comm.into_owned()
    };
    let id = |key| l.get(key).map(|c| c.int().map_or_else(|| "n/a".to_owned(), number));
    let ids: Vec<String> = [id("pid"), id("tid")].into_iter().flatten().collect();
    let mut words = comm;
    if !ids.is_empty() {
        words += &format!(" ({})", ids.join(" "));
    }
    let counts: Vec<String> =
        [("processes", "process", "processes"), ("threads", "thread", "threads")]
            .into_iter()
            .filter_map(|(key, one, many)| {
                l.int(key).map(|n| crate::text::units::count(n, one, many))
            })
            .collect();
    if !counts.is_empty() {
        words += &format!(" {}", counts.join(", "));
    }
    // Groups have no name here.
    words.trim_start().to_owned()
}

/// `eth0:10`, `RCU:9`, or a work function, by name if it has one.
pub(super) fn irq(l: Line<'_>) -> String {
    let name = escape(l.text("name"));
    let id = l.int("id").unwrap_or(0);
    match (l.text("kind"), name.is_empty()) {
        ("workqueue", true) => format!("{id:#x}"),
        ("workqueue", false) => name.into_owned(),
        _ => format!("{name}:{id}"),
    }
}
