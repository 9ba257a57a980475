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
//!
//! The threads sleep at one futex, or each at one of its own (Ruby, where only the next in line times
//! out). Then they are all threads of the process that sleep at futexes, and one of them must be
//! awake at nearly all times: a wait for a lock lasts as long as somebody has it.

use super::{Key, Object, ObjectKind, Waits};
use crate::limits::{ENOUGH, MATTERS, MISSING_ENDS};
use crate::overlap::Overlap;
use crate::slot::Slot;
use holdup_trace::{Cpu, Nanos};

/// So many times awake are kept, to be counted in order of time: one that began early may end after
/// others that began late.
const KEPT: usize = 256;

/// When the threads are awake that time out at a futex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// The latest, not counted yet.
    awake: Vec<(Nanos, Nanos, Slot)>,
    counted: Overlap,
    /// How many there are, and at how many it is looked again whether they exclude each other.
    pieces: usize,
    next: usize,
    /// Where a thread ran first, and whether any ran elsewhere. On one CPU threads take turns
    /// anyway.
    cpu: Option<Cpu>,
    moved: bool,
    /// Whether one thread at a time was awake, and whether one was at nearly all times.
    found: bool,
    always: bool,
    /// Those that were for a part that matters of what each was on average.
    takers: Vec<Slot>,
}

impl Turns {
    /// A thread that woke at `since` goes to sleep.
    fn add(&mut self, slot: Slot, since: Progress, at: Progress) {
        self.moved |= *self.cpu.get_or_insert(at.cpu) != at.cpu;
        // Without the time in which it queued for a CPU: one that only asks for the lock may queue
        // behind the holder for much longer than it runs.
        let ran = at.ran.saturating_sub(since.ran).min(at.now.saturating_sub(since.now));
        self.awake.push((at.now - ran, at.now, slot));
        self.pieces += 1;
        let enough = ENOUGH.default as usize;
        if self.pieces < self.next.max(enough) {
            return;
        }
        self.next = self.pieces + (self.pieces / 2).clamp(enough, KEPT);
        self.awake.sort_unstable();
        let mut all = self.counted.clone();
        self.awake.iter().for_each(|&(from, to, slot)| all.add(slot, from, to));
        self.found = self.moved && all.is_below(MATTERS.default, MISSING_ENDS.default);
        self.always = all.any_pct() >= 100.0 - MATTERS.default;
        self.takers = all.who_matters(MATTERS.default);
        let early = self.awake.len().saturating_sub(KEPT);
        for (from, to, slot) in self.awake.drain(..early) {
            self.counted.add(slot, from, to);
        }
    }
}

/// Which threads may take turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    /// Those that time out at this futex.
    Word(Object),
    /// Those of this process, of which one timed out at a futex of its own.
    Group(u32),
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
    /// A thread no longer sleeps for this object; `timed_out` if no thread woke it.
    pub(crate) fn wakes_up(&mut self, slot: Slot, at: Progress, object: Object, timed_out: bool) {
        let object = self.find(object);
        let thing = &self.things[object.0 as usize];
        if thing.kind == ObjectKind::Futex {
            let group = thing.group;
            let of_group = || self.groups.get(group as usize).is_some_and(|g| g.turns.is_some());
            let turns = match timed_out {
                true => Some(self.turns_at(object)),
                false => of_group().then_some(At::Group(group)),
            };
            let w = self.waiter(slot);
            w.turns_at = if timed_out { turns } else { w.turns_at.or(turns) };
        }
        if let Some(w) = self.threads.get_mut(slot) {
            w.awake_since = w.turns_at.map(|_| at);
        }
    }

    /// A thread goes to sleep.
    pub(crate) fn falls_asleep(&mut self, slot: Slot, at: Progress) {
        let Some(w) = self.threads.get_mut(slot) else { return };
        let (Some(turns_at), Some(since)) = (w.turns_at, w.awake_since.take()) else { return };
        let turns = match turns_at {
            At::Word(word) => {
                let word = self.find(word);
                &mut self.thing(word).in_turn
            }
            At::Group(group) => match self.groups.get_mut(group as usize) {
                Some(group) => &mut group.turns,
                None => return,
            },
        };
        turns.get_or_insert_default().add(slot, since, at);
    }

    /// Where the turns are counted of a thread that times out at this futex.
    fn turns_at(&mut self, object: Object) -> At {
        let thing = &self.things[object.0 as usize];
        if thing.is_of_one {
            let group = thing.group;
            if let Some(of) = self.groups.get_mut(group as usize) {
                of.turns.get_or_insert_default();
            }
            return At::Group(group);
        }
        if let Some(word) = thing.turns_at {
            return At::Word(self.find(word));
        }
        // A condition variable has two words.
        let other = match self.keys[object.0 as usize] {
            Key::Futex { space, shared, addr } => {
                self.index.get(&Key::Futex { space, shared, addr: addr ^ 4 }).copied()
            }
            _ => None,
        };
        let other = other.map(|other| self.find(other));
        let known = other.and_then(|other| self.things[other.0 as usize].turns_at);
        let word = known.map_or(object, |word| self.find(word));
        self.thing(object).turns_at = Some(word);
        At::Word(word)
    }

    /// Whether the threads that time out at a futex take turns.
    pub(crate) fn are_turns_taken(&self, object: Object) -> bool {
        let thing = &self.things[object.0 as usize];
        if thing.kind != ObjectKind::Futex {
            return false;
        }
        if thing.is_of_one {
            let group = self.groups.get(thing.group as usize);
            let turns = group.and_then(|group| group.turns.as_ref());
            let takes =
                |turns: &Turns| thing.first.is_some_and(|slot| turns.takers.contains(&slot));
            return turns.is_some_and(|turns| turns.found && turns.always && takes(turns));
        }
        let word = thing.turns_at.map(|word| self.find(word));
        let turns = word.and_then(|word| self.things[word.0 as usize].in_turn.as_ref());
        turns.is_some_and(|turns| turns.found)
    }
}
