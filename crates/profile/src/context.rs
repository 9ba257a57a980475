//! The state needed to identify the code at an address: mappings, processes, names.

use crate::chains::{ChainId, Chains, Frame};
use crate::memory::{Memory, Origin};
use holdup_symbols::Code;
use holdup_trace::{
    Batch, Event, FrameName, Mapping, NameId, Names, Pid, StackRef, Tid, TraceInfo, What,
};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The state up to an event.
pub(crate) struct Context {
    memory: Memory,
    chains: Chains,
    comms: FxHashMap<Tid, NameId>,
    pids: FxHashMap<Tid, Pid>,
    /// Control groups.
    groups: FxHashMap<Tid, NameId>,
    scratch: Vec<Frame>,
    /// Whether only the first frame of each chain is kept.
    innermost: bool,
    /// Recorded chains, preceded by the version of the mappings: most chains recur and then need no
    /// look-up of mappings.
    met: FxHashMap<Rc<[u64]>, ChainId>,
    recorded: Vec<u64>,
}

/// At least this many recorded chains are remembered. Beyond that, at most twice as many as there
/// are distinct chains: if mappings change all the time, none recurs.
const REMEMBERED: usize = 1 << 16;

impl Context {
    pub(crate) fn new(info: &TraceInfo) -> Context {
        Context {
            memory: Memory::default(),
            chains: Chains::default(),
            comms: info.tasks.iter().map(|t| (t.tid, t.comm)).collect(),
            pids: info.tasks.iter().map(|t| (t.tid, t.pid)).collect(),
            groups: FxHashMap::default(),
            scratch: Vec::new(),
            innermost: false,
            met: FxHashMap::default(),
            recorded: Vec::new(),
        }
    }

    /// From now on keep only the first frame of each chain.
    pub(crate) fn keep_innermost(&mut self) {
        self.innermost = true;
    }

    /// Update the state from an event.
    pub(crate) fn event(&mut self, e: &Event, batch: &Batch) {
        match e.what {
            What::Mapped { pid, mapping } => {
                if let Some(mapping) = batch.mapping(mapping) {
                    self.memory.map(pid, mapping);
                }
            }
            What::TaskNew { tid, pid, parent_tid, parent_pid } => {
                self.memory.fork(parent_pid, pid);
                self.pids.insert(tid, pid);
                if let Some(&comm) = self.comms.get(&parent_tid) {
                    self.comms.insert(tid, comm);
                }
                self.inherits(parent_tid, tid);
            }
            What::Fork { parent, child, .. } => self.inherits(parent, child),
            What::InGroup { tid, group } => {
                self.groups.insert(tid, group);
            }
            What::AttachTask { tid, root: 0, path } => {
                self.groups.insert(tid, path);
            }
            What::Comm { tid, pid, comm, exec } => {
                self.pids.insert(tid, pid);
                self.comms.insert(tid, comm);
                if exec {
                    self.memory.exec(pid);
                }
            }
            _ => {}
        }
    }

    /// A new thread starts in the control group of its creator.
    fn inherits(&mut self, parent: Tid, child: Tid) {
        if let Some(&group) = self.groups.get(&parent) {
            self.groups.insert(child, group);
        }
    }

    /// The control group of an event's thread, as far as it is known.
    pub(crate) fn group(&self, e: &Event) -> NameId {
        self.groups.get(&e.tid).copied().unwrap_or(NameId::NONE)
    }

    /// The process of an event, and the number of its chain.
    pub(crate) fn chain(&mut self, e: &Event, batch: &Batch, stack: StackRef) -> (Pid, ChainId) {
        let pid = match e.pid {
            Pid::UNKNOWN => self.pids.get(&e.tid).copied().unwrap_or(Pid::UNKNOWN),
            pid => pid,
        };
        let (mut addresses, mut names) = (batch.stack(stack), batch.frame_names(stack));
        if self.innermost {
            addresses = &addresses[..addresses.len().min(1)];
            names = &names[..names.len().min(1)];
        }
        let in_kernel = stack.in_kernel().min(addresses.len());
        self.recorded.clear();
        self.recorded.extend(self.memory.version(pid));
        self.recorded.push(in_kernel as u64);
        self.recorded.extend_from_slice(addresses);
        let named = |name: &FrameName| u64::from(name.dso.0) << 32 | u64::from(name.function.0);
        self.recorded.extend(names.iter().map(named));
        if let Some(&known) = self.met.get(&self.recorded[..]) {
            return (pid, known);
        }
        self.scratch.clear();
        let memory = &mut self.memory;
        let frames = addresses.iter().enumerate().map(|(i, &address)| {
            let kernel = i < in_kernel;
            let frame = match names.get(i) {
                Some(&name) => memory.named(name, address, kernel),
                None => memory.frame(pid, address, kernel),
            };
            // The first kernel frame and the first user frame are where execution stopped, not
            // return addresses.
            Frame { returns: i != 0 && i != in_kernel, ..frame }
        });
        self.scratch.extend(frames);
        let chain = self.chains.id(&self.scratch);
        if self.met.len() > REMEMBERED.max(2 * self.chains.len()) {
            self.met.clear();
        }
        self.met.insert(self.recorded.as_slice().into(), chain);
        (pid, chain)
    }

