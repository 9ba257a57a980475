//! Threads that wait without sleeping: they yield their CPU, look, and yield again.
//!
//! Such a thread waits for another of its program. Two things must come together. Several threads
//! of the program yield: one that does it alone waits for something outside, or for nothing. And
//! the program's threads also do other work, for which the yielding ones wait: threads that only
//! yield neither gain nor lose anything by it.

use crate::limits::{LOOK, Thresholds};
use crate::peers::{Peers, peers};
use holdup_passes::{Again, Analysis, Slot};
use std::cmp::Reverse;

/// Threads of one program that wait for each other by yielding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spinning {
    /// They belong to several processes.
    pub between_processes: bool,
    /// All their waiting.
    pub sum: Again,
    /// The threads, longest first.
    pub threads: Vec<(Slot, Again)>,
}

/// Every program that waits like this, most CPU time first.
pub(crate) fn spinning(analysis: &Analysis, thresholds: &Thresholds) -> Vec<Spinning> {
    let short = (thresholds.get(&LOOK) * 1000.0) as u64;
    let again = analysis.yields().map(|(slot, yields)| (slot, yields.after_less_than(short)));
    let peers = peers(analysis, again.filter(|(_, again)| again.times > 0));
    let mut out: Vec<Spinning> = peers.into_iter().map(Spinning::of).collect();
    out.retain(|s| works(s, analysis));
    out.sort_by_key(|s| (Reverse(s.sum.cpu_ns), s.threads.first().map(|t| t.0)));
    out
}

impl Spinning {
    fn of(peers: Peers<Again>) -> Spinning {
        let Peers { between_processes, mut threads } = peers;
        threads.sort_by_key(|&(slot, again)| (Reverse(again.cpu_ns), slot));
        let mut sum = Again::default();
        threads.iter().for_each(|t| sum.add(t.1));
        Spinning { between_processes, sum, threads }
    }
}

/// Whether the yielding threads have anything to wait for.
fn works(s: &Spinning, analysis: &Analysis) -> bool {
    let running: u64 = s.threads.iter().map(|t| analysis.thread(t.0).running_ns).sum();
    let work = running.saturating_sub(s.sum.cpu_ns);
    // If N threads wait for each other, one works, for 1/N of all their time: require half of that.
    work * 2 * s.threads.len() as u64 >= running
}
