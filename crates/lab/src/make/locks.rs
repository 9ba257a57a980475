//! Threads of one process that contend for locks of the standard library.

use super::{address, culprit};
use crate::clock::Clock;
use crate::count::Tally;
use crate::site::{Error, Made, Site, Worker};
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// Aligned away from its neighbours, so that a diagnosis names this object.
#[repr(align(256))]
struct Apart<T>(T);

/// The settings of all contending threads.
#[derive(Clone, Copy)]
struct Turn {
    hold: u64,
    think: u64,
}

impl Turn {
    fn of(site: &Site) -> Turn {
        Turn { hold: site.get("hold"), think: site.get("think") }
    }
}

/// A thread for each worker, spread over `number` objects.
fn spread<T: Send + Sync + 'static>(
    site: &Site,
    (role, number): (&str, usize),
    thing: impl Fn() -> T,
    work: fn(&T, Turn, u64, &Clock, &mut Tally) -> io::Result<()>,
) -> Result<Made, Error> {
    let things: Vec<Arc<Apart<T>>> = (0..number).map(|_| Arc::new(Apart(thing()))).collect();
    let culprits = things.iter().map(|thing| culprit(&[&address(&thing.0)])).collect();
    let (turn, writes) = (Turn::of(site), site.get("writes"));
    let worker = |i: usize| {
        let thing = things[i % number].clone();
        Worker::new(format!("{role}-{i}"), move |clock, tally| {
            work(&thing.0, turn, writes, clock, tally)
        })
    };
    Ok(Made::threads((0..site.workers()).map(worker).collect(), culprits))
}

/// Threads contend for a mutex.
pub(crate) fn mutex(site: &Site) -> Result<Made, Error> {
    spread(
        site,
        ("mutex", site.count("locks")),
        || Mutex::new(0_u64),
        |lock, turn, _, clock, tally| {
            while !clock.over() {
                clock.think(turn.think, tally);
                let mut held =
                    clock.wait(tally, || lock.lock().unwrap_or_else(PoisonError::into_inner));
                clock.hold(turn.hold, tally);
                *held += 1;
                drop(held);
                tally.units += 1;
            }
            Ok(())
        },
    )
}

/// Threads contend for a lock for readers and writers.
pub(crate) fn rwlock(site: &Site) -> Result<Made, Error> {
    spread(
        site,
        ("rwlock", site.count("locks")),
        || RwLock::new(0_u64),
        |lock, turn, writes, clock, tally| {
            // Writes are spread evenly over the operations.
            let mut due = 0;
            while !clock.over() {
                clock.think(turn.think, tally);
                due += writes;
                if due >= 100 {
                    due -= 100;
                    let held =
                        clock.wait(tally, || lock.write().unwrap_or_else(PoisonError::into_inner));
                    clock.hold(turn.hold, tally);
                    drop(held);
                } else {
                    let held =
                        clock.wait(tally, || lock.read().unwrap_or_else(PoisonError::into_inner));
                    clock.hold(turn.hold, tally);
                    drop(held);
                }
                tally.units += 1;
            }
            Ok(())
        },
    )
}

/// Permits, and the threads that wait for one.
struct Permits {
    free: Mutex<usize>,
    given_back: Condvar,
}

/// Threads wait for one of a few permits.
pub(crate) fn condvar(site: &Site) -> Result<Made, Error> {
    let permits = site.count("permits");
    let thing = || Permits { free: Mutex::new(permits), given_back: Condvar::new() };
    spread(site, ("condvar", 1), thing, |permits, turn, _, clock, tally| {
        while !clock.over() {
            clock.think(turn.think, tally);
            clock.wait(tally, || {
                let free = permits.free.lock().unwrap_or_else(PoisonError::into_inner);
                let none = |free: &mut usize| *free == 0;
                let free = permits.given_back.wait_while(free, none);
                *free.unwrap_or_else(PoisonError::into_inner) -= 1;
            });
            clock.hold(turn.hold, tally);
            *permits.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            permits.given_back.notify_one();
            tally.units += 1;
        }
        Ok(())
    })
}
