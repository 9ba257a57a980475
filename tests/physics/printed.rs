//! What tables print of idle time, of delays and of sleep, against the ledger and against the
//! states of threads that the ledger was made from.

use holdup_attribution::{Attribution, Leaf, WaitsBy};
use holdup_passes::Analysis;
use holdup_trace::Nanos;
use std::collections::BTreeMap;

/// A claim, the part, and the whole that it must not exceed.
pub(crate) type Claim = (&'static str, Nanos, Nanos);

/// What of idle time belongs to what threads waited for.
const WAITED_FOR: [Leaf; 5] =
    [Leaf::ThreadSync, Leaf::KernelServices, Leaf::KernelLocks, Leaf::OneServer, Leaf::Io];

/// Of an analysis with every time asleep.
pub(crate) fn claims(a: &Analysis) -> Vec<Claim> {
    let judged = Attribution::from(a);
    let mut claims = waits(&judged);
    claims.extend(switches(a, &judged));
    claims.extend(path(a, &judged));
    claims
}

/// Each row loses less than a nanosecond to rounding, and each leaf too.
fn waits(judged: &Attribution<'_>) -> Vec<Claim> {
    let leaves: Nanos = WAITED_FOR.map(|leaf| judged.ledger.ns(leaf)).iter().sum();
    let table = |by, printed: &'static str, known: &'static str| {
        let rows = judged.waits(by);
        let blamed: Nanos = rows.iter().map(|r| r.idle_blamed_ns).sum();
        [(printed, blamed, leaves), (known, leaves, blamed + rows.len() as u64)]
    };
    [
        table(WaitsBy::Object, "waits <= the ledger", "the ledger <= waits"),
        table(WaitsBy::Thread, "waits by thread <= the ledger", "the ledger <= waits by thread"),
        table(WaitsBy::Kind, "waits by kind <= the ledger", "the ledger <= waits by kind"),
    ]
    .concat()
}

/// Idle time beside ready threads is at most their delays, and these are at most what they were
/// ready.
fn switches(a: &Analysis, judged: &Attribution<'_>) -> Vec<Claim> {
    let delay = |count: Option<u64>, avg: Option<u64>| count.unwrap_or(0) * avg.unwrap_or(0);
    let rows = a.switches();
    let printed: Nanos =
        rows.iter().map(|r| delay(r.delay_count, r.avg_delay_ns) + r.preempted_ns).sum();
    let rounding: Nanos = rows.iter().map(|r| r.delay_count.unwrap_or(0)).sum();
    let ready: Nanos = a.all_threads().map(|(_, t)| t.woken_ns + t.preempted_ns).sum();
    let scheduler = judged.ledger.ns(Leaf::Scheduler);
    vec![
        ("idle/scheduler <= delays of switches", scheduler, printed + rounding),
        ("delays of switches <= ready", printed, ready),
    ]
}

/// The path takes each moment of a life once, and sleeps no longer than threads did.
fn path(a: &Analysis, judged: &Attribution<'_>) -> Vec<Claim> {
    let Some(slot) = judged.path_of() else { return Vec::new() };
    let t = a.thread(slot);
    let Ok(path) = judged.path(Some(t.tid.0)) else { return Vec::new() };
    let sum: Nanos = path.rows.iter().map(|r| r.total_ns).sum();
    let mut claims =
        vec![("path <= a life", sum, path.total_ns), ("a life <= path", path.total_ns, sum)];
    // Another thread may have had the number before.
    if path.total_ns == t.died.unwrap_or(a.end).saturating_sub(t.born.max(a.start)) {
        let own = path.rows.iter().filter(|r| r.tid == t.tid.0 && r.kind.is_empty());
        let ran: Nanos = own.filter(|r| r.state == "run").map(|r| r.total_ns).sum();
        let slept: Nanos = a.sleeps(slot).iter().map(|i| i.to - i.from).sum();
        let unslept = t.blocked_ns.saturating_sub(slept);
        let awake = t.running_ns + t.woken_ns + t.preempted_ns + unslept;
        claims.push(("path: runs <= running, ready or being woken", ran, awake));
    }
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
