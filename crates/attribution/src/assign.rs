//! Leaves whose time belongs to another resource than it seems at first.

use crate::leaf::Leaf;
use crate::ledger::Ledger;
use crate::limits::{ENOUGH, MATTERS, Thresholds};
use crate::spin::Spinning;
use crate::user_spin::UserSpinning;
use holdup_passes::{Analysis, Slot, Thread};
use holdup_trace::Nanos;

/// Where most of the sleep is for one busy thread, the calls by which threads seem to contend are
/// its clients' way of waiting for it. And a thread that yields for another process waits for a
/// service, not for a lock within its process.
pub(crate) fn calls(ledger: &mut Ledger, spinning: &[Spinning]) {
    let pairs =
        [(Leaf::ThreadSync, Leaf::ThreadSyncCalls), (Leaf::KernelServices, Leaf::ServiceCalls)];
    for (asleep, awake) in pairs {
        if ledger.ns(Leaf::OneServer) > ledger.ns(asleep) {
            ledger.give(awake, Leaf::ServerCalls, Nanos::MAX);
        }
    }
    let between = spinning.iter().filter(|s| s.between_processes);
    ledger.give(Leaf::Spin, Leaf::ServiceSpin, between.map(|s| s.sum.cpu_ns).sum());
}

/// Application code that spins waits for other threads: of one process, of several, or for the
/// last one at a barrier. Yielding threads run code between their yields, and its time was moved
/// already; only what exceeds it is left to move.
pub(crate) fn spinning(
    ledger: &mut Ledger,
    (yielding, spinning): (&[Spinning], &[UserSpinning]),
    application: Leaf,
) {
    let mut moved = yielding.iter().map(|s| s.sum.user_ns).sum::<Nanos>();
    for s in spinning {
        let already = s.spun_ns.min(moved);
        moved -= already;
        ledger.give(application, s.leaf(), s.spun_ns - already);
    }
}

/// Time outside recorded calls is application code, except for the part that samples of it show in
/// the kernel: page faults, and calls that are not recorded.
pub(crate) fn unrecorded(
    ledger: &mut Ledger,
    analysis: &Analysis,
    application: Leaf,
    thresholds: &Thresholds,
) {
    let threads = || analysis.all_threads().filter(|(_, t)| !t.is_kthread());
    let in_kernel = |(slot, t): (Slot, &Thread)| {
        let samples = analysis.sampled(slot);
        (samples.in_kernel, samples.in_kernel_ns(t.user_ns))
    };
    let (samples, ns) =
        threads().map(in_kernel).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    if thresholds.enough(samples, &ENOUGH) {
        ledger.give(application, Leaf::KernelUnrecorded, ns);
    }
}

/// Idle time while threads queue for other CPUs is a lack of an allowed CPU, if they keep to at
/// most half of the CPUs and it is more than wake-ups explain: twice the limit of what matters.
/// Each wake-up leaves a CPU idle for a moment while a thread is ready, up to 29 % of the wanted
/// time in guests. A thread that also runs elsewhere is queued by the scheduler's choice.
pub(crate) fn bound(ledger: &mut Ledger, analysis: &Analysis, thresholds: &Thresholds) {
    let stays = |t: &Thread| u32::from(t.homes) * 2 <= analysis.cpus;
    // A kernel worker's queue is a funnel.
    let bound = analysis.all_threads().filter(|(_, t)| !t.is_kthread() && stays(t));
    let queued: Nanos = bound.map(|(_, t)| t.queued_ns).sum();
    let queued = queued.min(ledger.ns(Leaf::Scheduler));
    let pct = queued as f64 * 100.0 / ledger.wanted_ns().max(1) as f64;
    if pct >= 2.0 * thresholds.get(&MATTERS) {
        ledger.give(Leaf::Scheduler, Leaf::Bound, queued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Programs that spin for more or less time than there is application code, and yield too.
        #[test]
        fn what_spins_is_moved_once(
            application in 0..400_u64, yields in 0..400_u64, spun in 0..400_u64,
        ) {
            let leaves = [(Leaf::ApplicationUndivided, application), (Leaf::Spin, 7)];
            let mut ledger = Ledger::new(1_000, leaves);
            let mut yielding = Spinning::default();
            yielding.sum.user_ns = yields;
            let user = UserSpinning { spun_ns: spun, ..UserSpinning::default() };
            let between = UserSpinning { between_processes: true, ..user.clone() };
            spinning(&mut ledger, (&[yielding], &[user, between]), Leaf::ApplicationUndivided);
            let all: Nanos = ledger.leaves().map(|l| l.1).sum();
            prop_assert_eq!(all, application + 7);
            let moved = ledger.ns(Leaf::Spin) - 7 + ledger.ns(Leaf::ServiceSpin);
            prop_assert_eq!(moved, (2 * spun).saturating_sub(yields).min(application));
        }
    }
}
