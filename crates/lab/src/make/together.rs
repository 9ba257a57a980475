//! Threads that meet at a barrier after each round.

use super::{address, culprit};
use crate::run::{Error, Made, Site, Worker};
use std::sync::{Arc, Barrier};

/// Work of thread `i` of `n` in a round: before all others, and with them.
type Round = (u64, u64);

fn rounds(site: &Site, role: &str, of: impl Fn(usize, usize) -> Round) -> Result<Made, Error> {
    let n = site.workers();
    let meet = Arc::new(Barrier::new(n));
    let culprits =
        vec![culprit(&["thread", &format!("{role}-0")]), culprit(&["barrier", &address(&*meet)])];
    // Nobody may stay away from the last meeting: the first thread alone looks at the clock.
    let last = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let worker = |i: usize| {
        let (meet, last, (alone, work)) = (meet.clone(), last.clone(), of(i, n));
        let preparation = of(0, n).0 > 0;
        Worker::new(format!("{role}-{i}"), move |clock, tally| {
            use std::sync::atomic::Ordering::SeqCst;
            loop {
                if i == 0 {
                    clock.hold(alone, tally);
                    last.store(clock.over(), SeqCst);
                }
                if preparation {
                    clock.wait(tally, || meet.wait());
                }
                clock.think(work, tally);
                // What the first thread says must be read before it can say something else.
                clock.wait(tally, || meet.wait());
                let over = last.load(SeqCst);
                clock.wait(tally, || meet.wait());
                tally.units += u64::from(i == 0);
                if over {
                    return Ok(());
                }
            }
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
