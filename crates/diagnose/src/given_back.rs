//! Locks of runtimes that schedule threads of their own, such as Go's goroutines.
//!
//! Whoever waits for such a lock is no thread of the kernel. The thread that ran it takes another
//! one to run; if there is none, it sleeps on a word of its own until somebody has work for it. So
//! the kernel shows a pool, most of it idle, whose busy thread wakes another now and then: that of
//! a program with too little work. What was waited for shows only in the call chains of these
//! wake-ups: they pass through the function by which the runtime gives back a lock.

use crate::facts::Facts;
use crate::report::Culprit;
use holdup_attribution::{Blamed, Leaf, Sleeper, WaitRule};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What threads slept for until a runtime gave back a lock, and the idle CPU time that costs.
pub(crate) struct GivenBack<'a> {
    /// The word that its threads slept on longest.
    pub(crate) longest: &'a Blamed,
    /// All of them; all of one process.
    objects: Vec<&'a Blamed>,
    /// Idle CPU time that the ledger lays to threads that take turns.
    own: Nanos,
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
        // What is handed on through pipes and the like is no runtime's lock.
        let leaves = [Leaf::ThreadSync, Leaf::Order];
        let of_threads = |o: &&Blamed| leaves.iter().any(|leaf| o.leaves.contains_key(leaf));
        let handed_on = |o: &&Blamed| o.rule == WaitRule::HandoverTurns;
        for o in facts.objects().iter().filter(handed_on).filter(of_threads) {
            let Some((pid, around)) = o.row.pid.zip(code.object(&o.names)) else { continue };
            if around.given_back_ns * 2 > o.row.wait_total_ns {
                let (ns, objects) = of.entry(pid).or_default();
                *ns += around.given_back_ns;
                objects.push(o);
            }
        }
        let (slept, mut objects) = of.into_values().max_by_key(|of| of.0)?;
        objects.sort_by_key(|o| Reverse(o.row.wait_total_ns));
        let longest = *objects.first()?;
        let idle = |leaf| -> Nanos { objects.iter().map(|o| o.idle_ns(leaf)).sum() };
        let (own, order) = (idle(Leaf::ThreadSync), idle(Leaf::Order));
        let serial = slept.saturating_sub(own + order).min(facts.leaf(Leaf::Serial));
        Some(GivenBack { longest, objects, own, order, serial })
    }

    /// Idle CPU time that it costs.
    pub(crate) fn idle_ns(&self) -> Nanos {
        self.own + self.order + self.serial
    }

    /// Whether a culprit is one of these words.
    pub(crate) fn has(&self, culprit: &Culprit) -> bool {
        let is_it = |o: &&Blamed| o.row.object == culprit.id && o.row.pid == culprit.pid;
        self.objects.iter().any(is_it)
    }

    /// What the words are called.
    pub(crate) fn names(&self) -> Vec<String> {
        self.objects.iter().flat_map(|o| &o.names).cloned().collect()
    }

    /// The threads that slept, longest first.
    pub(crate) fn sleepers(&self) -> Vec<Sleeper> {
        Sleeper::added_up(self.objects.iter().flat_map(|o| &o.sleepers).copied())
    }
}
