//! Shared by sleeps by code and system calls by code: the places of chains, and the threads of the
//! chains.

use crate::context::CodeTable;
use crate::moments::InCode;
use crate::own::{Own, Place};
use holdup_passes::Analysis;
use holdup_symbols::{Options, Symbols};
use holdup_trace::{Nanos, Pid, Tid, TraceInfo};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Names of threads.
pub(crate) type Comms = FxHashMap<Tid, String>;

/// The names of all threads of a trace.
pub(crate) fn comms(whole: &Analysis) -> Comms {
    whole.all_threads().map(|(_, t)| (t.tid, whole.comm(t))).collect()
}

/// Finds the places of chains and caches them.
pub(crate) struct Finder<'a> {
    code: CodeTable,
    pub(crate) symbols: Symbols<'a>,
    own: Own,
    known: FxHashMap<InCode, Place>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(info: &'a TraceInfo, code: CodeTable, places: Options) -> Finder<'a> {
        let symbols = symbols(info, &code, places);
        Finder { code, symbols, own: Own::new(), known: FxHashMap::default() }
    }

    /// Where a chain leaves the program's own code; empty if there is no chain.
    pub(crate) fn place(&mut self, chain: Option<InCode>) -> Place {
        let Some((pid, id)) = chain else { return Place::default() };
        let find = || self.own.place(self.code.chain(pid, id), &mut self.symbols);
        self.known.entry((pid, id)).or_insert_with(find).clone()
    }
}

/// Names of the code of a trace that has been read.
pub(crate) fn symbols<'a>(info: &'a TraceInfo, code: &CodeTable, places: Options) -> Symbols<'a> {
    Symbols::new(info, code.kernel_text(&info.names), places)
}

/// The threads of a row, by the time that each has in it, and their processes.
#[derive(Default)]
pub(crate) struct Who {
    threads: BTreeMap<Tid, Nanos>,
    pids: BTreeSet<Pid>,
}

impl Who {
    pub(crate) fn add(&mut self, tid: Tid, chain: Option<InCode>, ns: Nanos) {
        *self.threads.entry(tid).or_default() += ns;
        self.pids.insert(chain.map_or(Pid::UNKNOWN, |(pid, _)| pid));
    }

    /// How many threads.
    pub(crate) fn threads(&self) -> u64 {
        self.threads.len() as u64
    }

    /// Name of the thread with the most time.
    pub(crate) fn comm(&self, comms: &Comms) -> String {
        longest(&self.threads).and_then(|tid| comms.get(tid)).cloned().unwrap_or_default()
    }

    /// The process, if all threads belong to one known process.
    pub(crate) fn pid(&self) -> Option<u32> {
        match (self.pids.first(), self.pids.len()) {
            (Some(&pid), 1) if pid != Pid::UNKNOWN => Some(pid.0),
            _ => None,
        }
    }
}

/// The key with the most time; among equals the first.
pub(crate) fn longest<K: Ord>(of: &BTreeMap<K, Nanos>) -> Option<&K> {
    of.iter().min_by_key(|(_, ns)| Reverse(**ns)).map(|(key, _)| key)
}
