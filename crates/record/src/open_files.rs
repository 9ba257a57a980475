//! The limit of open files. A recording keeps a file open for each event and CPU, which is more
//! than the usual 1,024; a process may have more if it asks. The command that is recorded gets its
//! own limit back: some programs cannot handle a larger one (`man 2 select`).
#![allow(unsafe_code, reason = "system calls")]

use std::sync::OnceLock;

/// What held before it was raised.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Allow this process as many open files as it may have.
pub(crate) fn raise() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one structure.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return;
    }
    let all = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: the kernel reads one structure. Where it refuses, the limit is as it was.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &all) } == 0 {
        // Raised twice, the first limit is what held before.
        let _ = BEFORE.set(limit);
    }
}

/// Make the limit again what it was: in a process that becomes another program. It makes one
/// system call and takes no lock.
pub(crate) fn restore() {
    if let Some(before) = BEFORE.get() {
        // SAFETY: the kernel reads one structure, which lives as long as the process.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, before) };
    }
}
