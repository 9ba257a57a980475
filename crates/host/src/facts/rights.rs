//! Who may record.

use crate::host::{Host, Tried};
use crate::kernel::{Lockdown, Perf};
use crate::process::Namespace;
use crate::{Obstacle, State, WayOut, errno, ways};

/// Whether `perf_event_open` gets as far as the kernel's own checks.
pub(super) fn call(host: &Host, tried: &Tried) -> State {
    if host.kernel.perf == Perf::Absent {
        return State::Missing(no_perf());
    }
    match tried.call {
        None => State::unknown("perf_event_open(2) was not tried"),
        Some(libc::EFAULT) => State::ok("perf_event_open(2) gets through"),
        Some(error) => State::Missing(call_refused(host, error)),
    }
}

fn no_perf() -> Obstacle {
    Obstacle::stops(
        "this kernel has no perf events: there is no kernel.perf_event_paranoid",
        vec![WayOut::words(
            "boot a kernel built with CONFIG_PERF_EVENTS, as those of all usual \
                            distributions are; sandboxes with a kernel of their own have none",
        )],
    )
}

/// The call is refused before anybody looks at what it asks for.
fn call_refused(host: &Host, error: i32) -> Obstacle {
    let name = errno(error);
    if host.process.seccomp {
        let mut ways = ways::container(&host.process);
        ways.push(match ways.is_empty() {
            true => WayOut::words(
                "run it outside of the sandbox, or let its filter pass perf_event_open (of a \
                 service of systemd: SystemCallFilter=perf_event_open)",
            ),
            false => WayOut::words(format!(
                "where that is not enough, let the filter pass perf_event_open: {}",
                ways::DOCUMENT
            )),
        });
        let what = format!("a seccomp filter refuses the call perf_event_open ({name})");
        return Obstacle::stops(what, ways);
    }
    if error == libc::ENOSYS {
        return no_perf();
    }
    let what = format!(
        "perf_event_open is refused before the kernel looks at what is asked ({name}): a security \
         module, or kernel.perf_event_paranoid above 2"
    );
    Obstacle::stops(what, ways::right(&host.process))
}

/// Whether the process may record what everybody does.
pub(super) fn permission(host: &Host, _: &Tried) -> State {
    let (process, kernel) = (&host.process, &host.kernel);
    if let Some(right) = process.may_record_all() {
        return State::ok(format!("{}: what everybody does may be recorded", right.name()));
    }
    if kernel.perf.lets_everybody() {
        return State::ok("kernel.perf_event_paranoid lets everybody record everything");
    }
    let setting = match kernel.perf {
        Perf::Paranoid(level) => format!("kernel.perf_event_paranoid is {level}"),
        Perf::Absent => return State::Missing(no_perf()),
        Perf::Unknown => {
            return State::unknown(
                "neither capabilities nor kernel.perf_event_paranoid are to be \
                                   seen: is /proc mounted?",
            );
        }
    };
    let lacks = match process.users {
        Namespace::Inner => {
            "this process lives in a user namespace of its own, whose capabilities do not count"
        }
        Namespace::Initial | Namespace::Unknown => {
            "this process has neither CAP_PERFMON nor CAP_SYS_ADMIN"
        }
    };
    State::Missing(Obstacle::stops(format!("{setting}, and {lacks}"), ways::right(process)))
}

/// Whether the kernel hides itself from everybody.
pub(super) fn lockdown(host: &Host, _: &Tried) -> State {
    match host.kernel.lockdown {
        Lockdown::Allows => State::ok("kernel lockdown does not forbid tracing"),
        Lockdown::Confidential => State::Missing(Obstacle::stops(
            "kernel lockdown is at confidentiality, which forbids tracing to everybody",
            vec![WayOut::words(
                "boot with lockdown=integrity or lockdown=none; on some systems it \
                                follows from Secure Boot",
            )],
        )),
        // A kernel that is locked down does not let tracefs be read.
        Lockdown::Unknown if host.tracefs.is_ok() => {
            State::ok("tracefs can be read, so no kernel lockdown forbids it")
        }
        Lockdown::Unknown => State::unknown("/sys/kernel/security/lockdown is not to be seen"),
    }
}
