//! Whose turns are counted together, and at which futexes threads take turns.

use super::processes::Group;
use super::turns::{Progress, Turns};
use super::{Key, Object, ObjectKind, Thing, Waits};
use crate::slot::Slot;
use crate::threads::Thread;
use holdup_syscalls::WaitKind;
use holdup_trace::NameId;

/// Which threads may take turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    /// Those that time out at this futex.
    Word(Object),
    /// Those of this process, of which one timed out at a futex of its own.
    Group(u32),
    /// Those with this name, in any process, that nap.
    Nappers(NameId),
}

impl Waits {
    /// A thread of this name no longer sleeps for this object; `timed_out` if no thread woke it.
    pub(crate) fn wakes_up(
        &mut self,
        (slot, comm): (Slot, NameId),
        at: Progress,
        object: Object,
        timed_out: bool,
    ) {
        let object = self.find(object);
        let Thing { kind, group, .. } = self.things[object.0 as usize];
        let counts = |of: &Group| of.turns.is_some();
        let naps = matches!(kind, ObjectKind::Timer | ObjectKind::Poll | ObjectKind::PolledLock);
        let turns = match kind {
            // Who also contends for an interpreter's lock takes turns with that.
            _ if naps && timed_out && comm != NameId::NONE => {
                self.waiter(slot).turns_at.or(Some(At::Nappers(comm)))
            }
            ObjectKind::Futex if timed_out => Some(self.turns_at(object)),
            ObjectKind::Futex if self.groups.get(group as usize).is_some_and(counts) => {
                Some(At::Group(group))
            }
            _ => None,
        };
        let w = self.waiter(slot);
        w.turns_at = if timed_out { turns.or(w.turns_at) } else { w.turns_at.or(turns) };
        w.awake_since = w.turns_at.map(|_| at);
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
            At::Nappers(comm) => {
                return self.nappers.entry(comm).or_default().add(slot, since, at);
            }
        };
        turns.get_or_insert_default().add(slot, since, at);
    }

    /// The lock that a thread naps for which goes to sleep in a call of this kind: threads of its
    /// name take turns with something, and mostly are awake only for a try.
    pub(super) fn polls_for(
        &mut self,
        slot: Slot,
        t: &Thread,
        kind: Option<WaitKind>,
    ) -> Option<Object> {
        let naps = matches!(kind, Some(WaitKind::Timer | WaitKind::Poll));
        if !naps || !self.polls_a_lock(slot, t.comm) {
            return None;
        }
        let group = self.group(slot, t.pid);
        Some(self.intern(Key::PolledLock { comm: t.comm }, ObjectKind::PolledLock, group))
    }

    fn polls_a_lock(&self, slot: Slot, comm: NameId) -> bool {
        let polls = |of: &Turns| of.found && of.mostly_tries && of.takers.contains(&slot);
        self.nappers.get(&comm).is_some_and(polls)
    }

    /// The lock that a thread of this name naps for, by all that is known at the end.
    pub(crate) fn polled_lock(&self, slot: Slot, comm: NameId) -> Option<Object> {
        let lock = || self.index.get(&Key::PolledLock { comm }).copied();
        self.polls_a_lock(slot, comm).then(lock).flatten()
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
