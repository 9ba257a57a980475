//! Threads that have ended free what only living threads need.
//!
//! A build or a shell script starts and ends a hundred thousand processes. Nothing that tables show
//! is lost: the sums stay, those of system calls packed ([`crate::packed`]).

use super::Engine;
use crate::slot::Slot;
use crate::state::State;

/// The last threads that ended, this many, keep everything: a wake-up by one of them may be in
/// progress, and what it waited for may explain the wait that this wake-up ends.
const LAST: usize = 32;

impl Engine {
    /// A thread has ended.
    pub(super) fn ended(&mut self, slot: Slot) {
        self.last_ended.push_back(slot);
        if self.last_ended.len() > LAST
            && let Some(slot) = self.last_ended.pop_front()
        {
            self.retire(slot);
        }
    }

    fn retire(&mut self, slot: Slot) {
        let t = &self.threads[slot];
        // An event may have shown that the thread had not ended.
        if t.state != State::Dead {
            return;
        }
        self.user_intervals.retire(slot, t.living.calls.iter().map(|(nr, _)| nr));
        self.threads.retire(slot);
        self.waits.retire(slot);
    }
}
