//! How many files a recorder may open: each event on each CPU is one.
#![allow(unsafe_code, reason = "getrlimit and setrlimit")]

use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// What the limit was, for the command that is recorded: programs close all files up to it.
static BEFORE: OnceLock<libc::rlimit> = OnceLock::new();

/// Use what the user may have. If that is not enough, opening events says so.
pub(crate) fn raise_files() {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the kernel writes the structure if the call succeeds, and only reads it then.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr()) == 0 {
            let limit = limit.assume_init();
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                BEFORE.get_or_init(|| limit);
            }
        }
    }
}

/// Take it back, if it was raised. Makes no call but the system's: a forked child may use it.
pub(crate) fn restore_files() {
    if let Some(limit) = BEFORE.get() {
        // SAFETY: the kernel only reads the structure.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
    }
}
