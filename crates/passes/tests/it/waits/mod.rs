//! Waits on traces built by hand.

mod futexes;
mod relations;
mod services;

use holdup_attribution::{Attribution, WaitsBy, WaitsRow, analyze};
use holdup_passes::{Analysis, Detail, Options};
use holdup_testkit::MemTrace;

const NANOSLEEP: u32 = 35;

fn run(trace: &MemTrace) -> Analysis {
    let a = analyze(trace, &Options { detail: Detail::Intervals, ..Options::default() }).unwrap();
    let (parts, whole) = a.blame_check();
    assert_eq!(parts, whole, "blame adds up");
    let ledger = Attribution::from(&a).ledger;
    assert_eq!(ledger.leaves().map(|l| l.1).sum::<u64>(), ledger.capacity_ns);
    if let Ok(path) = Attribution::from(&a).path(None) {
        assert_eq!(
            path.rows.iter().map(|r| r.total_ns).sum::<u64>(),
            path.total_ns,
            "the path closes"
        );
    }
    a
}

fn first(a: &Analysis) -> WaitsRow {
    Attribution::from(a).waits(WaitsBy::Object).into_iter().next().unwrap()
}
