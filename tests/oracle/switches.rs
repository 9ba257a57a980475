//! `switches` is `perf sched latency -p` and `perf sched timehist -s`.
use crate::corpus::perf_recordings;
use crate::perf;
use crate::tally::Tally;
use std::collections::BTreeMap;

#[test]
fn delays_are_what_perf_sched_latency_prints() {
    if !perf::present("delays") { return; }
    let mut tally = Tally::new("delays");
    for file in perf_recordings() {
        let rows = perf::sched_latency(&perf::run(&["sched", "latency", "-p", "-f"], file).out);
        if rows.is_empty() { tally.count("files perf shows nothing of", 1); continue; }
        tally.count("files", 1);
        let a = file.analyze();
        let mut mine: BTreeMap<i64, Vec<_>> = BTreeMap::new();
        for r in a.switches() { if r.delay_count != Some(0) { mine.entry(r.tid as i32 as i64).or_default().push(r); } }
        for r in &rows {
            tally.count("rows", 1);
            let at = format!("{}: {}:{}", file.name, r.comm, r.tid);
            let Some(list) = mine.get_mut(&r.tid) else { tally.fail(format!("{at}: only perf {r:?}")); continue };
            let ok = |h: &holdup_passes::SwitchRow| h.delay_count == Some(r.switches) && r.avg.is_ms(h.avg_delay_ns.unwrap_or(u64::MAX) as f64) && r.max.is_ms(h.max_delay_ns.unwrap_or(u64::MAX) as f64)
                && r.max_start.is_seconds_cut(h.max_delay_start_ns.unwrap_or(0)) && r.max_end.is_seconds_cut(h.max_delay_end_ns.unwrap_or(0)) && r.runtime.is_ms(h.stat_runtime_ns.unwrap_or(0) as f64);
            match list.iter().position(ok) {
                Some(i) => { list.remove(i); }
                None => tally.fail(format!("{at}: perf {r:?} holdup {list:?}")),
            }
        }
        for (tid, rows) in mine { for r in rows { tally.fail(format!("{}: {tid}: left over {r:?}", file.name)); } }
    }
    tally.finish();
}

#[test]
fn stays_are_what_perf_sched_timehist_prints() {
    if !perf::present("stays") { return; }
    let mut tally = Tally::new("stays");
    for file in perf_recordings() {
        let hist = perf::sched_timehist(&perf::run(&["sched", "timehist", "-s", "-f"], file).out);
        if hist.rows.is_empty() { tally.count("files perf shows nothing of", 1); continue; }
        tally.count("files", 1);
        let a = file.analyze();
        let mut mine: BTreeMap<i64, Vec<_>> = BTreeMap::new();
        for r in a.switches() { if r.switches != 0 { mine.entry(r.tid as i32 as i64).or_default().push(r); } }
        for r in &hist.rows {
            tally.count("rows", 1);
            let at = format!("{}: {}[{}]", file.name, r.comm, r.tid);
            let Some(list) = mine.get_mut(&r.tid) else { tally.fail(format!("{at}: only perf {r:?}")); continue };
            let ok = |h: &holdup_passes::SwitchRow| h.switches == r.sched_in && r.run_time.is_ms_cut(h.runtime_ns);
            match list.iter().position(ok) {
                Some(i) => { list.remove(i); }
                None => tally.fail(format!("{at}: perf {r:?} holdup {list:?}")),
            }
        }
        for (tid, rows) in mine { for r in rows { tally.fail(format!("{}: {tid}: left over {r:?}", file.name)); } }
    }
    tally.finish();
}
