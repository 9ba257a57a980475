//! What helps, depending on what the process runs in: a command for the host does not help a user
//! in a container.

use crate::WayOut;
use crate::process::{Namespace, Process, Surroundings};

/// The document that says what a container needs.
pub(crate) const DOCUMENT: &str = "docs/recording.md, \"Containers and Kubernetes\"";

/// What every container needs to record the host: the rights and the folders together, because a
/// container that lacks one usually lacks the others.
pub(crate) fn container(process: &Process) -> Vec<WayOut> {
    let flags = "--cap-add PERFMON --cap-add IPC_LOCK --cap-add SYSLOG --pid host \
                 -v /sys/kernel/tracing:/sys/kernel/tracing:ro";
    let run = |tool: &str| format!("{tool} run {flags} IMAGE holdup record -o - > perf.data");
    match process.surroundings {
        Surroundings::Host => Vec::new(),
        Surroundings::Docker => {
            vec![WayOut::commands(
                "start the container with the rights and mounts it needs",
                &[&run("docker")],
            )]
        }
        Surroundings::Podman => {
            let run = run("sudo podman");
            vec![WayOut::commands(
                "start the container as root with the rights and mounts it needs",
                &[&run],
            )]
        }
        Surroundings::Kubernetes => {
            vec![WayOut::words(format!("give the pod the rights and mounts it needs: {DOCUMENT}"))]
        }
        Surroundings::Container => {
            vec![WayOut::words(format!(
                "give the container the rights and mounts it needs: \
                                        {DOCUMENT}"
            ))]
        }
    }
}

/// Ways to get the right to record all processes.
pub(crate) fn right(process: &Process) -> Vec<WayOut> {
    let lets_all = "sudo sysctl kernel.perf_event_paranoid=-1";
    if process.users == Namespace::Inner {
        let mut ways = vec![
            WayOut::words("record outside the user namespace, as root of the host"),
            WayOut::commands(
                "or, on the host, allow everybody to record until the next boot",
                &[lets_all],
            ),
        ];
        ways.extend(container(process));
        return ways;
    }
    let mut ways = container(process);
    if process.surroundings == Surroundings::Host {
        ways.push(as_root(process));
        ways.push(WayOut::commands(
            "or give this program the right permanently (tracefs, which belongs to root, needs \
             access too)",
            &["sudo setcap cap_perfmon,cap_ipc_lock,cap_syslog=ep \"$(command -v holdup)\""],
        ));
        ways.push(WayOut::commands(
            "or allow everybody to record until the next boot",
            &[lets_all],
        ));
    }
    ways
}

/// To run as root; for root, to run with the rights that were dropped.
pub(crate) fn as_root(process: &Process) -> WayOut {
    match process.uid {
        Some(0) => WayOut::words("run holdup as a root user with all capabilities"),
        _ => WayOut::commands("run holdup as root", &["sudo holdup record -- COMMAND"]),
    }
}
