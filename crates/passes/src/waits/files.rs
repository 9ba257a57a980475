//! Descriptors, followed from the call that created them.
//!
//! Tables belong to processes. A number that no call in the trace created was open before: it
//! becomes a descriptor of unknown kind the first time a thread waits for it. A forked process
//! starts with its parent's descriptors, and a program keeps them through `exec` (the trace does
//! not say which of them are close-on-exec).

use super::kind::ObjectKind;
use holdup_trace::{Nanos, Pid};
use rustc_hash::FxHashMap;

/// An open file description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Descriptor {
    pub(crate) id: u32,
    pub(crate) kind: ObjectKind,
    /// When a call created it; 0 if no call in the trace did.
    pub(crate) since: Nanos,
}

/// Where and how long a descriptor number meant the same thing, as far as the trace says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opened {
    /// The process in which it was first seen.
    pub(crate) pid: Pid,
    /// Its number there.
    pub(crate) fd: u32,
    /// When a call created it; 0 if no call in the trace did.
    pub(crate) since: Nanos,
    /// When a call closed it.
    pub(crate) until: Nanos,
}

impl Opened {
    pub(crate) fn of(pid: Pid, fd: u64, of: Descriptor) -> Opened {
        Opened { pid, fd: fd as u32, since: of.since, until: Nanos::MAX }
    }
}

/// The descriptors of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    open: FxHashMap<u32, Descriptor>,
    /// Changes with every change of what a number means.
    version: u32,
}

/// Numbers beyond this are damage, not descriptors.
const MAX_FD: u64 = 1 << 30;
/// Maximal size of a table; a damaged trace may open more, which are forgotten.
const MAX_OPEN: usize = 1 << 20;

/// Assigns ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids(u32);

impl Ids {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(1);
        self.0
    }
}

impl Table {
    /// Changes whenever a number may mean something else than before.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// A call created `fd`.
    pub(crate) fn open(&mut self, now: Nanos, fd: i64, kind: ObjectKind, ids: &mut Ids) {
        if (0..MAX_FD as i64).contains(&fd) && self.open.len() < MAX_OPEN {
            self.version = self.version.wrapping_add(1);
            self.open.insert(fd as u32, Descriptor { id: ids.next(), kind, since: now });
        }
    }

    /// `new` is `old` from now on.
    pub(crate) fn dup(&mut self, old: u64, new: i64, ids: &mut Ids) {
        let Some(d) = self.get(old, ids) else { return };
        if (0..MAX_FD as i64).contains(&new) {
            self.version = self.version.wrapping_add(1);
            self.open.insert(new as u32, d);
        }
    }

    /// Closes `fd`; returns what it was.
    pub(crate) fn close(&mut self, fd: u64) -> Option<Descriptor> {
        if fd >= MAX_FD {
            return None;
        }
        self.version = self.version.wrapping_add(1);
        self.open.remove(&(fd as u32))
    }

    /// Closes a range.
    pub(crate) fn close_range(&mut self, first: u64, last: u64) {
        self.version = self.version.wrapping_add(1);
        self.open.retain(|&fd, _| !(first..=last).contains(&u64::from(fd)));
    }

    /// Frees memory, because few more will be opened.
    pub(crate) fn shrink(&mut self) {
        self.open.shrink_to_fit();
    }

    /// What `fd` is; an unknown one is added.
    pub(crate) fn get(&mut self, fd: u64, ids: &mut Ids) -> Option<Descriptor> {
        if fd >= MAX_FD {
            return None;
        }
        let full = self.open.len() >= MAX_OPEN;
        match self.open.entry(fd as u32) {
            std::collections::hash_map::Entry::Occupied(e) => Some(*e.get()),
            std::collections::hash_map::Entry::Vacant(_) if full => None,
            std::collections::hash_map::Entry::Vacant(e) => {
                let kind = ObjectKind::Descriptor;
                Some(*e.insert(Descriptor { id: ids.next(), kind, since: 0 }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_is_the_same_description_and_a_reused_number_is_not() {
        let (mut t, mut ids) = (Table::default(), Ids::default());
        t.open(5, 3, ObjectKind::Socket, &mut ids);
        t.dup(3, 7, &mut ids);
        let first = t.get(7, &mut ids).unwrap();
        assert_eq!((first.kind, t.get(3, &mut ids)), (ObjectKind::Socket, Some(first)));
        assert_eq!((t.close(3), first.since), (Some(first), 5));
        t.open(9, 3, ObjectKind::File, &mut ids);
        assert_ne!(t.get(3, &mut ids).unwrap().id, first.id);
        assert_eq!(t.get(7, &mut ids), Some(first));
        t.open(9, -2, ObjectKind::File, &mut ids);
        assert_eq!(t.get(u64::MAX, &mut ids), None);
        t.close_range(4, u64::MAX);
        assert_eq!(t.get(7, &mut ids).unwrap().kind, ObjectKind::Descriptor);
    }
}
