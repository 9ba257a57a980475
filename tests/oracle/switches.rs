//! `switches` is `perf sched latency -p` and `perf sched timehist -s`.
//!
//! Names: perf calls a thread what the last PERF_RECORD_COMM called it, holdup what the last event
//! did, whichever kind it was. They differ for kernel workers, which `/proc` (perf's source for
//! threads older than the recording) decorates: `kworker/1:1-mm_` for `kworker/1:1`.

use crate::corpus::{Recording, perf_recordings};
use crate::perf::{self, HistRow, LatencyRow};
use crate::raw::{Raw, Stays};
use crate::tally::Tally;
use holdup_passes::SwitchRow;
use std::collections::BTreeMap;

#[test]
fn run_queue_delays_are_what_perf_sched_latency_prints() {
    if !perf::present("run-queue delays") {
        return;
    }
    let mut tally = Tally::new("run-queue delays = perf sched latency -p");
    for file in perf_recordings() {
        compare_latency(file, &mut tally);
    }
    tally.finish();
}

#[test]
fn stays_on_cpus_are_what_perf_sched_timehist_prints() {
    if !perf::present("stays on CPUs") {
        return;
    }
    let mut tally = Tally::new("stays on CPUs = perf sched timehist -s");
    for file in perf_recordings() {
        compare_timehist(file, &mut tally);
    }
    tally.finish();
}

/// Rows by thread id; an id that was used again has several.
fn by_tid(rows: Vec<SwitchRow>, wanted: impl Fn(&SwitchRow) -> bool) -> BTreeMap<i64, Vec<SwitchRow>> {
    let mut map: BTreeMap<i64, Vec<SwitchRow>> = BTreeMap::new();
    for r in rows.into_iter().filter(wanted) {
        map.entry(r.tid as i64).or_default().push(r);
    }
    map
}

/// Take the first row that `agrees` out of the rows with this id.
fn take(rows: &mut BTreeMap<i64, Vec<SwitchRow>>, tid: i64, agrees: impl Fn(&SwitchRow) -> bool) -> Option<SwitchRow> {
    let list = rows.get_mut(&tid)?;
    let i = list.iter().position(agrees)?;
    Some(list.remove(i))
}

fn check_name(file: &Recording, tid: i64, perf: &str, row: &SwitchRow, raw: &Raw, tally: &mut Tally) {
    if row.comm == perf {
        return;
    }
    let seen = raw.names.get(&tid).is_some_and(|n| n.contains(&row.comm));
    match raw.last_comm.get(&tid) {
        Some(comm) if seen && comm == perf => tally.exception("rows that perf names after PERF_RECORD_COMM and the events otherwise"),
        None if seen && *perf == format!(":{tid}") => tally.exception("rows of threads perf has no name for and the events have"),
        _ => tally.fail(format!("{}: perf calls {tid} {perf:?}, holdup {:?}", file.name, row.comm)),
    }
}

fn compare_latency(file: &Recording, tally: &mut Tally) {
    let rows = perf::sched_latency(&perf::run(&["sched", "latency", "-p", "-f"], file).out);
    if rows.is_empty() {
        tally.count("files without switches perf can show", 1);
        return;
    }
    tally.count("files", 1);
    let raw = Raw::read(file);
    let analysis = file.analyze();
    let mut mine = by_tid(analysis.switches(), |r| r.delay_count != Some(0));
    for p in &rows {
        tally.count("rows", 1);
        match take(&mut mine, p.tid, |h| agrees(p, h)) {
            Some(h) => check_name(file, p.tid, &p.comm, &h, &raw, tally),
            None => tally.fail(format!("{}: {p:?}, {:?}", file.name, mine.get(&p.tid))),
        }
    }
    for h in mine.into_values().flatten() {
        tally.fail(format!("{}: holdup alone has {h:?}", file.name));
    }
}

/// Every column. perf rounds spans and cuts times.
fn agrees(p: &LatencyRow, h: &SwitchRow) -> bool {
    let agree = || {
        Some(
            p.runtime.is_ms(h.stat_runtime_ns.unwrap_or(0) as f64)
                && p.switches == h.delay_count?
                && p.avg.is_ms(h.avg_delay_ns? as f64)
                && p.max.is_ms(h.max_delay_ns? as f64)
                && p.max_start.is_seconds_cut(h.max_delay_start_ns?)
                && p.max_end.is_seconds_cut(h.max_delay_end_ns?),
        )
    };
    agree() == Some(true)
}

/// Exception: a thread that ends loses its id before it leaves its CPU for the last time (the
/// leader of a process keeps it a little longer). perf goes by the id in the record's head, -1, and
/// gathers the last stays of all such threads in one row; holdup goes by the event's `prev_pid`.
fn compare_timehist(file: &Recording, tally: &mut Tally) {
    let hist = perf::sched_timehist(&perf::run(&["sched", "timehist", "-s", "-f"], file).out);
    if hist.rows.is_empty() {
        tally.count("files without switches perf can show", 1);
        return;
    }
    tally.count("files", 1);
    let raw = Raw::read(file);
    let analysis = file.analyze();
    let mut mine = by_tid(analysis.switches(), |r| r.switches > 0);
    let mut gone = Stays::default();
    let stays = |h: &SwitchRow| Stays { count: h.switches, total: h.runtime_ns };
    for p in &hist.rows {
        tally.count("rows", 1);
        if p.tid == -1 {
            let all = raw.stays.get(&-1).copied().unwrap_or_default();
            tally.check(fits(p, &all), || format!("{}: {p:?}, {all:?}", file.name));
            continue;
        }
        if let Some(h) = take(&mut mine, p.tid, |h| fits(p, &stays(h))) {
            check_name(file, p.tid, &p.comm, &h, &raw, tally);
            continue;
        }
        let last = raw.stays_of_gone.get(&p.tid).copied().unwrap_or_default();
        let without = |h: &SwitchRow| Stays { count: h.switches - last.count, total: h.runtime_ns - last.total };
        match take(&mut mine, p.tid, |h| last.count > 0 && last.count <= h.switches && last.total <= h.runtime_ns && fits(p, &without(h))) {
            Some(_) => {
                tally.exception("rows that lack the last stay, which perf gives to thread -1");
                (gone.count, gone.total) = (gone.count + last.count, gone.total + last.total);
            }
            None => tally.fail(format!("{}: {p:?}, {:?}, {last:?}", file.name, mine.get(&p.tid))),
        }
    }
    for h in mine.into_values().flatten() {
        if raw.stays_of_gone.get(&(h.tid as i64)) == Some(&stays(&h)) {
            tally.exception("threads whose only stay perf gives to thread -1");
            (gone.count, gone.total) = (gone.count + h.switches, gone.total + h.runtime_ns);
        } else {
            tally.fail(format!("{}: holdup alone has {h:?}", file.name));
        }
    }
    // What perf put under -1 is all there, where it belongs.
    let all = raw.stays.get(&-1).copied().unwrap_or_default();
    tally.check(all == gone, || format!("{}: {all:?} under -1, {gone:?} found", file.name));
}

/// perf cuts run-time at microseconds.
fn fits(p: &HistRow, s: &Stays) -> bool {
    p.sched_in == s.count && p.run_time.is_ms_cut(s.total)
}