    /// The name of an event's thread.
    pub(crate) fn comm(&self, e: &Event) -> NameId {
        match e.comm {
            NameId::NONE => self.comms.get(&e.tid).copied().unwrap_or(NameId::NONE),
            comm => comm,
        }
    }

    /// The code of a chain in a process, innermost first.
    pub(crate) fn code(&self, pid: Pid, id: ChainId) -> impl Iterator<Item = Code> {
        self.chains.get(id).iter().map(move |frame| code(self.memory.origins(), pid, frame))
    }

    /// The mapping of the kernel's own code, as far as the trace has shown it.
    pub(crate) fn kernel_text(&self, names: &Names) -> Option<Mapping> {
        kernel_text(self.memory.origins(), names)
    }

    /// The code of all chains, when everything has been read.
    pub(crate) fn finish(self) -> CodeTable {
        CodeTable { chains: self.chains, origins: self.memory.into_origins() }
    }
}

/// All chains of a trace, and the code they contain.
pub(crate) struct CodeTable {
    chains: Chains,
    origins: Vec<Origin>,
}

impl CodeTable {
    /// The code of a chain in a process, innermost first.
    pub(crate) fn chain(&self, pid: Pid, id: ChainId) -> impl DoubleEndedIterator<Item = Code> {
        self.frames(id).iter().map(move |frame| self.code(pid, frame))
    }

    /// The frames of a chain, innermost first.
    pub(crate) fn frames(&self, id: ChainId) -> &[Frame] {
        self.chains.get(id)
    }

    /// The code of a frame in a process.
    pub(crate) fn code(&self, pid: Pid, frame: &Frame) -> Code {
        code(&self.origins, pid, frame)
    }

    /// The mapping at a frame, if it is known.
    pub(crate) fn mapping(&self, frame: &Frame) -> Option<&Mapping> {
        self.origins.get(frame.origin as usize).and_then(Origin::mapping)
    }

    /// Everything that was ever mapped or named; frames refer to it by number.
    pub(crate) fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// The mapping of the kernel's own code.
    pub(crate) fn kernel_text(&self, names: &Names) -> Option<Mapping> {
        kernel_text(&self.origins, names)
    }
}

fn code(origins: &[Origin], pid: Pid, frame: &Frame) -> Code {
    let (mapping, named) = match origins.get(frame.origin as usize) {
        Some(Origin::Mapped(mapping)) => (Some(*mapping), None),
        Some(Origin::Named(name)) => (None, Some(*name)),
        None => (None, None),
    };
    Code { pid, mapping, named, address: frame.address, kernel: frame.kernel }
}

fn kernel_text(origins: &[Origin], names: &Names) -> Option<Mapping> {
    origins.iter().find_map(|origin| match origin {
        Origin::Mapped(m) if m.kernel && names.get(m.file).starts_with("[kernel") => Some(*m),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::{Cpu, EventId, Frame as Address};

    /// Numbers and lengths of these chains, whose first address is the kernel's.
    fn met(context: &mut Context, chains: &[[u64; 2]]) -> Vec<(u32, usize)> {
        let mut batch = Batch::new();
        let (pid, tid, comm) = (Pid(1), Tid(1), NameId::NONE);
        let (cpu, id, what) = (Cpu(0), EventId(0), What::Other);
        let event = Event { ts: 0, tid, pid, comm, cpu, id, what };
        let number = |chain: &[u64; 2]| {
            let [address, caller] = *chain;
            let frames = [(address, true), (caller, false)];
            let frames = frames.map(|(address, kernel)| Address { address, kernel });
            let stack = batch.push_stack(frames);
            let (_, id) = context.chain(&event, &batch, stack);
            (id.0, context.code(pid, id).count())
        };
        chains.iter().map(number).collect()
    }

    #[test]
    fn without_callers_a_chain_is_the_address_sampled() {
        let chains = [[8, 1], [8, 2], [9, 1], [8, 1]];
        let info = TraceInfo::new("trace".into(), "test");
        assert_eq!(met(&mut Context::new(&info), &chains), [(0, 2), (1, 2), (2, 2), (0, 2)]);
        let mut innermost = Context::new(&info);
        innermost.keep_innermost();
        assert_eq!(met(&mut innermost, &chains), [(0, 1), (0, 1), (1, 1), (0, 1)]);
    }
}
