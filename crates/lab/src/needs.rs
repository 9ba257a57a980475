//! What a workload needs of a host, and whether the host has it.

use std::fs;
use std::path::{Path, PathBuf};

/// The CPUs that this process may use.
pub fn cpus() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

/// Something that not every host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Two CPUs.
    Cpus,
    /// Counters of the processor, which only the recorder can test.
    Counters,
    /// A second recording of the same work, under a kernel for one CPU.
    Uniprocessor,
    /// A disk: a folder that is not in memory.
    Disk,
    /// Permission to create a control group with a quota of CPU time.
    Quota,
    /// Permission to set the CPUs of the kernel's workers during a run.
    Workers,
}

/// What is missing, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What is missing.
    pub what: String,
    /// How to get it.
    pub way_out: String,
}

impl Need {
    /// What this host lacks for it; `None` if nothing. The caller knows whether there are counters.
    pub fn lack(self, counters: Option<&Lack>) -> Option<Lack> {
        let lack = |what: &str, way_out: &str| {
            Some(Lack { what: what.to_owned(), way_out: way_out.to_owned() })
        };
        match self {
            Need::Cpus if cpus() < 2 => lack(
                "this process may use only one CPU, so nothing can wait for work on another CPU",
                "give the machine a second CPU, or widen the affinity (taskset -c 0-1)",
            ),
            Need::Counters => counters.cloned(),
            Need::Uniprocessor => lack(
                "this bottleneck shows only in a comparison with the same work under a \
                 uniprocessor kernel",
                "record holdup lab run kernel-path twice, once after a boot with nosmp, then \
                 holdup diagnose --baseline ONE.data MANY.data",
            ),
            Need::Disk if !places().iter().any(|place| on_disk(place)) => lack(
                "the folders for temporary files are in memory, not on a disk",
                "set TMPDIR to a folder on a disk",
            ),
            Need::Quota if groups().is_none() => lack(
                "no control group with a quota can be made here",
                "run it as root, where the cpu controller is mounted and writable",
            ),
            Need::Workers if !writable(Path::new(WORKERS)) => lack(
                "the CPUs that the kernel's workers may use cannot be set here",
                "run it as root, outside of a container, on a kernel with \
                 /sys/devices/virtual/workqueue/cpumask",
            ),
            _ => None,
        }
    }
}

/// File with the CPUs on which unbound workers may run.
pub(crate) const WORKERS: &str = "/sys/devices/virtual/workqueue/cpumask";

fn writable(path: &Path) -> bool {
    // Opening for writing tests the permission without changing anything.
    fs::OpenOptions::new().write(true).open(path).is_ok()
}

fn places() -> [PathBuf; 3] {
    [std::env::temp_dir(), "/var/tmp".into(), ".".into()]
}

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of linux/magic.h.
const OF_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Whether a folder exists and is not in memory.
pub(crate) fn on_disk(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|fs| !OF_MEMORY.contains(&(fs.f_type as u64)))
}

/// The control-group folder in which a group with a quota can be created, and whether it is of
/// version 2.
pub(crate) fn groups() -> Option<(PathBuf, bool)> {
    let own = |path: PathBuf, second| {
        let probe = path.join(format!("holdup-lab-probe-{}", std::process::id()));
        fs::create_dir(&probe).ok()?;
        let file = if second { "cpu.max" } else { "cpu.cfs_quota_us" };
        let there = probe.join(file).exists();
        let _ = fs::remove_dir(&probe);
        there.then_some((path, second))
    };
    ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        .into_iter()
        .find_map(|path| own(path.into(), false))
        .or_else(|| own("/sys/fs/cgroup".into(), true))
}
