//! Kernel locks as culprits: by contention and lockdep events, else by what threads slept for, else
//! the system calls that spend the time.

use super::{CULPRITS, PEOPLE, most_costly, objects, syscall, waited_for};
use crate::facts::Facts;
use crate::report::{Culprit, Person, Role};
use holdup_attribution::limits::NAMED;
use holdup_attribution::{Blamed, Leaf, Sleeper};
use holdup_passes::{LockThreads, Slot, percent};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The locks behind a loss of `lost` and, if they explain less than half of it, the most expensive
/// system calls (`calls`, in that order).
pub(crate) fn kernel_locks(
    facts: &Facts<'_>,
    calls: &[(String, Nanos)],
    lost: Nanos,
) -> Vec<Culprit> {
    // An address names one lock; a call alone names one per process: the costliest is taken.
    let mut slept_for: BTreeMap<&str, &Blamed> = BTreeMap::new();
    for o in facts.objects().iter().filter(|o| o.leaves.contains_key(&Leaf::KernelLocks)) {
        let kept = slept_for.entry(&o.row.object).or_insert(o);
        if o.idle_ns(Leaf::KernelLocks) > kept.idle_ns(Leaf::KernelLocks) {
            *kept = o;
        }
    }
    let matters = |ns: Nanos| facts.at_least(facts.pct(ns), &NAMED).holds();
    let mut culprits: Vec<Culprit> = Vec::new();
    for lock in facts.analysis.lock_threads() {
        let mut addresses = [Some(lock.address), lock.contended_at].into_iter().flatten();
        let object = addresses.find_map(|a| slept_for.remove(format!("{a:#x}").as_str()));
        let idle = object.map_or(0, |o| o.idle_ns(Leaf::KernelLocks));
        if matters(lock.spin_ns + lock.block_ns.max(idle)) {
            culprits.push(named(facts, &lock, object));
        }
    }
    // What threads slept for without an event of a lock.
    let unseen = slept_for.values().filter(|o| matters(o.idle_ns(Leaf::KernelLocks)));
    culprits.extend(unseen.map(|o| objects::culprit(facts, o, o.idle_ns(Leaf::KernelLocks))));
    culprits.retain(|c| matters(c.ns));
    culprits.sort_by(|a, b| (Reverse(a.ns), &a.id).cmp(&(Reverse(b.ns), &b.id)));
    culprits.truncate(CULPRITS);
    if culprits.iter().map(|c| c.ns).sum::<Nanos>() * 2 < lost {
        let calls: Vec<Culprit> = calls.iter().map(|(c, ns)| syscall(facts, c, *ns)).collect();
        culprits.extend(most_costly(facts, calls));
        culprits.truncate(CULPRITS);
    }
    culprits
}

/// A lock that lock events show; `object` is the same lock among what threads slept for.
fn named(facts: &Facts<'_>, lock: &LockThreads, object: Option<&Blamed>) -> Culprit {
    let idle = object.map_or_else(
        // Sleepers at other things count too: CPUs idled for this lock at most as the ledger says.
        || lock.block_ns.min(facts.leaf(Leaf::KernelLocks)),
        |o| o.idle_ns(Leaf::KernelLocks),
    );
    let address = format!("{:#x}", lock.address);
    // A class may have many locks.
    let which = match (&lock.name, lock.likely) {
        (Some(class), _) => format!("{class} at {address}"),
        (None, Some(likely)) => format!("{address}, most likely {likely}"),
        (None, None) => address.clone(),
    };
    // The function that asked for it, or else the system call in which its threads slept.
    let call = || object.and_then(|o| o.calls.first());
    let asked = lock.callers.first().or_else(call);
    let asked = asked.map_or(String::new(), |c| format!(", acquired in {}", c.0));
    let mut around = object.map(|o| objects::culprit(facts, o, 0)).unwrap_or_default();
    if !lock.holders.is_empty() {
        around.holders_in_all = Some(lock.holders.len() as u64);
        around.holders = holders(facts, lock);
    }
    // The lock's events tell about spinning too.
    let addresses = [Some(lock.address), lock.contended_at].into_iter().flatten();
    let seen = facts.code.and_then(|code| addresses.into_iter().find_map(|a| code.lock(a)));
    let culprit = Culprit {
        kind: "kernel-lock",
        code: seen.or_else(|| around.code.clone()),
        name: format!("kernel {} {which}{asked}", lock.kind.unwrap_or("lock")),
        id: object.map_or(address.clone(), |o| o.row.object.clone()),
        ns: lock.spin_ns + idle,
        role: Role::KernelLock,
        ..around
    };
    let waiters: Vec<Sleeper> =
        lock.waiters.iter().map(|&(slot, wait_ns)| Sleeper { slot, wait_ns }).collect();
    waited_for(facts, &waiters, culprit)
}

/// The threads that held the lock while others waited, by its release events.
fn holders(facts: &Facts<'_>, lock: &LockThreads) -> Vec<Person> {
    let waited: Nanos = lock.waiters.iter().map(|(_, ns)| ns).sum();
    let person = |&(slot, ns, for_it): &(Slot, Nanos, Nanos)| {
        let t = facts.thread(slot);
        Person {
            tid: t.tid.0,
            pid: facts.analysis.pid(t),
            comm: facts.analysis.comm(t),
            ns,
            pct: (waited > 0).then(|| percent(for_it.min(waited), waited)),
            inferred: false,
        }
    };
    lock.holders.iter().take(PEOPLE).map(person).collect()
}
