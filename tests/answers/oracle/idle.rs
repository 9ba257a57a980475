//! Idle time of `cpus` against the idle statistics of `perf sched timehist -s`.
//!
//! They differ by definition, and the differences are known to the nanosecond:
//!
//! ```text
//! holdup's idle_ns = perf's idle
//!    - interrupts and softirqs on top of the idle task         (perf does not look at them)
//!    + idle before the CPU's first switch and after its last   (perf starts and ends there)
//! ```

use crate::oracle::corpus::{Recording, perf_recordings};
use crate::oracle::perf;
use crate::oracle::raw::Raw;
use crate::oracle::tally::Tally;
use holdup_testkit::needs;
use std::collections::BTreeMap;

#[needs(perf_6_1)]
#[test]
fn idle_time_is_that_of_perf_sched_timehist_less_interrupts_plus_the_ends() {
    let mut tally = Tally::new("idle time = perf sched timehist -s");
    for file in perf_recordings() {
        compare(file, &mut tally);
    }
    tally.finish();
}

fn compare(file: &Recording, tally: &mut Tally) {
    let hist = perf::sched_timehist(&perf::run(&["sched", "timehist", "-s", "-f"], file).out);
    if hist.idle.is_empty() {
        tally.count("files without idle times perf can show", 1);
        return;
    }
    tally.count("files", 1);
    let raw = Raw::read(file);
    let analysis = file.analyze();
    let mine: BTreeMap<u16, u64> = analysis.cpu_rows().iter().map(|r| (r.cpu, r.idle_ns)).collect();
    for (cpu, printed) in &hist.idle {
        let idle = raw.idle.get(cpu).copied().unwrap_or_default();
        let Some(printed) = printed else {
            // "entire time window": the idle task never left that CPU.
            tally.count("CPUs perf shows no figure for", 1);
            tally.check(idle.stays.count == 0, || format!("{}: CPU {cpu}: {idle:?}", file.name));
            continue;
        };
        tally.count("CPUs", 1);
        tally.check(printed.is_ms_cut(idle.stays.total), || {
            format!("{}: CPU {cpu}: perf {printed:?}, events {idle:?}", file.name)
        });
        let expected = idle.stays.total - idle.interrupted + idle.edges;
        if mine.get(cpu) == Some(&expected) {
            tally.count("ns of idle time in perf", idle.stays.total);
            tally.count("ns of them interrupted", idle.interrupted);
            tally.count("ns at the ends", idle.edges);
        } else if idle.gaps > 0 {
            tally.exception("CPUs with switches that were not recorded");
        } else {
            tally.fail(format!(
                "{}: CPU {cpu}: holdup {:?}, expected {expected} from {idle:?}",
                file.name,
                mine.get(cpu)
            ));
        }
    }
}
