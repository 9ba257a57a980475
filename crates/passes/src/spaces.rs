//! What calls that change an address space cost, by whether a sibling was on a CPU meanwhile.
//!
//! `mmap`, `munmap`, `mprotect` and similar calls take the one lock of the address space, and have
//! to tell every CPU that runs a thread of the same process to drop its translations of the changed
//! part (a TLB shootdown). Neither the spinning nor the waiting for those CPUs leaves an event. But
//! both need a *sibling*, a thread of the same process, on a CPU. An unrelated thread on a CPU does
//! not matter. So each call is classified as made
//!
//! * **together**: a sibling was on another CPU when the call began and when it ended;
//! * **apart**: none was, at either time; or
//! * neither, if that changed meanwhile.
//!
//! Calls of one process end one after the other under its lock, whatever their numbers are, so the
//! gaps between their ends ([`Ends`]) are kept for all of them together.

use crate::costs::{Costing, Ends};
use crate::slot::Slot;
use holdup_trace::{Nanos, Pid};

/// One such call's CPU time.
#[derive(Clone, Debug, Default)]
pub struct SpaceCosts {
    /// With a sibling on another CPU.
    pub together: Costing,
    /// With none.
    pub apart: Costing,
}

/// All calls that change an address space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spaces {
    /// By number: a dozen at most.
    calls: Vec<(u32, Box<SpaceCosts>)>,
    /// Ends of calls of the process that made the latest one.
    ends: Ends,
    latest: Option<Pid>,
}

/// A call that changes an address space ended.
pub(crate) struct SpaceCall {
    pub(crate) nr: u32,
    pub(crate) slot: Slot,
    pub(crate) pid: Pid,
    /// CPU time, interrupts excluded.
    pub(crate) own: Nanos,
    /// A sibling was on another CPU when it began, and when it ended.
    pub(crate) siblings: (bool, bool),
    /// It slept.
    pub(crate) slept: bool,
}

impl Spaces {
    pub(crate) fn call(&mut self, now: Nanos, c: &SpaceCall) {
        let at = match self.calls.iter().position(|e| e.0 == c.nr) {
            Some(at) => at,
            None => {
                self.calls.push((c.nr, Box::default()));
                self.calls.len() - 1
            }
        };
        let costs = &mut self.calls[at].1;
        match c.siblings {
            (true, true) => costs.together.add(c.own),
            (false, false) => costs.apart.add(c.own),
            _ => {}
        }
        if self.latest.replace(c.pid) != Some(c.pid) {
            self.ends.interrupted();
        }
        if !c.slept {
            self.ends.add(now, c.slot);
        }
    }

    /// Costs of one call, by its number.
    pub(crate) fn get(&self, nr: u32) -> Option<&SpaceCosts> {
        self.calls.iter().find(|c| c.0 == nr).map(|c| &*c.1)
    }

    /// Gaps between the ends of calls that changed one address space.
    pub(crate) fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Clears the sums.
    pub(crate) fn restart(&mut self) {
        *self = Spaces::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(slot: u32, pid: u32, siblings: (bool, bool)) -> SpaceCall {
        SpaceCall { nr: 9, slot: Slot(slot), pid: Pid(pid), own: 1000, siblings, slept: false }
    }

    #[test]
    fn a_call_counts_only_if_siblings_neither_came_nor_went() {
        let mut spaces = Spaces::default();
        for (i, siblings) in
            [(true, true), (true, false), (false, true), (false, false)].into_iter().enumerate()
        {
            spaces.call(i as u64 * 5000, &call(1, 10, siblings));
        }
        let costs = spaces.get(9).unwrap();
        assert_eq!((costs.together.count, costs.apart.count), (1, 1));
        assert!(spaces.get(10).is_none());
    }

    #[test]
    fn ends_of_different_processes_are_no_gap() {
        let mut spaces = Spaces::default();
        for i in 0..10 {
            spaces.call(i * 1000, &call(1 + i as u32 % 2, 10 + i as u32 % 2, (true, true)));
        }
        assert_eq!(spaces.ends().by_previous(), (0, 0));
        for i in 10..20 {
            spaces.call(i * 1000, &call(1 + i as u32 % 2, 10, (true, true)));
        }
        assert_eq!(spaces.ends().by_previous(), (9, 0));
    }
}
