//! What can be recorded.

use crate::host::{Calls, Host, Tried};
use crate::process::Surroundings;
use crate::tracefs::NoTracefs;
use crate::{Obstacle, State, WayOut, errno, ways};
use holdup_trace::Capabilities;
use std::os::unix::fs::MetadataExt;

/// Without this event there is nothing to diagnose.
const NEEDED: &str = "sched:sched_switch";

/// Whether tracefs can be read.
pub(super) fn tracefs(host: &Host, _: &Tried) -> State {
    match &host.tracefs {
        Ok(tracefs) => State::ok(format!("readable at {}", tracefs.root().display())),
        Err(why) => State::Missing(no_tracefs(host, why)),
    }
}

/// There is no tracefs to record from.
pub fn no_tracefs(host: &Host, why: &NoTracefs) -> Obstacle {
    let process = &host.process;
    let outside = process.surroundings == Surroundings::Host;
    let mut ways = ways::container(process);
    let (path, error) = match why {
        NoTracefs::Unreadable { path, error } => (path.as_path(), error),
        NoTracefs::NotMounted => {
            if outside {
                let mount = "sudo mount -t tracefs nodev /sys/kernel/tracing";
                ways.push(WayOut::commands("mount it", &[mount]));
            }
            let what = "tracefs is not mounted, or not visible to this process";
            return Obstacle::stops(what, ways);
        }
    };
    let root = if path.ends_with("events") { path.parent().unwrap_or(path) } else { path };
    let shown = root.display();
    let owner = root.metadata().map_or(String::new(), |m| {
        format!("; it belongs to user {}, group {}, mode {:o}", m.uid(), m.gid(), m.mode() & 0o777)
    });
    let why = error.raw_os_error().map_or(error.to_string(), errno);
    if outside {
        ways.push(ways::as_root(process));
        ways.push(WayOut::commands(
            "or give your group access until the next boot",
            &[&format!("sudo mount -o remount,mode=750,gid=\"$(id -g)\" {shown}")],
        ));
    }
    Obstacle::stops(format!("tracefs at {shown} cannot be read ({why}){owner}"), ways)
}

/// Which of the events of the default preset the kernel has.
pub(super) fn tracepoints(_: &Host, tried: &Tried) -> State {
    let Some(events) = &tried.events else { return State::unknown("tracefs cannot be read") };
    if events.missing.is_empty() {
        return State::ok(format!(
            "the kernel has all {} events of the default preset",
            events.found
        ));
    }
    let lacks = |name: &str| events.missing.iter().any(|missing| missing == name);
    let lost: Vec<&str> = Capabilities::default()
        .list()
        .into_iter()
        .filter(|(_, _, names)| names.split(',').any(lacks))
        .map(|(capability, ..)| Capabilities::purpose(capability))
        .collect();
    let what = format!("this kernel lacks {}", events.missing.join(", "));
    let way = match events.missing.iter().all(|name| name.starts_with("lock:contention_")) {
        true => "boot Linux 5.19 or later, which has these events",
        false => "boot a kernel built with CONFIG_FTRACE, which has these events",
    };
    let ways = vec![WayOut::words(way)];
    if lacks(NEEDED) {
        return State::Missing(Obstacle::stops(what, ways));
    }
    let costs = format!("the recording cannot show {}", lost.join("; "));
    State::Limited(Obstacle::costs(what, costs, ways))
}

/// Whether system calls can be traced one by one.
pub(super) fn system_calls(_: &Host, tried: &Tried) -> State {
    let Some(events) = &tried.events else { return State::unknown("tracefs cannot be read") };
    let ways = vec![WayOut::words("boot a kernel built with CONFIG_FTRACE_SYSCALLS")];
    let what = "this kernel has no tracepoints for individual system calls (syscalls:sys_enter_*)";
    match events.calls {
        Calls::Single(calls) => {
            State::ok(format!("{calls} calls of the default preset can be traced individually"))
        }
        Calls::OnlyAll => {
            let costs = "all system calls are recorded instead (raw_syscalls:*), so during the \
                         recording every call of every program takes at least a microsecond longer";
            State::Limited(Obstacle::costs(what, costs, ways))
        }
        Calls::None => {
            let costs = "the recording cannot show in which call a thread sleeps, or how long \
                         calls take";
            State::Missing(Obstacle::costs(format!("{what}, nor raw_syscalls:*"), costs, ways))
        }
    }
}
