//! Threads as culprits: a server of all others, a straggler, threads that run alone, threads that
//! queue.

use super::{CULPRITS, most_costly, objects, program_name, waited_for};
use crate::facts::Facts;
use crate::report::{Culprit, Role};
use holdup_attribution::{Blamed, Leaf, Server, Sleeper};
use holdup_passes::{Slot, Thread, role};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A thread by its running time.
pub(crate) fn runs(facts: &Facts<'_>, slot: Slot) -> Culprit {
    let ns = facts.thread(slot).running_ns;
    Culprit { role: Role::Runs, ..facts.culprit("thread", slot, ns) }
}

/// The threads that run longest.
pub(crate) fn busiest(facts: &Facts<'_>) -> Vec<Culprit> {
    most_costly(facts, facts.workers.iter().map(|w| runs(facts, w.0)).collect())
}

/// The programs whose threads run longest, by the names of their threads without the number at the
/// end; each with its threads by the time for which they were ready without a CPU.
pub(crate) fn programs(facts: &Facts<'_>) -> Vec<Culprit> {
    let mut by: BTreeMap<Vec<u8>, Vec<Slot>> = BTreeMap::new();
    for &(slot, _) in &facts.workers {
        let comm = facts.analysis.comm(facts.thread(slot));
        by.entry(role(comm.as_bytes()).to_vec()).or_default().push(slot);
    }
    let mut programs: Vec<Culprit> = by.into_values().map(|of| program(facts, &of)).collect();
    programs.sort_by(|a, b| (Reverse(a.ns), &a.id).cmp(&(Reverse(b.ns), &b.id)));
    most_costly(facts, programs)
}

fn program(facts: &Facts<'_>, threads: &[Slot]) -> Culprit {
    let name = program_name(facts, threads.iter().copied());
    let ready = |t: &Thread| t.active_ns() - t.running_ns;
    let queues = threads.iter().map(|&slot| (slot, ready(facts.thread(slot))));
    let sleepers = queues.map(|(slot, wait_ns)| Sleeper { slot, wait_ns });
    let ns = threads.iter().map(|&slot| facts.thread(slot).running_ns).sum();
    let id = name.clone();
    let program =
        Culprit { kind: "program", id, name, ns, role: Role::Queued, ..Culprit::default() };
    waited_for(facts, &Sleeper::added_up(sleepers), program)
}

/// The one thread that all others wait for, and the objects they wait at.
pub(crate) fn server(facts: &Facts<'_>, server: Server) -> Vec<Culprit> {
    let at = barriers(facts);
    if server.at_barriers {
        return with(at, 1, Culprit { role: Role::Straggler, ..runs(facts, server.slot) });
    }
    // The server matters more than the object through which it serves.
    let mut waiters = waiters(facts, |o| o.leaves.contains_key(&Leaf::OneServer));
    waiters.retain(|w| w.slot != server.slot);
    let one = Culprit { role: Role::Server, ..runs(facts, server.slot) };
    with(at, 0, waited_for(facts, &waiters, one))
}

/// The objects at which threads wait for one other thread, or for the last to arrive.
pub(crate) fn barriers(facts: &Facts<'_>) -> Vec<Culprit> {
    most_costly(facts, objects::at_leaf(facts, Leaf::OneServer))
}

/// The thread that has all the work.
pub(crate) fn alone(facts: &Facts<'_>, slot: Slot) -> Vec<Culprit> {
    let at = if facts.leaf(Leaf::OneServer) > 0 { barriers(facts) } else { Vec::new() };
    with(at, 0, runs(facts, slot))
}

fn with(mut culprits: Vec<Culprit>, place: usize, thread: Culprit) -> Vec<Culprit> {
    culprits.insert(place.min(culprits.len()), thread);
    culprits.truncate(CULPRITS);
    culprits
}

/// The threads that queue longest for a CPU.
pub(crate) fn queued(facts: &Facts<'_>) -> Vec<Culprit> {
    let mut by: Vec<(Slot, Nanos)> = facts
        .analysis
        .all_threads()
        .filter(|(_, t)| !t.is_kthread() && t.queued_ns > 0)
        .filter(|(_, t)| facts.judged.chosen.is_none() || facts.analysis.is_chosen(t))
        .map(|(slot, t)| (slot, t.queued_ns))
        .collect();
    by.sort_by_key(|&(slot, ns)| (Reverse(ns), slot));
    by.iter()
        .take(CULPRITS)
        .map(|&(slot, ns)| Culprit { role: Role::Queued, ..facts.culprit("thread", slot, ns) })
        .collect()
}

/// Threads that slept for any of these objects, longest first.
pub(super) fn waiters(facts: &Facts<'_>, of: impl Fn(&Blamed) -> bool) -> Vec<Sleeper> {
    let objects = facts.objects().iter().filter(|o| of(o));
    Sleeper::added_up(objects.flat_map(|o| &o.sleepers).copied())
}
