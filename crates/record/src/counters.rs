//! Counters of the processor, read at every switch.
//!
//! On each CPU the tracepoint `sched_switch` becomes the leader of a group, whose other members
//! are the counters: each of its samples then says what they all stand at.
//!
//! A group is on the processor as a whole or not at all, the leader included. Where its counters
//! have no room, because there are few, or others have taken them (the kernel's NMI watchdog takes
//! one), switches would be missing from the recording. So the group is tried first, on all CPUs at
//! once: what has no room is left out. What others take during the recording shows in the times
//! that each sample carries.

use crate::attr::Manner;
use crate::session::{OpenError, Scope, Session};
use crate::sys::{Attr, Event, Whom, abi};
use std::io;
use std::time::Duration;

/// What is read unless somebody says otherwise: the most telling first, as room is short.
pub const USUAL: &str = "cycles:u,instructions:u,cache-misses:u,stalled-cycles-backend:u,\
                         LLC-loads:u,LLC-load-misses:u,cycles:k,instructions:k";

/// So long a group is tried: several turns of the kernel's, which takes one every 1 to 4 ms.
const TRIAL: Duration = Duration::from_millis(20);

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// As perf spells it: `cycles:u`.
    pub name: String,
    kind: u32,
    config: u64,
    user: bool,
    kernel: bool,
}

/// A name that is no counter's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: no counter of this name; there are {known}, each with :u or :k for user or kernel \
         mode only", known = NAMES.map(|n| n.0).join(", "))]
pub struct NoCounter(pub String);

/// Names of perf, with type and number of the kernel.
const NAMES: [(&str, u32, u64); 12] = {
    const HARDWARE: u32 = abi::PERF_TYPE_HARDWARE;
    const SOFTWARE: u32 = abi::PERF_TYPE_SOFTWARE;
    const CACHE: u32 = abi::PERF_TYPE_HW_CACHE;
    /// Last cache, loads; the result is in the third byte.
    const LLC_LOADS: u64 = abi::PERF_COUNT_HW_CACHE_LL as u64;
    const MISSES: u64 = (abi::PERF_COUNT_HW_CACHE_RESULT_MISS as u64) << 16;
    [
        ("cycles", HARDWARE, abi::PERF_COUNT_HW_CPU_CYCLES as u64),
        ("instructions", HARDWARE, abi::PERF_COUNT_HW_INSTRUCTIONS as u64),
        ("cache-references", HARDWARE, abi::PERF_COUNT_HW_CACHE_REFERENCES as u64),
        ("cache-misses", HARDWARE, abi::PERF_COUNT_HW_CACHE_MISSES as u64),
        ("stalled-cycles-frontend", HARDWARE, abi::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND as u64),
        ("stalled-cycles-backend", HARDWARE, abi::PERF_COUNT_HW_STALLED_CYCLES_BACKEND as u64),
        ("ref-cycles", HARDWARE, abi::PERF_COUNT_HW_REF_CPU_CYCLES as u64),
        ("LLC-loads", CACHE, LLC_LOADS),
        ("LLC-load-misses", CACHE, LLC_LOADS | MISSES),
        ("task-clock", SOFTWARE, abi::PERF_COUNT_SW_TASK_CLOCK as u64),
        ("page-faults", SOFTWARE, abi::PERF_COUNT_SW_PAGE_FAULTS as u64),
        ("context-switches", SOFTWARE, abi::PERF_COUNT_SW_CONTEXT_SWITCHES as u64),
    ]
};

impl Counter {
    /// Counters by their names, separated by commas.
    ///
    /// # Errors
    ///
    /// A name that is not known.
    pub fn list(names: &str) -> Result<Vec<Counter>, NoCounter> {
        names.split(',').map(str::trim).map(Counter::of).collect()
    }

    fn of(name: &str) -> Result<Counter, NoCounter> {
        let (base, mode) = name.split_once(':').unwrap_or((name, "uk"));
        let known = NAMES.iter().find(|n| n.0 == base);
        match (known, mode) {
            (Some(&(_, kind, config)), "u" | "k" | "uk") => {
                let has = |m| mode.contains(m);
                let name = name.to_owned();
                Ok(Counter { name, kind, config, user: has('u'), kernel: has('k') })
            }
            _ => Err(NoCounter(name.to_owned())),
        }
    }

    /// It counts as long as its leader does, and is never sampled.
    fn attr(&self, manner: &Manner) -> Attr {
        let mut attr = manner.counter(self.kind, self.config);
        attr.set_exclude_user((!self.user).into());
        attr.set_exclude_kernel((!self.kernel).into());
        attr.set_exclude_hv((!(self.user && self.kernel)).into());
        attr
    }
}

