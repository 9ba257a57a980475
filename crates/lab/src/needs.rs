//! What a workload needs of a host, and whether it is there.

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
    /// Counters of the processor, which only the recorder can try.
    Counters,
    /// A second recording of the same work, under a kernel for one CPU.
    Uniprocessor,
    /// A disk: a folder that does not live in memory.
    Disk,
    /// The right to make a control group with a quota of CPU time.
    Quota,
    /// The right to say where the kernel's workers run, for as long as a run takes.
    Workers,
}

/// What stands in the way, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What is missing.
    pub what: String,
    /// How to have it.
    pub way_out: String,
}

impl Need {
    /// What is missing of it here; `None` if it is there. Whether there are counters is for the
    /// caller to say.
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
                "it shows only in a comparison with the same work under a kernel for one CPU",
                "record holdup lab run kernel-path twice, once after a boot with nosmp, then \
                 holdup diagnose --baseline ONE.data MANY.data",
            ),
            Need::Disk if !places().iter().any(|place| on_disk(place)) => lack(
                "the folders for temporary files are in memory",
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

/// The CPUs on which workers that belong to none may run.
pub(crate) const WORKERS: &str = "/sys/devices/virtual/workqueue/cpumask";

fn writable(path: &Path) -> bool {
    // Opening changes nothing.
    fs::OpenOptions::new().write(true).open(path).is_ok()
}

fn places() -> [PathBuf; 3] {
    [std::env::temp_dir(), "/var/tmp".into(), ".".into()]
}

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of linux/magic.h.
const OF_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Whether a folder is there and does not live in memory.
pub(crate) fn on_disk(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|fs| !OF_MEMORY.contains(&(fs.f_type as u64)))
}

/// The folder of control groups in which one with a quota can be made, and whether it is one of
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
