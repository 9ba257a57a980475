//! What part of a trace to look at, and which rows to show of it.

use crate::limits::Thresholds;
use crate::locks::LockKind;
use crate::source::Source;
use crate::spins::FindsSpins;
use crate::variables::NamesVariables;
use holdup_trace::{Cpu, Groups, Nanos, SymbolTable, TraceInfo, fits};
use std::sync::Arc;

/// How much to keep about waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Sums by object; memory grows with threads and objects.
    #[default]
    Sums,
    /// Sums by waiting thread, waking thread and object, for graphs and tables by thread.
    Edges,
    /// Every time asleep, 24 bytes each, for the critical path.
    Intervals,
    /// Every step of every thread, 32 bytes each, for a replay.
    Steps,
}

/// The events that an analysis is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only events on these CPUs; `None` for all.
    pub cpus: Option<Vec<Cpu>>,
    /// Only from this time of the trace's clock on. Earlier events still determine what threads and
    /// CPUs were doing at this time.
    pub from: Option<Nanos>,
    /// Only up to this time.
    pub to: Option<Nanos>,
}

impl Selection {
    /// The first and the last time of what is chosen.
    pub fn span(&self, info: &TraceInfo) -> (Nanos, Nanos) {
        let (first, last) = info.span.unwrap_or((0, 0));
        let start = self.from.unwrap_or(0).max(first);
        (start, self.to.unwrap_or(Nanos::MAX).min(last).max(start))
    }

    /// This selection, limited to the part that was cut out of a longer trace.
    #[must_use]
    pub fn within(mut self, info: &TraceInfo) -> Selection {
        let Some(cut) = &info.cut else { return self };
        if let Some((from, to)) = cut.time {
            self.from = Some(self.from.map_or(from, |t| t.max(from)));
            self.to = Some(self.to.map_or(to, |t| t.min(to)));
        }
        if let Some(cpus) = &cut.cpus {
            self.cpus = Some(match self.cpus {
                Some(chosen) => chosen.into_iter().filter(|c| cpus.contains(c)).collect(),
                None => cpus.clone(),
            });
        }
        self
    }
}

/// The rows that tables show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only rows of these processes; empty for all.
    pub pids: Vec<u32>,
    /// Only rows of these threads; empty for all.
    pub tids: Vec<u32>,
    /// Only rows of threads whose names fit one of these patterns ([`holdup_trace::fits`]); empty
    /// for all.
    pub comms: Vec<String>,
    /// Only rows of threads in control groups that fit one of these patterns
    /// ([`Groups::fits_any`]); empty for all.
    pub cgroups: Vec<String>,
    /// Only rows of kernel locks of these kinds; empty for all.
    pub lock_kinds: Vec<LockKind>,
    /// Only rows of kernel locks at these addresses or with the names in `lock_names`; both empty
    /// for all.
    pub lock_addresses: Vec<u64>,
    /// See `lock_addresses`.
    pub lock_names: Vec<String>,
}

impl Filter {
    /// Whether the filter chooses threads.
    pub fn chooses_threads(&self) -> bool {
        !(self.pids.is_empty()
            && self.tids.is_empty()
            && self.comms.is_empty()
            && self.cgroups.is_empty())
    }

    /// Whether the filter accepts threads in the control group `path`, which is empty for threads
    /// whose group is not known.
    pub fn wants_group(&self, path: &str, groups: &Groups) -> bool {
        self.cgroups.is_empty() || groups.fits_any(&self.cgroups, path)
    }

    /// Whether it accepts a thread of this process, number and name, apart from control groups.
    pub fn wants(&self, pid: u32, tid: u32, comm: &str) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && (self.tids.is_empty() || self.tids.contains(&tid))
            && (self.comms.is_empty() || self.comms.iter().any(|c| fits(c, comm)))
    }
}

/// How to analyse a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Which events.
    pub selection: Selection,
    /// Which rows.
    pub filter: Filter,
    /// Decoder threads; 0 for as many as there are spare cores.
    pub workers: usize,
    /// The threads that the user chose as the workload; all others are background. Every row stays.
    /// Without a choice the trace decides.
    pub work: Filter,
    /// How much to keep about waits.
    pub detail: Detail,
    /// The limits in force.
    pub limits: Thresholds,
    /// Symbols of the recorded kernel, in place of those the file carries.
    pub symbols: Option<Arc<SymbolTable>>,
    /// The source of names of variables that threads wait on; without a source, tables show
    /// addresses.
    pub variables: Option<Source<dyn NamesVariables>>,
    /// Who tells where sampled code spins, if the recording does not.
    pub spins: Option<Source<dyn FindsSpins>>,
}

impl From<Selection> for Options {
    /// All rows of these events.
    fn from(selection: Selection) -> Options {
        Options { selection, ..Options::default() }
    }
}

impl From<Filter> for Options {
    /// These rows of all events.
    fn from(filter: Filter) -> Options {
        Options { filter, ..Options::default() }
    }
}
