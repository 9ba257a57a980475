//! Threads that meet at a barrier after each round.

use super::{address, culprit};
use crate::site::{Error, Made, Site, Worker};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

/// Work of a thread in a round: before all others, and with them.
type Round = (u64, u64);

/// Threads whose rounds have the work that `of` says of thread `i` of `n`.
fn rounds(site: &Site, role: &str, of: impl Fn(usize, usize) -> Round) -> Result<Made, Error> {
    let n = site.workers();
    let meet = Arc::new(Barrier::new(n));
    let culprits =
        vec![culprit(&["thread", &format!("{role}-0")]), culprit(&["barrier", &address(&*meet)])];
    // Nobody may stay away from a meeting: the first thread alone looks at the clock, and says
    // before a meeting that the next round is the last, so that all know when they part.
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

/// One thread has more to do than the others.
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
