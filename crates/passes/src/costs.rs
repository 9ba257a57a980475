//! What similar pieces of work cost: system calls by how many threads were in the kernel when they
//! began, and the application's user-mode intervals between two calls.
//!
//! Three questions that no single event answers are answered by comparing similar pieces of work:
//!
//! * **Does concurrency make a call dearer?** How many others are in the kernel when a call
//!   *begins* does not depend on how long the call is going to take, so the comparison of calls
//!   begun alone with calls begun concurrently is fair, even if calls differ in size. (The
//!   concurrency *during* a call is not: a long call meets average concurrency, a short one any.)
//! * **Do calls exclude each other?** Under one lock two calls cannot end within the time that
//!   the lock is held. The gaps between ends by different threads show it: none is short, although
//!   longer ones abound. If an end by the same thread closes a gap, that shows only that no
//!   other thread ended a call meanwhile (it is censored, in the words of survival analysis).
//! * **Is the CPU stolen?** A hypervisor that steals it makes some pieces very long and leaves the
//!   others unchanged: the mean of the application's user-mode intervals is compared with the mean
//!   of the undisturbed ones. (Whether the machine itself gets slower is checked per thread, in
//!   [`crate::user_intervals`].)
//!
//! User-mode intervals are alike if they lead to the same system call. Their length is the CPU time
//! outside the kernel and interrupts.

use crate::slot::Slot;
use crate::spread::Spread;
use holdup_trace::Nanos;

/// Costs of similar pieces of work: a quarter of an octave per bucket, from 4 ns to 4 s.
pub type Costing = Spread<2, 2, { 31 << 2 }>;
/// System call numbers beyond this are damage.
const MAX_NR: u32 = 4096;

/// How close together calls of different threads end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exclusion {
    /// Calls that ended sooner after another thread's call than two calls under one lock could.
    pub observed: f64,
    /// Their expected number if ends were as frequent as at somewhat longer gaps.
    pub expected: f64,
}

/// Everything compared about one system call.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// CPU time of calls begun when no other thread was in the kernel.
    pub alone: Costing,
    /// CPU time of calls begun when others were: on a CPU, ready to go on, or asleep for a lock.
    pub concurrency: Costing,
    /// CPU time of the application's user-mode intervals that led to this call.
    pub user_intervals: Costing,
    ends: Ends,
}

/// End times of calls that may exclude each other.
#[derive(Clone, Debug)]
pub struct Ends {
    /// [`Slot::IDLE`], which makes no calls, if the next end is unrelated to the last one.
    last: (Nanos, Slot),
    /// Gaps between ends of calls that never slept: to an end by another thread, and by the same.
    gaps: [Costing; 2],
}

impl Default for Ends {
    fn default() -> Ends {
        Ends { last: (0, Slot::IDLE), gaps: Default::default() }
    }
}

impl Ends {
    /// A call of this thread ended.
    #[inline]
    pub(crate) fn add(&mut self, now: Nanos, slot: Slot) {
        let (end, by) = std::mem::replace(&mut self.last, (now, slot));
        if by != Slot::IDLE {
            self.gaps[(by == slot) as usize].add(now.saturating_sub(end));
        }
    }

    /// The next end is unrelated to the last one.
    pub(crate) fn interrupted(&mut self) {
        self.last.1 = Slot::IDLE;
    }

    /// Ends that followed another thread's, and ends that followed the same thread's.
    pub fn by_previous(&self) -> (u64, u64) {
        (self.gaps[0].count, self.gaps[1].count)
    }

    /// Gaps between the ends of calls of different threads.
    pub fn between_threads(&self) -> &Costing {
        &self.gaps[0]
    }
}

impl Costs {
    /// CPU time of all calls.
    pub fn calls(&self) -> Costing {
        let mut all = self.alone.clone();
        all.merge(&self.concurrency);
        all
    }

    /// Their end times.
    pub fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Whether these calls exclude each other. c is the cost that a tenth of the calls do not
    /// exceed; gaps below c/2 are compared with gaps from c/2 to three times the typical cost.
    pub fn exclusion(&self) -> Exclusion {
        let calls = self.calls();
        let cheap = calls.quantile_ns(0.1) as f64;
        let typical = calls.median_ns() as f64;
        let [other, same] = &self.ends.gaps;
        let (observed, lived) = other.at_age(0.0, cheap / 2.0);
        let lived = lived + same.at_age(0.0, cheap / 2.0).1;
        let (later, later_lived) = other.at_age(cheap / 2.0, typical * 3.0);
        let later_lived = later_lived + same.at_age(cheap / 2.0, typical * 3.0).1;
        let expected = if later_lived > 0.0 { later / later_lived * lived } else { 0.0 };
        Exclusion { observed, expected }
    }
}

/// Costs by number of the call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostTable {
    calls: Vec<Option<Box<Costs>>>,
    /// Threads inside a call: on a CPU, ready to go on, or asleep for a lock of the kernel.
    inside: u32,
}

impl CostTable {
    #[inline(always)]
    fn entry(&mut self, nr: u32) -> Option<&mut Costs> {
        if !matches!(self.calls.get(nr as usize), Some(Some(_))) {
            self.add(nr)?;
        }
        self.calls.get_mut(nr as usize)?.as_deref_mut()
    }

