//! What the kernel and the machine are set to, as far as a recording depends on it.

use crate::Root;
use holdup_trace::Cpu;

/// The settings, as `/proc/sys` and `/sys` show them.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Whether it has perf events at all, and what whom is allowed.
    pub perf: Perf,
    /// Bytes of buffers that a user may have for each CPU, in addition to locked memory.
    pub buffer_bytes: Option<u64>,
    /// CPUs that run.
    pub online: Option<Vec<Cpu>>,
    /// CPUs that are plugged in.
    pub present: Option<Vec<Cpu>>,
    /// What it is locked down to.
    pub lockdown: Lockdown,
    /// What it takes the time from.
    pub clock: Option<String>,
    /// Whether it hands out the addresses of its functions to this process.
    pub symbols: Option<bool>,
    /// Whether threads can be chosen by control group.
    pub cgroups: bool,
}

/// `kernel.perf_event_paranoid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perf {
    /// From -1 (everybody records everything) to 2, on some distributions 3 or 4 (nobody without
    /// the right records anything).
    Paranoid(i64),
    /// There is no such setting: the kernel was built without perf events.
    Absent,
    /// It cannot be read.
    Unknown,
}

impl Perf {
    /// Whether it lets everybody record what everybody does. Raw tracepoints need -1
    /// (`perf_paranoid_tracepoint_raw` of `include/linux/perf_event.h`).
    pub fn lets_everybody(self) -> bool {
        matches!(self, Perf::Paranoid(..0))
    }
}

/// `/sys/kernel/security/lockdown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockdown {
    /// It is off, or protects the kernel from changes only.
    Allows,
    /// The kernel hides what it does from everybody: tracefs and perf are out of reach.
    Confidential,
    /// securityfs is not mounted, or the kernel has no lockdown.
    Unknown,
}

impl Kernel {
    /// Look.
    pub fn look(root: &Root) -> Kernel {
        let cpus = |name: &str| {
            let text = root.text(&format!("/sys/devices/system/cpu/{name}")).ok()?;
            Cpu::parse_list(&text)
        };
        let kib = root.number("/proc/sys/kernel/perf_event_mlock_kb");
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Kernel {
            perf: perf(root),
            buffer_bytes: kib.and_then(|n| u64::try_from(n).ok()?.checked_mul(1024)),
            online: cpus("online"),
            present: cpus("present"),
            lockdown: lockdown(root),
            clock: root.text(clock).ok().filter(|name| !name.is_empty()),
            symbols: symbols(root),
            cgroups: cgroups(root),
        }
    }
}

fn perf(root: &Root) -> Perf {
    match root.number("/proc/sys/kernel/perf_event_paranoid") {
        Some(level) => Perf::Paranoid(level),
        // The folder is there, the file is not.
        None if root.exists("/proc/sys/kernel") => Perf::Absent,
        None => Perf::Unknown,
    }
}

/// `none [integrity] confidentiality`: what holds stands in brackets.
fn lockdown(root: &Root) -> Lockdown {
    match root.text("/sys/kernel/security/lockdown") {
        Ok(text) if text.contains("[confidentiality]") => Lockdown::Confidential,
        Ok(text) if text.contains('[') => Lockdown::Allows,
        _ => Lockdown::Unknown,
    }
}

/// Where addresses are hidden every one is 0 (`kallsyms_show_value` of `kernel/ksyms_common.c`).
/// The first symbol of x86 is at 0 rightly, so that one line does not tell.
fn symbols(root: &Root) -> Option<bool> {
    let text = root.text("/proc/kallsyms").ok()?;
    let mut addresses = text.lines().filter_map(|line| line.split(' ').next()).peekable();
    addresses.peek()?;
    Some(addresses.any(|address| address.bytes().any(|digit| digit != b'0')))
}

/// The perf controller is part of every cgroup2, unless it was mounted as a hierarchy of its own.
fn cgroups(root: &Root) -> bool {
    let mounts = root.text("/proc/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(2);
        match (words.next(), words.next()) {
            (Some("cgroup2"), _) => true,
            (Some("cgroup"), Some(options)) => options.split(',').any(|o| o == "perf_event"),
            _ => false,
        }
    })
}
