//! What the file says about the machine: the feature sections that perf fills from `/proc` and
//! `/sys` (kernel `tools/perf/util/header.c`), in the same words.
//!
//! Like in perf, a fact that the machine does not provide has no section.

mod cpus;
mod memory;

use super::bytes::Bytes;
use holdup_perfdata::format::feature;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the facts are read: `/proc` and `/sys`, or copies of them.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    pub(crate) proc: PathBuf,
    pub(crate) sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots { proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// The sections about the machine that have content, by number.
pub(crate) fn sections(roots: &Roots) -> Vec<(u32, Bytes)> {
    let cpuinfo = fs::read_to_string(roots.proc.join("cpuinfo")).unwrap_or_default();
    let cpu = roots.sys.join("devices/system/cpu");
    let node = roots.sys.join("devices/system/node");
    let kernel = |name| word(&roots.proc.join("sys/kernel").join(name));
    // Linux before 6.1 has no file for the machine of `uname -m`; Rust's names are the same for all
    // relevant architectures.
    let arch = kernel("arch").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let all = [
        (feature::HOSTNAME, kernel("hostname").map(text)),
        (feature::OSRELEASE, kernel("osrelease").map(text)),
        (feature::ARCH, Some(text(arch))),
        (feature::NRCPUS, cpus::count(&cpu)),
        (feature::CPUDESC, cpus::description(&cpuinfo).map(text)),
        (feature::CPUID, cpus::id(&cpuinfo, &cpu).map(text)),
        (feature::TOTAL_MEM, memory::total(&roots.proc)),
        (feature::CPU_TOPOLOGY, cpus::topology(&cpu)),
        (feature::NUMA_TOPOLOGY, memory::numa(&node)),
        (feature::PMU_MAPPINGS, pmus(&roots.sys)),
        (feature::CACHE, cpus::caches(&cpu)),
        (feature::MEM_TOPOLOGY, memory::blocks(&roots.sys, &node)),
    ];
    all.into_iter().filter_map(|(number, section)| Some((number, section?))).collect()
}

fn text(text: String) -> Bytes {
    let mut b = Bytes::default();
    b.string(&text);
    b
}

/// The content of a file of one line.
pub(super) fn word(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// A file that holds a number in decimal.
pub(super) fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    word(path)?.parse().ok()
}

/// The numbers in a list in the kernel's format: `0-3,5`. Empty if it is not such a list.
pub(crate) fn list(text: &str) -> Vec<u32> {
    /// More CPUs or nodes than any kernel can be built for.
    const MOST: u32 = 1 << 16;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse::<u32>().ok()?.min(MOST))
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// The numbers that follow `prefix` in the names of `folder`'s entries, ascending.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number =
        |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix(prefix)?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// The kernel's names of its event sources, and the `type` of their attrs.
fn pmus(sys: &Path) -> Option<Bytes> {
    let entries = fs::read_dir(sys.join("bus/event_source/devices")).ok()?;
    let pmu = |entry: fs::DirEntry| {
        Some((number::<u32>(&entry.path().join("type"))?, entry.file_name().into_string().ok()?))
    };
    let pmus: Vec<(u32, String)> = entries.flatten().filter_map(pmu).collect();
    let mut b = Bytes::default();
    b.count(pmus.len());
    for (number, name) in &pmus {
        b.u32(*number).string(name);
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_understood_and_nonsense_is_empty() {
        assert_eq!(list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(list("7"), [7]);
        assert!(list("").is_empty() && list("x-y").is_empty() && list("3-1").is_empty());
        assert!(list("0-4294967295").len() <= 1 << 17);
    }

    #[test]
    fn a_machine_that_tells_nothing_has_only_its_architecture() {
        let nowhere = tempfile::tempdir().unwrap();
        let roots = Roots { proc: nowhere.path().into(), sys: nowhere.path().into() };
        let numbers: Vec<u32> = sections(&roots).iter().map(|s| s.0).collect();
        assert_eq!(numbers, [feature::ARCH]);
    }
}
