//! Threads that are ready but may not run: their group has used up its CPU quota.
//!
//! No tracepoint of the kernel shows this, but the switches do. A thread that leaves its CPU in
//! state R goes on the run queue, and a CPU with a thread on its queue does not go idle. If it
//! does, the thread's group is out of quota (`throttle_cfs_rq`; per thread since Linux 6.18, at the
//! return to the application): it comes back when the next period begins, without being woken.
//!
//! ```text
//!  cpu 0   worker-1 ───────┐ R → idle            ┌── worker-1      (no wake-up)
//!  cpu 1   worker-2 ─────────┐ R → idle          ├── worker-2
//!                          └── throttled ────────┘
//!          ├──────────────── one period ─────────┤
//! ```
//!
//! Two returns with a throttling between them are one or more periods apart. The CPU time of the
//! group's threads between them is the quota, if the threads were throttled in each period.

use holdup_trace::Nanos;

/// Maximal number of periods kept: an hour of the default period. The median needs fewer.
const MAX_PERIODS: usize = 1 << 15;
/// The kernel's shortest period (`min_cfs_quota_period`); closer returns count as one.
const SHORTEST_PERIOD: Nanos = 1_000_000;

/// A thread that was ready but not allowed to run at least once.
#[derive(Clone, Debug, Default)]
pub struct Throttle {
    /// How it is kept off the CPUs; `None` while it is not.
    pub(crate) off: Option<Off>,
    /// When it last came back.
    pub(crate) until: Nanos,
    /// How often it was kept off.
    pub spells: u64,
    /// Total time it was kept off.
    pub ns: Nanos,
    /// Idle CPU time that it could have used, 2^-32 ns.
    pub(crate) share: u128,
    /// Its CPU time up to this value is included in [`Throttles::ran`].
    pub(crate) ran_to: Nanos,
}

/// A thread is kept off the CPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Off {
    /// Since when.
    pub(crate) since: Nanos,
    /// When this showed: a CPU went idle.
    pub(crate) shown: Nanos,
    /// The integral of [`crate::blame`] at that time.
    pub(crate) mark: u128,
}

impl Throttle {
    /// The idle CPU time that it could have used.
    pub fn share_ns(&self) -> Nanos {
        (self.share >> crate::cause::FRACTION) as Nanos
    }

    /// A copy without the sums; if the thread is kept off, it counts from `now`, when the integral
    /// is `held`.
    pub(crate) fn restarted(&self, now: Nanos, held: u128) -> Throttle {
        let off = self.off.map(|_| Off { since: now, shown: now, mark: held });
        Throttle { off, ..Throttle::default() }
    }
}

/// The throttling of a control group's threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttles {
    /// The latest time that threads came back.
    last_return: Option<Nanos>,
    /// A thread was throttled since then.
    again: bool,
    /// CPU time since then of threads that were throttled before.
    ran: Nanos,
    /// For each pair of returns: the time between them, and the CPU time of those threads.
    periods: Vec<(Nanos, Nanos)>,
    /// Number of returns.
    returns: u64,
}

/// What the returns of throttled threads say about the quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// How often threads came back: periods in which the quota was used up.
    pub periods: u64,
    /// Median time between returns; `None` with fewer than two returns, or if most times differ
    /// from it: Linux 6.18 throttles each thread by itself, and then threads also come back within
    /// a period.
    pub period_ns: Option<Nanos>,
    /// CPU time of threads that were throttled at least once, in all times between two returns.
    pub ran_ns: Nanos,
    /// Those times.
    pub over_ns: Nanos,
}

impl Quota {
    /// The CPUs that the quota allows; `None` with fewer than two returns.
    pub fn cpus(&self) -> Option<f64> {
        (self.over_ns > 0).then(|| self.ran_ns as f64 / self.over_ns as f64)
    }
}

impl Throttles {
    /// A thread is throttled.
    pub(crate) fn begins(&mut self) {
        self.again = true;
    }

    /// When the latest thread came back; `None` if none did.
    pub(crate) fn last_return(&self) -> Option<Nanos> {
        self.last_return
    }

    /// A thread that was throttled before ran for `ns`.
    pub(crate) fn ran(&mut self, ns: Nanos) {
        self.ran += ns;
    }

    /// A throttled thread may run again from `at` on.
    pub(crate) fn ends(&mut self, at: Nanos) {
        let since = self.last_return.map(|last| at.saturating_sub(last));
        if !self.again || since.is_some_and(|ns| ns < SHORTEST_PERIOD) {
            return;
        }
        if let Some(ns) = since
            && self.periods.len() < MAX_PERIODS
        {
            self.periods.push((ns, self.ran));
        }
        self.returns += 1;
        self.last_return = Some(at);
        self.again = false;
        self.ran = 0;
    }

    pub(crate) fn quota(&self) -> Quota {
        let mut times: Vec<Nanos> = self.periods.iter().map(|p| p.0).collect();
        let middle = times.len() / 2;
        let median = (!times.is_empty()).then(|| *times.select_nth_unstable(middle).1);
        let near = |&&ns: &&Nanos| median.is_some_and(|m| ns.abs_diff(m) <= m / 10);
        let period_ns = median.filter(|_| times.iter().filter(near).count() * 2 > times.len());
        // If the time is much longer, the quota lasted for some periods.
        let full =
            self.periods.iter().filter(|p| median.is_some_and(|m| p.0 <= m.saturating_mul(4)));
        let (over_ns, ran_ns) = full.fold((0, 0), |all, p| (all.0 + p.0, all.1 + p.1));
        Quota { periods: self.returns, period_ns, ran_ns, over_ns }
    }

    /// Clears the sums.
    pub(crate) fn restart(&mut self) {
        *self = Throttles { again: self.again, ..Throttles::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_are_a_period_apart_and_what_ran_between_is_the_quota() {
        let mut t = Throttles::default();
        assert_eq!(t.quota(), Quota::default());
        for i in 1..=5u64 {
            t.ran(30_000_000);
            t.begins();
            t.ran(20_000_000);
            t.begins();
            t.ends(i * 100_000_000);
            // A second thread comes back shortly after the first: the same return.
            t.ends(i * 100_000_000 + 500_000);
        }
        // A period without throttling.
        t.ran(40_000_000);
        t.ends(600_000_000);
        let quota = t.quota();
        assert_eq!((quota.periods, quota.period_ns), (5, Some(100_000_000)));
        assert_eq!(quota.cpus(), Some(0.5));
    }

    #[test]
    fn threads_that_come_back_within_a_period_show_no_period() {
        let mut t = Throttles::default();
        for i in 0..10u64 {
            // One runs for 40 ms of each 100, another comes back after 70 for a moment.
            t.ends(i * 100_000_000);
            t.ran(40_000_000);
            t.begins();
            t.ends(i * 100_000_000 + 70_000_000);
            t.begins();
        }
        let quota = t.quota();
        assert_eq!((quota.period_ns, quota.cpus()), (None, Some(0.4)));
    }
}
