//! Stolen time: a hypervisor ran something else on the CPU.
//!
//! A guest is not told when its CPU stops. But a CPU that runs a thread takes its timer tick. If
//! ticks leave events (`sched_stat_runtime` of the running thread, the local timer's vector), no
//! silence of a running CPU is longer than a tick. A CPU that leaves no event for several ticks and
//! then goes on with the same thread did not run in between.
//!
//! ```text
//!  tick   tick   tick                                      tick   tick
//!   │      │      │      (silence: other guests ran)        │      │
//!                 ├──────┤├─────────────────────────────────┤
//!                 at most         stolen, at least
//!                 one tick
//! ```
//!
//! Kernels are built with one of a few tick lengths (`CONFIG_HZ`): the true one is the length that
//! silences have far more often than any length near it. Until that shows, the longest is assumed.
//!
//! The result is a lower bound: a short theft leaves no silence that is long enough.

use holdup_trace::Nanos;

/// Ticks by `CONFIG_HZ` 1000, 300, 250, 100.
const TICKS: [Nanos; 4] = [1_000_000, 3_333_333, 4_000_000, 10_000_000];
/// Shorter silences are ignored: less than the shortest tick.
pub(crate) const SHORTEST: Nanos = 900_000;
/// A longer silence means a CPU without a tick (`nohz_full`) or a suspended machine.
const LONGEST: Nanos = 500_000_000;
/// A tick may be late or early by this part of its length: a fiftieth.
const NEAR: Nanos = 50;
/// Lengths within a tenth of a tick's length show how many come by chance, in five times the range.
const AROUND: Nanos = 10;
const ROOM: u32 = 5;
/// This many silences of a tick's length prove the tick.
const ENOUGH: u32 = 20;

/// What stolen time was charged to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum From {
    /// Application code.
    User,
    /// System calls; `spin` while waiting for a lock of the kernel.
    Kernel { spin: bool },
    /// Kernel threads.
    Kthread,
    /// Softirqs.
    Softirq,
}

/// CPU time that was stolen, by what it was charged to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stolen {
    /// Application code.
    pub user_ns: Nanos,
    /// System calls.
    pub kernel_ns: Nanos,
    /// Part of `kernel_ns`: waiting for locks of the kernel.
    pub lock_spin_ns: Nanos,
    /// Kernel threads.
    pub kthread_ns: Nanos,
    /// Softirqs.
    pub softirq_ns: Nanos,
}

impl Stolen {
    /// All of it.
    pub fn total_ns(&self) -> Nanos {
        self.user_ns + self.kernel_ns + self.kthread_ns + self.softirq_ns
    }

    pub(crate) fn add(&mut self, o: &Stolen) {
        self.user_ns += o.user_ns;
        self.kernel_ns += o.kernel_ns;
        self.lock_spin_ns += o.lock_spin_ns;
        self.kthread_ns += o.kthread_ns;
        self.softirq_ns += o.softirq_ns;
    }

    pub(crate) fn charge(&mut self, from: From, ns: Nanos) {
        match from {
            From::User => self.user_ns += ns,
            From::Kernel { spin } => {
                self.kernel_ns += ns;
                self.lock_spin_ns += if spin { ns } else { 0 };
            }
            From::Kthread => self.kthread_ns += ns,
            From::Softirq => self.softirq_ns += ns,
        }
    }
}

/// What is known about the ticks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ticks {
    /// Ticks leave events.
    seen: bool,
    /// Silences near each tick length, and in the range around it.
    near: [u32; TICKS.len()],
    around: [u32; TICKS.len()],
}

impl Ticks {
    /// An event that comes with each tick.
    #[inline]
    pub(crate) fn tick(&mut self) {
        self.seen = true;
    }

    /// A part of the trace begins: its ticks are learnt from this part alone.
    pub(crate) fn restart(&mut self) {
        *self = Ticks { seen: self.seen, ..Ticks::default() };
    }

    /// Whether silences can be judged.
    pub(crate) fn seen(&self) -> bool {
        self.seen
    }

    /// How much of a silence of a running CPU was stolen.
    pub(crate) fn silence(&mut self, ns: Nanos) -> Nanos {
        for (i, tick) in TICKS.into_iter().enumerate() {
            let off = ns.abs_diff(tick);
            self.near[i] += (off <= tick / NEAR) as u32;
            self.around[i] += (off <= tick / AROUND) as u32;
        }
        let tick = self.length();
        if !self.seen || ns < tick * 5 / 2 || ns > LONGEST { 0 } else { ns - tick }
    }

    /// The longest time between ticks that the silences allow.
    pub(crate) fn length(&self) -> Nanos {
        let shows =
            |&i: &usize| self.near[i] >= ENOUGH && self.near[i] * ROOM >= 2 * self.around[i];
        let most = (0..TICKS.len()).filter(shows).max_by_key(|&i| self.near[i]);
        TICKS[most.unwrap_or(TICKS.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_is_learnt_and_what_is_beyond_it_is_stolen() {
        let mut ticks = Ticks::default();
        assert_eq!(ticks.silence(60_000_000), 0, "no ticks in this trace");
        ticks.tick();
        assert_eq!(ticks.silence(60_000_000), 50_000_000);
        assert_eq!(ticks.silence(24_000_000), 0);
        for i in 0..20 {
            ticks.silence(4_000_000 + i * 1_000);
        }
        assert_eq!(ticks.length(), 4_000_000);
        assert_eq!((ticks.silence(9_900_000), ticks.silence(24_000_000)), (0, 20_000_000));
        assert_eq!(ticks.silence(2_000_000_000), 0, "no hypervisor is so slow");
    }

    #[test]
    fn lengths_of_all_kinds_are_no_tick() {
        let mut ticks = Ticks::default();
        ticks.tick();
        (0..2000).for_each(|i| _ = ticks.silence(SHORTEST + i * 5_000));
        assert_eq!(ticks.length(), 10_000_000);
    }
}
