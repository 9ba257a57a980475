//! Waiting for several files at once.
#![allow(unsafe_code, reason = "poll")]

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Files that are waited for.
pub(crate) struct Poll {
    files: Vec<libc::pollfd>,
}

impl Poll {
    /// Waits for these files. They must stay open as long as they are waited for.
    pub(crate) fn of<'a>(files: impl IntoIterator<Item = BorrowedFd<'a>>) -> Poll {
        let entry = |file: BorrowedFd<'_>| libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        Poll { files: files.into_iter().map(entry).collect() }
    }

    /// Waits until one can be read, or until this moment. A file that hung up is dropped.
    pub(crate) fn wait(&mut self, until: Option<Instant>) {
        let timeout = match until {
            None => -1,
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                // Rounded up: a wait that ends too early would be repeated at once.
                let left = left + Duration::from_nanos(999_999);
                i32::try_from(left.as_millis()).unwrap_or(i32::MAX)
            }
        };
        // SAFETY: the kernel reads and writes the entries of the vector.
        let found = unsafe {
            libc::poll(self.files.as_mut_ptr(), self.files.len() as libc::nfds_t, timeout)
        };
        for file in &mut self.files {
            if found <= 0 {
                // Interrupted, or the time is over: the kernel left the last answers unchanged.
                file.revents = 0;
            }
            if file.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
                // poll skips negative numbers.
                file.fd = -1;
            }
        }
    }

    /// Whether there was something to read from file `i`.
    pub(crate) fn readable(&self, i: usize) -> bool {
        self.files[i].revents != 0
    }
}
