//! Remembers which control group each thread was recently reported in.
//!
//! Every sample carries its thread's group, and hardly any is new. A decoder therefore reports a
//! group only if it has not just reported it. A decoder sees one run, mostly of one CPU: if the
//! thread migrates, changes its group there and comes back, the change is in another run. So
//! reports expire and are repeated.

/// Slots of the table; a thread's slot is given by the last bits of its id.
const SLOTS: usize = 1024;

/// How long a report stays valid, ns.
const HOLDS: u64 = 10_000_000;

/// The last report for one thread.
#[derive(Clone, Copy)]
struct Said {
    tid: u32,
    group: u64,
    /// Time of the report by the clock of the trace, ns.
    at: u64,
}

/// An empty slot: the idle task's group does not matter.
const NOTHING: Said = Said { tid: 0, group: 0, at: 0 };

/// Threads and the groups they were in lately. Allocates on first use.
#[derive(Default)]
pub(crate) struct Lately(Vec<Said>);

impl Lately {
    /// Forget all reports.
    pub(crate) fn forget(&mut self) {
        self.0.fill(NOTHING);
    }

    /// Whether the group of thread `tid` at time `at` must be reported, because it was not reported
    /// recently. Records the report.
    #[inline]
    pub(crate) fn is_news(&mut self, tid: u32, group: u64, at: u64) -> bool {
        if self.0.is_empty() {
            self.0.resize(SLOTS, NOTHING);
        }
        let said = &mut self.0[tid as usize % SLOTS];
        if (said.tid, said.group) == (tid, group) && at.wrapping_sub(said.at) < HOLDS {
            return false;
        }
        *said = Said { tid, group, at };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_lately_is_no_news() {
        let mut lately = Lately::default();
        assert!(lately.is_news(7, 1, 100));
        assert!(!lately.is_news(7, 1, 200));
        assert!(lately.is_news(7, 2, 300), "it moved");
        assert!(lately.is_news(7 + SLOTS as u32, 2, 400), "another thread in its place");
        assert!(lately.is_news(7, 2, 500));
        assert!(lately.is_news(7, 2, 500 + HOLDS), "it may have been elsewhere meanwhile");
        lately.forget();
        assert!(lately.is_news(7, 2, 500 + HOLDS));
    }
}
