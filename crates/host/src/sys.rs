//! Two questions to the kernel that no file answers.
#![allow(unsafe_code, reason = "system calls")]

use std::io;

/// Bytes of a page of memory.
pub fn page_size() -> usize {
    // SAFETY: it only returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// The error of a call of `perf_event_open` that asks for nothing. The kernel itself answers
/// `EFAULT`; any other error comes from a seccomp filter or a security module before it.
pub fn empty_call() -> i32 {
    let nothing = std::ptr::null::<u8>();
    // SAFETY: the kernel finds no memory at address zero, and opens nothing.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, nothing, 0, -1, -1, 0) };
    match fd {
        ..0 => io::Error::last_os_error().raw_os_error().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_nothing_is_an_error() {
        assert_ne!(empty_call(), 0);
        assert!(page_size().is_power_of_two());
    }
}
