//! When one thread had a CPU.

use holdup_passes::{Did, Step};
use holdup_trace::Nanos;

/// The times that a thread ran, from and to, in order; adjacent ones are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Vec<(Nanos, Nanos)>);

impl Runs {
    pub(super) fn of(steps: &[Step]) -> Runs {
        let mut runs: Vec<(Nanos, Nanos)> = Vec::new();
        for step in steps {
            let Did::Run(ns) = step.what else { continue };
            match runs.last_mut() {
                Some(last) if last.1 >= step.at => last.1 = last.1.max(step.at + ns),
                _ => runs.push((step.at, step.at + ns)),
            }
        }
        Runs(runs)
    }

    /// How long the thread ran between two moments.
    pub(super) fn within(&self, from: Nanos, to: Nanos) -> Nanos {
        let first = self.0.partition_point(|run| run.1 <= from);
        let runs = self.0[first..].iter().take_while(|run| run.0 < to);
        runs.map(|run| run.1.min(to).saturating_sub(run.0.max(from))).sum()
    }

    /// The latest moment from which the thread ran for `ns` until `to`.
    pub(super) fn before(&self, to: Nanos, ns: Nanos) -> Nanos {
        let mut left = ns;
        let after = self.0.partition_point(|run| run.0 < to);
        for run in self.0[..after].iter().rev() {
            let end = run.1.min(to);
            if end - run.0 >= left {
                return end - left;
            }
            left -= end - run.0;
        }
        self.0.first().map_or(to, |run| run.0.min(to))
    }

    /// The times it ran, except those in `busy`, which is in order of time.
    pub(super) fn without(&self, busy: &[(Nanos, Nanos)]) -> Vec<(Nanos, Nanos)> {
        let mut free = Vec::new();
        let mut next = 0;
        for &(mut from, to) in &self.0 {
            while busy.get(next).is_some_and(|b| b.1 <= from) {
                next += 1;
            }
            let mut at = next;
            while let Some(&(begins, ends)) = busy.get(at)
                && begins < to
            {
                if begins > from {
                    free.push((from, begins));
                }
                from = from.max(ends);
                at += 1;
            }
            if from < to {
                free.push((from, to));
            }
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Runs {
        let step = |at, ns| Step { at, what: Did::Run(ns) };
        Runs::of(&[step(10, 5), step(15, 5), step(30, 10), step(50, 1)])
    }

    #[test]
    fn what_touches_is_one_run() {
        assert_eq!(runs().0, [(10, 20), (30, 40), (50, 51)]);
    }

    #[test]
    fn cpu_time_is_counted_between_and_back() {
        let runs = runs();
        assert_eq!((runs.within(0, 100), runs.within(15, 35), runs.within(20, 30)), (21, 10, 0));
        assert_eq!((runs.before(40, 4), runs.before(45, 4), runs.before(35, 8)), (36, 36, 17));
        assert_eq!((runs.before(40, 1000), runs.before(5, 3)), (10, 5));
    }

    #[test]
    fn busy_times_are_cut_out() {
        let free = runs().without(&[(0, 12), (14, 15), (18, 33), (34, 35), (39, 60)]);
        assert_eq!(free, [(12, 14), (15, 18), (33, 34), (35, 39)]);
        assert_eq!(runs().without(&[]), runs().0);
    }
}
