//! `switches` is `perf sched latency -p` and `perf sched timehist -s`.
//!
//! Names: perf calls a thread what the last PERF_RECORD_COMM called it, holdup what the last event
//! did, whichever kind it was. They differ for kernel workers, which `/proc` (perf's source for
//! threads older than the recording) decorates: `kworker/1:1-mm_` for `kworker/1:1`.

use crate::oracle::corpus::{Recording, perf_recordings};
use crate::oracle::perf::{self, HistRow, LatencyRow};
use crate::oracle::raw::{Raw, Stays};
use crate::oracle::tally::Tally;
use holdup_passes::SwitchRow;
use holdup_testkit::needs;
use std::collections::BTreeMap;

#[needs(perf_6_1)]
#[test]
fn run_queue_delays_are_what_perf_sched_latency_prints() {
    let mut tally = Tally::new("run-queue delays = perf sched latency -p");
    for file in perf_recordings() {
        compare_latency(file, &mut tally);
    }
    tally.finish();
}

#[needs(perf_6_1)]
#[test]
fn stays_on_cpus_are_what_perf_sched_timehist_prints() {
    let mut tally = Tally::new("stays on CPUs = perf sched timehist -s");
    for file in perf_recordings() {
        match is_of_some_tasks(file) {
            true => tally.exception(UNREAD),
            false => compare_timehist(file, &mut tally),
        }
    }
    tally.finish();
}

/// Of a recording of some tasks the events tell when threads leave their CPUs; when they get them,
/// and that a thread's end ends its last stay, other records tell, which perf's tables leave out.
fn is_of_some_tasks(file: &Recording) -> bool {
    holdup_open::open(&file.path).is_ok_and(|reader| reader.info().system_wide == Some(false))
}

const UNREAD: &str =
    "files of some tasks, whose records of switches and ends perf's tables leave out";

/// Whether perf has nothing to show, and rightly so.
fn nothing(file: &Recording, empty: bool, raw: &Raw, tally: &mut Tally) -> bool {
    if empty {
        tally.check(raw.piped || raw.stays.is_empty(), || {
            format!("{}: perf prints nothing", file.name)
        });
        tally.count("files without switches, or piped", 1);
    } else {
        tally.count("files", 1);
    }
    empty
}

/// Rows by thread id; an id that was used again has several.
fn by_tid(
    rows: Vec<SwitchRow>,
    wanted: impl Fn(&SwitchRow) -> bool,
) -> BTreeMap<i64, Vec<SwitchRow>> {
    let mut map: BTreeMap<i64, Vec<SwitchRow>> = BTreeMap::new();
    for r in rows.into_iter().filter(wanted) {
        map.entry(r.tid as i64).or_default().push(r);
    }
    map
}

/// Take the first row that `agrees` out of the rows with this id.
fn take(
    rows: &mut BTreeMap<i64, Vec<SwitchRow>>,
    tid: i64,
    agrees: impl Fn(&SwitchRow) -> bool,
) -> Option<SwitchRow> {
    let list = rows.get_mut(&tid)?;
    let i = list.iter().position(agrees)?;
    Some(list.remove(i))
}

fn check_name(
    file: &Recording,
    tid: i64,
    perf: &str,
    row: &SwitchRow,
    raw: &Raw,
    tally: &mut Tally,
) {
    if row.comm == perf {
        return;
    }
    let seen = raw.names.get(&tid).is_some_and(|n| n.contains(&row.comm));
    match raw.last_comm.get(&tid) {
        Some(comm) if seen && comm == perf => {
            tally.exception("rows that perf names after PERF_RECORD_COMM and the events otherwise")
        }
        None if seen && *perf == format!(":{tid}") => {
            tally.exception("rows of threads perf has no name for and the events have")
        }
        _ => tally.fail(format!("{}: perf calls {tid} {perf:?}, holdup {:?}", file.name, row.comm)),
    }
}

