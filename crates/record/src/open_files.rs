//! The limit of open files. A recording keeps a file open for each event and CPU, which is more
//! than the usual 1,024; a process may raise its soft limit to the hard limit. The recorded command
//! gets the original limit: some programs cannot handle a larger one (`man 2 select`).
#![allow(unsafe_code, reason = "system calls")]

use std::sync::OnceLock;

/// The limit before it was raised.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Raises the soft limit of open files to the hard limit.
pub(crate) fn raise() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one structure.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return;
    }
    let all = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: the kernel reads one structure. If it refuses, the limit stays.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &all) } == 0 {
        // If the limit is raised twice, the first value is the original one.
        let _ = BEFORE.set(limit);
    }
}

/// Restores the original limit, in a process that becomes another program. It makes one system call
/// and takes no lock.
pub(crate) fn restore() {
    if let Some(before) = BEFORE.get() {
        // SAFETY: the kernel reads one structure, which lives as long as the process.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, before) };
    }
}
