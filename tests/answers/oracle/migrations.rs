//! `migrations` is the number of `sched_migrate_task` events that name the thread, and what
//! `perf sched timehist -s -M` prints. (Without `-M` perf prints 0.)

use crate::oracle::corpus::{Recording, perf_recordings};
use crate::oracle::perf;
use crate::oracle::raw::Raw;
use crate::oracle::tally::Tally;
use holdup_testkit::needs;
use std::collections::BTreeMap;

#[needs(perf_6_1)]
#[test]
fn migrations_are_the_events_that_name_the_thread_and_what_perf_prints_with_m() {
    let mut tally = Tally::new("migrations = sched_migrate_task = perf sched timehist -s -M");
    for file in perf_recordings() {
        compare(file, &mut tally);
    }
    tally.finish();
}

fn compare(file: &Recording, tally: &mut Tally) {
    let analysis = file.analyze();
    if !analysis.capabilities.migrations {
        tally.count("files without the event", 1);
        return;
    }
    tally.count("files", 1);
    let raw = Raw::read(file);
    let mut mine: BTreeMap<i64, u64> = BTreeMap::new();
    for r in analysis.switches() {
        *mine.entry(r.tid as i64).or_default() += r.migrations.unwrap_or(0);
    }
    for (tid, &n) in &mine {
        tally.count("threads", 1);
        tally.count("migrations", n);
        let moved = raw.moved.get(tid).copied().unwrap_or(0);
        tally.check(n == moved, || format!("{}: {tid}: holdup {n}, {moved} events", file.name));
    }
    for p in
        perf::sched_timehist(&perf::run(&["sched", "timehist", "-s", "-M", "-f"], file).out).rows
    {
        if p.tid == -1 {
            continue; // perf's row for threads already gone, see the test of the stays
        }
        tally.count("rows of perf", 1);
        let n = mine.get(&p.tid).copied();
        tally.check(n == Some(p.migrations), || format!("{}: {p:?}, holdup {n:?}", file.name));
    }
}