fn compare_latency(file: &Recording, tally: &mut Tally) {
    let rows = perf::sched_latency(&perf::run(&["sched", "latency", "-p", "-f"], file).out);
    let raw = Raw::read(file);
    if nothing(file, rows.is_empty(), &raw, tally) {
        return;
    }
    let analysis = file.analyze();
    let caps = &analysis.capabilities;
    if !(caps.wakeups || caps.wakers) {
        // Without wake-ups perf knows the waits after preemptions only; holdup says n/a.
        let unknown = analysis.switches().iter().all(|r| r.delay_count.is_none());
        tally.check(unknown, || format!("{}: delays without wake-ups", file.name));
        tally.exception("files without wake-ups");
        return;
    }
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

/// Exceptions:
/// * a thread that ends loses its id before it leaves its CPU for the last time (the leader of a
///   process keeps it a little longer). perf goes by the id in the record's head, -1, and gathers
///   the last stays of all such threads in one row; holdup goes by the event's `prev_pid`;
/// * a switch out of the idle task that was not recorded: perf takes the idle time before it for
///   run time of the thread that follows, even if that was woken only later.
fn compare_timehist(file: &Recording, tally: &mut Tally) {
    let hist = perf::sched_timehist(&perf::run(&["sched", "timehist", "-s", "-f"], file).out);
    let raw = Raw::read(file);
    if nothing(file, hist.rows.is_empty(), &raw, tally) {
        return;
    }
    let analysis = file.analyze();
    let mut mine = by_tid(analysis.switches(), |r| r.switches > 0);
    for p in &hist.rows {
        tally.count("rows", 1);
        let at_its_end = raw.stays.get(&p.tid).copied().unwrap_or_default();
        if p.tid == -1 {
            tally.check(fits(p, &at_its_end), || format!("{}: {p:?}, {at_its_end:?}", file.name));
            continue;
        }
        if let Some(h) = take(&mut mine, p.tid, |h| {
            p.sched_in == h.switches && p.run_time.is_ms_cut(h.runtime_ns)
        }) {
            check_name(file, p.tid, &p.comm, &h, &raw, tally);
            continue;
        }
        // perf prints what its rule makes of the events, and holdup what they are.
        let last = raw.stays_of_gone.get(&p.tid).copied().unwrap_or_default();
        let mut right = at_its_end;
        right.join(&last);
        if !fits(p, &at_its_end)
            || take(&mut mine, p.tid, |h| right.admit(h.switches, h.runtime_ns)).is_none()
        {
            tally.fail(format!("{}: {p:?}, {:?}, {right:?}", file.name, mine.get(&p.tid)));
            continue;
        }
        if last.count > 0 {
            tally.exception("rows that lack the last stay, which perf gives to thread -1");
        }
        if right.unseen > 0 {
            tally.exception("rows in which perf counts idle time before an unrecorded switch");
            tally.count(
                "ns of run time that perf counts although the thread was not woken yet",
                right.too_early,
            );
        }
    }
    for h in mine.into_values().flatten() {
        let only = raw
            .stays_of_gone
            .get(&(h.tid as i64))
            .is_some_and(|s| s.admit(h.switches, h.runtime_ns));
        if only && !raw.stays.contains_key(&(h.tid as i64)) {
            tally.exception("threads whose only stay perf gives to thread -1");
        } else {
            tally.fail(format!("{}: holdup alone has {h:?}", file.name));
        }
    }
}

#[test]
fn stays_on_cpus_are_what_the_events_come_to() {
    let mut tally = Tally::new("stays on CPUs = the events");
    for file in perf_recordings() {
        let raw = Raw::read(file);
        if raw.stays.is_empty() || is_of_some_tasks(file) {
            continue;
        }
        tally.count("files", 1);
        let mut expected = raw.stays;
        expected.remove(&-1);
        for (tid, last) in &raw.stays_of_gone {
            expected.entry(*tid).or_default().join(last);
        }
        let mut found: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
        for h in file.analyze().switches().iter().filter(|h| h.switches > 0) {
            let s = found.entry(h.tid as i64).or_default();
            *s = (s.0 + h.switches, s.1 + h.runtime_ns);
        }
        for (tid, (count, total)) in found {
            let s = expected.remove(&tid).unwrap_or_default();
            tally.count("threads", 1);
            tally.count("threads with stays that began unseen", (s.unseen > 0) as u64);
            tally.check(s.admit(count, total), || {
                format!("{}: {tid}: holdup {count} stays of {total}, events {s:?}", file.name)
            });
        }
        tally.check(expected.is_empty(), || format!("{}: holdup lacks {expected:?}", file.name));
    }
    tally.finish();
}

/// perf cuts run-time at microseconds.
fn fits(p: &HistRow, s: &Stays) -> bool {
    p.sched_in == s.count && p.run_time.is_ms_cut(s.total)
}
