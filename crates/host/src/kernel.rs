//! The settings of the kernel and the machine that matter for a recording.

use crate::Root;
use holdup_trace::Cpu;

/// The settings, as `/proc/sys` and `/sys` show them.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Whether the kernel has perf events at all, and which users may use them.
    pub perf: Perf,
    /// Bytes of buffers that a user may have for each CPU, in addition to locked memory.
    pub buffer_bytes: Option<u64>,
    /// CPUs that are online.
    pub online: Option<Vec<Cpu>>,
    /// CPUs that are present.
    pub present: Option<Vec<Cpu>>,
    /// The lockdown mode.
    pub lockdown: Lockdown,
    /// The clock source.
    pub clock: Option<String>,
    /// Whether this process sees the addresses of kernel functions.
    pub symbols: Option<bool>,
    /// Whether threads can be chosen by control group.
    pub cgroups: bool,
}

/// `kernel.perf_event_paranoid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perf {
    /// From -1 (every user records everything) to 2, on some distributions 3 or 4 (no user without
    /// the right records anything).
    Paranoid(i64),
    /// There is no such setting: the kernel was built without perf events.
    Absent,
    /// It cannot be read.
    Unknown,
}

impl Perf {
    /// Whether every user may record all processes. Raw tracepoints need -1
    /// (`perf_paranoid_tracepoint_raw` of `include/linux/perf_event.h`).
    pub fn lets_everybody(self) -> bool {
        matches!(self, Perf::Paranoid(..0))
    }
}

/// `/sys/kernel/security/lockdown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lockdown {
    /// Off, or only protecting the kernel from changes.
    Allows,
    /// The kernel hides its data from every user: tracefs and perf are not available.
    Confidential,
    /// securityfs is not mounted, or the kernel has no lockdown.
    Unknown,
}

impl Kernel {
    /// Reads the settings.
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
        // The folder exists, but not the file.
        None if root.exists("/proc/sys/kernel") => Perf::Absent,
        None => Perf::Unknown,
    }
}

/// `none [integrity] confidentiality`: the mode in force is in brackets.
fn lockdown(root: &Root) -> Lockdown {
    match root.text("/sys/kernel/security/lockdown") {
        Ok(text) if text.contains("[confidentiality]") => Lockdown::Confidential,
        Ok(text) if text.contains('[') => Lockdown::Allows,
        _ => Lockdown::Unknown,
    }
}

/// Hidden addresses are all 0 (`kallsyms_show_value` of `kernel/ksyms_common.c`). On x86 the first
/// symbol really is at 0, so one line is not enough.
fn symbols(root: &Root) -> Option<bool> {
    let text = root.text("/proc/kallsyms").ok()?;
    let mut addresses = text.lines().filter_map(|line| line.split(' ').next()).peekable();
    addresses.peek()?;
    Some(addresses.any(|address| address.bytes().any(|digit| digit != b'0')))
}

/// The perf controller is part of every cgroup2, unless it was mounted as a separate hierarchy.
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
