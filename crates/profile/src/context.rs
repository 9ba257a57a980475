//! What must be known of a trace to say which code an address is: mappings, processes, names.

use crate::chains::{ChainId, Chains, Frame};
use crate::memory::{Memory, Origin};
use holdup_symbols::Code;
use holdup_trace::{Batch, Event, Mapping, NameId, Names, Pid, StackRef, Tid, TraceInfo, What};
use rustc_hash::FxHashMap;

/// What is known up to an event.
pub(crate) struct Context {
    memory: Memory,
    chains: Chains,
    comms: FxHashMap<Tid, NameId>,
    pids: FxHashMap<Tid, Pid>,
    scratch: Vec<Frame>,
}

impl Context {
    pub(crate) fn new(info: &TraceInfo) -> Context {
        Context {
            memory: Memory::default(),
            chains: Chains::default(),
            comms: info.tasks.iter().map(|t| (t.tid, t.comm)).collect(),
            pids: info.tasks.iter().map(|t| (t.tid, t.pid)).collect(),
            scratch: Vec::new(),
        }
    }

    /// Learn from an event.
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

    /// The process of an event, and the number of its chain.
    pub(crate) fn chain(&mut self, e: &Event, batch: &Batch, stack: StackRef) -> (Pid, ChainId) {
        let pid = match e.pid {
            Pid::UNKNOWN => self.pids.get(&e.tid).copied().unwrap_or(Pid::UNKNOWN),
            pid => pid,
        };
        self.scratch.clear();
        let names = batch.frame_names(stack);
        let memory = &mut self.memory;
        let frames = batch.stack(stack).iter().enumerate().map(|(i, &address)| {
            let kernel = i < stack.in_kernel();
            match names.get(i) {
                Some(&name) => memory.told(name, address, kernel),
                None => memory.frame(pid, address, kernel),
            }
        });
        self.scratch.extend(frames);
        (pid, self.chains.id(&self.scratch))
    }

    /// The name of an event's thread.
    pub(crate) fn comm(&self, e: &Event) -> NameId {
        match e.comm {
            NameId::NONE => self.comms.get(&e.tid).copied().unwrap_or(NameId::NONE),
            comm => comm,
        }
    }

    /// What chains mean, when all have been read.
    pub(crate) fn finish(self) -> CodeTable {
        CodeTable { chains: self.chains, origins: self.memory.into_origins() }
    }
}

/// All chains of a trace, and what they run through.
pub(crate) struct CodeTable {
    chains: Chains,
    origins: Vec<Origin>,
}

impl CodeTable {
    /// The code of a chain in a process, innermost first.
    pub(crate) fn chain(&self, pid: Pid, id: ChainId) -> impl DoubleEndedIterator<Item = Code> {
        self.chains.get(id).iter().map(move |f| {
            let (mapping, told) = match self.origins.get(f.origin as usize) {
                Some(Origin::Mapped(mapping)) => (Some(*mapping), None),
                Some(Origin::Told(name)) => (None, Some(*name)),
                None => (None, None),
            };
            Code { pid, mapping, told, address: f.address, kernel: f.kernel }
        })
    }

    /// The mapping of the kernel's own code.
    pub(crate) fn kernel_text(&self, names: &Names) -> Option<Mapping> {
        self.origins.iter().find_map(|origin| match origin {
            Origin::Mapped(m) if m.kernel && names.get(m.file).starts_with("[kernel") => Some(*m),
            _ => None,
        })
    }
}
