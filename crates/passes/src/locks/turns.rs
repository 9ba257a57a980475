//! Holders of a lock while others waited for it: `lock:contended_release` (Linux 7.2).
//!
//! ```text
//!   A holds L ───────── release(L) by A ─ end(L) of B ─────── release(L) by B
//!        begin(L) of B ▲                       ▲ begin(L) of C
//!        └── waited for A's turn ──┘           └─ waited for B's turn ─┘
//! ```
//!
//! The event fires in the holder's context, and only if threads wait. So a *turn* is the time until
//! such a release: since a wait for the lock ended with the lock taken, since the release before,
//! or since the first thread began to wait. All waiting for the lock in that time was for its
//! holder.

use super::{MAX_KEYS, Waiter};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// Sums of the turns of one holder at one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Releases while others waited.
    pub(crate) turns: u64,
    /// Time it held the lock, as far as others waited for it.
    pub(crate) hold_ns: Nanos,
    /// Waiting time of others meanwhile.
    pub(crate) waited_ns: Nanos,
}

impl Held {
    pub(crate) fn add(&mut self, o: &Held) {
        self.turns += o.turns;
        self.hold_ns += o.hold_ns;
        self.waited_ns += o.waited_ns;
    }
}

/// The current turn of a lock.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    since: Nanos,
    waiting: u32,
    /// Time waited since then, up to `at`.
    waited: Nanos,
    at: Nanos,
}

impl Turn {
    fn advance(&mut self, now: Nanos) {
        self.waited += self.waiting as u64 * now.saturating_sub(self.at);
        self.at = self.at.max(now);
    }

    /// The next turn begins. Returns the length of the last, and the time waited in it.
    fn end(&mut self, now: Nanos) -> (Nanos, Nanos) {
        self.advance(now);
        let since = std::mem::replace(&mut self.since, now);
        (now.saturating_sub(since), std::mem::take(&mut self.waited))
    }
}

/// The turns of all locks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    now: FxHashMap<u64, Turn>,
    pub(crate) held: FxHashMap<(u64, Waiter), Held>,
}

impl Turns {
    pub(super) fn wait_begins(&mut self, now: Nanos, lock: u64) {
        if self.now.len() >= MAX_KEYS && !self.now.contains_key(&lock) {
            return;
        }
        let turn = self.now.entry(lock).or_default();
        turn.advance(now);
        if turn.waiting == 0 {
            turn.since = now;
        }
        turn.waiting += 1;
    }

    pub(super) fn wait_ends(&mut self, now: Nanos, lock: u64) {
        if let Some(turn) = self.now.get_mut(&lock) {
            turn.advance(now);
            turn.waiting = turn.waiting.saturating_sub(1);
        }
    }

    /// A waiter has the lock now.
    pub(crate) fn taken(&mut self, now: Nanos, lock: u64) {
        if let Some(turn) = self.now.get_mut(&lock) {
            turn.end(now);
        }
    }

    /// `holder` releases the lock.
    pub(crate) fn released(&mut self, now: Nanos, lock: u64, holder: Waiter) {
        // Waits from before the trace, and rwsems that spin, leave no events.
        let Some(turn) = self.now.get_mut(&lock).filter(|turn| turn.waiting > 0) else { return };
        let (hold_ns, waited_ns) = turn.end(now);
        if self.held.len() >= MAX_KEYS && !self.held.contains_key(&(lock, holder)) {
            return;
        }
        let held = self.held.entry((lock, holder)).or_default();
        held.turns += 1;
        held.hold_ns += hold_ns;
        held.waited_ns += waited_ns;
    }

    /// The part to be analysed starts at `now`; turns go on and count from here.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.held.clear();
        for turn in self.now.values_mut() {
            *turn = Turn { since: now, at: now, waited: 0, ..*turn };
        }
    }
}
