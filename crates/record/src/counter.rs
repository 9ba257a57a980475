//! Counters by perf's names.

use crate::attr::Manner;
use crate::pmu::{self, PmuEvent};
use crate::session::Led;
use crate::sys::{Attr, abi};
use std::path::Path;

/// The default counters: the most useful first, because hardware counters are few.
pub const USUAL: &str = "cycles:u,instructions:u,cache-misses:u,stalled-cycles-backend:u,\
                         LLC-loads:u,LLC-load-misses:u,cycles:k,instructions:k";

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name in perf: `cycles:u`.
    pub name: String,
    kind: u32,
    config: [u64; 3],
    user: bool,
    kernel: bool,
    /// The CPUs on which it can be opened; `None` for all.
    cpus: Option<Vec<u32>>,
}

/// A name that is not a counter's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: there is no counter of this name; the counters are {known}, each also with :u or :k \
         for user or kernel mode only, and PMU/EVENT/ for the events below {devices}",
        known = NAMES.map(|n| n.0).join(", "), devices = pmu::DEVICES)]
pub struct NoCounter(pub String);

/// perf's names, with the kernel's type and number.
const NAMES: [(&str, u32, u64); 12] = {
    const HARDWARE: u32 = abi::PERF_TYPE_HARDWARE;
    const SOFTWARE: u32 = abi::PERF_TYPE_SOFTWARE;
    const CACHE: u32 = abi::PERF_TYPE_HW_CACHE;
    /// Last-level cache, loads; the result is in the third byte.
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
    /// Parses names of counters, separated by commas.
    ///
    /// # Errors
    ///
    /// If a name is not known.
    pub fn list(names: &str) -> Result<Vec<Counter>, NoCounter> {
        let mut found = Vec::new();
        for name in names.split(',').map(str::trim) {
            found.extend(Counter::named(name, Path::new(pmu::DEVICES))?);
        }
        Ok(found)
    }

    /// The counters of memory controllers, if the machine has them.
    pub fn memory() -> Vec<Counter> {
        let all = |event| Counter::of_pmu(event, "uk", "");
        pmu::memory(Path::new(pmu::DEVICES)).into_iter().map(all).collect()
    }

    /// One name means several counters if a machine has several PMUs of a kind.
    fn named(name: &str, devices: &Path) -> Result<Vec<Counter>, NoCounter> {
        let unknown = || NoCounter(name.to_owned());
        let of_pmu =
            name.split_once('/').and_then(|(pmu, rest)| Some((pmu, rest.split_once('/')?)));
        let (counters, mode) = match of_pmu {
            Some((pmu, (event, mode))) => {
                let given = mode.trim_start_matches(':');
                let mode = if given.is_empty() { "uk" } else { given };
                let found = pmu::find(devices, pmu, event).into_iter();
                (found.map(|event| Counter::of_pmu(event, mode, given)).collect::<Vec<_>>(), mode)
            }
            None => {
                let (base, mode) = name.split_once(':').unwrap_or((name, "uk"));
                let known = NAMES.iter().find(|n| n.0 == base).ok_or_else(unknown)?;
                let &(_, kind, config) = known;
                let (name, config) = (name.to_owned(), [config, 0, 0]);
                let (user, kernel) = modes(mode);
                (vec![Counter { name, kind, config, user, kernel, cpus: None }], mode)
            }
        };
        match mode {
            "u" | "k" | "uk" if !counters.is_empty() => Ok(counters),
            _ => Err(unknown()),
        }
    }

    fn of_pmu(event: PmuEvent, mode: &str, given: &str) -> Counter {
        let PmuEvent { name, kind, config, cpus } = event;
        let (user, kernel) = modes(mode);
        Counter { name: name + given, kind, config, user, kernel, cpus }
    }

    /// Whether it counts for a whole socket, on one of its CPUs.
    pub(crate) fn is_of_a_socket(&self) -> bool {
        self.cpus.is_some()
    }

    /// Whether one group may hold both: a group belongs to one PMU, but may also contain the
    /// kernel's software events.
    pub(crate) fn may_join(&self, other: &Counter) -> bool {
        let own = |c: &Counter| c.kind >= abi::PERF_TYPE_MAX;
        self.cpus == other.cpus && (self.kind == other.kind || !own(self) && !own(other))
    }

    /// It counts as long as its leader does, and is never sampled.
    pub(crate) fn attr(&self, manner: &Manner) -> Attr {
        let mut attr = manner.counter(self.kind, self.config[0]);
        (attr.config1, attr.config2) = (self.config[1], self.config[2]);
        attr.set_exclude_user((!self.user).into());
        attr.set_exclude_kernel((!self.kernel).into());
        attr.set_exclude_hv((!(self.user && self.kernel)).into());
        attr
    }

    /// As the member of a group.
    pub(crate) fn led(&self, manner: &Manner) -> Led {
        Led { name: self.name.clone(), attr: self.attr(manner), cpus: self.cpus.clone() }
    }

    /// Whether it can be opened on this CPU.
    pub(crate) fn is_on(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}

/// Whether user mode is counted, and whether the kernel is.
fn modes(mode: &str) -> (bool, bool) {
    (mode.contains('u'), mode.contains('k'))
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
        for wrong in ["cycle", "cycles:x", "", "cycles:", "/", "//", "cpu/", "nopmu/cycles/"] {
            let why = Counter::list(wrong).unwrap_err().to_string();
            assert!(why.contains("LLC-load-misses"), "{why}");
        }
    }

    #[test]
    fn numbers_are_those_by_which_readers_name_them() {
        for (name, kind, config) in NAMES {
            let manner = Manner {
                stacks: false,
                calls: false,
                groups: false,
                maps: false,
                build_ids: false,
                backward: false,
                inherit: false,
                wake_after: 1,
            };
            let attr = Counter::list(name).unwrap()[0].attr(&manner);
            assert_eq!((attr.type_, attr.config, attr.sample_period), (kind, config, 0));
        }
        let misses = &Counter::list("LLC-load-misses").unwrap()[0];
        assert_eq!(misses.config, [0x1_00_02, 0, 0]);
    }

    #[test]
    fn counters_of_a_pmu_keep_its_name_and_its_own_groups() {
        let folder = tempfile::tempdir().unwrap();
        for (pmu, kind) in [("box_0", "30\n"), ("box_1", "31\n")] {
            let pmu = folder.path().join(pmu);
            std::fs::create_dir_all(pmu.join("events")).unwrap();
            std::fs::write(pmu.join("type"), kind).unwrap();
            std::fs::write(pmu.join("events/things"), "config=0x7\n").unwrap();
        }
        let found = Counter::named("box/things/u", folder.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["box_0/things/u", "box_1/things/u"]);
        assert_eq!((found[1].kind, found[1].config), (31, [7, 0, 0]));
        assert!(found[0].user && !found[0].kernel);
        let clock = &Counter::list("task-clock").unwrap()[0];
        let cycles = &Counter::list("cycles:u").unwrap()[0];
        assert!(found[0].may_join(&found[0]) && !found[0].may_join(&found[1]));
        assert!(cycles.may_join(clock) && !cycles.may_join(&found[0]));
        assert!(Counter::named("box/things/x", folder.path()).is_err());
    }
}
