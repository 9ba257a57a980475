//! Threads that take turns at a lock without waking each other.
//!
//! A thread that waits for the lock of an interpreter (Python's GIL) sleeps for a few milliseconds.
//! Then it asks the holder to give the lock up, and finds it free before it sleeps again. So no
//! thread ends its sleeps; they look like those of a thread that naps for a time. But of threads
//! that nap independently several are awake at once as often as chance has it. Of threads that take
//! turns one is.
//!
//! ```text
//!  A  ▓▓▓▓▓▓░.....░.....░▓▓▓▓▓▓    ▓ awake, with the lock
//!  B  .....░▓▓▓▓▓▓░.....░.....░    ░ asks for it
//!  C  ░.....░.....░▓▓▓▓▓▓░.....    . asleep at the futex until its time is up
//! ```

use super::{Key, Object, ObjectKind, Waits};
use crate::limits::{ENOUGH, MATTERS, MISSING_ENDS};
use crate::overlap::Overlap;
use crate::slot::Slot;
use holdup_trace::{Cpu, Nanos};

/// Until this many times awake are known, they are kept, to be counted in order of time: half of
/// them, as one that began early may end after others that began late.
const KEPT: usize = 512;

/// When the threads are awake that time out at a futex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// Those that are not counted yet, and how many are.
    awake: Vec<(Nanos, Nanos, Slot)>,
    counted: Overlap,
    pieces: usize,
    /// Where a thread ran first, and whether any ran elsewhere. On one CPU threads take turns
    /// anyway.
    cpu: Option<Cpu>,
    moved: bool,
    /// Whether one thread at a time was awake.
    found: bool,
}

impl Turns {
    /// A thread that woke at `since` goes to sleep.
    fn add(&mut self, slot: Slot, since: Progress, at: Progress) {
        self.moved |= *self.cpu.get_or_insert(at.cpu) != at.cpu;
        // Without the time in which it queued for a CPU: one that only asks for the lock may queue
        // behind the holder for much longer than it runs.
        let ran = at.ran.saturating_sub(since.ran).min(at.now.saturating_sub(since.now));
        self.awake.push((at.now - ran, at.now, slot));
        if self.awake.len() < self.pieces.clamp(2 * ENOUGH.default as usize, KEPT) {
            return;
        }
        self.awake.sort_unstable();
        let half = self.awake.len() / 2;
        self.pieces += half;
        for (from, to, slot) in self.awake.drain(..half) {
            self.counted.add(slot, from, to);
        }
        self.found = self.moved && self.counted.is_below(MATTERS.default, MISSING_ENDS.default);
    }
}

/// What is known of a thread when it wakes and when it goes to sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) now: Nanos,
    /// How long it has run until now, and where it ran last.
    pub(crate) ran: Nanos,
    pub(crate) cpu: Cpu,
}

impl Waits {
    /// A thread is no longer asleep; it timed out at this object, if no thread woke it.
    pub(crate) fn wakes_up(&mut self, slot: Slot, at: Progress, timed_out: Option<Object>) {
        if let Some(object) = timed_out
            && let object = self.find(object)
            && self.things[object.0 as usize].kind == ObjectKind::Futex
        {
            let word = self.turns_at(object);
            self.waiter(slot).times_out_at = Some(word);
        }
        if let Some(w) = self.threads.get_mut(slot) {
            w.awake_since = w.times_out_at.map(|_| at);
        }
    }

    /// A thread goes to sleep.
    pub(crate) fn falls_asleep(&mut self, slot: Slot, at: Progress) {
        let Some(w) = self.threads.get_mut(slot) else { return };
        let (Some(word), Some(since)) = (w.times_out_at, w.awake_since.take()) else { return };
        let word = self.find(word);
        if let Some(turns) = &mut self.thing(word).awake {
            turns.add(slot, since, at);
        }
    }

    /// The futex word with the turns of this one: a condition variable has two words.
    fn turns_at(&mut self, object: Object) -> Object {
        if let Some(at) = self.things[object.0 as usize].turns_at {
            return self.find(at);
        }
        let other = match self.keys[object.0 as usize] {
            Key::Futex { space, shared, addr } => {
                self.index.get(&Key::Futex { space, shared, addr: addr ^ 4 }).copied()
            }
            _ => None,
        };
        let other = other.map(|other| self.find(other));
        let known = other.and_then(|other| self.things[other.0 as usize].turns_at);
        let at = known.map_or(object, |at| self.find(at));
        self.thing(object).turns_at = Some(at);
        self.thing(at).awake.get_or_insert_default();
        at
    }

    /// Whether the threads that time out at a futex take turns.
    pub(crate) fn are_turns_taken(&self, object: Object) -> bool {
        let at = self.things[object.0 as usize].turns_at.map(|at| self.find(at));
        let turns = at.and_then(|at| self.things[at.0 as usize].awake.as_ref());
        turns.is_some_and(|turns| turns.found)
    }
}
