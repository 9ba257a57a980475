//! Lock ratio and waiting ratio (Kaieda et al.): each thread's time with locks.

use crate::analysis::Analysis;
use crate::slot::Slot;
use crate::threads::Thread;
use holdup_trace::Nanos;
use std::collections::BTreeMap;

impl Analysis {
    /// Per thread: (time holding locks, waiting for them, execution time); `None` if the trace
    /// shows no lock or synchronisation call of the thread.
    pub(crate) fn lock_times(&self) -> BTreeMap<Slot, (Nanos, Nanos, Nanos)> {
        let machine = &self.engine.waits;
        let mut held: BTreeMap<Slot, Nanos> = BTreeMap::new();
        for (&(object, slot), h) in &machine.holds {
            if machine.is_lock(machine.find(object)) {
                *held.entry(slot).or_default() += h.hold_ns;
            }
        }
        let is_for_contention = |nr: &u32| self.call_kind(*nr).is_for_contention();
        let synchronising: Vec<u32> = self.numbers_of_calls().filter(is_for_contention).collect();
        self.engine
            .threads
            .iter()
            .filter_map(|(slot, t)| {
                let (idle, waited) = machine.thread_waits(slot);
                let alive = t.active_ns() + t.blocked_ns;
                let execution = alive.saturating_sub(idle);
                let in_locks = match held.get(&slot) {
                    Some(&ns) => ns.min(execution),
                    None if waited > 0 => 0,
                    None => Some(cpu_time_in(t, &synchronising)).filter(|&ns| ns > 0)?,
                };
                Some((slot, (in_locks, waited, execution)))
            })
            .collect()
    }
}

/// CPU time of a thread in the calls with these numbers.
fn cpu_time_in(t: &Thread, numbers: &[u32]) -> Nanos {
    let calls = t.living.calls().filter(|(nr, _)| numbers.contains(nr));
    calls.map(|(_, calls)| calls.sums(|s| s.running)).sum()
}
