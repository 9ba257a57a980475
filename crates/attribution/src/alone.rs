//! Whether there was work for fewer threads than there are CPUs.
//!
//! Two signs show it: a few threads, or one, ran for most of their life while hardly anything else
//! did; or exactly one application thread (any of them) was running or ready most of the time. If
//! threads contend for an object, that is why only one works at a time, and not a lack of
//! parallelism.
//!
//! A thread that runs all the time may only poll: samples of its code show that it spins, and not
//! until another thread of its program goes on. It has no work that others could share.

use crate::background::{Background, is_recorder};
use crate::leaf::{Leaf, Total};
use crate::ledger::Ledger;
use crate::limits::{ALONE, Check, ENOUGH, MATTERS, Thresholds};
use crate::resource::Resource;
use crate::user_spin::UserSpinning;
use holdup_passes::{Analysis, Slot};
use holdup_trace::Nanos;

/// Which threads had work, and whether there was work for more.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// The application thread that ran longest, and the part of its life for which it ran.
    pub longest: Option<(Slot, Check)>,
    /// Threads that ran for most of their life, if nothing else that matters did and they are fewer
    /// than the CPUs; otherwise none.
    pub few: Vec<Slot>,
    /// Threads that ran for most of their life, and would not have without polling.
    pub polls: Vec<Slot>,
    /// The part of the time with work in which exactly one thread had work.
    pub serial: Check,
    /// One thread at a time had work, and not because of contention.
    pub is_serial: bool,
    /// Threads contend for something: that explains why one works at a time.
    pub is_contended: bool,
}

/// Whether threads lose time to something that more threads would want too: locks, devices, each
/// other's results.
fn hinder_each_other(ledger: &Ledger, thresholds: &Thresholds) -> bool {
    use Resource::{Hypervisor, Outside, Parallelism, Unknown};
    let others = |of: Resource| !matches!(of, Parallelism | Outside | Hypervisor | Unknown);
    let lost = ledger.leaves().filter(|(leaf, _)| leaf.lost_to().is_some_and(others));
    let lost: Nanos = lost.map(|(_, ns)| ns).sum();
    let lost_pct = lost as f64 * 100.0 / ledger.wanted_ns().max(1) as f64;
    thresholds.at_least(lost_pct, &MATTERS).holds()
}

impl Alone {
    /// Judges a trace with this ledger.
    pub(crate) fn of(
        analysis: &Analysis,
        serial: Check,
        background: &Background,
        (ledger, spinning): (&Ledger, &[UserSpinning]),
        thresholds: &Thresholds,
    ) -> Alone {
        let wall = analysis.wall_ns();
        let several = analysis.cpus > 1;
        let runs = |slot: Slot, ns: Nanos| {
            let t = analysis.thread(slot);
            // A thread that lived for less than two thirds of the recording did not delay the rest.
            let life = analysis.life_ns(t).max(wall / 3 * 2).max(1);
            thresholds.at_least(ns as f64 * 100.0 / life as f64, &ALONE)
        };
        let waits = |slot| spinning.iter().flat_map(|s| &s.threads).any(|t| t.0 == slot);
        let (mut mostly, mut polls) = (Vec::new(), Vec::new());
        let mut running = |slot: Slot| {
            let (t, samples) = (analysis.thread(slot), analysis.sampled(slot));
            let all = runs(slot, t.running_ns);
            if !thresholds.enough(samples.spinning(), &ENOUGH) || waits(slot) {
                return all;
            }
            let spun_ns = samples.spun_ns(t.user_ns);
            let without = runs(slot, t.running_ns.saturating_sub(spun_ns));
            polls.extend((all.holds() && !without.holds()).then_some(slot));
            without
        };
        let longest = analysis
            .all_threads()
            .filter(|(_, t)| !t.is_kthread() && !is_recorder(&analysis.comm(t)))
            .map(|(slot, _)| (slot, running(slot)))
            .inspect(|(slot, running)| mostly.extend(running.holds().then_some(*slot)))
            .max_by(|a, b| a.1.value.total_cmp(&b.1.value).then(b.0.cmp(&a.0)));
        // The CPU time of the recorder and of known background programs says nothing about the
        // work, even if it is a whole CPU. Nor does what is small compared with a whole CPU.
        let busy = ledger.total(Total::Busy).saturating_sub(background.ns);
        let theirs = wall as f64 * (mostly.len() as f64 + thresholds.get(&MATTERS) / 100.0);
        let turns: Nanos = ledger.ns(Leaf::ThreadSync) + ledger.ns(Leaf::KernelServices);
        let turns = turns as f64 * 100.0 / ledger.wanted_ns().max(1) as f64;
        let is_contended = thresholds.at_least(turns, &MATTERS).holds();
        // Nobody knows how well more threads would share the work. A gain half-way to the largest
        // one, as many times as fast as there are CPUs for each thread, must matter.
        let largest = f64::from(analysis.cpus) / mostly.len().max(1) as f64;
        let is_few = largest.sqrt() >= thresholds.worthwhile()
            && busy as f64 <= theirs
            && !is_contended
            && (mostly.len() == 1 || !hinder_each_other(ledger, thresholds));
        let is_serial = several && serial.holds() && !is_contended && polls.is_empty();
        let few = if is_few { mostly } else { Vec::new() };
        Alone { longest, few, polls, serial, is_serial, is_contended }
    }

    /// Whether there was work for fewer threads than CPUs.
    pub fn is_too_few(&self) -> bool {
        !self.few.is_empty() || self.is_serial
    }

    /// Idle time without any waiting thread is also a lack of parallelism if few threads had all
    /// the work, or if background load fills the CPUs that it left idle. While only a thread that
    /// polls runs, nobody has work.
    pub(crate) fn claim(&self, background: &Background, ledger: &mut Ledger) {
        if !self.polls.is_empty() {
            ledger.give(Leaf::Serial, Leaf::NoWork, Nanos::MAX);
        }
        if !self.few.is_empty() || self.is_serial && background.programs.len() > 1 {
            ledger.give(Leaf::NoWork, Leaf::Serial, Nanos::MAX);
        }
    }
}
