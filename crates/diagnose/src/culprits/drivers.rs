//! Drivers' work as culprits: softirqs, interrupts, work functions and kernel threads, each with
//! the CPU it is confined to and the threads that sleep meanwhile.

use super::threads::waiters;
use super::waited_for;
use crate::facts::Facts;
use crate::report::{Culprit, Role};
use holdup_attribution::Leaf;

/// What does most of the driver work on the one CPU that does all of it.
pub(crate) fn driver(facts: &Facts<'_>, most: Option<Culprit>, cpu: u16) -> Vec<Culprit> {
    most.into_iter()
        .map(|c| for_others(facts, Culprit { name: format!("{} on CPU {cpu}", c.name), ..c }))
        .collect()
}

/// A driver's only worker, wherever it runs.
pub(crate) fn worker(facts: &Facts<'_>, worker: Culprit) -> Vec<Culprit> {
    let rows = facts.analysis.irqs(true);
    let on: Vec<_> = rows.iter().filter(|r| r.kind == worker.kind && r.name == worker.id).collect();
    let all: u64 = on.iter().map(|r| r.total_ns).sum();
    let mostly = on.iter().find(|r| r.total_ns * 2 > all).and_then(|r| r.cpu);
    let place = match mostly {
        Some(cpu) => format!(", mostly on CPU {cpu}"),
        None if on.is_empty() => String::new(),
        None => format!(", on {} CPUs", on.len()),
    };
    vec![for_others(facts, Culprit { name: format!("{}{place}", worker.name), ..worker })]
}

/// Threads that sleep for a device or for a kernel lock may be waiting for the driver.
fn for_others(facts: &Facts<'_>, culprit: Culprit) -> Culprit {
    let waiters = waiters(facts, |o| {
        [Leaf::Io, Leaf::KernelLocks].iter().any(|leaf| o.leaves.contains_key(leaf))
    });
    waited_for(facts, &waiters, Culprit { role: Role::Driver, ..culprit })
}
