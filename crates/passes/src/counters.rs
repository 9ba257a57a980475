//! What the processor's counters say about the application's code, by how many CPUs are busy.
//!
//! Every sample of a counter carries how much was counted since the one before: their sums are
//! counts, as precise as there are samples. Only user mode counts. Events opened for it say so
//! (`cycles:u`); of others the address tells, as the upper half of the address space is the
//! kernel's; where that is not recorded either, a thread is in user mode outside its system calls.

use crate::stretches::QUARTERS;
use crate::threads::Slot;
use holdup_trace::{EventDesc, EventId};
use std::collections::BTreeMap;

/// Counts of one thread's application code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cycles of the processor while it was not halted.
    pub cycles: u64,
    /// Instructions completed.
    pub instructions: u64,
    /// References that missed the last cache (`cache-misses`, else `LLC-load-misses`).
    pub misses: u64,
    /// Cycles in which execution waited (`stalled-cycles-backend`).
    pub stalled: u64,
    /// Samples of cycles, and of instructions: what the first two rest on.
    pub samples: [u64; 2],
}

impl Counts {
    /// Both together.
    pub fn with(self, o: Counts) -> Counts {
        Counts {
            cycles: self.cycles + o.cycles,
            instructions: self.instructions + o.instructions,
            misses: self.misses + o.misses,
            stalled: self.stalled + o.stalled,
            samples: [self.samples[0] + o.samples[0], self.samples[1] + o.samples[1]],
        }
    }

    /// Cycles per instruction, from at least so many samples of each.
    pub fn per_instruction(&self, samples: u64) -> Option<f64> {
        (self.instructions > 0 && self.samples.iter().all(|&n| n >= samples))
            .then(|| self.cycles as f64 / self.instructions as f64)
    }
}

/// A counter that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    Cycles,
    Instructions,
    CacheMisses,
    LlcMisses,
    Stalled,
}

/// An event of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    counter: Counter,
    /// Counts user mode only, or never; `None` if it counts both.
    user: Option<bool>,
}

/// `cycles`, `cycles:u`, `cpu_core/cycles/u`: the counter and its modifiers.
fn kind(event: &EventDesc) -> Option<Kind> {
    let mut parts = event.name.split(['/', ':']);
    let first = parts.next()?;
    let name = if event.name.contains('/') { parts.next()? } else { first };
    let counter = match name {
        "cycles" | "cpu-cycles" => Counter::Cycles,
        "instructions" => Counter::Instructions,
        "cache-misses" => Counter::CacheMisses,
        "LLC-load-misses" => Counter::LlcMisses,
        "stalled-cycles-backend" => Counter::Stalled,
        _ => return None,
    };
    let modifiers = parts.next().unwrap_or("");
    let user = match (modifiers.contains('u'), modifiers.contains('k')) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    };
    Some(Kind { counter, user })
}

/// The sums by thread, and by the quarter of the CPUs that were busy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    kinds: Vec<Option<Kind>>,
    threads: BTreeMap<Slot, [Counts; QUARTERS]>,
}

impl Counters {
    pub(crate) fn new(events: &[EventDesc]) -> Counters {
        let mut kinds: Vec<Option<Kind>> = events.iter().map(kind).collect();
        // One count of misses is enough.
        if kinds.iter().flatten().any(|k| k.counter == Counter::CacheMisses) {
            kinds
                .iter_mut()
                .filter(|k| k.is_some_and(|k| k.counter == Counter::LlcMisses))
                .for_each(|k| *k = None);
        }
        Counters { kinds, threads: BTreeMap::new() }
    }

    /// Whether this event is a counter of interest.
    #[inline]
    pub(crate) fn counts(&self, id: EventId) -> bool {
        self.kinds.get(id.0 as usize).is_some_and(Option::is_some)
    }

    /// A sample: `period` more while `slot` was on a CPU. `user`: the program's own code was
    /// running.
    pub(crate) fn sample(&mut self, id: EventId, slot: Slot, period: u64, user: bool, quarter: u8) {
        let Some(kind) = self.kinds.get(id.0 as usize).copied().flatten() else { return };
        if !kind.user.unwrap_or(user) {
            return;
        }
        let c = &mut self.threads.entry(slot).or_default()[quarter as usize % QUARTERS];
        let sum = match kind.counter {
            Counter::Cycles => {
                c.samples[0] += 1;
                &mut c.cycles
            }
            Counter::Instructions => {
                c.samples[1] += 1;
                &mut c.instructions
            }
            Counter::CacheMisses | Counter::LlcMisses => &mut c.misses,
            Counter::Stalled => &mut c.stalled,
        };
        *sum = sum.saturating_add(period);
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (Slot, &[Counts; QUARTERS])> {
        self.threads.iter().map(|(&slot, counts)| (slot, counts))
    }

    /// Forget the sums.
    pub(crate) fn restart(&mut self) {
        self.threads.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::Presence;

    fn event(name: &str) -> EventDesc {
        EventDesc { name: name.into(), system: String::new(), presence: Presence::Seen }
    }

    #[test]
    fn names_say_what_is_counted_and_where() {
        let of = |name| kind(&event(name)).map(|k| (k.counter, k.user));
        assert_eq!(of("cycles"), Some((Counter::Cycles, None)));
        assert_eq!(of("cycles:u"), Some((Counter::Cycles, Some(true))));
        assert_eq!(of("instructions:k"), Some((Counter::Instructions, Some(false))));
        assert_eq!(of("cpu-cycles:ukhH"), Some((Counter::Cycles, None)));
        assert_eq!(of("cpu_core/cycles/u"), Some((Counter::Cycles, Some(true))));
        assert_eq!(of("cpu/instructions/"), Some((Counter::Instructions, None)));
        assert_eq!(of("sched:sched_switch"), None);
        assert_eq!(of("cpu-clock"), None);
    }

    #[test]
    fn sums_are_of_user_mode() {
        let mut c = Counters::new(&[
            event("cycles"),
            event("instructions:u"),
            event("LLC-load-misses"),
            event("cache-misses"),
        ]);
        c.sample(EventId(0), Slot(1), 1000, true, 2);
        c.sample(EventId(0), Slot(1), 5000, false, 2);
        c.sample(EventId(1), Slot(1), 500, false, 2);
        c.sample(EventId(2), Slot(1), 7, true, 2);
        c.sample(EventId(3), Slot(1), 9, true, 2);
        c.sample(EventId(9), Slot(1), 9, true, 2);
        let rows: Vec<_> = c.rows().collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(
            rows[0].1[2],
            Counts { cycles: 1000, instructions: 500, misses: 9, stalled: 0, samples: [1, 1] }
        );
        assert_eq!(rows[0].1[2].per_instruction(1), Some(2.0));
        assert_eq!(rows[0].1[2].per_instruction(2), None);
    }
}
