//! The lock table in the style of other tools: their columns, headings and units, made from the
//! same rows. A value that the trace cannot give is `n/a`, even if the tool would print 0.

use super::block::{NOT_KNOWN, write_notes};
use super::grid::{Grid, Head};
use super::{Page, TextOptions};
use crate::table::{Cell, Line, Table};
use std::io::{self, Write};

/// Write `table` in its view.
pub(crate) fn write(
    table: &Table,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    let lines: Vec<Line<'_>> = table.shown().iter().map(|row| table.line(row)).collect();
    let sections = match table.view {
        "aix" => vec![(String::new(), aix(table, &lines))],
        "perf" => vec![(String::new(), perf(table, &lines))],
        "solaris" => solaris(table, page),
        _ => vec![(String::new(), lock_stat(&lines))],
    };
    let mut any = false;
    for (title, mut grid) in sections {
        if grid.rows.is_empty() {
            continue;
        }
        any = true;
        page.separate(out)?;
        if !title.is_empty() {
            writeln!(out, "{}", paint.title(title))?;
        }
        if let Some(width) = options.width {
            grid.fit(width);
        }
        grid.write(paint, out)?;
    }
    if !any {
        page.separate(out)?;
        let why = match table.missing {
            Some(events) => format!("{NOT_KNOWN}: not recorded; needs {events} (see holdup info)"),
            None => "none".to_owned(),
        };
        writeln!(out, "{}", paint.dim(why))?;
    }
    if !options.quiet && table.left_out() > 0 {
        writeln!(
            out,
            "{}",
            paint.dim(format!("{} more rows not shown; -n 0 shows all", table.left_out()))
        )?;
    }
    write_notes(table, options, out)
}

fn grid(heads: &[(&str, bool)]) -> Grid {
    let heads = heads
        .iter()
        .map(|&(title, left)| Head { title: title.to_owned(), left, ..Head::default() })
        .collect();
    Grid { heads, rows: Vec::new() }
}

fn int(l: Line<'_>, key: &str) -> String {
    l.int(key).map_or_else(|| NOT_KNOWN.to_owned(), |n| n.to_string())
}

fn float(l: Line<'_>, key: &str, places: usize) -> String {
    match l.get(key) {
        Some(Cell::Float(x)) => format!("{x:.places$}"),
        _ => NOT_KNOWN.to_owned(),
    }
}

fn text(l: Line<'_>, key: &str) -> String {
    match l.get(key) {
        Some(Cell::Text(t)) => super::escape(t).into_owned(),
        Some(Cell::Int(n)) => n.to_string(),
        _ => NOT_KNOWN.to_owned(),
    }
}

/// The lock's name in a column of names.
fn what(l: Line<'_>) -> String {
    if l.get("address").is_some() {
        return crate::schema::words::lock(l);
    }
    ["caller", "comm", "type"]
        .into_iter()
        .find(|key| l.get(key).is_some())
        .map_or_else(|| NOT_KNOWN.to_owned(), |key| text(l, key))
}

