//! Which threads and processes share memory and descriptors.

use super::files::Table;
use super::{Class, Turns, Waits};
use crate::slot::Slot;
use crate::variables::Images;
use holdup_trace::{Mapping, Nanos, Pid};

pub(super) const NO_GROUP: u32 = u32::MAX;

/// A process: what its threads share.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Number of its address space; a new one after exec.
    pub(super) space: u32,
    /// Processes forked from one another share memory mapped before.
    pub(super) family: u32,
    pub(super) files: Table,
    /// Its code mappings.
    pub(super) images: Images,
    /// Its process id is known: it is not part of another known process.
    pub(super) known: bool,
    /// It accepted a connection: others ask it for something.
    pub(super) accepts: bool,
    /// When its threads are awake that time out at a futex of their own.
    pub(super) turns: Option<Box<Turns>>,
}

impl Waits {
    fn new_group(&mut self, family: Option<u32>, files: Table, images: Images) -> u32 {
        let id = self.groups.len() as u32;
        self.spaces += 1;
        self.groups.push(Group {
            space: self.spaces,
            family: family.unwrap_or(self.spaces),
            files,
            images,
            known: false,
            accepts: false,
            turns: None,
        });
        id
    }

    fn unknown_group(&mut self) -> u32 {
        self.new_group(None, Table::default(), Images::default())
    }

    fn group_of(&mut self, pid: Pid) -> u32 {
        if let Some(&group) = self.by_pid.get(&pid) {
            return group;
        }
        let group = self.unknown_group();
        self.by_pid.insert(pid, group);
        group
    }

    /// Whether a process accepted a connection.
    pub(crate) fn accepts(&self, pid: Pid) -> bool {
        self.by_pid.get(&pid).is_some_and(|&group| self.groups[group as usize].accepts)
    }

    /// The mapping of code next below an address in the memory of a process.
    pub(crate) fn code_below(&self, pid: Pid, address: u64) -> Option<Mapping> {
        let group = *self.by_pid.get(&pid)?;
        self.groups.get(group as usize)?.images.below(address)
    }

    /// Code was mapped into the memory of a process.
    pub(crate) fn mapped(&mut self, pid: Pid, mapping: &Mapping) {
        if pid != Pid::UNKNOWN && !mapping.kernel {
            let group = self.group_of(pid);
            self.groups[group as usize].images.map(mapping);
        }
    }

    /// A process begins to load another program: its mappings are gone. Mappings of the new program
    /// come before the event that names it.
    pub(crate) fn unmapped(&mut self, pid: Pid) {
        if let Some(&group) = self.by_pid.get(&pid) {
            self.groups[group as usize].images = Images::default();
        }
    }

    /// The process of a thread; a process of its own while nothing is known.
    pub(super) fn group(&mut self, slot: Slot, pid: Pid) -> u32 {
        let w = self.waiter(slot);
        if w.group != NO_GROUP && w.group_pid == pid {
            return w.group;
        }
        let own = w.group;
        let group = match self.by_pid.get(&pid) {
            Some(&g) if pid != Pid::UNKNOWN => g,
            _ => {
                let g = if own != NO_GROUP { own } else { self.unknown_group() };
                if pid != Pid::UNKNOWN {
                    self.by_pid.insert(pid, g);
                }
                g
            }
        };
        self.groups[group as usize].known |= pid != Pid::UNKNOWN;
        let w = self.waiter(slot);
        (w.group, w.group_pid, w.cached) = (group, pid, Default::default());
        group
    }

    /// What the flags of the current `clone` of a thread mean: (it makes a thread, the trace says
    /// so). `None` if they are not known, or if the thread is not in a `clone`.
    pub(crate) fn cloning(&self, slot: Slot, call_start: Nanos) -> Option<(bool, bool)> {
        const CLONE_THREAD: u64 = 0x1_0000;
        let w = self.threads.get_called(slot).filter(|w| w.at == call_start)?;
        match w.class {
            Class::Clone => Some((w.args[0] & CLONE_THREAD != 0, true)),
            // Its flags are in memory; the threads library uses it for threads (fork is clone).
            Class::Clone3 => Some((true, false)),
            Class::Fork => Some((false, true)),
            _ => None,
        }
    }

    /// A thread or process was created.
    pub(crate) fn forked(&mut self, parent: (Slot, Pid), child: (Slot, Pid), thread: bool) {
        let group = self.group(parent.0, parent.1);
        let known = self.waiter(child.0);
        if known.group != NO_GROUP && known.group_pid == child.1 {
            return;
        }
        let group = if thread {
            group
        } else {
            let g = &self.groups[group as usize];
            let (family, files, images) = (g.family, g.files.clone(), g.images.clone());
            let new = self.new_group(Some(family), files, images);
            if child.1 != Pid::UNKNOWN {
                self.by_pid.insert(child.1, new);
                self.groups[new as usize].known = true;
            }
            new
        };
        let w = self.waiter(child.0);
        (w.group, w.group_pid, w.cached) = (group, child.1, Default::default());
    }

    /// A new program: a new address space, the same descriptors. A thread wrongly inferred to
    /// belong to its parent's process leaves it.
    pub(crate) fn exec(&mut self, slot: Slot, pid: Pid, leaves: bool) {
        let group = self.group(slot, pid);
        if leaves {
            let g = &self.groups[group as usize];
            let (files, images) = (g.files.clone(), g.images.clone());
            let new = self.new_group(None, files, images);
            self.by_pid.insert(pid, new);
            let w = self.waiter(slot);
            (w.group, w.group_pid, w.cached) = (new, pid, Default::default());
            return;
        }
        self.spaces += 1;
        let space = self.spaces;
        let g = &mut self.groups[group as usize];
        (g.space, g.family) = (space, space);
    }
}
