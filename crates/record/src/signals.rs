//! Signals, read like a file: whoever waits for rings waits for them too.
#![allow(unsafe_code, reason = "signal masks and signalfd")]

use crate::poll::Poll;
use crate::sys::done;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Those that end a recording.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The recording shall end: Ctrl-C, `kill`, or the terminal is gone.
    End(i32),
    /// `SIGUSR2`: what the rings hold shall be written.
    Write,
    /// A child changed its state.
    Child,
}

/// Holds signals back until they are asked for. Threads that are made later hold them back too.
#[derive(Debug)]
pub struct Signals {
    source: OwnedFd,
    /// What was held back before.
    before: libc::sigset_t,
}

impl Signals {
    /// Begin.
    ///
    /// # Errors
    ///
    /// The kernel has no more files for this process.
    pub fn hold() -> io::Result<Signals> {
        // SAFETY: the sets are initialised by `sigemptyset` and `pthread_sigmask` before they are
        // read, and the descriptor of a successful `signalfd` is nobody else's.
        unsafe {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            done(libc::sigemptyset(set.as_mut_ptr()))?;
            let mut set = set.assume_init();
            for signal in ENDING.into_iter().chain([libc::SIGUSR2, libc::SIGCHLD]) {
                // `nohup` wants a hangup ignored, and a held back signal is not.
                if signal != libc::SIGHUP || !is_ignored(signal) {
                    done(libc::sigaddset(&mut set, signal))?;
                }
            }
            // Whoever starts a program may ignore it, and the program then does. The kernel would
            // keep no exit status of a command for us, nor send the signal.
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

    /// The next that came, if one did.
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

    /// Wait until one comes.
    pub fn wait(&self) {
        Poll::of([self.as_fd()]).wait(None);
    }

    /// The mask a program expects that is started from here.
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
        // What still waits was meant for the recording: a second Ctrl-C must not end a report.
        while self.next().is_some() {}
        // SAFETY: the mask is the one that `hold` got.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action given the call only writes the present one.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
