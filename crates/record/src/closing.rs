//! Events are closed behind the recorder's back.
//!
//! For each tracepoint that nobody uses any more the kernel waits until no CPU can be inside of it,
//! under one lock: 40 ms each, measured on Linux 6.18, eight seconds for all of a recording.
//! Nobody shall wait so long for his prompt. So a child inherits the events and ends; it is the
//! last to have them, and it is the child whose end takes so long. It does nothing, but it would
//! be seen in a recording that begins meanwhile, as a program that the kernel keeps waiting. So the
//! next recorder waits for it.
#![allow(unsafe_code, reason = "fork")]

use crate::session::Session;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The name of the process that closes events. The kernel keeps 15 bytes.
const NAME: &std::ffi::CStr = c"holdup-closing";

/// Close the events without waiting for it. Must be called while this process has one thread.
pub fn close(session: Session) {
    // SAFETY: there is one thread, so the child may do what it likes; it makes system calls only.
    unsafe {
        if libc::fork() == 0 {
            libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
            // A Ctrl-C is not meant for it, nor does who reads our output wait for it.
            libc::setsid();
            for file in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
                libc::close(file);
            }
            // The kernel closes the files of who ends. The rings were not inherited.
            libc::_exit(0);
        }
    }
    // In the parent it takes no time: somebody else has the events. Without a child it does.
    drop(session);
}

/// Whether events of an earlier recording are still being closed.
pub fn under_way() -> bool {
    let name = NAME.to_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()).any(
        |entry| {
            let comm = fs::read(entry.path().join("comm")).unwrap_or_default();
            comm.trim_ascii_end() == name && !is_zombie(&entry.path())
        },
    )
}

/// Wait until no events of an earlier recording are being closed any more, at most so long.
pub fn wait(most: Duration) {
    let deadline = Instant::now() + most;
    while under_way() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the process has ended and waits for its parent to notice. Who closes its files is
/// called a zombie early: only its last thread being gone makes it one that holds nothing.
fn is_zombie(process: &std::path::Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name may hold brackets: the last one ends it.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}