/// Why a counter is not read.
#[derive(Debug)]
pub enum Lack {
    /// The processor has none, or no driver for it is loaded.
    NotSupported,
    /// The others leave no room for it.
    NoRoom,
    /// The kernel refuses it.
    Refused(io::Error),
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lack::NotSupported => f.write_str("not supported by this machine's PMU"),
            Lack::NoRoom => f.write_str("no room for it on the PMU beside the others"),
            Lack::Refused(why) => write!(f, "{why}"),
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Counted {
    /// Names of the counters that are read.
    pub read: Vec<String>,
    /// Those that are not.
    pub lacking: Vec<(String, Lack)>,
}

/// Have `wanted` read at every switch that `session` records on whole CPUs. Must come before its
/// start.
///
/// # Errors
///
/// The kernel refuses a group that it took when it was tried.
pub fn join(
    session: &mut Session,
    scope: &Scope,
    wanted: Vec<Counter>,
) -> Result<Counted, OpenError> {
    let mut counted = Counted::default();
    let cpus: Vec<u32> = session.cpus.iter().map(|on| on.cpu).collect();
    let mut fitting = Vec::new();
    for counter in wanted {
        match alone(session.manner(), &counter, &cpus) {
            Ok(()) => fitting.push(counter),
            Err(lack) => counted.lacking.push((counter.name, lack)),
        }
    }
    while !fitting.is_empty() && !fits(session.manner(), &fitting, &cpus) {
        counted.lacking.extend(fitting.pop().map(|c| (c.name, Lack::NoRoom)));
    }
    if !fitting.is_empty() {
        let attrs = fitting.iter().map(|c| (c.name.clone(), c.attr(session.manner())));
        session.lead_by_switches(scope, attrs.collect())?;
    }
    counted.read = fitting.into_iter().map(|c| c.name).collect();
    Ok(counted)
}

/// Whether there is such a counter.
fn alone(manner: &Manner, counter: &Counter, cpus: &[u32]) -> Result<(), Lack> {
    let attr = counter.attr(manner);
    let refused = cpus.iter().find_map(|&cpu| Event::open(&attr, Whom::Cpu(cpu), None).err());
    match refused {
        None => Ok(()),
        Some(e) => Err(match e.raw_os_error() {
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL | libc::ENXIO) => {
                Lack::NotSupported
            }
            _ => Lack::Refused(e),
        }),
    }
}

/// Whether a group of these runs all the time on every CPU.
fn fits(manner: &Manner, counters: &[Counter], cpus: &[u32]) -> bool {
    let mut leader = manner.counter(abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_DUMMY.into());
    leader.set_disabled(1);
    leader.read_format |= u64::from(abi::PERF_FORMAT_TOTAL_TIME_ENABLED)
        | u64::from(abi::PERF_FORMAT_TOTAL_TIME_RUNNING);
    let mut groups = Vec::new();
    for &cpu in cpus {
        let Ok(leader) = Event::open(&leader, Whom::Cpu(cpu), None) else { return false };
        let open = |c: &Counter| Event::open(&c.attr(manner), Whom::Cpu(cpu), Some(&leader));
        let Ok(members) = counters.iter().map(open).collect::<io::Result<Vec<Event>>>() else {
            return false;
        };
        groups.push((leader, members));
    }
    if groups.iter().any(|(leader, _)| leader.enable().is_err()) {
        return false;
    }
    std::thread::sleep(TRIAL);
    groups.iter().all(|(leader, _)| {
        let _ = leader.disable();
        // Value, time enabled, time running, id.
        let mut words = [0; 4];
        leader.read(&mut words).is_ok() && words[1] > 0 && words[1] == words[2]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_perfs_and_others_are_refused_with_a_list() {
        let usual = Counter::list(USUAL).unwrap();
        assert_eq!(usual[0].name, "cycles:u");
        assert!(usual[0].user && !usual[0].kernel);
        let both = &Counter::list("task-clock").unwrap()[0];
        assert!(both.user && both.kernel);
        for wrong in ["cycle", "cycles:x", "", "cycles:"] {
            let why = Counter::list(wrong).unwrap_err().to_string();
            assert!(why.contains("LLC-load-misses"), "{why}");
        }
    }

    #[test]
    fn numbers_are_those_by_which_readers_name_them() {
        for (name, kind, config) in NAMES {
            let manner = Manner { stacks: false, backward: false, inherit: false, wake_after: 1 };
            let attr = Counter::of(name).unwrap().attr(&manner);
            assert_eq!((attr.type_, attr.config, attr.sample_period), (kind, config, 0));
        }
        let misses = &Counter::list("LLC-load-misses").unwrap()[0];
        assert_eq!(misses.config, 0x1_00_02);
    }
}
