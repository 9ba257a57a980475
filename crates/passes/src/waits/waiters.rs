//! What is known about each thread that may wait.
//!
//! Except for two sums, it serves only what the thread does next. So a thread that has ended gives
//! its place to another.

use super::calls::{Cached, Called};
use super::chains::Segment;
use super::holders::Hold;
use super::in_turn::At;
use super::monitors::Monitors;
use super::processes::NO_GROUP;
use super::tries::Tries;
use super::{Interval, Object, Progress, Wait};
use crate::blame::WaitKey;
use crate::slot::Slot;
use holdup_trace::{Nanos, Pid};
use std::collections::VecDeque;

/// What is known about one thread.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) cached: [Cached; 2],
    pub(super) group: u32,
    /// The process id by which `group` was found.
    pub(super) group_pid: Pid,
    pub(super) wait: Option<Wait>,
    pub(super) held: Vec<Hold>,
    pub(super) trail: VecDeque<Segment>,
    /// The number of its sleeps since another thread last ended one for something other than a
    /// lock; `None` if no thread has.
    pub(super) since_asked: Option<u32>,
    /// What the last wait was for, until the thread runs again.
    pub(super) last: Option<WaitKey>,
    /// What its last wait was for, if that was idle.
    pub(super) idle_before: Option<Object>,
    pub(super) tries: Tries,
    /// With which threads it may take turns.
    pub(super) turns_at: Option<At>,
    /// Since when it has been awake, if it may take turns.
    pub(super) awake_since: Option<Progress>,
    /// Its past is followed.
    pub(super) followed: bool,
    pub(super) monitors: Monitors,
}

impl Default for Waiter {
    fn default() -> Waiter {
        Waiter {
            cached: [Cached::default(); 2],
            group: NO_GROUP,
            group_pid: Pid::UNKNOWN,
            wait: None,
            held: Vec::new(),
            trail: VecDeque::new(),
            since_asked: None,
            last: None,
            idle_before: None,
            tries: Tries::default(),
            turns_at: None,
            awake_since: None,
            followed: false,
            monitors: Monitors::default(),
        }
    }
}

/// Time asleep of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slept {
    /// Time for what no other thread of this machine could have ended sooner.
    pub(super) idle_ns: Nanos,
    /// Time for locks.
    pub(super) lock_ns: Nanos,
}

/// All threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiters {
    /// Index of each thread in the two vectors below, by slot.
    places: Vec<u32>,
    waiters: Vec<Waiter>,
    calls: Vec<Called>,
    /// Places of threads that have ended.
    free: Vec<u32>,
    /// By slot.
    slept: Vec<Slept>,
    /// By slot, if they are kept.
    intervals: Vec<Vec<Interval>>,
}

/// The index of a thread without a place.
const NOWHERE: u32 = u32::MAX;

impl Waiters {
    #[inline(always)]
    fn place(&mut self, slot: Slot) -> usize {
        match self.places.get(slot.0 as usize) {
            Some(&place) if place != NOWHERE => place as usize,
            _ => self.settle(slot),
        }
    }

    #[cold]
    #[inline(never)]
    fn settle(&mut self, slot: Slot) -> usize {
        let i = slot.0 as usize;
        if i >= self.places.len() {
            self.places.resize(i + 1, NOWHERE);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.waiters.push(Waiter::default());
            self.calls.push(Called::default());
            self.waiters.len() as u32 - 1
        });
        self.places[i] = place;
        place as usize
    }

    /// What is known about a thread; gives it a place if it has none.
    #[inline]
    pub(super) fn of(&mut self, slot: Slot) -> &mut Waiter {
        let place = self.place(slot);
        &mut self.waiters[place]
    }

    /// The call that a thread is in.
    #[inline]
    pub(super) fn called(&mut self, slot: Slot) -> &mut Called {
        let place = self.place(slot);
        &mut self.calls[place]
    }

    /// What is known about a thread; `None` if nothing is.
    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Option<&Waiter> {
        self.waiters.get(*self.places.get(slot.0 as usize)? as usize)
    }

    /// Mutable version of `get`.
    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Waiter> {
        self.waiters.get_mut(*self.places.get(slot.0 as usize)? as usize)
    }

    /// The call that a thread is in, if it has been in one.
    pub(super) fn get_called(&self, slot: Slot) -> Option<&Called> {
        self.calls.get(*self.places.get(slot.0 as usize)? as usize)
    }

    /// The time that a thread slept.
    pub(super) fn slept(&mut self, slot: Slot) -> &mut Slept {
        let i = slot.0 as usize;
        if i >= self.slept.len() {
            self.slept.resize(i + 1, Slept::default());
        }
        &mut self.slept[i]
    }

    /// See [`Waiters::slept`].
    pub(super) fn times(&self, slot: Slot) -> Slept {
        self.slept.get(slot.0 as usize).copied().unwrap_or_default()
    }

    /// Adds a time asleep of a thread.
    pub(super) fn keep(&mut self, slot: Slot, interval: Interval) {
        let i = slot.0 as usize;
        if i >= self.intervals.len() {
            self.intervals.resize_with(i + 1, Vec::new);
        }
        self.intervals[i].push(interval);
    }

    /// Its times asleep, in order.
    pub(super) fn intervals(&self, slot: Slot) -> &[Interval] {
        self.intervals.get(slot.0 as usize).map_or(&[], |list| list)
    }

    /// A thread has ended; what it did last has no further consequences.
    pub(super) fn retire(&mut self, slot: Slot) -> Option<Waiter> {
        let place = std::mem::replace(self.places.get_mut(slot.0 as usize)?, NOWHERE);
        let waiter = std::mem::take(self.waiters.get_mut(place as usize)?);
        self.calls[place as usize] = Called::default();
        self.free.push(place);
        if let Some(list) = self.intervals.get_mut(slot.0 as usize) {
            list.shrink_to_fit();
        }
        Some(waiter)
    }

    /// Clears every sum, keeps every state. Waits in progress count from `now` on, when the blame
    /// integral is `g`.
    pub(super) fn restart(&mut self, now: Nanos, g: u128) {
        for w in &mut self.waiters {
            if let Some(wait) = &mut w.wait {
                (wait.start, wait.mark) = (now, g);
            }
            for h in &mut w.held {
                (h.since, h.integral) = (now, 0);
            }
            w.trail.clear();
            w.last = None;
            w.awake_since = None;
        }
        self.slept.clear();
        self.intervals.clear();
    }
}
