//! Threads that meet at a barrier after each round.

use super::{address, culprit};
use crate::site::{Error, Made, Site, Worker};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

/// Work of a thread in a round: before the others start, and together with them.
type Round = (u64, u64);

/// Threads with the work per round that `of(i, n)` returns for thread `i` of `n`.
fn rounds(site: &Site, role: &str, of: impl Fn(usize, usize) -> Round) -> Result<Made, Error> {
    let n = site.workers();
    let meet = Arc::new(Barrier::new(n));
    let culprits =
        vec![culprit(&["thread", &format!("{role}-0")]), culprit(&["barrier", &address(&*meet)])];
    // No thread may miss a meeting: only the first thread looks at the clock, and announces the
    // last round before a meeting, so that all threads stop after the same round.
    let last = Arc::new(AtomicU64::new(u64::MAX));
    let prepares = of(0, n).0 > 0;
    let worker = |i: usize| {
        let (meet, last, (alone, work)) = (meet.clone(), last.clone(), of(i, n));
        Worker::new(format!("{role}-{i}"), move |clock, tally| {
            for round in 0.. {
                if i == 0 {
                    clock.hold(alone, tally);
                    if clock.over() && last.load(Ordering::SeqCst) == u64::MAX {
                        last.store(round + 1, Ordering::SeqCst);
                    }
                }
                if prepares {
                    clock.wait(tally, || meet.wait());
                }
                clock.think(work, tally);
                clock.wait(tally, || meet.wait());
                tally.units += u64::from(i == 0);
                if round >= last.load(Ordering::SeqCst) {
                    break;
                }
            }
            Ok(())
        })
    };
    Ok(Made::threads((0..n).map(worker).collect(), culprits))
}

/// One thread has more work than the others.
pub(crate) fn barrier(site: &Site) -> Result<Made, Error> {
    let (work, skew, even) = (site.get("work"), site.get("skew"), site.get("even") > 0);
    rounds(site, "round", |i, n| {
        let more = work * skew / 100;
        (
            0,
            work + if even {
                more / n as u64
            } else if i == 0 {
                more
            } else {
                0
            },
        )
    })
}

/// One thread prepares each round alone.
pub(crate) fn serial(site: &Site) -> Result<Made, Error> {
    let (work, serial, even) = (site.get("work"), site.get("serial"), site.get("even") > 0);
    rounds(site, "serial", |i, n| match (even, i) {
        (true, _) => (0, work + serial / n as u64),
        (false, 0) => (serial, work),
        (false, _) => (0, work),
    })
}
