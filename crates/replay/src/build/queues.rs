//! How long idle CPUs take to pick up a woken thread, and to pull one that queues for another CPU.

use super::Builder;
use crate::program::Op;
use holdup_passes::{Did, Slot, Step};
use holdup_trace::Nanos;

/// Idle CPUs must have pulled threads this many times for the median to be used.
const LOOKS: usize = 5;
/// Used otherwise: the tick of a busy CPU makes an idle one balance (`nohz_balancer_kick`).
const LOOK_NS: Nanos = 1_000_000;

impl Builder<'_> {
    /// How long idle CPUs let threads queue for other CPUs before they pulled them: the median.
    pub(super) fn usual_look(&self) -> Nanos {
        let steps = self.slots.iter().flat_map(|s| self.analysis.steps(s.0).steps);
        let looks = steps.filter_map(|step| match step.what {
            Did::TakenOver { ns, .. } => Some(ns),
            _ => None,
        });
        median(looks.collect(), LOOKS).unwrap_or(LOOK_NS)
    }

    /// How long idle CPUs take to pick up woken threads: the median.
    pub(super) fn usual_delay(&self, slots: impl Iterator<Item = Slot>) -> Option<Nanos> {
        let pairs = slots.flat_map(|slot| self.analysis.steps(slot).steps.windows(2));
        median(pairs.filter_map(|pair| delay(&pair[0], &pair[1])).collect(), 1)
    }

    /// How a thread becomes ready if this step says that it did not get an idle CPU.
    pub(super) fn queues(&self, step: &Step, allowed: u64) -> Option<Op> {
        // A CPU affinity explains the queueing already.
        if allowed != u64::MAX {
            return None;
        }
        let number = |slot| self.numbers.get(&slot).copied().unwrap_or(u32::MAX);
        match step.what {
            Did::TakenOver { ns: 0, .. } => None,
            Did::TakenOver { ns, behind, idle } | Did::WaitedWhileIdle { ns, behind, idle } => {
                Some(Op::Queues(ns, number(behind), idle))
            }
            Did::Preempts(whom) => Some(Op::Preempts(number(whom))),
            _ => None,
        }
    }
}

/// How long an idle CPU took to pick up a thread after its sleep.
pub(super) fn delay(sleep: &Step, next: &Step) -> Option<Nanos> {
    match (sleep.what, next.what) {
        (Did::Sleep(..), Did::Delay(ns)) => Some(ns),
        (Did::Sleep(ns, _), Did::Run(_)) if sleep.at + ns == next.at => Some(0),
        _ => None,
    }
}

/// When a stay on a CPU ended.
pub(super) fn ran_to(step: &Step) -> Option<Nanos> {
    match step.what {
        Did::Run(ns) => Some(step.at + ns),
        _ => None,
    }
}

/// The median of at least `least` times: one delay of hundreds of milliseconds says nothing about
/// the others.
fn median(mut times: Vec<Nanos>, least: usize) -> Option<Nanos> {
    let middle = times.len() / 2;
    (times.len() >= least).then(|| *times.select_nth_unstable(middle).1)
}
