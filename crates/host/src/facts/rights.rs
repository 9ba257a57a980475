//! Whether the process has the right to record.

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
        None => State::unknown("perf_event_open(2) was not tested"),
        Some(libc::EFAULT) => State::ok("perf_event_open(2) reaches the kernel"),
        Some(error) => State::Missing(call_refused(host, error)),
    }
}

fn no_perf() -> Obstacle {
    Obstacle::stops(
        "this kernel has no perf events: kernel.perf_event_paranoid does not exist",
        vec![WayOut::words(
            "boot a kernel built with CONFIG_PERF_EVENTS, such as the kernels of all common \
                            distributions; sandboxes with their own kernel have no perf events",
        )],
    )
}

/// The call is refused before the kernel checks what it asks for.
fn call_refused(host: &Host, error: i32) -> Obstacle {
    let name = errno(error);
    if host.process.seccomp {
        let mut ways = ways::container(&host.process);
        ways.push(match ways.is_empty() {
            true => WayOut::words(
                "run holdup outside the sandbox, or allow perf_event_open in the filter (for a \
                 systemd service: SystemCallFilter=perf_event_open)",
            ),
            false => WayOut::words(format!(
                "if that is not enough, allow perf_event_open in the filter: {}",
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
        "perf_event_open is refused before the kernel reads its arguments ({name}): by a security \
         module, or by kernel.perf_event_paranoid above 2"
    );
    Obstacle::stops(what, ways::right(&host.process))
}

/// Whether the process may record all other processes.
pub(super) fn permission(host: &Host, _: &Tried) -> State {
    let (process, kernel) = (&host.process, &host.kernel);
    if let Some(right) = process.may_record_all() {
        return State::ok(format!("this process has {} and may record all threads", right.name()));
    }
    if kernel.perf.lets_everybody() {
        return State::ok("kernel.perf_event_paranoid allows everybody to record everything");
    }
    let setting = match kernel.perf {
        Perf::Paranoid(level) => format!("kernel.perf_event_paranoid is {level}"),
        Perf::Absent => return State::Missing(no_perf()),
        Perf::Unknown => {
            return State::unknown(
                "neither capabilities nor kernel.perf_event_paranoid can be read: is /proc \
                                   mounted?",
            );
        }
    };
    let lacks = match process.users {
        Namespace::Inner => {
            "this process runs in its own user namespace, and the capabilities in it do not count \
             for recording"
        }
        Namespace::Initial | Namespace::Unknown => {
            "this process has neither CAP_PERFMON nor CAP_SYS_ADMIN"
        }
    };
    State::Missing(Obstacle::stops(format!("{setting}, and {lacks}"), ways::right(process)))
}

/// Whether kernel lockdown hides the kernel even from root.
pub(super) fn lockdown(host: &Host, _: &Tried) -> State {
    match host.kernel.lockdown {
        Lockdown::Allows => State::ok("kernel lockdown does not forbid tracing"),
        Lockdown::Confidential => State::Missing(Obstacle::stops(
            "kernel lockdown is set to confidentiality, which forbids tracing for everybody",
            vec![WayOut::words(
                "boot with lockdown=integrity or lockdown=none; on some systems Secure Boot sets \
                                the lockdown",
            )],
        )),
        // A locked down kernel does not let tracefs be read.
        Lockdown::Unknown if host.tracefs.is_ok() => {
            State::ok("tracefs can be read, so no kernel lockdown forbids tracing")
        }
        Lockdown::Unknown => State::unknown("/sys/kernel/security/lockdown cannot be read"),
    }
}
