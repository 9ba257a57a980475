//! Signals, read from a file descriptor: a thread that waits for rings waits for signals too.
#![allow(unsafe_code, reason = "signal masks and signalfd")]

use crate::poll::Poll;
use crate::sys::done;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that end a recording.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The recording should end: Ctrl-C, `kill`, or the terminal is gone.
    End(i32),
    /// `SIGUSR2`: the content of the rings should be written.
    Write,
    /// A child changed its state.
    Child,
}

/// Blocks signals until they are read. Threads created later block them too.
#[derive(Debug)]
pub struct Signals {
    source: OwnedFd,
    /// The signal mask before.
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks the signals.
    ///
    /// # Errors
    ///
    /// If this process may not open another file.
    pub fn hold() -> io::Result<Signals> {
        // SAFETY: the sets are initialised by `sigemptyset` and `pthread_sigmask` before they are
        // read, and nothing else owns the descriptor of a successful `signalfd`.
        unsafe {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            done(libc::sigemptyset(set.as_mut_ptr()))?;
            let mut set = set.assume_init();
            for signal in ENDING.into_iter().chain([libc::SIGUSR2, libc::SIGCHLD]) {
                // `nohup` relies on an ignored hangup, and a blocked signal is not ignored.
                if signal != libc::SIGHUP || !is_ignored(signal) {
                    done(libc::sigaddset(&mut set, signal))?;
                }
            }
            // The parent may ignore SIGCHLD, and this process inherits that. The kernel would then
            // keep no exit status of a command, and send no signal.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let mut before = MaybeUninit::<libc::sigset_t>::uninit();
            match libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr()) {
                0 => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            let before = before.assume_init();
            let source = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if let Err(error) = done(source) {
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                return Err(error);
            }
            Ok(Signals { source: OwnedFd::from_raw_fd(source), before })
        }
    }

    /// The next received signal, if any.
    pub fn next(&self) -> Option<Signal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes one whole structure or nothing.
        let info = unsafe {
            let got = libc::read(self.source.as_raw_fd(), info.as_mut_ptr().cast(), size);
            if got != size as isize {
                return None;
            }
            info.assume_init()
        };
        Some(match info.ssi_signo as i32 {
            libc::SIGCHLD => Signal::Child,
            libc::SIGUSR2 => Signal::Write,
            signal => Signal::End(signal),
        })
    }

    /// Waits until a signal comes.
    pub fn wait(&self) {
        Poll::of([self.as_fd()]).wait(None);
    }

    /// The signal mask that a started program expects.
    pub(crate) fn before(&self) -> &libc::sigset_t {
        &self.before
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Pending signals were meant for the recording: a second Ctrl-C must not end a report.
        while self.next().is_some() {}
        // SAFETY: the mask is the one that `hold` got.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action given the call only writes the current one.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