/// AIX `lockstat`: Subsys Name Ocn Ref/s %Ref %Block %Sleep. A reference is an acquisition.
fn aix(table: &Table, lines: &[Line<'_>]) -> Grid {
    let mut g = grid(&[
        ("Subsys", true),
        ("Name", true),
        ("Ocn", false),
        ("Ref/s", false),
        ("%Ref", false),
        ("%Block", false),
        ("%Sleep", false),
    ]);
    let all: u64 = table.rows.iter().filter_map(|r| table.line(r).int("acquired")).sum();
    let mut seen: std::collections::HashMap<String, u64> = std::collections::HashMap::new();
    for &l in lines {
        let named = l.get("name").is_some_and(|n| *n != Cell::Null);
        let name = if named { text(l, "name") } else { what(l) };
        // Instances of one class are numbered in order of appearance.
        let occurrence = seen.entry(name.clone()).and_modify(|n| *n += 1).or_insert(1);
        let ocn = if named && l.int("address").is_some() {
            occurrence.to_string()
        } else {
            NOT_KNOWN.to_owned()
        };
        let share = match l.int("acquired") {
            Some(n) if all > 0 => format!("{:.2}", n as f64 * 100.0 / all as f64),
            _ => NOT_KNOWN.to_owned(),
        };
        g.rows.push(vec![
            NOT_KNOWN.to_owned(),
            name,
            ocn,
            float(l, "acquired_per_s", 0),
            share,
            float(l, "block_pct", 2),
            float(l, "sleep_pct", 2),
        ]);
    }
    g
}

/// perf's own scaling: each cell has its own unit.
fn scaled(l: Line<'_>, key: &str) -> String {
    let Some(ns) = l.int(key) else { return NOT_KNOWN.to_owned() };
    let ns = ns as f64;
    for (base, unit) in [(3600e9, "h"), (60e9, "m"), (1e9, "s"), (1e6, "ms"), (1e3, "us")] {
        if ns >= base {
            return format!("{:.2} {unit:2}", ns / base);
        }
    }
    format!("{ns} ns")
}

/// `perf lock contention`; `perf lock report` if acquisitions are known.
fn perf(table: &Table, lines: &[Line<'_>]) -> Grid {
    let acquired = lines.iter().any(|l| l.int("acquired").is_some());
    if acquired && table.column("address").is_some() {
        let mut g = grid(&[
            ("Name", false),
            ("acquired", false),
            ("contended", false),
            ("avg wait", false),
            ("total wait", false),
            ("max wait", false),
            ("min wait", false),
        ]);
        for &l in lines {
            let name = if l.get("name").is_some_and(|n| *n != Cell::Null) {
                text(l, "name")
            } else {
                what(l)
            };
            let times = ["wait_avg_ns", "wait_total_ns", "wait_max_ns", "wait_min_ns"]
                .map(|key| scaled(l, key));
            g.rows.push(
                [vec![name, int(l, "acquired"), int(l, "contended")], times.to_vec()].concat(),
            );
        }
        return g;
    }
    let last: &[(&str, bool)] = if table.column("comm").is_some() {
        &[("pid", false), ("comm", true)]
    } else if table.column("caller").is_some() {
        &[("type", false), ("caller", true)]
    } else if table.column("address").is_some() {
        &[("address", false), ("symbol", true)]
    } else {
        &[("type", false)]
    };
    let heads =
        [("contended", false), ("total wait", false), ("max wait", false), ("avg wait", false)];
    let mut g = grid(&[&heads, last].concat());
    for &l in lines {
        let mut row = vec![
            int(l, "contended"),
            scaled(l, "wait_total_ns"),
            scaled(l, "wait_max_ns"),
            scaled(l, "wait_avg_ns"),
        ];
        row.extend(last.iter().map(|(head, _)| match *head {
            "pid" => text(l, "tid"),
            "address" => {
                l.int("address").map_or_else(|| NOT_KNOWN.to_owned(), |a| format!("{a:016x}"))
            }
            "symbol" => format!("{} ({})", l.text("name"), text(l, "type")).trim_start().to_owned(),
            // perf's word for an unknown caller.
            "caller" if l.text("caller").is_empty() => "Unknown".to_owned(),
            key => text(l, key),
        }));
        g.rows.push(row);
    }
    g
}

/// illumos' titles for a kind of lock: spinning, blocked, or not distinguished.
fn solaris_events(kind: &str) -> [&'static str; 3] {
    match kind {
        "mutex" | "rtmutex" | "semaphore" => {
            ["Adaptive mutex spin", "Adaptive mutex block", "Adaptive mutex spin or block"]
        }
        "spinlock" => ["Spin lock spin", "Spin lock block", "Spin lock spin"],
        k if k.ends_with(":W") => ["R/W writer spin", "R/W writer blocked", "R/W writer blocked"],
        k if k.ends_with(":R") => ["R/W reader spin", "R/W reader blocked", "R/W reader blocked"],
        "rwsem" | "rwlock" | "rwlock-rt" | "pcpu-sem" => {
            ["R/W spin", "R/W blocked", "R/W spin or blocked"]
        }
        _ => ["Lock spin", "Lock block", "Lock spin or block"],
    }
}

/// `Adaptive mutex spin: 2210 events in 5.055 seconds (437 events/sec)`, then
/// `Count indv cuml rcnt nsec Lock Caller`, most events first.
fn solaris(table: &Table, page: &Page) -> Vec<(String, Grid)> {
    struct Event {
        count: u64,
        nsec: Option<u64>,
        lock: String,
        caller: String,
    }
    let mut sections: Vec<(&'static str, Vec<Event>)> = Vec::new();
    for row in &table.rows {
        let l = table.line(row);
        let [spin, block, both] = solaris_events(l.text("type"));
        let lock = if l.get("address").is_some() {
            crate::schema::words::lock(l)
        } else {
            NOT_KNOWN.to_owned()
        };
        let caller =
            if l.get("caller").is_some() { text(l, "caller") } else { NOT_KNOWN.to_owned() };
        let total = l.int("wait_total_ns");
        let ended = l.int("contended").unwrap_or(0)
            - l.int("open").unwrap_or(0).min(l.int("contended").unwrap_or(0));
        let mut add = |title: &'static str, count: u64, ns: Option<u64>| {
            if count == 0 {
                return;
            }
            let event = Event {
                count,
                nsec: ns.map(|ns| ns / count),
                lock: lock.clone(),
                caller: caller.clone(),
            };
            match sections.iter_mut().find(|s| s.0 == title) {
                Some(section) => section.1.push(event),
                None => sections.push((title, vec![event])),
            }
        };
        match (l.int("slept"), l.int("slept_wait_ns"), total) {
            (Some(slept), Some(slept_ns), Some(total)) => {
                add(spin, ended.saturating_sub(slept), Some(total.saturating_sub(slept_ns)));
                add(block, slept, Some(slept_ns));
            }
            _ => add(both, ended, total),
        }
    }
    sections.sort_by_key(|s| s.0);
    sections
        .into_iter()
        .map(|(title, mut events)| {
            events.sort_by(|a, b| {
                b.count.cmp(&a.count).then_with(|| (&a.lock, &a.caller).cmp(&(&b.lock, &b.caller)))
            });
            let all: u64 = events.iter().map(|e| e.count).sum();
            let title = match page.wall_ns {
                0 => format!("{title}: {all} events"),
                ns => {
                    let s = ns as f64 / 1e9;
                    format!(
                        "{title}: {all} events in {s:.3} seconds ({:.0} events/sec)",
                        all as f64 / s
                    )
                }
            };
            let mut g = grid(&[
                ("Count", false),
                ("indv", false),
                ("cuml", false),
                ("rcnt", false),
                ("nsec", false),
                ("Lock", true),
                ("Caller", true),
            ]);
            let mut so_far = 0;
            for e in events.iter().take(table.entries.unwrap_or(usize::MAX)) {
                so_far += e.count;
                let part = |n: u64| format!("{}%", (n as f64 * 100.0 / all as f64).round());
                g.rows.push(vec![
                    e.count.to_string(),
                    part(e.count),
                    part(so_far),
                    NOT_KNOWN.to_owned(),
                    e.nsec.map_or_else(|| NOT_KNOWN.to_owned(), |ns| ns.to_string()),
                    e.lock.clone(),
                    e.caller.clone(),
                ]);
            }
            (title, g)
        })
        .collect()
}

/// `/proc/lock_stat` 0.4: microseconds with two decimals.
fn lock_stat(lines: &[Line<'_>]) -> Grid {
    const COLUMNS: [(&str, &str); 12] = [
        ("con-bounces", "con_bounces"),
        ("contentions", "contended"),
        ("waittime-min", "wait_min_ns"),
        ("waittime-max", "wait_max_ns"),
        ("waittime-total", "wait_total_ns"),
        ("waittime-avg", "wait_avg_ns"),
        ("acq-bounces", "acq_bounces"),
        ("acquisitions", "acquired"),
        ("holdtime-min", "hold_min_ns"),
        ("holdtime-max", "hold_max_ns"),
        ("holdtime-total", "hold_total_ns"),
        ("holdtime-avg", "hold_avg_ns"),
    ];
    let heads: Vec<(&str, bool)> =
        [("class name", false)].into_iter().chain(COLUMNS.map(|(head, _)| (head, false))).collect();
    let mut g = grid(&heads);
    for &l in lines {
        let us = |key: &str| {
            l.int(key).map_or_else(
                || NOT_KNOWN.to_owned(),
                |ns| format!("{}.{:02}", (ns + 5) / 1000, (ns + 5) % 1000 / 10),
            )
        };
        let cells =
            COLUMNS.map(|(_, key)| if key.ends_with("_ns") { us(key) } else { int(l, key) });
        let name =
            if l.get("name").is_some_and(|n| *n != Cell::Null) { text(l, "name") } else { what(l) };
        g.rows.push([vec![format!("{name}:")], cells.to_vec()].concat());
    }
    g
}
