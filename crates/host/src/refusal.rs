//! From an error number to its cause: the same words for a refused recorder and for a check in
//! advance.

use crate::facts::{largest_buffer, no_more_files};
use crate::host::{Attempt, Host, Tried};
use crate::{Obstacle, WayOut, errno, ways};
use std::io;

/// Why the kernel refused, and the way out; `stop` is the obstacle that forbids a recording.
pub(crate) fn why(
    host: &Host,
    tried: &Tried,
    attempt: &Attempt<'_>,
    error: i32,
    stop: Option<&Obstacle>,
) -> Obstacle {
    let name = errno(error);
    match (*attempt, error) {
        (_, libc::EMFILE) => no_more_files(host, tried),
        (_, libc::ENFILE) => Obstacle::stops(
            "the system-wide limit of open files is reached (ENFILE)",
            vec![WayOut::commands("allow more", &["sudo sysctl fs.file-max=1000000"])],
        ),
        (Attempt::Buffer(bytes), libc::EPERM | libc::ENOMEM) => {
            let kib = bytes >> 10;
            let most = match largest_buffer(host) {
                Some(most) => format!("; {} KiB are allowed", most >> 10),
                None => String::new(),
            };
            let smaller =
                WayOut::commands("use smaller buffers", &["holdup record -m 128K -- COMMAND"]);
            let what = format!(
                "the kernel does not allow a buffer of {kib} KiB for each CPU ({name}){most}"
            );
            Obstacle::stops(what, vec![smaller, ways::as_root(&host.process)])
        }
        (Attempt::Open(event), libc::EPERM | libc::EACCES | libc::ENOSYS) => match stop {
            Some(obstacle) => obstacle.clone(),
            None => by_somebody_else(host, event, &name),
        },
        (Attempt::Open(event), libc::ENOENT | libc::EINVAL | libc::EOPNOTSUPP) => Obstacle::stops(
            format!("this kernel does not offer {event} ({name})"),
            vec![WayOut::words("see what the host allows: holdup doctor")],
        ),
        (Attempt::Open(event), libc::ENODEV) => Obstacle::stops(
            format!("{event} cannot be opened on a CPU that is offline ({name})"),
            vec![WayOut::commands(
                "see which CPUs are online",
                &["cat /sys/devices/system/cpu/online"],
            )],
        ),
        (Attempt::Open(event), _) => Obstacle::stops(
            format!("{event} cannot be opened: {}", io::Error::from_raw_os_error(error)),
            vec![WayOut::words("see what the host allows: holdup doctor")],
        ),
        (Attempt::Buffer(_), _) => Obstacle::stops(
            format!(
                "the kernel gives no buffer for events: {}",
                io::Error::from_raw_os_error(error)
            ),
            vec![WayOut::words("see what the host allows: holdup doctor")],
        ),
    }
}

/// All settings allow it, but the kernel still refuses.
fn by_somebody_else(host: &Host, event: &str, name: &str) -> Obstacle {
    let what = format!(
        "{event} is refused ({name}) although no setting forbids it: a security module (SELinux, \
         AppArmor) may forbid it, or the process belongs to another user"
    );
    let mut ways = ways::container(&host.process);
    ways.push(WayOut::commands("look who did", &["sudo dmesg | tail"]));
    Obstacle::stops(what, ways)
}
