//! Threads as culprits: the one that serves all others, the one that comes late, those that run
//! alone, those that queue.

use super::{CULPRITS, most_costly, objects, waited_for};
use crate::facts::Facts;
use crate::report::{Culprit, Part};
use holdup_attribution::{Blamed, Leaf, Sleeper};
use holdup_passes::Slot;
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A thread by the time it runs.
fn runs(facts: &Facts<'_>, slot: Slot, part: Part) -> Culprit {
    Culprit { part, ..facts.culprit("thread", slot, facts.thread(slot).running_ns) }
}

/// The threads that run longest.
pub(crate) fn busiest(facts: &Facts<'_>) -> Vec<Culprit> {
    facts.workers.iter().take(CULPRITS).map(|w| runs(facts, w.0, Part::Runs)).collect()
}

/// Who has all the work (`lone`), and what the others wait at for it; `bound` is the idle CPU time
/// beside threads that may not use it.
pub(crate) fn imbalance(facts: &Facts<'_>, lone: Option<Slot>, bound: Nanos) -> Vec<Culprit> {
    let served = facts.leaf(Leaf::OneServer);
    let at = most_costly(facts, objects::at_leaf(facts, Leaf::OneServer));
    let mut culprits = match (facts.judged.server, lone) {
        // Through which object a server serves matters less than who it is.
        (Some(server), _) if !server.at_barriers => {
            let mut waiters = waiters(facts, |o| o.leaves.contains_key(&Leaf::OneServer));
            waiters.retain(|w| w.slot != server.slot);
            let thread = runs(facts, server.slot, Part::Server);
            let mut all = vec![waited_for(facts, &waiters, thread)];
            all.extend(at);
            all
        }
        (Some(server), _) => {
            let mut all = at;
            all.insert(all.len().min(1), runs(facts, server.slot, Part::Late));
            all
        }
        (None, Some(slot)) => {
            let mut all = vec![runs(facts, slot, Part::Runs)];
            all.extend(at.into_iter().filter(|_| served > 0));
            all
        }
        (None, None) if bound > served => queued(facts),
        (None, None) => at,
    };
    culprits.truncate(CULPRITS);
    culprits
}

/// The threads that wait longest for a CPU behind others.
fn queued(facts: &Facts<'_>) -> Vec<Culprit> {
    let mut by: Vec<(Slot, Nanos)> = facts
        .analysis
        .threads()
        .filter(|(_, t)| !t.is_kthread() && t.queued_ns > 0)
        .map(|(slot, t)| (slot, t.queued_ns))
        .collect();
    by.sort_by_key(|&(slot, ns)| (Reverse(ns), slot));
    by.iter()
        .take(CULPRITS)
        .map(|&(slot, ns)| Culprit { part: Part::Queued, ..facts.culprit("thread", slot, ns) })
        .collect()
}

/// Threads that slept for any of these objects, longest first.
pub(super) fn waiters(facts: &Facts<'_>, of: impl Fn(&Blamed) -> bool) -> Vec<Sleeper> {
    let mut by: BTreeMap<Slot, Nanos> = BTreeMap::new();
    for s in facts.objects().iter().filter(|o| of(o)).flat_map(|o| &o.sleepers) {
        *by.entry(s.slot).or_default() += s.wait_ns;
    }
    let mut waiters: Vec<Sleeper> =
        by.into_iter().map(|(slot, wait_ns)| Sleeper { slot, wait_ns }).collect();
    waiters.sort_by_key(|w| (Reverse(w.wait_ns), w.slot));
    waiters
}
