//! What samples said of the control groups of threads lately.
//!
//! Every sample says in which group its thread is, and next to none says anything new. A decoder
//! hands on what it has not said of the thread before. It decodes one run, mostly of one CPU: when
//! the thread runs on another meanwhile, moves, and moves back, that is told in another run. So
//! what was said long ago is said again.

/// A table of so many threads, found by the last bits of their numbers.
const SLOTS: usize = 1024;

/// For so long what was said of a thread holds, ns.
const HOLDS: u64 = 10_000_000;

/// What was said of one thread.
#[derive(Clone, Copy)]
struct Said {
    tid: u32,
    group: u64,
    /// By the clock of the trace.
    at: u64,
}

/// Of no thread: the idle task is in no group that matters.
const NOTHING: Said = Said { tid: 0, group: 0, at: 0 };

/// Threads and the groups they were in lately. Takes memory when it is first used.
#[derive(Default)]
pub(crate) struct Lately(Vec<Said>);

impl Lately {
    /// Nothing has been said.
    pub(crate) fn forget(&mut self) {
        self.0.fill(NOTHING);
    }

    /// Whether that the thread `tid` is in `group` at `at` has not been said of late; it counts as
    /// said from now on.
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
