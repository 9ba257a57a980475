//! What the machine and its kernel leave out of any recording.

use crate::host::{Host, Tried};
use crate::process::{Namespace, Surroundings};
use crate::{Obstacle, State, WayOut, errno, ways};

/// Whether the events of idle tasks arrive from every CPU.
pub(super) fn idle_events(_: &Host, tried: &Tried) -> State {
    let Some(seen) = tried.idle.as_ref().filter(|seen| !seen.is_empty()) else {
        return State::unknown("this was not tested, because nothing can be recorded");
    };
    let mute: Vec<String> = seen
        .iter()
        .filter(|idle| idle.is_mute())
        .map(|idle| {
            format!(
                "on CPU {}, {} switches to the idle task were recorded, and {} switches away from \
                 it",
                idle.cpu.0, idle.to, idle.from
            )
        })
        .collect();
    if !mute.is_empty() {
        let costs = "the time at which such a CPU wakes up is inferred from later events, so run \
                     times of threads on this CPU are less exact; interrupts that arrive while it \
                     is idle are not seen";
        let ways = vec![WayOut::words(
            "only another kernel is known to help: some kernels, mostly in virtual machines, lose \
             these events, whatever program records",
        )];
        return State::Limited(Obstacle::costs(mute.join("; "), costs, ways));
    }
    match seen.iter().filter(|idle| !idle.tells()).count() {
        0 => State::ok("the events of idle tasks of every CPU are recorded"),
        busy => State::unknown(format!(
            "{busy} of {} CPUs were hardly ever idle during the test; repeat the test when they \
             are idle",
            seen.len()
        )),
    }
}

/// Whether all CPUs are online.
pub(super) fn cpus(host: &Host, _: &Tried) -> State {
    let Some(online) = &host.kernel.online else {
        return State::unknown("/sys/devices/system/cpu/online cannot be read");
    };
    let present = host.kernel.present.as_ref().unwrap_or(online);
    let off: Vec<u16> = present.iter().filter(|c| !online.contains(c)).map(|c| c.0).collect();
    let Some(first) = off.first() else { return State::ok(format!("{} online", online.len())) };
    let list = off.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    State::Limited(Obstacle::costs(
        format!("{} of {} CPUs are online; offline: {list}", online.len(), present.len()),
        "no work runs on offline CPUs, and a CPU that comes online during a recording is not \
         recorded",
        vec![WayOut::commands(
            "switch them on, unless they are offline on purpose",
            &[&format!("echo 1 | sudo tee /sys/devices/system/cpu/cpu{first}/online")],
        )],
    ))
}

/// Whether the CPUs' hardware counters work.
pub(super) fn counters(_: &Host, tried: &Tried) -> State {
    let costs = "work cannot be distinguished from waiting for memory: the rule hardware-bandwidth \
                 then needs figures from other sources (--counters, --baseline)";
    match tried.counters {
        None => State::unknown("not tried"),
        Some(Ok(())) => State::ok("the CPU counts cycles and instructions"),
        Some(Err(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV)) => {
            State::Missing(Obstacle::costs(
                "this machine offers no hardware counters (PMU)",
                costs,
                vec![WayOut::words(
                    "in a virtual machine: configure a virtual PMU (libvirt: <pmu state='on'/>), \
                                    or record on real hardware",
                )],
            ))
        }
        Some(Err(error)) => State::Missing(Obstacle::costs(
            format!("hardware counters cannot be opened ({})", errno(error)),
            costs,
            vec![WayOut::words("the right to record includes the right to use counters")],
        )),
    }
}

/// Whether all threads have a number in the process's PID namespace.
pub(super) fn threads(host: &Host, _: &Tried) -> State {
    match host.process.pids {
        Namespace::Initial => {
            State::ok("this process sees the number and the name of every thread of the host")
        }
        Namespace::Unknown => State::unknown("/proc/self/ns/pid cannot be read"),
        Namespace::Inner => {
            let mut ways = ways::container(&host.process);
            if ways.is_empty() || host.process.surroundings == Surroundings::Container {
                ways.push(WayOut::words("run holdup in the PID namespace of the host"));
            }
            State::Limited(Obstacle::costs(
                "this process runs in its own PID namespace, in which outside threads have no \
                 number: the kernel records them as thread 0",
                "threads outside the container are identified only in events of switches, wake-ups \
                 and exits; other events of these threads look like events of the idle task, and \
                 -p accepts only threads inside the container",
                ways,
            ))
        }
    }
}

/// Whether functions and locks of the kernel can be named.
pub(super) fn symbols(host: &Host, _: &Tried) -> State {
    match host.kernel.symbols {
        None => State::unknown("/proc/kallsyms cannot be read"),
        Some(true) => State::ok("the kernel shows the addresses of its functions"),
        Some(false) => State::Limited(Obstacle::costs(
            "the kernel hides the addresses of its functions (/proc/kallsyms holds zeros)",
            "kernel locks, and the functions that wait for them, are shown as addresses",
            match ways::container(&host.process) {
                ways if ways.is_empty() => vec![
                    ways::as_root(&host.process),
                    WayOut::commands(
                        "or show them to everybody until the next boot",
                        &[
                            "sudo sysctl kernel.kptr_restrict=0",
                            "sudo sysctl kernel.perf_event_paranoid=1",
                        ],
                    ),
                ],
                ways => ways,
            },
        )),
    }
}

/// Whether threads can be chosen by control group.
pub(super) fn cgroups(host: &Host, _: &Tried) -> State {
    if host.kernel.cgroups {
        return State::ok("--cgroup can choose threads by control group");
    }
    let mount = "sudo mount -t cgroup2 none /sys/fs/cgroup";
    State::Limited(Obstacle::costs(
        "no control groups are visible: neither cgroup2 nor the perf_event controller is mounted",
        "--cgroup cannot be used; recordings without it work",
        match ways::container(&host.process) {
            ways if ways.is_empty() => vec![WayOut::commands("mount them", &[mount])],
            ways => ways,
        },
    ))
}

/// Whether all CPUs have the same clock.
pub(super) fn clock(host: &Host, _: &Tried) -> State {
    let Some(clock) = &host.kernel.clock else {
        return State::unknown("the clock source cannot be read");
    };
    // The kernel's fallbacks after it has marked the TSC as unstable.
    if !matches!(clock.as_str(), "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit") {
        return State::ok(clock.clone());
    }
    State::Limited(Obstacle::costs(
        format!("the clock source is {clock}: the kernel does not trust the CPUs' own clocks"),
        "the times of different CPUs may differ by microseconds and more, and programs that read \
         the time often are slow",
        vec![WayOut::commands("see why", &["sudo dmesg | grep -i -e tsc -e clocksource"])],
    ))
}
