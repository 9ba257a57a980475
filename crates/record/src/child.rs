//! The recorded command: forked before the events are opened, started when they count.
#![allow(unsafe_code, reason = "fork and exec around a pipe")]

use crate::signals::Signals;
use crate::sys::done;
use crate::user::User;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// A command that waits to be started, or runs.
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
    /// Writing a byte starts the command.
    go: File,
    /// Closed by a successful `exec`; otherwise the error number comes.
    failed: File,
    exit: Option<Exit>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// The exit status in shells: 128 plus the number of a signal.
    pub fn code(self) -> u8 {
        match self {
            Exit::Status(status) => status,
            Exit::Signal(signal) => 128 | (signal as u8 & 127),
        }
    }
}

impl Child {
    /// Forks a process that becomes `command` when it is started. With `own_stdout`, this process
    /// uses its standard output itself; the command's output then goes to standard error. The
    /// command runs as `user`, if one is given.
    ///
    /// Must be called while this process has one thread.
    ///
    /// # Errors
    ///
    /// If a word of the command has a zero byte, or no more processes or files are allowed.
    pub fn prepare(
        command: &[OsString],
        signals: &Signals,
        own_stdout: bool,
        user: Option<&User>,
    ) -> io::Result<Child> {
        let words = command.iter().map(|word| Ok(CString::new(word.clone().into_vec())?));
        let words: Vec<CString> = words.collect::<io::Result<_>>()?;
        let mut argv: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
        argv.push(std::ptr::null());
        let (waits, go) = pipe()?;
        let (failed, fails) = pipe()?;
        // SAFETY: this process has one thread, so the child may do anything; it only makes system
        // calls until it is another program or ends. `argv` ends with a null pointer, and the
        // strings it points to live on.
        let pid = unsafe { libc::fork() };
        done(pid)?;
        if pid == 0 {
            drop((go, failed));
            // SAFETY: as above.
            unsafe {
                let mut byte = 0u8;
                if libc::read(waits.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
                    // The recorder ended before the recording began.
                    libc::_exit(0);
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, signals.before(), std::ptr::null_mut());
                // Rust ignores it from the start.
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                // Shells make commands in the background ignore it. The recorder does not, and the
                // signal that ends the recording must end the command.
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                if own_stdout {
                    libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
                }
                crate::open_files::restore();
                if user.is_none_or(User::become_it) {
                    libc::execvp(argv[0], argv.as_ptr());
                }
                let error = io::Error::last_os_error().raw_os_error().unwrap_or(0).to_ne_bytes();
                libc::write(fails.as_raw_fd(), error.as_ptr().cast(), error.len());
                libc::_exit(127)
            }
        }
        Ok(Child { pid, go: go.into(), failed: failed.into(), exit: None })
    }

    /// Starts the command.
    ///
    /// # Errors
    ///
    /// Why the process cannot become the command.
    pub fn go(&mut self) -> io::Result<()> {
        self.go.write_all(&[1])?;
        let mut error = [0; 4];
        match self.failed.read(&mut error)? {
            4 => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error))),
            _ => Ok(()),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<Exit> {
        self.wait_with(libc::WNOHANG)
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> Option<Exit> {
        self.wait_with(0)
    }

    /// Sends a signal, if the command still runs.
    pub fn send(&mut self, signal: i32) {
        if self.ended().is_none() {
            // SAFETY: the process is our child and was not waited for, so its number was not
            // reused.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    fn wait_with(&mut self, options: i32) -> Option<Exit> {
        if self.exit.is_none() {
            let mut status = 0;
            // SAFETY: the kernel writes the status.
            while unsafe { libc::waitpid(self.pid, &mut status, options) } == self.pid {
                if libc::WIFEXITED(status) {
                    self.exit = Some(Exit::Status(libc::WEXITSTATUS(status) as u8));
                    break;
                } else if libc::WIFSIGNALED(status) {
                    self.exit = Some(Exit::Signal(libc::WTERMSIG(status)));
                    break;
                }
            }
        }
        self.exit
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which nothing else owns.
    unsafe {
        done(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // `prepare` needs a process with one thread, which a test is not: the command line tests it.

    #[test]
    fn a_signal_is_told_as_shells_tell_it() {
        assert_eq!(Exit::Status(7).code(), 7);
        assert_eq!(Exit::Signal(libc::SIGTERM).code(), 143);
    }
}