    #[cold]
    fn add(&mut self, nr: u32) -> Option<()> {
        if nr >= MAX_NR {
            return None;
        }
        if nr as usize >= self.calls.len() {
            self.calls.resize_with(nr as usize + 1, || None);
        }
        self.calls[nr as usize] = Some(Box::default());
        Some(())
    }

    /// One more thread inside; returns whether it is the only one.
    #[inline]
    pub(crate) fn enter(&mut self) -> bool {
        self.inside += 1;
        self.inside == 1
    }

    /// One thread less inside.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.inside = self.inside.saturating_sub(1);
    }

    /// A user-mode interval led to this call.
    #[inline]
    pub(crate) fn user_interval(&mut self, nr: u32, ns: Nanos) {
        if let Some(c) = self.entry(nr) {
            c.user_intervals.add(ns);
        }
    }

    /// A user-mode interval led to a call that never sleeps and takes `cpu_ns`.
    /// [`CostTable::whole_call_ended`] tells its end.
    #[inline(always)]
    pub(crate) fn whole_call(&mut self, nr: u32, before: Option<Nanos>, cpu_ns: Nanos) {
        let alone = self.enter();
        let Some(c) = self.entry(nr) else { return };
        if let Some(ns) = before {
            c.user_intervals.add(ns);
        }
        if alone { &mut c.alone } else { &mut c.concurrency }.add(cpu_ns);
    }

    /// The end of a [`CostTable::whole_call`].
    #[inline(always)]
    pub(crate) fn whole_call_ended(&mut self, nr: u32, now: Nanos, slot: Slot) {
        self.leave();
        if let Some(c) = self.entry(nr) {
            c.ends.add(now, slot);
        }
    }

    /// A call that took `cpu_ns` ended. Whether it began `alone` is unknown if it began before the
    /// part. A call that `slept` ends in the order in which others wake it, so its end says
    /// nothing.
    #[inline(always)]
    pub(crate) fn call(
        &mut self,
        nr: u32,
        now: Nanos,
        slot: Slot,
        cpu_ns: Nanos,
        alone: Option<bool>,
        slept: bool,
    ) {
        let Some(c) = self.entry(nr) else { return };
        if let Some(alone) = alone {
            if alone { &mut c.alone } else { &mut c.concurrency }.add(cpu_ns);
        }
        if !slept {
            c.ends.add(now, slot);
        }
    }

    /// CPU time on the way into the kernel and back that lies outside of a call's two events, with
    /// most of what it takes to record them. Neither the shortest calls nor the shortest times
    /// between two calls are shorter than that, as far as there are `enough` of them.
    pub(crate) fn around_call_ns(&self, enough: f64) -> Nanos {
        let (mut calls, mut between) = (Costing::default(), Costing::default());
        for costs in self.calls.iter().flatten() {
            calls.merge(&costs.calls());
            between.merge(&costs.user_intervals);
        }
        let shortest = |of: &Costing| match of.count as f64 {
            count if count >= enough => of.quantile_ns(enough / count),
            _ => 0,
        };
        shortest(&calls).min(shortest(&between))
    }

    pub(crate) fn get(&self, nr: u32) -> Option<&Costs> {
        self.calls.get(nr as usize)?.as_deref()
    }

    /// Clears the sums; `inside` threads are in the kernel.
    pub(crate) fn restart(&mut self, inside: u32) {
        *self = CostTable { calls: Vec::new(), inside };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of 10 us, 8 us of it under a lock, by two threads that always want it.
    #[test]
    fn calls_under_one_lock_exclude_each_other() {
        let mut table = CostTable::default();
        for i in 0..1000u64 {
            table.call(1, i * 8_000, Slot(1 + (i % 2) as u32), 10_000, Some(false), false);
        }
        let e = table.get(1).unwrap().exclusion();
        assert!(e.observed < 1.0 && e.expected > 0.0, "{e:?}");
    }

    /// Calls of 10 us by two threads at independent times.
    #[test]
    fn independent_calls_do_not() {
        let mut table = CostTable::default();
        let (mut ts, mut random) = (0u64, 1u64);
        for _ in 0..4000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((random >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
            ts += (-uniform.ln() * 20_000.0) as u64;
            table.call(1, ts, Slot(1 + (random >> 7) as u32 % 2), 10_000, Some(true), false);
        }
        let e = table.get(1).unwrap().exclusion();
        assert!(e.observed > 100.0 && (0.8..1.25).contains(&(e.observed / e.expected)), "{e:?}");
    }

    /// A malloc with one arena makes a million futex calls in two seconds. Each takes 0.7 us
    /// between its events and as long around them, which was the application's time.
    #[test]
    fn the_way_into_the_kernel_is_as_long_as_the_shortest_calls_and_times_between() {
        let around = |calls: Nanos, between: Nanos, count: u64| {
            let mut table = CostTable::default();
            for _ in 0..count {
                table.call(202, 0, Slot(1), calls, Some(true), true);
                table.user_interval(202, between);
            }
            (0..100).for_each(|_| table.user_interval(1, 50_000));
            table.around_call_ns(20.0)
        };
        assert!((640..=768).contains(&around(700, 800, 1000)));
        assert!((640..=768).contains(&around(700, 16_000, 1000)), "it computes between its calls");
        assert!((640..=768).contains(&around(5_000, 700, 1000)), "its calls do something");
        assert_eq!(around(700, 800, 10), 0, "too few to know");
    }
}
