//! Locks of runtimes that schedule threads of their own, such as Go's goroutines.
//!
//! Whoever waits for such a lock is no thread of the kernel. The thread that ran it takes another
//! one to run; if there is none, it sleeps on a word of its own until somebody has work for it. So
//! the kernel shows a pool, most of it idle, whose busy thread wakes another now and then: that of
//! a program with too little work. What was waited for shows only in the call chains of these
//! wake-ups: they pass through the function by which the runtime gives back a lock.

use crate::facts::Facts;
use holdup_attribution::{Blamed, Leaf, Sleeper, WaitRule};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What threads slept for until a runtime gave back a lock, and the idle CPU time that costs.
pub(crate) struct GivenBack<'a> {
    /// The words that its threads sleep on, longest first; all of one process.
    pub(crate) objects: Vec<&'a Blamed>,
    /// Idle CPU time at `idle/order`: the ledger took those who sleep for stages of a pipeline.
    pub(crate) order: Nanos,
    /// Idle CPU time at `idle/serial`, as far as threads slept for the lock meanwhile.
    pub(crate) serial: Nanos,
}

impl GivenBack<'_> {
    /// Of the process with most of it; `None` where no chain tells of any.
    pub(crate) fn of<'a>(facts: &'a Facts<'_>) -> Option<GivenBack<'a>> {
        let code = facts.code?;
        let mut of: BTreeMap<u32, (Nanos, Vec<&Blamed>)> = BTreeMap::new();
        for o in facts.objects().iter().filter(|o| o.rule == WaitRule::HandoverTurns) {
            let Some((pid, around)) = o.row.pid.zip(code.object(&o.names)) else { continue };
            if around.given_back_ns * 2 > o.row.wait_total_ns {
                let (ns, objects) = of.entry(pid).or_default();
                *ns += around.given_back_ns;
                objects.push(o);
            }
        }
        let (slept, mut objects) = of.into_values().max_by_key(|of| of.0)?;
        objects.sort_by_key(|o| Reverse(o.row.wait_total_ns));
        let idle = |leaf| -> Nanos { objects.iter().map(|o| o.idle_ns(leaf)).sum() };
        let (own, order) = (idle(Leaf::ThreadSync), idle(Leaf::Order));
        let serial = slept.saturating_sub(own + order).min(facts.leaf(Leaf::Serial));
        Some(GivenBack { order, serial, objects })
    }

    /// Idle CPU time that it costs beyond what the ledger lays to threads that take turns.
    pub(crate) fn more(&self) -> Nanos {
        self.order + self.serial
    }

    /// The threads that slept, longest first.
    pub(crate) fn sleepers(&self) -> Vec<Sleeper> {
        let mut of: BTreeMap<_, Nanos> = BTreeMap::new();
        for s in self.objects.iter().flat_map(|o| &o.sleepers) {
            *of.entry(s.slot).or_default() += s.wait_ns;
        }
        let sleeper = |(slot, wait_ns)| Sleeper { slot, wait_ns };
        let mut sleepers: Vec<Sleeper> = of.into_iter().map(sleeper).collect();
        sleepers.sort_by_key(|s| (Reverse(s.wait_ns), s.slot));
        sleepers
    }
}
