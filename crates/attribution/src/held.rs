//! How long a mutex was held in total, with the holds that no event shows.

use holdup_model::Arrivals;
use holdup_passes::{Analysis, FutexUse, HoldSum, ObjectStats, Slot};
use holdup_trace::Nanos;
use std::collections::BTreeSet;

/// The number of holds seen from beginning to end, and of waits, that an estimate of the unseen
/// holds needs.
const ENOUGH: u64 = 10;

/// The holds of a mutex by all threads together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldInAll {
    /// Time held.
    pub ns: Nanos,
    /// Times held.
    pub holds: u64,
}

impl HeldInAll {
    /// For a mutex, or the writers of a lock, for which threads make calls only under contention:
    /// estimated from the number of threads that came and found it held ([`Arrivals`]). `held` and
    /// `waited` are by thread. `None` for all else: locks whose every hold is seen, locks that are
    /// handed to a sleeping thread or that several may hold at once; and if too little is seen.
    pub fn of(
        a: &Analysis,
        o: &ObjectStats,
        held: &[(Slot, HoldSum)],
        waited: impl IntoIterator<Item = (Slot, Nanos)>,
    ) -> Option<HeldInAll> {
        let is_contended = matches!(o.usage, Some(FutexUse::Mutex | FutexUse::RwLock));
        if !is_contended || o.is_shared || o.came < ENOUGH {
            return None;
        }
        let mut seen = HoldSum::default();
        held.iter().for_each(|&(_, sum)| seen.add(sum));
        let (whole, whole_ns) = (seen.holds - seen.inferred, seen.hold_ns - seen.inferred_ns);
        if whole < ENOUGH || whole_ns == 0 {
            return None;
        }
        let mut users: BTreeSet<Slot> = held.iter().map(|of| of.0).collect();
        let mut waited_ns: Nanos = 0;
        for (slot, ns) in waited {
            users.insert(slot);
            waited_ns += ns;
        }
        let alive = |slot: &Slot| {
            let t = a.thread(*slot);
            let alive = t.active_ns() + t.blocked_ns;
            alive.saturating_sub(a.idle_wait_ns(*slot)) as f64
        };
        let number = users.len() as f64;
        let hold = whole_ns as f64 / whole as f64;
        let seen_by = Arrivals {
            customers: users.len() as u32,
            alive: users.iter().map(alive).sum::<f64>() / number,
            waited: waited_ns as f64 / number,
            found_held: o.came as f64,
            hold,
        };
        let ns = seen_by.held()?.max(whole_ns as f64);
        let holds = (ns / hold).round() as u64;
        Some(HeldInAll { ns: ns as Nanos, holds: holds.max(seen.holds) })
    }
}
