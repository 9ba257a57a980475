//! What is mapped where.

use crate::chains::Frame;
use holdup_trace::{FrameName, Mapping, Pid};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The memory of one process.
#[derive(Clone, Default)]
struct Space {
    /// Start address of each piece to its end and its mapping.
    pieces: BTreeMap<u64, (u64, u32)>,
    /// A number that is unique to this memory and changes whenever it is modified.
    version: u64,
}

impl Space {
    /// Map `start..end`; replaces earlier mappings there.
    fn map(&mut self, start: u64, end: u64, mapping: u32) {
        let before = self.pieces.range(..start).next_back().map(|(&s, &piece)| (s, piece));
        if let Some((s, (e, old))) = before.filter(|(_, (e, _))| *e > start) {
            self.pieces.insert(s, (start, old));
            if e > end {
                self.pieces.insert(end, (e, old));
            }
        }
        while let Some((&s, &(e, old))) = self.pieces.range(start..end).next() {
            self.pieces.remove(&s);
            if e > end {
                self.pieces.insert(end, (e, old));
            }
        }
        self.pieces.insert(start, (end, mapping));
    }

    fn find(&self, address: u64) -> Option<u32> {
        let (_, &(end, mapping)) = self.pieces.range(..=address).next_back()?;
        (address < end).then_some(mapping)
    }
}

/// Why the code at an address is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Origin {
    /// A file was mapped there.
    Mapped(Mapping),
    /// The trace itself names it.
    Named(FrameName),
}

impl Origin {
    /// The mapping, if it is a mapping.
    pub(crate) fn mapping(&self) -> Option<&Mapping> {
        match self {
            Origin::Mapped(mapping) => Some(mapping),
            Origin::Named(_) => None,
        }
    }
}

/// The memory of all processes and of the kernel.
#[derive(Default)]
pub(crate) struct Memory {
    origins: Vec<Origin>,
    ids: FxHashMap<Origin, u32>,
    /// Processes share the memory that neither has changed since a fork.
    spaces: FxHashMap<Pid, Rc<Space>>,
    kernel: Space,
    /// Number of changes to any memory.
    changes: u64,
}

impl Memory {
    /// Add a mapping to the memory of a process.
    pub(crate) fn map(&mut self, pid: Pid, mapping: &Mapping) {
        let end = mapping.start.saturating_add(mapping.len);
        if end == mapping.start {
            return;
        }
        let id = self.id(Origin::Mapped(*mapping));
        let space = match mapping.kernel {
            true => &mut self.kernel,
            false => Rc::make_mut(self.spaces.entry(pid).or_default()),
        };
        space.map(mapping.start, end, id);
        self.changes += 1;
        space.version = self.changes;
    }

    /// Numbers that stay the same exactly as long as the mappings of a process and of the kernel
    /// do. Processes that share their memory since a fork have the same numbers.
    pub(crate) fn version(&self, pid: Pid) -> [u64; 2] {
        let own = self.spaces.get(&pid).map_or(0, |space| space.version);
        [own, self.kernel.version]
    }

    fn id(&mut self, origin: Origin) -> u32 {
        let next = self.origins.len() as u32;
        let id = *self.ids.entry(origin).or_insert(next);
        if id == next {
            self.origins.push(origin);
        }
        id
    }

    /// A process was made by another.
    pub(crate) fn fork(&mut self, parent: Pid, child: Pid) {
        if parent != child
            && let Some(space) = self.spaces.get(&parent)
        {
            self.spaces.insert(child, space.clone());
        }
    }

    /// A process runs another program: its mappings are gone.
    pub(crate) fn exec(&mut self, pid: Pid) {
        self.spaces.remove(&pid);
    }

    /// The frame of an address, with its mapping.
    pub(crate) fn frame(&self, pid: Pid, address: u64, kernel: bool) -> Frame {
        let found = match kernel {
            true => self.kernel.find(address),
            false => self.spaces.get(&pid).and_then(|space| space.find(address)),
        };
        Frame { address, origin: found.unwrap_or(Frame::NOWHERE), kernel, returns: false }
    }

