//! What tables print of idle time, of delays and of sleep, against the ledger and against the
//! states of threads that the ledger was made from.

use holdup_attribution::{Attribution, Leaf, Total, WaitsBy};
use holdup_passes::Analysis;
use holdup_trace::Nanos;
use std::collections::BTreeMap;

/// A claim, the part, and the whole that it must not exceed.
pub(crate) type Claim = (&'static str, Nanos, Nanos);

/// What of idle time belongs to no wait. Of the rest (a thread that works alone or first, a driver)
/// waits show the part of those who waited for it.
const NOBODYS: [Leaf; 3] = [Leaf::Scheduler, Leaf::Throttled, Leaf::NoWork];

/// Of an analysis with every time asleep.
pub(crate) fn claims(a: &Analysis) -> Vec<Claim> {
    let judged = Attribution::from(a);
    let mut claims = waits(&judged);
    claims.extend(switches(a, &judged));
    claims.extend(path(a, &judged));
    claims
}

/// Each row loses less than a nanosecond to rounding, and each leaf too. By thread only those have
/// rows that waited.
fn waits(judged: &Attribution<'_>) -> Vec<Claim> {
    let sum = |leaves: &[Leaf]| leaves.iter().map(|&leaf| judged.ledger.ns(leaf)).sum::<Nanos>();
    let least = sum(&Leaf::WAITED_FOR);
    let most = judged.ledger.total(Total::Idle) - sum(&NOBODYS);
    let blamed = |by| {
        let rows = judged.waits(by);
        (rows.iter().map(|r| r.idle_blamed_ns).sum::<Nanos>(), rows.len() as u64)
    };
    let (objects, kinds) = (blamed(WaitsBy::Object), blamed(WaitsBy::Kind));
    vec![
        ("waits <= the ledger", objects.0, most),
        ("the ledger <= waits", least, objects.0 + objects.1),
        ("waits by kind <= the ledger", kinds.0, most),
        ("the ledger <= waits by kind", least, kinds.0 + kinds.1),
        ("waits by thread <= the ledger", blamed(WaitsBy::Thread).0, most),
    ]
}

/// Idle time beside ready threads is at most their delays. A delay is printed when it is over, as
/// `perf sched latency` counts it; those that never had a CPU have no row.
fn switches(a: &Analysis, judged: &Attribution<'_>) -> Vec<Claim> {
    if !a.capabilities.switches {
        return Vec::new();
    }
    let mut ready: BTreeMap<u32, Nanos> = BTreeMap::new();
    for (_, t) in a.all_threads() {
        *ready.entry(t.tid.0).or_default() += t.woken_ns + t.preempted_ns;
    }
    let mut delays = 0;
    for row in a.switches() {
        let ready = ready.remove(&row.tid).unwrap_or(0);
        let count = row.delay_count.unwrap_or(0);
        let printed = count * (row.avg_delay_ns.unwrap_or(0) + 1) + row.preempted_ns;
        delays += printed.max(ready);
    }
    let without: Nanos = ready.values().sum();
    let scheduler = judged.ledger.ns(Leaf::Scheduler);
    vec![("idle/scheduler <= delays of switches", scheduler, delays + without)]
}

/// The path takes each moment of a life once, and sleeps no longer than threads did.
fn path(a: &Analysis, judged: &Attribution<'_>) -> Vec<Claim> {
    let Some(slot) = judged.path_of() else { return Vec::new() };
    let Ok(path) = judged.path(Some(a.thread(slot).tid.0)) else { return Vec::new() };
    let sum: Nanos = path.rows.iter().map(|r| r.total_ns).sum();
    let mut claims =
        vec![("path <= a life", sum, path.total_ns), ("a life <= path", path.total_ns, sum)];
    let mut asleep: BTreeMap<u32, Nanos> = BTreeMap::new();
    for (slot, t) in a.all_threads() {
        *asleep.entry(t.tid.0).or_default() +=
            a.sleeps(slot).iter().map(|i| i.to - i.from).sum::<Nanos>();
    }
    for row in path.rows.iter().filter(|r| r.state == "wait") {
        claims.push(("path: waits <= sleep", row.total_ns, asleep[&row.tid]));
    }
    claims
}
