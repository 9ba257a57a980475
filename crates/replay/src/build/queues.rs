//! How long idle CPUs take to pick up a woken thread, and to pull one that queues for another CPU.

use super::Builder;
use crate::program::Op;
use holdup_passes::{Did, Slot, Step};
use holdup_trace::Nanos;

/// This many delays make a median: a few may all be exceptions.
const ENOUGH: usize = 5;
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
        median(looks.collect()).unwrap_or(LOOK_NS)
    }

    /// How long idle CPUs take to pick up woken threads: the median.
    pub(super) fn usual_delay(&self, slots: impl Iterator<Item = Slot>) -> Option<Nanos> {
        let pairs = slots.flat_map(|slot| self.analysis.steps(slot).steps.windows(2));
        median(pairs.filter_map(|pair| delay(&pair[0], &pair[1])).collect())
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

/// The median of [`ENOUGH`] times or more: one delay of hundreds of milliseconds says nothing about
/// the others.
fn median(mut times: Vec<Nanos>) -> Option<Nanos> {
    let middle = times.len() / 2;
    (times.len() >= ENOUGH).then(|| *times.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::median;

    /// On an overloaded machine the only idle CPU took 10 ms to pick up a thread once, and with
    /// more CPUs each wait of that thread took as long: more CPUs gained nothing.
    #[test]
    fn a_few_delays_say_nothing() {
        assert_eq!(median(vec![10_000_000; 4]), None);
        assert_eq!(median(vec![1, 2, 3, 4, 10_000_000]), Some(3));
    }
}
