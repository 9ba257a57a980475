//! Threads that yield their CPU again and again, by how little they do in between.
//!
//! A thread that finds a lock taken may call `sched_yield` and look again, any number of times.
//! Such a wait burns CPU time, in the call and around it. It differs from an occasional yield by
//! the CPU time of the thread's own code from one call to the next, with no other call in between.

use holdup_trace::Nanos;

/// Powers of two of nanoseconds that are distinguished: up to a second.
const STEPS: usize = 31;

/// How a thread yields.
#[derive(Clone, Debug, Default)]
pub struct Yields {
    /// At the thread's last yield: the number of its system call events, its CPU time, and the CPU
    /// time of its own code.
    last: Option<(u64, Nanos, Nanos)>,
    /// Pairs of yields with no other call in between: the first call and the code after it, by the
    /// power of two of the time in that code.
    again: [Again; STEPS],
}

/// Yields that came soon after another yield.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// How many.
    pub times: u64,
    /// CPU time from one yield to the next.
    pub cpu_ns: Nanos,
    /// Part of `cpu_ns`: the thread's own code.
    pub user_ns: Nanos,
}

impl Again {
    /// Add all of `o`.
    pub fn add(&mut self, o: Again) {
        self.times += o.times;
        self.cpu_ns += o.cpu_ns;
        self.user_ns += o.user_ns;
    }
}

impl Yields {
    /// The thread yields: its system call events so far, including this one, and its CPU times.
    pub(crate) fn yields(&mut self, events: u64, running: Nanos, user: Nanos) {
        if let Some((last, running0, user0)) = self.last
            && events == last + 2
        {
            let user_ns = user.saturating_sub(user0);
            let step = (user_ns.max(1).ilog2() as usize).min(STEPS - 1);
            let cpu_ns = running.saturating_sub(running0);
            self.again[step].add(Again { times: 1, cpu_ns, user_ns });
        }
        self.last = Some((events, running, user));
    }

    /// Yields after less than `limit` of the thread's own code, within a power of two.
    pub fn after_less_than(&self, limit: Nanos) -> Again {
        let steps = (limit.max(1).ilog2() as usize).min(STEPS);
        let mut sum = Again::default();
        self.again[..steps].iter().for_each(|&a| sum.add(a));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_between_two_yields_decides() {
        let mut y = Yields::default();
        y.yields(1, 0, 0);
        y.yields(3, 1_500, 1_000);
        let soon = Again { times: 1, cpu_ns: 1_500, user_ns: 1_000 };
        assert_eq!(y.after_less_than(10_000), soon);
        y.yields(5, 501_500, 500_000);
        assert_eq!(y.after_less_than(10_000), soon, "it worked in between");
        y.yields(9, 503_000, 500_500);
        assert_eq!(y.after_less_than(10_000), soon, "another call came in between");
        assert_eq!(y.after_less_than(u64::MAX).times, 2);
    }
}
