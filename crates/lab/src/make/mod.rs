//! What the workloads do, one file per kind of shared resource.

pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod driver;
pub(crate) mod files;
pub(crate) mod jobs;
pub(crate) mod kernel;
pub(crate) mod locks;
pub(crate) mod memory;
pub(crate) mod pipes;
pub(crate) mod queues;
pub(crate) mod serve;
pub(crate) mod together;

use crate::clock::Clock;
use crate::count::Tally;
use crate::site::{Error, Made, PIDS, Site, Spot};
use std::io;

/// A culprit whose kind and name contain these words.
fn culprit(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// A culprit of this kind in one of the processes.
fn of_a_worker(kind: &str) -> Vec<String> {
    culprit(&[kind, PIDS])
}

/// The address of something that all threads share, as verdicts print addresses, without the last
/// digits: the library decides on which word of it a thread sleeps.
fn address<T>(thing: &T) -> String {
    let text = format!("{:#x}", std::ptr::from_ref(thing) as usize);
    text[..text.len().saturating_sub(2)].to_owned()
}

/// As many processes as workers, with nothing on their standard input and output.
fn plain(site: &Site, culprits: Vec<Vec<String>>) -> Result<Made, Error> {
    let spots = (0..site.workers()).map(|_| Spot::default()).collect();
    Ok(Made::processes(spots, culprits))
}

/// Until the end: think, wait for the turn, work, and let the next worker continue.
fn turns(
    clock: &Clock,
    tally: &mut Tally,
    (think, hold): (u64, u64),
    mut enter: impl FnMut() -> io::Result<()>,
    mut leave: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    while !clock.over() {
        clock.think(think, tally);
        clock.wait(tally, &mut enter)?;
        clock.hold(hold, tally);
        leave()?;
        tally.units += 1;
    }
    Ok(())
}

/// Until the end: think, and do something for which the kernel makes the worker wait for others.
fn calls(
    clock: &Clock,
    tally: &mut Tally,
    think: u64,
    mut call: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    while !clock.over() {
        clock.think(think, tally);
        clock.wait(tally, &mut call)?;
        tally.units += 1;
    }
    Ok(())
}
