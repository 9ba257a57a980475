//! Whether there was work for one thread at a time only.
//!
//! Two signs show it: one thread ran for most of its life while hardly anything else did; or just
//! one application thread was running or ready most of the time, whichever that was. Threads that
//! wait their turn at an object say why one at a time has work: that is no lack of parallelism.

use crate::leaf::{Leaf, Total};
use crate::ledger::Ledger;
use crate::limits::{ALONE, Check, MATTERS, Thresholds};
use crate::neighbours::{Neighbours, is_recorder};
use holdup_passes::{Analysis, Slot};
use holdup_trace::Nanos;

/// Who had work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// The longest running application thread, and for which part of its life it ran.
    pub longest: Option<(Slot, Check)>,
    /// It ran for most of its life, and nothing else that counts did.
    pub is_one: bool,
    /// The part of the time with work in which one thread had it, whichever.
    pub serial: Check,
    /// One thread at a time had work, and not because others waited for it.
    pub is_serial: bool,
}

impl Alone {
    /// Of a trace with this ledger.
    pub(crate) fn of(
        analysis: &Analysis,
        serial: Check,
        neighbours: &Neighbours,
        ledger: &Ledger,
        thresholds: &Thresholds,
    ) -> Alone {
        let wall = analysis.wall_ns();
        let several = analysis.cpus > 1;
        let running = |slot: Slot| {
            let t = analysis.thread(slot);
            // Who lived for less than two thirds of the recording held nothing up for the rest.
            let life = analysis.life_ns(t).max(wall / 3 * 2).max(1);
            thresholds.at_least(t.running_ns as f64 * 100.0 / life as f64, &ALONE)
        };
        let longest = analysis
            .all_threads()
            .filter(|(_, t)| !t.is_kthread() && !is_recorder(&analysis.comm(t)))
            .map(|(slot, _)| (slot, running(slot)))
            .max_by(|a, b| a.1.value.total_cmp(&b.1.value).then(b.0.cmp(&a.0)));
        // What the recorder and known neighbours take says nothing about the work, be it a whole
        // CPU; and what matters little beside a whole CPU does not either.
        let busy = ledger.total(Total::Busy).saturating_sub(neighbours.ns);
        let one_cpu = wall as f64 * (1.0 + thresholds.get(&MATTERS) / 100.0);
        let is_one = several
            && longest.is_some_and(|(_, running)| running.holds())
            && busy as f64 <= one_cpu;
        let turns: Nanos = ledger.ns(Leaf::ThreadSync) + ledger.ns(Leaf::KernelServices);
        let turns = turns as f64 * 100.0 / ledger.wanted_ns().max(1) as f64;
        let in_turns = thresholds.at_least(turns, &MATTERS).holds();
        Alone { longest, is_one, serial, is_serial: several && serial.holds() && !in_turns }
    }

    /// Idle time without any waiting thread is for lack of parallelism too, where one thread had
    /// all the work, or where a neighbour hides from the CPUs that one had.
    pub(crate) fn claim(&self, neighbours: &Neighbours, ledger: &mut Ledger) {
        if self.is_one || self.is_serial && neighbours.programs.len() > 1 {
            ledger.give(Leaf::NoWork, Leaf::Serial, Nanos::MAX);
        }
    }
}