    /// The frame of an address that the trace names.
    pub(crate) fn named(&mut self, name: FrameName, address: u64, kernel: bool) -> Frame {
        Frame { address, origin: self.id(Origin::Named(name)), kernel, returns: false }
    }

    /// Everything mapped or named so far, by number.
    pub(crate) fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Everything that was ever mapped or named, by number.
    pub(crate) fn into_origins(self) -> Vec<Origin> {
        self.origins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::NameId;

    fn mapping(start: u64, len: u64, file: u32) -> Mapping {
        Mapping { start, len, offset: 0, file: NameId(file), kernel: false, build_id: None }
    }

    /// The files at these addresses.
    fn at(memory: &Memory, pid: u32, addresses: &[u64]) -> Vec<u32> {
        let find = |&a: &u64| memory.frame(Pid(pid), a, false).origin;
        let file = |id: u32| match memory.origins.get(id as usize) {
            Some(Origin::Mapped(m)) => m.file.0,
            _ => 0,
        };
        addresses.iter().map(find).map(file).collect()
    }

    #[test]
    fn what_is_mapped_over_something_hides_that_part_of_it() {
        let mut memory = Memory::default();
        let pid = Pid(7);
        memory.map(pid, &mapping(100, 100, 1));
        memory.map(pid, &mapping(120, 10, 2));
        assert_eq!(
            at(&memory, 7, &[99, 100, 119, 120, 129, 130, 199, 200]),
            [0, 1, 1, 2, 2, 1, 1, 0]
        );
        memory.map(pid, &mapping(90, 35, 3));
        assert_eq!(at(&memory, 7, &[90, 124, 125, 129, 130]), [3, 3, 2, 2, 1]);
        memory.map(pid, &mapping(0, u64::MAX, 4));
        assert_eq!(at(&memory, 7, &[0, 125, u64::MAX - 1]), [4, 4, 4]);
        memory.map(pid, &mapping(50, 0, 5));
        memory.map(pid, &mapping(u64::MAX - 5, 100, 6));
        assert_eq!(at(&memory, 7, &[50, u64::MAX - 5]), [4, 6]);
    }

    #[test]
    fn a_child_has_its_parents_memory_until_either_changes() {
        let mut memory = Memory::default();
        memory.map(Pid(1), &mapping(100, 100, 1));
        memory.fork(Pid(1), Pid(2));
        memory.map(Pid(2), &mapping(100, 10, 2));
        assert_eq!((at(&memory, 1, &[105]), at(&memory, 2, &[105, 150])), (vec![1], vec![2, 1]));
        memory.exec(Pid(2));
        assert_eq!((at(&memory, 1, &[150]), at(&memory, 2, &[150])), (vec![1], vec![0]));
        memory.fork(Pid(1), Pid(1));
        assert_eq!(at(&memory, 1, &[150]), [1]);
    }

    #[test]
    fn what_is_mapped_alike_has_one_version_and_nothing_else_has_it() {
        let mut memory = Memory::default();
        memory.map(Pid(1), &mapping(100, 100, 1));
        memory.map(Pid(2), &mapping(200, 100, 1));
        memory.fork(Pid(1), Pid(3));
        let version = |memory: &Memory, pid| memory.version(Pid(pid));
        let first = version(&memory, 1);
        assert_eq!(first, version(&memory, 3));
        assert_ne!(first, version(&memory, 2));
        memory.map(Pid(0), &Mapping { kernel: true, ..mapping(1 << 63, 100, 2) });
        let second = version(&memory, 1);
        assert_ne!(first, second);
        assert_ne!(second, version(&memory, 2));
        memory.map(Pid(3), &mapping(300, 1, 3));
        assert_eq!(second, version(&memory, 1));
        assert_ne!(second, version(&memory, 3));
    }
}
