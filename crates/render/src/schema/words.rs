//! Text cells made from several columns.

use crate::table::{Cell, Line};
use crate::text::escape;
use holdup_attribution::in_words;
use holdup_trace::Tid;

/// `&mm->mmap_lock ff1100007d898970`, or the part of it that is known.
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

/// `mutex 0x7f00`, `semop semid 1`; for several objects, the longest and the number of others.
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

/// A thread's id, or a task's in readable form.
fn number(tid: u64) -> String {
    Tid(tid as u32).number()
}

/// `disk fsync 61 %, user 25 % (80 % in refill)`: what holders did while other threads waited,
/// parts of at least a tenth.
pub(super) fn holders_did(l: Line<'_>) -> String {
    let Some(Cell::List(list)) = l.get("holders_did") else { return String::new() };
    let shown = list.iter().take(HOLDERS).filter(|time| per_cent(time) >= 10.0);
    shown.map(|time| holder_did(time)).collect::<Vec<String>>().join(", ")
}

fn holder_did(time: &Record) -> String {
    let word = |key| field(time, key).map_or("", Cell::text);
    let did = format!("{} {}", word("did"), word("call"));
    let most = match field(time, "functions") {
        Some(Cell::List(functions)) => functions.first(),
        _ => None,
    };
    let ran = most.map_or(String::new(), |most| {
        let name = field(most, "function").map_or("", Cell::text);
        format!(" ({:.0} % in {})", per_cent(most), escape(name))
    });
    format!("{} {:.0} %{ran}", escape(did.trim_end()), per_cent(time))
}

/// One record of a list.
type Record = [(&'static str, Cell)];

fn field<'a>(record: &'a Record, key: &str) -> Option<&'a Cell> {
    record.iter().find(|(k, _)| *k == key).map(|(_, cell)| cell)
}

fn per_cent(record: &Record) -> f64 {
    if let Some(Cell::Float(x)) = field(record, "pct") { *x } else { 0.0 }
}

/// `futex`.
pub(super) fn syscall(l: Line<'_>) -> String {
    escape(l.text("name")).into_owned()
}

/// `nginx.service`, `docker:web`; empty if the group is not known.
pub(super) fn cgroup(l: Line<'_>) -> String {
    match l.text("cgroup") {
        "" if l.get("comm").is_some() || l.get("cgroup").is_none() => String::new(),
        "" => "n/a".to_owned(),
        name => escape(name).into_owned(),
    }
}

/// `lazyp (5874 5683)` for a thread, `lazyp (5874)` for a process, with the number of threads or
/// processes it represents; kernel threads in brackets, as in ps.
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
    // Control groups are not named here.
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
