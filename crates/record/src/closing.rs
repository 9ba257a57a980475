//! Events are closed in the background.
//!
//! For each tracepoint that loses its last user the kernel waits until no CPU can be inside it,
//! under one lock: 40 ms each, measured on Linux 6.18, eight seconds for all of a recording. So a
//! forked child inherits the events and closes them in the background: it waits until the recorder
//! has closed its own copies, and then exits. A recording that begins meanwhile would show this
//! child as a program that waits for the kernel. So the next recorder waits for it, with its own
//! events open: a tracepoint that is still in use closes without a wait, so everything is closed at
//! once if both record the same events.
#![allow(unsafe_code, reason = "fork")]

use crate::session::Session;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The name of the process that closes events. The kernel keeps 15 bytes.
const NAME: &std::ffi::CStr = c"holdup-closing";

/// Closes the events in the background. Must be called while this process has one thread.
pub fn close(session: Session) {
    // Reading from one end shows that the other is closed. Without a pipe the child does not wait.
    let mut pipe = [-1; 2];
    // SAFETY: there is one thread, so the child may do anything; it only makes system calls. The
    // name's buffer has the 16 bytes that the kernel writes, the pipe's has room for two numbers.
    unsafe {
        libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC);
        // The child has its name from the start, so that the next recorder finds it.
        let mut own = [0u8; 16];
        libc::prctl(libc::PR_GET_NAME, own.as_mut_ptr());
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        let child = libc::fork();
        if child != 0 {
            libc::prctl(libc::PR_SET_NAME, own.as_ptr());
        } else {
            // Ctrl-C must not reach it, and readers of our output must not wait for it.
            libc::setsid();
            for file in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
                libc::close(file);
            }
            // The last process to close an event waits for the kernel: that must not be the parent.
            libc::close(pipe[1]);
            let mut nothing = [0u8; 1];
            libc::read(pipe[0], nothing.as_mut_ptr().cast(), 1);
            // The kernel closes the files of a process that ends. The rings were not inherited.
            libc::_exit(0);
        }
    }
    // Fast in the parent, because the child still has the events; slow if there is no child.
    drop(session);
    // SAFETY: nothing else uses these numbers. They are -1 if there is no pipe.
    unsafe {
        libc::close(pipe[1]);
        libc::close(pipe[0]);
    }
}

/// The processes in which events of earlier recordings are still being closed.
#[derive(Debug)]
pub struct UnderWay(Vec<PathBuf>);

/// Finds them; `None` if there are none.
pub fn under_way() -> Option<UnderWay> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = all.filter(|e| e.file_name().as_encoded_bytes()[0].is_ascii_digit());
    let found: Vec<PathBuf> = processes.map(|e| e.path()).filter(|path| is_closing(path)).collect();
    (!found.is_empty()).then_some(UnderWay(found))
}

impl UnderWay {
    /// Waits until they are done, at most for `most`. Returns those that are not.
    pub fn wait(mut self, most: Duration) -> Option<UnderWay> {
        let deadline = Instant::now() + most;
        while !self.0.is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
            self.0.retain(|path| is_closing(path));
        }
        (!self.0.is_empty()).then_some(self)
    }
}

/// Whether this folder's process is one that closes events.
fn is_closing(process: &Path) -> bool {
    let comm = fs::read(process.join("comm")).unwrap_or_default();
    comm.trim_ascii_end() == NAME.to_bytes() && !is_zombie(process)
}

/// Whether the process has ended, and only waits to be reaped by its parent. While the kernel
/// closes its files it is not a zombie yet.
pub(crate) fn is_zombie(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name may contain brackets: the last one ends it.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}
