//! Threads that have ended give back what only the living need.
//!
//! A build or a shell script starts and ends a hundred thousand processes. Nothing of what tables
//! show of them is lost: sums stay, those of their system calls packed ([`crate::packed`]).

use super::Engine;
use crate::slot::Slot;
use crate::state::State;

/// So many that ended last keep all they have: a wake-up that one of them began may be on its way,
/// and what it waited for may explain the wait that this ends.
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
        // An event may have shown that it had not ended.
        if t.state != State::Dead {
            return;
        }
        self.user_intervals.retire(slot, t.living.calls.iter().map(|(nr, _)| nr));
        self.threads.retire(slot);
        self.waits.retire(slot);
    }
}
